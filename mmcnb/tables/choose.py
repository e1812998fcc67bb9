"""Select the columns of a table that options or a fit require, and assign roles."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mmcnb.errors import InputError
from mmcnb.samples.encoding import CellForm, EncodedColumn, Encoding
from mmcnb.tables.arrow import (
    BOOL,
    FLOAT64,
    TEXT,
    contents_of,
    kind_of,
    type_name,
)
from mmcnb.tables.base import BaseTable
from mmcnb.tables.columns import Role, TableColumn, role_of
from mmcnb.tables.dates import CLOCK_FORMAT
from mmcnb.tables.decide import DOUBTFUL_DATES, Decision
from mmcnb.tables.notes import option_with
from mmcnb.tables.options import TableOptions
from mmcnb.tables.record_columns import IDENTIFIES, NUMBERS_ROWS, is_duration

UNNAMED = ("", "Unnamed: 0")  # names that a first column of row names may have
ORDERED_DATE = re.compile("%[dm][-/.]%[dm][-/.]%[yY]")
# Columns that describe the record are left out only if this many columns remain.
LEAST_FEATURES = 2
TYPE_OF_PLAIN_CELLS = {"flag": BOOL, "number": FLOAT64}
# For each kind of column in a fit, the kinds that the column may have in new rows.
ALIKE = {
    "number": ("number", "flag", "text"),
    "flag": ("number", "flag", "text"),
    "date": ("date", "time", "text"),
    "time": ("date", "time", "text"),
    "text": ("text", "number", "flag", "date", "time"),
    "order": ("text", "number", "flag", "date", "time"),
    "other": (),
}

Decisions = Mapping[int, Decision]
"""The kind of values that the texts of each column represent, by column index."""


def choose_columns(
    table: BaseTable, options: TableOptions, decisions: Decisions
) -> list[TableColumn]:
    """Assign a role to each column of a table.

    Parameters
    ----------
    table : BaseTable
    options : TableOptions
    decisions : mapping of int to Decision
        The kind of values that the texts of each column represent, by column index.

    Returns
    -------
    list of TableColumn
        The features, in the order in which blocks of rows contain them, followed by all
        other columns.

    Raises
    ------
    InputError
        If a column does not exist, is both used and dropped, or has no name, or if no
        feature is left.
    """
    if options.encoding is not None:
        return encoded_columns(table, options.encoding, options.index_column)
    labels = table.resolve(options.label_column, "--label-column")
    names = table.resolve(options.index_column, "--index-column")
    chosen: list[int] = []
    if options.names_columns:
        chosen = table.resolve(options.columns, "--columns")
    dropped = table.resolve(options.drop, "--drop")
    if not names:
        names = _written_index(table, {*chosen, *dropped}, labels)
    for option, positions in (("--label-column", labels), ("--index-column", names)):
        if len(positions) > 1:
            raise InputError(
                f"{table.name}: {len(positions)} columns are given for {option}: pass "
                f"one, such as {option} {table.option(positions[0])}."
            )
    _check_uses(table, [*labels, *names, *chosen], dropped)
    _check_marks(table, options)
    _check_kinds(table, [*labels, *names])
    if labels and labels == names:
        raise InputError(
            f"{table.name}: {table.label_of(labels[0])} cannot be both classes and "
            "row names: leave out --label-column or --index-column."
        )
    hidden = {*dropped, *labels, *names, *table.index_columns}
    candidates = chosen if options.names_columns else range(len(table.names))
    features = [position for position in candidates if position not in hidden]
    if table.has_names:
        _check_names(table, features, explicit=options.names_columns)

    kept = table.resolve(options.keep, "--keep")
    _check_uses(table, kept, dropped)
    columns = _features(table, features, options, decisions, kept)
    roles = dict.fromkeys(labels, Role.CLASSES) | dict.fromkeys(names, Role.ROW_NAMES)
    for position in range(len(table.names)):
        if position not in features:
            role = roles.get(position, Role.LEFT_OUT)
            columns.append(_column(table, position, role))
    # Blocks contain only the features, so the features must have the first indices.
    columns.sort(key=lambda column: not column.is_feature)
    check_features(table, columns)
    return columns


def decisions_asked_for(table: BaseTable, options: TableOptions) -> dict[int, Decision]:
    """Return how columns are read because of options or ordered categories.

    The keys of the result are column indices. Other columns are not included.
    """
    if options.encoding is not None:
        return {}
    decisions: dict[int, Decision] = {}
    if options.categories == "auto":
        for position, texts in table.orders().items():
            decisions[position] = _in_order(texts)
    for name, texts in options.orders or ():
        for position in table.resolve([name], "--order"):
            decisions[position] = _in_order(texts)
    for position in table.resolve(options.text, "--text"):
        decisions[position] = Decision(CellForm("text"))
    _check_texts(table, decisions)
    return decisions


def _check_texts(table: BaseTable, positions: Collection[int]) -> None:
    """Raise InputError if an option reads lists or objects as texts."""
    for position in positions:
        data_type = table.types[position]
        if pa.types.is_nested(data_type):
            raise InputError(
                f"{table.name}: {table.label_of(position)} cannot be read as texts, "
                f"because it contains {contents_of(data_type)}: leave it out of "
                "text= and orders= (--text, --order)."
            )


def _in_order(texts: Sequence[str]) -> Decision:
    return Decision(CellForm("order", levels=tuple((text,) for text in texts)))


def _column(table: BaseTable, position: int, role: Role) -> TableColumn:
    return TableColumn(
        position=position,
        key=table.keys[position],
        name=table.names[position],
        type=table.types[position],
        role=role,
        block=table.blocks[position] if table.blocks else "",
    )


def _features(
    table: BaseTable,
    positions: Sequence[int],
    options: TableOptions,
    decisions: Decisions,
    kept: Sequence[int],
) -> list[TableColumn]:
    """Return the columns that may become features, with their roles."""
    named = {*kept, *(positions if options.asks_columns else ())}
    asked = {*named, *(positions if options.takes_all else ())}
    columns = []
    for position in positions:
        column = _feature(table, position, options, decisions.get(position), asked)
        column.is_named = position in named or _asks_for_dates(column, options)
        if column.kind == "other" and not column.is_named:
            column.role = Role.LEFT_OUT
            column.why = _why_other(column.type)
            column.can_be_kept = False
        if _is_time_of_day(column):
            for angle in ("sin", "cos"):
                columns.append(replace(column, angle=angle, block=column.name))
        else:
            columns.append(column)
    return columns


def _feature(
    table: BaseTable,
    position: int,
    options: TableOptions,
    decision: Decision | None,
    asked: Collection[int],
) -> TableColumn:
    """Return a column that may become a feature, with its role."""
    column = _column(table, position, Role.LEFT_OUT)
    column.is_asked = position in asked
    column.marks = options.numeric_marks_of(column.name)
    if decision is not None:
        column.decision = decision
        column.form = decision.form
    column.role = role_of(column.kind, options)
    is_doubtful = decision is not None and decision.doubt == DOUBTFUL_DATES
    if is_doubtful and options.use_of_dates != "drop":
        column.role = Role.REFUSED if column.is_asked else Role.LEFT_OUT
        column.why = DOUBTFUL_DATES
        column.can_be_kept = False
    return column


def _why_other(data_type: pa.DataType) -> str:
    """Return the reason why a column of kind "other" is left out."""
    contents = contents_of(data_type)
    if contents in ("lists of numbers", "lists of flags"):
        return "its lists are empty"  # others are split into one column per element
    return f"{contents} cannot become numbers"


def _is_time_of_day(column: TableColumn) -> bool:
    if column.role is not Role.DURATION or column.block or is_duration(column.name):
        return False
    if column.form is not None:
        return column.form.is_clock
    return pa.types.is_time(column.type)


def _asks_for_dates(column: TableColumn, options: TableOptions) -> bool:
    """Return whether options request the dates of a column as a feature.

    They do so if ``dates`` contains "epoch", or if it specifies whether the day or the
    month comes first and the column has dates such as 3/4/2025.
    """
    if column.kind != "date":
        return False
    formats = () if column.form is None else column.form.formats
    has_order = any(map(ORDERED_DATE.match, formats))
    is_given = has_order and options.order_of_dates != ""
    return options.use_of_dates == "epoch" or is_given


def _check_marks(table: BaseTable, options: TableOptions) -> None:
    """Raise InputError if ``na_values`` refers to a column other than by its name."""
    for mark in options.na_values or ():
        if isinstance(mark, str) or mark[0] in table.names:
            continue
        positions = table.resolve([mark[0]], "--na-values")
        raise InputError(
            f"{table.name}: no column is named {mark[0]!r}, and markers of missing "
            "values must refer to columns by name: perhaps "
            f"{table.names[positions[0]]!r} is meant (--na-values)."
        )


def _check_uses(table: BaseTable, used: list[int], dropped: list[int]) -> None:
    for position in used:
        if position in dropped:
            raise InputError(
                f"{table.name}: {table.label_of(position)} is both used and dropped: "
                "leave out --drop, or the option that uses it."
            )


def _check_kinds(table: BaseTable, positions: list[int]) -> None:
    """Raise InputError if the type of a column is unfit for classes or row names."""
    for position in positions:
        data_type = table.types[position]
        if kind_of(data_type) == "other":
            raise InputError(
                f"{table.name}: {table.label_of(position)} has values of type "
                f"{type_name(data_type)}, which cannot name rows or classes: leave the "
                f"column out with --drop {table.option(position)}."
            )


def _written_index(table: BaseTable, named: set[int], labels: list[int]) -> list[int]:
    """Return a list with the index of the column of row names that pandas wrote.

    The list is empty if there is no such column, if there are several, or if the column
    contains the class labels.
    """
    index = list(table.index_columns)
    if table.has_names and table.names[0].strip() in UNNAMED and 0 not in named:
        index = [0]
    if len(index) != 1 or index == labels:
        return []
    return index


def check_features(table: BaseTable, columns: Sequence[TableColumn]) -> None:
    """Raise InputError if no column is a feature.

    Raises
    ------
    InputError
        If no column is a feature. The message states why columns were left out, unless
        an option has left them out.
    """
    if not columns:
        raise InputError(f"{table.name} has no columns: add at least one.")
    reasons = []
    for column in columns:
        if column.is_feature:
            return
        if column.why:
            reasons.append(f"; {table.label_of(column.position)}: {column.why}")
    remedy = "leave out fewer (--drop, --columns)"
    if reasons:
        remedy = "pass a table with other columns"
    kept = [column for column in columns if column.why and column.can_be_kept]
    if kept:
        them = "them" if len(kept) > 1 else "it"
        remedy = f"{option_with(table, 'keep', kept)} keeps {them}"
    raise InputError(
        f"{table.name}: no column is left as a feature: {remedy}"
        f"{''.join(reasons[:10])}."
    )


def leave_out_records(features: Sequence[TableColumn]) -> None:
    """Leave out columns that describe the record, as long as two columns remain.

    If fewer than two would remain, columns that describe the record are kept, beginning
    with those whose values repeat most often, because they are the least likely to be
    identifiers or timestamps. A column that numbers the rows is kept only if no other
    column remains.
    """
    taken = [column for column in features if not column.why]
    records = [column for column in taken if column.record is not None]
    n_left = len({column.position for column in taken}) - len(records)
    for column in sorted(records, key=_certainty):
        assert column.record is not None
        n_least = 1 if column.record.why == NUMBERS_ROWS else LEAST_FEATURES
        if n_left < n_least:
            n_left += 1
        else:
            column.why = column.record.why


def _certainty(column: TableColumn) -> tuple[bool, float, bool, bytes]:
    """Return a sort key for how certain it is that a column describes the record."""
    sign = column.record
    assert sign is not None
    is_counter = sign.why == NUMBERS_ROWS
    return is_counter, sign.share, sign.why == IDENTIFIES, sign.digest


def encoded_columns(
    table: BaseTable, encoding: Encoding, index_column: str | int | None = None
) -> list[TableColumn]:
    """Find the columns of a fit in another table.

    Parameters
    ----------
    table : BaseTable
    encoding : Encoding
        Description of the columns of the fit.
    index_column : str, int or None, default=None
        Column of row names. If None, this is the fit's column of row names if the table
        has it, and otherwise the column of row names that pandas wrote, if any.

    Raises
    ------
    InputError
        If a column does not exist, or has values of a different kind than in the fit.
    """
    names = encoding.names_or_numbers
    width = len(names)
    is_numbered = names == list(map(str, range(width)))
    if is_numbered and not encoding.has_names and len(table.names) != width:
        raise InputError(
            f"{table.name} has {len(table.names)} columns, and the fit had {width}: "
            "pass rows with the columns of the fit."
        )
    _check_lists(table, names)
    columns = []
    for feature in encoding.features:
        columns.append(_encoded_column(table, feature, encoding))
    features = {column.position for column in columns}
    index = table.resolve(index_column, "--index-column")
    if index_column is None:
        index = _index_of_fit(table, encoding, features)
        index = [k for k in index if kind_of(table.types[k]) != "other"]
    _check_kinds(table, index)
    for position in index:
        if position in features:
            raise InputError(
                f"{table.name}: {table.label_of(position)} is a feature of the fit, so "
                "it cannot name rows; leave --index-column out."
            )
        columns.append(_column(table, position, Role.ROW_NAMES))
    return columns


def _check_lists(table: BaseTable, names: Sequence[str]) -> None:
    """Raise InputError if lists have more elements than in the fit."""
    for block in dict.fromkeys(filter(None, table.blocks)):
        elements = [
            name
            for name, other in zip(table.names, table.blocks, strict=True)
            if other == block
        ]
        n_of_fit = len({*elements} & {*names})
        if 0 < n_of_fit < len(elements):
            raise InputError(
                f"{table.name}: the lists of {block!r} have {len(elements)} elements, "
                f"but had {n_of_fit} in the fit: pass lists of the same length."
            )


def _index_of_fit(
    table: BaseTable, encoding: Encoding, features: set[int]
) -> list[int]:
    """Return a list with the index of the column of row names, if there is one.

    It is the column of row names of the fit or, if the table lacks that column, the one
    that pandas wrote.
    """
    name = encoding.index_column
    is_there = name in table.names and encoding.has_names == table.has_names
    if name is not None and is_there:
        position = table.names.index(name)
        if position not in features:
            return [position]
    return _written_index(table, features, [])


def _encoded_column(
    table: BaseTable, feature: EncodedColumn, encoding: Encoding
) -> TableColumn:
    by_number = not (table.has_names and encoding.has_names)
    position = table.position_in_fit(feature.name, by_number)
    data_type = table.types[position]
    kind = kind_of(data_type)
    if kind not in ALIKE[feature.kind] and not pa.types.is_null(data_type):
        raise InputError(
            f"{table.name}: {table.label_of(position)} has values of type "
            f"{type_name(data_type)}, and was a {feature.kind} in the fit: convert it "
            f"to a {feature.kind}."
        )
    options = dict(encoding.options)
    form = feature.form or _form_of_kind(feature.kind, options)
    if table.is_text:
        decimal = options.get("decimal") or "."
        is_plain = form in (CellForm("number", decimal=decimal), CellForm("flag"))
        plain_type = TYPE_OF_PLAIN_CELLS.get(form.kind, TEXT)
        table.types[position] = plain_type if is_plain else TEXT
    column = _column(table, position, role_of(feature.kind, TableOptions()))
    kinds = kind_of(column.type), feature.kind
    if table.is_text or "text" in kinds or feature.kind == "order":
        column.form = form
    column.angle = feature.angle
    column.block = feature.block
    column.fill = feature.fill
    column.marks = feature.marks
    if feature.kind == "text":
        column.categories = pa.array(feature.categories, TEXT)
    return column


def _form_of_kind(kind: str, options: Mapping[str, Any]) -> CellForm:
    """Return how to parse the texts of a column that was not text in the fit."""
    if kind == "date":
        return CellForm("date", formats=("ISO8601", CLOCK_FORMAT))
    if kind == "number":
        decimal = options.get("decimal") or "."
        thousands = options.get("thousands") or ""
        return CellForm("number", decimal=decimal, thousands=thousands)
    return CellForm(kind)


def _check_names(table: BaseTable, features: list[int], explicit: bool) -> None:
    """Raise InputError if a feature has no name, unless it is selected explicitly."""
    for position in features:
        name = table.names[position]
        if not explicit and not name.strip():
            number = table.number_of(position)
            option = table.option(position)
            raise InputError(
                f"{table.name}: column {number} has no name: use it as row names "
                f"with --index-column {option}, or leave it out with --drop {option}."
            )

"""Write notes about a table: columns left out, and cells changed."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import chain

from mmcnb._fit_warnings import Importance, Note
from mmcnb.errors import shown
from mmcnb.tables.base import BaseTable
from mmcnb.tables.columns import Role, TableColumn, shown_order
from mmcnb.tables.decide import DOUBTFUL_DATES
from mmcnb.tables.marks import mark_as_argument
from mmcnb.tables.options import TableOptions
from mmcnb.tables.record_columns import IS_DATED

MOST_NAMED = 10  # maximum number of columns listed in a sentence


def notes_of_columns(
    table: BaseTable,
    columns: Sequence[TableColumn],
    options: TableOptions,
    n_dropped: int,
    how_filled: str,
) -> list[str]:
    """Return sentences about columns that are left out, and cells that were changed.

    Parameters
    ----------
    table : BaseTable
    columns : sequence of TableColumn
        All columns, in the order of the table.
    options : TableOptions
    n_dropped : int
        Number of rows left out because of missing cells.
    how_filled : str
        Clause that describes how missing cells were filled.

    Returns
    -------
    list of str
        Notes, with the most important first. Each note begins with the name of the
        table.
    """
    data: list[str] = []
    advice: list[str] = []
    if n_dropped:
        change = "rows with missing cells were left out and have no label"
        data.append(f"{change}: {n_dropped:,}")
    if options.encoding is None:
        data += _left_out(table, columns)
        for sentences in (_wrong_cells, _known_marks, _doubts, _marks_as_texts):
            data += sentences(columns)
        data += _ambiguous_commas(columns)
        for sentences_of in (_records_taken, _even_numbers, _units):
            advice += sentences_of(table, columns)
        advice += _orders(table, columns, options)
        advice += _commas(columns)
        advice += _spellings(columns)
    else:
        data += _wrong_cells(columns)
    filled = [
        f"{column.gaps:,} in {column.name!r}"
        for column in columns
        if column.is_feature and column.gaps
    ]
    unknown = [
        f"{column.unknown:,} in {column.name!r}"
        for column in columns
        if column.is_feature and column.unknown
    ]
    if unknown:
        change = "texts that do not occur in the fit are 0 in all categories"
        data.append(f"{change}: {listed(unknown)}")
    if filled:
        advice.append(f"{how_filled}: {listed(filled)}")
    return [
        Note(f"{table.name}: {sentence}.", importance)
        for importance, found in ((Importance.DATA, data), (Importance.ADVICE, advice))
        for sentence in found
    ]


def listed(texts: Sequence[str]) -> str:
    """Return the first ten texts, separated by commas, and the number of the rest."""
    listed = ", ".join(texts[:MOST_NAMED])
    if len(texts) > MOST_NAMED:
        listed += f" and {len(texts) - MOST_NAMED} more"
    return listed


def option_with(table: BaseTable, option: str, columns: Sequence[TableColumn]) -> str:
    """Return an option and the columns it applies to, in Python and command-line form.

    The result is text for a message and contains at most ten columns.
    """
    columns = columns[:MOST_NAMED]
    names = [column.name for column in columns]
    words = [f"--{option} {table.option(column.position)}" for column in columns]
    of_table = "" if option == "keep" else " of mmcnb.read_table"
    return f"{option}={names}{of_table} ({' '.join(words)})"


def _left_out(table: BaseTable, columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield sentences about the columns that are left out, and how to keep them."""
    left_out = [column for column in columns if not column.is_feature and column.why]
    if not left_out:
        return
    reasons = [f"{column.name!r} ({column.why})" for column in left_out]
    verb = "column is" if len(left_out) == 1 else "columns are"
    sentence = f"{len(left_out)} {verb} left out: {listed(reasons)}"
    kept = [column for column in left_out if column.can_be_kept]
    if kept:
        it = "them" if len(kept) > 1 else "it"
        sentence += f"; {option_with(table, 'keep', kept)} keeps {it}"
    if any(column.why == IS_DATED for column in left_out):
        sentence += "; dates='epoch' of mmcnb.read_table (--dates epoch) keeps dates"
    yield sentence
    if any(column.why == DOUBTFUL_DATES for column in left_out):
        yield (
            "dates='day-first' or dates='month-first' of mmcnb.read_table (--dates "
            "day-first or --dates month-first) specifies which field these dates "
            "begin with"
        )


def _records_taken(table: BaseTable, columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield a sentence about columns that describe the record but are kept.

    Such columns are kept if too few other columns remain.
    """
    features = [column for column in columns if column.is_feature]
    records = []
    reasons = []
    for column in features:
        if column.record is not None and not column.why:
            records.append(column)
            reasons.append(f"{column.name!r} ({column.record.why})")
    if not records:
        return
    verb = "is" if len(records) == 1 else "are"
    sentence = f"{listed(reasons)} {verb} kept, because few columns would remain"
    if len(features) > len(records):
        it = "them" if len(records) > 1 else "it"
        sentence += f"; {option_with(table, 'drop', records)} leaves {it} out"
    yield sentence


def _even_numbers(table: BaseTable, columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield a sentence about the columns whose numbers look like identifiers.

    The numbers of these columns are distinct and spread evenly.
    """
    features = [column for column in columns if column.is_feature]
    even = [column for column in features if column.is_even]
    if 0 < len(even) < len(features):
        names = listed([repr(column.name) for column in even])
        it = "them" if len(even) > 1 else "it"
        yield (
            f"all numbers of {names} are distinct and spread evenly, like "
            f"identifiers; {option_with(table, 'drop', even)} leaves {it} out"
        )


def _units(table: BaseTable, columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield a sentence about the units that were removed from numbers."""
    with_units = []
    units = []
    for column in columns:
        form = column.form
        if not column.is_feature or form is None or not form.factors:
            continue
        with_units.append(column)
        unit = form.unit
        if not unit:
            unit = "times " + ", ".join(written for written, _ in form.factors)
        units.append(f"{column.name!r} ({unit})")
    if units:
        yield (
            f"numbers were read without their units: {listed(units)}; "
            f"{option_with(table, 'text', with_units)} keeps the texts instead"
        )


def _orders(
    table: BaseTable, columns: Sequence[TableColumn], options: TableOptions
) -> Iterator[str]:
    """Yield a sentence about text columns whose order was recognised automatically."""
    given = [name for name, _ in options.orders or ()]
    asked = table.resolve(given, "--order")
    by_order: dict[str, list[TableColumn]] = {}
    for column in columns:
        if column.role is Role.ORDER and column.position not in asked:
            assert column.form is not None
            by_order.setdefault(shown_order(column.form), []).append(column)
    if not by_order:
        return
    orders = []
    for order, of_order in by_order.items():
        names = listed([repr(column.name) for column in of_order])
        orders.append(f"{names} ({order})")
    ordered = list(chain.from_iterable(by_order.values()))
    yield (
        f"texts were read as numbers in their order: {listed(orders)}; "
        f"{option_with(table, 'text', ordered)} keeps the texts instead"
    )


def _commas(columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield a sentence about columns whose numbers certainly have decimal commas."""
    with_commas = []
    for column in columns:
        decision = column.decision
        if not column.is_feature or decision is None or decision.is_ambiguous:
            continue
        if decision.form.decimal == ",":
            with_commas.append(repr(column.name))
    if with_commas:
        yield f"numbers were read with a decimal comma: {listed(with_commas)}"


def _ambiguous_commas(columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield sentences about columns in which a comma has two possible meanings.

    It can be a decimal comma or a thousands separator.
    """
    doubtful = []
    for column in columns:
        decision = column.decision
        if column.is_feature and decision is not None and decision.is_ambiguous:
            doubtful.append(column)
    for comma, meaning, other in (
        (
            ".",
            "commas between thousands",
            "decimal=',' of mmcnb.read_table (--decimal ,)",
        ),
        (",", "a decimal comma", "thousands=',' of mmcnb.read_table (--thousands ,)"),
    ):
        names = [
            repr(column.name)
            for column in doubtful
            if column.form is not None and column.form.decimal == comma
        ]
        if names:
            yield (
                f"numbers such as 1,234 were read with {meaning}: {listed(names)}; "
                f"{other} reads them the other way"
            )


def _wrong_cells(columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield a sentence about cells that do not match the kind of their column.

    These cells count as missing.
    """
    wrong = []
    for column in columns:
        if column.is_feature and column.n_wrong and column.kind != "text":
            examples = ", ".join(map(shown, column.wrong))
            wrong.append(f"{column.n_wrong:,} in {column.name!r} ({examples})")
    if wrong:
        yield (
            "cells that do not match the kind of their column count as missing: "
            f"{listed(wrong)}"
        )


def _doubts(columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield sentences about text columns that resemble numbers, dates or times."""
    for column in columns:
        decision = column.decision
        if decision is None or not column.is_feature or column.kind != "text":
            continue
        why = decision.why_text
        if why:
            yield f"{column.name!r} is treated as text, because {why}"


def _marks_as_texts(columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield sentences about categories that could mark missing values.

    These categories are common markers of missing values, or texts that count as
    missing in a column of numbers of the same table.
    """
    features = [column for column in columns if column.is_feature]
    in_numbers: set[str] = set()
    for column in features:
        if column.n_wrong and column.kind != "text":
            in_numbers.update(column.wrong)
    names: dict[tuple[str, ...], list[str]] = {}
    for column in features:
        decision = column.decision
        if decision is None or column.kind != "text":
            continue
        categories = _categories(column)
        like_numbers = [text for text in categories if text.strip() in in_numbers]
        marks = tuple(dict.fromkeys((*decision.marks, *like_numbers)))
        if marks:
            names.setdefault(marks, []).append(repr(column.name))
    for marks, of_marks in names.items():
        verb = "is a category" if len(marks) == 1 else "are categories"
        options = " ".join(f"--na-values {mark_as_argument(mark)}" for mark in marks)
        yield (
            f"{' and '.join(map(repr, marks))} {verb} of {listed(of_marks)}; "
            f"na_values={[*marks]} of mmcnb.read_table ({options}) treats "
            f"{'it' if len(marks) == 1 else 'them'} as missing"
        )


def _spellings(columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield a sentence about categories that differ only in case or in outer spaces."""
    found = []
    for column in columns:
        by_key: dict[str, list[str]] = {}
        if column.is_feature and column.kind == "text":
            for text in _categories(column):
                by_key.setdefault(text.strip().casefold(), []).append(text)
        alike = [texts for texts in by_key.values() if len(texts) > 1]
        if alike:
            examples = ", ".join(map(shown, alike[0]))
            found.append(f"{column.name!r} ({examples})")
    if found:
        yield (
            "categories that differ only in case or surrounding spaces are not "
            f"merged: {listed(found)}; .str.strip().str.lower() of a pandas column "
            "merges them"
        )


def _categories(column: TableColumn) -> list[str]:
    """Return the known categories of a text column, except that of missing texts."""
    if column.categories is None:
        return []
    return [text for text in column.categories.to_pylist() if text]


def _known_marks(columns: Sequence[TableColumn]) -> Iterator[str]:
    """Yield a sentence about numbers such as -999 that were treated as missing."""
    marked = [column for column in columns if column.is_feature and column.known_marks]
    if not marked:
        return
    found = []
    for column in marked:
        for mark, n_rows in column.known_marks.items():
            number = str(mark).removesuffix(".0")
            found.append(f"{number} in {n_rows:,} rows of {column.name!r}")
    names = [column.name for column in marked[:MOST_NAMED]]
    options = " ".join(f"--na-values {shlex.quote(f'{name}=')}" for name in names)
    it = "it as a number" if len(found) == 1 else "them as numbers"
    yield (
        "numbers that usually mark missing values, and are far from all other values, "
        f"count as missing: {listed(found)}; na_values={dict.fromkeys(names, '')} of "
        f"mmcnb.read_table ({options}) keeps {it}"
    )

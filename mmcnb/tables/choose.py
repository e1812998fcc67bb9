"""Choose the columns of a table, by options or as in a fit, and give them roles."""

from collections.abc import Sequence

import pyarrow as pa

from mmcnb.errors import InputError
from mmcnb.samples.encoding import EncodedColumn, Encoding
from mmcnb.tables.base import BaseTable
from mmcnb.tables.columns import Role, TableColumn, kind_of, role_of
from mmcnb.tables.csv_cells import BOOL, FLOAT64, TEXT
from mmcnb.tables.options import TableOptions

UNNAMED = ("", "Unnamed: 0")  # the first column, of names of rows
TYPE_OF_CELLS = {"flag": BOOL, "number": FLOAT64}


def choose_columns(table: BaseTable, options: TableOptions) -> list[TableColumn]:
    """Decide the role of each column; features come first, in the order of writing.

    Raises
    ------
    InputError
        A column is not there, is named twice, has no name, or no feature is left.
    """
    if options.encoding is not None:
        return encoded_columns(table, options.encoding)
    labels = table.resolve(options.label_column, "--label-column")
    names = table.resolve(options.index_column, "--index-column")
    chosen: list[int] = []
    if options.names_columns:
        chosen = table.resolve(options.columns, "--columns")
    dropped = table.resolve(options.drop, "--drop")
    if not names:
        names = _written_index(table, {*chosen, *dropped}, labels)
    if len(labels) > 1 or len(names) > 1:
        raise InputError(
            f"{table.name}: --label-column and --index-column name one column each: "
            "give one."
        )
    _check_uses(table, [*labels, *names, *chosen], dropped)
    if labels and labels == names:
        raise InputError(
            f"{table.name}: {table.label_of(labels[0])} cannot be both classes and "
            "row names."
        )
    every = range(len(table.names))
    hidden = {*dropped, *labels, *names, *table.index_columns}
    candidates = chosen if options.names_columns else every
    features = [position for position in candidates if position not in hidden]
    if table.has_names:
        _check_names(table, features, explicit=options.names_columns)

    roles: dict[int, Role] = {}
    for position in features:
        role = role_of(table.types[position], options)
        if role is not Role.LEFT_OUT:
            roles[position] = role
    roles |= dict.fromkeys(labels, Role.CLASSES) | dict.fromkeys(names, Role.ROW_NAMES)
    roles |= dict.fromkeys(set(every) - set(roles), Role.LEFT_OUT)
    columns = [_column(table, position, role) for position, role in roles.items()]
    check_features(table, columns)
    return columns


def _column(table: BaseTable, position: int, role: Role) -> TableColumn:
    return TableColumn(
        position=position,
        key=table.keys[position],
        name=table.names[position],
        type=table.types[position],
        role=role,
    )


def _check_uses(table: BaseTable, used: list[int], dropped: list[int]) -> None:
    for position in used:
        if position in dropped:
            raise InputError(
                f"{table.name}: {table.label_of(position)} is both used and dropped: "
                "choose one."
            )


def _written_index(table: BaseTable, named: set[int], labels: list[int]) -> list[int]:
    """Return the column of row names that pandas has written, unless it has labels."""
    index = list(table.index_columns)
    if table.has_names and table.names[0].strip() in UNNAMED and 0 not in named:
        index = [0]
    if len(index) != 1 or index == labels:
        return []
    return index


def check_features(table: BaseTable, columns: Sequence[TableColumn]) -> None:
    """Refuse columns of which none is a feature.

    Raises
    ------
    InputError
        The message says why they are left out, if no option says so.
    """
    reasons = []
    for column in columns:
        if column.is_feature:
            return
        if column.why:
            reasons.append(f"; {table.label_of(column.position)}: {column.why}")
    remedy = "leave out fewer (drop, columns)"
    if reasons:
        remedy = "name those to take (columns)"
    raise InputError(
        f"{table.name}: no column is left as a feature: {remedy}"
        f"{''.join(reasons[:10])}."
    )


def encoded_columns(table: BaseTable, encoding: Encoding) -> list[TableColumn]:
    """Return the columns of a fit in another table, which has the same kinds there.

    Raises
    ------
    InputError
        A column is not there, or has another kind of values.
    """
    width = len(encoding.columns)
    names = [column.name for column in encoding.columns]
    is_numbered = names == list(map(str, range(width)))
    if is_numbered and not encoding.has_names and len(table.names) != width:
        raise InputError(
            f"{table.name} has {len(table.names)} columns, and the fit had {width}: "
            "give rows with the columns of the fit."
        )
    return [_encoded_column(table, feature) for feature in encoding.features]


def _encoded_column(table: BaseTable, feature: EncodedColumn) -> TableColumn:
    kind = feature.kind
    (position,) = table.resolve([feature.name], "of the fit")
    if table.is_text and kind != kind_of(table.types[position]):
        table.types[position] = TYPE_OF_CELLS.get(kind, TEXT)
    data_type = table.types[position]
    allowed = {kind}
    if kind in ("number", "flag"):
        allowed = {"number", "flag"}
    if kind_of(data_type) not in allowed and not pa.types.is_null(data_type):
        raise InputError(
            f"{table.name}: {table.label_of(position)} has values of type {data_type}, "
            f"and was a {kind} in the fit: make it a {kind} again."
        )
    column = _column(table, position, role_of(data_type, TableOptions()))
    column.fill = feature.fill
    if kind == "text":
        column.role = Role.ONE_HOT
        column.categories = pa.array(feature.categories, TEXT)
    return column


def _check_names(table: BaseTable, features: list[int], explicit: bool) -> None:
    """Refuse features without a name, unless they are chosen."""
    for position in features:
        name = table.names[position]
        if not explicit and not name.strip():
            option = table.option(position)
            raise InputError(
                f"{table.name}: column {position} has no name: keep it as such with "
                f"--index-column {option}, or leave it out with --drop {option}."
            )

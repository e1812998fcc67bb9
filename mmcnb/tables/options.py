"""Options of tables: which columns are taken, and how their cells are read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.errors import InputError, shown
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.transcode import checked_codec
from mmcnb.tables.arrow import FLOAT64, TEXT
from mmcnb.tables.numbers import plain_pattern

LISTS = ("columns", "drop", "keep", "text")
CHOICES = {
    "missing": ("auto", "neighbors", "median", "mean", "drop", "refuse"),
    "decimal": (".", ","),
    "dtype": (None, "float32", "float64"),
    "categories": ("auto", "one-hot", "refuse"),
}
USES_OF_DATES: tuple[str, ...] = ("auto", "epoch", "drop", "refuse")
ORDERS_OF_DATES: tuple[str, ...] = ("day-first", "month-first")


@dataclass(frozen=True)
class TableOptions:
    """Options of a table; see `mmcnb.read_table`.

    ``encoding`` has the columns of a fit, which these columns are to be; the encoding
    of text is ``codec``. With ``keeps_gaps`` gaps that could be filled stay NaN.
    """

    columns: Any = None
    drop: Any = None
    keep: Any = None
    text: Any = None
    orders: Any = None
    label_column: str | int | None = None
    index_column: str | int | None = None
    header: str | int | None = None
    na_values: Any = None
    thousands: str | None = None
    decimal: str = "."
    delimiter: str | None = None
    missing: str = "auto"
    categories: str = "auto"
    dates: Any = ("auto",)
    dtype: Any = None
    skip_lines: int | None = None
    codec: str | None = None
    sheet: str | int | None = None
    encoding: Encoding | None = None
    keeps_gaps: bool = False

    def __post_init__(self) -> None:
        """Refuse unknown words; lists become tuples, so that options are a key."""
        fields = vars(self)  # attributes of a frozen class cannot be assigned
        fields["header"] = _header(self.header)
        fields["skip_lines"] = _skip_lines(self.skip_lines)
        if self.codec is not None:
            fields["codec"] = checked_codec(self.codec)
        if self.dtype is not None:
            fields["dtype"] = np.dtype(self.dtype).name
        for name in LISTS:
            fields[name] = _as_tuple(name, fields[name])
        fields["dates"] = _words_of_dates(self.dates)
        if self.orders is not None:
            fields["orders"] = _as_orders(self.orders)
        if self.na_values is not None:
            fields["na_values"] = _as_marks(self.na_values)
        if self.delimiter == r"\t":  # a shell leaves \t as it is
            fields["delimiter"] = "\t"
        for name, choices in CHOICES.items():
            if fields[name] not in choices:
                words = " or ".join(map(repr, choices))
                raise InputError(
                    f"{name}={shown(fields[name])} is unknown: give {words}."
                )
        _check_delimiter(self.delimiter)
        if self.thousands not in {None, ",", ".", "'", " ", "_"} - {self.decimal}:
            raise InputError(
                f"thousands={shown(self.thousands)} cannot stand between thousands "
                f'beside decimal={self.decimal!r}: give another mark, such as "\'".'
            )

    @property
    def names_columns(self) -> bool:
        """Whether columns are chosen by name or number, and not by rules."""
        return self.columns not in (None, ("auto",), ("all",))

    @property
    def use_of_dates(self) -> str:
        """What dates become: "auto", "epoch", "drop" or "refuse"."""
        uses = [word for word in self.dates if word in USES_OF_DATES]
        return uses[-1] if uses else "auto"

    @property
    def order_of_dates(self) -> str:
        """What comes first in dates such as 3/4/2025: "day", "month" or ""."""
        orders = [word for word in self.dates if word in ORDERS_OF_DATES]
        return orders[-1].removesuffix("-first") if orders else ""

    def marks_of(self, column: str) -> tuple[str, ...]:
        """Return the marks of missing values that are given for a column."""
        marks: list[str] = []
        for mark in self.na_values or ():
            name, text = (column, mark) if isinstance(mark, str) else mark
            if name == column:
                marks.append(text)
        return tuple(dict.fromkeys(marks))

    def numeric_marks_of(self, column: str) -> tuple[float, ...]:
        """Return those of the marks of missing values that are numbers."""
        marks = pa.array(self.marks_of(column), TEXT)
        is_number = pc.match_substring_regex(marks, plain_pattern())
        return tuple(marks.filter(is_number).cast(FLOAT64).to_pylist())

    @property
    def asks_columns(self) -> bool:
        """Whether columns are asked for, by name or all of them."""
        return self.columns not in (None, ("auto",))

    @property
    def takes_all(self) -> bool:
        """Whether columns are asked for, by name or all of a kind."""
        return self.asks_columns or self.categories == "one-hot"


OF_MODELS = ("encoding", "keeps_gaps")
"""Fields of `TableOptions` that are no options of users."""


def named_options(options: Mapping[str, Any]) -> TableOptions:
    """Return options by the names that users know; None is left out.

    Raises
    ------
    InputError
        There is no such option, or a value is unknown.
    """
    return TableOptions(**_fields(options))


def changed_options(options: TableOptions, changes: Mapping[str, Any]) -> TableOptions:
    """Return options of which some are changed, by the names that users know."""
    return replace(options, **_fields(changes))


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields_of(TableOptions)} - {*OF_MODELS, "codec"}
    known.add("encoding")  # of text
    for name in options:
        if name not in known:
            names = ", ".join(sorted(known))
            raise InputError(f"{name} is no option of tables: give one of {names}.")
    fields = {name: value for name, value in options.items() if value is not None}
    if "encoding" in fields:
        fields["codec"] = fields.pop("encoding")
    return fields


def _header(header: object) -> str | int | None:
    """Return "yes", "no", the number of the line with names if it is not 0, or None."""
    if header is None or header == "auto":
        return None
    if isinstance(header, str) and header in ("yes", "no"):
        return header
    if isinstance(header, bool | np.bool_):
        return "yes" if header else "no"
    if isinstance(header, str) and header.isascii() and header.isdigit():
        header = int(header)
    if isinstance(header, int | np.integer) and header >= 0:
        return int(header) or "yes"
    raise InputError(
        f"header={shown(header)} is unknown: give 'yes', 'no', or the number of the "
        "line that names the columns, from 0."
    )


def _skip_lines(number: Any) -> int | None:
    if number is None:
        return None
    is_number = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if is_number and number >= 0:
        return int(number) or None
    raise InputError(
        f"skip_lines={shown(number)} is not a number of lines: give 0 or more."
    )


def _check_delimiter(delimiter: str | None) -> None:
    if delimiter is None:
        return
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InputError(
            f"delimiter={delimiter!r} is no single character between cells: give one."
        )
    if not delimiter.isascii():
        raise InputError(
            f"delimiter={delimiter!r} is no character of ASCII: write the file with "
            "another, such as ';'."
        )


def _as_tuple(name: str, values: Any) -> tuple[Any, ...] | None:
    if values is None:
        return None
    if isinstance(values, str | int | np.integer):
        return (values,)
    if not np.iterable(values):
        raise InputError(
            f"{name}={shown(values)} is not a list: give names or numbers of columns."
        )
    return tuple(values)


def _words_of_dates(dates: Any) -> tuple[str, ...]:
    """Return what dates become and what comes first in them; the last word counts."""
    words = dates.split(",") if isinstance(dates, str) else dates
    words = tuple(words) if np.iterable(words) else (words,)
    words = tuple(dict.fromkeys(word or "auto" for word in words)) or ("auto",)
    for word in words:
        if word not in USES_OF_DATES + ORDERS_OF_DATES:
            listed = " or ".join(map(repr, USES_OF_DATES + ORDERS_OF_DATES))
            raise InputError(f"dates={shown(dates)} is unknown: give {listed}.")
    return words


def _as_marks(values: Any) -> tuple[Any, ...]:
    """Return marks as texts, and those of a dict as pairs of a column and a text."""
    if isinstance(values, dict):
        pairs = []
        for column, marks in values.items():
            pairs += [(str(column), text) for text in _as_marks(marks)]
        return tuple(pairs)
    if isinstance(values, str) or not np.iterable(values):
        values = [values]
    return tuple(map(_as_mark, values))


def _as_orders(orders: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return pairs of a column and its texts, from a dict or from texts NAME=A,B,C."""
    pairs = [orders]
    if isinstance(orders, Mapping):
        pairs = [*orders.items()]
    elif np.iterable(orders) and not isinstance(orders, str):
        pairs = [*orders]
    return tuple(map(_as_order, pairs))


def _as_order(order: Any) -> tuple[str, tuple[str, ...]]:
    """Return a column and its texts in their order."""
    name = ""
    texts: Any = ()
    if isinstance(order, str):
        name, _, listed = order.partition("=")
        texts = listed.split(",")
    elif isinstance(order, tuple) and len(order) == 2:
        name, texts = order
    is_list = np.iterable(texts) and not isinstance(texts, str)
    words = tuple(str(_as_mark(text)).strip() for text in texts) if is_list else ()
    if len(words) < 2 or len({*words}) < len(words) or "" in words:
        raise InputError(
            f"orders has {shown(order)}, but a column needs two or more different "
            "texts: give orders={'size': ['S', 'M', 'L']} (--order size=S,M,L)."
        )
    return str(name), words


def _as_mark(value: Any) -> Any:
    """Return a mark as text: a whole number without decimals."""
    is_pair = isinstance(value, tuple) and len(value) == 2
    if isinstance(value, str) or is_pair:
        return value
    if isinstance(value, float | np.floating) and value % 1 == 0:
        value = int(value)
    return str(value)


NUMBERS_ALONE = TableOptions(
    "all", missing="refuse", categories="refuse", dates="refuse"
)
"""Options of rows for a model of plain numbers."""

OF_FITS = TableOptions(missing="neighbors")
"""Options of rows for a fit, if none are given."""


def options_of_fit(
    estimator: object, given: Mapping[str, Any] | None = None
) -> TableOptions | None:
    """Return options that read other rows as the table of a fit; None without one.

    ``given`` has options by the names that users know. They take the place of those of
    the fit, as other rows may be written otherwise.
    """
    encoding = getattr(getattr(estimator, "model_", None), "encoding", None)
    if encoding is None:
        return None
    missing = "drop" if encoding.drops_gaps else encoding.missing
    fields = _fields(given or {})
    encoding = encoding.written_otherwise(fields)
    if "na_values" in fields:
        encoding = _with_marks(encoding, fields["na_values"])
    fields = dict(encoding.options) | fields
    return TableOptions(**fields, missing=missing, encoding=encoding)


def refilling(options: TableOptions, encoding: Encoding | None) -> TableOptions:
    """Return options that fill gaps as in a fit, or from the rows of an encoding."""
    return replace(options, missing="neighbors", encoding=encoding)


def keeping_gaps(options: TableOptions, encoding: Encoding | None) -> TableOptions:
    """Return options that read rows as an encoding has them, with NaN for gaps."""
    return replace(options, encoding=encoding, keeps_gaps=True)


def options_of_gaps(estimator: object) -> TableOptions | None:
    """Return options that fill the gaps of arrays from the rows of a fit."""
    donors = getattr(getattr(estimator, "model_", None), "donors", None)
    if donors is None:
        return None
    names = getattr(estimator, "feature_names_in_", None)
    encoding = Encoding.of_numbers(donors, None if names is None else list(names))
    return TableOptions(missing="neighbors", encoding=encoding)


def _with_marks(encoding: Encoding, na_values: Any) -> Encoding:
    """Return the encoding of rows with other marks of missing values.

    Known marks that the fit has found remain, unless the marks of a column have "".
    """
    of_fit = TableOptions(na_values=dict(encoding.options).get("na_values"))
    given = TableOptions(na_values=na_values)
    columns = []
    for column in encoding.columns:
        marks = given.numeric_marks_of(column.name)
        if "" not in given.marks_of(column.name):
            of_options = of_fit.numeric_marks_of(column.name)
            marks += tuple(mark for mark in column.marks if mark not in of_options)
        columns.append(replace(column, marks=tuple(dict.fromkeys(marks))))
    return replace(encoding, columns=tuple(columns))

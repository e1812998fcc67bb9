"""Options for reading tables: which columns are used, and how cells are read."""

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
    """Options for reading a table; see `mmcnb.read_table`.

    If the table is to be read in the same way as the table of a fit, ``encoding``
    describes the columns of the fit. The character encoding of text is ``codec``. With
    ``keeps_gaps``, missing values that could be filled remain NaN.
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
        """Raise InputError for unknown values, and convert lists to hashable tuples."""
        fields = vars(self)  # fields of a frozen dataclass cannot be assigned
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
        if self.delimiter == r"\t":  # a shell passes \t as two characters
            fields["delimiter"] = "\t"
        for name, choices in CHOICES.items():
            if fields[name] not in choices:
                words = " or ".join(map(repr, choices))
                raise InputError(
                    f"{name}={shown(fields[name])} is unknown: pass {words}."
                )
        _check_delimiter(self.delimiter)
        if self.thousands not in {None, ",", ".", "'", " ", "_"} - {self.decimal}:
            raise InputError(
                f"thousands={shown(self.thousands)} cannot separate thousands if "
                f'decimal={self.decimal!r}: pass another separator, such as "\'".'
            )

    @property
    def names_columns(self) -> bool:
        """Whether columns are selected by name or index."""
        return self.columns not in (None, ("auto",), ("all",))

    @property
    def use_of_dates(self) -> str:
        """Treatment of dates: "auto", "epoch", "drop" or "refuse"."""
        uses = [word for word in self.dates if word in USES_OF_DATES]
        return uses[-1] if uses else "auto"

    @property
    def order_of_dates(self) -> str:
        """The first field of dates such as 3/4/2025: "day", "month" or "" (not set)."""
        orders = [word for word in self.dates if word in ORDERS_OF_DATES]
        return orders[-1].removesuffix("-first") if orders else ""

    def marks_of(self, column: str) -> tuple[str, ...]:
        """Return the markers of missing values in ``na_values`` for a column."""
        marks: list[str] = []
        for mark in self.na_values or ():
            name, text = (column, mark) if isinstance(mark, str) else mark
            if name == column:
                marks.append(text)
        return tuple(dict.fromkeys(marks))

    def numeric_marks_of(self, column: str) -> tuple[float, ...]:
        """Return the markers from `marks_of` that are numbers."""
        marks = pa.array(self.marks_of(column), TEXT)
        is_number = pc.match_substring_regex(marks, plain_pattern())
        return tuple(marks.filter(is_number).cast(FLOAT64).to_pylist())

    @property
    def asks_columns(self) -> bool:
        """Whether ``columns`` selects columns, either by name or with "all"."""
        return self.columns not in (None, ("auto",))

    @property
    def takes_all(self) -> bool:
        """Whether an option asks for columns that would be left out by default."""
        return self.asks_columns or self.categories == "one-hot"


OF_MODELS = ("encoding", "keeps_gaps")
"""Fields of `TableOptions` that users cannot set."""

OF_FILES = (
    "header",
    "na_values",
    "thousands",
    "decimal",
    "delimiter",
    "skip_lines",
    "sheet",
    "encoding",
    "index_column",
)
"""Options that specify how to parse a file.

Other options specify which columns are features, which a fit decides.
"""


def named_options(options: Mapping[str, Any]) -> TableOptions:
    """Create options from a mapping with the parameter names of `mmcnb.read_table`.

    An option with the value None has its default value.

    Raises
    ------
    InputError
        If a name is not an option of tables, or if a value is invalid.
    """
    return TableOptions(**_fields(options))


def changed_options(options: TableOptions, changes: Mapping[str, Any]) -> TableOptions:
    """Return options with some values changed, by names as in `mmcnb.read_table`."""
    return replace(options, **_fields(changes))


def given_options(options: TableOptions) -> dict[str, Any]:
    """Return the options that differ from `OF_FITS`, by their public names.

    The values have types that JSON can store; `named_options` converts them back.

    Examples
    --------
    >>> from mmcnb.tables.options import TableOptions, given_options
    >>> given_options(TableOptions(keep="id", missing="neighbors", codec="cp1252"))
    {'keep': ['id'], 'encoding': 'cp1252'}
    """
    changed: dict[str, Any] = {}
    for field in fields_of(TableOptions):
        value = getattr(options, field.name)
        if field.name in OF_MODELS or value == field.default:
            continue
        name = "encoding" if field.name == "codec" else field.name
        changed[name] = _as_plain(value)
    if options.columns == ("auto",):
        del changed["columns"]
    if options.missing == "neighbors":
        del changed["missing"]
    if options.orders is not None:
        changed["orders"] = {name: [*texts] for name, texts in options.orders}
    if options.na_values is not None:
        changed["na_values"] = _plain_marks(options.na_values)
    return changed


def _as_plain(value: Any) -> Any:
    """Return a value with lists for tuples, and Python numbers for NumPy numbers."""
    if isinstance(value, tuple):
        return [_as_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _plain_marks(marks: tuple[Any, ...]) -> Any:
    """Return markers as a list, or as a dict if each applies to a single column."""
    if all(isinstance(mark, str) for mark in marks):
        return [*marks]
    of_columns: dict[str, list[str]] = {}
    for mark in marks:
        if isinstance(mark, str):
            return [_as_plain(mark) for mark in marks]
        name, text = mark
        of_columns.setdefault(name, []).append(text)
    return of_columns


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields_of(TableOptions)} - {*OF_MODELS, "codec"}
    known.add("encoding")  # the public name of ``codec``
    for name in options:
        if name not in known:
            names = ", ".join(sorted(known))
            raise InputError(f"{name} is not an option of tables: pass one of {names}.")
    fields = {name: value for name, value in options.items() if value is not None}
    if "encoding" in fields:
        fields["codec"] = fields.pop("encoding")
    return fields


def _header(header: object) -> str | int | None:
    """Return the option ``header`` as None, "yes", "no", or a line number above 0."""
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
        f"header={shown(header)} is unknown: pass 'yes', 'no', or the number of the "
        "line that names the columns, counted from 0."
    )


def _skip_lines(number: Any) -> int | None:
    if number is None:
        return None
    is_number = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if is_number and number >= 0:
        return int(number) or None
    raise InputError(
        f"skip_lines={shown(number)} is not a number of lines: pass 0 or more."
    )


def _check_delimiter(delimiter: str | None) -> None:
    if delimiter is None:
        return
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InputError(
            f"delimiter={delimiter!r} is not a single character: pass one character."
        )
    if not delimiter.isascii():
        raise InputError(
            f"delimiter={delimiter!r} is not an ASCII character: write the file with "
            "another delimiter, such as ';'."
        )


def _as_tuple(name: str, values: Any) -> tuple[Any, ...] | None:
    if values is None:
        return None
    if isinstance(values, str | int | np.integer):
        return (values,)
    if not np.iterable(values):
        raise InputError(
            f"{name}={shown(values)} is not a list: pass names or indices of columns."
        )
    return tuple(values)


def _words_of_dates(dates: Any) -> tuple[str, ...]:
    """Return the words of ``dates`` as a tuple without repetitions.

    The words specify what dates become ("epoch", ...) and which field comes first
    ("day-first", "month-first"). If words contradict each other, the last word counts.
    """
    words = dates.split(",") if isinstance(dates, str) else dates
    words = tuple(words) if np.iterable(words) else (words,)
    words = tuple(dict.fromkeys(word or "auto" for word in words)) or ("auto",)
    for word in words:
        if word not in USES_OF_DATES + ORDERS_OF_DATES:
            listed = " or ".join(map(repr, USES_OF_DATES + ORDERS_OF_DATES))
            raise InputError(f"dates={shown(dates)} is unknown: pass {listed}.")
    return words


def _as_marks(values: Any) -> tuple[Any, ...]:
    """Return markers as texts or, for a dict, as pairs of column name and text."""
    if isinstance(values, dict):
        pairs = []
        for column, marks in values.items():
            pairs += [(str(column), text) for text in _as_marks(marks)]
        return tuple(pairs)
    if isinstance(values, str) or not np.iterable(values):
        values = [values]
    return tuple(map(_as_mark, values))


def _as_orders(orders: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return pairs of column name and texts, from a dict or from texts NAME=A,B,C."""
    pairs = [orders]
    if isinstance(orders, Mapping):
        pairs = [*orders.items()]
    elif np.iterable(orders) and not isinstance(orders, str):
        pairs = [*orders]
    return tuple(map(_as_order, pairs))


def _as_order(order: Any) -> tuple[str, tuple[str, ...]]:
    """Return a column name, and the texts of the column in order."""
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
            "texts: pass orders={'size': ['S', 'M', 'L']} (--order size=S,M,L)."
        )
    return str(name), words


def _as_mark(value: Any) -> Any:
    """Return a marker as text, without decimals if it is an integer."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple | list) and len(value) == 2:
        return tuple(value)
    if isinstance(value, float | np.floating) and value % 1 == 0:
        value = int(value)
    return str(value)


NUMBERS_ALONE = TableOptions(
    "all", missing="refuse", categories="refuse", dates="refuse"
)
"""Options that read new rows for a model fitted on plain numbers."""

OF_FITS = TableOptions(missing="neighbors")
"""Options that read the rows of a fit by default."""


def options_of_fit(
    estimator: object, given: Mapping[str, Any] | None = None
) -> TableOptions | None:
    """Return options that read new rows in the same way as the table of a fit.

    Parameters
    ----------
    estimator : estimator
        Estimator, which may be fitted on a table.
    given : mapping or None, default=None
        Options by the parameter names of `mmcnb.read_table`. They replace the options
        of the fit, because new rows may have a different format.

    Returns
    -------
    TableOptions or None
        The options, or None if the estimator is not fitted on a table.
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
    """Return options that fill missing values from neighbours, as in a fit.

    If an encoding is given, its donors are the neighbours.
    """
    return replace(options, missing="neighbors", encoding=encoding)


def keeping_gaps(options: TableOptions, encoding: Encoding | None) -> TableOptions:
    """Return options that read rows with an encoding and keep missing values as NaN."""
    return replace(options, encoding=encoding, keeps_gaps=True)


def options_of_gaps(estimator: object) -> TableOptions | None:
    """Return options that fill missing values of arrays from the donors of a fit.

    The result is None if the fit has no donors.
    """
    donors = getattr(getattr(estimator, "model_", None), "donors", None)
    if donors is None:
        return None
    names = getattr(estimator, "feature_names_in_", None)
    encoding = Encoding.of_numbers(donors, None if names is None else list(names))
    return TableOptions(missing="neighbors", encoding=encoding)


def _with_marks(encoding: Encoding, na_values: Any) -> Encoding:
    """Return the encoding for rows with different markers of missing values.

    Markers such as -999 that the fit has detected remain, unless the new markers of
    their column include "".
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

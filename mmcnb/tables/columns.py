"""Columns of a table: which are features, their treatment, and sentences about those that cannot be taken.

`TREATMENTS` is the one table of defaults and treatments; readers only follow it.
"""

import csv
import difflib
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from mmcnb.errors import InputError, shown
from mmcnb.samples.encoding import EncodedColumn, Encoding

MOST_DISTINCT = 1000  # more different values are not counted, and are not categories
MOST_CATEGORIES = 30  # of a text that is taken without being asked for
UNNAMED = ("", "Unnamed: 0")  # the first column, of names of rows
GAP = ""  # the category of missing texts
NUMBERS_ROWS = "it numbers the rows"  # why a column is left out
# names of columns that number things
IDENTIFIER = r"(?i)(^|[\W_])(id|uuid|guid)$|(?-i:[a-z]I[dD]$)"
GAPS = (
    *pa.csv.ConvertOptions().null_values,
    "?",
    "-",
    "--",
    ".",
    "None",
    "none",
    "<NA>",
)
TEXT = pa.large_string()
FLAG = "(?i)^(true|false)$"
WHOLE = r"^[-+]?\d+$"
DATE = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?$"


def _zeros(column: "Column", values: pa.Array) -> pa.Array:
    return pa.repeat(pa.scalar(0, pa.uint8()), len(values))


class Treatment(NamedTuple):
    """Treatment of a kind of column; ``encode`` makes numbers of the values of features."""

    becomes: str
    encode: Callable[["Column", pa.Array], pa.Array] = _zeros


def _numbers(column: "Column", values: pa.Array) -> pa.Array:
    if pa.types.is_float16(values.type):  # which is not joined with other types
        return pa.array(values.to_numpy(zero_copy_only=False).astype(np.float32))
    return values.cast(pa.uint8()) if pa.types.is_boolean(values.type) else values


def _codes(column: "Column", texts: pa.Array) -> pa.Array:
    """Numbers of the categories, which are 0 until these are known; a gap may be a category of its own."""
    if column.categories is None:
        return pc.if_else(texts.is_valid(), pa.scalar(0, pa.int32()), None)
    return pc.index_in(texts.fill_null(GAP), column.categories)


def _seconds(column: "Column", times: pa.Array) -> pa.Array:
    """Seconds since 1970, since midnight for times of a day, or of a duration."""
    if pa.types.is_date(times.type):
        times = times.cast(pa.timestamp("s" if times.type == pa.date32() else "ms"))
    unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[times.type.unit]
    whole = times.view(pa.int64() if times.type.bit_width == 64 else pa.int32())
    return pc.divide(whole.cast(pa.float64(), safe=False), unit)


REFUSED = Treatment("refused")
LEFT_OUT = Treatment("left out")
CLASSES = Treatment("classes")
ROW_NAMES = Treatment("names of rows")
ONE_HOT = Treatment("a 0/1 column for each text", _codes)
TREATMENTS: dict[str, dict[str | None, Treatment]] = {
    "number": {None: Treatment("number", _numbers)},
    "flag": {None: Treatment("0 or 1", _numbers)},
    "text": {"auto": ONE_HOT, "one-hot": ONE_HOT, "refuse": REFUSED},
    "date": {
        "epoch": Treatment("seconds since 1970", _seconds),
        "drop": LEFT_OUT,
        "refuse": REFUSED,
    },
    "other": {None: REFUSED},
}
"""Treatment of a column by its kind and, for texts and dates, by the option of `DECIDED_BY`."""

DECIDED_BY = {"text": "categories", "date": "dates"}
CHOICES = {
    "missing": ("median", "mean", "drop", "refuse"),
    "header": (None, "yes", "no"),
    "decimal": (".", ","),
    "dtype": (None, "float32", "float64"),
    **{option: tuple(TREATMENTS[kind]) for kind, option in DECIDED_BY.items()},
}
_DROP = "leave the column out{drop}"
FAULTS = {
    "text": (
        "{cell} is not a number",
        f"write one 0/1 column a text with --categories one-hot, or {_DROP} "
        "(classes are named with --label-column, rows with --index-column)",
    ),
    "date": (
        "{cell} is a date or time and not a number",
        f"make it seconds with --dates epoch, or {_DROP}",
    ),
    "other": (
        "{cell} is of type {type} and not a number",
        f"{_DROP}, or write a number instead",
    ),
    "cell": ("{cell} is not a number", f"{{hint}}correct it, or {_DROP}"),
    "flag cell": ("{cell} is neither true nor false", f"correct it, or {_DROP}"),
    "date cell": ("{cell} is no date as those before", f"correct it, or {_DROP}"),
    "gap": (
        "the cell {cell}",
        "correct it, leave such rows out with --missing drop, or take the median of the column with "
        "--missing median{hint}",
    ),
    "infinite": (
        "the cell is infinite",
        "correct it, or leave such rows out with --missing drop",
    ),
    "large": ("{cell} is too large for {type}", "write float64 (--dtype float64)"),
    "no class": (
        "the class is empty",
        "fill it in, or leave such rows out with --missing drop",
    ),
    "class": (
        "label {cell} is not a whole number as those before",
        "correct it, or use names in all rows",
    ),
    "row name": ("the name of the row is missing", f"fill it in, or {_DROP}"),
    "no value": ("no cell has a value", _DROP),
    "categories": (
        f"there are more than {MOST_DISTINCT} different texts, which are no categories",
        _DROP,
    ),
}
"""The fault of a column or cell that cannot be taken, and the remedy."""


@dataclass(frozen=True)
class TableOptions:
    """Options of the columns; see `mmcnb.read_table`."""

    columns: Any = None
    drop: Any = None
    label_column: Any = None
    index_column: Any = None
    header: Any = None
    na_values: Any = None
    thousands: str | None = None
    decimal: str = "."
    delimiter: str | None = None
    missing: str = "median"
    categories: str = "auto"
    dates: str = "epoch"
    dtype: Any = None
    encoding: Any = None  # of a fit, whose columns these are to be

    def __post_init__(self) -> None:
        """Refuse unknown words; lists become tuples, so that options are a key."""
        plain: dict[str, Any] = {
            "header": {True: "yes", False: "no"}.get(self.header, self.header)
        }
        plain["dtype"] = None if self.dtype is None else np.dtype(self.dtype).name
        for name in ("columns", "drop", "na_values"):
            value = getattr(self, name)
            listed = [value] if isinstance(value, str | int | np.integer) else value
            if listed is not None and not np.iterable(listed):
                raise InputError(
                    f"{name}={shown(value)} is no list: give one of texts or numbers."
                )
            plain[name] = None if listed is None else tuple(listed)
        plain["delimiter"] = (
            "\t" if self.delimiter == r"\t" else self.delimiter
        )  # a shell leaves \t as it is
        vars(self).update(plain)  # it is frozen
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                words = " or ".join(map(repr, known))
                raise InputError(
                    f"{name}={shown(getattr(self, name))} is unknown: give {words}."
                )
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n'
        ):
            raise InputError(
                f"delimiter={self.delimiter!r} is no single character between cells: give one."
            )
        if self.thousands not in {None, ",", ".", "'", " ", "_"} - {self.decimal}:
            fault = f"cannot stand between thousands beside decimal={self.decimal!r}"
            raise InputError(
                f'thousands={shown(self.thousands)} {fault}: give another mark, such as "\'".'
            )

    @property
    def names_columns(self) -> bool:
        """Whether columns are chosen by name or number, and not by rules."""
        return self.columns not in (None, ("auto",), ("all",))

    def gaps(self, is_text: bool) -> list[str]:
        """Marks of missing values: those of CSV text and those given, or ``""`` alone."""
        if self.na_values == ("",):
            return [""]
        given = [
            mark for text in self.na_values or () for mark in (text, *text.split(","))
        ]
        return list(dict.fromkeys(["", *(GAPS if is_text else ()), *given]))

    def number(self) -> str:
        """The pattern of a number."""
        point = "\\" + self.decimal
        whole = (
            r"\d+"
            if self.thousands is None
            else rf"(\d{{1,3}}(\{self.thousands}\d{{3}})+|\d+)"
        )
        return (
            rf"(?i)^[-+]?(({whole}{point}?\d*|{point}\d+)(e[-+]?\d+)?|inf(inity)?|nan)$"
        )

    def parsed(self, texts: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
        """Trimmed texts as numbers or flags, and which of them are none."""
        good = pc.match_substring_regex(
            texts, FLAG if kind == pa.bool_() else self.number()
        )
        wrong = pc.fill_null(pc.invert(good), False)
        values = pc.if_else(good, texts, None)
        if kind == pa.bool_():
            return values.cast(pa.bool_()), wrong
        for mark, into in ((self.thousands, ""), (self.decimal, ".")):
            values = pc.replace_substring(values, mark, into) if mark else values
        return values.cast(pa.float64()), wrong

    def number_hint(self, texts: pa.Array) -> str:
        """Options with which all texts are numbers, or the only one is a mark of missing values."""
        other = "," if self.decimal == "." else "."
        ways = (
            ("thousands", other),
            ("decimal", other),
            ("thousands", "'"),
            ("thousands", " "),
        )
        found = [
            f"--{name} {mark!r}"
            for name, mark in ways
            if mark != self.thousands
            and pc.all(
                pc.match_substring_regex(texts, replace(self, **{name: mark}).number())
            ).as_py()
        ]
        if found:
            return f"give {' or '.join(found)}, "
        if len(pc.unique(texts)) > 1 or not texts[0].as_py().isprintable():
            return ""
        more = " and --missing drop" if self.missing == "refuse" else ""
        return f"give --na-values {shlex.quote(texts[0].as_py())}{more} if it marks missing values, "


NUMBERS_ALONE = TableOptions(
    "all", missing="refuse", categories="refuse", dates="refuse"
)
"""Of rows for a model of plain numbers."""


# --- which columns --------------------------------------------------------------------


@dataclass
class Column:
    """A column of a table, as far as it is known.

    Attributes
    ----------
    position : int
    key : str
        Its name in parts of the table.
    name : str
    type : pyarrow.DataType
    treatment : Treatment
    categories : pyarrow.Array or None
        The texts that become columns, sorted; None until they are known.
    fill : float or None
        The number of a gap, the median of the column; None until it is known.
    why : str
        Why it is left out, if no option says so.
    gaps : int
        Missing values of all rows, if these were looked at ahead.
    unknown : int
        Texts so far that no row of the fit had.
    missing : int or None
        None if the column is not read.
    distinct : pyarrow.Array or None
        Different values so far; None if they are too many.
    """

    position: int
    key: str
    name: str
    type: pa.DataType
    treatment: Treatment
    categories: pa.Array | None = None
    fill: float | None = None
    why: str = ""
    missing: int | None = None
    unknown: int = 0
    gaps: int = 0
    distinct: pa.Array | None = None

    @property
    def is_feature(self) -> bool:
        """Whether it is written as one or more columns of numbers."""
        return self.treatment not in (CLASSES, ROW_NAMES, LEFT_OUT)

    @property
    def dtype(self) -> np.dtype:
        """NumPy's type of the numbers that it becomes."""
        if self.treatment.encode is not _numbers:
            return np.dtype(np.uint8 if self.treatment is ONE_HOT else np.float64)
        return np.dtype(
            np.float32
            if pa.types.is_null(self.type)
            else self.type_to_read.to_pandas_dtype()
        )

    @property
    def type_to_read(self) -> pa.DataType:
        """Type of its values: plain numbers, texts, dates or times."""
        kind = self.type.value_type if pa.types.is_dictionary(self.type) else self.type
        if not self.is_feature:
            return pa.int64() if pa.types.is_integer(kind) else TEXT
        if pa.types.is_decimal(kind) or pa.types.is_null(kind):
            return pa.float64()
        return TEXT if kind_of(kind) == "text" else kind

    @property
    def encoded(self) -> EncodedColumn:
        """The column as numbers."""
        texts = () if self.categories is None else tuple(self.categories.to_pylist())
        kind = kind_of(self.type) if self.is_feature else "left out"
        return EncodedColumn(
            self.name, kind, texts if kind == "text" else (), self.fill, self.why
        )

    def note(self, values: pa.Array) -> None:
        """Count missing and different values of the next rows."""
        self.missing = (self.missing or 0) + values.null_count
        if self.distinct is None or kind_of(values.type) == "other":
            return
        for some in (
            values[: 4 * MOST_DISTINCT],
            values,
        ):  # a few rows mostly show that they are too many
            found = pc.unique(some.drop_null())
            known = self.distinct
            if found.type != known.type:
                common = TEXT if TEXT in (found.type, known.type) else pa.float64()
                found = found.cast(common)
                known = known.cast(common)
            self.distinct = pc.unique(pa.chunked_array([known, found]))
            if len(self.distinct) > MOST_DISTINCT:
                self.distinct = None
                return

    def listing(self) -> dict[str, Any]:
        """Name, type, missing and different values, and treatment of the column."""
        distinct = (
            f"over {MOST_DISTINCT:,}" if self.distinct is None else len(self.distinct)
        )
        hint = " (--columns all takes it)" if self.why == NUMBERS_ROWS else ""
        return {
            "name": self.name,
            "type": str(self.type),
            "missing": self.missing,
            "distinct": None if self.missing is None else distinct,
            "becomes": self.treatment.becomes
            + (f": {self.why}{hint}" if self.why else ""),
        }


class NamedColumns:
    """The columns of a table by name and number.

    Attributes
    ----------
    name : str
        Of the table, for messages.
    keys : list of str
        Names of the columns in parts.
    types : list of pyarrow.DataType
        As far as is known before all rows are read.
    names : list of str
        One a column; their numbers if there is no header.
    has_names : bool
    is_text : bool
        Whether its cells are read from text.
    index_columns : tuple of int
        Columns that are known to be names of rows.
    """

    name: str
    is_text: bool
    keys: list[str]
    types: list[pa.DataType]
    names: list[str]
    has_names: bool
    index_columns: tuple[int, ...] = ()

    def column(self, position: int) -> str:
        """A column's number and name, for messages."""
        return (
            f"column {position} ({self.names[position]!r})"
            if self.has_names
            else f"column {position}"
        )

    def option(self, position: int) -> str:
        """Name or number of a column on the command line; a name comes before a number."""
        name = self.names[position]
        number = str(position)
        is_clear = (
            self.has_names and self.names.count(name) == 1 and not name.startswith("-")
        )
        return (
            shlex.quote(name)
            if is_clear and (name.strip() or number in self.names)
            else number
        )

    def resolve(self, references: Any, option: str) -> list[int]:
        """Numbers of columns that are given by name or number, also several in one text between commas."""
        positions: list[int] = []
        for reference in (
            [references] if isinstance(references, str | int) else references or ()
        ):
            found = self._position(reference)
            if found is not None:
                positions.append(found)
            elif isinstance(reference, str) and "," in reference:
                parts = (
                    part.strip()
                    for part in next(csv.reader([reference], skipinitialspace=True))
                )
                positions += self.resolve([part for part in parts if part], option)
            else:
                raise InputError(f"{self.name}{self._unknown(reference)} ({option}).")
        return list(dict.fromkeys(positions))

    def _position(self, reference: Any) -> int | None:
        if isinstance(reference, str) and self.has_names and reference in self.names:
            if self.names.count(reference) > 1:
                raise InputError(
                    f"{self.name}: several columns are named {reference!r}: give a number."
                )
            return self.names.index(reference)
        if is_numeral(reference):
            reference = int(reference)
        if isinstance(reference, bool) or not isinstance(reference, int | np.integer):
            return None
        width = len(self.names)
        return int(reference) % width if -width <= reference < width else None

    def _unknown(self, reference: Any) -> str:
        if not isinstance(reference, str) or is_numeral(reference):
            among = f"among {len(self.names)}: count from 0, or from -1 backwards"
            return f": there is no column {reference} {among}"
        if not self.has_names:
            return f" has no header, so no column is named {reference!r}: give its number from 0"
        close = difflib.get_close_matches(reference, self.names, 1)
        hint = (
            f"perhaps {close[0]!r} is meant"
            if close
            else "name one of these, or give its number from 0"
        )
        more = f" and {len(self.names) - 10} more" if len(self.names) > 10 else ""
        return f": no column is named {reference!r} among {', '.join(self.names[:10])}{more}: {hint}"


def is_numeral(reference: Any) -> bool:
    """Whether a text can be the number of a column."""
    return (
        isinstance(reference, str)
        and reference.isascii()
        and reference.removeprefix("-").isdigit()
    )


def choose_columns(table: NamedColumns, options: TableOptions) -> list[Column]:
    """Decide the treatment of each column; features come first, in the order in which they are written.

    Raises
    ------
    InputError
        A column is not there, is named twice, has no name, or no feature is left.
    """
    if options.encoding is not None:
        return encoded_columns(table, options.encoding)
    label = table.resolve(options.label_column, "--label-column")
    index = table.resolve(options.index_column, "--index-column")
    chosen = table.resolve(
        options.columns if options.names_columns else (), "--columns"
    )
    dropped = table.resolve(options.drop, "--drop")
    written = [*table.index_columns]
    if (
        table.has_names
        and table.names[0].strip() in UNNAMED
        and 0 not in (*chosen, *dropped)
    ):
        written = [0]  # as pandas writes an index, and reads it again
    if not index and len(written) == 1 and label != written:
        index = written
    if len(label) > 1 or len(index) > 1:
        raise InputError(
            f"{table.name}: --label-column and --index-column name one column each: give one."
        )
    for position in (*label, *index, *chosen):
        if position in dropped:
            raise InputError(
                f"{table.name}: {table.column(position)} is both used and dropped: choose one."
            )
    if label and label == index:
        raise InputError(
            f"{table.name}: {table.column(label[0])} cannot be both classes and row names."
        )
    hidden = {*dropped, *label, *index, *table.index_columns}
    every = range(len(table.names))
    features = [
        p for p in (chosen if options.names_columns else every) if p not in hidden
    ]
    if table.has_names:
        _check_names(table, features, explicit=options.names_columns)

    found = {p: treatment_of(table.types[p], options) for p in features}
    treatments = {
        p: treatment for p, treatment in found.items() if treatment is not LEFT_OUT
    }
    treatments |= dict.fromkeys(label, CLASSES) | dict.fromkeys(index, ROW_NAMES)
    treatments |= dict.fromkeys(set(every) - set(treatments), LEFT_OUT)
    columns = [
        Column(p, table.keys[p], table.names[p], table.types[p], one)
        for p, one in treatments.items()
    ]
    check_features(table, columns)
    return columns


def check_features(table: NamedColumns, columns: Sequence[Column]) -> None:
    """Refuse columns of which none is a feature.

    Raises
    ------
    InputError
        The message says why they are left out, if no option says so.
    """
    if not any(column.is_feature for column in columns):
        reasons = [
            f"; {table.column(one.position)}: {one.why}" for one in columns if one.why
        ]
        remedy = (
            "name those to take (columns)"
            if reasons
            else "leave out fewer (drop, columns)"
        )
        raise InputError(
            f"{table.name}: no column is left as a feature: {remedy}{''.join(reasons[:10])}."
        )


def encoded_columns(table: NamedColumns, encoding: Encoding) -> list[Column]:
    """The columns of a fit in another table, which has the same kinds of values there.

    Raises
    ------
    InputError
        A column is not there, or has another kind of values.
    """
    columns = []
    width = len(encoding.columns)
    is_whole = [one.name for one in encoding.columns] == [*map(str, range(width))]
    if is_whole and not encoding.has_names and len(table.names) != width:
        fault = f"{table.name} has {len(table.names)} columns, and the fit had {width}"
        raise InputError(f"{fault}: give rows with the columns of the fit.")
    for one in encoding.features:
        (p,) = table.resolve([one.name], "of the fit")
        if table.is_text and one.kind != kind_of(
            table.types[p]
        ):  # as its cells are read
            table.types[p] = {
                "text": TEXT,
                "flag": pa.bool_(),
                "number": pa.float64(),
            }.get(one.kind, TEXT)
        given = table.types[p]
        known = {"number", "flag"} if one.kind in ("number", "flag") else {one.kind}
        if kind_of(given) not in known and not pa.types.is_null(given):
            kinds = f"has values of type {given}, and was a {one.kind} in the fit: make it a {one.kind} again"
            raise InputError(f"{table.name}: {table.column(p)} {kinds}.")
        treatment = (
            ONE_HOT if one.kind == "text" else treatment_of(given, TableOptions())
        )
        categories = pa.array(one.categories, TEXT) if one.kind == "text" else None
        columns.append(
            Column(
                p, table.keys[p], table.names[p], given, treatment, categories, one.fill
            )
        )
    return columns


def options_of_fit(estimator: Any) -> TableOptions | None:
    """Options that read other rows as the table of a fit; None if it was of no table."""
    encoding = getattr(getattr(estimator, "model_", None), "encoding", None)
    return (
        None
        if encoding is None
        else TableOptions(**dict(encoding.options), encoding=encoding)
    )


def names_rows(name: str, numbers: np.ndarray, step: int = 1) -> bool:
    """Whether numbers only name rows: they rise with these, or all differ and the name says so.

    ``step`` is the distance of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.tables.columns import names_rows
    >>> names_rows("row", np.arange(20)), names_rows("id", np.arange(20) % 7)
    (True, False)
    """
    some = numbers[:1000], numbers  # a few mostly show that they are no whole numbers
    if numbers.size < 10 or not all(
        (np.isfinite(one) & (np.floor(one) == one)).all() for one in some
    ):
        return False
    is_named = (
        re.search(IDENTIFIER, name) is not None
        and np.unique(numbers).size == numbers.size
    )
    return is_named or bool((np.diff(numbers) == step).all())


def treatment_of(kind: pa.DataType, options: TableOptions) -> Treatment:
    """Treatment of a column by its type."""
    name = kind_of(kind)
    return TREATMENTS[name][
        getattr(options, DECIDED_BY[name]) if name in DECIDED_BY else None
    ]


def _check_names(table: NamedColumns, features: list[int], explicit: bool) -> None:
    seen: dict[str, int] = {}
    for position in features:
        if not explicit and not table.names[position].strip():
            option = table.option(position)
            remedy = f"keep it as such with --index-column {option}, or leave it out with --drop {option}"
            raise InputError(f"{table.name}: column {position} has no name: {remedy}.")
        other = seen.setdefault(table.names[position], position)
        if other != position:
            fault = f"{table.name}: columns {other} and {position} are both named {table.names[position]!r}"
            raise InputError(
                f"{fault}: rename one, or leave one out with --drop {position}."
            )


# --- kinds, and values of a kind ------------------------------------------------------


def kind_of(kind: pa.DataType) -> str:
    """One of the kinds of `TREATMENTS`."""
    types = pa.types
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    ):
        return "number"
    if types.is_boolean(kind):
        return "flag"
    if types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view():
        return "text"
    return "date" if types.is_temporal(kind) else "other"


def kind_of_texts(texts: pa.Array) -> pa.DataType | None:
    """Numbers, flags or dates, if half of the cells are, or numbers but for one mark; None for text."""
    patterns = (
        r"(?i)^[-+]?[\d.,' ]*\d[\d.,' ]*(e[-+]?\d+)?$|^[-+]?inf(inity)?$",
        FLAG,
        DATE,
    )
    counts = [
        pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0
        for pattern in patterns
    ]
    number = (
        pa.int64()
        if pc.all(pc.match_substring_regex(texts, WHOLE)).as_py()
        else pa.float64()
    )
    for count, kind in zip(
        counts, (number, pa.bool_(), pa.timestamp("s")), strict=True
    ):
        if count and 2 * count >= len(texts) - texts.null_count:
            return kind
    others = texts.filter(
        pc.invert(pc.match_substring_regex(texts, r"^[-+]?[\d.,]+(e[-+]?\d+)?$"))
    )
    return (
        pa.float64()
        if counts[0] > 1 and pc.count_distinct(others).as_py() == 1
        else None
    )


def trimmed(texts: pa.Array, gaps: pa.Array) -> pa.Array:
    """Texts without spaces around them; null for the marks of missing values."""
    texts = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.is_in(texts, gaps), None, texts)


def float32_merges(values: pa.Array, is_first: bool) -> bool:
    """Whether float32 would merge whole numbers or, of the first rows, more than 1 % of other numbers."""
    if pa.types.is_integer(values.type):
        ends = pc.min_max(values)
        return max(abs(ends["min"].as_py() or 0), abs(ends["max"].as_py() or 0)) > 2**24
    if not (is_first and pa.types.is_floating(values.type)):
        return False
    wide = pc.unique(values.drop_null())
    return (
        len(wide) - len(pc.unique(pc.cast(wide, pa.float32(), safe=False)))
        > len(wide) / 100
    )


# --- faults and classes ---------------------------------------------------------------


class Faults(dict[Any, list[Any]]):
    """All faults of a table: each kind of them in a column once, with its first place, remedy and count.

    Examples
    --------
    >>> from mmcnb.tables.columns import Faults
    >>> faults = Faults()
    >>> faults.add("a", "rows.csv, line 3: 'x' is not a number", "correct it", 2)
    >>> try:
    ...     faults.check()
    ... except ValueError as error:
    ...     print(error)
    rows.csv, line 3: 'x' is not a number (and 1 more): correct it.
    """

    def add(self, key: Any, fault: str, remedy: str, count: int = 1) -> None:
        """Add faults of a kind; the first one is shown."""
        self.setdefault(key, [fault, remedy, 0])[2] += count

    def check(self) -> None:
        """Raise if there is a fault, with one sentence for each kind."""
        said = [
            f"{fault}{f' (and {count - 1:,} more)' if count > 1 else ''}: {remedy}."
            for fault, remedy, count in self.values()
        ]
        if said:
            more = (
                [f"There are {len(said) - 10} more such faults."]
                if len(said) > 10
                else []
            )
            raise InputError(" ".join(said[:10] + more))


class Classes:
    """Class labels from a column: whole numbers as they are, names numbered as they first appear.

    Attributes
    ----------
    names : list of str or None
        Names of the classes read so far; None if they are whole numbers.
    """

    names: list[str] | None = None
    _has_begun = False

    def numbers(self, values: pa.Array) -> tuple[np.ndarray, int]:
        """The next labels, and the first row whose text does not suit those before; -1 if there is none."""
        if pa.types.is_integer(values.type):
            return values.to_numpy(zero_copy_only=False).astype(np.int64), -1
        whole = pc.match_substring_regex(
            values, r"^[-+]?\d+(\.0*)?(e\+?0+)?$", ignore_case=True
        )
        if not self._has_begun and len(values):
            self._has_begun, self.names = True, None if whole[0].as_py() else []
        if self.names is not None:
            self.names = [*dict.fromkeys(self.names + pc.unique(values).to_pylist())]
            return pc.index_in(values, pa.array(self.names, TEXT)).to_numpy().astype(
                np.int64
            ), -1
        digits = pc.replace_substring_regex(
            pc.if_else(whole, values, "0"), r"^\+|(\.0*)?([eE].*)?$", ""
        )
        return digits.cast(pa.int64()).to_numpy(), pc.index(whole, False).as_py()

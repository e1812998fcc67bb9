"""Columns of a table: the kind of their values, their role, and their numbers."""

import re
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from mmcnb.samples.encoding import EncodedColumn
from mmcnb.tables.csv_cells import FLOAT64, TEXT
from mmcnb.tables.options import TableOptions

MOST_DISTINCT = 1000  # more different values are not counted, and are not categories
GAP = ""  # the category of missing texts
NUMBERS_ROWS = "it numbers the rows"  # why a column is left out
# Names of columns that number things.
IDENTIFIER = r"(?i)(^|[\W_])(id|uuid|guid)$|(?-i:[a-z]I[dD]$)"


class Role(Enum):
    """What a column becomes."""

    NUMBER = "number"
    FLAG = "0 or 1"
    ONE_HOT = "a 0/1 column for each text"
    SECONDS = "seconds since 1970"
    REFUSED = "refused"
    LEFT_OUT = "left out"
    CLASSES = "classes"
    ROW_NAMES = "names of rows"


NO_FEATURES = (Role.LEFT_OUT, Role.CLASSES, Role.ROW_NAMES)
ROLE_OF_KIND = {"number": Role.NUMBER, "flag": Role.FLAG, "other": Role.REFUSED}
ROLE_OF_TEXTS = {
    "auto": Role.ONE_HOT,
    "one-hot": Role.ONE_HOT,
    "refuse": Role.REFUSED,
}
ROLE_OF_DATES = {
    "epoch": Role.SECONDS,
    "drop": Role.LEFT_OUT,
    "refuse": Role.REFUSED,
}


def role_of(data_type: pa.DataType, options: TableOptions) -> Role:
    """Decide the role of a column by its type and, for texts and dates, by options."""
    kind = kind_of(data_type)
    if kind == "text":
        return ROLE_OF_TEXTS[options.categories]
    if kind == "date":
        return ROLE_OF_DATES[options.dates]
    return ROLE_OF_KIND[kind]


def kind_of(data_type: pa.DataType) -> str:
    """Return the kind of a type: "number", "flag", "text", "date" or "other"."""
    if types.is_dictionary(data_type):
        return kind_of(data_type.value_type)
    if types.is_integer(data_type) or types.is_floating(data_type):
        return "number"
    if types.is_decimal(data_type) or types.is_null(data_type):
        return "number"
    if types.is_boolean(data_type):
        return "flag"
    if data_type in (pa.string(), pa.large_string(), pa.string_view()):
        return "text"
    if types.is_temporal(data_type):
        return "date"
    return "other"


@dataclass
class TableColumn:
    """A column of a table, as far as it is known.

    Attributes
    ----------
    position : int
    key : str
        Its name in parts of the table.
    name : str
    type : pyarrow.DataType
    role : Role
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
    role: Role
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
        return self.role not in NO_FEATURES

    @property
    def dtype(self) -> np.dtype:
        """NumPy's type of the numbers that it becomes."""
        if self.role is Role.ONE_HOT:
            return np.dtype(np.uint8)
        if self.role in (Role.SECONDS, Role.REFUSED):
            return np.dtype(np.float64)
        if types.is_null(self.type):
            return np.dtype(np.float32)
        return np.dtype(self.type_to_read.to_pandas_dtype())

    @property
    def type_to_read(self) -> pa.DataType:
        """Type of its values: plain numbers, texts, dates or times."""
        values = self.type
        if types.is_dictionary(values):
            values = values.value_type
        if not self.is_feature:
            return pa.int64() if types.is_integer(values) else TEXT
        if types.is_decimal(values) or types.is_null(values):
            return FLOAT64
        return TEXT if kind_of(values) == "text" else values

    @property
    def encoded(self) -> EncodedColumn:
        """The column as other rows are to have it."""
        kind = "left out"
        if self.is_feature:
            kind = kind_of(self.type)
        texts: tuple[str, ...] = ()
        if kind == "text" and self.categories is not None:
            texts = tuple(self.categories.to_pylist())
        return EncodedColumn(self.name, kind, texts, self.fill, self.why)

    def encode(self, values: pa.Array) -> pa.Array:
        """Return the numbers of values; of texts the numbers of their categories."""
        if self.role is Role.REFUSED:
            return pa.repeat(pa.scalar(0, pa.uint8()), len(values))
        if self.role is Role.SECONDS:
            return _seconds(values)
        if self.role is Role.ONE_HOT:
            if self.categories is None:
                return pc.if_else(values.is_valid(), 0, None)
            return pc.index_in(values.fill_null(GAP), self.categories)
        if types.is_float16(values.type):  # which is not joined with other types
            return pa.array(np.asarray(values, np.float32))
        if types.is_boolean(values.type):
            return values.cast(pa.uint8())
        return values

    def begin_count(self) -> None:
        """Count values from the first row on."""
        self.missing = 0
        self.unknown = 0
        self.distinct = pa.array([], self.type_to_read)

    def count(self, values: pa.Array) -> None:
        """Count missing and different values of the next rows."""
        self.missing = (self.missing or 0) + values.null_count
        if self.distinct is None or kind_of(values.type) == "other":
            return
        # A few rows mostly show that they are too many.
        for rows in (values[: 4 * MOST_DISTINCT], values):
            distinct = pc.unique(rows.drop_null())
            known = self.distinct
            if distinct.type != known.type:
                is_text = TEXT in (distinct.type, known.type)
                common = TEXT if is_text else FLOAT64
                distinct = distinct.cast(common)
                known = known.cast(common)
            self.distinct = pc.unique(pa.chunked_array([known, distinct]))
            if len(self.distinct) > MOST_DISTINCT:
                self.distinct = None
                return

    def listing(self) -> dict[str, object]:
        """Return name, type, missing and different values, and role of the column."""
        distinct: str | int | None = None
        if self.distinct is not None:
            distinct = len(self.distinct)
        elif self.missing is not None:
            distinct = f"over {MOST_DISTINCT:,}"
        becomes = self.role.value
        if self.why:
            becomes += f": {self.why}"
        if self.why == NUMBERS_ROWS:
            becomes += " (--columns all takes it)"
        return {
            "name": self.name,
            "type": str(self.type),
            "missing": self.missing,
            "distinct": distinct,
            "becomes": becomes,
        }


def _seconds(times: pa.Array) -> pa.Array:
    """Return seconds since 1970, seconds since midnight, or those of a duration."""
    if types.is_date(times.type):
        unit = "s" if times.type == pa.date32() else "ms"
        times = times.cast(pa.timestamp(unit))
    per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[times.type.unit]
    integer = pa.int64() if times.type.bit_width == 64 else pa.int32()
    counts = times.view(integer).cast(FLOAT64, safe=False)
    return pc.divide(counts, per_second)


def names_rows(name: str, numbers: np.ndarray, step: int = 1) -> bool:
    """Whether numbers only name rows: they count them, or all differ as in an "id".

    ``step`` is the distance of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.tables.columns import names_rows
    >>> names_rows("row", np.arange(20)), names_rows("id", np.arange(20) % 7)
    (True, False)
    """
    if numbers.size < 10:
        return False
    # A few mostly show that they are no whole numbers.
    for values in (numbers[:1000], numbers):
        if not (np.isfinite(values) & (np.floor(values) == values)).all():
            return False
    if (np.diff(numbers) == step).all():
        return True
    is_identifier = re.search(IDENTIFIER, name) is not None
    return is_identifier and np.unique(numbers).size == numbers.size


def float32_merges(values: pa.Array, is_first: bool) -> bool:
    """Whether float32 would merge whole numbers, or over 1 % of the first others."""
    if types.is_integer(values.type):
        extremes = pc.min_max(values).as_py().values()
        return any(abs(extreme or 0) > 2**24 for extreme in extremes)
    if not is_first or not types.is_floating(values.type):
        return False
    distinct = pc.unique(values.drop_null())
    rounded = pc.cast(distinct, pa.float32(), safe=False)
    n_merged = len(distinct) - len(pc.unique(rounded))
    return n_merged > len(distinct) / 100

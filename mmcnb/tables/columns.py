"""Columns of a table: the kind of their values, their role, and their encoding."""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from mmcnb.errors import shown
from mmcnb.samples.encoding import CellForm, EncodedColumn
from mmcnb.samples.one_hot import UNKNOWN
from mmcnb.tables.arrow import FLOAT64, TEXT, kind_of
from mmcnb.tables.dates import seconds_of_typed
from mmcnb.tables.decide import Decision
from mmcnb.tables.options import TableOptions
from mmcnb.tables.record_columns import NUMBERS_ROWS, RecordSign

MOST_DISTINCT = 1000  # columns with more distinct values are not categorical
GAP = ""  # the category that stands for missing texts
MOST_LEVELS = 7  # maximum number of levels that a message lists
SECONDS_OF_DAY = 86400
LEAST_WORDS = 4  # texts with at least as many words on average are documents


class Role(Enum):
    """How a column is used; the value of each member is the text shown in listings."""

    NUMBER = "number"
    FLAG = "0 or 1"
    ORDER = "place in the order"
    ONE_HOT = "a 0/1 column for each text"
    SECONDS = "seconds since 1970"
    DURATION = "seconds"
    REFUSED = "refused"
    LEFT_OUT = "left out"
    CLASSES = "classes"
    ROW_NAMES = "names of rows"


NO_FEATURES = (Role.LEFT_OUT, Role.CLASSES, Role.ROW_NAMES)
ROLE_OF_KIND = {
    "number": Role.NUMBER,
    "flag": Role.FLAG,
    "order": Role.ORDER,
    "time": Role.DURATION,
    "other": Role.REFUSED,
}
ROLE_OF_TEXTS = {
    "auto": Role.ONE_HOT,
    "one-hot": Role.ONE_HOT,
    "refuse": Role.REFUSED,
}
ROLE_OF_DATES = {
    "auto": Role.SECONDS,  # may change to LEFT_OUT after all rows are read
    "epoch": Role.SECONDS,
    "drop": Role.LEFT_OUT,
    "refuse": Role.REFUSED,
}


def role_of(kind: str, options: TableOptions) -> Role:
    """Return the role for a kind of column, given the options for texts and dates."""
    if kind == "text":
        return ROLE_OF_TEXTS[options.categories]
    if kind == "date":
        return ROLE_OF_DATES[options.use_of_dates]
    return ROLE_OF_KIND[kind]


@dataclass
class TableColumn:
    """A column of a table, with its role and counts of its values.

    Attributes
    ----------
    position : int
        Zero-based index of the column in the table.
    key : str
        Key of the column in `Part.columns`.
    name : str
        Name of the column in the table, or its index as text if there is no header.
    type : pyarrow.DataType
        Arrow type of the cells in the table.
    role : Role
        How the column is used.
    decision : Decision or None
        Inferred kind of values that the texts of the column represent; None if its
        cells are not texts, or if the kind is known from a fit.
    form : CellForm or None
        How the texts of the column are parsed; None if its cells are not texts.
    is_asked : bool
        Whether options ask for the column, so that it is kept even if it carries no
        information.
    is_named : bool
        Whether options name the column or ask for its dates, so that it is kept even if
        it describes the record.
    record : RecordSign or None
        Why the column seems to describe the record; None if it does not, or if an
        option asks for the column.
    is_even : bool
        Whether the numbers are distinct and evenly spread like identifiers, although
        the name of the column is not that of an identifier.
    marks : tuple of float
        Numbers that mark missing values.
    block : str
        Name of the list that the column is an element of, or "".
    angle : {"", "sin", "cos"}
        Coordinate of a time of day that the feature contains. A time of day is a point
        on a circle, so one column of the table becomes two features.
    known_marks : dict of {float: int}
        Numbers such as -999 that were recognised as markers of missing values, each
        with the number of rows that contain it.
    categories : pyarrow.Array or None
        The texts that become 0/1 columns, sorted; None until they are known.
    fill : float or None
        Number that replaces missing values, by default the median; None until it is
        known.
    why : str
        Why the column is left out; "" if an option leaves it out.
    can_be_kept : bool
        Whether an option can keep the column if it would otherwise be left out.
    gaps : int
        Number of missing values that can be filled. They are counted in all rows or, if
        the columns are known from a fit, in the rows read so far.
    unknown : int
        Number of cells read so far that contain a text unknown to the fit.
    n_wrong : int
        Number of cells read so far that do not match the kind of the column, and
        therefore count as missing.
    wrong : tuple of str
        Up to three examples of cells that do not match.
    missing : int or None
        Number of missing cells read so far; None if the column is not read.
    distinct : pyarrow.Array or None
        Distinct values read so far; None if there are more than `MOST_DISTINCT`.
    """

    position: int
    key: str
    name: str
    type: pa.DataType
    role: Role
    decision: Decision | None = None
    form: CellForm | None = None
    is_asked: bool = False
    is_named: bool = False
    record: RecordSign | None = None
    is_even: bool = False
    marks: tuple[float, ...] = ()
    block: str = ""
    angle: str = ""
    known_marks: dict[float, int] = field(default_factory=dict)
    categories: pa.Array | None = None
    fill: float | None = None
    why: str = ""
    can_be_kept: bool = True
    missing: int | None = None
    unknown: int = 0
    gaps: int = 0
    n_wrong: int = 0
    wrong: tuple[str, ...] = ()
    distinct: pa.Array | None = None

    @property
    def is_feature(self) -> bool:
        """Whether the column becomes one or more columns of numbers."""
        return self.role not in NO_FEATURES

    @property
    def kind(self) -> str:
        """Kind of the values: number, flag, text, order, date, time or other."""
        return kind_of(self.type) if self.form is None else self.form.kind

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype of the numbers that the column becomes."""
        if self.role is Role.ONE_HOT:
            return np.dtype(np.uint8)
        if self.role is Role.ORDER:
            return np.dtype(np.float32)
        if self.role is not Role.NUMBER and self.role is not Role.FLAG:
            return np.dtype(np.float64)
        if types.is_null(self.type):
            return np.dtype(np.float32)
        if self.form is not None and self.type_to_read == TEXT:
            return np.dtype(np.float64 if self.kind == "number" else np.bool_)
        return np.dtype(self.type_to_read.to_pandas_dtype())

    @property
    def type_to_read(self) -> pa.DataType:
        """Arrow type that the cells are read as."""
        if self.form is not None and self.form.kind in ("text", "order"):
            return TEXT
        if self.role is Role.ROW_NAMES and _is_date(self.type):
            return self.type
        if not self.is_feature:
            return pa.int64() if types.is_integer(self.type) else TEXT
        if types.is_decimal(self.type) or types.is_null(self.type):
            return FLOAT64
        return TEXT if kind_of(self.type) == "text" else self.type

    @property
    def encoded(self) -> EncodedColumn:
        """Description of the column, which determines how new rows are read."""
        kind = "left out"
        if self.is_feature:
            kind = self.kind
        texts: tuple[str, ...] = ()
        if kind == "text" and self.categories is not None:
            texts = tuple(self.categories.to_pylist())
        return EncodedColumn(
            name=self.name,
            kind=kind,
            categories=texts,
            fill=self.fill,
            why=self.why,
            form=self.form if self.is_feature else None,
            marks=self.marks,
            block=self.block,
            angle=self.angle if self.is_feature else "",
        )

    def encode(self, values: pa.Array) -> pa.Array:
        """Convert values to numbers; each text becomes the index of its category."""
        if self.role is Role.REFUSED:
            return pc.if_else(values.is_valid(), pa.scalar(0, pa.uint8()), None)
        if self.role is Role.ONE_HOT:
            if self.categories is None:
                return pc.if_else(values.is_valid(), 0, None)
            return self._numbers_of_texts(values)
        if types.is_temporal(values.type):
            values = seconds_of_typed(values)
        if self.angle:
            turns = pc.multiply(values.cast(FLOAT64), 2 * np.pi / SECONDS_OF_DAY)
            return pc.sin(turns) if self.angle == "sin" else pc.cos(turns)
        if types.is_float16(values.type):  # pyarrow cannot combine columns of this type
            return pa.array(np.asarray(values, np.float32))
        if types.is_boolean(values.type):
            return values.cast(pa.uint8())
        return values

    def _numbers_of_texts(self, texts: pa.Array) -> pa.Array:
        """Return the category index of each text.

        The index of a text that is not a category is `UNKNOWN`. A missing text becomes
        null unless missing texts are a category.
        """
        assert self.categories is not None
        has_gaps = GAP in self.categories.to_pylist()
        if has_gaps:
            texts = texts.fill_null(GAP)
        numbers = pc.index_in(texts, self.categories)
        is_unknown = pc.and_(numbers.is_null(), texts.is_valid())
        return pc.if_else(is_unknown, UNKNOWN, numbers)

    def begin_count(self) -> None:
        """Reset the counts before a pass over the rows."""
        self.missing = 0
        self.unknown = 0
        self.n_wrong = 0
        self.wrong = ()
        self.distinct = None
        if kind_of(self.type_to_read) != "other":
            self.distinct = pa.array([], self.type_to_read)

    def count(self, values: pa.Array) -> None:
        """Count missing and distinct values of the next rows."""
        self.missing = (self.missing or 0) + values.null_count
        if self.distinct is None or kind_of(values.type) == "other":
            return
        # A few rows usually suffice to see that there are too many distinct values.
        for rows in (values[: 4 * MOST_DISTINCT], values):
            distinct = pc.unique(rows.drop_null())
            known = self.distinct
            if distinct.type != known.type:
                if not len(known):
                    known = known.cast(distinct.type)
                is_text = TEXT in (distinct.type, known.type)
                common = TEXT if is_text else FLOAT64
                distinct = distinct.cast(common)
                known = known.cast(common)
            self.distinct = pc.unique(pa.chunked_array([known, distinct]))
            if len(self.distinct) > MOST_DISTINCT:
                self.distinct = None
                return

    def count_wrong(self, texts: pa.Array) -> None:
        """Count cells that do not match the kind of the column."""
        self.n_wrong += len(texts)
        examples = [*self.wrong, *pc.unique(texts[:100]).to_pylist()]
        self.wrong = tuple(dict.fromkeys(examples))[:3]

    def listing(self) -> dict[str, object]:
        """Return the name, type, counts of values, and role of the column.

        Returns
        -------
        dict
            ``name``, ``type``, ``missing`` and ``distinct`` (numbers of missing cells
            and of distinct values, or None if the column is not read; ``distinct`` is
            "over 1,000" if there are more), and ``becomes`` (the role).
        """
        distinct: str | int | None = None
        if self.distinct is not None:
            distinct = len(self.distinct)
        elif self.missing is not None:
            distinct = f"over {MOST_DISTINCT:,}"
        becomes = self.role.value
        if self.angle:
            becomes = "sine and cosine of the time of day"
        if self.form is not None and self.form.unit and self.is_feature:
            becomes += f" ({self.form.unit})"
        if self.form is not None and self.role is Role.ORDER:
            becomes += f": {shown_order(self.form)}"
        if self.why:
            becomes += f": {self.why}"
        if self.why == NUMBERS_ROWS:
            becomes += " (--columns all takes it)"
        return {
            "name": self.name,
            "type": self._type_to_show(),
            "missing": self.missing,
            "distinct": distinct,
            "becomes": becomes,
        }

    def _type_to_show(self) -> str:
        """Return the kind of values of a text column, or the type of another column."""
        if self.form is None or kind_of(self.type) != "text":
            return str(self.type)
        is_string = self.form.kind in ("text", "order")
        return "string" if is_string else self.form.kind


def shown_order(form: CellForm) -> str:
    """Return up to seven levels of an order, for messages.

    Examples
    --------
    >>> from mmcnb.samples.encoding import CellForm
    >>> from mmcnb.tables.columns import shown_order
    >>> shown_order(CellForm("order", levels=(("S",), ("M",), ("L",))))
    'S < M < L'
    """
    texts = [shown(text)[1:-1] for text in form.shown_levels]
    if len(texts) > MOST_LEVELS:
        texts[MOST_LEVELS - 2 : -1] = ["..."]
    return " < ".join(texts)


def are_documents(texts: Collection[str], n_rows: int) -> bool:
    """Return whether texts have four words or more on average and are mostly distinct.

    Parameters
    ----------
    texts : collection of str
        The distinct texts.
    n_rows : int
        Number of rows that contain these texts.

    Examples
    --------
    >>> from mmcnb.tables.columns import are_documents
    >>> texts = [f"the ship number {k} left the harbour" for k in range(20)]
    >>> are_documents(texts, 20), are_documents(["oak", "elm"], 20)
    (True, False)
    """
    if len(texts) < min(n_rows, MOST_DISTINCT) / 2:
        return False
    n_words = sum(len(text.split()) for text in texts)
    return n_words >= LEAST_WORDS * len(texts)


def float32_merges(values: pa.Array, is_first: bool) -> bool:
    """Return whether float32 would merge distinct values.

    The result is True if an integer exceeds 2**24 in magnitude, or if rounding to
    float32 would reduce the number of distinct floating-point values in the first rows
    of the table by more than 1 %.

    Parameters
    ----------
    values : pyarrow.Array
    is_first : bool
        Whether these are the first rows of the table.
    """
    if types.is_integer(values.type):
        extremes = pc.min_max(values).as_py().values()
        return any(abs(extreme or 0) > 2**24 for extreme in extremes)
    if not is_first or not types.is_floating(values.type):
        return False
    distinct = pc.unique(values.drop_null())
    rounded = pc.cast(distinct, pa.float32(), safe=False)
    n_merged = len(distinct) - len(pc.unique(rounded))
    return n_merged > len(distinct) / 100


def _is_date(data_type: pa.DataType) -> bool:
    """Return whether a type is a date or timestamp that NumPy can represent.

    NumPy cannot represent time zones.
    """
    if types.is_timestamp(data_type):
        return data_type.tz is None
    return types.is_date(data_type)

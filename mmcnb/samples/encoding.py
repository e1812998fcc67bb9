"""A record of how a table became numbers, so that other rows are encoded alike."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples.donors import Donors

TEXT_OPTIONS = (
    "header",
    "na_values",
    "thousands",
    "decimal",
    "delimiter",
    "skip_lines",
    "codec",
    "sheet",
)
OF_NUMBERS = ("decimal", "thousands")
KINDS = ("number", "flag", "text", "order", "date", "time", "left out")
DECIMALS = (".", ",")
ANGLES = ("", "sin", "cos")
MOST_FORMATS = 100


@dataclass(frozen=True)
class CellForm:
    """How the texts of a column become values.

    Attributes
    ----------
    kind : {"number", "flag", "date", "time", "text", "order"}
        "time" stands for times of day and durations. "order" stands for ordered
        categories, which become their positions in the order, counted from 0.
    decimal, thousands : str
        Decimal separator and thousands separator of numbers; "" allows none.
    unit : str
        Unit of the numbers; "" if they have none.
    factors : tuple of (str, float)
        Spellings of units, such as "$K" for thousands of dollars, and the factor by
        which a number with this spelling is multiplied. A number without a unit is
        multiplied by the factor of "", or by 1.
    formats : tuple of str
        Formats of dates for `pandas.to_datetime`.
    is_minutes : bool
        Whether a time such as 3:45 has minutes and seconds, not hours and minutes.
    is_clock : bool
        Whether times are times of day, not durations.
    levels : tuple of tuple of str
        Equivalent texts of each ordered category; messages show the first text.
    by_keys : bool
        Whether a cell matches these texts regardless of case, of punctuation, and of a
        number before or after the text.
    """

    kind: str
    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    factors: tuple[tuple[str, float], ...] = ()
    formats: tuple[str, ...] = ()
    is_minutes: bool = False
    is_clock: bool = False
    levels: tuple[tuple[str, ...], ...] = ()
    by_keys: bool = False

    @classmethod
    def restore(cls, fields: dict[str, Any]) -> "CellForm":
        """Return the form from a JSON object.

        Raises
        ------
        ValueError
            If a field has an invalid value.
        """
        factors = tuple((unit, float(factor)) for unit, factor in fields["factors"])
        restored = {
            "factors": factors,
            "formats": (*fields["formats"],),
            "levels": tuple(map(tuple, fields.get("levels", ()))),
        }
        form = cls(**fields | restored)
        texts = (form.unit, form.thousands, *form.formats, *(u for u, _ in factors))
        texts += tuple(chain.from_iterable(form.levels))
        is_valid = (
            form.kind in KINDS
            and form.decimal in DECIMALS
            and all(type(text) is str for text in texts)
            and form.thousands in ("", *",.'_ ")
            and len(form.formats) <= MOST_FORMATS
            and all(abs(factor) < float("inf") for _, factor in factors)
            and type(form.is_minutes) is bool
            and type(form.is_clock) is bool
            and type(form.by_keys) is bool
            and all(form.levels)
        )
        if not is_valid:
            raise ValueError("a form of cells has an unknown value")
        return form

    @property
    def shown_levels(self) -> tuple[str, ...]:
        """The text that is shown for each ordered category."""
        return tuple(level[0] for level in self.levels)


@dataclass(frozen=True)
class EncodedColumn:
    """One column of a table.

    Attributes
    ----------
    name : str
        Name of the column, or its number if the table has no header.
    kind : {"number", "flag", "text", "order", "date", "time", "left out"}
        Treatment of the column.
    categories : tuple of str
        Sorted categories of a text column; "" is the category of gaps.
    fill : float or None
        Number that replaces gaps: the median or mean in the fit. None if gaps are not
        filled.
    why : str
        Reason for leaving the column out.
    form : CellForm or None
        How its texts become values; None if the column had no texts.
    marks : tuple of float
        Numbers that are read as gaps, because they marked missing values in the fit.
    block : str
        Name of the list column whose elements include this column; "" for other
        columns. All elements of a list together have the weight of one column.
    angle : {"", "sin", "cos"}
        Coordinate of a time of day on a circle; "" for other columns. The two columns
        of a time have the same name.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    fill: float | None = None
    why: str = ""
    form: CellForm | None = None
    marks: tuple[float, ...] = ()
    block: str = ""
    angle: str = ""

    def written_otherwise(self, given: Mapping[str, Any]) -> "EncodedColumn":
        """Return the column with other decimal and thousands separators."""
        form = self.form
        if form is None or form.kind != "number":
            return self
        decimal = given.get("decimal", form.decimal)
        thousands = given.get("thousands", form.thousands)
        if thousands == decimal:
            thousands = ""
        form = replace(form, decimal=decimal, thousands=thousands)
        return replace(self, form=form)

    @property
    def feature_names(self) -> list[str]:
        """Names of the feature columns of this column, such as ``colour_red``."""
        if self.kind != "text":
            name = f"{self.name}_{self.angle}" if self.angle else self.name
            return [] if self.kind == "left out" else [name]
        gap = "" if "missing" in self.categories else "missing"
        return [f"{self.name}_{text or gap}" for text in self.categories]


@dataclass(frozen=True)
class Encoding:
    """The columns of a table that may be features, and how its cells are read.

    Attributes
    ----------
    columns : tuple of EncodedColumn
        The columns.
    options : tuple of (str, value)
        Options for parsing cells; see `mmcnb.read_table`.
    has_names : bool
        Whether the table has a header.
    is_ordered : bool
        Whether other frames must have the columns in this order, as scikit-learn
        requires for plain numbers.
    index_column : str or None
        Name of the column with row names, which other tables may have too.
    drops_gaps : bool
        Whether rows with missing cells were left out.
    donors : Donors or None
        Rows from which gaps are filled; None if the ``fill`` of a column is used.
    """

    columns: tuple[EncodedColumn, ...]
    options: tuple[tuple[str, Any], ...]
    has_names: bool = True
    is_ordered: bool = False
    index_column: str | None = None
    drops_gaps: bool = False
    donors: Donors | None = None

    @property
    def missing(self) -> str:
        """The value of the option ``missing`` with which other rows are filled."""
        return "median" if self.donors is None else "neighbors"

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of the table; None if it has no header."""
        return self.names_or_numbers if self.has_names else None

    @property
    def names_or_numbers(self) -> list[str]:
        """Names of the columns of the table, or their numbers, without duplicates."""
        return [column.name for column in self.columns if column.angle != "cos"]

    @property
    def features(self) -> list[EncodedColumn]:
        """Columns that are features."""
        return [column for column in self.columns if column.kind != "left out"]

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers already."""
        return all(column.kind in ("number", "flag") for column in self.columns)

    @property
    def feature_names(self) -> list[str]:
        """Names of the feature columns."""
        return [name for column in self.features for name in column.feature_names]

    @property
    def n_categories(self) -> list[int | None]:
        """Number of categories of each feature; None for numbers."""
        return [len(column.categories) or None for column in self.features]

    @property
    def sources(self) -> list[str] | None:
        """The table's column behind each feature column; None if the two are the same.

        All elements of a list come from one column. If the elements of a single list
        are the only features, each list is a row, and the result is None.
        """
        features = self.features
        has_texts = any(column.kind == "text" for column in features)
        blocks = {column.block for column in features}
        has_lists = len(blocks) > 1
        if not (has_texts or has_lists):
            return None
        return [
            column.block or column.name
            for column in features
            for _ in column.feature_names
        ]

    @property
    def orders(self) -> dict[str, tuple[str, ...]]:
        """The categories of each ordinal column, in order; they are numbered from 0."""
        orders = {}
        for column in self.features:
            if column.kind == "order" and column.form is not None:
                orders[column.name] = column.form.shown_levels
        return orders

    def of_stored_numbers(self) -> "Encoding":
        """Return the encoding of these columns in a store: numbers and categories."""
        columns = []
        for column in self.columns:
            kind = "text" if column.kind == "text" else "number"
            if column.kind != "left out":
                column = replace(column, kind=kind, form=None, marks=())
                if column.angle:
                    (name,) = column.feature_names
                    column = replace(column, name=name, angle="")
            columns.append(column)
        return replace(self, columns=tuple(columns))

    def written_otherwise(self, given: Mapping[str, Any]) -> "Encoding":
        """Return the encoding for rows with other decimal or thousands separators."""
        options = dict(self.options)
        fields = {name: given[name] for name in OF_NUMBERS if name in given}
        options |= fields
        if "decimal" in fields and options.get("thousands") == options["decimal"]:
            options["thousands"] = None
        columns = tuple(column.written_otherwise(fields) for column in self.columns)
        return replace(self, columns=columns, options=tuple(options.items()))

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as a JSON object, without its donors."""
        fields = asdict(replace(self, donors=None))
        del fields["donors"]
        return fields

    @classmethod
    def of_numbers(cls, donors: Donors, names: list[str] | None) -> "Encoding":
        """Return the encoding of rows of numbers whose gaps are filled from donors."""
        columns = []
        for k, values in enumerate(donors.rows.T):
            known = values[~np.isnan(values)]
            fill = float(np.median(known)) if known.size else 0.0
            name = names[k] if names else str(k)
            columns.append(EncodedColumn(name, "number", fill=fill))
        return cls(tuple(columns), (), has_names=names is not None, donors=donors)

    @classmethod
    def restore(cls, given: Any, donors: Donors | None = None) -> "Encoding":
        """Return the encoding from a result of `to_dict`, with its donors.

        Raises
        ------
        InputError
            If ``given`` is not a result of `to_dict`.
        """
        try:
            columns = tuple(map(_restored_column, given["columns"]))
            options = {name: _as_tuples(value) for name, value in given["options"]}
            if not any("marks" in fields for fields in given["columns"]):
                options |= _marks_before_04(options)
            encoding = cls(
                columns,
                tuple(options.items()),
                given["has_names"],
                given.get("is_ordered", False),
                given.get("index_column"),
                given.get("drops_gaps", False),
                donors,
            )
            truths = encoding.has_names, encoding.is_ordered, encoding.drops_gaps
            index = encoding.index_column
            plain = all(map(_is_plain, columns))
            plain &= index is None or type(index) is str
            plain &= all(type(truth) is bool for truth in truths)
            marks = options.pop("na_values", None) or ()
            plain &= all(map(_is_mark, marks))
            plain &= all(
                value is None or type(value) in (str, int) for value in options.values()
            )
        except (TypeError, KeyError, ValueError, AttributeError):
            plain = False
        if not plain or set(options) - set(TEXT_OPTIONS):
            raise InputError("encoding does not describe the columns of a table")
        return encoding


def _restored_column(fields: dict[str, Any]) -> EncodedColumn:
    """Return a column from a JSON object; models before 0.4 have fewer fields."""
    form = fields.get("form")
    restored = {
        "categories": tuple(fields["categories"]),
        "form": None if form is None else CellForm.restore(form),
        "marks": tuple(map(float, fields.get("marks", ()))),
    }
    return EncodedColumn(**fields | restored)


def _marks_before_04(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the missing-value marks of a model before 0.4, split at commas."""
    marks: list[Any] = []
    for mark in options.get("na_values") or ():
        if type(mark) is str:
            marks += [mark, *mark.split(",")]
        else:
            name, text = mark
            marks += [(name, piece) for piece in (text, *text.split(","))]
    return {"na_values": tuple(dict.fromkeys(marks))} if marks else {}


def _as_tuples(value: Any) -> Any:
    """Convert lists, including nested ones, to tuples."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _is_mark(mark: Any) -> bool:
    """Return whether a value is a mark: a text, or a pair of a column and a text."""
    is_pair = type(mark) is tuple and len(mark) == 2
    return all(type(text) is str for text in (mark if is_pair else (mark,)))


def _is_plain(column: EncodedColumn) -> bool:
    """Return whether all fields have valid values."""
    texts = (column.name, column.kind, column.why, column.block, *column.categories)
    is_fill = column.fill is None or (
        type(column.fill) is float and abs(column.fill) < float("inf")
    )
    is_known = column.kind in KINDS and column.angle in ANGLES
    return all(type(text) is str for text in texts) and is_known and is_fill

"""The encoding of a table's columns as numbers, which later rows must share."""

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
    """Rules for converting the text cells of a column to values.

    Attributes
    ----------
    kind : {"number", "flag", "date", "time", "text", "order"}
        Type of the values. "time" means times of day or durations. "order" means
        ordered categories, which are converted to their ranks, counted from 0.
    decimal, thousands : str
        Decimal separator and thousands separator of numbers. If ``thousands`` is "",
        numbers have no thousands separator.
    unit : str
        Unit of the numbers; "" if they have none.
    factors : tuple of (str, float)
        Spellings of the unit, such as "$K" for thousands of dollars, and the factor by
        which a number with this spelling is multiplied. A number without a unit is
        multiplied by the factor of "", or by 1 if "" is not listed.
    formats : tuple of str
        Date formats for `pandas.to_datetime`.
    is_minutes : bool
        Whether a time such as 3:45 means minutes and seconds, not hours and minutes.
    is_clock : bool
        Whether times are times of day, not durations.
    levels : tuple of tuple of str
        Equivalent texts of each ordered category; messages show the first text.
    by_keys : bool
        Whether matching a cell with ``levels`` ignores case, punctuation, and a number
        before or after the text.
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
        """Restore a form from a JSON object.

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
        """Text that messages show for each category of an ordinal column."""
        return tuple(level[0] for level in self.levels)


@dataclass(frozen=True)
class EncodedColumn:
    """The encoding of one column of a table.

    Attributes
    ----------
    name : str
        Name of the column, or its index if the table has no header.
    kind : {"number", "flag", "text", "order", "date", "time", "left out"}
        Type of the values; "left out" if the column is not used as a feature.
    categories : tuple of str
        Sorted categories of a text column; "" is the category of missing cells.
    fill : float or None
        Number that replaces missing cells: the median or mean of the column in the fit.
        None if missing cells are not filled.
    why : str
        Reason for leaving the column out; "" if it is used.
    form : CellForm or None
        How text cells are converted to values; None if the column had no text cells.
    marks : tuple of float
        Numbers that are treated as missing, because they marked missing values in the
        fit.
    block : str
        Name of the list column of which this column is one element; "" for other
        columns. All elements of a list together have the weight of one column.
    angle : {"", "sin", "cos"}
        Coordinate of a time of day on a circle; "" for other columns. The sine and
        cosine columns of a time of day have the same name.
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
        """Return the column with the decimal and thousands marks in ``given``."""
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
        """Names of the features derived from this column, such as ``colour_red``."""
        if self.kind != "text":
            name = f"{self.name}_{self.angle}" if self.angle else self.name
            return [] if self.kind == "left out" else [name]
        gap = "" if "missing" in self.categories else "missing"
        return [f"{self.name}_{text or gap}" for text in self.categories]


@dataclass(frozen=True)
class Encoding:
    """The encoding of the columns of a table, and options for parsing its cells.

    Attributes
    ----------
    columns : tuple of EncodedColumn
        Encoding of each column, including columns that are left out.
    options : tuple of (str, value)
        Options for parsing cells; see `mmcnb.read_table`.
    has_names : bool
        Whether the table has a header.
    is_ordered : bool
        Whether data frames passed after the fit must have their columns in this order,
        as scikit-learn requires of numeric features.
    index_column : str or None
        Name of the column that contains row names. Tables passed after the fit may
        contain it too. None if there is no such column.
    drops_gaps : bool
        Whether rows with missing cells were left out.
    donors : Donors or None
        Rows from which missing cells are filled. If None, missing cells are filled with
        the ``fill`` value of their column.
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
        """Value of the option ``missing`` with which rows are encoded after the fit."""
        return "median" if self.donors is None else "neighbors"

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of the table, or None if the table has no header."""
        return self.names_or_numbers if self.has_names else None

    @property
    def names_or_numbers(self) -> list[str]:
        """Names of the columns of the table or, if it has no header, their indices."""
        return [column.name for column in self.columns if column.angle != "cos"]

    @property
    def features(self) -> list[EncodedColumn]:
        """Columns of the table that are not left out."""
        return [column for column in self.columns if column.kind != "left out"]

    @property
    def is_plain(self) -> bool:
        """Whether all columns of the table are numeric or Boolean."""
        return all(column.kind in ("number", "flag") for column in self.columns)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the order of the features."""
        return [name for column in self.features for name in column.feature_names]

    @property
    def n_categories(self) -> list[int | None]:
        """Number of categories per column in `features`; None for a numeric column."""
        return [len(column.categories) or None for column in self.features]

    @property
    def sources(self) -> list[str] | None:
        """Name of the table column of each feature; None if it is the feature's name.

        All elements of a list come from one column. If the elements of one list column
        are the only features, each list is treated as a row, and the result is None.
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
        """The categories of each ordinal column, in the order of their codes."""
        orders = {}
        for column in self.features:
            if column.kind == "order" and column.form is not None:
                orders[column.name] = column.form.shown_levels
        return orders

    def of_stored_numbers(self) -> "Encoding":
        """Return the encoding for a store that contains the converted table."""
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
        """Return the encoding with the decimal and thousands marks in ``given``."""
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
        """Return the encoding of numeric columns whose missing values donors fill."""
        columns = []
        for k, values in enumerate(donors.rows.T):
            known = values[~np.isnan(values)]
            fill = float(np.median(known)) if known.size else 0.0
            name = names[k] if names else str(k)
            columns.append(EncodedColumn(name, "number", fill=fill))
        return cls(tuple(columns), (), has_names=names is not None, donors=donors)

    @classmethod
    def restore(cls, given: Any, donors: Donors | None = None) -> "Encoding":
        """Restore an encoding from a result of `to_dict`, and add its donors.

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
    """Restore a column from a JSON object.

    Columns in models from before version 0.4 have fewer fields.
    """
    form = fields.get("form")
    restored = {
        "categories": tuple(fields["categories"]),
        "form": None if form is None else CellForm.restore(form),
        "marks": tuple(map(float, fields.get("marks", ()))),
    }
    return EncodedColumn(**fields | restored)


def _marks_before_04(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the option ``na_values`` of a model from before version 0.4.

    Each missing-value mark that contains commas is also split at the commas.
    """
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
    """Return whether a value is a missing-value mark: a str, or (column, str)."""
    is_pair = type(mark) is tuple and len(mark) == 2
    return all(type(text) is str for text in (mark if is_pair else (mark,)))


def _is_plain(column: EncodedColumn) -> bool:
    """Return whether the fields of a restored column have valid values."""
    texts = (column.name, column.kind, column.why, column.block, *column.categories)
    is_fill = column.fill is None or (
        type(column.fill) is float and abs(column.fill) < float("inf")
    )
    is_known = column.kind in KINDS and column.angle in ANGLES
    return all(type(text) is str for text in texts) and is_known and is_fill

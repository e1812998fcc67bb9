"""The columns of a table as numbers, so that other rows become the same ones."""

from dataclasses import asdict, dataclass
from typing import Any

from mmcnb.errors import InputError

TEXT_OPTIONS = ("header", "na_values", "thousands", "decimal", "delimiter")
KINDS = ("number", "flag", "text", "date", "left out")


@dataclass(frozen=True)
class EncodedColumn:
    """One column of a table.

    Attributes
    ----------
    name : str
        Its number if the table has no header.
    kind : {"number", "flag", "text", "date", "left out"}
    categories : tuple of str
        Of text, sorted; a gap is the empty one.
    fill : float or None
        The number of a gap, the median of the fit or its mean; None if gaps are not
        filled.
    why : str
        Why it is left out.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    fill: float | None = None
    why: str = ""

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns that it becomes, such as ``colour_red``."""
        if self.kind != "text":
            return [] if self.kind == "left out" else [self.name]
        gap = "" if "missing" in self.categories else "missing"
        return [f"{self.name}_{text or gap}" for text in self.categories]


@dataclass(frozen=True)
class Encoding:
    """The columns of a table that may be features, and how its cells are read.

    Attributes
    ----------
    columns : tuple of EncodedColumn
    options : tuple of (str, value)
        Options of cells; see `mmcnb.read_table`.
    has_names : bool
        Whether the table has a header.
    """

    columns: tuple[EncodedColumn, ...]
    options: tuple[tuple[str, Any], ...]
    has_names: bool = True

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of the table; None if it has no header."""
        return [column.name for column in self.columns] if self.has_names else None

    @property
    def features(self) -> list[EncodedColumn]:
        """Columns that are features."""
        return [column for column in self.columns if column.kind != "left out"]

    @property
    def is_plain(self) -> bool:
        """Whether each column is a number already."""
        return all(column.kind in ("number", "flag") for column in self.columns)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of numbers."""
        return [name for column in self.features for name in column.feature_names]

    @property
    def sources(self) -> list[str] | None:
        """The table's column of each column of numbers; None if none is of a text."""
        if not any(column.kind == "text" for column in self.columns):
            return None
        return [column.name for column in self.features for _ in column.feature_names]

    def to_dict(self) -> dict[str, Any]:
        """The encoding as a JSON object."""
        return asdict(self)

    @classmethod
    def restore(cls, given: Any) -> "Encoding":
        """The encoding of a result of `to_dict`.

        Raises
        ------
        InputError
            It is none that a fit has written.
        """
        try:
            listed = [
                one | {"categories": tuple(one["categories"])}
                for one in given["columns"]
            ]
            columns = tuple(EncodedColumn(**one) for one in listed)
            options = {
                name: tuple(one) if isinstance(one, list) else one
                for name, one in given["options"]
            }
            encoding = cls(columns, tuple(options.items()), given["has_names"])
            plain = all(map(_is_plain, columns)) and type(encoding.has_names) is bool
            marks = options.pop("na_values", None) or ()
            plain &= all(
                text is None or type(text) is str
                for text in (*options.values(), *marks)
            )
        except (TypeError, KeyError, ValueError):
            plain = False
        if not plain or set(options) - set(TEXT_OPTIONS):
            raise InputError("encoding is none of a table")
        return encoding


def _is_plain(column: EncodedColumn) -> bool:
    """Whether all fields have values that they may have."""
    texts = (column.name, column.kind, column.why, *column.categories)
    is_fill = column.fill is None or (
        type(column.fill) is float and abs(column.fill) < float("inf")
    )
    return all(type(text) is str for text in texts) and column.kind in KINDS and is_fill

"""Messages about columns and cells that cannot be converted, each with a remedy."""

from collections.abc import Hashable

from mmcnb.errors import InputError
from mmcnb.tables.columns import MOST_DISTINCT

_DROP = "leave the column out{drop}"
FAULTS = {
    "text": (
        "{cell} is not a number",
        f"make a 0/1 column for each text with --categories one-hot, or {_DROP} "
        "(name a column of class labels with --label-column, and one of row names with "
        "--index-column)",
    ),
    "date": (
        "{cell} is a date or time, not a number",
        f"convert dates to seconds with --dates epoch, or {_DROP}",
    ),
    "time": ("{cell} is a time, not a number", _DROP),
    "date order": (
        "{cell} may begin with the day or the month",
        "specify which comes first with --dates day-first or --dates month-first",
    ),
    "documents": (
        "its texts are documents",
        "convert them to numbers first, for example by TF-IDF (scikit-learn's "
        f"TfidfVectorizer) or by an embedding model, or {_DROP}",
    ),
    "other": (
        "{cell} has type {type} and is not a number",
        f"name it in no option that selects columns (--keep, --columns), or {_DROP}",
    ),
    "cell": ("{cell} is not a number", f"correct it, or {_DROP}"),
    "flag cell": ("{cell} is neither true nor false", f"correct it, or {_DROP}"),
    "date cell": (
        "{cell} is not a date, unlike the cells before it",
        f"correct it, or {_DROP}",
    ),
    "order cell": (
        "{cell} is not among the ordered texts of its column",
        f"correct it, or {_DROP}",
    ),
    "order": (
        "{n_wrong:,} of {n_cells:,} cells, such as {cell}, are not in the given order",
        "add their texts to the order with {order}, treat them as missing with "
        f"--na-values {{mark}}, or {_DROP}",
    ),
    "gap": (
        "the cell {cell}",
        "correct it, leave such rows out with --missing drop, or fill such cells with "
        "the median of their column by --missing median{hint}",
    ),
    "empty row": (
        "the row has no value in the columns that are used",
        "leave out all rows with missing cells with --missing drop, or fill them with "
        "the medians of the columns by --missing median",
    ),
    "cut row": (
        "the last line is incomplete, so the file seems to be truncated",
        "get it again, or remove this line",
    ),
    "infinite": (
        "the cell is infinite",
        "correct it, or treat such cells as missing with --na-values inf,-inf",
    ),
    "large": ("{cell} is too large for {type}", "use float64 (--dtype float64)"),
    "no class": (
        "the class label is missing",
        "fill it in, or leave such rows out with --missing drop",
    ),
    "class": (
        "label {cell} is not an integer, unlike the labels before it",
        "correct it, or use text labels in all rows",
    ),
    "row name": ("the row name is missing", f"fill it in, or {_DROP}"),
    "no value": ("no cell has a value", _DROP),
    "no value in an array": (
        "no row has a value",
        "leave the column out, for example by numpy.delete(X, {position}, axis=1)",
    ),
    "categories": (
        f"it has more than {MOST_DISTINCT} different texts, too many for categories",
        _DROP,
    ),
}
"""Description and remedy of each kind of fault in a column or cell."""


class Faults(dict[Hashable, tuple[str, str, int]]):
    """All faults of a table, with one entry for each kind of fault in a column.

    An entry contains the first occurrence, its remedy, and the number of occurrences.

    Examples
    --------
    >>> from mmcnb.tables.faults import Faults
    >>> faults = Faults()
    >>> faults.add("a", "rows.csv, line 3: 'x' is not a number", "correct it", 2)
    >>> try:
    ...     faults.check()
    ... except ValueError as error:
    ...     print(error)
    rows.csv, line 3: 'x' is not a number (and 1 more): correct it.
    """

    def add(self, key: Hashable, fault: str, remedy: str, count: int = 1) -> None:
        """Add occurrences of a fault.

        Parameters
        ----------
        key : hashable
            Kind of fault, or a tuple of the kind and the column index.
        fault : str
            Place and description of the first occurrence, which represents all faults
            with the same key.
        remedy : str
            How the user can correct the fault.
        count : int, default=1
            Number of occurrences.
        """
        first_fault, first_remedy, n_before = self.get(key, (fault, remedy, 0))
        self[key] = (first_fault, first_remedy, n_before + count)

    def forget(self, position: int) -> None:
        """Remove the faults of a column that is left out."""
        for key in [key for key in self if _position(key) == position]:
            del self[key]

    def check(self) -> None:
        """Raise InputError if there are any faults.

        Raises
        ------
        InputError
            If there are faults. The message has one sentence for each of the first ten
            kinds.
        """
        sentences = []
        # Sorting by column makes the message independent of how rows are split.
        for key in sorted(self, key=_position):
            fault, remedy, count = self[key]
            more = f" (and {count - 1:,} more)" if count > 1 else ""
            sentences.append(f"{fault}{more}: {remedy}.")
        if len(sentences) > 10:
            sentences[10:] = [f"There are {len(sentences) - 10} more such faults."]
        if sentences:
            raise InputError(" ".join(sentences))


def _position(key: Hashable) -> int:
    """Return the column index of a fault, or -1 if it does not concern a column."""
    return key[1] if isinstance(key, tuple) else -1

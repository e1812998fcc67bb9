"""Columns and cells that cannot be taken: one sentence each, with a remedy."""

from collections.abc import Hashable

from mmcnb.errors import InputError
from mmcnb.tables.columns import MOST_DISTINCT

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
    "time": ("{cell} is a time and not a number", _DROP),
    "date order": (
        "{cell} may have the day or the month first",
        "say which with --dates day-first or --dates month-first",
    ),
    "documents": (
        "its texts are documents",
        "turn them into numbers first, such as by TF-IDF with scikit-learn's "
        f"TfidfVectorizer or by an embedding model, or {_DROP}",
    ),
    "other": (
        "{cell} is of type {type} and not a number",
        f"{_DROP}, or write a number instead",
    ),
    "cell": ("{cell} is not a number", f"correct it, or {_DROP}"),
    "flag cell": ("{cell} is neither true nor false", f"correct it, or {_DROP}"),
    "date cell": ("{cell} is no date as those before", f"correct it, or {_DROP}"),
    "order cell": (
        "{cell} is none of the ordered texts of its column",
        f"correct it, or {_DROP}",
    ),
    "order": (
        "{n_wrong:,} of {n_cells:,} cells, such as {cell}, are not in the given order",
        "add their texts to it with {order}, make gaps of them with --na-values "
        f"{{mark}}, or {_DROP}",
    ),
    "gap": (
        "the cell {cell}",
        "correct it, leave such rows out with --missing drop, or take the median of "
        "the column with --missing median{hint}",
    ),
    "empty row": (
        "the row has no value in any column",
        "leave the row out, or take the medians of the columns with --missing median",
    ),
    "infinite": (
        "the cell is infinite",
        "correct it, or make gaps of such cells with --na-values inf,-inf",
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
    "no value in an array": (
        "no row has a value",
        "leave the column out, such as by numpy.delete(X, {position}, axis=1)",
    ),
    "categories": (
        f"there are more than {MOST_DISTINCT} different texts, which are no categories",
        _DROP,
    ),
}
"""The fault of a column or cell that cannot be taken, and the remedy."""


class Faults(dict[Hashable, tuple[str, str, int]]):
    """All faults of a table: each kind in a column once, with its place and count.

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
        """Add faults of a kind; the first one is shown."""
        first_fault, first_remedy, n_before = self.get(key, (fault, remedy, 0))
        self[key] = (first_fault, first_remedy, n_before + count)

    def forget(self, position: int) -> None:
        """Remove the faults of a column that is left out."""
        for key in [key for key in self if _position(key) == position]:
            del self[key]

    def check(self) -> None:
        """Raise if there is a fault, with one sentence for each kind.

        Raises
        ------
        InputError
            The message has up to ten of them.
        """
        sentences = []
        # By column, whatever the parts are in which rows come.
        for key in sorted(self, key=_position):
            fault, remedy, count = self[key]
            more = f" (and {count - 1:,} more)" if count > 1 else ""
            sentences.append(f"{fault}{more}: {remedy}.")
        if len(sentences) > 10:
            sentences[10:] = [f"There are {len(sentences) - 10} more such faults."]
        if sentences:
            raise InputError(" ".join(sentences))


def _position(key: Hashable) -> int:
    """Return the number of the column of a fault; -1 if it is of no column."""
    return key[1] if isinstance(key, tuple) else -1

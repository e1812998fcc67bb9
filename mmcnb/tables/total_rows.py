"""Find rows that seem to contain totals of other rows, such as subtotals."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.errors import shown
from mmcnb.tables.base import Part

# Names of products such as "Total Care" are not totals, so "total" must be followed by
# nothing, by a number, or by the rows that it adds up.
TOTAL_ALONE = (
    r"(?i)^(?:(?:grand |sub[- ]?)totals?\b.*|totals?(?: (?:of|for|per) .*| \d+)?"
    r"|sum|summe|gesamt|gesamtsumme|zwischensumme)\s*:?$"
)
MOST_NAMED = 10  # maximum number of rows named in the sentence
# If more than this share of the rows match, their text is a category and not a total.
LARGEST_SHARE = 0.05


class _TotalRow(NamedTuple):
    """A row that seems to contain totals: its number, and its name in messages."""

    number: int
    name: str


class TotalRows:
    """Rows whose first text is the name of a total.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.base import Part, row_place
    >>> from mmcnb.tables.total_rows import TotalRows
    >>> texts = pa.array([*["oak"] * 20, "Subtotal", "fir"], pa.large_string())
    >>> totals = TotalRows()
    >>> totals.add(texts, Part({}, 22, row_place(0)), 0)
    >>> totals.sentence(22, is_last_known=False)
    "row 20 ('Subtotal') was read as a row: remove it if it sums up other rows."
    """

    def __init__(self) -> None:
        self._n_rows = 0
        self._rows: list[_TotalRow] = []

    def add(self, texts: pa.Array, part: Part, first: int) -> None:
        """Search the texts of a part.

        Parameters
        ----------
        texts : pyarrow.Array
            The first column of texts.
        part : Part
        first : int
            Number of rows before the part.
        """
        is_total = pc.match_substring_regex(texts, TOTAL_ALONE)
        rows = np.flatnonzero(np.asarray(pc.fill_null(is_total, False)))
        self._n_rows += rows.size
        if rows.size > max(1, LARGEST_SHARE * part.n_rows):
            return
        for row in rows[: MOST_NAMED + 1 - len(self._rows)].tolist():
            name = f"{part.place(row)} ({shown(texts[row].as_py())})"
            self._rows.append(_TotalRow(first + row, name))

    def sentence(self, n_rows: int, is_last_known: bool) -> str:
        """Return a sentence that names the rows, or "" if there are none.

        Parameters
        ----------
        n_rows : int
            Number of rows of the table.
        is_last_known : bool
            Whether another sentence names the last row.
        """
        if self._n_rows > max(1, LARGEST_SHARE * n_rows):
            return ""
        is_left_out = is_last_known and any(
            row.number == n_rows - 1 for row in self._rows
        )
        n_others = self._n_rows - is_left_out
        names = [row.name for row in self._rows if row.number < n_rows - is_left_out]
        names = names[:MOST_NAMED]
        if not names:
            return ""
        if n_others == 1:
            return f"{names[0]} was read as a row: remove it if it sums up other rows."
        listed = ", ".join(names)
        if n_others > len(names):
            listed += f" and {n_others - len(names):,} more"
        return f"{listed} were read as rows: remove them if they sum up other rows."

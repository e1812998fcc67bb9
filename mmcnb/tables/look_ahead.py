"""What is learned of all rows before the first is written: categories and medians."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mmcnb.columns.gaps import donor_numbers
from mmcnb.tables.columns import GAP, MOST_DISTINCT, Role, TableColumn


class Categories:
    """Different texts of each feature that is text, by its number.

    They are numbered as they come. A feature has over 1,000 of them if it has too many.
    """

    def __init__(self, features: Sequence[TableColumn], takes_gaps: bool) -> None:
        self._takes_gaps = takes_gaps
        self.texts: dict[int, dict[str, int]] = {}
        for k, column in enumerate(features):
            if column.role is Role.ONE_HOT:
                self.texts[k] = {}

    def add(
        self, values: list[pa.Array], is_kept: np.ndarray, block: np.ndarray
    ) -> None:
        """Add the texts of the next rows; a gap is a category or is passed over.

        The block of the rows gets the numbers of the texts, and NaN for others.
        """
        mask = pa.array(is_kept)
        for k, known in self.texts.items():
            block[:, k] = np.nan
            if len(known) > MOST_DISTINCT:
                continue
            texts = values[k].filter(mask)
            if self._takes_gaps:
                texts = texts.fill_null(GAP)
            numbered = texts.dictionary_encode()
            of_part = numbered.dictionary.to_pylist()
            numbers = [known.setdefault(text, len(known)) for text in of_part]
            codes = np.asarray(numbered.indices.fill_null(len(numbers)))
            block[is_kept, k] = np.array([*numbers, np.nan])[codes]

    def in_order(self, k: int) -> np.ndarray:
        """Return the number of each text of a feature in sorted order."""
        texts = [*self.texts[k]]
        order = sorted(range(len(texts)), key=texts.__getitem__)
        return np.argsort(order).astype(np.float64)


class Medians:
    """Rows at equal distances, from which medians are taken, and counts of gaps.

    There are at least 250 rows if the table has so many. They do not depend on the
    parts in which rows come.
    """

    def __init__(self, width: int) -> None:
        self._parts = [np.empty((0, width))]
        self._most = max(250, 2**20 // width)  # 8 MiB of numbers
        self.step = 1
        self.n_gaps = np.zeros(width, int)

    def add(self, block: np.ndarray, start: int) -> None:
        """Add the next rows; ``start`` is the number of the first."""
        self.n_gaps += np.isnan(block).sum(axis=0)
        first = -start % self.step
        rows = block[first :: self.step]
        # A copy, so that no view keeps all rows in memory.
        self._parts.append(rows.astype(np.float64))
        while sum(map(len, self._parts)) > self._most:
            all_rows = np.concatenate(self._parts)
            self._parts = [all_rows[::2]]
            self.step *= 2

    def column(self, k: int) -> np.ndarray:
        """Return the values of a feature, ``step`` rows apart."""
        return np.concatenate([part[:, k] for part in self._parts])

    def some_rows(self) -> np.ndarray:
        """Return the rows that become donors, with all features."""
        rows = np.concatenate(self._parts)
        return rows[donor_numbers(*rows.shape)]

    def fill(self, k: int, missing: str) -> float:
        """Return the median or the mean of a feature; NaN if it is empty."""
        values = np.sort(self.column(k))  # NaN comes last
        n_known = np.isfinite(values).sum()
        if n_known == 0:
            return np.nan
        if missing == "mean":
            return float(values[:n_known].mean())
        middle = values[(n_known - 1) // 2 : n_known // 2 + 1]
        return float(middle.mean())

"""Collect categories and medians in a first pass over all rows."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mmcnb.columns.gaps import donor_numbers
from mmcnb.tables.columns import GAP, MOST_DISTINCT, Role, TableColumn


class Categories:
    """Distinct texts of each text feature, numbered in order of appearance.

    Collecting stops when a feature has more than 1,000 distinct texts, which are too
    many for categories.

    Parameters
    ----------
    features : sequence of TableColumn
    takes_gaps : bool
        Whether missing texts are a separate category.

    Attributes
    ----------
    texts : dict of int to dict of str to int
        The number of each text of a feature, by the index of the feature and then by
        the text.
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
        """Add the texts of the next rows.

        Parameters
        ----------
        values : list of pyarrow.Array
            For each feature, its values in these rows.
        is_kept : ndarray of bool
            Mask of the rows that are kept. The texts of other rows are ignored.
        block : ndarray of shape (n_rows, n_features)
            The values as numbers. The columns of text features are overwritten with the
            numbers of the texts; texts that are missing or ignored become NaN.
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
        """Return the rank of each text of a feature in sorted order."""
        texts = [*self.texts[k]]
        order = sorted(range(len(texts)), key=texts.__getitem__)
        return np.argsort(order).astype(np.float64)


class Medians:
    """Sample of equally spaced rows for medians and donors, and missing-value counts.

    Whenever the sample has too many rows, every second row is dropped, so that at least
    125 rows remain unless the table is shorter. The sample does not depend on how the
    rows are split into blocks.

    Parameters
    ----------
    width : int
        Number of features.

    Attributes
    ----------
    step : int
        Distance between the sampled rows, in rows of the table.
    n_gaps : ndarray of shape (width,)
        Number of missing values of each feature, in all rows.
    """

    def __init__(self, width: int) -> None:
        self._parts = [np.empty((0, width))]
        self._most = max(250, 2**20 // width)  # 8 MiB of numbers, but at least 250 rows
        self.step = 1
        self.n_gaps = np.zeros(width, int)

    def add(self, block: np.ndarray, start: int) -> None:
        """Add the next rows, which begin at the row index ``start`` of the table."""
        self.n_gaps += np.isnan(block).sum(axis=0)
        first = -start % self.step
        rows = block[first :: self.step]
        # The conversion makes a copy; a view would keep the whole block in memory.
        self._parts.append(rows.astype(np.float64))
        while sum(map(len, self._parts)) > self._most:
            all_rows = np.concatenate(self._parts)
            self._parts = [all_rows[::2]]
            self.step *= 2

    def column(self, k: int) -> np.ndarray:
        """Return the values of a feature in the sampled rows."""
        return np.concatenate([part[:, k] for part in self._parts])

    def some_rows(self) -> np.ndarray:
        """Return the sampled rows from which donors are made."""
        rows = np.concatenate(self._parts)
        return rows[donor_numbers(*rows.shape)]

    def fill(self, k: int, missing: str) -> float:
        """Return the number that fills missing values of a feature.

        The number is NaN if the feature has no finite value in the sampled rows.

        Parameters
        ----------
        k : int
            Zero-based index of the feature.
        missing : str
            If "mean", the number is the mean of the feature in the sampled rows;
            otherwise, it is the median.
        """
        values = np.sort(self.column(k))  # NaN comes last
        n_known = np.isfinite(values).sum()
        if n_known == 0:
            return np.nan
        if missing == "mean":
            return float(values[:n_known].mean())
        middle = values[(n_known - 1) // 2 : n_known // 2 + 1]
        return float(middle.mean())

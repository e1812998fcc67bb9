"""Choose the steps of columns with few values: the distances between their values.

If the step of texts is too short, a single numeric column outweighs many texts. If it
is too long, each combination of categories becomes a cluster of its own, and numeric
columns have no influence. Texts that are independent of each other have no cluster
structure, so they get a short step.

Numeric columns with few levels, such as counts, flags and grades, have gaps between
their levels, but these gaps do not separate clusters. If the clusters of the other
columns are narrow, each level would become a cluster of its own, so the steps between
levels are shortened.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from mmcnb.columns.kinds import SampleColumns

SHORT = 0.35
LONGER = (0.5, 0.7, 1.0)
# Steps for texts that are independent of each other, in tables with two or more numeric
# columns in which rows are close to each other. At longer steps, each combination of
# categories would be a cluster of its own.
SHORTER = (0.25, 0.175, 0.125, 0.09, 0.06)
# Factors for the steps between levels. The first factor is selected at which the share
# of neighbours with the same levels as the row is small enough: 1 minus this share is
# at least 1 - MOST_ALIKE_LEVELS of its value for the rows that are nearest in the other
# columns alone. `python -m benchmarks columns --part levels` shows the effect.
FACTORS = (0.7, 0.5, 0.35, 0.25, 0.18, 0.125, 0.09)
MOST_ALIKE_LEVELS = 0.4
# Texts are associated if the bias-corrected squared Cramér's V, averaged over all pairs
# of texts, is at least this. The average is 0.02 to 0.03 if half of 6 to 20 texts
# reflect clusters, and less than 0.001 if texts are independent.
LEAST_ASSOCIATION = 0.01
# The step is reduced while more than this share of the neighbours of a row has the same
# combination of categories as the row. It is not reduced if this also holds for the
# rows that are nearest in the numeric columns alone.
NEARLY_ALL_ALIKE = 0.8
# Bounds for the neighbours of a row at a given step. MOST_ALIKE limits the share of
# neighbours with the same combination of categories as the row. MOST_FARTHER limits the
# mean squared distance of neighbours in the numeric columns: its excess over the mean
# for the rows nearest in these columns alone, divided by the mean for all rows. Both
# were chosen by `python -m benchmarks columns --part texts`.
MOST_ALIKE = 0.2
MOST_FARTHER = 0.12
N_NEIGHBOURS = 10
N_QUERIES = 200
MOST_ROWS = 4000


def step_of_texts(columns: SampleColumns, numbers: np.ndarray) -> float:
    """Return the longest step at which neighbours differ in texts, not in numbers.

    If the texts are not associated with each other, the step is 0.35, or less if more
    than 80 % of the neighbours of a row would have the same texts as the row.
    Neighbours are searched among distinct rows, so that weighting a row and repeating
    the row have the same effect.

    Parameters
    ----------
    columns : SampleColumns
        Columns of the sample, some of which are texts.
    numbers : ndarray of shape (m, d)
        The other columns of the sample, scaled.

    Returns
    -------
    float
        Distance between two categories of a text, in tables whose numeric columns are
        scaled to standard deviation 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.kinds import SampleColumns
    >>> from mmcnb.columns.steps import step_of_texts
    >>> rng = np.random.default_rng(0)
    >>> numbers = rng.normal(size=(900, 4))
    >>> words = (rng.integers(0, 3, (900, 1)) + rng.integers(0, 2, (900, 8))) % 3
    >>> texts = np.eye(3)[words].reshape(900, 24)
    >>> sources = [*"abcd", *np.repeat(list("efghijkl"), 3)]
    >>> columns = SampleColumns(np.c_[numbers, texts], np.ones(900), sources)
    >>> step_of_texts(columns, numbers)
    0.7
    """
    rows = _distinct_rows(columns)
    spaced = _spaced(rows, MOST_ROWS)
    n_nearest = max(1, round(N_NEIGHBOURS * spaced.size / rows.size))
    texts = np.flatnonzero(columns.is_text).tolist()
    codes = [columns.codes(k)[spaced] for k in texts]
    if spaced.size <= 2 * n_nearest:
        return SHORT
    are_associated = _association(codes) >= LEAST_ASSOCIATION
    if numbers.shape[1] == 1 and not are_associated:
        return SHORT
    pairs = _pairs(numbers[spaced], _n_unlike(codes))
    in_numbers = pairs.neighbours(0.0, n_nearest)
    step = SHORT
    if not are_associated:
        if in_numbers.alike > NEARLY_ALL_ALIKE:
            return step
        for shorter in SHORTER:
            if pairs.neighbours(step, n_nearest).alike <= NEARLY_ALL_ALIKE:
                break
            step = shorter
        return step
    most_far = in_numbers.far + MOST_FARTHER * pairs.mean_far
    for longer in LONGER:
        nearest = pairs.neighbours(longer, n_nearest)
        if nearest.alike > MOST_ALIKE or nearest.far > most_far:
            break
        step = longer
    return step


def factor_of_levels(
    columns: SampleColumns, levels: np.ndarray, numbers: np.ndarray
) -> float:
    """Return the factor by which the steps between levels are shortened.

    Neighbours are searched among distinct rows, as for `step_of_texts`.

    Parameters
    ----------
    columns : SampleColumns
        Columns of the sample.
    levels : ndarray of shape (m, c)
        The numeric columns with few levels, scaled.
    numbers : ndarray of shape (m, d)
        The other numeric columns, scaled.

    Returns
    -------
    float
        1 if the nearest rows differ in their levels nearly as much as the rows that are
        nearest in ``numbers`` alone; otherwise between 0.09 and 0.7.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.kinds import SampleColumns
    >>> from mmcnb.columns.steps import factor_of_levels
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 2, (900, 1))
    >>> narrow = kind + rng.normal(0, 0.25, (900, 3))
    >>> counts = rng.poisson(1, size=(900, 1)).astype(float)
    >>> columns = SampleColumns(np.c_[counts, narrow], np.ones(900))
    >>> factor_of_levels(columns, counts, narrow)
    0.125
    >>> factor_of_levels(columns, 1.0 * kind, narrow)
    1.0
    """
    rows = _distinct_rows(columns)
    spaced = _spaced(rows, MOST_ROWS)
    n_nearest = max(1, round(N_NEIGHBOURS * spaced.size / rows.size))
    if spaced.size <= 2 * n_nearest:
        return 1.0
    pairs = _pairs(numbers[spaced], _squared_distances(levels[spaced]))
    by_numbers = pairs.neighbours(0.0, n_nearest).alike
    most_alike = by_numbers + MOST_ALIKE_LEVELS * (1 - by_numbers)
    factor = 1.0
    for smaller in FACTORS:
        if pairs.neighbours(factor, n_nearest).alike <= most_alike:
            break
        factor = smaller
    return factor


class _Neighbours(NamedTuple):
    """Share of neighbours with the same values, and their mean squared distance.

    The values are the texts or the levels. The distance is in the numeric columns.
    """

    alike: float
    far: float


class _Pairs(NamedTuple):
    """Distances between q query rows and all r rows.

    Attributes
    ----------
    far : ndarray of shape (q, r)
        Squared distances in the numeric columns; infinite between a row and itself.
    unlike : ndarray of shape (q, r)
        Squared distances in the other columns at a step of 1: the number of texts in
        which the two rows differ, or the squared distance of their scaled levels.
    mean_far : float
        Mean of the finite values of ``far``.
    """

    far: np.ndarray
    unlike: np.ndarray
    mean_far: float

    def neighbours(self, step: float, n_nearest: int) -> _Neighbours:
        """Return statistics of the rows that are nearest to each query row.

        ``step`` is the step of texts or levels. Rows that are tied with the last of the
        ``n_nearest`` rows are included.
        """
        distances = self.far + step**2 * self.unlike
        last = np.partition(distances, n_nearest - 1, axis=1)[:, n_nearest - 1]
        is_nearest = distances <= last[:, None]
        alike = (self.unlike[is_nearest] == 0).mean()
        return _Neighbours(float(alike), float(self.far[is_nearest].mean()))


def _pairs(numbers: np.ndarray, unlike: np.ndarray) -> _Pairs:
    n_rows = len(numbers)
    far = _squared_distances(numbers)
    mean_far = far.sum() / (far.size - len(far))
    far[np.arange(len(far)), _queries(n_rows)] = np.inf
    return _Pairs(far, unlike, mean_far)


def _queries(n_rows: int) -> np.ndarray:
    return _spaced(np.arange(n_rows), N_QUERIES)


def _squared_distances(numbers: np.ndarray) -> np.ndarray:
    """Return the squared distance from each query row to each row.

    The query rows are evenly spaced among all rows.
    """
    queries = _queries(len(numbers))
    far = np.zeros((queries.size, len(numbers)))
    # Columns are sorted, so that the sums do not depend on their order in the table.
    for values in sorted(numbers.T.astype(np.float64), key=np.ndarray.tobytes):
        far += (values[queries, None] - values) ** 2
    return far


def _n_unlike(codes: list[np.ndarray]) -> np.ndarray:
    """Return the number of text columns in which a query row and a row differ.

    There is one row for each query row, and one column for each row of the sample.
    """
    queries = _queries(len(codes[0]))
    n_unlike = np.zeros((queries.size, len(codes[0])))
    for values in codes:
        n_unlike += values[queries, None] != values
    return n_unlike


def _association(codes: list[np.ndarray]) -> float:
    """Return the mean squared Cramér's V of all pairs of texts, with bias correction.

    Parameters
    ----------
    codes : list of ndarray
        Category codes of each text column.
    """
    tables = []
    for values in codes:
        categories = np.unique(values)
        if categories.size > 1:
            tables.append((values[:, None] == categories).astype(np.float64))
    if len(tables) < 2:
        return 0.0
    n_rows = len(tables[0])
    shares = [table.mean(axis=0) for table in tables]
    squares = []
    for first, second in combinations(range(len(tables)), 2):
        expected = np.outer(shares[first], shares[second])
        joint = tables[first].T @ tables[second] / n_rows
        freedom = np.array(expected.shape) - 1
        phi = ((joint - expected) ** 2 / expected).sum()
        phi -= freedom.prod() / (n_rows - 1)
        squares.append(phi / freedom.min())
    return float(np.mean(np.sort(squares)))


def _spaced(rows: np.ndarray, most: int) -> np.ndarray:
    """Return ``rows``, or ``most`` evenly spaced elements of it if it has more."""
    if rows.size <= most:
        return rows
    return rows[np.linspace(0, rows.size - 1, most).astype(np.int64)]


def _distinct_rows(columns: SampleColumns) -> np.ndarray:
    """Return the index of the first occurrence of each distinct row.

    The indices are sorted by a hash of the values, which depends neither on the order
    of the rows nor on the order of the columns.
    """
    keys = np.zeros(len(columns.rows), np.uint64)
    # The mean of a column seeds its hash. It is rounded to 24 bits, so that weights and
    # repeated rows give the same mean. Means too large for float32 become infinite.
    with np.errstate(over="ignore"):
        means = columns.moments[0].astype(np.float32).astype(np.float64)
    for values, mean in zip(columns.rows.T, means, strict=True):
        bits = (values.astype(np.float64) + 0.0).view(np.uint64)
        keys += _mixed(bits ^ _mixed(np.array([mean]).view(np.uint64)))
    return np.unique(keys, return_index=True)[1]


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Scramble the bits with the output function of SplitMix64.

    Sums of the results can serve as hashes.
    """
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))

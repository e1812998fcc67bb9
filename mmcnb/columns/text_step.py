"""The step of texts beside numbers: how far apart rows of two categories are.

If the step is short, a single number outweighs many texts. If it is long, rows with one
combination of categories become clusters of their own, or the numbers do not count.
Texts that tell nothing of each other have no clusters, so they get a short step.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from mmcnb.columns.kinds import SampleColumns

SHORTEST = 0.35
LONGER = (0.5, 0.7, 1.0)
# Mean of the squared Cramér's V of two texts, less what independent ones have: clusters
# in half of 6 to 20 texts give 0.02 to 0.03, and independent ones less than 0.001.
LEAST_ASSOCIATION = 0.01
# At most so many neighbours of a row may have its combination of categories, and so far
# beyond the nearest ones may they be in the numbers, in mean squared distances between
# any rows: `python -m benchmarks columns --part texts` has the tables.
MOST_ALIKE = 0.2
MOST_FARTHER = 0.12
N_NEIGHBOURS = 10
N_QUERIES = 200
MOST_ROWS = 4000


def step_of_texts(columns: SampleColumns, numbers: np.ndarray) -> float:
    """Return the longest step at which neighbours differ in texts, and not in numbers.

    The step is the shortest one if texts do not agree with each other. Neighbours are
    sought among distinct rows, so a weight is a repetition.

    Parameters
    ----------
    columns : SampleColumns
        Those of the sample, with texts.
    numbers : ndarray of shape (m, d)
        Its columns that are not of texts, scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.kinds import SampleColumns
    >>> from mmcnb.columns.text_step import step_of_texts
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
    if spaced.size <= 2 * n_nearest or _association(codes) < LEAST_ASSOCIATION:
        return SHORTEST
    pairs = _pairs(numbers[spaced], codes)
    nearest = _nearest(pairs.far, n_nearest)
    bound = pairs.far[nearest].mean() + MOST_FARTHER * pairs.mean_far
    step = SHORTEST
    for longer in LONGER:
        nearest = _nearest(pairs.far + longer**2 * pairs.n_unlike, n_nearest)
        alike = (pairs.n_unlike[nearest] == 0).mean()
        if alike > MOST_ALIKE or pairs.far[nearest].mean() > bound:
            break
        step = longer
    return step


class _Pairs(NamedTuple):
    """Some rows beside more, each of shape (q, r).

    Attributes
    ----------
    far : ndarray
        Squared distances in the numbers; infinite between a row and itself.
    n_unlike : ndarray
        How many texts differ.
    mean_far : float
        Mean of the finite distances.
    """

    far: np.ndarray
    n_unlike: np.ndarray
    mean_far: float


def _pairs(numbers: np.ndarray, codes: list[np.ndarray]) -> _Pairs:
    n_rows = len(numbers)
    queries = _spaced(np.arange(n_rows), N_QUERIES)
    far = np.zeros((queries.size, n_rows))
    n_unlike = np.zeros_like(far)
    # Sorted, so that sums do not depend on the order of the columns.
    for values in sorted(numbers.T.astype(np.float64), key=np.ndarray.tobytes):
        far += (values[queries, None] - values) ** 2
    for values in codes:
        n_unlike += values[queries, None] != values
    mean_far = far.sum() / (far.size - queries.size)
    far[np.arange(queries.size), queries] = np.inf
    return _Pairs(far, n_unlike, mean_far)


def _association(codes: list[np.ndarray]) -> float:
    """Return the mean squared Cramér's V of two texts, corrected for their rows."""
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


def _nearest(distances: np.ndarray, n_nearest: int) -> np.ndarray:
    """Return which are among the nearest, with all that are as near as the last."""
    last = np.partition(distances, n_nearest - 1, axis=1)[:, n_nearest - 1]
    return distances <= last[:, None]


def _spaced(rows: np.ndarray, most: int) -> np.ndarray:
    """Return up to ``most`` of some rows, evenly spaced."""
    if rows.size <= most:
        return rows
    return rows[np.linspace(0, rows.size - 1, most).astype(np.int64)]


def _distinct_rows(columns: SampleColumns) -> np.ndarray:
    """Return the first of each group of equal rows, in an order of no meaning.

    The order follows from the values, and not from the order of rows or columns.
    """
    keys = np.zeros(len(columns.rows), np.uint64)
    # To 24 bits, so that they are those of repeated rows; larger ones are infinite.
    with np.errstate(over="ignore"):
        means = columns.moments[0].astype(np.float32).astype(np.float64)
    for values, mean in zip(columns.rows.T, means, strict=True):
        bits = (values.astype(np.float64) + 0.0).view(np.uint64)
        keys += _mixed(bits ^ _mixed(np.array([mean]).view(np.uint64)))
    return np.unique(keys, return_index=True)[1]


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Return the output function of SplitMix64, as the columns of a sum need it."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))

"""Draw a sample of rows from any storage, and select the columns for displays."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from mmcnb._config import generator
from mmcnb._constraints import Interval
from mmcnb.engine.passes import sample_rows
from mmcnb.errors import InputError, shown
from mmcnb.samples import BLOCK_ROWS, Samples, open_samples
from mmcnb.samples.matrix import as_matrix, to_dense
from mmcnb.tables.options import options_of_fit

# Maximum shift of a point, as a fraction of the smallest difference between two
# distinct values.
MOST_MOVED = 0.3


class DrawnRows(NamedTuple):
    """Rows drawn at random.

    Attributes
    ----------
    samples : Samples
        The drawn rows, in memory.
    numbers : ndarray of shape (m,)
        Row numbers of the drawn rows in ``source``.
    source : Samples
        The rows from which the sample was drawn.
    """

    samples: Samples
    numbers: np.ndarray
    source: Samples


def draw_rows(estimator: Any, X: Any, sample_size: int, random_state: Any) -> DrawnRows:
    """Draw at most ``sample_size`` rows of ``X`` at random.

    ``X`` is any type of rows that the estimator accepts.

    Raises
    ------
    InputError
        If the rows cannot be read, or if ``sample_size`` is below 1.
    """
    Interval(1, integer=True).check("sample_size", sample_size)
    source = open_samples(X, options=options_of_fit(estimator))
    state = generator(random_state)
    numbers = sample_rows(source.n_samples, sample_size, None, state)
    samples = open_samples(as_matrix(source.gather(numbers)))
    samples.feature_names = source.feature_names
    return DrawnRows(samples, numbers, source)


def two_columns(
    samples: Samples, features: Any, labels: np.ndarray
) -> tuple[np.ndarray, tuple[str, str]]:
    """Return the values of two columns in all rows, and the names of the columns.

    Parameters
    ----------
    samples : Samples
        The rows.
    features : pair of int or None
        Indices of the two columns. None selects them by `separating_columns`.
    labels : ndarray of shape (n,)
        Cluster of each row.

    Raises
    ------
    InputError
        If ``features`` is not a pair of column indices.
    """
    d = samples.n_features
    if features is None:
        features = separating_columns(samples, labels)
    columns = list(features) if np.iterable(features) else []
    is_known = [isinstance(k, int | np.integer) and 0 <= k < d for k in columns]
    if is_known != [True, True]:
        raise InputError(
            f"features={shown(features)} are not two columns of X, which has {d} "
            f"columns; give two numbers from 0 to {d - 1}."
        )
    n = samples.n_samples
    parts = []
    for start in range(0, n, BLOCK_ROWS):
        rows = as_matrix(samples.block(start, min(start + BLOCK_ROWS, n)))
        parts.append(to_dense(rows[:, columns]))
    points = np.concatenate(parts)
    first, second = columns
    names = samples.feature_names
    if names is None:
        return points, (f"column {first}", f"column {second}")
    return points, (str(names[first]), str(names[second]))


def separating_columns(
    samples: Samples, labels: np.ndarray, most: int = 10_000
) -> list[int]:
    """Return the indices of the two columns with the largest F ratios, in order.

    The F ratio of a column is computed in at most ``most`` rows. It is computed for the
    values and, unless rows are sparse, for their squared distances from the mean,
    because clusters may be rings; the larger ratio is used. Columns with only two
    distinct values are selected only if fewer than two other columns exist, because
    their points overlap.
    """
    from sklearn.feature_selection import f_classif

    rows = sample_rows(samples.n_samples, most, None, generator(0))
    values = as_matrix(samples.gather(rows)).astype(np.float64)
    forms = [values]
    is_flag = np.zeros(samples.n_features, bool)
    if not issparse(values):
        above = values - values.min(axis=0)
        below = values.max(axis=0) - values
        is_flag = (above * below == 0).all(axis=0)
        forms.append((values - values.mean(axis=0)) ** 2)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # The ratio is undefined for a constant column or a single cluster.
        warnings.simplefilter("ignore")
        ratios = [f_classif(form, labels[rows])[0] for form in forms]
    ratio = np.nan_to_num(ratios, nan=-1.0).max(axis=0)
    return sorted(np.lexsort((-ratio, is_flag))[:2].tolist())


def spread_out(values: np.ndarray, seed: int) -> np.ndarray:
    """Add a small random shift to integers that many rows share.

    The shift is at most `MOST_MOVED` times the smallest difference between two distinct
    values, so that points with different values remain separate. Other values are
    returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.plotting._rows import spread_out
    >>> spread_out(np.array([1.0, 1.0, 2.0, 2.0]), seed=0).round(2).tolist()
    [1.03, 1.13, 2.06, 2.03]
    """
    distinct = np.unique(values)
    is_shared = 1 < distinct.size <= values.size / 2
    if not is_shared or (distinct % 1).any():
        return values
    step = float(np.diff(distinct).min())
    moves = np.random.RandomState(seed).uniform(-MOST_MOVED, MOST_MOVED, values.size)
    return values + step * moves

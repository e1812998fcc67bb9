"""Rows that displays draw, from any storage."""

import warnings
from typing import Any

import numpy as np

from mmcnb._config import generator
from mmcnb._constraints import Interval
from mmcnb.engine.passes import sample_rows
from mmcnb.errors import InputError, shown
from mmcnb.samples import BLOCK_ROWS, Samples, open_samples
from mmcnb.samples.matrix import as_matrix, to_dense
from mmcnb.tables.options import options_of_fit


def drawn_rows(
    estimator: Any, X: Any, sample_size: int, random_state: Any
) -> tuple[Samples, Samples, np.ndarray]:
    """At most so many rows of any storage, drawn at random; then all rows, and the numbers of those drawn.

    Raises
    ------
    InputError
        If the rows cannot be read, or ``sample_size`` is below 1.
    """
    Interval(1, integer=True).check("sample_size", sample_size)
    samples = open_samples(X, options=options_of_fit(estimator))
    rows = sample_rows(samples.n_samples, sample_size, None, generator(random_state))
    drawn = open_samples(as_matrix(samples.gather(rows)))
    drawn.feature_names = samples.feature_names
    return drawn, samples, rows


def two_columns(
    samples: Samples, features: Any, labels: Any
) -> tuple[np.ndarray, tuple[str, str]]:
    """Two columns of all rows, and their names; without ``features`` those that separate the clusters most.

    Raises
    ------
    InputError
        If ``features`` are not the numbers of two columns.
    """
    n = samples.n_samples
    d = samples.n_features
    features = separating_columns(samples, labels) if features is None else features
    columns = list(features) if np.iterable(features) else []
    if [isinstance(one, int | np.integer) and 0 <= one < d for one in columns] != [
        True,
        True,
    ]:
        raise InputError(
            f"features={shown(features)} are not two columns of X, which has {d}."
        )
    blocks = (
        samples.block(start, min(start + BLOCK_ROWS, n))
        for start in range(0, n, BLOCK_ROWS)
    )
    points = np.concatenate(
        [to_dense(as_matrix(block)[:, columns]) for block in blocks]
    )
    names = samples.feature_names
    first, second = (
        f"column {one}" if names is None else str(names[one]) for one in columns
    )
    return points, (first, second)


def separating_columns(
    samples: Samples, labels: np.ndarray, most: int = 10_000
) -> list[int]:
    """The two columns with the largest F ratio among some of the rows, in their order.

    The ratio is that of the values, or of their squared distances from the mean if it
    is larger: clusters may be rings. Columns of two values come last, as their rows lie
    on top of each other.
    """
    from scipy.sparse import issparse
    from sklearn.feature_selection import f_classif

    rows = sample_rows(samples.n_samples, most, None, generator(0))
    values = as_matrix(samples.gather(rows)).astype(np.float64)
    forms = [values]
    is_flag = np.zeros(samples.n_features, bool)
    if not issparse(values):
        is_flag = (
            (values - values.min(axis=0)) * (values.max(axis=0) - values) == 0
        ).all(axis=0)
        forms.append((values - values.mean(axis=0)) ** 2)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a constant column has no ratio, and so has a single cluster
        ratios = np.nan_to_num(
            [f_classif(form, labels[rows])[0] for form in forms], nan=-1.0
        ).max(axis=0)
    return sorted(np.lexsort((-ratios, is_flag))[:2].tolist())

"""Rows that displays draw, from any storage."""

from typing import Any

import numpy as np

from mmcnb._config import generator
from mmcnb._constraints import Interval
from mmcnb.engine.passes import sample_rows
from mmcnb.errors import InputError, shown
from mmcnb.samples import BLOCK_ROWS, Samples, open_samples
from mmcnb.samples.matrix import as_matrix, to_dense
from mmcnb.tables.columns import options_of_fit


def drawn_rows(estimator: Any, X: Any, sample_size: int, random_state: Any) -> tuple[Samples, int]:
    """At most so many rows of any storage, drawn at random, with names of columns; and the number of all.

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
    return drawn, samples.n_samples


def two_columns(X: Any, features: Any) -> np.ndarray:
    """Two columns of all rows of any storage.

    Raises
    ------
    InputError
        If the rows cannot be read, or ``features`` are not the numbers of two columns.
    """
    samples = open_samples(X)
    n, d = samples.n_samples, samples.n_features
    columns = list(features) if np.iterable(features) else []
    if [isinstance(one, int | np.integer) and 0 <= one < d for one in columns] != [True, True]:
        raise InputError(f"features={shown(features)} are not two columns of X, which has {d}.")
    blocks = (samples.block(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS))
    return np.concatenate([to_dense(as_matrix(block)[:, columns]) for block in blocks])

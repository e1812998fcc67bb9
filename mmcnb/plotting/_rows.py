"""Rows that displays draw, from any storage."""

from typing import Any

import numpy as np

from mmcnb._config import generator
from mmcnb._constraints import Interval
from mmcnb.engine.passes import sample_rows
from mmcnb.errors import InputError, shown
from mmcnb.samples import BLOCK_ROWS, open_samples
from mmcnb.samples.matrix import as_matrix, to_dense


def drawn_rows(X: Any, sample_size: int, random_state: Any) -> tuple[Any, int, list[str] | None]:
    """At most so many rows of any storage, drawn at random; how many there are; names of their columns.

    Raises
    ------
    InputError
        If the rows cannot be read, or ``sample_size`` is below 1.
    """
    Interval(1, integer=True).check("sample_size", sample_size)
    samples = open_samples(X)
    rows = sample_rows(samples.n_samples, sample_size, None, generator(random_state))
    return as_matrix(samples.gather(rows)), samples.n_samples, samples.feature_names


def with_names(estimator: Any, rows: Any, names: list[str] | None) -> Any:
    """Drawn rows as an estimator of mmcnb asks for them: with the names of their columns."""
    if names is None or not hasattr(estimator, "model_"):
        return rows
    samples = open_samples(rows)
    samples.feature_names = names
    return samples


def checked_features(features: Any, n_features: int) -> list[int]:
    """The numbers of two columns.

    Raises
    ------
    InputError
        If they are not two, or a column is not there.
    """
    pair = list(features) if np.iterable(features) else []
    known = [isinstance(one, int | np.integer) and 0 <= one < n_features for one in pair]
    if known != [True, True]:
        raise InputError(f"features={shown(features)} are not two columns of X, which has {n_features}.")
    return [int(one) for one in pair]


def two_columns(X: Any, features: tuple[int, int]) -> np.ndarray:
    """Two columns of all rows of any storage.

    Raises
    ------
    InputError
        If the rows cannot be read, or a column is not there.
    """
    samples = open_samples(X)
    columns = checked_features(features, samples.n_features)
    starts = range(0, samples.n_samples, BLOCK_ROWS)
    blocks = (samples.block(start, min(start + BLOCK_ROWS, samples.n_samples)) for start in starts)
    return np.concatenate([to_dense(as_matrix(block)[:, columns]) for block in blocks])

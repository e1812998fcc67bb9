"""Rows that displays draw, from any storage."""

from typing import Any

import numpy as np

from mmcnb.errors import InputError


def drawn_rows(X: Any, sample_size: int, random_state: Any) -> tuple[Any, int, list[str] | None]:
    """At most so many rows of any storage, drawn at random; how many there are; names of their columns.

    Raises
    ------
    InputError
        If the rows cannot be read, or ``sample_size`` is below 1.
    """
    from sklearn.utils import check_random_state
    from sklearn.utils.random import sample_without_replacement

    from mmcnb.samples import open_samples
    from mmcnb.samples.matrix import as_matrix

    if sample_size < 1:
        raise InputError(f"sample_size={sample_size} is out of range; give at least 1.")
    samples = open_samples(X)
    n, state = samples.n_samples, check_random_state(random_state)
    rows = np.sort(sample_without_replacement(n, min(n, sample_size), random_state=state))
    return as_matrix(samples.gather(rows)), n, samples.feature_names


def with_names(estimator: Any, rows: Any, names: list[str] | None) -> Any:
    """Drawn rows as an estimator of mmcnb asks for them: with the names of their columns."""
    if names is None or not hasattr(estimator, "model_"):
        return rows
    from mmcnb.samples import open_samples

    samples = open_samples(rows)
    samples.feature_names = names
    return samples


def two_columns(X: Any, features: tuple[int, int]) -> np.ndarray:
    """Two columns of all rows of any storage.

    Raises
    ------
    InputError
        If the rows cannot be read, or a column is not there.
    """
    from mmcnb.samples import BLOCK_ROWS, open_samples
    from mmcnb.samples.matrix import as_matrix, to_dense

    samples = open_samples(X)
    if not all(0 <= feature < samples.n_features for feature in features):
        raise InputError(f"features={features} are not columns of X, which has {samples.n_features} of them.")
    starts, columns = range(0, samples.n_samples, BLOCK_ROWS), list(features)
    blocks = (samples.block(start, min(start + BLOCK_ROWS, samples.n_samples)) for start in starts)
    return np.concatenate([to_dense(as_matrix(block)[:, columns]) for block in blocks])

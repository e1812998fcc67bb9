"""Landmarks that a user gives: checked, and in the units of the fit."""

from typing import Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples._arrays import plain_values
from mmcnb.samples.derived import scaled_matrix


def check_landmarks(landmarks: Any) -> np.ndarray:
    """Landmarks that a user gives, as an array of finite numbers."""
    rows = plain_values(landmarks, "landmarks").astype(np.float64)
    if rows.ndim != 2 or rows.shape[0] < 2:
        raise InputError(f"landmarks have shape {rows.shape}; give at least two rows, (p, n_features).")
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise InputError(f"landmarks hold {rows[row, column]} in row {row}, column {column}; leave it out.")
    return rows


def scaled_landmarks(landmarks: Any, sample: Any, mean: Any, deviation: Any) -> np.ndarray:
    """Landmarks that a user gives, scaled as the sample is, in its type; repeated ones count once.

    Raises
    ------
    InputError
        If they have other columns than the sample.
    """
    rows = check_landmarks(landmarks)
    if rows.shape[1] != sample.shape[1]:
        raise InputError(
            f"landmarks have {rows.shape[1]} columns where the rows have {sample.shape[1]}; give landmarks "
            "with the columns of the rows."
        )
    if hasattr(sample, "indptr") and deviation is not None:
        mean = np.zeros_like(mean)  # sparse columns are not centred
    scaled = scaled_matrix(rows.astype(sample.dtype), mean, deviation)
    _, first = np.unique(scaled, axis=0, return_index=True)
    return np.ascontiguousarray(scaled[np.sort(first)])

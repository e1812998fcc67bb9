"""Sample weights: read and checked once, and brought to a scale of their own, as only proportions count."""

import math
import os
from typing import Any

import numpy as np
import zarr

from mmcnb.errors import InputError
from mmcnb.samples.arrays import is_number, plain_values
from mmcnb.stores.labels import read_column

EXACT = 2.0**53  # sums of whole numbers up to here lose nothing
ROWS = (
    2**16
)  # that are scaled at a time, so that there is one copy of the weights and no more


def read_weights(sample_weight: Any, n_samples: int) -> tuple[np.ndarray | None, float]:
    """Check sample weights, from wherever they are, and bring them to a scale of their own.

    Parameters
    ----------
    sample_weight : float, ndarray or Zarr array of shape (n_samples,), or path
        The weights.
    n_samples : int
        Number of rows.

    Returns
    -------
    weights : ndarray of shape (n_samples,), float64, or None
        The weights on this scale; None where all are equal.
    unit : float
        What a weight of 1 was given as.

    Raises
    ------
    InputError
        If they are no finite numbers of at least 0, one a row, two of them positive; or
        where their sum is beyond the range of floats.
    """
    if is_number(sample_weight):
        sample_weight = np.full(n_samples, float(sample_weight))
    is_path = isinstance(sample_weight, str | os.PathLike | zarr.Array | zarr.Group)
    read = read_column if is_path else plain_values
    given = np.ascontiguousarray(read(sample_weight, "sample_weight"), np.float64)
    if given.ndim != 1:
        raise InputError(
            f"sample_weight has shape {given.shape}; give one weight a row, or one number."
        )
    if (entries := given.shape[0]) != n_samples:
        raise InputError(
            f"sample_weight has {entries} entries for {n_samples} rows; give one weight a row."
        )
    bad = ~(np.isfinite(given) & (given >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"sample_weight of row {row} is {given[row]}; weights are finite, at least 0."
        )
    if np.count_nonzero(given) < 2:
        raise InputError(
            "fewer than two rows have a sample_weight above zero; give weight to at least two."
        )
    weights, unit = scaled_weights(given)
    if not math.isfinite(
        unit * (n_samples if weights is None else float(weights.sum()))
    ):
        raise InputError(
            "sample_weight adds up to more than floats hold; divide the weights by a constant."
        )
    return weights, unit


def scaled_weights(weights: np.ndarray) -> tuple[np.ndarray | None, float]:
    """Weights w on a scale that w and c w share, and its unit.

    Where all are whole multiples of the least above zero, to rounding, they are these
    whole numbers: the same bits for any c > 0. Others are divided by a power of two,
    which loses nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.engine.sample_weights import scaled_weights
    >>> scaled_weights(np.array([0.1, 0.3, 0.0]))
    (array([1., 3., 0.]), 0.1)
    >>> scaled_weights(np.array([10.0, 25.0]))
    (array([1.25 , 3.125]), 8.0)
    """
    least = float(np.min(weights, where=weights > 0, initial=np.inf))
    largest = float(weights.max())
    if weights.min() == largest:
        return None, least
    whole = _whole_multiples(weights, least) if largest / least <= EXACT else None
    if whole is not None:
        return whole, least
    # The least becomes a number from 1 to 2, unless the sum of all would be too large
    # to be exact.
    highest = math.frexp(largest)[1]
    values = np.ldexp(weights, -highest)
    lift = min(
        1 - math.frexp(math.ldexp(least, -highest))[1],
        53 - math.frexp(float(values.sum()))[1],
    )
    return np.ldexp(values, lift, out=values), math.ldexp(1.0, highest - lift)


def _whole_multiples(weights: np.ndarray, least: float) -> np.ndarray | None:
    """The weights as multiples of the least, where these are whole numbers whose sum is exact."""
    whole = np.empty_like(weights)
    rounding = 4 * np.finfo(np.float64).eps
    for start in range(0, weights.shape[0], ROWS):
        times = weights[start : start + ROWS] / least
        nearest = np.rint(times, out=whole[start : start + ROWS])
        if (np.abs(times - nearest) > rounding * nearest).any():
            return None
    return whole if whole.sum() <= EXACT else None

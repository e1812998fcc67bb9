"""Read, check and rescale sample weights, whose scale must not affect the result."""

import math
import os
from typing import Any

import numpy as np
import zarr

from mmcnb.errors import InputError
from mmcnb.samples.arrays import is_number, plain_values
from mmcnb.stores.labels import read_column

EXACT = 2.0**53  # sums of integers up to this number are exact in float64
SCALED_ROWS = 2**16  # number of weights scaled at a time, to limit temporary memory


def read_weights(sample_weight: Any, n_samples: int) -> tuple[np.ndarray | None, float]:
    """Read and check sample weights, and rescale them by `scaled_weights`.

    Parameters
    ----------
    sample_weight : float, ndarray or Zarr array of shape (n_samples,), or path
        The user's sample weights. A number is the weight of every row. A path names a
        file or store that contains the weights.
    n_samples : int
        Number of rows.

    Returns
    -------
    weights : ndarray of shape (n_samples,), float64, or None
        The rescaled weights, or None if all weights are equal.
    unit : float
        The user's weight that corresponds to a rescaled weight of 1.

    Raises
    ------
    InputError
        If the number of weights differs from the number of rows, a weight is negative
        or not finite, fewer than two weights are positive, or the sum of the weights
        exceeds the range of floats.
    """
    if is_number(sample_weight):
        sample_weight = np.full(n_samples, float(sample_weight))
    is_stored = isinstance(sample_weight, str | os.PathLike | zarr.Array | zarr.Group)
    read = read_column if is_stored else plain_values
    values = np.ascontiguousarray(read(sample_weight, "sample_weight"), np.float64)
    _check_weights(values, n_samples)
    weights, unit = scaled_weights(values)
    total = n_samples if weights is None else float(weights.sum())
    if not math.isfinite(unit * total):
        raise InputError(
            "the sum of sample_weight exceeds the range of floats; "
            "divide the weights by a constant."
        )
    return weights, unit


def _check_weights(weights: np.ndarray, n_samples: int) -> None:
    if weights.ndim != 1:
        raise InputError(
            f"sample_weight has shape {weights.shape}; "
            "pass one weight per row, or a single number."
        )
    if weights.size != n_samples:
        raise InputError(
            f"sample_weight has {weights.size} entries for {n_samples} rows; "
            "pass one weight per row."
        )
    is_bad = ~(np.isfinite(weights) & (weights >= 0))
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise InputError(
            f"sample_weight of row {row} is {weights[row]}; "
            "all weights must be finite and at least 0."
        )
    if np.count_nonzero(weights) < 2:
        raise InputError(
            "fewer than two rows have a sample_weight above zero; "
            "at least two rows must have a positive weight."
        )


def scaled_weights(weights: np.ndarray) -> tuple[np.ndarray | None, float]:
    """Rescale weights so that w and c w lead to the same fit for any c > 0.

    If all weights are integer multiples of the smallest positive weight, up to
    rounding, they are replaced by these integers, which do not depend on c. Otherwise
    they are divided by a power of two, which is exact. Equal weights are replaced by
    None. The second return value is the unit: the original weight that corresponds to a
    rescaled weight of 1.

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
    if largest / least <= EXACT:
        multiples = _whole_multiples(weights, least)
        if multiples is not None:
            return multiples, least
    # After division by 2**highest, no weight exceeds 1, so the sum of the weights
    # cannot overflow.
    highest = _exponent(largest)
    scaled = np.ldexp(weights, -highest)
    # After multiplication by 2**lift, the smallest positive weight is in [1, 2), unless
    # the sum of the weights would then exceed 2**53.
    lift_of_least = 1 - _exponent(math.ldexp(least, -highest))
    lift = min(lift_of_least, 53 - _exponent(float(scaled.sum())))
    return np.ldexp(scaled, lift, out=scaled), math.ldexp(1.0, highest - lift)


def _exponent(value: float) -> int:
    """Return the exponent e in the representation value = m 2**e with 0.5 <= m < 1."""
    return math.frexp(value)[1]


def _whole_multiples(weights: np.ndarray, least: float) -> np.ndarray | None:
    """Return the weights divided by ``least``, rounded to integers.

    The result is None if the quotients are not integers up to rounding, or if their sum
    exceeds 2**53.
    """
    multiples = np.empty_like(weights)
    rounding = 4 * np.finfo(np.float64).eps
    for start in range(0, weights.shape[0], SCALED_ROWS):
        rows = slice(start, start + SCALED_ROWS)
        quotients = weights[rows] / least
        nearest = np.rint(quotients, out=multiples[rows])
        if (np.abs(quotients - nearest) > rounding * nearest).any():
            return None
    return multiples if multiples.sum() <= EXACT else None

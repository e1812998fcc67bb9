"""Checks of parameters and input: one clear sentence each."""

import numbers
import os
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from mmcnb.errors import InputError
from mmcnb.features.bandwidth import GAMMA_NAMES
from mmcnb.samples import Samples, open_samples


def check_number(
    name: str,
    value: Any,
    low: float,
    high: float = np.inf,
    *,
    integer: bool = False,
    open_low: bool = False,
    open_high: bool = False,
) -> None:
    """Check one numeric parameter.

    Raises
    ------
    InputError
        Naming the parameter, its value and the range.
    """
    inside = (
        not isinstance(value, bool)
        and isinstance(value, numbers.Real)
        and (isinstance(value, numbers.Integral) or not integer)
        and np.isfinite(float(value))
        and (float(value) > low if open_low else float(value) >= low)
        and (float(value) < high if open_high else float(value) <= high)
    )
    if not inside:
        what = "a whole number" if integer else "a number"
        above = f"above {low:g}" if open_low else f"of at least {low:g}"
        below = "" if high == np.inf else f" and {'below' if open_high else 'at most'} {high:g}"
        raise InputError(f"{name}={value!r} is out of range; give {what} {above}{below}.")


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Check a parameter that has a few names."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        shown = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{name}={value!r} is unknown; choose one of {shown}.")


def check_gamma(gamma: Any) -> None:
    """Check the width of a kernel: a positive number or a name."""
    if isinstance(gamma, numbers.Real):
        check_number("gamma", gamma, 0.0, open_low=True)
    elif gamma not in GAMMA_NAMES:
        names = ", ".join(repr(name) for name in GAMMA_NAMES)
        raise InputError(f"gamma={gamma!r} is unknown; give a positive number or one of {names}.")


def is_stored(X: Any) -> bool:
    """Whether X is a path, a Zarr object, a Dask array or opened samples rather than an array in memory."""
    if isinstance(X, (str, os.PathLike, Samples)):
        return True
    module = type(X).__module__
    return module.split(".")[0] == "zarr" or module.startswith("dask.array")


def read_input(estimator: Any, X: Any, reset: bool, least_rows: int = 1) -> Samples:
    """The rows of whatever a user gave, with scikit-learn's checks where it is an array."""
    if not is_stored(X):
        return open_samples(_checked_array(estimator, X, reset, least_rows))
    samples = open_samples(X)
    if samples.n_samples < least_rows:
        raise InputError(
            f"{samples.name} holds {samples.n_samples} sample(s), while a minimum of {least_rows} is "
            "required; give more rows."
        )
    if reset:
        estimator.n_features_in_ = samples.n_features
    elif samples.n_features != estimator.n_features_in_:
        raise InputError(
            f"{samples.name} has {samples.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input; give rows with the columns of the fit."
        )
    return samples


def _checked_array(estimator: Any, X: Any, reset: bool, least_rows: int) -> Any:
    """An array that passed scikit-learn's checks; what fails them is said in one sentence."""
    try:
        return validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,  # open_samples names the row and the column
            ensure_min_samples=least_rows,
        )
    except ValueError as error:
        first, *rest = str(error).splitlines()
        if not rest:
            raise
        if "1D array" in first or "scalar array" in first:
            first = f"{first.rstrip(':')}. Reshape your data to rows and columns, such as X.reshape(-1, 1)"
        raise InputError(f"{first.rstrip('. ')}; give a 2-D array of real numbers.") from error


def read_weights(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Sample weights as float64, or None where all are equal to 1."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    weights = np.ascontiguousarray(sample_weight, np.float64)
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weights.shape[0] != n_samples:
        raise InputError(
            f"sample_weight has {weights.shape[0]} entries for {n_samples} rows; give one weight a row."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"sample_weight of row {row} is {weights[row]}; weights are finite and not negative."
        )
    if np.count_nonzero(weights) < 2:
        raise InputError("fewer than two rows have a sample_weight above zero; give weight to at least two.")
    return None if (weights == 1).all() else weights

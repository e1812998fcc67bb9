"""The rows that a user gives, with the columns of the fit."""

import warnings
from typing import Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples import Samples, open_samples
from mmcnb.samples._open import names_in_frame


def read_input(
    estimator: Any, X: Any, reset: bool, least_rows: int = 1, element: str | None = None
) -> Samples:
    """The rows of any input, with the columns of the fit unless they are those of one.

    Parameters
    ----------
    estimator : Estimator
        Has the columns of the fit, or is given them.
    X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
        The rows.
    reset : bool
        Whether these are the rows of a fit.
    least_rows : int, default=1
        How many rows there must be.
    element : str or None, default=None
        Element of an AnnData object, a group or a file.

    Returns
    -------
    Samples
        The rows, opened.

    Raises
    ------
    InputError
        If they cannot be read or are too few; or if names of columns are missing, new or in another order,
        or their number differs. The message lists them.
    """
    if not reset:
        _check_names(getattr(estimator, "feature_names_in_", None), names_in_frame(X))  # before its numbers
    samples = open_samples(X, element)
    if samples.n_samples < least_rows:
        raise InputError(
            f"{samples.name} holds {samples.n_samples} sample(s), while a minimum of {least_rows} is "
            "required; give more rows."
        )
    if not reset:
        _check_columns(estimator, samples)
        return samples
    estimator.n_features_in_ = samples.n_features
    estimator.__dict__.pop("feature_names_in_", None)  # of an earlier fit
    if samples.feature_names is not None:
        estimator.feature_names_in_ = np.array(samples.feature_names, dtype=object)
    return samples


def _check_columns(estimator: Any, samples: Samples) -> None:
    kind, given = type(estimator).__name__, samples.feature_names
    fitted = getattr(estimator, "feature_names_in_", None)
    _check_names(fitted, given)
    if samples.n_features != estimator.n_features_in_:
        raise InputError(
            f"{samples.name} has {samples.n_features} features, but {kind} is expecting "
            f"{estimator.n_features_in_} features as input; give rows with the columns of the fit."
        )
    if fitted is None and given is not None:
        warnings.warn(f"X has feature names, but {kind} was fitted without feature names", stacklevel=5)
    if fitted is not None and given is None:
        warnings.warn(
            f"X does not have valid feature names, but {kind} was fitted with feature names", stacklevel=5
        )


def _check_names(fitted: np.ndarray | None, given: list[str] | None) -> None:
    if fitted is None or given is None or fitted.tolist() == given:
        return
    # The words and lines are scikit-learn's, whose checks ask for them.
    parts = ["The feature names should match those that were passed during fit."]
    new, missing = sorted(set(given) - {*fitted}), sorted({*fitted} - set(given))
    if new:
        parts += ["Feature names unseen at fit time:", *_listed(new)]
    if missing:
        parts += ["Feature names seen at fit time, yet now missing:", *_listed(missing)]
    if not new and not missing:
        parts += ["Feature names must be in the same order as they were in fit."]
    raise InputError("\n".join((*parts, "Give the columns by estimator.feature_names_in_.")))


def _listed(names: list[str]) -> list[str]:
    """At most five names, as in scikit-learn's messages."""
    more = [f"- and {len(names) - 5} more"] if len(names) > 5 else []
    return [f"- {name}" for name in names[:5]] + more

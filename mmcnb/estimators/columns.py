"""The columns of given rows against those of the fit."""

import warnings
from collections.abc import Iterable
from typing import Any

from mmcnb.errors import InputError
from mmcnb.samples import Samples
from mmcnb.samples._objects import names_in_frame

LISTED = 5  # names in one message, as in scikit-learn's


def check_frame_names(estimator: Any, X: Any) -> None:
    """Refuse a data frame with other names than those of the fit, before its numbers are read."""
    fitted, given = getattr(estimator, "feature_names_in_", None), names_in_frame(X)
    if fitted is not None and given is not None:
        _check_names(fitted.tolist(), given)


def check_columns(estimator: Any, samples: Samples) -> None:
    """Refuse rows whose columns are not those of the fit, by name and by number.

    Raises
    ------
    InputError
        If names are missing, new or in another order, or their number differs; the message lists them.
    """
    kind = type(estimator).__name__
    fitted, given = getattr(estimator, "feature_names_in_", None), samples.feature_names
    if fitted is not None and given is not None:
        _check_names(fitted.tolist(), given)
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


def _check_names(fitted: list[str], given: list[str]) -> None:
    if fitted == given:
        return
    # The words and lines are scikit-learn's, whose checks ask for them.
    parts = ["The feature names should match those that were passed during fit."]
    new, missing = sorted(set(given) - set(fitted)), sorted(set(fitted) - set(given))
    if new:
        parts += ["Feature names unseen at fit time:", *_listed(new)]
    if missing:
        parts += ["Feature names seen at fit time, yet now missing:", *_listed(missing)]
    if not new and not missing:
        parts += ["Feature names must be in the same order as they were in fit."]
    raise InputError("\n".join((*parts, "Give the columns by estimator.feature_names_in_.")))


def _listed(names: list[str]) -> Iterable[str]:
    yield from (f"- {name}" for name in names[:LISTED])
    if len(names) > LISTED:
        yield f"- and {len(names) - LISTED} more"

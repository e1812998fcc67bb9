"""Save fitted estimators to files, and load them.

A model file is untrusted input. Its values are checked against the allowed types and
ranges, and none of them determines where a fit or a prediction runs.
"""

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from mmcnb.engine.fit_report import Report
from mmcnb.errors import InputError, shown
from mmcnb.estimators.parameters import RUNTIME_NAMES
from mmcnb.features.model import Model, check_shapes, read_model, write_model
from mmcnb.samples.arrays import check_feature_names

if TYPE_CHECKING:
    from mmcnb.estimators.base import Estimator

ModelPath = str | os.PathLike[str]
NUMBER = (int, float)
NOTHING = type(None)
PLAIN = (*NUMBER, str, bool, NOTHING)  # types to save; a RandomState is not saved
LAYER = {
    "n_clusters": NUMBER,
    "persistence": NUMBER,
    "J": NUMBER,
    "smallest": NUMBER,
    "agreement": NUMBER,
    "taken": (bool,),
}
CHANGE = {"number": (int,), "change": (str,), "before": NUMBER, "after": NUMBER}
DROPPED = {"share": NUMBER, "reason": (str,)}
INPUT = {"options": (dict,), "arguments": [(str,)]}
# Allowed types of the fields of a header and of its report. A list such as [NUMBER]
# means a list of values of this type, and a dict means a dict with at least these keys.
KINDS: dict[str, Any] = {
    "class": (str,),
    "kernel": (str,),
    "candidate": (str,),
    "parameters": (dict,),
    "model": (dict,),
    "report": (dict,),
    "history": (dict,),
    "n_features_in": (int,),
    "n_clusters": (int,),
    "n_iter": (int,),
    "alpha": NUMBER,
    "inertia": NUMBER,
    "noise": NUMBER,
    "objective": NUMBER,
    "rho": NUMBER,
    "gamma": (*NUMBER, NOTHING),
    "converged": (bool,),
    "n_changed": (*NUMBER, NOTHING),
    "number": (dict, NOTHING),
    "trust": (dict, NOTHING),
    "input": INPUT,
    "seed": (int,),
    "kernel_names": [(str,)],
    "warnings": [(str,)],
    "sizes": [NUMBER],
    "candidates": [{}],
    "layers": [LAYER],
    "changes": [CHANGE],
    "dropped": [DROPPED],
    "classes": [(*NUMBER, str, bool)],
    "ends": [(str,)],
    "keyed": {},
}


def save_estimator(estimator: "Estimator", path: ModelPath) -> None:
    """Write a fitted estimator to one file, atomically."""
    from mmcnb import __version__

    parameters = estimator.get_params(deep=False)
    for name in (*RUNTIME_NAMES, "landmarks"):  # the model contains the landmarks
        parameters.pop(name, None)
    parameters = _plain(parameters)
    header = {
        "class": type(estimator).__name__,
        "version": __version__,
        "parameters": {
            name: value for name, value in parameters.items() if _is_plain(value)
        },
        "model": estimator.model_.to_dict(),
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": _plain(getattr(estimator, "feature_names_in_", None)),
    }
    keyed = {
        name: [[key, part] for key, part in parameters[name].items()]
        for name in header["parameters"]
        if _has_numbers_as_keys(parameters[name])
    }
    if keyed:
        header["keyed"] = keyed
    for name in estimator.fitted_names:
        header[name] = getattr(estimator, f"{name}_")
    header["history"] = estimator.history_.to_dict("list")
    write_model(path, header, estimator.model_.arrays())


def _plain(value: Any) -> Any:
    """Convert nested NumPy values, arrays and tuples to types that JSON can store."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {_plain(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    return value


def _has_numbers_as_keys(value: object) -> bool:
    """Return whether a value is a dict with keys that JSON would turn into text."""
    return isinstance(value, dict) and not all(isinstance(key, str) for key in value)


def _is_plain(value: object) -> bool:
    """Return whether JSON restores a value unchanged."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, PLAIN)


def load(path: ModelPath) -> Any:
    """Load a model that ``save`` or ``mmcnb fit --model`` wrote.

    The parameters that control how a prediction runs are not stored: ``memory_limit``,
    ``n_jobs``, ``verbose``, ``engine`` and ``checkpoint`` have their defaults.

    Parameters
    ----------
    path : path
        Path of the model file.

    Returns
    -------
    estimator
        The fitted estimator, ready to `predict`. It has no ``labels_``.

    Raises
    ------
    InputError
        If the file is missing, damaged or not a model file, or if it contains values
        that are invalid for its class.

    Examples
    --------
    >>> import tempfile, numpy as np, mmcnb
    >>> near = np.random.default_rng(0).normal(size=(50, 2))
    >>> X = np.r_[near, np.full((50, 2), 9.0)]
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     mmcnb.SparseKernelMMC(random_state=0).fit(X).save(file.name)
    ...     mmcnb.load(file.name).predict(X[:1])
    array([0], dtype=int32)
    """
    header, arrays = read_model(path)
    try:
        _check_kinds(path, header)
        _check_kinds(path, header.get("report", {}))
        parameters = header["parameters"]
        for name, pairs in header.get("keyed", {}).items():
            parameters[name] = dict(pairs)
        # In files of version 0.2, alpha="auto" chose one of a few values, and k-means
        # had a parameter to choose between two algorithms.
        if parameters.get("alpha") == "auto":
            parameters["alpha"] = header["alpha"]
        if parameters.get("algorithm") == "full":
            del parameters["algorithm"]
        estimator = _estimator(path, header["class"], parameters)
        _restore(path, estimator, header, arrays)
    except InputError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path} is not a complete model of mmcnb; fit and save the model again."
        ) from error
    return estimator


def _estimator(path: ModelPath, name: str, parameters: dict[str, Any]) -> "Estimator":
    """Return an estimator of a known class; raise InputError for invalid parameters."""
    import mmcnb

    cls: Any = getattr(mmcnb, name) if name in mmcnb.__all__ else None
    is_known = isinstance(cls, type) and issubclass(cls, BaseEstimator)
    if not is_known:
        raise InputError(
            f"{path} contains a {shown(name)[1:-1]}, which this version does not have; "
            "fit again, or use the version that wrote it."
        )
    allowed = set(cls._get_param_names()) - set(RUNTIME_NAMES)
    for key, value in parameters.items():
        if key not in allowed:
            raise InputError(
                f"{path} gives {name} the parameter {shown(key)}, which no model of "
                "this version has; fit again, and do not trust this file unless an "
                "earlier version wrote it."
            )
        if key == "random_state" and not isinstance(value, int | None):
            raise InputError(
                f"{path} has random_state={shown(value)}, which is not a seed; fit "
                "again."
            )
    estimator = cls(**parameters)
    try:
        estimator._check_parameters()
    except InputError as error:
        raise InputError(f"{path} has an invalid parameter: {error}") from error
    return estimator


def _restore(
    path: ModelPath,
    estimator: "Estimator",
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
) -> None:
    """Set the fitted attributes of an estimator."""
    import pandas as pd

    n_features = header["n_features_in"]
    estimator.n_features_in_ = n_features
    try:
        estimator.model_ = Model.restore(arrays, header["model"])
        check_shapes(estimator.model_, n_features)
    except InputError as error:
        sentence = str(error).removesuffix(".")[:300]
        raise InputError(
            f"{path} contains an invalid model: {sentence}; fit again."
        ) from error
    names = header.get("feature_names_in")  # missing in files of earlier versions
    if names is not None:
        names = check_feature_names(names, n_features, f"{path}")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    header = {"n_changed": None} | header  # not in files of version 0.3
    for name in estimator.fitted_names:
        setattr(estimator, f"{name}_", header[name])
    estimator.report_ = Report(estimator.report_)
    estimator.history_ = pd.DataFrame(header["history"])
    _check_counts(path, estimator)


def _check_kinds(path: ModelPath, fields: dict[str, object]) -> None:
    """Raise InputError if a field has a type that a saved model never contains."""
    for name, value in fields.items():
        if name in KINDS and not _is_of(KINDS[name], value):
            raise _impossible(path, f"{name}={shown(value)}")


def _is_of(kind: Any, value: object) -> bool:
    """Return whether a value has one of the types that ``kind`` allows.

    ``kind`` is an entry of `KINDS`.
    """
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is_of(kind[0], part) for part in value)
    if isinstance(kind, dict):
        return isinstance(value, dict) and all(
            _is_of(kind[name], value.get(name)) for name in kind
        )
    return type(value) in kind and (type(value) is not float or np.isfinite(value))


def _check_counts(path: ModelPath, estimator: Any) -> None:
    """Raise InputError if a saved model and its report contradict each other.

    The numbers of clusters, classes and kernels must agree, and no required entry may
    be missing.
    """
    model = estimator.model_
    n_clusters = model.rule.n_clusters
    report = estimator.report_
    if not estimator.needed_in_report <= report.keys():
        raise _impossible(
            path, f"no {' or no '.join(sorted(estimator.needed_in_report))}"
        )
    if estimator.needs_ridge and model.ridge is None:
        raise _impossible(path, "no ridge_matrix")
    classes = report.get("classes")
    if classes is not None and len(set(classes)) != n_clusters:
        raise _impossible(path, f"{len(classes)} classes for {n_clusters} sides")
    sizes = np.array(report.get("sizes") or np.ones(n_clusters), np.float64)
    is_possible = len(sizes) == n_clusters and sizes.min() >= 0
    if not is_possible or not 0 < sum(sizes.tolist()) < np.inf:
        raise _impossible(path, f"{len(sizes)} sizes for {n_clusters} clusters")
    if classes is None:  # in a classifier, n_clusters is not the number of classes
        _check_numbers(path, estimator, sizes)
    if "kernel_names" in estimator.fitted_names:
        names = estimator.kernel_names_
        n_kernels = len(getattr(model.kernel, "kernels", [model.kernel]))
        if len(names) != n_kernels:
            raise _impossible(path, f"kernel_names={shown(names)}")


def _check_numbers(path: ModelPath, estimator: Any, sizes: np.ndarray) -> None:
    """Raise InputError if ``n_clusters`` or ``n_clusters_`` contradicts the model."""
    n_clusters = len(sizes)
    n_used = np.count_nonzero(sizes)  # clusters of an earlier model may have no rows
    n_dropped = len(estimator.report_.get("dropped") or ())
    for name, most in (
        ("n_clusters_", n_clusters),
        ("n_clusters", n_clusters + n_dropped),
    ):
        number = getattr(estimator, name, None)
        if type(number) is int and not n_used <= number <= most:
            raise _impossible(
                path, f"{name}={number} for a rule of {n_clusters} clusters"
            )


def _impossible(path: ModelPath, field: str) -> InputError:
    return InputError(
        f"{path} has {field}, which is invalid; fit and save the model again."
    )

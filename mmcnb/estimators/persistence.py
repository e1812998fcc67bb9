"""Fitted estimators as files, and back.

A file is trusted as little as any other input: everything in it is compared with lists
of allowed values, and nothing in it decides where a fit or a prediction runs.
"""

import os
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mmcnb.engine.session import Report
from mmcnb.errors import InputError, shown
from mmcnb.estimators.parameters import RUNTIME_NAMES
from mmcnb.features.model import (
    Model,
    check_shapes,
    read_model,
    write_model,
)
from mmcnb.samples.arrays import check_feature_names

NUMBER = (int, float)
NOTHING = type(None)
PLAIN = (*NUMBER, str, bool, NOTHING)  # a RandomState is not kept
LAYER = dict.fromkeys(
    ("n_clusters", "persistence", "J", "smallest", "agreement"), NUMBER
)
KINDS: dict[
    str, Any
] = {  # of what a header and its report contain; a list is of values of one kind
    "class kernel candidate": (str,),
    "parameters model report history": (dict,),
    "n_features_in n_clusters n_iter": (int,),
    "alpha inertia noise objective rho": NUMBER,
    "gamma": (*NUMBER, NOTHING),
    "converged": (bool,),
    "number trust": (dict, NOTHING),
    "kernel_names warnings": [(str,)],
    "sizes": [NUMBER],
    "candidates": [{}],
    "layers": [LAYER | {"taken": (bool,)}],
    "changes": [
        {"number": (int,), "change": (str,), "before": NUMBER, "after": NUMBER}
    ],
}
KIND_OF = {name: kind for names, kind in KINDS.items() for name in names.split()}


def save_estimator(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file, whole or not at all."""
    from mmcnb import __version__

    given = estimator.get_params(deep=False).items()
    left_out = *RUNTIME_NAMES, "landmarks"  # which the model has
    plain = {name: _plain(value) for name, value in given if name not in left_out}
    header = {
        "class": type(estimator).__name__,
        "version": __version__,
        "parameters": {
            name: value for name, value in plain.items() if _is_plain(value)
        },
        "model": estimator.model_.to_dict(),
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": _plain(getattr(estimator, "feature_names_in_", None)),
        **{name: getattr(estimator, f"{name}_") for name in estimator.fitted_names},
        "history": estimator.history_.to_dict("list"),
    }
    write_model(path, header, estimator.model_.arrays())


def _plain(value: Any) -> Any:
    """Numbers of NumPy, arrays and tuples, also within others, as JSON stores them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {_plain(key): _plain(part) for key, part in value.items()}
    return (
        [_plain(part) for part in value] if isinstance(value, list | tuple) else value
    )


def _is_plain(value: Any) -> bool:
    """Whether JSON gives a value back as it was."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return (
        all(map(_is_plain, value))
        if isinstance(value, list)
        else isinstance(value, PLAIN)
    )


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that ``save`` or ``mmcnb fit --model`` wrote.

    How a prediction runs is yours to say: ``memory_limit``, ``n_jobs``, ``verbose``,
    ``engine`` and ``checkpoint`` have their defaults, whatever the file contains.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator
        Ready to `predict`; it has no ``labels_``.

    Raises
    ------
    InputError
        If the file is missing, damaged, of another format, or contains values that no
        model of its class has.

    Examples
    --------
    >>> import tempfile, numpy as np, mmcnb
    >>> X = np.r_[np.random.default_rng(0).normal(size=(50, 2)), np.full((50, 2), 9.0)]
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
        if parameters.get("alpha") == "auto":  # of 0.2: the fit chose among a few
            parameters["alpha"] = header["alpha"]
        if (
            parameters.get("algorithm") == "full"
        ):  # of 0.2: the one of k-means that is left
            del parameters["algorithm"]
        return _restore(
            path, _estimator(path, header["class"], parameters), header, arrays
        )
    except InputError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path} is no whole model of mmcnb; fit again to write it anew."
        ) from error


def _estimator(path: Any, name: str, parameters: dict[str, Any]) -> Any:
    """An estimator of a known class, each parameter one that it has and of a value that it may have."""
    import mmcnb

    cls: Any = getattr(mmcnb, name) if name in mmcnb.__all__ else None
    is_known = isinstance(cls, type) and issubclass(cls, BaseEstimator)
    if not is_known:
        fault = (
            f"{path} contains a {shown(name)[1:-1]}, which this version does not have"
        )
        raise InputError(f"{fault}; fit again, or use the version that wrote it.")
    allowed = set(cls._get_param_names()) - set(RUNTIME_NAMES)
    for key, value in parameters.items():
        if key not in allowed:
            fault = f"{path} gives {name} the parameter {shown(key)}, which no model of this version has"
            remedy = "fit again, and do not trust this file unless an earlier version wrote it"
            raise InputError(f"{fault}; {remedy}.")
        if key == "random_state" and not isinstance(value, int | None):
            raise InputError(
                f"{path} has random_state={shown(value)}, which is no seed; fit again."
            )
    estimator = cls(**parameters)
    try:
        estimator._check_parameters()
    except InputError as error:
        raise InputError(f"{path} holds a parameter that cannot be: {error}") from error
    return estimator


def _restore(
    path: Any, estimator: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> Any:
    import pandas as pd

    n_features = estimator.n_features_in_ = header["n_features_in"]
    try:
        estimator.model_ = Model.restore(arrays, header["model"])
        check_shapes(estimator.model_, n_features)
    except InputError as error:
        sentence = str(error).removesuffix(".")[:300]
        raise InputError(
            f"{path} holds a model that cannot be: {sentence}; fit again."
        ) from error
    names = header.get("feature_names_in")  # files of earlier versions have none
    if names is not None:
        names = check_feature_names(names, n_features, f"{path}")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    for name in estimator.fitted_names:
        setattr(estimator, f"{name}_", header[name])
    estimator.report_ = Report(estimator.report_)
    estimator.history_ = pd.DataFrame(header["history"])
    _check_counts(path, estimator)
    return estimator


def _check_kinds(path: Any, fields: dict[str, Any]) -> None:
    """Refuse fields that are of another kind than a fit writes."""
    for name, value in fields.items():
        if name in KIND_OF and not _is_of(KIND_OF[name], value):
            raise _no_such(path, f"{name}={shown(value)}")


def _is_of(kind: Any, value: Any) -> bool:
    """Whether a value has one of some types, or is a list or a dict of such values."""
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is_of(kind[0], one) for one in value)
    if isinstance(kind, dict):
        return isinstance(value, dict) and all(
            _is_of(one, value.get(name)) for name, one in kind.items()
        )
    return type(value) in kind and (type(value) is not float or np.isfinite(value))


def _check_counts(path: Any, estimator: Any) -> None:
    """Refuse a rule of another number of clusters than the estimator has, and of kernels than it names."""
    found = estimator.model_.rule.n_clusters
    report = estimator.report_
    if hasattr(estimator, "update"):
        if not {"layers", "sizes"} <= set(report):
            raise _no_such(path, "no layers or no sizes")
    elif hasattr(estimator, "transform") and estimator.model_.ridge is None:
        raise _no_such(path, "no ridge_matrix")
    sizes = np.array(report.get("sizes") or np.ones(found), np.float64)
    if len(sizes) != found or sizes.min() < 0 or not 0 < sum(sizes.tolist()) < np.inf:
        raise _no_such(path, f"{len(sizes)} sizes for {found} clusters")
    used = np.count_nonzero(sizes)  # a number of an earlier model may be free
    for name in ("n_clusters_", "n_clusters"):
        wanted = getattr(estimator, name, None)
        if type(wanted) is int and not used <= wanted <= found:
            raise _no_such(path, f"{name}={wanted} for a rule of {found} clusters")
    names = getattr(estimator, "kernel_names_", None)
    kernel = estimator.model_.kernel
    if names is not None and len(names) != len(getattr(kernel, "kernels", [kernel])):
        raise _no_such(path, f"kernel_names={shown(names)}")


def _no_such(path: Any, what: str) -> InputError:
    return InputError(
        f"{path} has {what}, which is of no model; fit again to write it anew."
    )

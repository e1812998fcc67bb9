"""Fitted estimators as files, and back.

A file is trusted as little as any other input: everything in it is compared with lists of allowed values,
and nothing in it decides where a fit or a prediction runs.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_clusterer

from mmcnb.engine.session import Report
from mmcnb.errors import InputError
from mmcnb.estimators.parameters import RUNTIME_NAMES
from mmcnb.features.model import Model, check_shapes, n_clusters_of, read_model, write_model
from mmcnb.samples._arrays import check_feature_names

PLAIN = (str, int, float, bool, type(None))  # a RandomState is not kept


def _is_a(*types: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in types


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_size(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < np.inf


def _is_list_of(is_one: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(is_one, value))


def _is_history(value: Any) -> bool:
    """Columns of one length, of numbers and text."""
    are_plain = _is_list_of(lambda cell: isinstance(cell, PLAIN))
    is_table = isinstance(value, dict) and all(map(are_plain, value.values()))
    return is_table and len({len(column) for column in value.values()}) <= 1


def _is_trust(value: Any) -> bool:
    return isinstance(value, dict) and all(type(value.get(name)) is str for name in ("level", "reason"))


def _is_layer(value: Any) -> bool:
    numbers = ("n_clusters", "persistence", "J", "smallest", "agreement")
    is_plain = isinstance(value, dict) and all(type(value.get(name)) in (int, float) for name in numbers)
    return is_plain and type(value.get("taken")) is bool


_is_number, _is_text = _is_a(int, float), _is_a(str)  # an objective may be infinite


FITTED_VALUES: Mapping[str, Callable[[Any], bool]] = {  # of the attributes in a file
    **dict.fromkeys(("alpha", "inertia", "objective", "rho"), _is_number),
    **dict.fromkeys(("kernel", "candidate"), _is_text),
    **dict.fromkeys(("n_clusters", "n_features_in"), lambda value: _is_count(value) and bool(value)),
    "converged": _is_a(bool),
    "gamma": lambda value: value is None or _is_size(value),
    "kernel_names": _is_list_of(_is_text),
    "n_iter": _is_count,
    "report": _is_a(dict),
    "history": _is_history,
}
REPORTED: Mapping[str, Callable[[Any], bool]] = {  # of the entries of a report that are read again
    "sizes": _is_list_of(_is_size),
    "classes": _is_list_of(lambda label: isinstance(label, PLAIN)),
    "eigenvalues": _is_list_of(_is_number),
    "pseudo_centres": _is_list_of(_is_count),
    "warnings": _is_list_of(_is_text),
    "number": _is_a(type(None), dict),
    "layers": _is_list_of(_is_layer),
    "trust": lambda value: value is None or _is_trust(value),
}


def save_estimator(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file, whole or not at all."""
    from mmcnb import __version__

    given = estimator.get_params(deep=False).items()
    kept = ((name, value) for name, value in given if name not in (*RUNTIME_NAMES, "landmarks"))
    plain = {name: _plain(value) for name, value in kept}  # the model has the landmarks
    header = {
        "class": type(estimator).__name__,
        "version": __version__,
        "parameters": {name: value for name, value in plain.items() if _is_plain(value)},
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
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _is_plain(value: Any) -> bool:
    """Whether JSON gives a value back as it was."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if isinstance(value, list) else isinstance(value, PLAIN)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that ``save`` or ``mmcnb fit --model`` wrote.

    How a prediction runs is yours to say: ``memory_limit``, ``n_jobs``, ``verbose``, ``engine`` and
    ``checkpoint`` have their defaults, whatever the file contains.

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
        If the file is missing, damaged, of another format, or contains values that no model of its class has.

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
        parameters = dict(header["parameters"])
        if parameters.get("alpha") == "auto":  # of 0.2: the fit chose among a few
            parameters["alpha"] = header["alpha"]
        if parameters.get("algorithm") == "full":  # of 0.2: the one of k-means that is left
            del parameters["algorithm"]
        return _restore(path, _estimator(path, header["class"], parameters), header, arrays)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no whole model of mmcnb; fit again to write it anew.") from error


def _estimator(path: Any, name: str, parameters: dict[str, Any]) -> Any:
    """An estimator of a known class, each parameter one that it has and of a value that it may have."""
    import mmcnb

    cls: Any = getattr(mmcnb, name) if name in mmcnb.__all__ else None
    is_known = isinstance(cls, type) and issubclass(cls, BaseEstimator)
    if not is_known:
        raise InputError(
            f"{path} contains a {name}, which this version does not have; fit again, or use the version that "
            "wrote it."
        )
    allowed = set(cls._get_param_names()) - set(RUNTIME_NAMES)
    for key, value in parameters.items():
        if key not in allowed:
            raise InputError(
                f"{path} gives {name} the parameter {key!r}, which no model of this version has; fit again, "
                "and do not trust this file unless an earlier version wrote it."
            )
        if key == "random_state" and not isinstance(value, int | None):
            raise InputError(f"{path} has random_state={value!r}, which is no seed; fit again.")
    estimator = cls(**parameters)
    try:
        estimator._check_parameters()
    except InputError as error:
        raise InputError(f"{path} holds a parameter that cannot be: {error}") from error
    return estimator


def _restore(path: Any, estimator: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    import pandas as pd

    n_features = estimator.n_features_in_ = _checked(path, "n_features_in", header["n_features_in"])
    try:
        estimator.model_ = Model.restore(arrays, header["model"])
        check_shapes(estimator.model_, n_features)
    except InputError as error:
        sentence = str(error).removesuffix(".")
        raise InputError(f"{path} holds a model that cannot be: {sentence}; fit again.") from error
    names = header.get("feature_names_in")  # files of earlier versions have none
    if names is not None:
        names = check_feature_names(names, n_features, f"{path}")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    for name in estimator.fitted_names:
        setattr(estimator, f"{name}_", _checked(path, name, header[name]))
    if "report" in estimator.fitted_names:
        _check_report(path, estimator.report_, n_clusters_of(estimator.model_))
        estimator.report_ = Report(estimator.report_)
    estimator.history_ = pd.DataFrame(_checked(path, "history", header["history"]))
    _check_counts(path, estimator)
    return estimator


def _checked(path: Any, name: str, value: Any) -> Any:
    """A fitted attribute of a value that it may have."""
    if not FITTED_VALUES[name](value):
        raise _no_such(path, f"{name}={value!r}")
    return value


def _check_report(path: Any, report: dict[str, Any], n_clusters: int) -> None:
    """Refuse entries of a report that are read again and that no fit has written."""
    for name, is_one in REPORTED.items():
        if name in report and not is_one(report[name]):
            raise _no_such(path, f"{name}={report[name]!r} in its report")
    for name in ("sizes", "classes"):
        if len(report.get(name) or [None] * n_clusters) != n_clusters:
            raise _no_such(path, f"{len(report[name])} {name} for {n_clusters} clusters")


def _check_counts(path: Any, estimator: Any) -> None:
    """Refuse a rule of another number of clusters than the estimator has, and of kernels than it names."""
    found = n_clusters_of(estimator.model_)
    # A classifier may take a number of clusters that its rule does not keep.
    for name in ("n_clusters_", "n_clusters") if is_clusterer(estimator) else ("n_clusters_",):
        wanted = getattr(estimator, name, None)
        if type(wanted) is int and wanted != found:
            raise _no_such(path, f"{name}={wanted} for a rule of {found} clusters")
    names, kernel = getattr(estimator, "kernel_names_", None), estimator.model_.kernel
    if names is not None and len(names) != len(getattr(kernel, "kernels", [kernel])):
        raise _no_such(path, f"kernel_names={names!r}")


def _no_such(path: Any, what: str) -> InputError:
    shown = what if len(what) <= 200 else f"{what[:200]}..."
    return InputError(
        f"{path} has {' '.join(shown.split())}, which is of no model; fit again to write it anew."
    )

"""Fitted estimators as files, and back."""

import os
from typing import Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.features.model import Model, read_model, write_model

CLASSES = (
    *("SparseKernelMMC", "KernelCPMMC", "CPMMC", "UnsupervisedRLS", "EvolutionaryMMC", "IterativeSVR"),
    *("LabelGenerationMMC", "SDPMMC", "MultipleKernelClustering", "KernelKMeans", "SupportClusterMachine"),
)
PLAIN = (str, int, float, bool, type(None))  # a RandomState is not kept
HERE = ("engine", "checkpoint")  # of this machine, and not of the model


def save_estimator(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file, whole or not at all."""
    from mmcnb import __version__

    given = estimator.get_params(deep=False).items()
    plain = {name: _plain(value) for name, value in given}
    header = {
        "class": type(estimator).__name__,
        "version": __version__,
        "parameters": {name: value for name, value in plain.items() if _is_plain(value) and name not in HERE},
        "model": estimator.model_.to_dict(),
        "n_features_in": estimator.n_features_in_,
        **{name: getattr(estimator, f"{name}_") for name in estimator.fitted_names},
        "history": estimator.history_.to_dict("list"),
    }
    write_model(path, header, estimator.model_.arrays())


def _plain(value: Any) -> Any:
    """Numbers of NumPy, arrays and tuples, also within others, as JSON holds them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _is_plain(value: Any) -> bool:
    """Whether JSON gives a value back as it was."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if isinstance(value, list) else isinstance(value, PLAIN)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that ``save`` or ``mmcnb fit --model`` wrote.

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
        If the file is missing, damaged or of another format.

    Examples
    --------
    >>> import tempfile, numpy as np, mmcnb
    >>> X = np.r_[np.random.default_rng(0).normal(size=(50, 2)), np.full((50, 2), 9.0)]
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     mmcnb.SparseKernelMMC(random_state=0).fit(X).save(file.name)
    ...     mmcnb.load(file.name).predict(X[:1])
    array([0], dtype=int32)
    """
    import mmcnb

    header, arrays = read_model(path)
    try:
        if header["class"] not in CLASSES:
            name = header["class"]
            raise InputError(f"{path} holds a {name}, which this version does not know; upgrade mmcnb.")
        known = mmcnb if hasattr(mmcnb, header["class"]) else mmcnb.baselines
        return _restore(getattr(known, header["class"])(**header["parameters"]), header, arrays)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} is no whole model of mmcnb; fit again to write it anew.") from error


def _restore(estimator: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    import pandas as pd

    estimator.model_ = Model.restore(arrays, header["model"])
    estimator.n_features_in_ = header["n_features_in"]
    for name in estimator.fitted_names:
        setattr(estimator, f"{name}_", header[name])
    estimator.history_ = pd.DataFrame(header["history"])
    return estimator

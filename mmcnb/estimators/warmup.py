"""Compile the routines of fits ahead of time."""

import time
from typing import Any

from mmcnb._compiling import times
from mmcnb.errors import InputError, shown

ROWS = 300
FEATURES = 4
SAMPLE = 150


def warmup(estimator: Any = None) -> float:
    """Compile the routines that fits of an estimator call, and cache them on disk.

    The first fit after an installation or an upgrade spends extra time on compilation.
    To avoid this, call the function ahead of time, for example while building a
    container image. It fits 300 generated rows, once in float32 and once in float64.
    Without an estimator, a second process compiles some of the routines at the same
    time. The estimator that is passed is not changed.

    Parameters
    ----------
    estimator : estimator or None, default=None
        The estimator to be fitted later. None compiles the routines of
        `MaximumMarginClustering` with default parameters, with three clusters, and with
        ``metric="cosine"``.

    Returns
    -------
    float
        Seconds spent on compilation; 0 if all routines were already compiled.

    Raises
    ------
    InputError
        If ``estimator`` is not an estimator, or has an invalid parameter.

    Examples
    --------
    >>> import mmcnb
    >>> seconds = mmcnb.warmup(mmcnb.CPMMC())
    >>> mmcnb.warmup(mmcnb.CPMMC())
    0.0
    """
    from sklearn.base import clone

    from mmcnb.engine.compilation import can_compile_apart, compile_seconds
    from mmcnb.engine.compile_apart import GRAPH, graph_compiled_apart
    from mmcnb.estimators.crammer_singer_mmc import CrammerSingerMMC
    from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering
    from mmcnb.estimators.sparse_kernel_mmc import SparseKernelMMC

    if estimator is not None and not hasattr(estimator, "get_params"):
        raise InputError(
            f"estimator={shown(estimator)} is not an estimator; "
            "pass an estimator of mmcnb, or None."
        )
    estimators = [
        MaximumMarginClustering(),
        MaximumMarginClustering(3),
        MaximumMarginClustering(3, metric="cosine", kernel="graph"),
    ]
    if estimator is not None:
        estimators = [clone(estimator)]
    compiled = times()[1]
    waited = 0.0
    of_graph = {GRAPH: 1.0}
    is_cold = compile_seconds(of_graph) > 0 and can_compile_apart(of_graph)
    if estimator is None and is_cold:
        with graph_compiled_apart():
            _fit([SparseKernelMMC(), CrammerSingerMMC(3)])
            ready = time.perf_counter()
        waited = time.perf_counter() - ready
    _fit(estimators)
    return times()[1] - compiled + waited


def _fit(estimators: list[Any]) -> None:
    """Fit each estimator to generated rows, once as float32 and once as float64."""
    import warnings

    import numpy as np

    y = np.arange(ROWS) % 2
    X = np.random.default_rng(0).normal(size=(ROWS, FEATURES)) + 6 * y[:, None]
    for model in estimators:
        parameters = model.get_params()
        settings = {
            "checkpoint": None,
            "engine": None,
            "landmarks": None,
            "verbose": 0,
            "random_state": 0,
            # The sample is smaller than the data, so that the passes over all rows are
            # compiled too.
            "sample_size": parameters.get("sample_size") or SAMPLE,
            "n_nodes": min(parameters.get("n_nodes", SAMPLE), SAMPLE),
        }
        for name in settings.keys() & parameters.keys():
            model.set_params(**{name: settings[name]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings would be about generated rows
            for dtype in ("float32", "float64"):
                model.fit(X.astype(dtype), y)

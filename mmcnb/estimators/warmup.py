"""Compile ahead the routines of fits."""

from typing import Any

from mmcnb._compiling import times
from mmcnb.errors import InputError, shown

ROWS = 300
FEATURES = 4
SAMPLE = 150


def warmup(estimator: Any = None) -> float:
    """Compile the routines that fits of an estimator call, and cache them on disk.

    The first fit of a new installation compiles for a while, and so does the first one
    after an upgrade. This does it ahead, for instance in the build of a container. It
    fits 300 generated rows, once in float32 and once in float64. The given estimator
    stays as it is.

    Parameters
    ----------
    estimator : estimator or None, default=None
        The estimator that will be fitted; None is `MaximumMarginClustering` with two
        clusters, with three and with directions.

    Returns
    -------
    float
        Seconds of compilation; 0 if nothing was left to compile.

    Raises
    ------
    InputError
        If it is no estimator, or a parameter of it is invalid.

    Examples
    --------
    >>> import mmcnb
    >>> seconds = mmcnb.warmup(mmcnb.CPMMC())
    >>> mmcnb.warmup(mmcnb.CPMMC())
    0.0
    """
    import warnings

    import numpy as np
    from sklearn.base import clone

    from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering

    if estimator is not None and not hasattr(estimator, "get_params"):
        raise InputError(
            f"estimator={shown(estimator)} is no estimator; give one of mmcnb, or None."
        )
    compiled = times()[1]
    y = np.arange(ROWS) % 2
    X = np.random.default_rng(0).normal(size=(ROWS, FEATURES)) + 6 * y[:, None]
    estimators = [
        MaximumMarginClustering(),
        MaximumMarginClustering(3),
        MaximumMarginClustering(3, metric="cosine", kernel="graph"),
    ]
    if estimator is not None:
        estimators = [clone(estimator)]
    for model in estimators:
        parameters = model.get_params()
        settings = {
            "checkpoint": None,
            "engine": None,
            "landmarks": None,
            "verbose": 0,
            "random_state": 0,
            # A sample smaller than the data, so that the passes over all rows are
            # compiled as well.
            "sample_size": parameters.get("sample_size") or SAMPLE,
            "n_nodes": min(parameters.get("n_nodes", SAMPLE), SAMPLE),
        }
        for name in settings.keys() & parameters.keys():
            model.set_params(**{name: settings[name]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about generated rows
            for dtype in ("float32", "float64"):
                model.fit(X.astype(dtype), y)
    return times()[1] - compiled

"""Data sets on which the least squares family and its peers are measured, and what is asked there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import mmcnb
from benchmarks._common import Data, Options, load
from benchmarks._compare import gamma_of, mean_squared_distance


class Task(NamedTuple):
    """A data set to be divided without its classes.

    Parameters
    ----------
    name : str
        Its name in tables.
    dataset : str
        What `data_loaders.load` calls it.
    n_clusters : int
        k.
    least : float
        Adjusted Rand index that is asked for; NaN where it is the error.
    most : float, default=NaN
        Balanced error that is asked for.
    rows : int or None, default=None
        A draw of so many rows; None for all.
    components : int or None, default=None
        Principal components that take the place of the columns.
    width : float or None, default=None
        Given sigma in units of the root mean squared distance; None is the default.
    """

    name: str
    dataset: str
    n_clusters: int
    least: float
    most: float = np.nan
    rows: int | None = None
    components: int | None = None
    width: float | None = None


QUICK_ROWS = 5000
TASKS = (
    Task("optdigits", "optdigits", 10, 0.87),
    Task("mnist", "mnist", 10, 0.47),
    Task("mnist, 50 components", "mnist", 10, 0.48, components=50),
    Task("mnist-1v7", "mnist-1v7", 2, 0.94),
    Task("mnist-2v7", "mnist-2v7", 2, 0.93),
    Task("mnist-3v8", "mnist-3v8", 2, 0.80),
    Task("mnist-8v9", "mnist-8v9", 2, 0.87),
    Task("usps-extended, 60,000", "usps-extended", 2, np.nan, 0.02, rows=60_000, width=0.35),
)


def load_task(task: Task, options: Options) -> Data:
    """The rows of a task, fewer where the options say so."""
    bounds = [bound for bound in (task.rows, QUICK_ROWS if options.quick else None) if bound is not None]
    data = load(task.dataset, options, min(bounds, default=None))
    X = data.X if task.components is None else _leading(data.X, task.components)
    return Data(task.name, X, data.y)


def _leading(X: np.ndarray, components: int) -> np.ndarray:
    from sklearn.decomposition import PCA

    return PCA(min(components, *X.shape), svd_solver="covariance_eigh").fit_transform(X)


def parameters_of(task: Task, X: Any) -> dict[str, Any]:
    """What is given to the estimators: the width where the task has one, and nothing else."""
    return {} if task.width is None else {"gamma": gamma_of(task.width, mean_squared_distance(X))}


def least_squares(task: Task, X: Any, seed: int) -> Any:
    """`UnsupervisedRLS` at its defaults, not yet fitted."""
    return mmcnb.UnsupervisedRLS(task.n_clusters, random_state=seed, **parameters_of(task, X))

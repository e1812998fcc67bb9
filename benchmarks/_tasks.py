"""Data sets on which the least squares family and its peers are measured, and what is asked there."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks._common import Data, Options, load_rows, rows_of
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


QUICK_ROWS = 3000
QUICK_TASKS, SMOKE_TASKS = ("optdigits", "mnist", "mnist-3v8"), ("optdigits", "mnist-3v8")
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


def tasks_of(options: Options) -> tuple[Task, ...]:
    """All tasks, or a few."""
    names = SMOKE_TASKS if options.smoke else QUICK_TASKS if options.quick else [task.name for task in TASKS]
    return tuple(task for task in TASKS if task.name in names)


def rows_of_task(task: Task, options: Options) -> int | None:
    """How many rows of a task to draw; None for all."""
    bounds = [bound for bound in (task.rows, QUICK_ROWS if options.quick else None) if bound is not None]
    return rows_of(task.dataset, options, min(bounds, default=None))


@lru_cache(maxsize=1)
def load_task(name: str, rows: int | None) -> tuple[Task, Data]:
    """A task and its rows; the last one is kept for the next cell of this process."""
    task = next(task for task in TASKS if task.name == name)
    data = load_rows(task.dataset, rows)
    X = data.X if task.components is None else _leading(data.X, task.components)
    return task, Data(name, X, data.y)


def _leading(X: np.ndarray, components: int) -> np.ndarray:
    from sklearn.decomposition import PCA

    return PCA(min(components, *X.shape), svd_solver="covariance_eigh").fit_transform(X)


def parameters_of(task: Task, X: Any) -> dict[str, Any]:
    """What is given to the estimators: the width where the task has one, and nothing else."""
    return {} if task.width is None else {"gamma": gamma_of(task.width, mean_squared_distance(X))}

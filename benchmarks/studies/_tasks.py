"""Data sets on which the least squares methods are measured, and their goals."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.protocol import Data, load_rows, rows_within, with_gamma
from benchmarks.run import Options


class Task(NamedTuple):
    """A data set to be clustered without its classes.

    Parameters
    ----------
    name : str
        Name in the tables.
    dataset : str
        Name for `data_loaders.load`.
    n_clusters : int
        k.
    least : float
        Goal for the adjusted Rand index; NaN if the goal is an error.
    most : float, default=NaN
        Goal for the balanced error.
    rows : int or None, default=None
        Number of rows to draw; None for all.
    components : int or None, default=None
        Number of principal components that replace the columns.
    width : float or None, default=None
        Sigma in units of the root mean squared distance; None for the default.
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
QUICK_TASKS = ("optdigits", "mnist", "mnist-3v8")
SMOKE_TASKS = ("optdigits", "mnist-3v8")
TASKS = {
    task.name: task
    for task in (
        Task("optdigits", "optdigits", 10, 0.87),
        Task("mnist", "mnist", 10, 0.47),
        Task("mnist, 50 components", "mnist", 10, 0.48, components=50),
        Task("mnist-1v7", "mnist-1v7", 2, 0.94),
        Task("mnist-2v7", "mnist-2v7", 2, 0.93),
        Task("mnist-3v8", "mnist-3v8", 2, 0.80),
        Task("mnist-8v9", "mnist-8v9", 2, 0.87),
        Task(
            "usps-extended, 60,000",
            "usps-extended",
            2,
            np.nan,
            0.02,
            rows=60_000,
            width=0.35,
        ),
    )
}


def tasks_of(options: Options) -> list[tuple[Task, int | None]]:
    """Return all tasks, or a few, and how many of their rows to draw (None for all)."""
    bound = QUICK_ROWS if options.quick else None
    tasks = [
        TASKS[name] for name in options.pick(tuple(TASKS), QUICK_TASKS, SMOKE_TASKS)
    ]
    return [
        (task, rows_within(task.dataset, options.rows, task.rows, bound))
        for task in tasks
    ]


@lru_cache(maxsize=1)
def load_task(name: str, rows: int | None) -> tuple[Task, Data]:
    """Return a task and its rows; the last result is cached for the next run of this process."""
    from sklearn.decomposition import PCA

    task = TASKS[name]
    data = load_rows(task.dataset, rows)
    if task.components is None:
        return task, data
    pca = PCA(min(task.components, *data.X.shape), svd_solver="covariance_eigh")
    return task, Data(name, pca.fit_transform(data.X), data.y)


def parameters_of(task: Task, X: Any, width: float | None = None) -> dict[str, Any]:
    """Return the parameters of estimators: gamma if there is a width, and otherwise none."""
    width = task.width or width
    return {} if width is None else with_gamma({"width": width}, X)

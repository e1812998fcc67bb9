"""What the parts of a support cluster machine are worth: width and C, the space of clusters, the rounds."""

from __future__ import annotations

import time
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._cells import LABEL_FREE, PAPER, Cell, facts
from benchmarks._common import Options
from benchmarks._compare import fit as fit_quietly
from benchmarks._fit_scm import SCM, SVC, UNDER, WEIGHTED, Fit, measures, quieten, train, trained_rows
from benchmarks._scm_data import RARE, RINGS, Task, load_task

CHOSEN: dict[str, Any] = {"gamma": 0.01, "C": 1.0, "rare_weight": 10.0}  # the best of the SVC in the grid
GAMMAS = (0.01, 0.03)
POINTS: tuple[tuple[float, float | None], ...] = (
    (0.1, None),
    (1.0, None),
    (0.1, 10.0),
    (0.3, 10.0),
    (1.0, 10.0),
)
SPACES = {"feature space": "rbf", "input space": "linear"}  # and the kernel whose clusters are taken
RANDOM, DRAWN, CENTRES = "random rows", "drawn rows", "pseudo-centres"
CHOICES = (RANDOM, *(f"{choice}, {space}" for choice in (DRAWN, CENTRES) for space in SPACES))
CLUSTERS, QUICK_CLUSTERS = (25, 50, 100, 200, 400, 800), (25, 100)
RING_ROWS = 20_000
SEEDS, MOST_ROUNDS = 3, 5
LANDMARKS, PASSES = 50, 1  # as in a fit of SCM


@lru_cache(maxsize=2)
def task_once(name: str, options: Options) -> Task:
    """One of the sets, kept for the next cell of this process."""
    return load_task(name, options)


def grid_cells(options: Options) -> list[Cell]:
    """SCM, the SVC on all rows, and on under-samples of 2,500 rows, at each point of a grid."""
    points = [
        {"gamma": gamma, "C": C} | ({} if weight is None else {"rare_weight": weight})
        for gamma in GAMMAS
        for C, weight in POINTS
    ]
    sample = 2500
    return [
        Cell(
            RARE,
            method,
            0,
            partial(fitted, options, Fit(method, 0, **point, rows=sample)),
            point,
            PAPER,
            "grid",
        )
        for point in (points[:1] if options.smoke else points)
        for method in (SCM, SVC, UNDER, WEIGHTED)
    ]


def fitted(options: Options, fit: Fit) -> dict[str, Any]:
    """Compute a cell of the grid."""
    quieten()
    task = task_once(RARE, options)
    model, found = train(fit, *task.train[1:])
    return facts(task.train.X) | found | measures(task.test.y, model.decision_function(task.test.X))


def grid_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Average precision and seconds of each method, a row a point, the best of the SVC first."""
    columns = ["gamma", "C", "rare_weight"]
    frame = frame.assign(
        rare_weight=frame.get("rare_weight", pd.Series(np.nan, frame.index)).fillna("balanced")
    )
    table = frame.pivot_table(
        index=columns, columns="method", values=["average_precision", "seconds"], sort=False
    )
    table.columns = [f"{method} {figure}" for figure, method in table.columns]
    return table.sort_values(f"{SVC} average_precision", ascending=False).reset_index()


def spaces_cells(options: Options) -> list[Cell]:
    """One machine on rare rows and weighted representatives of the others, without rounds.

    The thinned a9a at the chosen parameters, the rings by default.
    """
    few = Options(options.out, options.quick, rows=min(options.rows or RING_ROWS, RING_ROWS))
    clusters = QUICK_CLUSTERS if options.quick else CLUSTERS
    return [
        Cell(
            task,
            name,
            seed,
            partial(by_space, task, given, name, k, seed),
            {"clusters": k},
            protocol,
            "spaces",
        )
        for task, given, protocol in ((RARE, options, PAPER), (RINGS, few, LABEL_FREE))
        for seed in range(1 if options.quick else options.seeds or SEEDS)
        for k in clusters
        for name in CHOICES
    ]


def by_space(task: str, options: Options, name: str, k: int, seed: int) -> dict[str, Any]:
    """Compute a cell of representatives: drawn members of clusters, their pseudo-centres, or random rows."""
    data = task_once(task, options)
    common, point = np.flatnonzero(data.train.y == 0), CHOSEN if task == RARE else {"gamma": width(data)}
    started = time.perf_counter()
    rows, weights = representatives(name, data.train.X[common], min(k, common.size), point["gamma"], seed)
    found = machine_on(data, common[rows], weights, **point)
    return facts(data.train.X) | found | {"seconds": time.perf_counter() - started}


def width(task: Task) -> float:
    """The width that SCM takes, found on one round of few clusters."""
    model = mmcnb.SupportClusterMachine(max_rounds=1, n_clusters=2, random_state=0)
    return float(model.fit(task.train.X, task.train.y).gamma_)


def representatives(name: str, X: Any, k: int, gamma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that stand for all, and their weights."""
    random = np.random.RandomState(seed)
    choice, _, space = name.partition(", ")
    if choice == RANDOM:
        return random.permutation(X.shape[0])[:k], np.full(k, X.shape[0] / k)
    model = mmcnb.KernelKMeans(
        k, SPACES[space], gamma, LANDMARKS, n_init=1, max_iter=PASSES, random_state=seed
    )
    fit_quietly(model, X)
    full = np.flatnonzero(model.pseudo_centres_ >= 0)
    if choice == CENTRES:
        return model.pseudo_centres_[full], model.cluster_sizes_[full].astype(np.float64)
    members = [random.choice(np.flatnonzero(model.labels_ == cluster)) for cluster in full]
    return np.array(members), model.cluster_sizes_[full].astype(np.float64)


def machine_on(
    task: Task,
    representatives: np.ndarray,
    weights: np.ndarray,
    gamma: float,
    C: float = 1.0,
    rare_weight: float | None = None,
) -> dict[str, Any]:
    """Figures of a machine of eq. (6) on rare rows and representatives; balanced where no weight is given."""
    from sklearn.svm import SVC as Machine

    rare = np.flatnonzero(task.train.y == 1)
    rows = np.concatenate([rare, representatives])
    y = np.concatenate([np.ones(rare.size), np.zeros(representatives.size)])
    machine = Machine(gamma=gamma, C=C)
    each = weights.sum() / rare.size if rare_weight is None else rare_weight
    machine.fit(task.train.X[rows], y, sample_weight=np.concatenate([np.full(rare.size, each), weights]))
    return measures(task.test.y, machine.decision_function(task.test.X))


def rounds_cells(options: Options) -> list[Cell]:
    """SCM that is stopped after each of its rounds, at the chosen parameters."""
    return [
        Cell(
            RARE,
            SCM,
            seed,
            partial(by_round, options, most, seed),
            {"rounds": most} | CHOSEN,
            PAPER,
            "rounds",
        )
        for seed in range(1 if options.quick else options.seeds or SEEDS)
        for most in range(1, (2 if options.quick else MOST_ROUNDS) + 1)
    ]


def by_round(options: Options, most: int, seed: int) -> dict[str, Any]:
    """Compute a cell of at most so many rounds; of fewer, where SCM ends before."""
    task = task_once(RARE, options)
    point = {"gamma": CHOSEN["gamma"], "C": CHOSEN["C"], "class_weight": {1: CHOSEN["rare_weight"]}}
    model = mmcnb.SupportClusterMachine(max_rounds=most, random_state=seed, **point)
    model.fit(task.train.X, task.train.y)
    log = model.history_
    last = {name: int(log[name].iloc[-1]) for name in ("negatives", "support_vectors")}
    last |= {"rows_trained_on": trained_rows(model), "seconds": log["seconds"].sum()}
    return facts(task.train.X) | last | measures(task.test.y, model.decision_function(task.test.X))

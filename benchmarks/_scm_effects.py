"""What the parts of a support cluster machine are worth: width and C, the space of clusters, the rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._common import Goal, Options, say
from benchmarks._compare import fit
from benchmarks._fit_scm import SCM, SVC, UNDER, UNDER_BALANCED, measures, some_rows, trained_rows
from benchmarks._scm_data import RARE, RINGS, Task, load_task

FEATURE, INPUT, RANDOM = "feature space", "input space", "random rows"
CLUSTERS, QUICK_CLUSTERS = (25, 50, 100, 200, 400, 800), (25, 100)
RING_ROWS = 20_000
SEEDS = 3
MOST_ROUNDS = 10
GAMMAS, WEIGHTS = (0.01, 0.03), (0.1, 1.0)
LANDMARKS, PASSES = 100, 2  # as in a fit of SCM


def effects(options: Options) -> tuple[dict[str, pd.DataFrame], list[Goal]]:
    """Clusters in feature space, in input space and random rows by their number; SCM round by round."""
    few = Options(options.out, options.quick, rows=min(options.rows or RING_ROWS, RING_ROWS))
    tasks = [load_task(RARE, options), load_task(RINGS, few)]
    seeds = range(options.seeds or SEEDS)
    spaces = pd.DataFrame([row for task in tasks for row in by_space(task, options, seeds)])
    rounds = pd.DataFrame(by_round(tasks[0], seeds))
    keys = ["dataset", "representatives"]
    table = spaces.pivot_table(
        index=keys, columns="clusters", values="average precision", sort=False
    ).reset_index()
    table.columns = [str(name) for name in table.columns]
    figures = ["machines", "negatives", "rows trained on", "support vectors", "seconds"]
    figures += ["average precision", "ROC AUC", "balanced accuracy"]
    curve = rounds.groupby(["class_weight", "rounds"], sort=False)[figures[1:]].mean()
    curve.insert(0, "machines", rounds.groupby(["class_weight", "rounds"], sort=False).size())
    return {
        "scm-spaces-fits": spaces,
        "scm-spaces": table,
        "scm-rounds-fits": rounds,
        "scm-rounds": curve.reset_index(),
    }, []


def by_space(task: Task, options: Options, seeds: range) -> list[dict[str, Any]]:
    """One machine on rare rows and weighted representatives of the others, without rounds."""
    say(f"effects: {task.name}, {len(task.train.y):,} rows, by space")
    common = np.flatnonzero(task.train.y == 0)
    rows = []
    for seed in seeds:
        gamma = width(task, seed)
        for k in QUICK_CLUSTERS if options.quick else CLUSTERS:
            for space, choose in SPACES.items():
                chosen, weights = choose(task.train.X[common], k, gamma, seed)
                found = machine_on(task, common[chosen], weights, gamma)
                rows.append(
                    {"dataset": task.name, "representatives": space, "clusters": k, "seed": seed} | found
                )
    return rows


def width(task: Task, seed: int) -> float:
    """The width that SCM takes, found on one round of few clusters."""
    model = mmcnb.SupportClusterMachine(max_rounds=1, n_clusters=2, random_state=seed)
    return float(model.fit(task.train.X, task.train.y).gamma_)


def clustered(kernel: str) -> Callable[[Any, int, float, int], tuple[np.ndarray, np.ndarray]]:
    """Pseudo-centres and sizes of clusters in the space of a kernel."""

    def choose(X: Any, k: int, gamma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        model = mmcnb.KernelKMeans(k, kernel, gamma, LANDMARKS, n_init=1, max_iter=PASSES, random_state=seed)
        fit(model, X)
        full = model.pseudo_centres_ >= 0
        return model.pseudo_centres_[full], model.cluster_sizes_[full].astype(np.float64)

    return choose


def drawn(X: Any, k: int, gamma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random rows of equal weight."""
    return np.random.RandomState(seed).permutation(X.shape[0])[:k], np.full(k, X.shape[0] / k)


SPACES = {FEATURE: clustered("rbf"), INPUT: clustered("linear"), RANDOM: drawn}


def machine_on(task: Task, representatives: np.ndarray, weights: np.ndarray, gamma: float) -> dict[str, Any]:
    """Figures of a machine of eq. (6) on all rare rows and on representatives."""
    from sklearn.svm import SVC

    rare = np.flatnonzero(task.train.y == 1)
    rows = np.concatenate([rare, representatives])
    y = np.concatenate([np.ones(rare.size), np.zeros(representatives.size)])
    machine = SVC(gamma=gamma)
    machine.fit(task.train.X[rows], y, sample_weight=np.concatenate([np.ones(rare.size), weights]))
    return measures(task.test.y, machine.decision_function(task.test.X))


def by_round(task: Task, seeds: range) -> list[dict[str, Any]]:
    """SCM that is stopped after each of its rounds; a fit of fewer rounds is the beginning of one of more."""
    rows = []
    for class_weight in (None, "balanced"):
        say(f"effects: {task.name}, rounds, class_weight={class_weight}")
        for seed in seeds:
            for most in range(1, MOST_ROUNDS + 1):
                model = mmcnb.SupportClusterMachine(
                    class_weight=class_weight, max_rounds=most, random_state=seed
                ).fit(task.train.X, task.train.y)
                log = model.history_
                if len(log) < most:
                    break
                last = log.iloc[-1]
                facts = {"class_weight": str(class_weight), "seed": seed, "rounds": most}
                facts["negatives"] = last["negatives"]
                facts["rows trained on"] = last["positives"] + last["representatives"] + last["settled"]
                facts["support vectors"] = last["support_vectors"]
                facts["seconds"] = log["seconds"].sum()
                rows.append(facts | measures(task.test.y, model.decision_function(task.test.X)))
    return rows


def grid(options: Options) -> tuple[dict[str, pd.DataFrame], list[Goal]]:
    """Balanced machines at given widths and C: SCM, SVC on all rows, and on an under-sample of SCM's size."""
    from sklearn.svm import SVC as Machine

    task = load_task(RARE, options)
    (X, y), rows = task.train[1:], []
    for gamma in GAMMAS:
        for C in WEIGHTS:
            say(f"grid: {task.name}, gamma={gamma:g}, C={C:g}")
            shared: dict[str, Any] = {"gamma": gamma, "C": C, "class_weight": "balanced"}
            row: dict[str, Any] = {"dataset": task.name, "n": len(y), "gamma": gamma, "C": C}
            model = mmcnb.SupportClusterMachine(random_state=0, **shared)
            row |= point(SCM, model, X, y, task)
            row["rows trained on"] = trained_rows(model)
            row |= point(SVC, Machine(**shared), X, y, task)
            few = some_rows(UNDER, y, 0, row["rows trained on"])
            row |= point(UNDER_BALANCED, Machine(**shared), X[few], y[few], task)
            row |= point(UNDER, Machine(**shared | {"class_weight": None}), X[few], y[few], task)
            rows.append(row)
    table = pd.DataFrame(rows)
    best = table.loc[table[f"{SVC}: precision"].idxmax()]
    where = f"grid: gamma={best['gamma']:g}, C={best['C']:g}, best of the SVC"
    precision, seconds = (best[f"{SCM}: {name}"] for name in ("precision", "seconds"))
    sample = max(best[f"{name}: precision"] for name in (UNDER, UNDER_BALANCED))
    share, took = precision / best[f"{SVC}: precision"], seconds / best[f"{SVC}: seconds"]
    return {"scm-grid": table}, [
        Goal(f"{where}: precision of SCM in that of the SVC", 100 * share, 98.0, "%", True),
        Goal(f"{where}: seconds of SCM in those of the SVC", 100 * took, 25.0, "%"),
        Goal(f"{where}: precision of SCM, bound: under-sample", precision, sample, "", True),
    ]


def point(name: str, model: Any, X: Any, y: np.ndarray, task: Task) -> dict[str, Any]:
    """Average precision and seconds of one method."""
    started = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - started
    found = measures(task.test.y, model.decision_function(task.test.X))
    return {f"{name}: precision": found["average precision"], f"{name}: seconds": seconds}

"""What study `evolutionary` computes in a cell: a fit by default, the best of some runs, and a time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import mmcnb
from benchmarks._cells import facts, load_once
from benchmarks._common import Data
from benchmarks._compare import KMEANS, clustering, compile_seconds, timed
from mmcnb import kernels
from mmcnb.features.kernel import Kernel
from mmcnb.synthetic import make_block

EVO, FAST, SHAKING, NAIVE = "EvoMMC", "FastEvoMMC", "mixed shaking", "fitness in O(n²)"
BALANCES = (0.03, 0.1, 0.3, 0.4)
MANY = 10**7  # generations: an evolution ends where it stands still
MOST_LANDMARKS = 200  # by default
GENERATIONS = 100_000
NAIVE_SECONDS, QUICK_NAIVE_SECONDS = 1.0, 0.1


def fitted(name: str, rows: int | None, method: str, seed: int) -> dict[str, Any]:
    """Compute a cell: a method as a user gets it, but for k-means' ten starts."""
    from sklearn.cluster import KMeans

    data = load_once(name, rows)
    landmarks = max(2, min(len(data.y) // 10, MOST_LANDMARKS))
    estimators = {
        KMEANS: KMeans(2, n_init=10, random_state=seed),
        EVO: mmcnb.EvolutionaryMMC(random_state=seed),
        FAST: mmcnb.EvolutionaryMMC(n_landmarks=landmarks, random_state=seed),
        SHAKING: mmcnb.UnsupervisedRLS(n_clusters=2, random_state=seed),
    }
    return measured(data, estimators[method])


def searched(
    name: str, rows: int | None, method: str, point: Mapping[str, float], share: int, seeds: Sequence[int]
) -> dict[str, Any]:
    """Compute a cell: of some runs at a point of the grid the one of least error, as the classes tell.

    Parameters
    ----------
    name : str
        What `data_loaders.load` calls the data set.
    rows : int or None
        At most so many rows, drawn at random.
    method : str
        "k-means", "EvoMMC" or "FastEvoMMC".
    point : mapping
        ``width`` and ``ridge``; nothing for k-means.
    share : int
        Rows a landmark.
    seeds : sequence of int
        One a run.

    Returns
    -------
    dict
        Measures of the best run; ``mean_error``, and seconds and generations as means over the runs.
    """
    from sklearn.cluster import KMeans

    data = load_once(name, rows)
    given = {} if method == KMEANS else _as_published(data, method, point, share)
    runs = [
        measured(data, mmcnb.EvolutionaryMMC(random_state=seed, **given))
        if given
        else measured(data, KMeans(2, n_init=1, random_state=seed))
        for seed in seeds
    ]
    means = {
        key: float(np.mean([one[key] for one in runs]))
        for key in ("seconds", "generations")
        if key in runs[0]
    }
    mean_error = float(np.mean([one["error"] for one in runs]))
    return min(runs, key=lambda one: one["error"]) | means | {"mean_error": mean_error}


def _as_published(data: Data, method: str, point: Mapping[str, float], share: int) -> dict[str, Any]:
    """Parameters at a point of the grid; the bound of the balance is the first that the classes keep."""
    n, width = len(data.y), point["width"] * _range_norm(data.X)
    differs = abs(np.unique(data.y, return_counts=True)[1] @ [1, -1]) / n
    fast = {"n_landmarks": max(2, n // share), "n_parents": 1, "n_offspring": 1}
    return {
        "gamma": 1 / width**2,
        "alpha": 1 / (point["ridge"] * n),
        "balance": next((bound for bound in BALANCES if bound >= differs), BALANCES[-1]),
        "centre": False,
        "n_init": 1,
        "sample_size": max(2, n),
        "max_generations": MANY,
        **(fast if method == FAST else {}),
    }


def _range_norm(X: np.ndarray) -> float:
    """Norm of the columns' ranges, the paper's unit of sigma."""
    return float(np.sqrt(np.sum(np.ptp(X, axis=0).astype(float) ** 2)))


def measured(data: Data, estimator: Any) -> dict[str, Any]:
    """Fit once; of the evolution the generations and the fitness too."""
    ours = isinstance(estimator, mmcnb.EvolutionaryMMC | mmcnb.UnsupervisedRLS)
    compiled = compile_seconds(data.X, type(estimator)(random_state=0)) if ours else 0.0
    found = facts(data.X) | timed(estimator, data.X) | {"compile_seconds": compiled}
    found |= clustering(data.y, estimator.labels_)
    if isinstance(estimator, mmcnb.EvolutionaryMMC):
        generations = int(estimator.history_["generation"].max())
        found |= {"objective": float(estimator.objective_), "generations": generations}
    return found


# -- seconds against rows ----------------------------------------------------------------------


def grown(n: int, method: str, quick: bool) -> dict[str, Any]:
    """Compute a cell: seconds of a run and of a generation, of one parent and one child, on n rows."""
    X, R, Z, alpha = _matrices(n)
    start = np.where(np.arange(n) % 2, 1, -1).astype(np.int8)
    found = facts(X)
    if method == NAIVE:
        seconds = _naive_generation(R, start, QUICK_NAIVE_SECONDS if quick else NAIVE_SECONDS)
        return found | {"seconds": np.nan, "generation_seconds": seconds}  # no run of it is waited for
    given: dict[str, Any] = {"n_landmarks": n // 10} if method == FAST else {}
    model = mmcnb.EvolutionaryMMC(
        1 / _range_norm(X) ** 2,
        alpha,
        sample_size=n,
        balance=0.03,
        n_parents=1,
        n_offspring=1,
        n_init=1,
        max_generations=MANY,
        n_jobs=1,
        random_state=0,
        **given,
    )
    compiled = compile_seconds(X, mmcnb.EvolutionaryMMC(random_state=0))
    found |= timed(model, X) | {
        "compile_seconds": compiled,
        "generations": int(model.history_["generation"].max()),
    }
    M = R if method == EVO else Z
    arguments = M, M is R, start[None], int(0.03 * n) + n % 2, 1
    kernels.evolve_labels(*arguments, 10, 10, 0)  # compiles
    started = time.perf_counter()
    kernels.evolve_labels(*arguments, GENERATIONS, GENERATIONS, 0)
    return found | {"generation_seconds": (time.perf_counter() - started) / GENERATIONS}


@lru_cache(maxsize=1)
def _matrices(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Rows, R of all of them, features of a tenth of them, and alpha."""
    X, _ = make_block("blobs", 0, n, 2, random_state=1)
    X, alpha = X.astype(np.float64), 1 / (1000 * n)
    K = Kernel("rbf", 1 / _range_norm(X) ** 2)(X, X)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0) / (np.maximum(values, 0) + alpha * n)
    features = vectors * np.sqrt(values)
    return X, features @ features.T, np.ascontiguousarray(features[:, -(n // 10) :]), alpha


def _naive_generation(R: np.ndarray, y: np.ndarray, seconds: float) -> float:
    """Seconds of a generation whose fitness is worked out anew."""
    random, y = np.random.default_rng(0), y.astype(np.float64)
    least, generations, started = 1 - y @ R @ y / len(y), 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        child = y.copy()
        child[random.integers(len(y))] *= -1
        fitness = 1 - child @ R @ child / len(y)
        if fitness < least:
            y, least = child, fitness
        generations += 1
    return (time.perf_counter() - started) / generations

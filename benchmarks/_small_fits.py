"""What study `small` computes in a cell: one method on one data set, at one setting or the best of some."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import mmcnb
from benchmarks._cells import facts, load_once
from benchmarks._compare import (
    CPMMC,
    ERROR,
    KMEANS,
    LGMMC,
    SKMMC,
    clustering,
    compile_seconds,
    fit,
    gamma_of,
    mean_squared_distance,
)
from benchmarks._peers import Quiet, spectral
from mmcnb.metrics import balanced_clustering_error, imbalance_degree, sparsity

CUT, SVR, SKMMC2, COINS = "normalised cut", "IterSVR", "SKMMCv2", "coin flips"
COIN_FLIP, MIXED, EXACT = "coin flip", "mixed", "mixed, exact"
MOST_EXACT_ROWS = 500
STARTS: dict[str, dict[str, Any]] = {
    COIN_FLIP: {"init": "random", "n_init": 1},
    MIXED: {"init": "mixed", "n_init": 4},
    EXACT: {"init": "mixed", "n_init": 4, "n_landmarks": MOST_EXACT_ROWS},  # all rows where there are no more
}
CLASSES: dict[str, tuple[str, dict[str, Any]]] = {
    SVR: ("IterativeSVR", {}),
    CPMMC: ("CPMMC", {}),
    LGMMC: ("LabelGenerationMMC", {}),
    SKMMC: ("SparseKernelMMC", {}),
    SKMMC2: ("SparseKernelMMC", {"threshold": "fixed"}),
}
METHODS = (KMEANS, CUT, *CLASSES)
C = 10.0
LEAST_BALANCE = 0.03  # of IterSVR and LG-MMC, whose bound counts labels


def fitted(name: str, rows: int | None, method: str, seed: int) -> dict[str, Any]:
    """Fit a method as a user gets it.

    Parameters
    ----------
    name : str
        What `data_loaders.load` calls the data set.
    rows : int or None
        At most so many rows, drawn at random.
    method : str
        One of `METHODS`.
    seed : int
        Of the method.

    Returns
    -------
    dict
        Facts of the data, `clustering`, wall and CPU seconds.
    """
    data = load_once(name, rows)
    compiled = _compiled(method, data.X)
    return facts(data.X) | _scored(label_free(method, seed), data.X, data.y) | compiled


def searched(
    name: str, rows: int | None, method: str, seed: int, given: Mapping[str, Any], bounds: Iterable[int] = ()
) -> dict[str, Any]:
    """Fit a method at a setting of the paper, once for each bound l of the balance, and keep the least error.

    Parameters
    ----------
    name : str
        What `data_loaders.load` calls the data set.
    rows : int or None
        At most so many rows, drawn at random.
    method : str
        One of `METHODS`.
    seed : int
        Of the method; each bound has other starts.
    given : mapping
        ``width`` and, of ours, ``starts``.
    bounds : iterable of int, default=()
        Values of l; none for a method without.

    Returns
    -------
    dict
        `clustering` of the run of least balanced error, ``found_l``, ``runs``, ``mean_error`` of all runs,
        means of wall and CPU seconds of a run, facts of the data.
    """
    data = load_once(name, rows)
    compiled = _compiled(method, data.X)
    bounds = list(bounds)
    runs = []
    for place, bound in enumerate(bounds or [0]):
        other = seed * max(len(bounds), 1) + place
        estimator = as_published(method, data.X, data.y, other, given, bound)
        runs.append(_scored(estimator, data.X, data.y) | ({"found_l": bound} if bounds else {}))
    best = min(runs, key=lambda run: float(run[ERROR]))
    means = {name: float(np.mean([run[name] for run in runs])) for name in ("seconds", "cpu_seconds")}
    means["mean_error"] = float(np.mean([run[ERROR] for run in runs]))
    return facts(data.X) | best | means | {"runs": len(runs)} | compiled


def coin_flips(name: str, rows: int | None, flips: int, seed: int) -> dict[str, Any]:
    """Least balanced error of so many random labellings: what choosing by the classes gives without data."""
    data = load_once(name, rows)
    random = np.random.default_rng(seed)
    labels = (random.integers(0, 2, len(data.y)) for _ in range(flips))
    return facts(data.X) | {ERROR: min(balanced_clustering_error(data.y, one) for one in labels)}


def described(name: str, rows: int | None) -> dict[str, Any]:
    """Tab. I: imbalance of the classes, and share of values that are not zero."""
    data = load_once(name, rows)
    shares = {"imbalance": imbalance_degree(data.y), "sparsity": sparsity(data.X)}
    return facts(data.X) | {name: float(value) / 100 for name, value in shares.items()}


def label_free(method: str, seed: int) -> Any:
    """The estimator without a parameter, but for k-means' ten starts and the graph of the cut."""
    from sklearn.cluster import KMeans

    if method == KMEANS:
        return KMeans(2, n_init=10, random_state=seed)
    if method == CUT:
        return spectral(2, seed)
    return _ours(method, random_state=seed)


def as_published(
    method: str, X: Any, y: np.ndarray, seed: int, given: Mapping[str, Any], bound: int = 0
) -> Any:
    """The estimator of a point of the paper's grid.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    X : ndarray of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,)
        Their classes, of which IterSVR is told how unequal they are.
    seed : int
        Of the starts.
    given : mapping
        ``width`` and ``starts``, where the method has them.
    bound : int, default=0
        l.

    Returns
    -------
    estimator
        Not yet fitted.
    """
    from sklearn.cluster import KMeans, SpectralClustering

    gamma = gamma_of(given["width"], mean_squared_distance(X)) if "width" in given else None
    if method == KMEANS:
        return KMeans(2, init="random", n_init=1, random_state=seed)
    if method == CUT:
        return Quiet(SpectralClustering(2, gamma=gamma, random_state=seed))
    if method in (SVR, LGMMC):
        known = max(LEAST_BALANCE, imbalance_degree(y) / 100)
        return _ours(method, gamma=gamma, balance=known, random_state=seed)
    shared = {"C": C, "balance": bound / len(y), "random_state": seed, **STARTS[given["starts"]]}
    if method == CPMMC:
        return _ours(method, threshold="fixed", continuation=False, **shared)
    return _ours(method, gamma=gamma, **shared)


def _ours(method: str, **given: Any) -> Any:
    name, fixed = CLASSES[method]
    return getattr(mmcnb, name)(**fixed, **given)


def _compiled(method: str, X: Any) -> dict[str, float]:
    return {"compile_seconds": compile_seconds(X) if method in CLASSES else 0.0}


def _scored(estimator: Any, X: Any, y: np.ndarray) -> dict[str, float]:
    """Fit, and return how well the classes were found, wall and CPU seconds."""
    started, worked = time.perf_counter(), time.process_time()
    fit(estimator, X)
    seconds, cpu = time.perf_counter() - started, time.process_time() - worked
    return clustering(y, estimator.labels_) | {"seconds": seconds, "cpu_seconds": cpu}

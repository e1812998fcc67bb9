"""The tables and the count of steps of the UMC-RLS paper, by its algorithms on whole data sets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._cells import LABEL_FREE, PAPER, Cell, facts, load_once
from benchmarks._common import Data, Goal, Options, load_rows, sizes_within
from benchmarks._compare import KMEANS, clustering, compile_seconds, mean_squared_distance, timed
from benchmarks._journal import Journal
from benchmarks._parts import Tables
from benchmarks._peers import LEAST_SQUARES, spectral
from benchmarks._statistics import best, log_slope, over_seeds
from benchmarks.published import RLS, figure
from mmcnb import kernels
from mmcnb.features.kernel import Kernel
from mmcnb.synthetic import make_block

STOCHASTIC, STEEPEST, SHAKING, MIXED = "Stoc-RLS", "Steep-RLS", "UMC-RLS", "mixed shaking"
SPECTRAL = "spectral"
SETS = {"iris": 3, "moons": 2, "usps 1-4": 4, "usps 5-8": 4, "optdigits-tes": 10}
QUICK_SETS, QUICK_ROWS = ("iris", "moons", "usps 1-4"), 300
DRAWN = 500
WIDTHS = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)  # sigma in units of the largest distance
RIDGES = (2.0**-10, 2.0**-7, 2.0**-4, 2.0**-1)  # lambda
GRID = tuple({"width": width, "ridge": ridge} for width in WIDTHS for ridge in RIDGES)
RUNS, QUICK_RUNS = 10, 3
MIXED_RUNS, FREE_RUNS = 3, 3
STEP_SIZES, QUICK_STEP_SIZES, SMOKE_STEP_SIZES = (
    (125, 250, 500, 1000, 2000, 4000),
    (100, 200, 400),
    (100, 200),
)
MOST_SLOPE = 1.1
ALPHA, WIDTH = 1e-3, 0.55
AS_PUBLISHED = (1.0, 0.5, 21)


# -- tables ------------------------------------------------------------------------------------


def tables(options: Options, journal: Journal) -> Tables:
    """Tables I and II: ours at the best point of the grid, the default and peers, beside the published."""
    names = (QUICK_SETS[: 1 if options.smoke else None]) if options.quick else tuple(SETS)
    frame = journal.rows([cell for name in names for cell in cells_of(name, options)])
    table = table_of(frame)
    return {"rls-tables": table}, goals_of(table)


def cells_of(name: str, options: Options) -> Iterator[Cell]:
    """The paper's protocol over the grid, peers, and what needs no classes."""
    rows = rows_of_set(name, options)
    usual = QUICK_RUNS if options.quick else RUNS
    grid = GRID[5:7] if options.smoke else GRID[1::5] if options.quick else GRID

    def cell(method: str, seed: int, point: dict[str, Any], protocol: str, compute: Any) -> Cell:
        return Cell(
            name, method, seed, partial(compute, name, rows, method, seed, point), point, protocol, "tables"
        )

    for point in grid:
        for method in (STOCHASTIC, STEEPEST, SHAKING, MIXED):
            for seed in range(options.seeds or min(usual, MIXED_RUNS if method == MIXED else usual)):
                yield cell(method, seed, point, PAPER, searched)
    for seed in range(options.seeds or usual):
        yield cell(KMEANS, seed, {"n_init": 1}, PAPER, clustered)
        yield cell(SPECTRAL, seed, {}, PAPER, clustered)
    for seed in range(options.seeds or min(usual, FREE_RUNS)):
        yield cell(KMEANS, seed, {"n_init": 10}, LABEL_FREE, clustered)
        yield cell(LEAST_SQUARES, seed, {}, LABEL_FREE, clustered)


def rows_of_set(name: str, options: Options) -> int | None:
    """How many rows of a data set to draw; None for all of a whole one."""
    drawn = None if name in ("iris", "optdigits-tes") else DRAWN
    bounds = [bound for bound in (drawn, options.rows, QUICK_ROWS if options.quick else None) if bound]
    return min(bounds, default=None)


@lru_cache(maxsize=1)
def load_set(name: str, rows: int | None) -> Data:
    """A data set of the paper, or the optdigits test part; the last one is kept."""
    if name == "moons":
        return Data(name, *make_block("moons", 0, rows or DRAWN, 2))
    if not name.startswith("usps "):
        return load_rows(name, rows)
    data = load_rows("usps")
    first, last = map(int, name.removeprefix("usps ").split("-"))
    kept = np.flatnonzero((data.y >= first - 1) & (data.y < last))  # label 1 is digit 0, as in LIBSVM's files
    kept = np.sort(np.random.RandomState(0).permutation(kept)[:rows])
    return Data(name, data.X[kept], data.y[kept])


def searched(name: str, rows: int | None, method: str, seed: int, point: dict[str, float]) -> dict[str, Any]:
    """Compute a cell: one run of a search at a point of the grid.

    Parameters
    ----------
    name : str
        One of `SETS`.
    rows : int or None
        At most so many rows.
    method : str
        One of the paper's three searches, whose seconds are without the kernel, or mixed shaking.
    seed : int
        Of the first labels.
    point : dict
        ``width`` of the kernel in units of the largest distance, and ``ridge``, the paper's lambda.

    Returns
    -------
    dict
        Facts of the data, measures and `clustering`.
    """
    data, k = load_set(name, rows), SETS[name]
    if method == MIXED:
        gamma, n = _gamma(name, rows, point["width"]), len(data.y)
        model = mmcnb.UnsupervisedRLS(
            k, gamma, point["ridge"] / n, sample_size=n, n_landmarks=n, random_state=seed
        )
        compiled, measures = _compile_seconds(data.X, k), timed(model, data.X)
        labels = model.labels_
    else:
        R, compiled = _smoother_of(name, rows, **point), _compile_searches()
        started = time.perf_counter()
        labels = divided(R, k, method, seed)
        measures = {"seconds": time.perf_counter() - started}
    return facts(data.X) | measures | {"compile_seconds": compiled} | clustering(data.y, labels)


def clustered(name: str, rows: int | None, method: str, seed: int, given: dict[str, Any]) -> dict[str, Any]:
    """Compute a cell: what needs no classes."""
    from sklearn.cluster import KMeans

    data, k = load_set(name, rows), SETS[name]
    estimators = {
        KMEANS: lambda: KMeans(k, random_state=seed, **given),
        SPECTRAL: lambda: spectral(k, seed),
        LEAST_SQUARES: lambda: mmcnb.UnsupervisedRLS(k, random_state=seed),
    }
    compiled = _compile_seconds(data.X, k) if method == LEAST_SQUARES else 0.0
    estimator = estimators[method]()
    measures = timed(estimator, data.X) | {"compile_seconds": compiled}
    return facts(data.X) | measures | clustering(data.y, estimator.labels_)


def _compile_seconds(X: np.ndarray, k: int) -> float:
    return compile_seconds(X, mmcnb.UnsupervisedRLS(k, random_state=0))


@lru_cache(maxsize=1)
def _largest(name: str, rows: int | None) -> tuple[np.ndarray, float]:
    """Squared distances, and the largest of them."""
    from sklearn.metrics.pairwise import euclidean_distances

    squares = euclidean_distances(load_set(name, rows).X.astype(np.float64), squared=True)
    return squares, float(squares.max())


def _gamma(name: str, rows: int | None, width: float) -> float:
    return 1 / (2 * width**2 * _largest(name, rows)[1])


@lru_cache(maxsize=1)
def _smoother_of(name: str, rows: int | None, width: float, ridge: float) -> np.ndarray:
    return smoother(np.exp(-_gamma(name, rows, width) * _largest(name, rows)[0]), ridge)


def smoother(K: np.ndarray, ridge: float) -> np.ndarray:
    """R = K (K + lambda I)^-1, exactly symmetric."""
    inverse = np.linalg.inv(K + ridge * np.eye(len(K)))
    return np.eye(len(K)) - ridge / 2 * (inverse + inverse.T)


def divided(R: np.ndarray, k: int, search: str, seed: int) -> np.ndarray:
    """Labels by Algorithm 1, 2 or 3 of the paper, from random ones; no cluster is emptied."""
    n = len(R)
    start, low, high = random_labels(n, k, seed), np.ones(k, np.int64), np.full(k, n)
    if search == SHAKING:
        return kernels.shake(R, start, np.full(k, 1 / k), *AS_PUBLISHED)[0]
    if search == STEEPEST:
        return kernels.steepest_moves(R, start, low, high, 100 * n)[0]
    return kernels.stochastic_moves(R, start, low, high, np.arange(n), 1000)[0]


def random_labels(n: int, k: int, seed: int) -> np.ndarray:
    """Labels of equal shares in a random order."""
    return np.random.RandomState(seed).permutation(np.arange(n) % k)


@lru_cache(maxsize=1)
def _compile_searches() -> float:
    """Seconds of the three searches on a few rows, once a process."""
    started = time.perf_counter()
    for search in (SHAKING, STEEPEST, STOCHASTIC):
        divided(np.eye(8), 2, search, 0)
    return time.perf_counter() - started


def table_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean and largest ARI of each method, at the best point by the classes, beside the published ones."""
    keys = ["dataset", "protocol", "method"]
    settings = over_seeds(frame, [*keys, "parameters"], "ari")
    largest = frame.groupby([*keys, "parameters"], sort=False)["ari"].max().rename("largest ari")
    table = best(settings.join(largest, on=[*keys, "parameters"]), keys, "ari", largest=True)
    for metric, name in (("ari", "published ari"), ("largest_ari", "published largest")):
        table[name] = [
            figure(RLS, row.dataset, row.method, metric) if row.protocol == PAPER else np.nan
            for row in table.itertuples()
        ]
    return table


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """Both ways of shaking: no less than the best that was published of the methods here."""
    bounds = table.groupby("dataset")["published ari"].max()
    return [
        Goal(f"tables: {row.dataset}, {row.method}", round(row.ari, 2), bounds[row.dataset], at_least=True)
        for row in table[table["method"].isin([SHAKING, MIXED])].itertuples()
        if np.isfinite(bounds[row.dataset])
    ]


# -- steps -------------------------------------------------------------------------------------


def steps(options: Options, journal: Journal) -> Tables:
    """Fig. 5: moves of published shaking, and of steepest descent, against rows of optdigits."""
    sizes = SMOKE_STEP_SIZES if options.smoke else QUICK_STEP_SIZES if options.quick else STEP_SIZES
    cells = [
        Cell("optdigits", method, seed, partial(stepped, n, method, seed), {"rows": n}, PAPER, "steps")
        for n in sizes_within(sizes, options)
        for method in (SHAKING, STEEPEST)
        for seed in range(options.seeds or 1)
    ]
    table = over_seeds(journal.rows(cells), ["method", "rows"], "steps").drop(columns="rows")
    goals = []
    for method, part in table.groupby("method", sort=False):
        slope = log_slope(part["n"], part["steps"]).value
        if np.isfinite(slope):
            goals.append(Goal(f"steps: slope of {method} against rows", slope, MOST_SLOPE))
    return {"rls-steps": table}, goals


def stepped(n: int, method: str, seed: int) -> dict[str, Any]:
    """Compute a cell: moves and seconds of one search among n rows."""
    X, k, compiled = load_once("optdigits", n).X, 10, _compile_searches()
    R, start, low, high = _smoothed_digits(n), random_labels(n, k, seed), np.ones(k, np.int64), np.full(k, n)
    started = time.perf_counter()
    if method == SHAKING:
        moves = kernels.shake(R, start, np.full(k, 1 / k), *AS_PUBLISHED)[1]
    else:
        moves = kernels.steepest_moves(R, start, low, high, 100 * n)[1]
    seconds = {"seconds": time.perf_counter() - started, "compile_seconds": compiled}
    return facts(X) | seconds | {"steps": int(moves)}


@lru_cache(maxsize=1)
def _smoothed_digits(n: int) -> np.ndarray:
    X = load_once("optdigits", n).X.astype(np.float64)
    kernel = Kernel("rbf", 1 / (2 * WIDTH**2 * mean_squared_distance(X)))
    return smoother(kernel(X, X), ALPHA * n)

"""Least squares clusters: the paper's tables and count of steps, the defaults on digits, and data beyond memory.

``python -m benchmarks rls [--quick] [--seeds N] [--part NAME ...]`` has four sections:

tables   Tables I and II of Pahikkala et al. on COIL and its objects 1-4 and 5-8, iris,
         500 rows of the first four classes of letter, two moons, 500 rows of USPS 1-4
         and of 5-8; and on optdigits. The paper's protocol has the three published
         searches: stochastic descent, steepest descent and shaking (kernel not centred,
         no bound on sizes, one start). "mixed shaking" is our local search with the
         best J of eight starts. Ridge and bandwidth are selected from the paper's grid
         with the classes, by the mean of ten runs; mixed shaking (three runs) and CPMMC
         use a fifth of the grid points. For comparison, there are k-means with one
         start, spectral clustering, and Gaussian mixtures with full covariances of all
         columns. CPMMC finds the same number of clusters with a Gaussian kernel and C =
         1 / ridge, without a continuation; as in the paper, it is not fitted to all of
         COIL. With two clusters, it has l = 10 and a random start; with more,
         `MultipleKernelClustering` keeps the sizes within a tenth of equal sizes, and
         starts from a local search. The label-free methods are `UnsupervisedRLS` with
         its defaults and k-means with ten starts. The paper does not say which 500 rows
         and which moons it used; we draw rows at random, and moons have noise of 0.05.
         We read USPS 1-4 as the labels in LIBSVM's files, where label 1 is the digit 0
steps    Fig. 5 of the paper: moves of steepest descent with and without shaking against
         the number of rows of optdigits
defaults `UnsupervisedRLS` with its defaults, except for the bandwidth on extended USPS:
         means over the seeds
large    10^7 x 50 rows of ten half circles in a Zarr store, within 1 GiB: peak memory
         of the process tree, reads, and time in multiples of a bare scan, beside
         k-means of a sample and MiniBatchKMeans

``--quick`` uses fewer rows, and fewer points of the grid.
"""

import time
from functools import lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks import protocol
from benchmarks.libraries import MIXTURE
from benchmarks.methods import (
    CPMMC,
    CUT,
    KMEANS,
    LEAST_SQUARES,
    MINIBATCH,
    MULTIPLE,
    estimator,
    fit_blocks,
)
from benchmarks.protocol import ERROR, PAPER, Data
from benchmarks.published import RLS
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import peers
from benchmarks.studies._tasks import TASKS
from benchmarks.tables import (
    Goal,
    Result,
    beside_published,
    best,
    goals_of,
    over_seeds,
    slopes_over,
)
from mmcnb import kernels
from mmcnb.datasets import make_block, write_synthetic

STOCHASTIC = "Stoc-RLS"
STEEPEST = "Steep-RLS"
SHAKING = "UMC-RLS"
MIXED = "mixed shaking"
SEARCHES = (STOCHASTIC, STEEPEST, SHAKING)
GMM = "GMM"
# The keys are the paper's names.
ESTIMATORS = {MIXED: LEAST_SQUARES, "spectral": CUT, GMM: MIXTURE, CPMMC: MULTIPLE}
PEERS: dict[str, dict[str, Any]] = {
    KMEANS: {"n_init": 1},
    "spectral": {},
    GMM: {"axes": None},
}
SETS = {
    "iris": 3,
    "moons": 2,
    "usps 1-4": 4,
    "usps 5-8": 4,
    "coil 1-4": 4,
    "coil 5-8": 4,
    "letter": 4,
}
SETS |= {"coil": 20, "optdigits-tes": 10}
WHOLE = ("iris", "coil", "optdigits-tes")  # the other data sets are samples
UNPUBLISHED = ("coil", "optdigits-tes")  # without a published figure of CPMMC
LABELS = {  # label 1 is digit 0, as in LIBSVM's files
    "usps 1-4": ("usps", range(4)),
    "usps 5-8": ("usps", range(4, 8)),
    "coil 1-4": ("coil20", range(1, 5)),
    "coil 5-8": ("coil20", range(5, 9)),
    "coil": ("coil20", range(1, 21)),
    "letter": ("letter", range(4)),
}
BALANCE_ROWS = 10  # l of CPMMC
MULTI_CLASS = {
    "threshold": "fixed",
    "continuation": False,
    "n_init": 1,
    "basis": "exact",
}
DRAWN = 500
QUICK_ROWS = 300
# sigma in units of the largest distance
WIDTHS = (
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    1.0,
)
RIDGES = tuple(2.0**power for power in range(-10, 0))  # values of lambda
GRID = tuple({"width": width, "ridge": ridge} for width in WIDTHS for ridge in RIDGES)
COARSE = tuple(
    point
    for point in GRID
    if point["width"] in WIDTHS[::2] and point["ridge"] in RIDGES[::3]
)
RUNS = 10
FEW_RUNS = 3
STEP_SIZES = (125, 250, 500, 1000, 2000, 4000)
QUICK_STEP_SIZES = (100, 200, 400)
MOST_SLOPE = 1.1
ALPHA = 1e-3
WIDTH = 0.55
AS_PUBLISHED = (1.0, 0.5, 21)
MOST_ROWS = 10**7
MOST_QUICK_ROWS = 2 * 10**5
FEATURES = 50
CLUSTERS = 10
LIMIT = 1024  # MiB
MOST_READS = 4  # including the read that labels the rows
LEAST_ARI = 0.95
BLOCK = 2**16
SAMPLE = "k-means, of a sample"
SAMPLE_ROWS = 100_000
LEAST_ROWS = 1000


# -- tables ----------------------------------------------------------------------------


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the paper's protocol over the grid, peers, and label-free fits."""
    runs = options.repeats(RUNS, FEW_RUNS)
    few_runs = options.repeats(FEW_RUNS, FEW_RUNS)
    points = options.pick(GRID, COARSE[1::3], COARSE[5:7])
    for name in options.pick(tuple(SETS), ("iris", "moons", "usps 1-4"), ("iris",)):
        most = None if name in WHOLE else DRAWN
        quick = QUICK_ROWS if options.quick else None
        settings = {"rows": protocol.rows_within(name, most, options.rows, quick)}
        seeds_of = dict.fromkeys(SEARCHES, runs) | {MIXED: few_runs}
        if name not in UNPUBLISHED:
            seeds_of[CPMMC] = runs
        for point, (method, seeds) in product(points, seeds_of.items()):
            if method in SEARCHES or point in COARSE:
                for seed in seeds:
                    yield Run(
                        name,
                        method,
                        seed,
                        parameters=point,
                        protocol=PAPER,
                        settings=settings,
                    )
        for seed, (method, parameters) in product(runs, PEERS.items()):
            yield Run(
                name,
                method,
                seed,
                parameters=parameters,
                protocol=PAPER,
                settings=settings,
            )
        for seed in few_runs:
            yield Run(name, KMEANS, seed, parameters={"n_init": 10}, settings=settings)
            yield Run(name, LEAST_SQUARES, seed, settings=settings)


@lru_cache(maxsize=1)
def load_set(name: str, rows: int | None) -> Data:
    """Return a data set of the paper, or the test part of optdigits; the last result is cached."""
    if name == "moons":
        return Data(name, *make_block("moons", 0, rows or DRAWN, 2))
    if name not in LABELS:
        return protocol.load_rows(name, rows)
    source, classes = LABELS[name]
    return protocol.draw(protocol.load_rows(source), classes, rows)._replace(name=name)


def compute(run: Run) -> dict[str, Any]:
    """Fit once by a search or an estimator.

    The seconds of the paper's searches do not include the kernel matrix.
    """
    method = run.method
    rows = run.settings["rows"]
    data = load_set(run.dataset, rows)
    k = SETS[run.dataset]
    parameters = dict(run.parameters)
    if method in SEARCHES:
        R = _smoother_of(run.dataset, rows, **parameters)
        compiled = _compile_searches()
        search = searched(R, k, method, run.seed)
        measures = {"seconds": search.seconds, "compile_seconds": compiled}
        scores = protocol.clustering(data.y, search.labels)
        return protocol.facts(data.X) | measures | scores
    if method in (MIXED, CPMMC):
        largest = _distances(run.dataset, rows)[1]
        gamma = protocol.gamma_of(parameters["width"], largest)
        ridge = parameters["ridge"]
        n = len(data.y)
        if method == MIXED:
            parameters = _least_squares_at(gamma, ridge, n)
        else:
            parameters = _margin_at(gamma, ridge, n, k)
    name = ESTIMATORS.get(method, method)
    model = estimator(name, k, random_state=run.seed, **parameters)
    return protocol.scored(data, model)


def _least_squares_at(gamma: float, ridge: float, n: int) -> dict[str, Any]:
    """Return the parameters of `UnsupervisedRLS` with all rows as landmarks."""
    return {"gamma": gamma, "alpha": ridge / n, "sample_size": n, "n_landmarks": n}


def _margin_at(gamma: float, ridge: float, n: int, k: int) -> dict[str, Any]:
    """Return the parameters of CPMMC; for two clusters, l is 10 and the start is random."""
    parameters = MULTI_CLASS | {"kernels": [("rbf", {"gamma": gamma})], "C": 1 / ridge}
    if k == 2:
        parameters |= {"balance": BALANCE_ROWS / n, "init": "random"}
    return parameters


@lru_cache(maxsize=1)
def _distances(name: str, rows: int | None) -> tuple[np.ndarray, float]:
    """Return squared distances, and the largest distance."""
    from sklearn.metrics.pairwise import euclidean_distances

    squares = euclidean_distances(
        load_set(name, rows).X.astype(np.float64), squared=True
    )
    return squares, float(squares.max())


@lru_cache(maxsize=1)
def _smoother_of(name: str, rows: int | None, width: float, ridge: float) -> np.ndarray:
    squares, largest = _distances(name, rows)
    return smoother(np.exp(-protocol.gamma_of(width, largest) * squares), ridge)


def smoother(K: np.ndarray, ridge: float) -> np.ndarray:
    """Return R = K (K + lambda I)^-1, exactly symmetric."""
    inverse = np.linalg.inv(K + ridge * np.eye(len(K)))
    return np.eye(len(K)) - ridge / 2 * (inverse + inverse.T)


class Search(NamedTuple):
    """The labels that a search found, its number of moves, and its seconds."""

    labels: np.ndarray
    moves: int
    seconds: float


def searched(R: np.ndarray, k: int, method: str, seed: int) -> Search:
    """Run Algorithm 1, 2 or 3 of the paper from random labels of equal proportions.

    The searches do not empty a cluster.
    """
    n = len(R)
    start = np.random.RandomState(seed).permutation(np.arange(n) % k)
    low = np.ones(k, np.int64)
    high = np.full(k, n)
    started = time.perf_counter()
    if method == SHAKING:
        result = kernels.shake(R, start, np.full(k, 1 / k), *AS_PUBLISHED)
    elif method == STEEPEST:
        result = kernels.steepest_moves(R, start, low, high, 100 * n, False)
    else:
        result = kernels.stochastic_moves(R, start, low, high, np.arange(n), 1000)
    return Search(result[0], int(result[1]), time.perf_counter() - started)


@lru_cache(maxsize=1)
def _compile_searches() -> float:
    """Run the three searches on a few rows once per process, and return the seconds."""
    started = time.perf_counter()
    for method in SEARCHES:
        searched(np.eye(8), 2, method, 0)
    return time.perf_counter() - started


def tables(frame: pd.DataFrame) -> Result:
    """Return the mean and largest ARI of each method, beside the published ones.

    Each method has the best parameters of the grid, selected with the classes.

    The goals are that shaking and mixed shaking are at least as good as the best
    published figure of these methods.
    """
    keys = ["dataset", "protocol", "method"]
    points = [*keys, "parameters"]
    settings = over_seeds(frame, points, "ari")
    largest = frame.groupby(points, sort=False)["ari"].max().rename("largest ari")
    table = best(settings.join(largest, on=points), keys, "ari", largest=True)
    table = beside_published(
        table, RLS, {"published ari": "ari", "published largest": "largest_ari"}
    )
    bounds = table.groupby("dataset")["published ari"].transform("max")
    judged = table[table["method"].isin([SHAKING, MIXED]) & bounds.notna()]
    goals = []
    for row in judged.itertuples():
        name = f"tables: {row.dataset}, {row.method}"
        goals.append(Goal(name, round(row.ari, 2), bounds[row.Index], at_least=True))
    return Result({"rls-tables": table}, goals)


# -- steps -----------------------------------------------------------------------------


@frame_of_runs
def grid_of_steps(options: Options) -> Runs:
    """Yield shaking and steepest descent at each size."""
    sizes = options.sizes_within(
        options.pick(STEP_SIZES, QUICK_STEP_SIZES, QUICK_STEP_SIZES[:2])
    )
    for n, method, seed in product(
        sizes, (SHAKING, STEEPEST), range(options.seeds or 1)
    ):
        yield Run(
            "optdigits",
            method,
            seed,
            parameters={"rows": n},
            protocol=PAPER,
            settings={"rows": n},
        )


def compute_steps(run: Run) -> dict[str, Any]:
    """Return the moves and seconds of one search."""
    compiled = _compile_searches()
    R = _smoothed_digits(run.parameters["rows"])
    search = searched(R, 10, run.method, run.seed)
    return protocol.facts(run.data.X) | {
        "seconds": search.seconds,
        "compile_seconds": compiled,
        "steps": search.moves,
    }


@lru_cache(maxsize=1)
def _smoothed_digits(n: int) -> np.ndarray:
    X = protocol.load_once("optdigits", n).X.astype(np.float64)
    K = rbf_kernel(X, gamma=protocol.gamma_of(WIDTH, protocol.mean_squared_distance(X)))
    return smoother(K, ALPHA * n)


def tables_of_steps(frame: pd.DataFrame) -> Result:
    """Return moves against rows, with goals for their slope."""
    table = over_seeds(frame, ["method", "rows"], "steps").drop(columns="rows")
    slopes = slopes_over(table, ["method"], "steps").set_index("method")["slope"]
    goals = goals_of(
        slopes,
        dict.fromkeys(slopes.index, MOST_SLOPE),
        "steps: slope of {} against rows",
    )
    return Result({"rls-steps": table}, goals)


# -- defaults --------------------------------------------------------------------------


def tables_of_defaults(frame: pd.DataFrame) -> Result:
    """Return means over the seeds.

    The goals are for ARI or, with a given bandwidth, for the balanced error.
    """
    table = over_seeds(frame, ["dataset"], "ari", ERROR, "objective", "reads")
    means = table.set_index("dataset")
    least = {name: task.least for name, task in TASKS.items() if not task.width}
    most = {name: task.most for name, task in TASKS.items() if task.width}
    goals = goals_of(means["ari"], least, "defaults: {}, ARI", at_least=True)
    goals += goals_of(means[ERROR], most, "defaults: {}, balanced error", "%")
    return Result({"rls-defaults": table}, goals)


# -- data beyond memory ----------------------------------------------------------------


@frame_of_runs
def grid_of_large(options: Options) -> Runs:
    """Yield `UnsupervisedRLS`, k-means of a sample, and mini-batches, on the same store."""
    n = min(
        options.pick(MOST_ROWS, MOST_QUICK_ROWS, MOST_QUICK_ROWS),
        options.rows or MOST_ROWS,
    )
    for method in (LEAST_SQUARES, SAMPLE, MINIBATCH):
        yield Run("arcs", method, 0, settings={"rows": n})


def compute_large(run: Run) -> dict[str, Any]:
    """Fit to the store and label its rows; our method runs in a watched process."""
    n = run.settings["rows"]
    write = partial(
        write_synthetic, "arcs", n_samples=n, n_features=FEATURES, n_clusters=CLUSTERS
    )
    store = protocol.written_once(run.folder, f"arcs-{n}", write)
    if run.method == LEAST_SQUARES:
        few = next(protocol.blocks_of(store, BLOCK))
        model = estimator(LEAST_SQUARES, CLUSTERS)
        # Compiled into the cache on disk.
        compiled = protocol.compile_seconds(few, model)
        words = (
            "--method",
            "unsupervised-rls",
            "--n-clusters",
            CLUSTERS,
            "--memory-limit",
            f"{LIMIT}MiB",
        )
        found = protocol.fit_store(store, run.seed, *words) | {
            "compile_seconds": compiled
        }
    elif run.method == SAMPLE:  # the rows are in random order
        sample = min(n, SAMPLE_ROWS, max(n // 10, LEAST_ROWS))
        found = fit_blocks(
            estimator(KMEANS, CLUSTERS, n_init=10, random_state=0), store, BLOCK, sample
        )
    else:
        found = fit_blocks(estimator(MINIBATCH, CLUSTERS, random_state=0), store, BLOCK)
    return found | {"scans": found["seconds"] / _scan_seconds(store)}


@lru_cache(maxsize=1)
def _scan_seconds(store: str) -> float:
    return protocol.best_bare_scan(store, 1)


def tables_of_large(frame: pd.DataFrame) -> Result:
    """Return memory, reads and ARI, with goals for our method."""
    measures = ("ari", "scans", "label_seconds", "reads")
    table = over_seeds(frame, ["dataset", "method"], *measures)
    ours = table[table["method"] == LEAST_SQUARES].set_index("dataset")
    goals = goals_of(
        ours["peak_mib"], LIMIT, "large: peak memory of the processes", "MiB"
    )
    goals += goals_of(
        ours["reads"], MOST_READS, "large: reads of the rows, with the labels"
    )
    goals += goals_of(ours["ari"], LEAST_ARI, "large: ARI", at_least=True)
    return Result({"rls-large": table}, goals)


SECTIONS = {
    "tables": Section(grid, compute, tables),
    "steps": Section(grid_of_steps, compute_steps, tables_of_steps),
    "defaults": Section(
        partial(peers.grid, asked=(LEAST_SQUARES,)), peers.compute, tables_of_defaults
    ),
    "large": Section(grid_of_large, compute_large, tables_of_large),
}

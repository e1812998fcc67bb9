"""What the studies of SKMMC share: k-means, CPMMC, LG-MMC and SKMMC as cells, and the table made of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import clone

import mmcnb
from benchmarks._cells import LABEL_FREE, PAPER, Cell, facts, load_once, peak_mib, reset_peak
from benchmarks._common import Options, size_of
from benchmarks._statistics import best, choices_of, over_seeds, ratio_to
from benchmarks.published import SKMMC as SKMMC_PAPER
from benchmarks.published import figure
from mmcnb.errors import ClusterWarning
from mmcnb.metrics import balanced_clustering_error, clustering_accuracy

KMEANS, CPMMC, LGMMC, SKMMC, BETWEEN = "k-means", "CPMMC", "LG-MMC", "SKMMC", "SKMMC, widths between"
ERROR = "balanced_error"
# sigma in units of the root mean squared distance of two rows: the paper's five, and those between them.
PAPER_WIDTHS, WIDTHS_BETWEEN = (0.25, 0.5, 1.0, 2.0, 4.0), (0.35, 0.71, 1.41)
PATH = ["stage", "start", "gamma", "C", "round"]  # what one round of CCCP has in common
AS_PUBLISHED = {"threshold": "fixed", "continuation": False, "init": "random", "n_init": 1}
# The paper has neither samples nor starts of other kinds; so many rows are all rows of the MNIST pairs.
COIN_FLIPS: dict[str, Any] = {"init": "random", "n_init": 3, "sample_size": 16_000}
LINEAR_GRID = tuple({"C": C, "balance": balance} for C in (2.0, 10.0) for balance in (0.0, 0.05))
PAPER_RUNS, QUICK_RUNS = 20, 3  # of k-means, each from one start
MOST_LGMMC_ROWS, QUICK_LGMMC_ROWS = 1000, 500
WARM_UP_ROWS = 400


def mean_squared_distance(X: Any) -> float:
    """Mean squared distance between two rows of an array or CSR matrix, the papers' gamma0.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks._compare import mean_squared_distance
    >>> mean_squared_distance(np.array([[0.0], [2.0]]))
    2.0
    """
    values = X.data if hasattr(X, "indptr") else X.ravel()
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    return float(2 * (np.einsum("i,i->", values, values, dtype=np.float64) / X.shape[0] - mean @ mean))


def gamma_of(width: float, gamma0: float) -> float:
    """gamma = 1/(2 sigma²) for sigma = width · sqrt(gamma0)."""
    return 1 / (2 * width**2 * gamma0)


def fit(estimator: Any, X: Any) -> Any:
    """Fit without the warnings about what was found: the tables say it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        return estimator.fit(X)


def warm_up(X: Any, *estimators: Any) -> float:
    """Seconds of a first fit of a few rows of the same type and layout, which compiles every kernel."""
    rows = X[:WARM_UP_ROWS] if X.shape[0] > WARM_UP_ROWS else X
    started = time.perf_counter()
    for estimator in estimators or (mmcnb.SparseKernelMMC(random_state=0),):
        # Fewer rows in the sample than in all, so that the passes over all rows are compiled as well.
        sample = {"sample_size": max(2, rows.shape[0] // 2)}
        fit(clone(estimator).set_params(**sample), rows)
    return time.perf_counter() - started


def clustering(y: np.ndarray, labels: Any) -> dict[str, float]:
    """Balanced error (of two classes), error and adjusted Rand index, as shares.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks._compare import clustering
    >>> clustering(np.array([0, 0, 1, 1]), [1, 1, 0, 0])
    {'balanced_error': 0.0, 'error': 0.0, 'ari': 1.0}
    """
    from sklearn.metrics import adjusted_rand_score

    two = np.unique(y).size == 2
    return {
        **({ERROR: float(balanced_clustering_error(y, labels))} if two else {}),
        "error": 1 - float(clustering_accuracy(y, labels)),
        "ari": float(adjusted_rand_score(y, labels)),
    }


def timed(estimator: Any, X: Any) -> dict[str, float]:
    """Fit, and return the seconds and the peak memory of the fit alone."""
    reset_peak()
    started = time.perf_counter()
    fit(estimator, X)
    return {"seconds": time.perf_counter() - started, "peak_mib": peak_mib()}


_compiled: dict[tuple[bool, str, str], float] = {}


def compile_seconds(X: Any, *estimators: Any) -> float:
    """Seconds of the first small fit of such rows in this process, which compiles or loads every kernel.

    Parameters
    ----------
    X : ndarray or csr_matrix
        Rows in memory.
    *estimators : estimator
        What is fitted; none is SKMMC.

    Returns
    -------
    float
        The same whenever this process asks again.
    """
    kind = (issparse(X), str(X.dtype), repr(estimators))
    if kind not in _compiled:
        _compiled[kind] = warm_up(X, *estimators)
    return _compiled[kind]


def fitted(name: str, rows: int | None, method: str, seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a cell: one method on one data set.

    Parameters
    ----------
    name : str
        What `data_loaders.load` calls the data set.
    rows : int or None
        At most so many rows, drawn at random.
    method : str
        "k-means", "CPMMC", "LG-MMC" or "SKMMC".
    seed : int
        Of the method.
    given : mapping
        Parameters of the estimator; ``width`` stands for gamma.

    Returns
    -------
    dict
        Facts of the data, measures, `clustering`, and of our estimators counts and the width that was found.
    """
    data = load_once(name, rows)
    warmed = (mmcnb.CPMMC(random_state=0),) if method == CPMMC else ()  # it sweeps other rows than SKMMC
    compiled = 0.0 if method == KMEANS else compile_seconds(data.X, *warmed)
    if method == KMEANS:
        estimator, measures = faster_kmeans(data.X, seed, given)
    else:
        estimator = _estimator(method, data.X, seed, dict(given))
        measures = timed(estimator, data.X)
    found = facts(data.X) | measures | {"compile_seconds": compiled}
    return found | clustering(data.y, estimator.labels_) | _told(estimator)


def _told(estimator: Any) -> dict[str, float]:
    """The width that was found, basis vectors, reads and sweeps of the rows, cuts, and rounds of CCCP."""
    history = getattr(estimator, "history_", None)
    if history is None or not {*PATH, "sweeps"} <= set(history.columns):
        return {}
    rounds = history.groupby(PATH, dropna=False).ngroups
    told = {"cuts": len(history), "rounds": rounds, "cuts_a_round": len(history) / rounds}
    if estimator.model_.basis is not None:  # a linear model has none
        told |= {"found_gamma": estimator.gamma_, "basis_vectors": len(estimator.model_.basis)}
    counts = {name: int(history[name].iloc[-1]) for name in ("reads", "sweeps")}
    return counts | told


def _estimator(method: str, X: Any, seed: int, given: dict[str, Any]) -> Any:
    if "width" in given:
        given["gamma"] = gamma_of(given.pop("width"), mean_squared_distance(X))
    classes = {CPMMC: "CPMMC", LGMMC: "LabelGenerationMMC", SKMMC: "SparseKernelMMC"}
    return getattr(mmcnb, classes[method])(random_state=seed, **given)


def faster_kmeans(X: Any, seed: int, given: Mapping[str, Any], k: int = 2) -> tuple[Any, dict[str, float]]:
    """k-means on all cores and on one: the faster of the two.

    Its threads wait for each other, so where other work takes a core it can be several times slower on all.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    turns = []
    for threads in (None, 1):
        estimator = KMeans(k, random_state=seed, **given)
        with threadpool_limits(threads):
            turns.append((estimator, timed(estimator, X)))
    return min(turns, key=lambda turn: turn[1]["seconds"])


def cells_of(
    name: str,
    rows: int | None,
    options: Options,
    seeds: int = 3,
    dataset: str | None = None,
    starts: Mapping[str, Any] = COIN_FLIPS,
) -> list[Cell]:
    """k-means, CPMMC, LG-MMC (few rows) and SKMMC on one data set, by both protocols, turn by turn.

    Label-free is what a user gets: defaults, k-means of ten starts. The paper's protocol is CPMMC as it was
    published on a grid, SKMMC at five widths with C = 10, both to be chosen by the known classes, and k-means
    of one start, averaged over 20 runs. Where SKMMC leaves the paper: C is raised from near 1, eta is .01
    where it has 1, and of three coin flips on at most 16,000 rows the one of the largest |w| is kept
    (``starts`` can say otherwise). Widths between the five are cells of their own.

    Parameters
    ----------
    name : str
        What `data_loaders.load` calls the data set.
    rows : int or None
        At most so many rows, drawn at random.
    options : Options
        Seeds and scale.
    seeds : int, default=3
        Repeats where the options do not say.
    dataset : str or None, default=None
        Name for the tables; None is `name`.
    starts : mapping, default=COIN_FLIPS
        Parameters of SKMMC by the paper's protocol, beside the width.

    Returns
    -------
    list of Cell
        For `Journal.rows`.
    """
    few = options.quick or options.smoke
    repeats = range(options.seeds or (1 if few else seeds))
    runs = range(options.seeds or (QUICK_RUNS if few else PAPER_RUNS))
    widths = PAPER_WIDTHS[1:3] if options.smoke else PAPER_WIDTHS
    between = () if few else WIDTHS_BETWEEN
    linear = LINEAR_GRID[:1] if options.smoke else LINEAR_GRID[::2] if few else LINEAR_GRID

    def cell(method: str, protocol: str, seed: int, parameters: dict[str, Any], **fixed: Any) -> Cell:
        base = method.partition(", ")[0]
        compute = partial(fitted, name, rows, base, seed, parameters | fixed)
        return Cell(dataset or name, method, seed, compute, parameters | fixed, protocol)

    found = []
    for seed in repeats:
        found.append(cell(KMEANS, LABEL_FREE, seed, {"n_init": 10}))
        found += [cell(method, LABEL_FREE, seed, {}) for method in (CPMMC, SKMMC)]
        found += [cell(CPMMC, PAPER, seed, dict(point), **AS_PUBLISHED) for point in linear]
        found += [cell(SKMMC, PAPER, seed, {"width": width}, **starts) for width in widths]
        found += [cell(BETWEEN, PAPER, seed, {"width": width}, **starts) for width in between]
    found += [cell(KMEANS, PAPER, seed, {"n_init": 1}) for seed in runs]
    small = (rows or size_of(name) or np.inf) <= (QUICK_LGMMC_ROWS if few else MOST_LGMMC_ROWS)
    return found + ([cell(LGMMC, LABEL_FREE, 0, {})] if small else [])


def table_of(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each data set, protocol and method, at the parameters of the least mean balanced error.

    Parameters
    ----------
    frame : DataFrame
        From `Journal.rows`.

    Returns
    -------
    DataFrame
        dataset, n, d, protocol, method, parameters (those that were chosen among), balanced_error, its
        deviation over the seeds and the published figure, runs, median seconds, their ratio to k-means of ten
        starts, and peak memory.
    """
    keys = ["dataset", "protocol", "method"]
    table = best(over_seeds(frame, [*keys, "parameters"], ERROR), keys, ERROR)
    peer = table[(table["method"] == KMEANS) & (table["protocol"] == LABEL_FREE)]
    table["of k-means"] = ratio_to(table, peer)
    table["published balanced_error"] = [
        figure(SKMMC_PAPER, row.dataset, row.method, ERROR) if row.protocol == PAPER else np.nan
        for row in table.itertuples()
    ]
    table["parameters"] = table["parameters"].map(choices_of(frame, keys[1:]))
    columns = ["dataset", "n", "d", "protocol", "method", "parameters", ERROR, f"{ERROR} sd"]
    columns += ["published balanced_error", "runs", "seconds", "of k-means", "peak_mib"]
    return table[columns].dropna(axis=1, how="all")

"""A choice without labels: every candidate on every problem, and the choices of rules.

``python -m benchmarks choice [--quick] [--jobs N] [--part NAME ...]`` has three sections:

candidates  each problem is clustered by each candidate: a kernel, a loss, a kind of size constraint, and
            whether columns are scaled. The record has the labels, how well they agree with the classes, and
            signs that need no classes. Fits to two halves of the rows, and to the rows of higher density,
            tell how stable the labels are. `MaximumMarginClustering` runs beside them, also with 1 % of the
            labels; its trust is compared with its failures
clusters    the number of clusters that `MaximumMarginClustering` chooses, and the graph kernel with 2 to 12
            clusters, whose figures other rules read
confidence  `MaximumMarginClustering` on a third of the rows, and again on another third: how often rows of
            the last third keep their cluster, beside `confidence`

Rules are scored from this record alone, in seconds. Those that learn do so on the tuning half, and judge a
problem of it without its set. ``--quick`` takes the tuning half alone.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import mmcnb
from benchmarks.methods import FRONT_DOOR, KMEANS, estimator
from benchmarks.protocol import Data, clustering, fit
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _choice_clusters, _choice_confidence
from benchmarks.studies._choice_number_rules import tables_of_numbers
from benchmarks.studies._choice_problems import LABELLED, PEERS, of_scale, packed, problems, rows_of
from benchmarks.studies._choice_rules import tables_of
from benchmarks.studies._choice_signs import density_order, signs_of, stability_of
from mmcnb import GraphKernel

DENSE_SHARE = 0.9  # of the rows, those with the nearest neighbours
LABELLED_SHARE = 0.01  # of the rows, whose labels are known in one run
Make = Callable[[int, int], Any]  # from a number of clusters and a seed


def _squared(**given: Any) -> Make:
    return lambda k, seed: mmcnb.UnsupervisedRLS(k, random_state=seed, **given)


def _hinge(**given: Any) -> Make:
    def make(k: int, seed: int) -> Any:
        if k == 2:
            return mmcnb.SparseKernelMMC(random_state=seed, **given)
        return mmcnb.CrammerSingerMMC(k, cluster_sizes=None, random_state=seed, **given)

    return make


def _of_width(width: float) -> Make:
    """A Gaussian kernel whose sigma is so many root mean squared distances."""

    def make(k: int, seed: int) -> Any:
        return mmcnb.UnsupervisedRLS(k, gamma="mean", cluster_sizes=None, random_state=seed), width

    return make


FREE, EQUAL = {"cluster_sizes": None}, {"cluster_sizes": "equal"}
HALF = {"cluster_sizes": "equal", "size_tolerance": 0.5}
CANDIDATES: Mapping[str, Make] = {
    "graph": _squared(kernel="graph"),
    "graph, cut-off": _squared(kernel=GraphKernel(filter="cut-off")),
    "graph, resolvent": _squared(kernel=GraphKernel(filter="resolvent")),
    "graph, equal": _squared(kernel="graph", **EQUAL),
    "graph, tolerant": _squared(kernel="graph", **HALF),
    "graph, hinge": _hinge(kernel="graph"),
    "graph, standard": _squared(kernel="graph", scale="standard"),
    "rbf": _squared(**FREE),
    "rbf, equal": _squared(**EQUAL),
    "rbf, tolerant": _squared(**HALF),
    "rbf, narrow": _of_width(0.25),
    "rbf, wide": _of_width(1.0),
    "rbf, hinge": _hinge(),
    "rbf, standard": _squared(scale="standard", **FREE),
    "rbf, hinge, standard": _hinge(scale="standard"),
    "linear": _squared(kernel="linear", **FREE),
    "linear, hinge": _hinge(kernel="linear"),
    "several kernels": lambda k, seed: mmcnb.MultipleKernelClustering(k, random_state=seed),
}


@frame_of_runs
def grid(options: Options) -> Runs:
    """Every candidate on every problem, k-means, and `MaximumMarginClustering` itself."""
    for problem in of_scale(options, problems(), ("optdigits 4 of 400", "breast", "two-moons")):
        settings = {"problem": list(problem), "rows": options.rows}
        for name in (*PEERS, *CANDIDATES):
            yield Run(problem.name, name, 0, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Labels of one candidate, how well they agree with the classes, and signs without classes."""
    (problem,) = (one for one in problems() if one.name == run.dataset)
    data = rows_of(problem, run.settings["rows"])
    k, seed = int(data.y.max()) + 1, run.seed
    if run.method in (FRONT_DOOR, LABELLED):
        return _front_door(data, k, seed, LABELLED_SHARE if run.method == LABELLED else 0.0)
    started = time.perf_counter()
    labels = _labels(run.method, data.X, data.X, k, seed)
    found: dict[str, Any] = {"seconds": time.perf_counter() - started, "k": k, "n": len(labels)}
    found |= clustering(data.y, labels) | {"labels": packed(labels), "classes": packed(data.y)}
    if run.method == KMEANS:
        return found
    started = time.perf_counter()
    found |= signs_of(data, labels, seed)
    found |= {"sign_seconds": time.perf_counter() - started}

    def refit(rows: np.ndarray) -> np.ndarray:
        return _labels(run.method, data.X, data.X[rows], k, seed)

    started = time.perf_counter()
    found |= stability_of(refit, labels, seed)
    dense = np.sort(density_order(data)[: int(DENSE_SHARE * len(labels))])
    found |= {"trimmed": _agreement(labels, refit(dense))}
    return found | {"refit_seconds": time.perf_counter() - started}


def _agreement(labels: np.ndarray, others: np.ndarray) -> float:
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(labels, others))


def _front_door(data: Data, k: int, seed: int, share: float) -> dict[str, Any]:
    """The estimator's own choice, its evidence, and how far it trusts it."""
    started = time.perf_counter()
    known = None
    if share > 0:
        rows = np.random.RandomState(seed).permutation(len(data.y))[: max(k, round(share * len(data.y)))]
        known = {int(row): int(data.y[row]) for row in rows}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the record tells
        model = mmcnb.MaximumMarginClustering(k, random_state=seed).fit(data.X, partial_labels=known)
    found: dict[str, Any] = {"seconds": time.perf_counter() - started, "k": k, "n": len(data.y)}
    found |= clustering(data.y, model.labels_)
    found |= {"labels": packed(model.labels_), "classes": packed(data.y)}
    graph, trust = model.report_["candidates"][0], model.report_["trust"]
    found |= {"relative_cut": float(graph["relative_cut"]), "searches": float(graph["agreement"])}
    found |= {"taken": model.kernel_, "trust": trust["level"], "gap": trust["valley"]}
    return found | signs_of(data, model.labels_, seed)


def _labels(name: str, X: np.ndarray, rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Labels of all rows by a fit to some."""
    if name == KMEANS:
        return np.asarray(estimator(KMEANS, k, n_init=10, random_state=seed).fit(rows).predict(X))
    model = CANDIDATES[name](k, seed)
    if isinstance(model, tuple):
        model, width = model
        gamma = 1 / (2 * width**2 * 2 * rows.var(axis=0, dtype=np.float64).sum())
        model.set_params(gamma=gamma)
    fitted = fit(model, rows)
    return np.asarray(fitted.labels_ if rows is X else fitted.predict(X))


SECTIONS = {
    "candidates": Section(grid, compute, tables_of),
    "clusters": Section(_choice_clusters.grid, _choice_clusters.compute, tables_of_numbers),
    "confidence": Section(_choice_confidence.grid, _choice_confidence.compute, _choice_confidence.tables),
}

"""A choice without labels: every candidate on every problem, and what rules would have chosen.

``python -m benchmarks choice [--quick] [--jobs N] [--part NAME ...]`` has two sections:

candidates  each problem is clustered by each candidate: a kernel, a loss, a kind of size constraint, and
            whether columns are scaled. The record has the labels, how well they agree with the classes, and
            signs that need no classes. Fits to two halves of the rows, and to the rows of higher density,
            tell how stable the labels are
clusters    the graph kernel and the Gaussian one with 2 to 12 clusters, and signs at each number

Rules are scored from this record alone, in seconds. Those that learn do so on the tuning half, and judge a
problem of it without its set. ``--quick`` takes the tuning half alone.
"""

import base64
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.protocol import Data, clustering, fit
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _choice_clusters
from benchmarks.studies._choice_problems import of_scale, problems, rows_of
from benchmarks.studies._choice_signs import density_order, signs_of
from benchmarks.tables import Result
from mmcnb import GraphKernel

DENSE_SHARE = 0.9  # of the rows, those with the nearest neighbours
PEER = "k-means"
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
    """Every candidate on every problem, and k-means; one problem after the other, the tuning half first."""
    for problem in of_scale(options, problems(), ("optdigits 4 of 400", "breast", "two-moons")):
        settings = {"problem": list(problem), "rows": options.rows}
        for name in (PEER, *CANDIDATES):
            yield Run(problem.name, name, 0, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Labels of one candidate, how well they agree with the classes, and signs without classes."""
    (data,) = (rows_of(one, run.settings["rows"]) for one in problems() if one.name == run.dataset)
    k = int(data.y.max()) + 1
    started = time.perf_counter()
    labels = _labels(run.method, data.X, data.X, k, run.seed)
    found: dict[str, Any] = {"seconds": time.perf_counter() - started, "k": k, "n": len(labels)}
    found |= clustering(data.y, labels) | {"labels": packed(labels), "classes": packed(data.y)}
    if run.method == PEER:
        return found
    started = time.perf_counter()
    found |= signs_of(data, labels, run.seed)
    found |= {"sign_seconds": time.perf_counter() - started}
    return found | _refits(run.method, data, labels, k, run.seed)


def _labels(name: str, X: np.ndarray, rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Labels of all rows by a fit to some."""
    if name == PEER:
        from sklearn.cluster import KMeans

        return np.asarray(KMeans(k, n_init=10, random_state=seed).fit(rows).predict(X))
    model = CANDIDATES[name](k, seed)
    if isinstance(model, tuple):
        model, width = model
        gamma = 1 / (2 * width**2 * 2 * rows.var(axis=0, dtype=np.float64).sum())
        model.set_params(gamma=gamma)
    fitted = fit(model, rows)
    return np.asarray(fitted.labels_ if rows is X else fitted.predict(X))


def _refits(name: str, data: Data, labels: np.ndarray, k: int, seed: int) -> dict[str, float]:
    """Agreement of the labels with fits to two halves, of these with one another, and with denser rows."""
    from sklearn.metrics import adjusted_rand_score as agreement

    X, order = data.X, np.random.RandomState(seed).permutation(len(data.y))
    started = time.perf_counter()
    try:
        one, other = (_labels(name, X, X[np.sort(part)], k, seed) for part in np.array_split(order, 2))
        dense = density_order(data)[: int(DENSE_SHARE * len(X))]
        trimmed = _labels(name, X, X[np.sort(dense)], k, seed)
    except mmcnb.InputError:
        return {"halves": 0.0, "refits": 0.0, "trimmed": 0.0, "refit_seconds": time.perf_counter() - started}
    return {
        "halves": float(agreement(one, other)),
        "refits": float((agreement(labels, one) + agreement(labels, other)) / 2),
        "trimmed": float(agreement(labels, trimmed)),
        "refit_seconds": time.perf_counter() - started,
    }


def packed(labels: np.ndarray) -> str:
    """Labels below 256 as text.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies.choice import packed, unpacked
    >>> unpacked(packed(np.array([0, 2, 1]))).tolist()
    [0, 2, 1]
    """
    return base64.b85encode(zlib.compress(labels.astype(np.uint8).tobytes(), 9)).decode()


def unpacked(text: str) -> np.ndarray:
    """The labels that a text holds."""
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), np.uint8)


def tables(frame: pd.DataFrame) -> Result:
    """Candidates by domain, and the loss of each rule by half and domain."""
    from benchmarks.studies._choice_rules import tables_of  # it unpacks the labels of this module

    return tables_of(frame)


SECTIONS = {
    "candidates": Section(grid, compute, tables),
    "clusters": Section(_choice_clusters.grid, _choice_clusters.compute, _choice_clusters.tables),
}

"""Clusterers of other libraries, with the settings that their authors advise; each library is optional.

genieclust and lumbermark are under the AGPL and igraph is under the GPL, so only the
studies use them, and `mmcnb` never imports them.
"""

import random
import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

GENIE = "Genie"
MIXTURE = "Gaussian mixture"
EVOC = "EVoC"
GIC = "GIc"
LUMBERMARK = "Lumbermark"
LEIDEN = "Leiden"
UMAP_DENSITY = "UMAP, HDBSCAN"
UMAP_KMEANS = "UMAP, k-means"
PLSCAN = "PLSCAN"
FAST_DENSITY = "fast_hdbscan"
FAISS = "FAISS, one start"
SUPERKMEANS = "SuperKMeans, one start"
# thresholds of the Gini index; Genie's default is 0.3
OTHER_GINI = {f"Genie, {bound}": bound for bound in (0.1, 0.5, 0.7)}
DRAW_NOTHING = (GENIE, *OTHER_GINI, GIC, LUMBERMARK, PLSCAN)
# modules, and their names for pip
PACKAGES = {
    **dict.fromkeys((GENIE, *OTHER_GINI, GIC), ("genieclust", "genieclust")),
    LUMBERMARK: ("lumbermark", "lumbermark"),
    LEIDEN: ("igraph", "igraph"),
    EVOC: ("evoc", "evoc"),
    PLSCAN: ("fast_plscan", "fast-plscan"),
    FAST_DENSITY: ("fast_hdbscan", "fast-hdbscan"),
    UMAP_DENSITY: ("umap", "umap-learn"),
    UMAP_KMEANS: ("umap", "umap-learn"),
    FAISS: ("faiss", "faiss-cpu"),
    SUPERKMEANS: ("superkmeans", "superkmeans"),
}
COMPILED = (EVOC, UMAP_DENSITY, UMAP_KMEANS, FAST_DENSITY)
FIRST_ROWS = 4200, 10  # UMAP compiles other routines for fewer than 4,096 rows
AXES = 50  # number of principal axes that replace more columns, as in the graph kernel
# UMAP's guide to clustering uses 30 neighbours, a minimum distance of 0 and, for 70,000
# rows, clusters of at least 500.
NEIGHBOURS = 30
SPACING = 0.0
CORE = 10
LEAST_CLUSTER = 500 / 70_000
LEIDEN_NEIGHBOURS = 15
RESOLUTIONS = (1e-3, 1e3)
HALVINGS = 30


class DenseClusterer:
    """A function that labels dense rows, wrapped as a clusterer of dense and CSR rows without warnings.

    Parameters
    ----------
    label_rows : callable
        Returns the labels of rows of shape (n, d).
    axes : int or None, default=None
        Largest number of columns; rows with more columns are projected to this number
        of principal axes.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.libraries import DenseClusterer
    >>> DenseClusterer(lambda X: (X[:, 0] > 0).astype(int)).fit(np.array([[-1.0], [1.0]])).labels_
    array([0, 1])
    """

    def __init__(
        self, label_rows: Callable[[np.ndarray], np.ndarray], axes: int | None = None
    ) -> None:
        self.label_rows = label_rows
        self.axes = axes

    def fit(self, X: Any) -> Self:
        """Label the rows; noise has the label -1."""
        from sklearn.decomposition import PCA

        rows = X.toarray() if issparse(X) else X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.axes is not None and rows.shape[1] > self.axes:
                rows = PCA(min(self.axes, *rows.shape), random_state=0).fit_transform(
                    rows
                )
            self.labels_ = np.asarray(self.label_rows(rows))
        return self


@cache
def first_seconds(method: str) -> float:
    """Return the seconds of this process's first fit of a method that compiles routines; 0 for other methods."""
    if method not in COMPILED:
        return 0.0
    rows = np.random.RandomState(0).normal(size=FIRST_ROWS).astype(np.float32)
    started = time.perf_counter()
    (METHODS | DENSITY_ENGINES)[method](2, {"random_state": 0}).fit(rows)
    return time.perf_counter() - started


def _genie(
    k: int, given: Mapping[str, Any], gini_threshold: float = 0.3
) -> DenseClusterer:
    """Label rows by Genie, which is deterministic."""
    from genieclust import Genie

    return DenseClusterer(Genie(k, gini_threshold=gini_threshold).fit_predict, AXES)


def _gic(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    """Label rows by GIc, which is deterministic."""
    from genieclust import GIc

    return DenseClusterer(GIc(k).fit_predict, AXES)


def _lumbermark(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    """Label rows by Lumbermark, which is deterministic."""
    from lumbermark import Lumbermark

    return DenseClusterer(Lumbermark(k).fit_predict, AXES)


def _leiden(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    """Label rows by modularity in the graph of nearest neighbours, at the resolution that gives k communities."""
    import igraph
    from sklearn.neighbors import kneighbors_graph

    def label_rows(X: np.ndarray) -> np.ndarray:
        near = kneighbors_graph(X, min(LEIDEN_NEIGHBOURS, len(X) - 1))
        graph = igraph.Graph(len(X), np.c_[near.nonzero()]).simplify()
        igraph.set_random_number_generator(random.Random(given["random_state"]))
        return at_count(
            lambda one: graph.community_leiden("modularity", resolution=one).membership,
            k,
        )

    return DenseClusterer(label_rows, AXES)


def at_count(find: Callable[[float], Any], k: int) -> np.ndarray:
    """Return labels at a resolution that gives k clusters, or a number close to k.

    Examples
    --------
    >>> from benchmarks.libraries import at_count
    >>> at_count(lambda resolution: range(int(resolution)), 3).tolist()
    [0, 1, 2]
    """
    low, high = RESOLUTIONS
    tried: list[np.ndarray] = []
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        labels = np.asarray(find(middle))
        tried.append(labels)
        count = np.unique(labels).size
        if count == k:
            break
        if count < k:
            low = middle
        else:
            high = middle
    return min(tried, key=lambda labels: abs(np.unique(labels).size - k))


def _mixture(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    """Label rows by a Gaussian mixture with full covariances, in float64, on at most ``axes`` principal axes."""
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(
        k, **{name: given[name] for name in given if name != "axes"}
    )
    return DenseClusterer(
        lambda X: model.fit_predict(X.astype(np.float64)), given.get("axes", AXES)
    )


def _evoc(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    """Label rows by EVoC, which may return another number of clusters than requested, and noise."""
    from evoc import EVoC

    model = EVoC(approx_n_clusters=k, **given)
    return DenseClusterer(lambda X: model.fit_predict(X.astype(np.float32)))


def _plscan(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    """Label rows by PLSCAN, which finds the number of clusters, labels noise, and is deterministic."""
    from fast_plscan import PLSCAN as Clusterer

    return DenseClusterer(lambda X: Clusterer().fit(X.astype(np.float32)).labels_, AXES)


def _embedded(X: np.ndarray, given: Mapping[str, Any]) -> np.ndarray:
    """Return the two UMAP coordinates of each row; with a seed, UMAP runs on one core."""
    from umap import UMAP

    return UMAP(
        n_neighbors=min(NEIGHBOURS, len(X) - 1), min_dist=SPACING, n_jobs=1, **given
    ).fit_transform(X)


def _umap_density(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    """Label rows by UMAP and HDBSCAN, which find the number of clusters and label noise."""
    from sklearn.cluster import HDBSCAN

    def label_rows(X: np.ndarray) -> np.ndarray:
        model = HDBSCAN(
            min_cluster_size=_least_cluster(len(X)), min_samples=CORE, copy=True
        )
        return model.fit_predict(_embedded(X, given))

    return DenseClusterer(label_rows)


def _fast_density(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    """Label rows by fast_hdbscan, which finds the number of clusters, labels noise, and is deterministic."""
    from fast_hdbscan import HDBSCAN

    def label_rows(X: np.ndarray) -> np.ndarray:
        model = HDBSCAN(min_cluster_size=_least_cluster(len(X)), min_samples=CORE)
        return np.asarray(model.fit_predict(X))

    return DenseClusterer(label_rows, AXES)


def _least_cluster(rows: int) -> int:
    return max(CORE, round(LEAST_CLUSTER * rows))


def _umap_kmeans(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    from sklearn.cluster import KMeans

    kmeans = KMeans(k, n_init=10, **given)
    return DenseClusterer(lambda X: kmeans.fit_predict(_embedded(X, given)))


def _faiss(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    """Label rows by Lloyd's iterations over all rows, where faiss would sample 256 rows per cluster."""
    from faiss import Kmeans

    def label_rows(X: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(X, np.float32)
        model = Kmeans(
            rows.shape[1],
            k,
            seed=given["random_state"],
            max_points_per_centroid=len(rows),
        )
        model.train(rows)
        return np.asarray(model.index.search(rows, 1)[1].ravel())

    return DenseClusterer(label_rows)


def _superkmeans(k: int, given: Mapping[str, Any]) -> DenseClusterer:
    """Label rows by SuperKMeans with its defaults."""
    from superkmeans import SuperKMeans

    def label_rows(X: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(X, np.float32)
        model = SuperKMeans(k, rows.shape[1], seed=given["random_state"])
        return np.asarray(model.assign(rows, model.train(rows)), np.int64)

    return DenseClusterer(label_rows)


ENGINES: dict[str, Callable[[int, Mapping[str, Any]], Any]] = {
    FAISS: _faiss,
    SUPERKMEANS: _superkmeans,
}
"""One start of a fast k-means."""
DENSITY_ENGINES: dict[str, Callable[[int, Mapping[str, Any]], Any]] = {
    FAST_DENSITY: _fast_density
}
"""Fast density-based clustering."""
METHODS: dict[str, Callable[[int, Mapping[str, Any]], Any]] = {
    GENIE: _genie,
    **{
        name: partial(_genie, gini_threshold=bound)
        for name, bound in OTHER_GINI.items()
    },
    GIC: _gic,
    LUMBERMARK: _lumbermark,
    LEIDEN: _leiden,
    UMAP_DENSITY: _umap_density,
    UMAP_KMEANS: _umap_kmeans,
    EVOC: _evoc,
    PLSCAN: _plscan,
    MIXTURE: _mixture,
}

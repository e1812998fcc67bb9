"""scikit-learn's clusterers beside ours: estimators that fit and label, and the cell of one of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import mmcnb
from benchmarks._cells import facts
from benchmarks._compare import KMEANS, clustering, compile_seconds, faster_kmeans, timed
from benchmarks._tasks import Task, load_task, parameters_of

LEAST_SQUARES, HINGE = "UnsupervisedRLS", "SparseKernelMMC"
MINIBATCH, BISECTING, DENSITY = "MiniBatchKMeans", "BisectingKMeans", "HDBSCAN"
NYSTROEM, SPECTRAL = "Nyström k-means", "spectral, extended"
LANDMARKS, NYSTROEM_WIDTH = 300, 0.55
SPECTRAL_ROWS, GRAPH_NEIGHBOURS, VOTERS = 2000, 10, 5


def spectral(n_clusters: int, seed: int) -> Any:
    """Spectral clustering of the graph of ten nearest neighbours, as in the paper."""
    from sklearn.cluster import SpectralClustering

    return Quiet(
        SpectralClustering(
            n_clusters, affinity="nearest_neighbors", n_neighbors=GRAPH_NEIGHBOURS, random_state=seed
        )
    )


class Quiet:
    """A clusterer without the warnings about what it found: the tables say it.

    Parameters
    ----------
    estimator : estimator
        Not yet fitted.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any) -> Quiet:
        """Fit the clusterer."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            self.labels_ = self.estimator.fit(X).labels_
        return self


class ExtendedSpectral:
    """Spectral clustering of a sample; the other rows take the label of most of their nearest neighbours.

    Parameters
    ----------
    n_clusters : int
        k.
    seed : int
        Seed of the sample and of the clusterer.
    """

    def __init__(self, n_clusters: int, seed: int) -> None:
        self.n_clusters, self.seed = n_clusters, seed

    def fit(self, X: Any) -> ExtendedSpectral:
        """Divide the sample, then label every row."""
        from sklearn.neighbors import KNeighborsClassifier

        rows = np.random.RandomState(self.seed).permutation(len(X))[:SPECTRAL_ROWS]
        labels = spectral(self.n_clusters, self.seed).fit(X[rows]).labels_
        voters = KNeighborsClassifier(min(VOTERS, len(rows)))
        self.labels_ = voters.fit(X[rows], labels).predict(X)
        return self


class NystroemKMeans:
    """k-means of Nyström features.

    Parameters
    ----------
    n_clusters : int
        k.
    gamma : float
        Width of the Gaussian kernel.
    components : int
        Features.
    seed : int
        Seed of both.
    """

    def __init__(self, n_clusters: int, gamma: float, components: int, seed: int) -> None:
        self.n_clusters, self.gamma, self.components, self.seed = n_clusters, gamma, components, seed

    def fit(self, X: Any) -> NystroemKMeans:
        """Map the rows and divide them."""
        from sklearn.cluster import KMeans
        from sklearn.kernel_approximation import Nystroem

        components = min(self.components, len(X))
        Z = Nystroem(gamma=self.gamma, n_components=components, random_state=self.seed).fit_transform(X)
        self.labels_ = KMeans(self.n_clusters, n_init=10, random_state=self.seed).fit(Z).labels_
        return self


def fitted(name: str, rows: int | None, method: str, seed: int) -> dict[str, Any]:
    """Compute a cell: one method on the rows of a task, without classes.

    Parameters
    ----------
    name : str
        Of one of `TASKS`.
    rows : int or None
        At most so many rows, drawn at random.
    method : str
        One of `METHODS`.
    seed : int
        Of the method.

    Returns
    -------
    dict
        Facts of the data, measures, `clustering`, and what our estimators tell.
    """
    task, data = load_task(name, rows)
    compiled = compile_seconds(data.X, *_ours(task)) if method in (LEAST_SQUARES, HINGE) else 0.0
    if method == KMEANS and task.n_clusters == 2:
        estimator, measures = faster_kmeans(data.X, seed, {"n_init": 10})
    else:
        estimator = METHODS[method](task, data.X, seed)
        measures = timed(estimator, data.X)
    found = facts(data.X) | measures | {"compile_seconds": compiled, "k": task.n_clusters}
    return found | clustering(data.y, estimator.labels_) | _told(estimator)


def _ours(task: Task) -> tuple[Any, Any]:
    """What compiles every kernel of ours."""
    k = task.n_clusters
    return mmcnb.UnsupervisedRLS(k, random_state=0), mmcnb.SparseKernelMMC(k, random_state=0)


def _told(estimator: Any) -> dict[str, float]:
    if not hasattr(estimator, "history_"):
        return {}
    return {"objective": float(estimator.objective_), "reads": int(estimator.history_["reads"].iloc[-1])}


def _kmeans(task: Task, X: Any, seed: int) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(task.n_clusters, n_init=10, random_state=seed)


def _minibatch(task: Task, X: Any, seed: int) -> Any:
    from sklearn.cluster import MiniBatchKMeans

    return MiniBatchKMeans(task.n_clusters, random_state=seed)


def _bisecting(task: Task, X: Any, seed: int) -> Any:
    from sklearn.cluster import BisectingKMeans

    return BisectingKMeans(task.n_clusters, random_state=seed)


def _density(task: Task, X: Any, seed: int) -> Any:
    from sklearn.cluster import HDBSCAN

    return HDBSCAN(copy=True)


def _nystroem(task: Task, X: Any, seed: int) -> Any:
    width = parameters_of(task._replace(width=task.width or NYSTROEM_WIDTH), X)
    return NystroemKMeans(task.n_clusters, width["gamma"], LANDMARKS, seed)


METHODS: dict[str, Callable[[Task, Any, int], Any]] = {
    KMEANS: _kmeans,
    LEAST_SQUARES: lambda task, X, seed: mmcnb.UnsupervisedRLS(
        task.n_clusters, random_state=seed, **parameters_of(task, X)
    ),
    HINGE: lambda task, X, seed: mmcnb.SparseKernelMMC(
        task.n_clusters, random_state=seed, **parameters_of(task, X)
    ),
    MINIBATCH: _minibatch,
    BISECTING: _bisecting,
    NYSTROEM: _nystroem,
    SPECTRAL: lambda task, X, seed: ExtendedSpectral(task.n_clusters, seed),
    DENSITY: _density,
}

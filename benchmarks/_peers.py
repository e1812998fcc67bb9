"""scikit-learn's clusterers beside the least squares family, as estimators that fit and label."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._common import Data
from benchmarks._compare import fit
from benchmarks._tasks import Task
from mmcnb.metrics import balanced_clustering_error

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


def faster(make: Callable[[], Any]) -> Any:
    """An estimator that fits on all cores and on one, and keeps the seconds of the faster."""
    return _Faster(make)


class _Faster:
    """Its threads wait for each other, so where other work takes a core one may be the faster."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def fit(self, X: Any) -> _Faster:
        """Fit twice."""
        from threadpoolctl import threadpool_limits

        self.seconds_ = np.inf
        for threads in (None, 1):
            with threadpool_limits(threads):
                started = time.perf_counter()
                self.labels_ = self.make().fit(X).labels_
                self.seconds_ = min(self.seconds_, time.perf_counter() - started)
        return self


def measure(task: Task, data: Data, method: str, estimator: Any) -> dict[str, Any]:
    """Fit once, and return the row of the tidy table.

    Parameters
    ----------
    task : Task
        What is divided.
    data : Data
        Its rows.
    method : str
        Name for the table.
    estimator : estimator
        Not yet fitted.

    Returns
    -------
    dict
        dataset, n, d, k, method, ari, error (of two clusters), seconds, and what our estimators tell.
    """
    from sklearn.metrics import adjusted_rand_score

    started = time.perf_counter()
    fit(estimator, data.X)
    seconds = getattr(estimator, "seconds_", time.perf_counter() - started)
    history = getattr(estimator, "history_", None)
    two = task.n_clusters == 2
    return {
        "dataset": data.name,
        "n": len(data.y),
        "d": data.X.shape[1],
        "k": task.n_clusters,
        "method": method,
        "ari": float(adjusted_rand_score(data.y, estimator.labels_)),
        "error": balanced_clustering_error(data.y, estimator.labels_) if two else np.nan,
        "seconds": seconds,
        "objective": getattr(estimator, "objective_", np.nan),
        "reads": np.nan if history is None else history["reads"].iloc[-1],
    }

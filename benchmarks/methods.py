"""The estimators of the studies by name: our methods and their peers."""

import os
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

import mmcnb
from benchmarks import baselines, libraries, mixed
from benchmarks.before import BEFORE, VARIABLE, EarlierDefault
from benchmarks.protocol import Data, Score, blocks_of, clustering, of_store, scored

KMEANS = "k-means"
CUT = "normalised cut"
SVR = "IterSVR"
CPMMC = "CPMMC"
LGMMC = "LG-MMC"
SKMMC = "SKMMC"
SKMMC2 = "SKMMCv2"
SDP = "MMC"
GMMC = "GMMC"
LEAST_SQUARES = "UnsupervisedRLS"
HINGE = "SparseKernelMMC"
EVOLUTION = "EvoMMC"
FRONT_DOOR = "MaximumMarginClustering"
GRAPH = f"{FRONT_DOOR}, graph"
MARGIN = f"{FRONT_DOOR}, rbf"
MULTIPLE = "MultipleKernelClustering"
MINIBATCH = "MiniBatchKMeans"
BISECTING = "BisectingKMeans"
DENSITY = "HDBSCAN"
NYSTROEM = "Nyström k-means"
SPECTRAL = "spectral, extended"
GOWER = "Gower, PAM"
AGGLOMERATIVE = "agglomerative, Ward"
BIRCH = "Birch"
LANDMARKS = 300
SPECTRAL_ROWS = 2000
GRAPH_NEIGHBOURS = 10
VOTERS = 5


def estimator(method: str, n_clusters: int = 2, **given: Any) -> Any:
    """Return the unfitted estimator of a method, by its name in the tables.

    Examples
    --------
    >>> from benchmarks.methods import SKMMC2, estimator
    >>> estimator(SKMMC2, C=2.0).threshold
    'fixed'
    """
    return METHODS[method](n_clusters, given)


def faster_kmeans(
    data: Data,
    seed: int,
    given: Mapping[str, Any],
    k: int = 2,
    score: Score = clustering,
) -> dict[str, Any]:
    """Return k-means on all cores or on one core, whichever is faster.

    The threads of k-means wait for each other. If other work occupies a core, it can
    therefore be several times slower on all cores.
    """
    from threadpoolctl import threadpool_limits

    tried = []
    for threads in (None, 1):
        with threadpool_limits(threads):
            tried.append(
                scored(data, estimator(KMEANS, k, random_state=seed, **given), score)
            )
    return min(tried, key=lambda found: found["seconds"])


def fit_blocks(
    model: Any, store: str, rows: int, sample: int | None = None
) -> dict[str, Any]:
    """Fit a peer to a store in blocks of rows, or only to the first rows, and label all rows."""
    started = time.perf_counter()
    for block in blocks_of(store, rows) if sample is None else ():
        model.partial_fit(block)
    if sample is not None:
        model.fit(next(blocks_of(store, sample)))
    fitted = time.perf_counter()
    labels = np.concatenate([model.predict(block) for block in blocks_of(store, rows)])
    seconds = {
        "seconds": fitted - started,
        "label_seconds": time.perf_counter() - fitted,
    }
    return of_store(store, labels) | seconds


class Quiet:
    """A clusterer, or a pipeline that ends in one, whose warnings are suppressed."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any) -> Self:
        """Fit the clusterer."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = self.estimator.fit(X)
        self.labels_ = model.labels_ if hasattr(model, "labels_") else model[-1].labels_
        return self


class ExtendedSpectral:
    """Spectral clustering of a sample; the other rows get the most frequent label of their nearest neighbours."""

    def __init__(self, n_clusters: int, random_state: int) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X: Any) -> Self:
        """Cluster the sample, then label every row."""
        from sklearn.neighbors import KNeighborsClassifier

        rows = np.random.RandomState(self.random_state).permutation(len(X))[
            :SPECTRAL_ROWS
        ]
        labels = (
            estimator(CUT, self.n_clusters, random_state=self.random_state)
            .fit(X[rows])
            .labels_
        )
        voters = KNeighborsClassifier(min(VOTERS, len(rows)))
        self.labels_ = voters.fit(X[rows], labels).predict(X)
        return self


Given = Mapping[str, Any]


def _sklearn(name: str) -> Callable[[int, Given], Any]:
    def make(k: int, given: Given) -> Any:
        import sklearn.cluster

        return getattr(sklearn.cluster, name)(k, **given)

    return make


def _drawing_nothing(name: str) -> Callable[[int, Given], Any]:
    def make(k: int, given: Given) -> Any:
        import sklearn.cluster

        model = getattr(sklearn.cluster, name)(n_clusters=k, **_without_seed(given))
        return Quiet(model)

    return make


def _cut(k: int, given: Given) -> Any:
    """Return a normalised cut with the graph of ten nearest neighbours or a given width, as in the paper."""
    from sklearn.cluster import SpectralClustering

    graph = (
        {}
        if "gamma" in given
        else {"affinity": "nearest_neighbors", "n_neighbors": GRAPH_NEIGHBOURS}
    )
    return Quiet(SpectralClustering(k, **graph, **given))


def _nystroem(k: int, given: Given) -> Any:
    """Return k-means with ten starts on Nyström features of the Gaussian kernel."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    # If there are fewer rows than components, Nystroem uses all rows and warns.
    kmeans = estimator(KMEANS, k, n_init=10, random_state=given["random_state"])
    return Quiet(make_pipeline(Nystroem(n_components=LANDMARKS, **given), kmeans))


def _density(k: int, given: Given) -> Any:
    """Return HDBSCAN, which finds the number of clusters, labels noise, and is deterministic."""
    from sklearn.cluster import HDBSCAN

    model = HDBSCAN(copy=True, **_without_seed(given))
    return libraries.DenseClusterer(model.fit_predict, libraries.AXES)


def _hinge(k: int, given: Given) -> Any:
    return (
        mmcnb.SparseKernelMMC(**given)
        if k == 2
        else mmcnb.CrammerSingerMMC(n_clusters=k, **given)
    )


def _label_generation(k: int, given: Given) -> Any:
    """Return label generation on the kernel matrix or, with a linear kernel, on the columns."""
    taken = _without_seed(given)
    if taken.get("kernel") != "linear":
        return baselines.LabelGenerationMMC(**taken)
    return baselines.LinearLabelGenerationMMC(
        **{name: taken[name] for name in taken if name != "kernel"}
    )


def _without_seed(given: Given) -> dict[str, Any]:
    """Return the parameters of a deterministic method."""
    return {name: value for name, value in given.items() if name != "random_state"}


METHODS: dict[str, Callable[[int, Given], Any]] = {
    SVR: lambda k, given: baselines.IterativeSVR(**given),
    CPMMC: lambda k, given: mmcnb.CPMMC(**given),
    LGMMC: _label_generation,
    GMMC: lambda k, given: baselines.GeneralisedMMC(**_without_seed(given)),
    SDP: lambda k, given: baselines.SDPMMC(**_without_seed(given)),
    SKMMC: _hinge,
    SKMMC2: lambda k, given: mmcnb.SparseKernelMMC(threshold="fixed", **given),
    LEAST_SQUARES: lambda k, given: mmcnb.UnsupervisedRLS(k, **given),
    FRONT_DOOR: lambda k, given: mmcnb.MaximumMarginClustering(k, **given),
    GRAPH: lambda k, given: mmcnb.MaximumMarginClustering(k, kernel="graph", **given),
    MARGIN: lambda k, given: mmcnb.MaximumMarginClustering(k, kernel="rbf", **given),
    HINGE: _hinge,
    EVOLUTION: lambda k, given: mmcnb.EvolutionaryMMC(**given),
    MULTIPLE: lambda k, given: mmcnb.MultipleKernelClustering(k, **given),
    KMEANS: _sklearn("KMeans"),
    CUT: _cut,
    MINIBATCH: _sklearn("MiniBatchKMeans"),
    BISECTING: _sklearn("BisectingKMeans"),
    NYSTROEM: _nystroem,
    SPECTRAL: lambda k, given: ExtendedSpectral(k, **given),
    DENSITY: _density,
    AGGLOMERATIVE: _drawing_nothing("AgglomerativeClustering"),
    BIRCH: _drawing_nothing("Birch"),
    # is deterministic, and accepts a frame
    GOWER: lambda k, given: baselines.GowerMedoids(k),
    BEFORE: lambda k, given: EarlierDefault(k, folder=os.environ[VARIABLE], **given),
    **mixed.METHODS,
    **libraries.METHODS,
    **libraries.ENGINES,
    **libraries.DENSITY_ENGINES,
}

"""Name -> estimator: our methods and their peers."""

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

import mmcnb
from benchmarks.protocol import MIB, WARM_UP_ROWS, Data, compile_seconds, run_and_watch, scored
from mmcnb import baselines

KMEANS, CUT, SVR, CPMMC, LGMMC = "k-means", "normalised cut", "IterSVR", "CPMMC", "LG-MMC"
SKMMC, SKMMC2, OWN = "SKMMC", "SKMMCv2", "SKMMC, own vectors"
LEAST_SQUARES, HINGE, EVOLUTION = "UnsupervisedRLS", "SparseKernelMMC", "EvoMMC"
MULTIPLE = "MultipleKernelClustering"
MINIBATCH, BISECTING, DENSITY = "MiniBatchKMeans", "BisectingKMeans", "HDBSCAN"
NYSTROEM, SPECTRAL = "Nyström k-means", "spectral, extended"
LANDMARKS = 300
SPECTRAL_ROWS, GRAPH_NEIGHBOURS, VOTERS = 2000, 10, 5


def estimator(method: str, n_clusters: int = 2, **given: Any) -> Any:
    """A method by its name in the tables, not yet fitted.

    Examples
    --------
    >>> from benchmarks.methods import SKMMC2, estimator
    >>> estimator(SKMMC2, C=2.0).threshold
    'fixed'
    """
    return METHODS[method](n_clusters, given)


def is_ours(method: str) -> bool:
    """Whether a method compiles routines of ours."""
    return method in OURS


def faster_kmeans(
    data: Data,
    seed: int,
    given: Mapping[str, Any],
    k: int = 2,
    measure: Callable[[Data, Any], dict[str, Any]] = scored,
) -> dict[str, Any]:
    """What k-means finds on all cores or on one, whichever is faster.

    Its threads wait for each other, so where other work takes a core it can be several times slower on all.
    """
    from threadpoolctl import threadpool_limits

    tried = []
    for threads in (None, 1):
        with threadpool_limits(threads):
            tried.append(measure(data, estimator(KMEANS, k, random_state=seed, **given)))
    return min(tried, key=lambda found: found["seconds"])


def fit_in_process(method: str, store: str, k: int, **given: Any) -> tuple[dict[str, Any], np.ndarray]:
    """Fit one of our methods to a store, in a process that is watched.

    Returns
    -------
    measures : dict
        Seconds of the fit, of the labels and of compiling, peak memory, and reads or the weights of kernels.
    labels : ndarray of shape (n_samples,)
        Cluster of each row.
    """
    import zarr

    labels = str(Path(store).with_suffix(".labels.zarr"))
    words = json.dumps([method, store, labels, k, given])
    report, peak = run_and_watch([sys.executable, "-m", "benchmarks.methods", words])
    return report | {"peak_mib": peak / MIB}, np.asarray(zarr.open_array(labels, mode="r")[:])


def _fit_and_label(method: str, store: str, labels: str, k: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """What `fit_in_process` does in the process."""
    model, samples = estimator(method, k, random_state=0, **given), mmcnb.open_samples(store)
    compiled = compile_seconds(samples.block(0, min(WARM_UP_ROWS, samples.n_samples)), model)
    started = time.perf_counter()
    model.fit_model(store)
    fitted = time.perf_counter()
    model.predict(store, out=labels)
    seconds = {"seconds": fitted - started, "label_seconds": time.perf_counter() - fitted}
    found = seconds | {"compile_seconds": compiled}
    if method == MULTIPLE:
        return found | {"weights": weights_of(model)}
    return found | {"reads": int(model.history_["reads"].iloc[-1])}


def weights_of(model: Any) -> str:
    """The weights of several kernels by name; "" where there is one."""
    weights, names = model.kernel_weights_, model.kernel_names_
    told = "; ".join(f"{name}: {weight:.2f}" for name, weight in zip(names, weights, strict=True))
    return told if len(names) > 1 else ""


class Quiet:
    """A clusterer, or a pipeline that ends in one, without warnings: the tables show what it found."""

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
    """Spectral clustering of a sample; the other rows take the label of most of their nearest neighbours."""

    def __init__(self, n_clusters: int, random_state: int) -> None:
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit(self, X: Any) -> Self:
        """Cluster the sample, then label every row."""
        from sklearn.neighbors import KNeighborsClassifier

        rows = np.random.RandomState(self.random_state).permutation(len(X))[:SPECTRAL_ROWS]
        labels = estimator(CUT, self.n_clusters, random_state=self.random_state).fit(X[rows]).labels_
        voters = KNeighborsClassifier(min(VOTERS, len(rows)))
        self.labels_ = voters.fit(X[rows], labels).predict(X)
        return self


Given = Mapping[str, Any]


def _sklearn(name: str) -> Callable[[int, Given], Any]:
    def make(k: int, given: Given) -> Any:
        import sklearn.cluster

        return getattr(sklearn.cluster, name)(k, **given)

    return make


def _cut(k: int, given: Given) -> Any:
    """Normalised cut: of the graph of ten nearest neighbours, or of a given width, as the paper has both."""
    from sklearn.cluster import SpectralClustering

    graph = {} if "gamma" in given else {"affinity": "nearest_neighbors", "n_neighbors": GRAPH_NEIGHBOURS}
    return Quiet(SpectralClustering(k, **graph, **given))


def _nystroem(k: int, given: Given) -> Any:
    """k-means with ten starts of Nyström features of the Gaussian kernel."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    # Where rows are fewer than components, Nystroem takes all and warns.
    kmeans = estimator(KMEANS, k, n_init=10, random_state=given["random_state"])
    return Quiet(make_pipeline(Nystroem(n_components=LANDMARKS, **given), kmeans))


def _density(k: int, given: Given) -> Any:
    """It finds its own number of clusters, and draws nothing."""
    from sklearn.cluster import HDBSCAN

    return HDBSCAN(copy=True)


def _hinge(k: int, given: Given) -> Any:
    return mmcnb.SparseKernelMMC(**given) if k == 2 else mmcnb.CrammerSingerMMC(n_clusters=k, **given)


OURS: dict[str, Callable[[int, Given], Any]] = {
    SVR: lambda k, given: baselines.IterativeSVR(**given),
    CPMMC: lambda k, given: mmcnb.CPMMC(**given),
    LGMMC: lambda k, given: baselines.LabelGenerationMMC(**given),
    SKMMC: _hinge,
    SKMMC2: lambda k, given: mmcnb.SparseKernelMMC(threshold="fixed", **given),
    OWN: lambda k, given: baselines.OwnBasisMMC(**given),
    LEAST_SQUARES: lambda k, given: mmcnb.UnsupervisedRLS(k, **given),
    HINGE: _hinge,
    EVOLUTION: lambda k, given: mmcnb.EvolutionaryMMC(**given),
    MULTIPLE: lambda k, given: mmcnb.MultipleKernelClustering(k, **given),
}
METHODS: dict[str, Callable[[int, Given], Any]] = {
    **OURS,
    KMEANS: _sklearn("KMeans"),
    CUT: _cut,
    MINIBATCH: _sklearn("MiniBatchKMeans"),
    BISECTING: _sklearn("BisectingKMeans"),
    NYSTROEM: _nystroem,
    SPECTRAL: lambda k, given: ExtendedSpectral(k, **given),
    DENSITY: _density,
}

if __name__ == "__main__":
    print(json.dumps(_fit_and_label(*json.loads(sys.argv[1]))))

"""Data sets of the MKC paper and of the thesis, with their measures and estimators."""

from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from benchmarks import protocol
from benchmarks.methods import CUT, KMEANS, MULTIPLE, SVR, estimator, faster_kmeans
from benchmarks.protocol import Data
from benchmarks.run import Options, Run

K1 = "K1 linear"
K2 = "K2 polynomial"
K3 = "K3 Gaussian"
MKC = "MKC"
OURS = (K1, K2, K3, MKC)
METHODS = (*OURS, KMEANS, CUT, SVR)
ACCURACY = "accuracy"
QUICK_ROWS = 200


# -- data ------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Rows of a data set: the classes (or all), the number of rows to draw, and how many to skip."""

    dataset: str
    classes: tuple[int, ...] = ()
    most: int | None = None
    skip: int = 0

    @property
    def n_clusters(self) -> int:
        """Number of clusters: one per class, or two if all classes are used."""
        return len(self.classes) or 2


MNIST = "mnist01234"
MNIST_SAMPLE = "mnist01234, a sample"
# If all rows are the basis, a fit of more than 3,000 rows takes minutes.
BY_LANDMARKS = (MNIST, "letterABCD")
DIGITS = Rows("mnist", (0, 1, 2, 3, 4))
# The names are the paper's. The paper's ionosphere is 354 x 64 and its MNIST 28,911 x
# 196; the files have 351 x 34 and 35,735 x 784. The thesis's digits1v7 of 776 rows are
# the 1s and 7s in the training part of optdigits.
TABLE2 = {
    "digits1v7": Rows("optdigits-tes", (1, 7)),
    "digits2v7": Rows("optdigits-tes", (2, 7)),
    "ionosphere": Rows("ionosphere"),
    "svmguide1-a": Rows("svmguide1", most=1000),
    "ringnorm": Rows("ringnorm", most=1000),
    "letter-AvB": Rows("letter", (0, 1)),
    "satellite-1v2": Rows("satellite", (1, 2)),
    "digits0689": Rows("optdigits-tes", (0, 6, 8, 9)),
    "digits1279": Rows("optdigits-tes", (1, 2, 7, 9)),
    "letterABCD": Rows("letter", (0, 1, 2, 3)),
}
THESIS_ONLY = {"digits1v7-tra": Rows("optdigits-tra", (1, 7))}
SETS = TABLE2 | THESIS_ONLY | {"ringnorm-rest": Rows("ringnorm", skip=1000)}
SETS |= {MNIST: DIGITS, MNIST_SAMPLE: DIGITS._replace(most=1000)}
WHOLE = {
    f"{name}, a sample": name for name in ("letter-AvB", "satellite-1v2", "letterABCD")
}
SETS |= {sample: TABLE2[name]._replace(most=500) for sample, name in WHOLE.items()}
WHOLE |= {MNIST_SAMPLE: MNIST}  # each sample, and the data set from which it is drawn
# A model that is fitted to the first data set labels the second.
TABLE3 = WHOLE | {"digits1v7-tra": "digits1v7", "ringnorm": "ringnorm-rest"}


def rows_of_set(
    name: str, options: Options, quick: int | None = QUICK_ROWS
) -> int | None:
    """Return the largest number of rows to draw from one of `SETS`; None for all."""
    bounds = (SETS[name].most, options.rows, quick if options.quick else None)
    return min((bound for bound in bounds if bound is not None), default=None)


@lru_cache(maxsize=2)
def load_set(name: str, rows: int | None = None) -> Data:
    """Return one of `SETS`, with the columns of the file; the last two results are cached.

    Pixels of MNIST are divided by 255.

    If fewer rows are requested, they are drawn with a fixed seed, in the order of the
    file.
    """
    dataset, classes, most, skip = SETS[name]
    bounds = [bound for bound in (most, rows) if bound is not None]
    data = protocol.load_once(dataset)._replace(name=name)
    return protocol.draw(data, classes, min(bounds, default=None), skip)


def distance_range(X: Any) -> float:
    """Return sigma0: the largest minus the smallest distance between two rows.

    If there are more than 2,000 rows, a sample of 2,000 is used, drawn with a fixed
    seed.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._mkc_models import distance_range
    >>> distance_range(np.array([[0.0], [1.0], [4.0]]))
    3.0
    """
    from scipy.spatial.distance import pdist

    rows = np.random.RandomState(0).permutation(len(X))[:2000]
    return float(np.ptp(pdist(np.asarray(X[rows], np.float64))))


@lru_cache(maxsize=2)
def sigma0_of(name: str, rows: int | None) -> float:
    """Return `distance_range` of a data set; the last two results are cached."""
    return distance_range(load_set(name, rows).X)


def majority_accuracy(y_true: Any, labels: Any) -> float:
    """Return the share of the rows that are in the majority class of their cluster.

    The papers use this accuracy, in which each cluster stands for its majority class.

    Examples
    --------
    >>> from benchmarks.studies._mkc_models import majority_accuracy
    >>> majority_accuracy(["a", "a", "a", "b"], [0, 0, 1, 1])
    0.75
    """
    from sklearn.metrics.cluster import contingency_matrix

    counts = contingency_matrix(y_true, labels)
    return float(counts.max(axis=0).sum() / counts.sum())


def scores(y_true: Any, labels: Any) -> dict[str, float]:
    """Return the accuracy as in the paper, the Rand index, and the adjusted Rand index."""
    from sklearn.metrics import adjusted_rand_score, rand_score

    ari = float(adjusted_rand_score(y_true, labels))
    rand = float(rand_score(y_true, labels))
    return {ACCURACY: majority_accuracy(y_true, labels), "rand": rand, "ari": ari}


# -- estimators ------------------------------------------------------------------------

# The thesis has 2^0 to 2^10; on raw digits, degrees of 2^5 and more exceed the range of
# floats.
DEGREES = (2, 4, 8)
SIGMAS = (5.0,)  # of the thesis's 0.5 to 20
# sigma = f sigma0 in exp(-d²/(2 sigma)), as in the normalised cut.
FRACTIONS = (0.3, 1.0)
SQUARED = (0.2, 0.4, 0.1, 0.8)  # sigma = (f sigma0)² in the usual Gaussian kernel
FORM: dict[str, Any] = {"threshold": "fixed"}  # as in the paper: the threshold is 1
# C = 2^e; the thesis has 2^-6 to 2^6, for kernels that are not scaled to unit trace.
EXPONENTS = (1, 2, 4, 6, 8)
FORMS: dict[str, dict[str, Any]] = {f"C=2^{e}": FORM | {"C": 2.0**e} for e in EXPONENTS}
FORMS |= {f"C={C:g}, adaptive": {"C": C} for C in (2.0, 10.0)}
# Two clusters as in the papers: from random labels, at once with a large C, where each
# start ends in another optimum.
FLIP: dict[str, Any] = {
    "C": 64.0,
    "continuation": False,
    "init": "random",
    "n_init": 1,
    "balance": 0.03,
    "min_share": 0.3,
}
FLIPS = {
    f"C=2^6, coin flip {seed}": FORM | FLIP | {"random_state": seed}
    for seed in range(4)
}


def base_kernels(sigma0: float) -> dict[str, dict[str, Any]]:
    """Return the kernels that are tried for each of the paper's three kinds, by name."""
    sigmas = {f"sigma=({f:g} sigma0)^2": (f * sigma0) ** 2 for f in SQUARED}
    sigmas |= {f"sigma={f:g} sigma0": f * sigma0 for f in FRACTIONS}
    sigmas |= {f"sigma={sigma:g}": sigma for sigma in SIGMAS}
    return {
        K1: {"linear": "linear"},
        K2: {f"d={degree}": polynomial(degree) for degree in DEGREES},
        K3: {
            name: ("rbf", {"gamma": gamma_of(sigma)}) for name, sigma in sigmas.items()
        },
    }


def polynomial(degree: int) -> tuple[str, dict[str, Any]]:
    """Return the kernel (1 + x·b)^d."""
    return "poly", {"degree": degree, "gamma": 1.0, "coef0": 1.0}


def gamma_of(sigma: float) -> float:
    """Return gamma of exp(-d²/(2 sigma)), which the paper writes without a square."""
    return 1 / (2 * sigma)


class NormalisedCut:
    """k-means on the leading eigenvectors of a normalised Gaussian graph.

    With the paper's bandwidths, raw digits have almost no edges. ARPACK, and therefore
    scikit-learn's spectral clustering, then does not converge, so all eigenvectors of a
    dense matrix are computed.
    """

    def __init__(self, n_clusters: int, gamma: float, seed: int) -> None:
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.seed = seed

    def fit(self, X: Any) -> Self:
        """Cluster the rows."""
        from sklearn.metrics.pairwise import rbf_kernel

        graph = rbf_kernel(X, gamma=self.gamma)
        root = np.sqrt(graph.sum(axis=1))
        vectors = np.linalg.eigh(graph / root / root[:, None])[1]
        leading = vectors[:, -self.n_clusters :] / root[:, None]
        kmeans = estimator(KMEANS, self.n_clusters, n_init=10, random_state=self.seed)
        self.labels_ = kmeans.fit(leading).labels_
        return self


def ours(run: Run, name: str) -> Any:
    """Return MKC or a single kernel, with parameters of the grid or the defaults."""
    k = SETS[name].n_clusters
    if not run.parameters:
        alone = {K1: ["linear"], K2: [polynomial(2)], K3: ["rbf"]}
        return estimator(
            MULTIPLE,
            k,
            kernels=alone.get(run.method, "auto"),
            random_state=run.seed,
        )
    named: dict[str, Any] = {}
    for kernels_of_kind in base_kernels(sigma0_of(name, run.settings["rows"])).values():
        named |= kernels_of_kind
    kernels = [named[kernel] for kernel in run.parameters["kernels"].split(", ")]
    parameters: dict[str, Any] = {"random_state": run.seed, "kernels": kernels}
    parameters |= (FORMS | FLIPS)[run.parameters["form"]]
    if name not in BY_LANDMARKS:
        parameters["basis"] = "exact"
    return estimator(MULTIPLE, k, **parameters)


def peer(run: Run, data: Data) -> Any:
    """Return k-means, normalised cut or IterSVR, with given parameters or the defaults."""
    parameters = dict(run.parameters)
    k = SETS[data.name].n_clusters
    if "width" in parameters:
        sigma = parameters.pop("width") * sigma0_of(data.name, run.settings["rows"])
        gamma = gamma_of(sigma)
        if run.method == CUT:
            return NormalisedCut(k, gamma, run.seed)
        parameters["gamma"] = gamma
        parameters["balance"] = protocol.known_balance(data.y)
    return estimator(run.method, k, random_state=run.seed, **parameters)


# -- the computation of a run ----------------------------------------------------------


def compute(run: Run) -> dict[str, Any]:
    """Fit MKC, a single kernel or a peer to one of `SETS`."""
    data = load_set(run.dataset, run.settings["rows"])
    if run.method in OURS:
        model = ours(run, run.dataset)
        measures = protocol.scored(data, model, scores)
        return measures | {"weights": protocol.weights_of(model)}
    if run.method == KMEANS and "init" not in run.parameters:
        k = SETS[run.dataset].n_clusters
        return faster_kmeans(data, run.seed, run.parameters, k, scores)
    return protocol.scored(data, peer(run, data), scores)

"""Sparse kernel maximum margin clustering: the kernel estimator for data of any size."""

import numbers
import os
import warnings
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.passes import DrawnSample
from mmcnb.engine.plan import FitPlan
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitSession
from mmcnb.errors import ClusterWarning, InputError
from mmcnb.estimators.margin import MarginClusterer
from mmcnb.estimators.validate import check_choice, check_gamma, check_number
from mmcnb.features.bandwidth import candidate_gammas, default_gamma, mean_squared_distance, named_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import choose_landmarks
from mmcnb.hinge.growing import GrowingWorkingSet, OwnBasisWorkingSet
from mmcnb.hinge.multiclass import ALPHA, fit_hinge_clusters
from mmcnb.hinge.sample_search import KernelFeatures, growing_features, landmark_features
from mmcnb.least_squares.all_rows import check_clusters, check_matrices, matrix_bytes, rows_of_sample
from mmcnb.least_squares.objective import target_shares
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.samples import Samples, open_samples

KERNELS = ("rbf", "linear", "poly")
MOST_LANDMARKS, LANDMARKS_OF_MANY = 200, 300
MORE_SHAKES = 2  # starts of shaking beyond n_init, with more than two clusters
GROWING = {"shared": GrowingWorkingSet, "own": OwnBasisWorkingSet}


class KernelClusterer(MarginClusterer):
    """What the kernel estimators share: the kernel, its width, and the basis."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("kernel", self.kernel, KERNELS)
        check_number("degree", self.degree, 1, integer=True)
        check_number("coef0", self.coef0, -np.inf)
        check_gamma(self.gamma)

    def _candidate_kernels(self, sample: Any, weights: np.ndarray | None) -> list[Kernel]:
        if isinstance(self.gamma, numbers.Real):
            gammas = [float(self.gamma)]
        elif self.gamma == "auto" and self.kernel == "rbf":
            gammas = candidate_gammas(sample, weights)
        else:
            # A polynomial has no width to choose: "auto" is scikit-learn's "scale".
            gammas = [named_gamma("scale" if self.gamma == "auto" else self.gamma, sample, weights)]
        return [Kernel(self.kernel, gamma, int(self.degree), float(self.coef0)) for gamma in gammas]

    def _choose_basis(self, sample: Any, weights: np.ndarray | None, random_state: Any) -> np.ndarray:
        return choose_landmarks(sample, self._basis_size(sample.shape[0]), random_state, weights)

    def _candidates(
        self, engine: Engine, found: DrawnSample, weights: np.ndarray | None, random_state: Any
    ) -> list[Callable[[], KernelFeatures]]:
        mean_squared_distance(found.sample, weights)  # refuses rows that are all equal
        basis = self._choose_basis(found.sample, weights, random_state)
        sample, seed = open_samples(found.sample), int(random_state.randint(2**31 - 1))
        kernels = self._candidate_kernels(found.sample, weights)
        return [partial(self._candidate, engine, sample, kernel, basis, weights, seed) for kernel in kernels]

    @abstractmethod
    def _candidate(
        self,
        engine: Engine,
        sample: Samples,
        kernel: Kernel,
        basis: np.ndarray,
        weights: np.ndarray | None,
        seed: int,
    ) -> KernelFeatures:
        """The sample under one kernel."""


class SparseKernelMMC(KernelClusterer):
    """Maximum margin clustering with a kernel, in linear time and storage (SKMMC).

    Finds the two clusters that a support vector machine would separate with
    the widest margin: cutting planes for fixed labels, labels renewed by CCCP,
    and a continuation in C that starts where the problem has a single hill.
    Starts and kernel widths are tried on a sample; the last steps run on all
    rows, block by block, and keep nothing of size n.

    More clusters have one score each, and a row's margin is its largest score less the second (Crammer and
    Singer). Least squares divides the sample, as in `UnsupervisedRLS`, rounds of the hinge at rising C move
    on from the best two divisions and are kept where least squares agrees, three passes of least squares
    label all rows, and the scores are those that part these labels by the widest margin. Sizes are held;
    `threshold`, `basis`, `balance` and `init` have no other values than their defaults there, and
    `min_share` is not used.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    C : float, default=10.0
        Final weight of the slack; above 1. 1/C is the nu of the nu-SVM.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Width of the Gaussian kernel exp(-gamma |x - b|²), gamma = 1/(2 sigma²). "auto" chooses
        among seven widths without labels, and with more than two clusters is sigma = 0.55 times the root
        mean squared distance; "mean" and "median" are 1/(2 mean or median squared distance); "scale" is
        scikit-learn's.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        "adaptive" makes the margin's threshold rho a variable (SKMMC); "fixed" sets it to 1 (SKMMCv2).
    basis : {"landmarks", "shared", "own"}, default="landmarks"
        Basis vectors of the model: k-means++ landmarks of the sample; or found with the planes, one
        fixed point a plane (Alg. 4), all planes living in their shared span; or each plane on its
        own vector, as the paper prints it. The last two keep a kernel column a plane for the
        sample; on further rows the basis they found serves like landmarks.
    n_landmarks : int or None, default=None
        Number of basis vectors; None is min(200, half the sample), and with more than two clusters 300.
    continuation : bool, default=True
        Raise C from near 1; False is the papers' form, directly at C.
    init : {"mixed", "random", "k-means"}, default="mixed"
        Starts: "mixed" is a coin flip, the signs of a kernel principal component, two divisions by least
        squares (the end of a ridge path, and shaking), and the signs of two more components.
    n_init : int, default=6
        Number of starts, all on the sample; the one wins whose |w|² at C = 2 and at the last C has the
        largest geometric mean. With more than two clusters two more, of shaking, beside four ridge paths.
    sample_size : int or None, default=None
        Rows of the sample; None is 2,000, or 100 n_clusters where that is more.
    balance : float, default=0.0
        l/n: bound of the mean decision value in units of rho.
    min_share : float, default=0.1
        Least share of a cluster, as a fraction of one half.
    cluster_sizes : {"auto", "equal"} or array of n_clusters shares, default="auto"
        Sizes that are held where there are more than two clusters; "auto" is "equal".
    size_tolerance : float, default=0.1
        How far held sizes may lie from their shares, relatively.
    scale : {None, "standard"}, default=None
        "standard" scales the columns inside the stream (sparse columns are not centred).
    eta : float, default=0.01
        Tolerance of the cutting-plane loop: no constraint is violated by more than xi + eta rho.
    max_rounds : int, default=30
        Rounds over labels at one C at most.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    memory_limit : str, int or None, default=None
        Resident memory of the process, such as "512MiB"; None is half of what is free.
    n_jobs : int or None, default=None
        Threads; None and -1 are all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the sample, the landmarks and the coin flips.
    verbose : int, default=0
        1 shows a progress bar on a terminal.
    checkpoint : path or None, default=None
        Folder in which the fit keeps how far it has come; a fit of the same rows, parameters and seed
        goes on from there.
    engine : None, str or dask.distributed.Client, default=None
        Who runs the passes over the rows: None is threads of this process, or what `mmcnb.config` says; a
        client, or the address of its scheduler, is a Dask cluster.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, numbered by the first row that falls in each; equal to ``predict(X)``.
    objective_ : float
        1/2|w|² - rho + C mean(max(0, rho - |f|)), as it can be recomputed from the model. With more than
        two clusters |f| is the margin, the largest column of `decision_function` less the second, and
        |w|² is the sum over the clusters.
    rho_, gamma_ : float
        Threshold of the margin, and the width that was chosen.
    converged_ : bool
        Whether the labels stood still at the end, and the last cutting-plane loop reached eta.
    history_ : DataFrame
        One row a sweep: stage, start, gamma, C, round, objective, primal, norm, rho, violation,
        planes, changed labels, J of a division by least squares; and so far: reads of the rows, sweeps
        over kept kernel columns, bytes read, whether the last pass came from a checkpoint (resumed),
        seconds.
    report_ : dict
        Sizes, |w| and what random labels give, leave-one-out score (of two clusters), duality gap,
        warnings.
    n_features_in_ : int
        Columns of the fit.

    See Also
    --------
    UnsupervisedRLS : Any number of clusters by least squares.

    References
    ----------
    J. Wu and X.-L. Zhang, Sparse kernel maximum margin clustering, Alg. 3, App. A-C.

    K. Crammer and Y. Singer, On the algorithmic implementation of multiclass kernel-based vector machines.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(600, noise=0.05, factor=0.4, random_state=0)
    >>> model = mmcnb.SparseKernelMMC(random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    def __init__(
        self,
        n_clusters: int = 2,
        C: float = 10.0,
        gamma: float | str = "auto",
        kernel: str = "rbf",
        threshold: str = "adaptive",
        basis: str = "landmarks",
        n_landmarks: int | None = None,
        continuation: bool = True,
        init: str = "mixed",
        n_init: int = 6,
        sample_size: int | None = None,
        balance: float = 0.0,
        min_share: float = 0.1,
        cluster_sizes: Any = "auto",
        size_tolerance: float = 0.1,
        scale: str | None = None,
        eta: float = 0.01,
        max_rounds: int = 30,
        degree: int = 3,
        coef0: float = 1.0,
        memory_limit: str | int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        engine: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.threshold = threshold
        self.basis = basis
        self.n_landmarks = n_landmarks
        self.continuation = continuation
        self.init = init
        self.n_init = n_init
        self.sample_size = sample_size
        self.balance = balance
        self.min_share = min_share
        self.cluster_sizes = cluster_sizes
        self.size_tolerance = size_tolerance
        self.scale = scale
        self.eta = eta
        self.max_rounds = max_rounds
        self.degree = degree
        self.coef0 = coef0
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.engine = engine

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("basis", self.basis, ("landmarks", *GROWING))
        if self.basis in GROWING and self.kernel != "rbf":
            raise InputError(
                f"basis={self.basis!r} needs kernel='rbf', not {self.kernel!r}; use basis='landmarks'."
            )
        if self.n_landmarks is not None:
            check_number("n_landmarks", self.n_landmarks, 1, integer=True)
        check_number("n_clusters", self.n_clusters, 1, integer=True)
        check_number("size_tolerance", self.size_tolerance, 0.0, 1.0)
        target_shares(self.cluster_sizes, self.n_clusters)
        if self.n_clusters != 2:
            self._check_many()
        elif not (isinstance(self.cluster_sizes, str) and self.cluster_sizes == "auto"):
            raise InputError(
                "cluster_sizes is for more than two clusters; leave it at 'auto', and bound the sizes of two "
                "by min_share."
            )

    def _check_many(self) -> None:
        """Refuse what only two clusters have."""
        only = {"threshold": "adaptive", "basis": "landmarks", "balance": 0.0, "init": "mixed"}
        for name, value in only.items():
            if getattr(self, name) != value:
                raise InputError(
                    f"{name}={getattr(self, name)!r} is for two clusters; with n_clusters={self.n_clusters} "
                    f"leave it at {value!r}."
                )

    def _rows_of_sample(self) -> int:
        if self.n_clusters == 2 or self.sample_size is not None:
            return super()._rows_of_sample()
        return rows_of_sample(self.n_clusters)

    def _plan(self, samples: Samples) -> FitPlan:
        if self.n_clusters != 2:
            rows = min(self._rows_of_sample(), samples.n_samples)
            check_matrices(rows, self.n_clusters, self.memory_limit)
        return super()._plan(samples)

    def _sample_bytes(self, n_samples: int) -> float:
        if self.n_clusters == 2:
            return super()._sample_bytes(n_samples)
        return matrix_bytes(min(self._rows_of_sample(), n_samples))

    def _basis_size(self, n_samples: int) -> int:
        rows = min(n_samples, self._rows_of_sample())
        if self.n_clusters != 2:
            return min(rows, self.n_landmarks or LANDMARKS_OF_MANY)
        return min(rows, self.n_landmarks) if self.n_landmarks else max(2, min(MOST_LANDMARKS, rows // 2))

    def _candidate(
        self,
        engine: Engine,
        sample: Samples,
        kernel: Kernel,
        basis: np.ndarray,
        weights: np.ndarray | None,
        seed: int,
    ) -> KernelFeatures:
        if self.basis in GROWING:
            return growing_features(engine, sample, kernel, basis, weights, GROWING[self.basis], seed)
        whole = self._basis_size(sample.n_samples) == sample.n_samples
        return landmark_features(engine, sample, kernel, basis, weights, whole)

    # -- more than two clusters --------------------------------------------------------------

    def _fit_rows(self, session: FitSession, random_state: Any) -> Samples:
        if self.n_clusters == 2:
            return super()._fit_rows(session, random_state)
        sample = session.found.sample
        check_clusters(self.n_clusters, sample, session.samples.n_samples)
        gamma = default_gamma(self.gamma, self.kernel, sample, session.sample_weights)
        kernel = Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))
        search = self._search(sample.shape[0], int(random_state.randint(2**31 - 1)))
        size = self._basis_size(sample.shape[0])
        found = fit_hinge_clusters(session, search, self._division(), kernel, size, random_state)
        quadratic = found.solution.quadratic
        self.model_ = found.model
        self.rho_, self.gamma_, self.objective_ = quadratic.rho, kernel.gamma, found.objective
        self.converged_ = found.settled and found.solution.status == "converged"
        self.report_ = found.report()
        for sentence in self.report_["warnings"]:
            warnings.warn(sentence, ClusterWarning, stacklevel=5)
        return found.features

    def _division(self) -> PartitionConfig:
        return PartitionConfig(
            int(self.n_clusters),
            ALPHA,
            "shaking",
            "mixed",
            int(self.n_init) + MORE_SHAKES,
            self.cluster_sizes,
            float(self.size_tolerance),
            float(self.min_share),
        )

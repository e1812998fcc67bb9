"""Multiple kernel clustering: labels, margin and a combination of kernels, learned together."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.engine.memory import format_bytes, resolve_memory_limit
from mmcnb.engine.passes import DrawnSample
from mmcnb.engine.plan import FitPlan
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitSession
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from mmcnb.estimators.margin import MarginClusterer
from mmcnb.estimators.parameters import check_choice, check_number
from mmcnb.estimators.sparse_kernel_mmc import MOST_LANDMARKS
from mmcnb.features.base_kernels import (
    base_kernels,
    check_base_kernels,
    check_kernels,
    distinct_kernels,
    n_kernels,
)
from mmcnb.features.model import Model
from mmcnb.features.nystroem import check_places, choose_landmarks
from mmcnb.features.rules import GivenLabels
from mmcnb.hinge.cccp import CCCPResult
from mmcnb.hinge.crammer_singer import MarginPass
from mmcnb.hinge.cutting_plane import SubproblemResult
from mmcnb.hinge.multiclass import ALPHA, ROUNDS
from mmcnb.hinge.multiple_kernels import MultipleKernelSample, map_by_kernels, search_clusters
from mmcnb.hinge.report import report_of_clusters
from mmcnb.hinge.sample_search import KernelFeatures, RestartResult, SearchConfig, fit_random_labels
from mmcnb.least_squares.all_rows import (
    check_clusters,
    check_matrices,
    matrix_bytes,
    relative_weights,
    rows_of_sample,
)
from mmcnb.least_squares.local_search import random_labels
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.samples import Samples, open_samples

BASES = ("landmarks", "exact")
EXACT_MATRICES = 6  # of rows squared for each kernel: values, coordinates, the basis's own, and copies
EVERY_ROW = 2**62
SHAKES = 2  # starts of shaking for each start, with more than two clusters
JUDGED = 50  # rows at least under which kernels are compared


@estimator
class MultipleKernelClustering(MarginClusterer):
    """Maximum margin clustering under several kernels, whose combination is learned (MKC).

    Which kernel, which width? Base kernels are given, and the fit finds the labels, the widest margin and the
    weights beta of the kernels, non-negative and of Euclidean norm 1, under which it is widest: it minimises
    1/2 Σ_k |v_k|²/beta_k + C xi (less rho where the threshold is adaptive). Kernels are centred and scaled to
    trace(K)/n = 1, so that the weights compare. The programme is solved in the dual, where its size is the
    number of cutting planes and kernels; rows are read block by block, as in `SparseKernelMMC`.

    More than two clusters have one score each, and a row's margin is its largest score less the second. With
    centred kernels all scores have the same mean: the paper's balance between pairs of clusters holds by
    itself, and sizes are bounded by `min_share` alone.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    kernels : "auto" or list, default="auto"
        Base kernels: each "linear", "rbf" or "poly"; a pair of such a name and its parameters, for instance
        ``("rbf", {"gamma": 0.5})`` or ``("poly", {"degree": 2, "gamma": "scale", "coef0": 1.0})``; a kernel
        object or function of two blocks of rows that returns the matrix of their values, as those of
        ``sklearn.metrics.pairwise`` and ``sklearn.gaussian_process.kernels``. A width can be a number, or a
        name as in `SparseKernelMMC`. "auto" is a linear kernel, a polynomial of degree 2 and Gaussians of
        sigma = 0.35, 0.55 and 0.9 times the root mean squared distance between two rows.
    columns : list or None, default=None
        For each kernel the columns that it sees, as numbers, a slice, a mask or None for all: several views
        of the same rows.
    C : float, default=10.0
        Final weight of the slack; above 1.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        "adaptive" makes the margin's threshold rho a variable, as in SKMMC; "fixed" sets it to 1, as the MKC
        paper does.
    basis : {"landmarks", "exact"}, default="landmarks"
        k-means++ landmarks of the sample, in linear time and storage; or all rows, whole kernel matrices, for
        small data.
    n_landmarks : int or None, default=None
        Landmarks of each kernel; None is min(200, half the sample).
    continuation : bool, default=True
        Raise C from near 1; False is the paper's form, directly at C.
    init : {"mixed", "random", "k-means"}, default="mixed"
        Starts of two clusters, as in `SparseKernelMMC`. More start from divisions by least squares.
    n_init : int, default=4
        Number of starts.
    sample_size : int or None, default=None
        Rows of the sample; None is 2,000, or 100 n_clusters where that is more.
    balance : float, default=0.0
        l/n: bound of the mean decision value of two clusters, in units of rho.
    min_share : float, default=0.1
        Least share of a cluster, as a fraction of an equal one.
    scale : {None, "standard"}, default=None
        "standard" scales the columns inside the stream (sparse columns are not centred).
    eta : float, default=0.01
        Tolerance of the cutting-plane loop: no constraint is violated by more than xi + eta rho.
    max_rounds : int, default=30
        Rounds over labels at one C at most.
    {runtime}

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        beta: non-negative, of Euclidean norm 1.
    kernel_names_ : list of str
        What the kernels are called, their widths as numbers. Of "auto" copies are left out, such as those of
        a linear kernel where rows have only two places.
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, numbered by the first row that falls in each; equal to ``predict(X)``.
    objective_ : float
        1/2 Σ_k |v_k|²/beta_k - rho + C mean(max(0, rho - |f|)), without rho at a fixed threshold, where it is
        1. With more than two clusters |f| is the margin, the largest column of `decision_function` less the
        second.
    rho_ : float
        Threshold of the margin.
    converged_ : bool
        Whether the labels stood still at the end, and the last cutting-plane loop reached eta.
    history_ : DataFrame
        One row a sweep, as in `SparseKernelMMC`, with the weights of the kernels: weight_0, weight_1 ...
    report_ : dict
        Sizes, |w| and what random labels give, duality gap, warnings.
    n_features_in_ : int
        Columns of the fit.

    See Also
    --------
    SparseKernelMMC : One kernel, its width chosen among several.
    mmcnb.plotting.KernelWeightsDisplay : The weights as bars.

    References
    ----------
    B. Zhao, J. T. Kwok and C. Zhang, Multiple kernel clustering, SDM 2009.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(600, noise=0.05, factor=0.4, random_state=0)
    >>> model = mmcnb.MultipleKernelClustering(kernels=["linear", "rbf"], random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    >>> bool(model.kernel_weights_[1] > 0.99)  # no straight line parts two rings
    True
    """

    n_clusters: int = 2
    kernels: Any = "auto"
    columns: Any = None
    C: float = 10.0
    threshold: str = "adaptive"
    basis: str = "landmarks"
    n_landmarks: int | None = None
    continuation: bool = True
    init: str = "mixed"
    n_init: int = 4
    sample_size: int | None = None
    balance: float = 0.0
    min_share: float = 0.1
    scale: str | None = None
    eta: float = 0.01
    max_rounds: int = 30

    fitted_names = ("objective", "rho", "kernel_names", "converged", "report")

    @property
    def kernel_weights_(self) -> np.ndarray:
        """Weights of the kernels."""
        weights = self.model_.kernel_weights
        assert weights is not None
        return weights

    # -- parameters and plan -----------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_clusters", self.n_clusters, 1, integer=True)
        check_base_kernels(self.kernels, self.columns)
        check_choice("basis", self.basis, BASES)
        if self.n_landmarks is not None:
            check_number("n_landmarks", self.n_landmarks, 1, integer=True)
        if self.basis == "exact":
            for name in ("n_landmarks", "sample_size"):
                if getattr(self, name) is not None:
                    raise InputError(f"basis='exact' takes all rows; leave {name} at None.")
        if self.n_clusters != 2 and (self.balance != 0 or self.init != "mixed"):
            raise InputError(
                f"balance and init are for two clusters; with n_clusters={self.n_clusters} leave them at 0.0 "
                "and 'mixed'."
            )
        if (
            self.checkpoint is not None
            and not isinstance(self.kernels, str)
            and any(map(callable, self.kernels))
        ):
            raise InputError(
                "a checkpoint knows kernels by name alone; give functions and kernel objects by name and "
                "parameters, or leave checkpoint out."
            )

    def _rows_of_sample(self) -> int:
        if self.basis == "exact":
            return EVERY_ROW
        if self.n_clusters == 2 or self.sample_size is not None:
            return super()._rows_of_sample()
        return rows_of_sample(self.n_clusters)

    def _landmarks(self, n_samples: int) -> int:
        """Basis vectors of each kernel."""
        rows = min(n_samples, self._rows_of_sample())
        if self.basis == "exact":
            return rows
        return min(rows, self.n_landmarks) if self.n_landmarks else max(2, min(MOST_LANDMARKS, rows // 2))

    def _basis_size(self, n_samples: int) -> int:
        return n_kernels(self.kernels) * self._landmarks(n_samples)

    def _sample_bytes(self, n_samples: int) -> float:
        rows = min(self._rows_of_sample(), n_samples)
        return matrix_bytes(rows) if self.n_clusters != 2 else 0.0

    def _plan(self, samples: Samples) -> FitPlan:
        rows = min(self._rows_of_sample(), samples.n_samples)
        if self.basis == "exact":
            held, limit = 8 * EXACT_MATRICES * n_kernels(self.kernels) * rows**2, self.memory_limit
            if held > resolve_memory_limit(limit):
                raise MemoryLimitError(
                    f"the kernel matrices of {rows:,} rows and what is made of them take "
                    f"{format_bytes(held)} of {format_bytes(resolve_memory_limit(limit))} allowed; raise "
                    "memory_limit or use basis='landmarks', which needs no matrix."
                )
        elif self.n_clusters != 2:
            check_matrices(rows, self.n_clusters, self.memory_limit)
        return super()._plan(samples)

    # -- the fit -----------------------------------------------------------------------------

    def _candidates(
        self, engine: Engine, found: DrawnSample, weights: np.ndarray | None, random_state: Any
    ) -> list[Callable[[], KernelFeatures]]:
        sample = self._stacked(found, weights, random_state)
        return [lambda: sample.candidate(engine)]

    def _stacked(
        self, found: DrawnSample, weights: np.ndarray | None, random_state: Any
    ) -> MultipleKernelSample:
        """The sample under all kernels that say something of their own."""
        kernels = base_kernels(self.kernels, self.columns, found.sample, weights)
        wanted = self._landmarks(found.sample.shape[0])
        basis = choose_landmarks(found.sample, wanted, random_state, weights)
        exact, judged = wanted == found.sample.shape[0], basis
        if basis.shape[0] < JUDGED:  # under one or two rows all kernels are alike
            judged = choose_landmarks(found.sample, JUDGED, np.random.RandomState(0), weights)
        check_places(max(basis.shape[0], judged.shape[0]), self.n_clusters)
        if isinstance(self.kernels, str):
            kernels = kernels.only(distinct_kernels(kernels.stack, judged, exact))
        else:
            check_kernels(kernels.stack, kernels.names, judged, exact)
        self.kernel_names_ = list(kernels.names)
        return map_by_kernels(open_samples(found.sample), kernels.stack, basis, weights, exact)

    def _coarse(
        self, session: FitSession, search: SearchConfig, random_state: Any
    ) -> tuple[list[RestartResult], Model]:
        if self.n_clusters == 2:
            return super()._coarse(session, search, random_state)
        check_clusters(self.n_clusters, session.found.sample, session.samples.n_samples)
        sample = self._stacked(session.found, relative_weights(session.sample_weights), random_state)
        given = session.engine, sample, self._division(), search, session.record, random_state
        restart = search_clusters(*given) or search_clusters(*given, separable=False)
        assert restart is not None  # where nothing has to be separable, nothing fails
        return [restart], self._model_of(session, restart)

    def _refine(
        self, session: FitSession, search: SearchConfig, restart: RestartResult, model: Model
    ) -> tuple[CCCPResult, Model]:
        if self.n_clusters != 2:  # whose sizes are counted in rows
            session = replace(session, weights=relative_weights(session.weights))
        return super()._refine(session, search, restart, model)

    def _search(self, n_samples: int, seed: int) -> SearchConfig:
        search = super()._search(n_samples, seed)
        if self.n_clusters == 2:
            return search
        # Labels of many clusters never quite stand still, and later rounds gain nothing.
        return replace(search, limits=replace(search.limits, max_rounds=min(ROUNDS, self.max_rounds)))

    def _division(self) -> PartitionConfig:
        starts = SHAKES * int(self.n_init)
        sizes = "equal", 0.1, float(self.min_share)  # held while the sample is divided
        return PartitionConfig(int(self.n_clusters), ALPHA, "shaking", "mixed", starts, *sizes)

    def _finish(
        self,
        session: FitSession,
        search: SearchConfig,
        state: CCCPResult,
        restarts: list[RestartResult],
        model: Model,
    ) -> None:
        model = replace(model, kernel_weights=state.solution.quadratic.kernel_weights)
        if self.n_clusters == 2:
            super()._finish(session, search, state, restarts, model)
            return
        rule, solution, restart = state.boundary, state.solution, restarts[0]
        sweep = MarginPass(session.weights, rule, solution.quadratic.rho)
        hinge, sizes, first = session.engine.run(sweep, state.training_set.features, "margins")
        order = np.argsort(first, kind="stable")
        self.model_ = replace(model, rule=rule.ordered(order))
        self.rho_ = solution.quadratic.rho
        self.objective_ = restart.objective.value(solution.quadratic, solution.C, hinge / sizes.sum())
        self.converged_ = state.status == "converged"
        random = self._random_solution(restart, search)
        found = restart.objective.score(solution) > restart.objective.score(random)
        self.report_ = report_of_clusters(sizes[order], solution, found, random.quadratic.norm2)
        for sentence in self.report_["warnings"]:
            warnings.warn(sentence, ClusterWarning, stacklevel=5)

    def _random_solution(self, restart: RestartResult, search: SearchConfig) -> SubproblemResult:
        """What random labels of equal sizes reach on the sample."""
        shares = self._division().shares
        labels = random_labels(restart.training_set.n_samples, shares, np.random.RandomState(search.seed))
        return fit_random_labels(restart, search, GivenLabels(labels))

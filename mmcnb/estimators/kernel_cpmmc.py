"""Exact kernel cutting-plane maximum margin clustering, for data whose kernel matrix fits."""

from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.engine.memory import format_bytes
from mmcnb.engine.plan import FitPlan
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitSession
from mmcnb.errors import MemoryLimitError
from mmcnb.estimators.sparse_kernel_mmc import MOST_LANDMARKS, KernelClusterer
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.rules import Labels
from mmcnb.hinge.sample_search import (
    KernelFeatures,
    RestartResult,
    SearchConfig,
    exact_features,
    landmark_features,
)
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.hinge.working_set import ExactWorkingSet, WorkingSet
from mmcnb.samples import Samples
from mmcnb.samples.derived import cache_features
from mmcnb.samples.matrix import as_matrix

EXACT_SEARCH = 1000  # rows up to which every width is tried on the whole kernel matrix
CANDIDATES = 20  # kernel matrices' worth of memory in such a search


@estimator
class KernelCPMMC(KernelClusterer):
    """Kernel cutting-plane maximum margin clustering on the whole kernel matrix.

    Every row is a basis vector, so storage grows with the square of the number
    of rows; a fit that would not fit is refused before any work. Use
    `SparseKernelMMC` for larger data.

    Parameters
    ----------
    C : float, default=10.0
        Final weight of the slack; above 1.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Width of the Gaussian kernel, as in `SparseKernelMMC`.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        Adaptive threshold rho, or 1.
    continuation : bool, default=True
        Raise C from near 1; False is the paper's form.
    init : {"mixed", "random", "k-means"}, default="mixed"
        Kind of starts; see `SparseKernelMMC`.
    n_init : int, default=6
        Number of starts.
    balance : float, default=0.0
        l/n: bound of the mean decision value in units of rho.
    min_share : float, default=0.1
        Least share of a cluster, as a fraction of one half.
    scale : {None, "standard"}, default=None
        "standard" scales the columns.
    eta : float, default=0.01
        Tolerance of the cutting-plane loop.
    max_rounds : int, default=30
        Rounds over labels at one C at most.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    labels_, objective_, rho_, gamma_, converged_, history_, report_, n_features_in_
        As in `SparseKernelMMC`.

    References
    ----------
    J. Wu and X.-L. Zhang, Sparse kernel maximum margin clustering, Alg. 2.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(200, noise=0.05, factor=0.4, random_state=0)
    >>> model = mmcnb.KernelCPMMC(random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    C: float = 10.0
    gamma: float | str = "auto"
    kernel: str = "rbf"
    threshold: str = "adaptive"
    continuation: bool = True
    init: str = "mixed"
    n_init: int = 6
    balance: float = 0.0
    min_share: float = 0.1
    scale: str | None = None
    eta: float = 0.01
    max_rounds: int = 30
    degree: int = 3
    coef0: float = 1.0

    sample_size = None

    def _plan(self, samples: Samples) -> FitPlan:
        plan = super()._plan(samples)
        n = samples.n_samples
        held = plan.libraries + 8 * n * n * (CANDIDATES if self._searches_exactly(n) else 2)
        if held > plan.memory_limit:
            raise MemoryLimitError(
                f"the kernel matrix of {n:,} rows takes {format_bytes(8 * n * n)} and the fit "
                f"{held:,} bytes, of {plan.memory_limit:,} allowed; raise memory_limit or use "
                "SparseKernelMMC, which needs no matrix."
            )
        return plan

    def _searches_exactly(self, n_samples: int) -> bool:
        return n_samples <= EXACT_SEARCH

    def _basis_size(self, n_samples: int) -> int:
        return n_samples if self._searches_exactly(n_samples) else MOST_LANDMARKS

    def _choose_basis(self, sample: Any, weights: np.ndarray | None, random_state: Any) -> np.ndarray:
        if self._searches_exactly(sample.shape[0]):
            return np.ascontiguousarray(sample.toarray() if hasattr(sample, "toarray") else sample)
        return super()._choose_basis(sample, weights, random_state)

    def _candidate(
        self,
        engine: Engine,
        sample: Samples,
        kernel: Kernel,
        basis: np.ndarray,
        weights: np.ndarray | None,
        seed: int,
    ) -> KernelFeatures:
        make = exact_features if basis.shape[0] == sample.n_samples else landmark_features
        return make(engine, sample, kernel, basis, weights)

    def _start_on_all_rows(
        self, session: FitSession, search: SearchConfig, restart: RestartResult, model: Model
    ) -> tuple[WorkingSet, Labels, Model]:
        """All rows as their own basis, with the labels that the sample's model gives them."""
        engine, samples, weights = session.engine, session.samples, session.weights
        coarse = TrainingSet(
            engine, model.features(samples), restart.training_set.normalization, weights, hold_labels=True
        )
        rows = as_matrix(model.scaled(samples).block(0, samples.n_samples))
        basis = np.ascontiguousarray(rows.toarray() if hasattr(rows, "toarray") else rows)
        exact = replace(model, basis=basis, feature_dtype="float64")
        features = cache_features(exact.features(samples), "memory")
        training_set = TrainingSet(engine, features, None, weights, hold_labels=True)
        return ExactWorkingSet(training_set), coarse.labels_of(restart.state.boundary), exact

"""Maximum margin clustering with its kernel and its loss chosen from the rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mmcnb.engine.plan import FitNeeds, FitPlan, RowShape, plan_fit
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.errors import InputError
from mmcnb.estimators.base import StreamedClusterer, estimator
from mmcnb.estimators.crammer_singer_mmc import CrammerSingerMMC
from mmcnb.estimators.parameters import COUNT, SCALE, SHARE, Choice, KernelOrGraph, Number, Rule, graph_kernel
from mmcnb.estimators.sparse_kernel_mmc import SparseKernelMMC, fit_on_graph
from mmcnb.estimators.unsupervised_rls import SampleClusters, UnsupervisedRLS
from mmcnb.least_squares.all_rows import rows_of_sample
from mmcnb.least_squares.graph_partition import GraphSample, mean_agreement, relative_cut
from mmcnb.least_squares.objective import target_shares
from mmcnb.samples import Samples

# Chosen on the 97 problems of the tuning half of `python -m benchmarks choice`.
CLEAR_CUT = 0.15  # of a random partition's; above it the clusters are no valleys of the graph
LEAST_AGREEMENT = 0.4  # of the other partitions with the best
NO_CUT = 0.01  # up to which the others do not matter: few of them find a small cluster


@estimator
class MaximumMarginClustering(StreamedClusterer):
    """Clusters with the widest margin between them, in data of any size.

    The kernel and the loss are chosen from a sample without labels. The other estimators of the package give
    each of them by itself, with all its settings.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    kernel : {"auto", "graph", "rbf", "linear"} or GraphKernel, default="auto"
        "graph" follows the nearest neighbours of the rows: clusters of any shape with few rows between them.
        "rbf" and "linear" are the Gaussian and the linear kernel: clusters that overlap. "auto" takes the
        graph where its best partition cuts few of its edges and other searches agree with it, or it cuts
        hardly any, and otherwise the Gaussian kernel.
    loss : {"auto", "hinge", "squared"}, default="auto"
        "squared" is `UnsupervisedRLS`. "hinge" is `SparseKernelMMC` for two clusters without size
        constraints, and `CrammerSingerMMC` otherwise. "auto" is "hinge" for two clusters without size
        constraints, and "squared" otherwise.
    cluster_sizes : None, "equal" or array of n_clusters proportions, default=None
        Size constraints. None is a minimum size only.
    size_tolerance : float, default=0.1
        How far constrained sizes may lie from their proportions, relatively.
    min_share : float or None, default=None
        Minimum size of a cluster without other constraints, as a fraction of n/n_clusters; None is the
        default of each method.
    scale : {None, "standard"}, default=None
        "standard" divides columns by their deviation (and centres dense ones).
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, numbered by the first row that falls in each; equal to ``predict(X)``.
    kernel_, loss_ : str
        The kernel and the loss that were taken.
    objective_ : float
        Objective of the method; see `SparseKernelMMC`, `CrammerSingerMMC` and `UnsupervisedRLS`.
    gamma_ : float or None
        Gamma of the Gaussian kernel.
    converged_ : bool
        Whether the labels no longer changed.
    history_ : DataFrame
        One row per start and per sweep.
    report_ : dict
        Entries of the method, and under "choice" what the choice of the kernel was made from; nothing with a
        given kernel.
    n_features_in_ : int
        Number of columns.

    See Also
    --------
    UnsupervisedRLS : Any number of clusters by the squared loss, with all settings.
    SparseKernelMMC : Two clusters by the hinge loss, with all settings.
    CrammerSingerMMC : Any number of clusters by the hinge loss, with all settings.

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.synthetic import make_shape
    >>> X, y = make_shape("three-rings", random_state=0)
    >>> model = mmcnb.MaximumMarginClustering(n_clusters=3, random_state=0).fit(X)
    >>> model.kernel_, model.loss_
    ('graph', 'squared')
    >>> from sklearn.metrics import adjusted_rand_score
    >>> adjusted_rand_score(y, model.labels_)
    1.0
    """

    n_clusters: int = 2
    kernel: Any = "auto"
    loss: str = "auto"
    cluster_sizes: Any = None
    size_tolerance: float = 0.1
    min_share: float | None = None
    scale: str | None = None

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_clusters": COUNT,
        "kernel": KernelOrGraph(("auto", "rbf", "linear")),
        "loss": Choice(("auto", "hinge", "squared")),
        "size_tolerance": SHARE,
        "min_share": Number(0.0, 1.0, optional=True),
        "scale": SCALE,
    }
    fitted_names: ClassVar[tuple[str, ...]] = ("kernel", "loss", "objective", "gamma", "converged", "report")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.cluster_sizes, str) and self.cluster_sizes != "equal":
            raise InputError(f"cluster_sizes is None, 'equal' or shares, not {self.cluster_sizes!r}.")
        target_shares(self.cluster_sizes, self.n_clusters)

    @property
    def _chooses(self) -> bool:
        """Whether the kernel is chosen from the rows."""
        return isinstance(self.kernel, str) and self.kernel == "auto"

    @property
    def _two_free_clusters(self) -> bool:
        return self.n_clusters == 2 and self.cluster_sizes is None

    @property
    def _loss(self) -> str:
        """The loss to take."""
        if self.loss != "auto":
            return self.loss
        return "hinge" if self._two_free_clusters else "squared"

    def _method(self, kernel: Any) -> UnsupervisedRLS | SparseKernelMMC | CrammerSingerMMC:
        """The method under one kernel."""
        if self._loss == "squared":
            return self._by_least_squares(kernel)
        if not self._two_free_clusters:
            return CrammerSingerMMC(**self._sizes(), kernel=kernel)
        method = SparseKernelMMC(kernel=kernel)
        return method if self.min_share is None else method.set_params(min_share=self.min_share)

    def _by_least_squares(self, kernel: Any) -> UnsupervisedRLS:
        return UnsupervisedRLS(**self._sizes(), kernel=kernel)

    def _sizes(self) -> dict[str, Any]:
        names = ("n_clusters", "cluster_sizes", "size_tolerance", "min_share", "memory_limit")
        return {name: getattr(self, name) for name in names}

    def _needs(self, n_samples: int) -> FitNeeds:
        return self._all_needs(n_samples)[0]

    def _all_needs(self, n_samples: int) -> list[FitNeeds]:
        """What each method needs that may be taken; that of the graph first."""
        if not self._chooses:
            return [self._method(self.kernel)._needs(n_samples)]
        graph, function = (self._method(kernel)._needs(n_samples) for kernel in ("graph", "rbf"))
        return [graph, replace(function, held_rows=graph.held_rows, libraries=graph.libraries)]

    def _plan(self, samples: Samples | RowShape) -> FitPlan:
        """The plan of the method that needs most."""
        plans = [self._plan_of(samples, needs) for needs in self._all_needs(samples.n_samples)]
        most = max(plans, key=lambda plan: plan.peak)
        return replace(most, threads=min(plan.threads for plan in plans))

    def _plan_of(self, samples: Samples | RowShape, needs: FitNeeds) -> FitPlan:
        return plan_fit(samples, needs, self.memory_limit, self.n_jobs)

    def _fit(self, session: FitSession) -> FitResult:
        if not self._chooses:
            kernel = "graph" if graph_kernel(self.kernel) is not None else self.kernel
            return self._told(self._method(self.kernel)._fit(session), kernel, {})
        graph, function = (
            self._plan_of(session.samples, needs) for needs in self._all_needs(session.samples.n_samples)
        )
        result, choice = self._try_graph(replace(session, plan=graph))
        if result is not None:
            return self._told(result, "graph", choice)
        session = replace(self._smaller(session), plan=function)
        return self._told(self._method("rbf")._fit(session), "rbf", choice)

    def _try_graph(self, session: FitSession) -> tuple[FitResult | None, dict[str, Any]]:
        """The fit on the graph, where it is taken, and why; otherwise nothing of the graph is kept."""
        clusters = self._by_least_squares("graph")._search(session)
        choice = self._evidence(clusters)
        return (self._on_graph(session, clusters) if choice["graph"] else None), choice

    def _on_graph(self, session: FitSession, clusters: SampleClusters) -> FitResult:
        """The fit on the graph whose nodes have been clustered."""
        method = self._method("graph")
        if isinstance(method, UnsupervisedRLS):
            return method._label(session, clusters)
        if isinstance(method, CrammerSingerMMC):
            return method._on_graph(session, clusters)
        return fit_on_graph(method, session, clusters)

    def _evidence(self, clusters: SampleClusters) -> dict[str, Any]:
        """What the choice between the graph and a kernel function is made from."""
        sample = clusters.sample
        assert isinstance(sample, GraphSample)
        cut = relative_cut(sample.graph, clusters.found[0].labels, self.n_clusters)
        agreement = mean_agreement(clusters.found)
        return {
            "relative_cut": cut,
            "agreement": agreement,
            "graph": bool(cut <= (CLEAR_CUT if agreement >= LEAST_AGREEMENT else NO_CUT)),
        }

    def _smaller(self, session: FitSession) -> FitSession:
        """The session with as many rows in its sample as a kernel function takes."""
        size = rows_of_sample(self.n_clusters)
        if session.sample.shape[0] <= size:
            return session
        rows = np.sort(session.random_state.permutation(session.sample.shape[0])[:size])
        weights = None if session.sample_weights is None else session.sample_weights[rows]
        return replace(session, sample=session.sample[rows], sample_weights=weights)

    def _told(self, result: FitResult, kernel: str, choice: dict[str, Any]) -> FitResult:
        """The result with the kernel and the loss that were taken."""
        loss = self._loss
        attributes = {name: result.attributes.get(name) for name in ("objective", "gamma", "converged")}
        report = {"kernel": kernel, "loss": loss, "choice": choice, **result.report}
        return replace(result, attributes=attributes | {"kernel": kernel, "loss": loss}, report=report)

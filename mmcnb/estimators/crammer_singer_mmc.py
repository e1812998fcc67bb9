"""Maximum margin clustering into any number of clusters, by scores with the widest margin."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from mmcnb._constraints import Constraint
from mmcnb.engine.needs import FitNeeds, RowShape
from mmcnb.engine.plan import FitPlan
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.estimators.base import MARGIN_FITTED, StreamedClusterer, estimator
from mmcnb.estimators.parameters import OPTIONAL_SHARE, KernelOrGraph, default_kernel, graph_kernel
from mmcnb.features.kernel import kernel_matrix
from mmcnb.features.needs import landmark_needs
from mmcnb.hinge.cccp import CCCPLimits, path_to
from mmcnb.hinge.multiclass import (
    ALPHA,
    LEAST_SQUARES,
    PASSES,
    ROUNDS,
    HingeRefinement,
    least_squares_record,
    multiclass_result,
    refined_by_cut,
    sample_partition,
    size_constrained,
    widest_margin,
)
from mmcnb.hinge.needs import graph_hinge_needs, larger_sample, margin_seconds, on_all_rows
from mmcnb.hinge.sample_search import SearchConfig
from mmcnb.least_squares.all_rows import (
    check_clusters,
    check_matrices,
    label_all_rows,
    matrix_bytes,
    relative_weights,
    rows_of_sample,
)
from mmcnb.least_squares.graph_partition import GraphSample, graph_needs, rows_of_draw
from mmcnb.least_squares.landmark_sample import LANDMARKS, landmark_sample
from mmcnb.least_squares.objective import Partition, target_shares
from mmcnb.least_squares.partition import (
    PARTITION_ROUTINES,
    PartitionConfig,
    partition_sample,
    partition_seconds,
)
from mmcnb.least_squares.search import SampleClusters, SearchSettings, search


@estimator
class CrammerSingerMMC(StreamedClusterer):
    """Maximum margin clustering into any number of clusters.

    Each cluster has a score, and the margin of a row is its largest score minus the second (Crammer and
    Singer). Least squares clusters the sample, as in `UnsupervisedRLS`. CCCP rounds at rising C refine the
    best two partitions, and a refinement is accepted if it raises the objective of least squares, or on a
    graph if it improves the cut. Three passes of least squares then label all rows; one where a graph has
    fewer nodes. The scores are those that separate these labels by the widest margin. Size constraints hold
    throughout.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    C : float, default=10.0
        Final weight of the slack, above 1. 1/C is the nu of the nu-SVM.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Gamma of the Gaussian kernel exp(-gamma |x - b|²), 1/(2 sigma²) for a bandwidth sigma. "auto" is
        sigma = 0.55 times the root mean squared distance; the other names are those of `SparseKernelMMC`.
    kernel : {"rbf", "linear", "poly", "graph"} or GraphKernel, default="rbf"
        Kernel function; "graph" are coordinates on the graph of the nearest rows, for clusters of any shape.
        It takes neither gamma nor landmarks. A `GraphKernel` holds its settings.
    n_landmarks : int or None, default=None
        Number of basis vectors; None is 300.
    continuation : bool, default=True
        Raise C from near 1; False takes the last C at once.
    n_init : int, default=6
        Number of starts on the sample: n_init + 2 local searches, and four regularisation paths.
    sample_size : int or None, default=None
        Rows of the sample; None is max(2000, 100 n_clusters). With the graph kernel, rows of each of eight
        samples of its nodes; None is then 1,000, or up to 150 n_clusters.
    cluster_sizes : {"auto", "equal"}, None or array of shape (n_clusters,), default="auto"
        Size constraints, as proportions of the rows. None is a minimum size only. "auto" is that for the
        graph kernel, and equal sizes otherwise.
    size_tolerance : float, default=0.1
        Relative tolerance of the size constraints.
    min_share : float or None, default=None
        Minimum size of a cluster where there is no other constraint, as a fraction of n/n_clusters; None is
        0.5, and with the graph kernel 0.1, or up to 0.2 while that is fewer than 30 rows.
    scale : {None, "standard"}, default=None
        "standard" scales the columns block by block (sparse columns are not centred).
    eta : float, default=0.01
        Tolerance of the cutting-plane loop: no constraint is violated by more than xi + eta rho.
    max_rounds : int, default=30
        Most rounds over labels at one C; there are never more than five, as later ones improve nothing.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, numbered by the first row that falls in each; equal to ``predict(X)``.
    objective_ : float
        1/2|W|² - rho + C mean(max(0, rho - m)), where |W|² is the sum over the clusters. The margin m is the
        largest column of `decision_function` minus the second.
    rho_, gamma_, converged_, history_, report_, n_features_in_, feature_names_in_
        As in `SparseKernelMMC`. Rows of the history for least squares have its objective, J; on a graph those
        of partitions have the score of their cut. The report has no leave-one-out score.

    See Also
    --------
    UnsupervisedRLS : Any number of clusters by least squares alone.
    SparseKernelMMC : Two clusters, of any sizes.

    References
    ----------
    K. Crammer and Y. Singer, On the algorithmic implementation of multiclass kernel-based vector machines.

    B. Zhao, F. Wang and C. Zhang, Efficient multiclass maximum margin clustering.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.metrics import adjusted_rand_score
    >>> X, y = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> model = mmcnb.CrammerSingerMMC(3, random_state=0).fit(X)
    >>> adjusted_rand_score(y, model.labels_)
    1.0
    """

    n_clusters: int = 8
    C: float = 10.0
    gamma: float | str = "auto"
    kernel: Any = "rbf"
    n_landmarks: int | None = None
    continuation: bool = True
    n_init: int = 6
    sample_size: int | None = None
    cluster_sizes: Any = "auto"
    size_tolerance: float = 0.1
    min_share: float | None = None
    scale: str | None = None
    eta: float = 0.01
    max_rounds: int = 30
    degree: int = 3
    coef0: float = 1.0

    constraints: ClassVar[Mapping[str, Constraint]] = {"kernel": KernelOrGraph(), "min_share": OPTIONAL_SHARE}
    fitted_names: ClassVar[tuple[str, ...]] = MARGIN_FITTED

    def _check_parameters(self) -> None:
        super()._check_parameters()
        target_shares(self.cluster_sizes, self.n_clusters)

    def _needs(self, rows: RowShape) -> FitNeeds:
        graph, k = graph_kernel(self.kernel), int(self.n_clusters)
        if graph is not None:
            drawn = min(self.sample_size or rows_of_draw(k), rows.n_samples)
            return graph_hinge_needs(graph_needs(graph, k, rows, drawn), rows)
        size = self.sample_size or rows_of_sample(k)
        searched = min(size, rows.n_samples)
        needs = landmark_needs(rows, self._landmarks(searched), size)
        needs = replace(
            needs,
            sample_bytes=needs.sample_bytes + matrix_bytes(searched),
            search_seconds=partition_seconds(searched, k) + margin_seconds(searched, n_clusters=k),
            routines={**needs.routines, **PARTITION_ROUTINES},
        )
        return on_all_rows(needs, rows, larger_sample(rows.n_samples))

    def _plan(self, rows: RowShape) -> FitPlan:
        searched = min(self.sample_size or rows_of_sample(self.n_clusters), rows.n_samples)
        check_matrices(searched, self.n_clusters, self.memory_limit)
        return super()._plan(rows)

    def _landmarks(self, rows: int) -> int:
        return min(rows, self.n_landmarks or LANDMARKS)

    def _fit(self, session: FitSession) -> FitResult:
        limits = float(self.C), self.continuation, int(self.n_init), self.eta, self.max_rounds
        partition, graph = self._partition(), graph_kernel(self.kernel)
        if graph is not None:
            clusters = search(session, SearchSettings(partition, graph, draw_rows=self.sample_size))
            return separate_on_graph(session, clusters, multiclass_config(session, *limits))
        if isinstance(self.cluster_sizes, str):
            partition = replace(partition, cluster_sizes="equal")
        rows, weights = session.sample, relative_weights(session.sample_weights)
        check_clusters(self.n_clusters, rows, session.samples.n_samples)
        kernel = default_kernel(self, rows, session.sample_weights)
        config = multiclass_config(session, *limits)
        size = self._landmarks(rows.shape[0])
        sample = landmark_sample(rows, weights, kernel, size, self.n_clusters, session.random_state)
        refinement = HingeRefinement(session.engine, sample, partition, config)
        found = partition_sample(
            session.engine,
            partition.smoother(kernel_matrix(rows, kernel), overwrite=True) if weights is None else None,
            sample.features,
            partition,
            session.random_state,
            refinement.run_start,
            session.record,
        )
        return separate(session, refinement, found, kernel.gamma, {"gamma": kernel.gamma})

    def _partition(self) -> PartitionConfig:
        """How least squares clusters the sample; sizes of "auto" are equal under a kernel function."""
        starts, least = int(self.n_init) + 2, self.min_share
        sizes = self.cluster_sizes, float(self.size_tolerance), None if least is None else float(least)
        return sample_partition(int(self.n_clusters), starts, *sizes)


def multiclass_config(
    session: FitSession,
    C: float = 10.0,
    continuation: bool = True,
    n_init: int = 6,
    eta: float = 0.01,
    max_rounds: int = 30,
) -> SearchConfig:
    """The settings of the refinement on a sample, from parameters of `CrammerSingerMMC`."""
    path, limits = path_to(C) if continuation else (C,), CCCPLimits(min(ROUNDS, max_rounds))
    given = session.seed(), session.sample.shape[0]
    return SearchConfig("adaptive", 0.0, path, eta, limits, "mixed", n_init, *given)


def separate_on_graph(session: FitSession, clusters: SampleClusters, config: SearchConfig) -> FitResult:
    """The scores that separate clusters of the nodes of a graph, and label all rows."""
    sample = clusters.sample
    assert isinstance(sample, GraphSample)
    refinement = HingeRefinement(session.engine, sample, clusters.config, config)
    found = refined_by_cut(refinement, sample.graph, clusters.found, session.record)
    return separate(session, refinement, found, None, {"graph": sample.graph.to_dict()})


def separate(
    session: FitSession,
    refinement: HingeRefinement,
    found: list[Partition],
    gamma: float | None,
    report: dict[str, Any],
) -> FitResult:
    """Label all rows by the best partition of the sample, and separate these labels."""
    for one in found:
        session.record({"stage": LEAST_SQUARES, "start": one.start, "J": one.objective})
    sample, partition = refinement.sample, refinement.partition
    model = sample.model(session, ALPHA)
    features = session.cached(model.features(session.samples))
    least_squares = replace(session, record=least_squares_record(session.record))
    once = model.graph is not None and session.has_more_rows  # the nodes have settled the labels
    fixed = least_squares, partition, sample, sample.ridge_map(ALPHA)
    labelled = label_all_rows(*fixed, features, found[0].labels, 1 if once else PASSES)
    solution = widest_margin(session, refinement, labelled, features)
    model = replace(model, rule=size_constrained(solution, sample, labelled.bounds), ridge=None)
    random = refinement.random_solution(solution.C)
    converged = (labelled.settled or once) and solution.status == "converged"
    return multiclass_result(
        *(session, model, features, refinement.objective, solution, random),
        {"gamma": gamma, "converged": converged},
        **report,
        sample_objective=float(found[0].objective),
    )

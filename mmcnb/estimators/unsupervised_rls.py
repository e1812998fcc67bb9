"""Unsupervised regularised least squares: k clusters, on a sample and then on all rows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from mmcnb._constraints import Choice, Constraint, Interval, IntervalOr, Parsed
from mmcnb.engine.estimates import OF_KERNEL, OF_PARTITION, partition_seconds
from mmcnb.engine.plan import FitNeeds, FitPlan, RowShape, larger_sample
from mmcnb.engine.session import FitResult, FitSession, whole_numbers
from mmcnb.errors import InputError
from mmcnb.estimators.base import StreamedClusterer, estimator
from mmcnb.estimators.outputs import RowTransformerMixin
from mmcnb.estimators.parameters import (
    COUNT,
    POSITIVE,
    SAMPLED,
    SHARE,
    KernelOrGraph,
    default_kernel,
    graph_kernel,
)
from mmcnb.features.kernel import Kernel, kernel_matrix
from mmcnb.features.landmarks import check_landmarks, scaled_landmarks
from mmcnb.features.rules import DecisionPass
from mmcnb.least_squares.all_rows import (
    check_clusters,
    check_matrices,
    label_all_rows,
    matrix_bytes,
    relative_weights,
    rows_of_sample,
)
from mmcnb.least_squares.graph_partition import (
    GraphSample,
    agreed_first,
    graph_least_share,
    graph_needs,
    graph_sample,
    partition_graph,
    rows_of_draw,
)
from mmcnb.least_squares.known import ranked_by_known
from mmcnb.least_squares.landmark_sample import LANDMARKS, LandmarkSample, landmark_sample
from mmcnb.least_squares.local_search import LEAST_SHARE
from mmcnb.least_squares.objective import Partition, target_shares
from mmcnb.least_squares.partition import PartitionConfig, partition_sample
from mmcnb.least_squares.stability import DEFAULT_ALPHA, stable_settings
from mmcnb.samples import Samples, open_samples


@dataclass(frozen=True)
class SampleClusters:
    """A clustered sample.

    Parameters
    ----------
    sample : LandmarkSample or GraphSample
        The sample in its features.
    found : list of Partition
        Its partitions, the best first.
    config : PartitionConfig
        How they were found.
    report : dict
        Entries of ``report_``.
    """

    sample: LandmarkSample | GraphSample
    found: list[Partition]
    config: PartitionConfig
    report: dict[str, Any]


@estimator
class UnsupervisedRLS(RowTransformerMixin, ClassNamePrefixFeaturesOutMixin, StreamedClusterer):
    """Clusters that kernel ridge regression fits best, any number of them (UMC-RLS).

    The labels are those for which regularised least squares, trained on them, leaves the smallest error. A
    sample is clustered by local search (the paper's "shaking") and along regularisation paths. A few passes
    over all rows follow, each of which labels the rows by the model and renews the model from sums of
    k (p + 1) numbers. Of more than 131,072 rows, such steps on a larger sample come first, and one pass is
    mostly enough. Nothing of the length of the data is kept.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Gamma of the Gaussian kernel exp(-gamma |x - b|²), 1/(2 sigma²) for a bandwidth sigma. "auto" is
        sigma = 0.55 times the root mean squared distance between two rows; the other names are those of
        `SparseKernelMMC`.
    alpha : float or "auto", default=1e-3
        Ridge a row: the papers' lambda divided by n. "auto" tries 1e-4, 3e-4 and 1e-3. With ``gamma="auto"``
        it tries bandwidths sigma of 0.4, 0.55 and 0.75 times the root mean squared distance, too. It takes
        the setting at which fits of five subsets of the sample agree most, unless those at the defaults agree
        nearly as well. It reads no more rows, but takes several times as long; on average its clusters are
        no nearer to known classes than those of the default.
    kernel : {"rbf", "linear", "poly", "graph"} or GraphKernel, default="rbf"
        Kernel function; "graph" are coordinates on the graph of the nearest rows, for clusters of any shape.
        It takes neither gamma nor landmarks. A `GraphKernel` holds its settings.
    search : {"shaking", "steepest", "stochastic"}, default="shaking"
        Local search on the sample: Alg. 3, 2 or 1 of the paper.
    schedule : {"mixed", "paper"}, default="mixed"
        "mixed" varies amplitude, decay and kind of start, ends with steepest descent, and adds regularisation
        paths. "paper" is as published; of two clusters its first round wipes out the start.
    n_init : int, default=8
        Starts of the local search.
    cluster_sizes : {"auto", "equal"}, None or array of n_clusters proportions, default="auto"
        Size constraints. None is a minimum size only. "auto" is that for two clusters and for the graph
        kernel, and equal sizes otherwise. Proportions are in any order: the largest is that of the largest
        cluster.
    size_tolerance : float, default=0.1
        How far constrained sizes may lie from their proportions, relatively.
    min_share : float or None, default=None
        Minimum size of a cluster where there is no other constraint, as a fraction of n/n_clusters; None is
        0.5, and with the graph kernel 0.1, or up to 0.2 while that is fewer than 30 rows.
    sample_size : int or None, default=None
        Rows of the sample; None is max(2000, 100 n_clusters). With the graph kernel, rows of each of eight
        samples of its nodes; None is then 1,000, or up to 150 n_clusters.
    n_landmarks : int, default=300
        Basis vectors of the model.
    landmarks : ndarray of shape (p, n_features) or None, default=None
        Basis vectors of your own, in the units of the rows, in place of ``n_landmarks`` from the sample.
    max_passes : int, default=3
        Passes over all rows after the sample. There is one where a graph has fewer nodes than there are
        rows, and where the labels of a larger sample, drawn from more than 131,072 rows, have settled.
    scale : {None, "standard"}, default=None
        "standard" divides columns by their deviation (and centres dense ones).
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, numbered by the first row that falls in each; equal to ``predict(X)``.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Rows (or weight) of each cluster.
    objective_ : float
        J = Σ|S_h|²/n_h of the labels, the larger the better; in [0, n_clusters - 1] where the sample is all
        rows, and about so otherwise.
    gamma_ : float
        Gamma of the kernel.
    alpha_ : float
        Ridge a row.
    converged_ : bool
        Whether at most 1 % of the labels changed in the last pass.
    history_ : DataFrame
        One row a start on the sample and one a pass: stage, start, round, objective, changed labels, and so
        far: reads, sweeps, bytes, resumed, seconds.
    report_ : dict
        Sizes, the paper's objective Q, objective on the sample, warnings; and with ``alpha="auto"`` the
        settings that were tried, with their stability (mean adjusted Rand index).
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns; their names, where they have names.

    See Also
    --------
    SparseKernelMMC : Two clusters by the hinge loss; better where one cluster is small.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke and O. Kramer, Unsupervised multi-class regularized least-squares
    classification, Alg. 1-3.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.metrics import adjusted_rand_score
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mmcnb.UnsupervisedRLS(n_clusters=3, random_state=0).fit(X)
    >>> adjusted_rand_score(y, model.labels_) > 0.85
    True
    """

    n_clusters: int = 2
    gamma: float | str = "auto"
    alpha: float | str = 0.001
    kernel: Any = "rbf"
    search: str = "shaking"
    schedule: str = "mixed"
    n_init: int = 8
    cluster_sizes: Any = "auto"
    size_tolerance: float = 0.1
    min_share: float | None = None
    sample_size: int | None = None
    n_landmarks: int = LANDMARKS
    landmarks: Any = None
    max_passes: int = 3
    scale: str | None = None
    degree: int = 3
    coef0: float = 1.0

    constraints: ClassVar[Mapping[str, Constraint]] = {
        **SAMPLED,
        "kernel": KernelOrGraph(),
        "n_clusters": COUNT,
        "alpha": IntervalOr(POSITIVE, ("auto",)),
        "search": Choice(("shaking", "steepest", "stochastic")),
        "schedule": Choice(("mixed", "paper")),
        "n_init": COUNT,
        "size_tolerance": SHARE,
        "min_share": Interval(0.0, 1.0, optional=True),
        "n_landmarks": Interval(2, integer=True),
        "landmarks": Parsed(check_landmarks),
        "max_passes": COUNT,
    }
    fitted_names: ClassVar[tuple[str, ...]] = ("objective", "gamma", "alpha", "converged", "report")

    @property
    def cluster_sizes_(self) -> np.ndarray:
        """Rows (or weight) of each cluster."""
        return np.array(self.report_["sizes"])

    def transform(self, X: Any, *, element: str | None = None) -> np.ndarray:
        """Landmark features of rows, in coordinates in which the ridge is the identity.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            Rows with the columns of the fit.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64
            z(x): without size constraints a row belongs to the cluster of the nearest mean.
        """
        features, _ = self._features(X, element)
        assert self.model_.ridge is not None
        return self._run(DecisionPass(self.model_.ridge), features, "features")

    @property
    def _n_features_out(self) -> int:
        return 0 if self.model_.ridge is None else self.model_.ridge.centre.shape[0]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        target_shares(self.cluster_sizes, self.n_clusters)
        if self.landmarks is not None:
            refuse_landmarks_of_graph(self)
        if graph_kernel(self.kernel) is not None and self.alpha == "auto":
            raise InputError("alpha='auto' compares kernel functions; give a number with the graph kernel.")

    def _needs(self, n_samples: int) -> FitNeeds:
        k, graph, sweeps = int(self.n_clusters), graph_kernel(self.kernel), int(self.max_passes)
        if graph is not None:
            return graph_needs(graph, k, n_samples, self._searched_rows(n_samples), sweeps)
        rows = self._searched_rows(n_samples)
        # The first pass reads, one more labels.
        own = self.landmarks
        n_landmarks = min(rows, self.n_landmarks) if own is None else len(own)
        given: dict[str, Any] = {"sample_copies": 2, "stays_sparse": own is None}
        given["search_seconds"] = partition_seconds(rows, k)
        given["routines"] = OF_KERNEL + OF_PARTITION
        drawn = larger_sample(n_samples)
        if drawn > 2 * rows:  # labels that have settled on these leave one pass
            given |= {"drawn_rows": drawn, "likely_sweeps": 1}
        return FitNeeds(n_landmarks, rows, **given, work_bytes=matrix_bytes(rows), sweeps=sweeps)

    def _searched_rows(self, n_samples: int) -> int:
        """Rows of the sample that is searched, or of each sample of the nodes of a graph."""
        default = rows_of_sample if graph_kernel(self.kernel) is None else rows_of_draw
        return min(self.sample_size or default(int(self.n_clusters)), n_samples)

    def _plan(self, samples: Samples | RowShape) -> FitPlan:
        check_matrices(self._searched_rows(samples.n_samples), self.n_clusters, self.memory_limit)
        return super()._plan(samples)

    def _fit(self, session: FitSession) -> FitResult:
        samples, searched = session.samples, session
        needs = self._needs(samples.n_samples)
        if needs.rows_to_draw(samples.n_features) > needs.sample_size:
            searched = session.of_size(needs.sample_size)
        return self._label(session, self._search(searched))

    def _search(self, session: FitSession) -> SampleClusters:
        """Cluster the sample, in landmark features or in the coordinates of a graph."""
        graph, engine, random_state = graph_kernel(self.kernel), session.engine, session.random_state
        size = "sample_size" if graph is None else "n_nodes"
        check_clusters(self.n_clusters, session.sample, session.samples.n_samples, size)
        sample, weights = session.sample, relative_weights(session.sample_weights)
        if graph is not None:
            k = int(self.n_clusters)
            on_graph = graph_sample(sample, weights, graph, k, random_state, engine)
            least = graph_least_share(k, on_graph.graph.weights.shape[0])
            config, rows = self._config(float(self.alpha), least), self._searched_rows(sample.shape[0])
            found = agreed_first(partition_graph(engine, on_graph, config, random_state, rows))
            report = {"gamma": None, "graph": on_graph.graph.to_dict()}
            return SampleClusters(
                on_graph, ranked_by_known(session.known, on_graph, config, found), config, report
            )
        kernel, config, settings = self._settings(session, weights)
        shape = min(sample.shape[0], self.n_landmarks), self.n_clusters
        own = self.landmarks
        if own is not None:
            own = scaled_landmarks(own, sample, session.mean, session.deviation)

        def smoother() -> np.ndarray | None:
            if weights is not None:
                return None
            return config.smoother(kernel_matrix(sample, kernel), overwrite=True)

        landmarks = partial(landmark_sample, sample, weights, kernel, *shape, random_state, own)
        R, mapped = engine.each(lambda make: make(), [smoother, landmarks])
        found = partition_sample(engine, R, mapped.features, config, random_state)
        found = ranked_by_known(session.known, mapped, config, found)
        return SampleClusters(mapped, found, config, {"gamma": kernel.gamma, **settings})

    def _label(self, session: FitSession, clusters: SampleClusters) -> FitResult:
        """Label all rows by the clusters of the sample."""
        config, found = clusters.config, clusters.found
        for one in found:
            session.record({"stage": "sample", "start": one.start, "objective": one.objective})
        model = clusters.sample.model(session, config.alpha)
        assert model.ridge is not None
        rows = session.engine.cache(model.features(session.samples), session.plan)
        once = model.graph is not None and session.has_more_rows  # the nodes have settled the labels
        given = session, config, clusters.sample, model.ridge, rows, found[0].labels
        passes, larger = 1 if once else int(self.max_passes), None
        if session.sample.shape[0] > clusters.sample.values.shape[0]:
            unscaled = replace(model, mean=None, deviation=None)
            larger = unscaled.features(open_samples(session.sample))
        labelled = label_all_rows(*given, passes, session.kept_labels, larger)
        warnings = self._warnings(labelled.sizes, config)
        return FitResult(
            replace(model, rule=labelled.rule),
            rows,
            {
                "objective": labelled.mean_objective,
                "gamma": clusters.report["gamma"],
                "alpha": config.alpha,
                "converged": labelled.settled or once,
            },
            {
                "sizes": whole_numbers(labelled.sizes.tolist()),
                "one_against_all_objective": labelled.one_against_all_objective,
                "sample_objective": float(found[0].objective),
                **clusters.report,
            },
            warnings=warnings,
            kept_labels=labelled.kept,
        )

    def _config(self, alpha: float, least: float = LEAST_SHARE) -> PartitionConfig:
        least = least if self.min_share is None else float(self.min_share)
        free = graph_kernel(self.kernel) is not None and str(self.cluster_sizes) == "auto"
        sizes = None if free else self.cluster_sizes, float(self.size_tolerance), least
        return PartitionConfig(
            int(self.n_clusters), alpha, self.search, self.schedule, int(self.n_init), *sizes
        )

    def _settings(
        self, session: FitSession, weights: np.ndarray | None
    ) -> tuple[Kernel, PartitionConfig, dict[str, Any]]:
        """The kernel and the ridge, as they are given or the most stable ones, and what was tried."""
        kernel = default_kernel(self, session.sample, weights)
        if self.alpha != "auto":
            return kernel, self._config(float(self.alpha)), {}
        config = self._config(DEFAULT_ALPHA)
        n_landmarks = min(session.sample.shape[0], self.n_landmarks)
        vary = self.kernel == "rbf" and self.gamma == "auto"
        given = session.engine, session.sample, weights, kernel, config, n_landmarks
        tried, best = stable_settings(*given, session.random_state, vary)
        chosen = replace(config, alpha=tried[best].alpha)
        return tried[best].kernel, chosen, {"settings": [one.to_dict() for one in tried]}

    def _warnings(self, sizes: np.ndarray, config: PartitionConfig) -> list[str]:
        empty = int((sizes == 0).sum())
        remedy = "lower min_share" if config.sizes_are_free else "give fewer clusters, or other cluster_sizes"
        return [f"{empty} of the {self.n_clusters} clusters hold no row; {remedy}."] if empty else []


def refuse_landmarks_of_graph(estimator: Any) -> None:
    """Refuse landmarks of a kernel function with the graph kernel, which has none."""
    if graph_kernel(estimator.kernel) is not None:
        raise InputError("landmarks are of a kernel function; leave them out with the graph kernel.")

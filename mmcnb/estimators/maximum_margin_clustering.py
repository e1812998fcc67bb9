"""Maximum margin clustering with its kernel and its loss chosen from the rows."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from mmcnb._constraints import Choice, Constraint, Interval, IntervalOr
from mmcnb.engine.plan import FitNeeds, FitPlan, RowShape, plan_fit
from mmcnb.engine.session import FitResult, FitSession, connected
from mmcnb.errors import InputError, shown
from mmcnb.estimators.base import (
    FITTED,
    StreamedClusterer,
    estimator,
    first_row_order,
    label_rows,
    read_input,
)
from mmcnb.estimators.choice import Candidate, Chosen, trust_in, why
from mmcnb.estimators.crammer_singer_mmc import CrammerSingerMMC
from mmcnb.estimators.known_rows import read_known_rows
from mmcnb.estimators.parameters import COUNT, OPTIONAL_SHARE, KernelName, graph_kernel
from mmcnb.estimators.refits import confidence_of_refits
from mmcnb.estimators.sparse_kernel_mmc import SparseKernelMMC
from mmcnb.features.confidence import Confidence, ConfidenceRule
from mmcnb.features.graph import NODE_LIBRARIES
from mmcnb.features.needs import bytes_of_rows
from mmcnb.features.rules import DecisionPass, KeptLabels
from mmcnb.hinge import multiclass, two_clusters
from mmcnb.hinge.landmarks import needs_of_landmarks
from mmcnb.hinge.needs import MARGIN_LIBRARIES, needs_of_search
from mmcnb.hinge.sample_search import search_config
from mmcnb.least_squares.all_rows import relative_weights, rows_of_sample
from mmcnb.least_squares.cluster_numbers import TriedNumber, best_number, try_numbers
from mmcnb.least_squares.graph_partition import GraphSample, mean_agreement
from mmcnb.least_squares.known import compared, searched
from mmcnb.least_squares.normalized_cut import relative_cut
from mmcnb.least_squares.objective import target_shares
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.least_squares.search import SampleClusters, SearchSettings, label, search, search_needs


@estimator
class MaximumMarginClustering(StreamedClusterer):
    """Clusters with the widest margin between them, in data of any size.

    The kernel and the loss are chosen from a sample without labels. The other estimators of the package give
    each of them by itself, with all its settings.

    Parameters
    ----------
    n_clusters : int, None or "auto", default=2
        Number of clusters. None and "auto" choose one from 2 to ``max_clusters``: searches of the graph agree
        on it, and there are deep valleys between all clusters.
    kernel : {"auto", "graph", "rbf", "linear"} or GraphKernel, default="auto"
        "graph" follows the nearest neighbours of the rows: clusters of any shape with few rows between them.
        "rbf" and "linear" are the Gaussian and the linear kernel: clusters that overlap. "auto" takes the
        graph where its best partition cuts few of its edges and other searches agree with it, or it cuts
        hardly any, and otherwise the Gaussian kernel.
    loss : {"auto", "hinge", "squared"}, default="auto"
        "squared" is `UnsupervisedRLS`. "hinge" is `SparseKernelMMC` for two clusters without size
        constraints, and `CrammerSingerMMC` otherwise. "auto" is "hinge" for two clusters without size
        constraints on the graph or with the linear kernel, and "squared" otherwise.
    cluster_sizes : None, "equal" or array of n_clusters proportions, default=None
        Size constraints. None is a minimum size only.
    size_tolerance : float, default=0.1
        How far constrained sizes may lie from their proportions, relatively.
    min_share : float or None, default=None
        Minimum size of a cluster without other constraints, as a fraction of n/n_clusters; None is the
        default of each method.
    max_clusters : int, default=12
        Most clusters to try where their number is chosen.
    n_refits : int, default=0
        Fits to random parts of the sample, three fifths each, from which `confidence` is learned; at least
        two. Each takes about as long as the search on the sample.
    scale : {None, "standard"}, default=None
        "standard" divides columns by their deviation (and centres dense ones).
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, numbered by the first row that falls in each; equal to ``predict(X)``.
    n_clusters_ : int
        Number of clusters, given or chosen.
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
        Entries of the method, and what the choice was made from. "choice" is a sentence, empty with a given
        kernel. "candidates" has a row for each kernel that was tried, and "numbers" one for each number of
        clusters. "trust" is a dict with the "level" ("low", "medium" or "high") and the "reason".
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns; their names, where they have names.

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

    n_clusters: Any = 2
    kernel: Any = "auto"
    loss: str = "auto"
    cluster_sizes: Any = None
    size_tolerance: float = 0.1
    min_share: float | None = None
    max_clusters: int = 12
    n_refits: int = 0
    scale: str | None = None

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "n_clusters": IntervalOr(COUNT, ("auto",), optional=True),
        "kernel": KernelName(("auto", "rbf", "linear"), graph=True),
        "loss": Choice(("auto", "hinge", "squared")),
        "min_share": OPTIONAL_SHARE,
        "max_clusters": Interval(2, integer=True),
        "n_refits": Interval(0, integer=True),
    }
    fitted_names: ClassVar[tuple[str, ...]] = (*FITTED, "n_clusters", "kernel", "loss")

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        partial_labels: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
        element: str | None = None,
    ) -> Self:
        """Find the clusters.

        What is known of some rows picks among the partitions that the search finds, and labels of all
        clusters start one more. ``report_["candidates"]`` says what share of it is broken.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored, also where labels are given; for compatibility with scikit-learn.
        sample_weight : ndarray or Zarr array of shape (n_samples,), path or None, default=None
            Weight of each row: 2 has the effect of a duplicate row. Only proportions count.
        partial_labels : array-like of shape (n_samples,), dict or None, default=None
            Known labels from 0, and -1 for all other rows; or a dict from row numbers to labels. They tell
            rows of one cluster from those of others: clusters are numbered by their first rows all the same.
        must_link, cannot_link : array-like of shape (q, 2) or None, default=None
            Pairs of rows that belong to one cluster, and to two.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If the rows or a parameter are invalid, or what is known contradicts itself.

        Examples
        --------
        >>> import mmcnb
        >>> from mmcnb.synthetic import make_shape
        >>> X, y = make_shape("two-moons", 400, random_state=0)
        >>> known = {0: y[0], 1: y[1], 2: y[2]}
        >>> model = mmcnb.MaximumMarginClustering(random_state=0).fit(X, partial_labels=known)
        >>> model.report_["candidates"][0]["broken"]
        0.0
        """
        samples = read_input(self, X, reset=True, least_rows=2, element=element)
        self._check_parameters()
        most = self.n_clusters if self._number_is_given else self.max_clusters
        known = read_known_rows(partial_labels, must_link, cannot_link, samples.n_samples, int(most))
        if known is not None and self.loss == "hinge":
            raise InputError("loss='hinge' takes no known labels or pairs; use loss='squared' or 'auto'.")
        with connected(self.engine):  # one cluster for the fit and its labels
            self._fit_samples(samples, sample_weight, label_rows, KeptLabels(), known)
        return self

    def confidence(self, X: Any, *, element: str | None = None) -> np.ndarray:
        """How often rows keep their cluster when the fit is repeated on another sample.

        It follows from the margin of a row, by what became of rows of that margin in fits to random parts of
        the sample. It does not tell whether clusters are known classes.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            Rows with the columns of the fit; they are streamed.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Shares in [0, 1].

        Raises
        ------
        InputError
            If the model was fitted without refits.

        Examples
        --------
        >>> import mmcnb
        >>> from mmcnb.synthetic import make_shape
        >>> X, y = make_shape("two-moons", 400, random_state=0)
        >>> model = mmcnb.MaximumMarginClustering(n_refits=2, random_state=0).fit(X)
        >>> bool(model.confidence(X).mean() > 0.95)
        True
        """
        features, rule = self._features(X, element)
        knots = self.report_["confidence"]
        if knots is None:
            raise InputError("confidence needs refits of the sample; fit with n_refits=2 or more.")
        return self._run(DecisionPass(ConfidenceRule(rule, Confidence.from_dict(knots))), features, "labels")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        sizes = self.cluster_sizes
        if isinstance(sizes, str) and sizes != "equal":
            raise InputError(f"cluster_sizes={shown(sizes)} is unknown; give None, 'equal' or shares.")
        if self.n_refits == 1:
            raise InputError("n_refits=1 leaves nothing to compare; give 0, or at least 2.")
        if self._number_is_given:
            target_shares(sizes, self.n_clusters)
        elif sizes is not None and not isinstance(sizes, str):
            count = np.size(sizes)
            raise InputError(
                f"cluster_sizes gives {count} shares, but n_clusters={self.n_clusters!r} chooses their "
                f"number; give n_clusters={count}."
            )

    @property
    def _number_is_given(self) -> bool:
        return self.n_clusters is not None and not isinstance(self.n_clusters, str)

    @property
    def _chooses(self) -> bool:
        """Whether the kernel is chosen from the rows."""
        return isinstance(self.kernel, str) and self.kernel == "auto"

    def _of_number(self, n_clusters: int) -> "MaximumMarginClustering":
        """The same estimator with a given number of clusters."""
        other = copy(self)
        other.n_clusters = n_clusters
        return other

    _two_free = property(lambda self: self.n_clusters == 2 and self.cluster_sizes is None)

    def _loss_of(self, kernel: Any, known: Any = None) -> str:
        """The loss to take under a kernel; with the Gaussian one the squared loss was better on tables."""
        if self.loss != "auto":
            return self.loss
        squared = known is not None or not self._two_free or str(kernel) == "rbf"
        return "squared" if squared else "hinge"

    def _by_hinge(self, kernel: Any) -> SparseKernelMMC | CrammerSingerMMC:
        """The method by the hinge loss under one kernel."""
        if self._two_free:
            return SparseKernelMMC(kernel=kernel, **self._least_share())
        names = "n_clusters", "cluster_sizes", "size_tolerance", "min_share"
        return CrammerSingerMMC(**{name: getattr(self, name) for name in names}, kernel=kernel)

    def _least_share(self) -> dict[str, Any]:
        return {} if self.min_share is None else {"min_share": self.min_share}

    def _settings(self, kernel: Any) -> SearchSettings:
        """How least squares searches a sample under a kernel."""
        partition = PartitionConfig(
            n_clusters=int(self.n_clusters),
            cluster_sizes=self.cluster_sizes,
            size_tolerance=float(self.size_tolerance),
            min_share=None if self.min_share is None else float(self.min_share),
        )
        return SearchSettings(partition, graph_kernel(kernel) or kernel)

    def _needs(self, rows: RowShape) -> FitNeeds:
        return self._all_needs(rows)[0]

    def _all_needs(self, rows: RowShape) -> list[FitNeeds]:
        """The needs of each method that may be taken; that of the graph first."""
        if not self._number_is_given:
            most = self._of_number(self.max_clusters)._all_needs(rows)
            return [replace(one, search_seconds=3.0 * one.search_seconds) for one in most]  # of all numbers
        if not self._chooses:
            return [self._needs_of(self.kernel, rows)]
        graph, function = (self._needs_of(kernel, rows) for kernel in ("graph", "rbf"))
        libraries = NODE_LIBRARIES + (MARGIN_LIBRARIES if self._loss_of("graph") == "hinge" else 0)
        nodes = bytes_of_rows(rows, graph.sample_size) + libraries
        function = replace(function, sample_bytes=function.sample_bytes + nodes)
        seconds, routines = graph.search_seconds + function.search_seconds, graph.routines | function.routines
        return [replace(one, search_seconds=seconds, routines=routines) for one in (graph, function)]

    def _needs_of(self, kernel: Any, rows: RowShape) -> FitNeeds:
        """The needs of the method under a kernel, with no more rows drawn than it searches."""
        settings = self._settings(kernel)
        if self._loss_of(kernel) == "squared":
            return search_needs(rows, settings)
        if self._two_free and graph_kernel(kernel) is None:
            return needs_of_landmarks(rows, None, None)
        return needs_of_search(rows, settings)

    def _plan(self, rows: RowShape) -> FitPlan:
        """The plan of the method that needs most."""
        plans = [self._plan_of(rows, needs) for needs in self._all_needs(rows)]
        threads = min(plan.threads for plan in plans)
        return replace(max(plans, key=lambda plan: plan.peak), threads=threads)

    def _plan_of(self, rows: RowShape, needs: FitNeeds) -> FitPlan:
        return plan_fit(rows, needs, self.memory_limit, self.n_jobs)

    # -- the fit -------------------------------------------------------------------------------

    def _fit(self, session: FitSession) -> FitResult:
        if self._number_is_given:
            return self._fit_number(session, [])
        numbers = int(self.max_clusters), 2 if session.known is None else session.known.least_clusters
        given = session.sample, relative_weights(session.sample_weights), *numbers
        tried = try_numbers(session.engine, *given, np.random.RandomState(session.seed()))
        return self._of_number(best_number(tried))._fit_number(session, tried)

    def _fit_number(self, session: FitSession, tried: list[TriedNumber]) -> FitResult:
        """The fit with a given number of clusters."""
        fit = self._choose if self._chooses else partial(self._under, self.kernel)
        chosen = fit(session)
        report = {
            **{"kernel": chosen.taken.kernel, "loss": chosen.taken.loss},
            "choice": why(chosen.candidates, chosen.taken) if self._chooses else "",
            "candidates": [one.to_dict(chosen.taken) for one in chosen.candidates],
            "numbers": [one.to_dict() for one in tried],
        }
        return self._told(session, chosen, report)

    def _under(self, kernel: Any, session: FitSession) -> Chosen:
        """The fit under one kernel."""
        name = "graph" if graph_kernel(kernel) is not None else str(kernel)
        taken = Candidate(int(self.n_clusters), name, self._loss_of(kernel, session.known))
        if taken.loss == "hinge":
            return Chosen(self._by_hinge(kernel)._fit(session), taken, [taken])
        clusters = search(session, self._settings(kernel))
        if session.known is not None:
            taken = self._candidate(name, session, clusters)
        return Chosen(label(session, clusters), taken, [taken])

    def _choose(self, session: FitSession) -> Chosen:
        """The fit by the graph where it is clear, and by the Gaussian kernel otherwise."""
        rows = session.plan.rows
        plans = [self._plan_of(rows, one) for one in self._all_needs(rows)]
        session = replace(session, plan=plans[0])
        clusters = search(session, self._settings("graph"))
        graph = self._candidate("graph", session, clusters)
        smaller = replace(session.of_size(rows_of_sample(graph.n_clusters)), plan=plans[1])
        if session.known is None:
            if graph.is_clear:
                return Chosen(self._on_graph(session, clusters), graph, [graph])
            result, function, _ = self._under("rbf", smaller)
            if result.attributes["converged"] or not graph.agrees:
                return Chosen(result, function, [graph, function])
            return Chosen(self._on_graph(session, clusters), graph, [graph, function])
        others = search(smaller, self._settings("rbf"))
        function = self._candidate("rbf", smaller, others)
        better = compared((session.known, clusters.found), (smaller.known, others.found))
        if better > 0 or (better == 0 and graph.is_clear):
            return Chosen(self._on_graph(session, clusters), graph, [graph, function])
        return Chosen(label(smaller, others), function, [graph, function])

    def _candidate(self, kernel: str, session: FitSession, clusters: SampleClusters) -> Candidate:
        """The signs of a clustered sample."""
        known, sample, found = session.known, clusters.sample, searched(clusters.found)
        graph = sample.graph if isinstance(sample, GraphSample) else None
        cut = None if graph is None else relative_cut(graph, found[0].labels, int(self.n_clusters))
        signs = cut, mean_agreement(found), known and known.broken(clusters.found[0].labels)
        return Candidate(int(self.n_clusters), kernel, self._loss_of(kernel, known), *signs)

    def _on_graph(self, session: FitSession, clusters: SampleClusters) -> FitResult:
        """The fit on the graph whose nodes have been clustered."""
        if self._loss_of("graph", session.known) == "squared":
            return label(session, clusters)
        if self._two_free:
            return two_clusters.fit_on_graph(session, clusters, self._least_share())
        config = search_config(session, max_rounds=multiclass.ROUNDS)
        return multiclass.fit_on_graph(session, clusters, config)

    def _told(self, session: FitSession, chosen: Chosen, report: dict[str, Any]) -> FitResult:
        """The result with what was taken, how far to trust it, and its confidence."""
        result, taken, candidates = chosen
        attributes = {name: result.attributes.get(name) for name in ("objective", "gamma", "converged")}
        attributes |= {name: getattr(taken, name) for name in ("kernel", "loss", "n_clusters")}
        rule = result.model.rule.ordered(first_row_order(session, result))
        model = replace(result.model, rule=rule, mean=None, deviation=None)
        trusted, warnings = trust_in(model, session, candidates), list(result.warnings)
        if trusted["level"] == "low":
            warnings.append(f"the clusters may be none: {trusted['reason']}")
        settings = self._settings(taken.kernel if self._chooses else self.kernel)
        refits = confidence_of_refits(settings, session, model, self.n_refits) if self.n_refits else None
        report = report | {"trust": trusted, "confidence": refits} | result.report
        return replace(result, attributes=attributes, report=report, warnings=warnings)

"""Maximum margin clustering: the partition with the widest gap between its clusters, of a few candidates."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from mmcnb._config import format_bytes, resolve_memory_limit
from mmcnb._constraints import Choice, Constraint, Interval, IntervalOr
from mmcnb.choice.candidates import LEAST_SQUARES, MARGIN, Candidate, candidates, makers, with_known
from mmcnb.choice.number import best_number
from mmcnb.choice.pick import REPAIRED, pick
from mmcnb.choice.read_known import read_known_rows
from mmcnb.choice.trust import trust
from mmcnb.columns.columns import SingleColumns, single_columns
from mmcnb.engine.passes import first_rows
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession, connected, whole_numbers
from mmcnb.errors import InputError, MemoryLimitError, shown
from mmcnb.estimators.base import StreamedClusterer, estimator, label_rows, read_input
from mmcnb.estimators.parameters import COUNT, KernelName
from mmcnb.features.directions import unit_rows
from mmcnb.features.model import Model
from mmcnb.features.needs import PRODUCT_RATE, bytes_of_rows
from mmcnb.features.rules import DecisionPass, KeptLabels, Scores, Softmax, label_once
from mmcnb.graph.neighbours import N_NODES, NodeGraph, axes_of, node_graph
from mmcnb.graph.nodes import LEADING_AXES, search_flops
from mmcnb.graph.vote import vote
from mmcnb.hinge.on_sample import margin_needs, margin_on_sample
from mmcnb.least_squares import search as least_squares
from mmcnb.least_squares.objective import target_shares
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import check_clusters, check_places
from mmcnb.stores import create_dense_store

# Up to so many clusters the widest margin is a candidate beside those of the graph. With more its J was never
# the largest, on 41 shapes and data sets.
MOST_MARGIN_CLUSTERS = 2
ALONE = ("rbf", "linear")  # kernels under which the widest margin is the only candidate
# Bytes of a node with its neighbours, edges and communities; and seconds of one core for it.
NODE_BYTES, NODE_SECONDS = 5000.0, 5e-5
GRAPH_ROUTINES = {"nearest_nodes_into": 18.0}  # with the loops of the candidates


@estimator
class MaximumMarginClustering(StreamedClusterer):
    """The partition with the widest gap between its clusters, of a few candidates of different kinds.

    The rows of a sample, or all of few, are nodes of a graph of their nearest neighbours. Communities of this
    graph, a linkage along its shortest edges and the widest margin of a support vector machine each give a
    partition of the nodes. The partition with the largest J is taken: it says much about the graph, and a gap
    lies between its clusters. Then one pass labels all rows by the vote of their nearest nodes.

    Parameters
    ----------
    n_clusters : int, None or "auto", default=2
        Number of clusters. None and "auto" choose one from 2 to ``max_clusters``: the one with the largest J.
    kernel : {"auto", "graph", "rbf", "linear"}, default="auto"
        Which candidates there are. "graph" leaves out the support vector machine. "rbf" and "linear" take it
        alone, with the Gaussian or the linear kernel. "auto" takes all, the machine for two clusters.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" divides rows by their lengths. Rows that have length 1 already are compared on all columns,
        others on the 50 leading principal axes.
    cluster_sizes : None, "equal" or array of n_clusters proportions, default=None
        Size constraints. With them `UnsupervisedRLS` finds the only candidate, under the Gaussian kernel or
        the linear one.
    size_tolerance : float, default=0.1
        How far constrained sizes may lie from their proportions, relatively.
    max_clusters : int, default=12
        Most clusters to try if their number is chosen.
    n_nodes : int, default=20000
        Most nodes of the graph: rows drawn at random.
    scale : {"auto", "standard", None} or dict, default="auto"
        "auto" makes columns comparable if their kinds or units differ. None
        takes them as they are, "standard" divides each by its deviation. A dict gives "log", "standard", None
        or a step for some columns, by name or number; the others are treated as by "auto".
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, numbered by the first row that falls in each; equal to ``predict(X)``.
    n_clusters_ : int
        Number of clusters, given or chosen.
    candidate_ : str
        The candidate that was taken.
    kernel_ : {"graph", "rbf", "linear"}
        What labels the rows: the vote of the nodes, or a support vector machine.
    objective_ : float
        J of the partition of the nodes, 4 MI / log k + gap.
    history_ : DataFrame
        One row for each stage, "graph", "choice" and "labels", with the seconds so far, and for each sweep of
        the candidates that sweep.
    report_ : dict
        "sizes" of the clusters. "candidates" has a row for each, by falling J: its name, J, the two parts of
        J, the shares of its clusters, the share of what is known that it breaks, and seconds. "left_out" says
        why a candidate is missing. "numbers" has J for each number of clusters that was tried. "trust" is a
        dict with the "level" ("low", "medium" or "high"), the "reason", the "agreement", and the "columns"
        that make the clusters alone. "scaling" says why columns were scaled, and "columns" how.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns; their names, if they have names.

    See Also
    --------
    partition_score : J of any partition, by whatever program.
    SparseKernelMMC : Two clusters by the widest margin, with all settings.
    CrammerSingerMMC : Any number of clusters by the widest margin, with all settings.
    UnsupervisedRLS : Any number of clusters by the squared loss, with all settings.

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.datasets import make_shape
    >>> X, y = make_shape("three-rings", random_state=0)
    >>> model = mmcnb.MaximumMarginClustering(n_clusters=3, random_state=0).fit(X)
    >>> model.kernel_, model.report_["trust"]["level"]
    ('graph', 'high')
    >>> from sklearn.metrics import adjusted_rand_score
    >>> adjusted_rand_score(y, model.labels_)
    1.0
    """

    n_clusters: Any = 2
    kernel: str = "auto"
    metric: str = "euclidean"
    cluster_sizes: Any = None
    size_tolerance: float = 0.1
    max_clusters: int = 12
    n_nodes: int = N_NODES
    scale: Any = "auto"

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "n_clusters": IntervalOr(COUNT, ("auto",), optional=True),
        "kernel": KernelName(("auto", "graph", *ALONE)),
        "metric": Choice(("euclidean", "cosine")),
        "max_clusters": Interval(2, integer=True),
        "n_nodes": Interval(2, integer=True),
    }
    fitted_names: ClassVar[tuple[str, ...]] = ("objective", "n_clusters", "candidate", "kernel", "report")
    removed: ClassVar[Mapping[str, str]] = {
        "loss": 'kernel="graph" leaves the hinge loss out, and "rbf" or "linear" take it alone',
        "min_share": "the judge of the partitions decides on small clusters",
        "n_refits": "predict_proba gives the probabilities of each row",
    }

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
        columns: Any = None,
    ) -> Self:
        """Find the clusters.

        Known labels and pairs select among the candidates: those that break least of them come first, and
        then the largest J counts. Labels of all clusters start one more candidate.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored, also if labels are given; for compatibility with scikit-learn.
        sample_weight : ndarray or Zarr array of shape (n_samples,), path or None, default=None
            Weight of each row: 2 has the effect of a duplicate row. Only proportions count.
        partial_labels : array-like of shape (n_samples,), dict or None, default=None
            Known labels from 0, and -1 for all other rows; or a dict from row numbers to labels. They tell
            rows of one cluster from those of others: clusters are numbered by their first rows all the same.
        must_link, cannot_link : array-like of shape (q, 2) or None, default=None
            Pairs of rows that belong to one cluster, and to two.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".
        columns : {None, "auto", "all"} or list of str or int, default=None
            Columns of a frame or a table to take, by name or number. None and "auto" leave out texts of many
            values, numbers of rows and empty columns; "all" takes these too.

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
        >>> from mmcnb.datasets import make_shape
        >>> X, y = make_shape("two-moons", 400, random_state=0)
        >>> known = {0: y[0], 1: y[1], 2: y[2]}
        >>> model = mmcnb.MaximumMarginClustering(random_state=0).fit(X, partial_labels=known)
        >>> model.report_["candidates"][0]["broken"]
        0.0
        """
        samples = read_input(self, X, reset=True, least_rows=2, element=element, columns=columns)
        self._check_parameters()
        given = partial_labels, must_link, cannot_link
        known = None
        if any(one is not None for one in given):
            known = read_known_rows(*given, samples.n_samples, self._most_clusters)
        with connected(self.engine):  # one cluster for the fit and its labels
            self._fit_samples(samples, sample_weight, label_rows, KeptLabels(), known)
        return self

    def predict_proba(
        self, X: Any, out: str | os.PathLike[str] | None = None, *, element: str | None = None
    ) -> np.ndarray | None:
        """Probability of each cluster for each row, the largest for the cluster that `predict` gives.

        With the vote of the graph it is the share of each cluster among the nearest nodes. With a support
        vector machine it is the softmax of the scores, in units of the margin.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            Rows with the columns of the fit; they are streamed.
        out : path or None, default=None
            Path of a new store for the probabilities, written block by block; `open_samples` reads it.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), float64, or None
            Each row sums to 1; None if they were written to ``out``.

        Raises
        ------
        InputError
            If the probabilities take more memory than the limit: give ``out``.

        Examples
        --------
        >>> import mmcnb
        >>> X = [[0.0], [0.1], [0.2], [2.0], [2.1], [2.2]]
        >>> model = mmcnb.MaximumMarginClustering(random_state=0).fit(X)
        >>> model.predict_proba([[0.05]]).argmax()
        np.int64(0)
        """
        features, rule = self._features(X, element)
        sweep = DecisionPass(rule if self.model_.graph is not None else Softmax(rule))
        shape, limit = (features.n_samples, self.n_clusters_), resolve_memory_limit(self.memory_limit)
        if out is None and 8 * shape[0] * shape[1] > limit:
            raise MemoryLimitError(
                f"the probabilities of {shape[0]:,} rows take {format_bytes(8 * shape[0] * shape[1])}, of "
                f"{format_bytes(limit)} allowed; give out, a path, to write them to a store."
            )
        if out is None:
            return self._run(sweep, features, "probabilities")
        with self._open_engine(self.n_jobs) as engine, create_dense_store(out, shape[1], "float64") as store:
            for blocks in engine.stream(sweep, features, "probabilities"):
                store.append(np.concatenate(blocks))
        return None

    # -- the fit -------------------------------------------------------------------------------

    def _fit(self, session: FitSession) -> FitResult:
        if self.metric == "cosine":
            if session.samples.n_features == 1:
                raise InputError("metric='cosine' has no use for n_features=1; give metric='euclidean'.")
            session = replace(session, sample=unit_rows(session.sample))
        each, seed, known = session.engine.each, session.seed(), session.known
        session = self._best_scaled(session, seed)
        graph = self._graph(session)
        session.record({"stage": "graph"})
        k, numbers = self._number(session, graph, seed)
        found, left_out = candidates(graph, k, self._makers(session, graph, k, seed), each)
        found = with_known(graph, known, k, found, starts=self.cluster_sizes is None)
        best = pick(graph, found, seed, known.tolerance if known else 0.0)
        session.record({"stage": "choice"})
        columns = session.treatment.columns
        single = None if columns is None else single_columns(columns, best.labels[graph.node_of])
        result = with_report(self._labelled(session, graph, best), graph, best, found, single)
        own = session.treatment.report(session.samples.encoding)
        return replace(result, report=result.report | own | {"left_out": left_out, "numbers": numbers})

    def _graph(self, session: FitSession) -> NodeGraph:
        given = session.sample, session.sample_weights, session.random_state
        return node_graph(*given, session.engine.each, axes_of(self._most_clusters))

    def _best_scaled(self, session: FitSession, seed: int) -> FitSession:
        """The fit with its columns as they are, if these separate far better and only their units differ.

        Coordinates in metres are one unit, whatever their ranges. At most 5,000 rows are compared.
        """
        columns, each = session.treatment.columns, session.engine.each
        if self.kernel in ALONE or columns is None or not session.treatment.only_units:
            return session
        plain = replace(session, sample=columns.rows, scaling=None)
        size = max(5000, 20 * self._most_clusters)
        rows = np.sort(np.random.RandomState(seed).permutation(len(columns.rows))[:size])
        graph = self._graph(plain.of_rows(rows))
        k, _ = self._number(plain, graph, seed)
        found, _ = candidates(graph, k, makers(graph, k, seed), each)
        graph = self._graph(session.of_rows(rows))
        scaled, _ = candidates(graph, k, makers(graph, k, seed), each)
        J, J_scaled = (max(one.score.J for one in made) for made in (found, scaled))
        if J_scaled + 1.5 > J:  # of both on other sets: `python -m benchmarks columns`
            return session
        return replace(plain, treatment=session.treatment.left_out(J, J_scaled))

    def _makers(
        self, session: FitSession, graph: NodeGraph, n_clusters: int, seed: int
    ) -> list[tuple[str, Any]]:
        """The candidates of the fit, by name."""
        k, given = n_clusters, open_samples(session.sample)

        def of_model(make: Any) -> tuple[np.ndarray, Any]:
            made = make()
            model = made.model if isinstance(made, FitResult) else made
            bare = replace(model, scaling=None, is_unit=False)
            labels = bare.rule.label(bare.features(given).block(0, given.n_samples))
            return graph.of_nodes(labels.astype(np.int64)), made

        if k == 1:
            return [("one cluster", lambda: np.zeros(graph.n_nodes, np.int64))]
        if self.cluster_sizes is not None:
            return [(LEAST_SQUARES, partial(of_model, partial(self._sized, session, k)))]
        nodes = _of_nodes(session, graph)
        margin = (MARGIN, partial(of_model, partial(margin_on_sample, nodes, k, self._function, seed)))
        of_graph = [] if self.kernel in ALONE else makers(graph, k, seed)
        return [*of_graph, margin] if self._takes_margin(k) else of_graph

    @property
    def _function(self) -> str:
        """The kernel function of candidates that have one."""
        return self.kernel if self.kernel in ALONE else "rbf"

    def _takes_margin(self, n_clusters: int) -> bool:
        """Whether the widest margin is a candidate."""
        return self.kernel in ALONE or (self.kernel == "auto" and n_clusters <= MOST_MARGIN_CLUSTERS)

    def _sized(self, session: FitSession, n_clusters: int) -> FitResult:
        """All rows by least squares, with the sizes asked for."""
        settings = self._sized_settings(n_clusters)
        searched = session.of_size(settings.searched_rows(session.samples.n_samples))
        return least_squares.label(session, least_squares.search(searched, settings))

    def _sized_settings(self, n_clusters: int) -> least_squares.SearchSettings:
        sizes = {"cluster_sizes": self.cluster_sizes, "size_tolerance": float(self.size_tolerance)}
        return least_squares.SearchSettings(PartitionConfig(n_clusters, **sizes), self._function)

    def _number(self, session: FitSession, graph: NodeGraph, seed: int) -> tuple[int, list[dict[str, float]]]:
        """The number of clusters, and J of each number that was tried."""
        if self._number_is_given:
            k = int(self.n_clusters)
            check_clusters(k, session.sample, session.samples.n_samples, "n_nodes")
            check_places(graph.n_nodes, k, "n_nodes")
            return k, []
        least = 2 if session.known is None else session.known.least_clusters
        return best_number(graph, range(least, int(self.max_clusters) + 1), seed, session.engine.each)

    def _labelled(self, session: FitSession, graph: NodeGraph, best: Candidate) -> FitResult:
        """All rows labelled by a candidate: by its model, or by the vote of the nodes."""
        made, k = best.model, int(best.labels.max()) + 1
        if not isinstance(made, FitResult):
            empty = Model(Scores(np.eye(k), np.zeros(k)), None, None, session.scaling, "float64")
            model = made or replace(empty, graph=vote(graph, best.labels, k))
            model = replace(model, is_unit=self.metric == "cosine")
            rows = model.features(session.samples)
            likely = np.argsort(first_rows(best.labels[graph.node_of], k), kind="stable")
            rule, sizes, kept = label_once(session, model.rule.ordered(likely.tolist()), rows)
            session.record({"stage": "labels"})
            report = {"sizes": whole_numbers(sizes.tolist())}
            made = FitResult(replace(model, rule=rule), rows, {}, report, kept_labels=kept)
        kernel = "graph" if made.model.graph is not None else getattr(made.model.kernel, "name", "linear")
        attributes = {"objective": best.score.J, "n_clusters": k, "candidate": best.name, "kernel": kernel}
        return replace(made, attributes=attributes, report={"sizes": made.report["sizes"]})

    # -- parameters and needs ------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        sizes = self.cluster_sizes
        if sizes is None:
            return
        if isinstance(sizes, str) and sizes != "equal":
            raise InputError(f"cluster_sizes={shown(sizes)} is unknown; give None, 'equal' or shares.")
        if self.kernel == "graph" or self.metric == "cosine":
            raise InputError("cluster_sizes takes no kernel='graph' and no metric='cosine'; leave it out.")
        if self._number_is_given:
            target_shares(sizes, self.n_clusters)
        elif not isinstance(sizes, str):
            count = np.size(sizes)
            raise InputError(
                f"cluster_sizes gives {count} shares, but n_clusters={self.n_clusters!r} chooses their "
                f"number; give n_clusters={count}."
            )

    @property
    def _most_clusters(self) -> int:
        """The number of clusters, or the most that are tried."""
        return int(self.n_clusters if self._number_is_given else self.max_clusters)

    @property
    def _number_is_given(self) -> bool:
        return self.n_clusters is not None and not isinstance(self.n_clusters, str)

    def _needs(self, rows: RowShape) -> FitNeeds:
        """The nodes and their graph, and the candidate that needs most beside them."""
        k = self._most_clusters
        p = min(int(self.n_nodes), rows.n_samples)
        nodes = NODE_BYTES * p + 2.0 * bytes_of_rows(rows, p)
        nodes *= 2 if self.metric == "cosine" else 1  # a layout, and nodes of all columns
        if self.cluster_sizes is not None:
            own = least_squares.search_needs(rows, self._sized_settings(k))
            return replace(own, sample_size=p, sample_bytes=own.sample_bytes + nodes)
        needs = FitNeeds(k, p, nodes, sweeps=0, likely_sweeps=0, routines=GRAPH_ROUTINES)
        if self._takes_margin(k if self._number_is_given else 2):
            most = k if self.kernel in ALONE else MOST_MARGIN_CLUSTERS
            own = margin_needs(replace(rows, n_samples=p, is_reopenable=False), most, self._function)
            work, routines = (
                own.sample_bytes + own.work_bytes + own.larger_bytes,
                needs.routines | own.routines,
            )
            needs = replace(needs, work_bytes=work, search_seconds=own.search_seconds, routines=routines)
        per_row = (2.0 * rows.n_features * LEADING_AXES + search_flops(p)) / PRODUCT_RATE
        return replace(needs, search_seconds=NODE_SECONDS * p + needs.search_seconds, row_seconds=per_row)


def _of_nodes(session: FitSession, graph: NodeGraph) -> FitSession:
    """The session with one row of each node, which weighs all of them: so a weight is a repetition."""
    first = np.sort(np.unique(graph.node_of, return_index=True)[1])
    sizes = graph.sizes[graph.node_of[first]]
    return replace(session.of_rows(first), sample_weights=sizes / sizes.mean() if np.ptp(sizes) else None)


def with_report(
    result: FitResult,
    graph: NodeGraph,
    best: Candidate,
    found: Sequence[Candidate],
    single: SingleColumns | None,
) -> FitResult:
    """The result of a fit with the candidates and the trust in its report."""
    others = [one for one in found if one is not best and one.name != best.name.removesuffix(REPAIRED)]
    judged = sorted([best, *others], key=lambda one: -one.score.J)
    trusted = trust(best, others, single)
    report = {"candidates": [one.to_dict(graph.sizes) for one in judged], "trust": trusted}
    doubts = [f"the clusters may be none: {trusted['reason']}"] if trusted["level"] == "low" else []
    return replace(result, report=result.report | report, warnings=[*result.warnings, *doubts])

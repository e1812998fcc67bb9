"""The default estimator: of a few candidates, the partition with the widest gap."""

import os
import warnings
from copy import copy
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mmcnb._constraints import Choice, Interval, IntervalOr
from mmcnb.choice.number import MARGIN_KERNELS, Request
from mmcnb.choice.read_known import read_known_rows
from mmcnb.choice.search import search
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession, connected
from mmcnb.errors import (
    AbsentError,
    ClusterWarning,
    EqualRowsError,
    InputError,
    numbered_columns,
)
from mmcnb.estimators.base import StreamedClusterer, label_rows
from mmcnb.estimators.given_rows import chosen_columns, filling_gaps, read_input
from mmcnb.estimators.like import number_like, read_like
from mmcnb.estimators.outputs import RowTransformerMixin, decide_rows, layer_options
from mmcnb.estimators.parameters import NumberOrRange, estimator
from mmcnb.estimators.sampled_nodes import (
    as_directions,
    sampled_nodes,
    search_needs,
    widest_margin,
    with_best_scale,
)
from mmcnb.estimators.update import updated
from mmcnb.estimators.voted_labels import label_all, one_cluster_of_equal_rows
from mmcnb.estimators.without_columns import clusters_without
from mmcnb.features.labelling import (
    CLUSTER,
    OUTLIER_SCORE,
    PROBABILITY,
    ClusterColumnsPass,
    ColumnPasses,
    Decides,
    DecisionPass,
    KeptLabels,
    OutlierColumnPass,
)
from mmcnb.features.of_nodes import NodeRule, OutlierScores
from mmcnb.features.rules import Shares, Softmax
from mmcnb.graph.merge_tree import MergeTree
from mmcnb.graph.neighbours import N_NODES
from mmcnb.samples import Samples
from mmcnb.stores.row_index import row_index_of

if TYPE_CHECKING:
    import pandas as pd


@estimator
class MaximumMarginClustering(RowTransformerMixin, StreamedClusterer):
    """Of candidates of different kinds, the partition with the widest gap.

    The rows of a sample, or all of few, are nodes of a graph of their nearest
    neighbours. Communities of this graph, a linkage along its shortest edges and the
    widest margin of a support vector machine each give a partition of the nodes. The
    partition with the largest J is taken: it says much about the graph, and a gap lies
    between its clusters. Then one pass labels all rows by the vote of their nearest
    nodes.

    Parameters
    ----------
    n_clusters : None, "auto", int or pair of int, default=None
        Number of clusters, or its range, as (5, 30). None and "auto" find it, and may
        find one cluster: no structure.
    kernel : {"auto", "graph", "rbf", "linear"}, default="auto"
        Which candidates there are. "graph" leaves out the support vector machine. "rbf"
        and "linear" take it alone, with the Gaussian or the linear kernel. "auto" takes
        all, the machine for two clusters.
    metric : {"euclidean", "cosine", "precomputed"}, default="euclidean"
        "cosine" divides rows by their lengths. Rows that have length 1 already are
        compared on all columns, others on the 50 leading principal axes. "precomputed"
        takes a sparse X of distances to the nearest rows of the fit, at most 10^6 of
        them; all are nodes.
    min_cluster_size : None, int or float, default=None
        Fewest rows of a cluster, or their share, if the number is found: smaller ones
        join those they are linked to most.
    noise : None, "auto" or float, default=None
        Rows that get the label -1: those that lie far out in their own cluster, by its
        median outlier score and its robust deviation, so that a wide cluster keeps its
        rows. "auto" takes scores above 3 deviations, a number about that share of the
        rows. A cluster that is no denser than the space around it is dropped as a
        whole, unless its labels are known or it has more rows than that share. None
        keeps every row in a cluster.
    n_nodes : int, default=20000
        Most nodes of the graph: rows drawn at random.
    scale : {"auto", "standard", None} or dict, default="auto"
        "auto" makes columns comparable if their kinds or units differ. None takes them
        as they are, "standard" divides each by its deviation. A dict gives "log",
        "standard", None or a step for some columns, by name or number; the others are
        treated as by "auto".
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, numbered by the first row that falls in each, or as in
        ``like``; equal to ``predict(X)``.
    row_index_ : pandas.Index
        Which rows ``labels_`` belong to: the index of a frame, or names or numbers of
        rows in their file.
    n_clusters_ : int
        Number of clusters, given or found; 1 without structure. Clusters that
        ``noise`` drops do not count. After ``fit(X, like=model)`` or `update` some
        numbers may have no rows, and do not count.
    layers_ : DataFrame
        At most five partitions. The first is the one "taken", which need not be a cut
        of the merge tree. The others are cuts, by rising "n_clusters". "persistence" is
        at how many resolutions it was found, "smallest" about how many rows its
        smallest cluster has, and "agreement" its adjusted Rand index with the one
        taken.
    linkage_ : ndarray of shape (c - 1, 4)
        The merge tree as SciPy's linkage matrix; its leaves are pieces of nodes.
    piece_of_node_ : ndarray of shape (p,), int64
        Leaf of each node.
    outlier_score_ : ndarray of shape (n_samples,), float32
        After `update`, and after `fit` with ``noise``.
    candidate_ : str
        The candidate that was taken.
    kernel_ : {"graph", "rbf", "linear"}
        What labels the rows: the vote of the nodes, or a support vector machine.
    objective_ : float
        J of the partition of the nodes, 4 MI / log k + gap.
    history_ : DataFrame
        One row for each stage, "graph", "choice" and "labels", with the seconds so far,
        and for each sweep of the candidates that sweep.
    report_ : dict
        "sizes" of the clusters. With ``noise``, how many rows are "noise", and what was
        "dropped": for each cluster of scattered rows about its "share" of the rows, and
        the "reason". "candidates" has a row for each, by falling J: its
        name, J, the two parts of J, the shares of its clusters, the share of the known
        labels that it breaks, and seconds. "left_out" says why a candidate is missing.
        "number" says why this number was taken, and what is next best. "layers" are
        those of ``layers_``. "trust" is a dict with the "level" ("low", "medium" or
        "high"), the "reason", the "agreement", and the "columns" that make the clusters
        alone; if there are such, "without" has the "n_clusters" of a search without
        them, and its "agreement". "gaps" has a row for each column with gaps, by at
        most 1,000 rows: the "column", the "share" of its gaps, and that in each of the
        "clusters". "scaling" says why columns were scaled, and "columns" how. After a
        fit with ``like``, or `update`, "changes" has a row for each number with rows:
        the "number", the "change" ("kept", "split", "merged", "new" or "gone"), and the
        rows "before", in the fit of ``like``, and "after".
    cluster_sizes_ : ndarray
        The "sizes" of ``report_``.
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

    n_clusters: int | str | tuple[int, int] | None = field(default=None, kw_only=False)
    kernel: str = "auto"
    metric: str = "euclidean"
    min_cluster_size: float | None = None
    noise: str | float | None = None
    n_nodes: int = N_NODES
    scale: Any = "auto"

    constraints: ClassVar = {
        "n_clusters": NumberOrRange(),
        "kernel": Choice(("auto", "graph", *MARGIN_KERNELS)),
        "metric": Choice(("euclidean", "cosine", "precomputed")),
        "min_cluster_size": Interval(0.0, open_low=True, optional=True),
        "noise": IntervalOr(
            Interval(0.0, 1.0, open_low=True, open_high=True), ("auto",), optional=True
        ),
        "n_nodes": Interval(2, integer=True),
    }
    sizes_of_search = ("n_nodes",)
    fitted_names = ("objective", "n_clusters", "candidate", "kernel", "report")
    needed_in_report = frozenset({"layers", "sizes"})

    def fit(  # noqa: PLR0913
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        partial_labels: object = None,
        element: str | None = None,
        columns: object = None,
        keep: object = None,
        like: object = None,
    ) -> Self:
        """Find the clusters.

        Known labels select among the candidates: those that break least of them come
        first, and then the largest J counts. Labels of all clusters start one more
        candidate.

        Parameters
        ----------
        X : {rows}
            The rows.
        y : None
            Ignored, also if labels are given; for compatibility with scikit-learn.
        sample_weight : {weights}
            Weight of each row: 2 has the effect of a duplicate row. Only proportions
            count.
        partial_labels : array-like of shape (n_samples,), dict or None, default=None
            Known labels from 0, and -1 for all other rows; or a dict from row numbers
            to labels. Rows are numbered as they were given, also if some are left out
            for their gaps. Labels tell rows of one cluster from those of others:
            clusters are numbered by their first rows all the same.
        {element}
        columns : {None, "auto", "all"}, list of str or int, or plan, default=None
            Columns of a frame or a table to take, by name or number. None and "auto"
            leave out texts of many values, dates, numbers of rows, identifiers and
            empty columns; "all" takes these too. A plan of `mmcnb.table_plan` has all
            options of tables.
        keep : list of str or int, default=None
            Columns of a frame or a table to take although they would be left out.
        like : estimator or None, default=None
            A fitted clusterer of rows with the same columns. Clusters have its numbers
            if they match its own, and the others have new ones. ``report_["changes"]``
            lists them.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If the rows, their known labels or a parameter are invalid, or ``like`` is
            no fitted model of such rows.

        Examples
        --------
        >>> import mmcnb
        >>> from mmcnb.datasets import make_shape
        >>> X, y = make_shape("two-moons", 400, random_state=0)
        >>> known = {0: y[0], 1: y[1], 2: y[2]}
        >>> model = mmcnb.MaximumMarginClustering(random_state=0)
        >>> model.fit(X, partial_labels=known).report_["candidates"][0]["broken"]
        0.0
        >>> again = mmcnb.MaximumMarginClustering(random_state=1)
        >>> again = again.fit(X[::-1], like=model)
        >>> bool((again.labels_ == model.labels_[::-1]).all())
        True
        """
        earlier = None if like is None else read_like(like, X, element)
        samples = read_input(
            self,
            X,
            reset=True,
            least_rows=2,
            element=element,
            options=chosen_columns(columns, keep),
        )
        self._check_parameters()
        index = row_index_of(X, samples)
        known = None
        if partial_labels is not None:
            most_clusters = int(min(self._request.most, samples.n_samples))
            known = read_known_rows(
                partial_labels, samples.n_samples, most_clusters, index
            )
        self.__dict__.pop("outlier_score_", None)  # of an earlier fit
        with connected(self.engine):  # one Dask cluster for the fit and its labels
            samples = self._fit_samples(
                samples, sample_weight, label_rows, KeptLabels(), known
            )
            if earlier is not None:
                labels = number_like(
                    self, samples, earlier, sample_weight, KeptLabels()
                )
                self.labels_ = np.concatenate(labels)
            if self.noise is not None:
                self.outlier_score_ = self._outlier_scores(samples)
        self._row_index = index
        return self

    def _outlier_scores(self, samples: Samples) -> np.ndarray:
        """Return the outlier scores of the rows of the fit; 0 if they are all equal."""
        if self.model_.graph is None:
            return np.zeros(samples.n_samples, np.float32)
        features, _ = self.model_.labelling(samples, of_nodes=True)
        return self._run(DecisionPass(OutlierScores()), features, "outlier scores")

    @filling_gaps
    def update(self, X: object, *, element: str | None = None) -> Self:
        """Take in new rows; clusters keep their numbers, and earlier rows are not read.

        If the new rows lie among the nodes as earlier ones do, they are labelled, and
        the model stays as it is. Otherwise some of them become nodes beside the earlier
        ones, along the same axes, and the clusters of the nodes are searched again.
        Groups of new rows that no earlier cluster explains are new clusters; if the
        range of ``n_clusters`` has no room for them, the model stays as it is, and a
        warning counts their rows. The earlier clusters stay unless others, not fewer,
        are clearly better. The vote of the nodes labels rows from then on, also in
        place of a support vector machine.

        With ``checkpoint`` set to a folder of its own, an update that was stopped goes
        on from there.

        Parameters
        ----------
        X : {rows}
            The new rows, with the columns of the fit; they are streamed.
        {element}

        Returns
        -------
        self
            ``labels_``, ``row_index_`` and ``outlier_score_`` are those of the new
            rows. The sizes in ``report_`` count earlier rows too, and
            ``report_["changes"]`` is as after ``fit(X, like=model)``.

        Warns
        -----
        ClusterWarning
            If rows are far from all clusters and are in no new one (the trust is not
            "high" then), if earlier clusters have changed, or if most new rows are in
            new clusters, as after a drift. ``report_["warnings"]`` has the sentences.

        Raises
        ------
        InputError
            If the rows have other columns; or they lie otherwise than earlier ones, and
            a support vector machine was asked for by ``kernel``, or labels by default
            and no row lies near its nodes. The model stays as it was.

        Examples
        --------
        >>> import mmcnb
        >>> from mmcnb.datasets import make_shape
        >>> X, _ = make_shape("three-rings", random_state=0)
        >>> model = mmcnb.MaximumMarginClustering(n_clusters=3, random_state=0)
        >>> before = model.fit(X[::2]).predict(X)
        >>> bool((model.update(X[1::2]).labels_ == before[1::2]).all())
        True
        """
        check_is_fitted(self, "model_")
        if self.model_.graph is None or self.metric == "precomputed":
            raise InputError(
                "an update needs nodes that are rows; fit all rows with "
                "fit(X, like=model)."
            )
        samples = read_input(self, X, reset=False, element=element)
        # All of them, or none where the update fails.
        self.__dict__.update(updated(self, samples))
        self._row_index = row_index_of(X, samples)
        for sentence in self.report_["warnings"]:
            warnings.warn(sentence, ClusterWarning, stacklevel=3)
        return self

    @filling_gaps
    def predict_proba(
        self,
        X: object,
        out: str | os.PathLike[str] | None = None,
        *,
        exact: bool = False,
        element: str | None = None,
    ) -> np.ndarray | None:
        """Return the probability of each cluster for each row.

        The probability is largest for the cluster that `predict` returns.

        With the vote of the graph it is the share of each cluster among the nearest
        nodes. With a support vector machine it is the softmax of the scores, in units
        of the margin. If there are more than 4,096 nodes, a row deep in a cluster has
        the share 1 without a vote, which is quicker by far.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit; they are streamed.
        out : path or None, default=None
            Path of a new store for the probabilities, written block by block;
            `open_samples` reads it.
        exact : bool, default=False
            Whether rows deep in a cluster vote too. The largest share is then of
            another cluster than that of `predict` in a few rows of a thousand, if
            clusters overlap.
        {element}

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
        check_is_fitted(self, "model_")
        source = copy(self)
        graph = self.model_.graph
        if exact and graph is not None:
            source.model_ = replace(self.model_, graph=replace(graph, is_deep=None))
        features, rule = source._features(X, element)
        probabilities: Decides = rule
        if not isinstance(self.model_.rule, Shares):
            probabilities = Softmax(rule)
        return decide_rows(
            self,
            probabilities,
            features,
            out,
            self._n_features_out,
            "probabilities",
            "float64",
        )

    @filling_gaps
    def transform(self, X: object, *, element: str | None = None) -> Any:
        """Return what `predict_proba` returns, as a transformer does.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit; they are streamed.
        {element}

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), float64
            Probabilities; a frame, if `set_output` asks for one.

        Examples
        --------
        >>> import mmcnb
        >>> X = [[0.0], [0.1], [0.2], [2.0], [2.1], [2.2]]
        >>> model = mmcnb.MaximumMarginClustering(2, random_state=0)
        >>> model.set_output(transform="pandas").fit_transform(X).columns.tolist()
        ['maximummarginclustering0', 'maximummarginclustering1']
        """
        return self.predict_proba(X, element=element)

    @property
    def _n_features_out(self) -> int:
        return self.model_.rule.n_clusters

    @filling_gaps
    def score_outliers(
        self,
        X: object,
        out: str | os.PathLike[str] | None = None,
        *,
        element: str | None = None,
    ) -> np.ndarray | None:
        """How far rows lie from the nodes around them, beside other rows.

        The score is the logarithm of the distance to the tenth node, less the median of
        all nodes and, in part, that of the nearest node's cluster: by half if it has a
        tenth of the nodes. In clusters of less than 1 % of the nodes the score is
        larger by 2. Small clusters that the fit looked for have their own median.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit; they are streamed.
        out : path or None, default=None
            Path of a new store for the scores, of one column, written block by block.
        {element}

        Returns
        -------
        ndarray of shape (n_samples,), float32, or None
            The larger, the farther out; None if they were written to ``out``.

        Examples
        --------
        >>> import mmcnb
        >>> from mmcnb.datasets import make_shape
        >>> X, _ = make_shape("two-moons", random_state=0)
        >>> model = mmcnb.MaximumMarginClustering(random_state=0).fit(X)
        >>> near, far = model.score_outliers([X[0].tolist(), [9.0, 9.0]])
        >>> bool(far > near)
        True
        """
        features, _ = self._features(X, element, of_nodes=self._tree is not None)
        return decide_rows(
            self, OutlierScores(), features, out, 1, "outlier scores", "float32"
        )

    @filling_gaps
    def predict(
        self,
        X: object,
        out: str | os.PathLike[str] | None = None,
        *,
        layer: int | str | None = None,
        element: str | None = None,
    ) -> np.ndarray | None:
        """Label rows as the fit did, or by another one of its layers.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit; they are streamed.
        out : path or None, default=None
            Path of a new file, written block by block. A path that ends with ``.csv``
            or ``.parquet`` is a table with the columns of `to_frame`, each row under
            its number or its name. Others are a Zarr array.
        layer : int, "all" or None, default=None
            A row of ``layers_``: its clusters are numbered from the largest on. "all"
            adds a column for each layer to a table. None is the one taken.
        {element}

        Returns
        -------
        ndarray of shape (n_samples,), int32, or None
            Labels, -1 for noise; None if they were written to ``out``.

        Examples
        --------
        >>> import mmcnb
        >>> from mmcnb.datasets import make_shape
        >>> X, _ = make_shape("two-moons", random_state=0)
        >>> model = mmcnb.MaximumMarginClustering(random_state=0).fit(X)
        >>> bool(len(set(model.predict(X, layer=1))) == model.layers_["n_clusters"][1])
        True
        """
        is_table = str(out).endswith((".csv", ".parquet"))
        if isinstance(layer, str) and layer == "all" and not is_table:
            raise InputError(
                "layer='all' is for a table; give out, a path that ends with .csv or "
                ".parquet."
            )
        return self._labels(X, out, element, **layer_options(self, layer))

    def _column_passes(self, samples: Samples) -> tuple[ColumnPasses, list[str]]:
        features, rule = self.model_.labelling(samples)
        probabilities: Decides = rule
        if not isinstance(self.model_.rule, Shares):
            probabilities = Softmax(rule)
        if self.model_.graph is None:
            sweep = ClusterColumnsPass(rule, probabilities)
            return [(sweep, features)], [CLUSTER, PROBABILITY]
        names = [CLUSTER, PROBABILITY, OUTLIER_SCORE]
        scores = OutlierScores()
        if isinstance(rule, NodeRule):  # its features have the scores
            sweep = ClusterColumnsPass(rule, probabilities, scores)
            return [(sweep, features)], names
        of_nodes, _ = self.model_.labelling(samples, of_nodes=True)
        sweep = ClusterColumnsPass(rule, probabilities)
        return [(sweep, features), (OutlierColumnPass(scores), of_nodes)], names

    @filling_gaps
    def labels_at(
        self, X: object, n_clusters: int, *, element: str | None = None
    ) -> np.ndarray:
        """Label rows by the cut of the merge tree with so many clusters.

        All cuts nest, and no fit is needed: labels of the nodes are kept, and the rows
        are read. The cut with ``n_clusters_`` clusters may differ from ``labels_``,
        which are the best of several candidates.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit; they are streamed.
        n_clusters : int
            Number of clusters, up to the number of leaves of ``linkage_``.
        {element}

        Returns
        -------
        ndarray of shape (n_samples,), int32
            Clusters numbered from the largest on.
        """
        Interval(1, self._tree.n_pieces, integer=True).check("n_clusters", n_clusters)
        layer = self._tree.cluster_of_piece(int(n_clusters))
        return np.asarray(self._labels(X, None, element, layer=layer))

    @property
    def _tree(self) -> MergeTree:
        """The merge tree of the nodes of the fit."""
        check_is_fitted(self, "model_")
        nodes = self.model_.graph
        if nodes is None:
            raise AbsentError(
                "this model has no merge tree: its rows are equal; give rows that "
                "differ."
            )
        return nodes.tree

    @property
    def linkage_(self) -> np.ndarray:
        """The merge tree as SciPy's linkage matrix."""
        return self._tree.linkage()

    @property
    def piece_of_node_(self) -> np.ndarray:
        """Leaf of the merge tree of each node."""
        return self._tree.piece_of_node

    @property
    def layers_(self) -> "pd.DataFrame":
        """Partitions at other resolutions."""
        import pandas as pd

        check_is_fitted(self, "model_")
        return pd.DataFrame(self.report_["layers"])

    # -- the fit -----------------------------------------------------------------------

    @property
    def _orders_columns(self) -> bool:
        return self.metric != "precomputed"

    def _fit(self, session: FitSession) -> FitResult:
        with numbered_columns(session.column_order):
            return self._clustered(session)

    def _clustered(self, session: FitSession) -> FitResult:
        if self.metric == "cosine":
            session = as_directions(session)
        request = replace(self._request, known=session.known)
        seed = session.seed()
        session = with_best_scale(session, request, self.metric, seed)
        try:
            nodes = sampled_nodes(session, request, self.metric, seed)
        except EqualRowsError:
            if request.least > 1:
                raise
            return one_cluster_of_equal_rows(session)
        session.record({"stage": "graph"})
        margin = partial(widest_margin, session, request.margin_kernel)
        without = None
        if self.metric != "precomputed":
            without = partial(
                clusters_without, session, request, self.metric, self.scale, seed
            )
        choice = search(nodes, request, seed, margin, session.engine.each, without)
        session.record({"stage": "choice"})
        return label_all(session, nodes, choice, request, self.metric, self.noise)

    # -- parameters and needs ----------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.min_cluster_size is not None and self._request.n_clusters is not None:
            raise InputError(
                f"min_cluster_size={self.min_cluster_size!r} needs a number to find, "
                f"not n_clusters={self.n_clusters!r}; drop one."
            )
        is_precomputed = self.metric == "precomputed"
        if is_precomputed and (
            self.kernel in MARGIN_KERNELS or self.scale not in (None, "auto")
        ):
            raise InputError(
                f"metric='precomputed' is at odds with kernel={self.kernel!r} and "
                f"scale={self.scale!r}; give kernel='graph' and scale=None."
            )

    @property
    def _least_clusters(self) -> int:
        return self._request.least

    def _check_sizes(self, n_samples: int) -> None:
        super()._check_sizes(n_samples)
        size = self.min_cluster_size or 0
        least = self._least_clusters
        most = 1 if size < 1 else n_samples
        if least * size > most:
            clusters = "one cluster" if least == 1 else f"{least} clusters"
            raise InputError(
                f"min_cluster_size={size!r} is too large for {clusters} of "
                f"{n_samples:,} rows; give at most {most / least:.6g}."
            )

    @property
    def _request(self) -> Request:
        """What the parameters ask of the clusters."""
        return Request.of(
            self.n_clusters, self.min_cluster_size, self.kernel, self.metric
        )

    def _needs(self, rows: RowShape) -> FitNeeds:
        return search_needs(rows, self._request, self.metric, int(self.n_nodes))

"""The default estimator, which selects the best of several candidate partitions."""

import os
from copy import copy
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mmcnb._constraints import Choice, Interval, IntervalOr
from mmcnb._fit_warnings import Importance, warn
from mmcnb.choice.number import MARGIN_KERNELS, Request
from mmcnb.choice.read_known import read_known_rows
from mmcnb.choice.search import search
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession, connected
from mmcnb.errors import (
    AbsentError,
    EqualRowsError,
    InputError,
    numbered_columns,
)
from mmcnb.estimators.base import StreamedClusterer, label_rows
from mmcnb.estimators.given_rows import (
    chosen_columns,
    collecting_warnings,
    filling_gaps,
    read_input,
)
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
    """Clustering that selects the best-separated of several candidate partitions.

    A random sample of the rows, or all rows of a small data set, becomes the nodes of a
    nearest-neighbour graph. Three kinds of methods propose partitions of the nodes:
    community detection in the graph, a linkage along its shortest edges, and a maximum
    margin search by a support vector machine. The partition with the largest score J is
    selected. J is large if neighbouring nodes share a label and a gap separates the
    clusters. One pass over the data then labels every row by the vote of its nearest
    nodes, or by the support vector machine if its partition was selected.

    Parameters
    ----------
    n_clusters : None, "auto", int or pair of int, default=None
        Number of clusters, or a range such as (5, 30) from which the number is chosen.
        None and "auto" choose the number from the data. The result may be one cluster,
        which means that no structure was found.
    kernel : {"auto", "graph", "rbf", "linear"}, default="auto"
        Which candidates are compared. "graph" leaves out the support vector machine.
        "rbf" and "linear" use only the support vector machine, with a Gaussian or a
        linear kernel. "auto" compares all candidates, and tries the support vector
        machine only for two clusters.
    metric : {"euclidean", "cosine", "precomputed"}, default="euclidean"
        How rows are compared. "cosine" divides each row by its Euclidean norm. If all
        rows have norm 1, with either metric, they are compared in all columns.
        Otherwise, they are compared along their 50 leading principal axes, or up to 128
        axes for more than 25 clusters. With "precomputed", X is a sparse matrix with
        the distances from each row to its nearest rows of the fit. In this case, the
        fit can have at most 10^6 rows, and every row is a node.
    min_cluster_size : None, int or float, default=None
        Minimum size of a cluster, as a number of rows or, if below 1, as a share of the
        rows. A smaller cluster is merged into the cluster to which it is linked most.
        The limit applies only if the number of clusters is chosen from the data.
    noise : None, "auto" or float, default=None
        Which rows get the label -1 (noise). With None, every row is in a cluster.
        "auto" marks rows with an outlier score more than 3 robust deviations above the
        median of their own cluster, so that a wide cluster keeps its rows. A float
        between 0 and 1 marks about this share of the rows. A cluster that is not denser
        than its surroundings is labelled as noise as a whole, unless labels are known
        or the cluster has more rows than the requested share.
    n_nodes : int, default=20000
        Maximum number of nodes of the graph. If there are more rows, the nodes are a
        random sample of this size.
    scale : {"auto", "standard", None} or dict, default="auto"
        Scaling of the columns. "auto" makes columns comparable if their kinds or units
        differ, None uses them as they are, and "standard" divides each column by its
        standard deviation. A dict maps the names or numbers of columns to "log",
        "standard", None or a positive number; "auto" decides about columns that are not
        in the dict. A number is the distance between two categories of a text column or
        between the two values of a binary column. For other columns, it is the standard
        deviation of the scaled column.
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, equal to ``predict(X)``. Clusters are numbered from 0 in
        the order of their first rows, or as in the model ``like``.
    row_index_ : pandas.Index
        Index of the rows of ``labels_``: the index of a data frame, or the names or
        numbers of the rows in their file.
    n_clusters_ : int
        Number of clusters, as requested or as chosen from the data; 1 if no structure
        was found. Clusters that are labelled as noise as a whole are not counted. After
        ``fit(X, like=model)`` or `update`, cluster numbers without rows are not counted
        either.
    layers_ : DataFrame
        Partitions at different resolutions, at most five. The first row is the selected
        partition ("taken" is True), which need not be a cut of the merge tree. The
        other rows are cuts of the tree in the order of their "n_clusters".
        "persistence" counts the resolutions at which the partition was found,
        "smallest" is the approximate number of rows in its smallest cluster, and
        "agreement" is its adjusted Rand index with the selected partition.
    linkage_ : ndarray of shape (c - 1, 4)
        The merge tree in the format of SciPy's linkage matrix. Its c leaves are small
        groups of nodes, called pieces.
    piece_of_node_ : ndarray of shape (p,), int64
        Index of the leaf of the merge tree to which each of the p nodes belongs.
    outlier_score_ : ndarray of shape (n_samples,), float32
        Outlier score of each row, as returned by `score_outliers`. `update` sets this
        attribute, and `fit` sets it if ``noise`` is not None.
    candidate_ : str
        Name of the selected candidate.
    kernel_ : {"graph", "rbf", "linear"}
        Method that labels the rows: "graph" is the vote of the nodes; "rbf" and
        "linear" are the support vector machine with this kernel.
    objective_ : float
        Score J = 4 MI / log k + gap of the selected partition of the nodes; see
        `partition_score`.
    history_ : DataFrame
        One row for each of the stages "graph", "choice" and "labels", with the seconds
        since the start of the fit, and one row for each sweep of a candidate.
    report_ : dict
        Details of the fit. "sizes" lists the number of rows in each cluster. With
        ``noise``, "noise" is the number of rows labelled -1, and "dropped" lists the
        clusters that were labelled as noise as a whole, each with its approximate
        "share" of the rows and the "reason". "candidates" lists the candidates in
        decreasing order of J, each with its name, J and the two terms of J, the shares
        of the clusters, the share of the known labels that it contradicts, and the
        seconds it took. "left_out" states why other candidates were not compared.
        "number" contains the reason for the number of clusters, and the next best
        number. "layers" contains the rows of ``layers_``. "trust" is a dict with the
        "level" ("low", "medium" or "high"), the "reason", the "agreement", and the
        "columns" that determine the clusters on their own. If there are such columns,
        "without" contains the "n_clusters" and the "agreement" of a search without
        them. "gaps" has an entry for each column with missing values, estimated from at
        most 1,000 rows: the "column", the "share" of missing values, and this share in
        each of the "clusters". "scaling" states why columns were scaled or not, and
        "columns" states how. After a fit with ``like`` or an `update`, "changes" has an
        entry for each cluster number that has rows before or after: the "number", the
        "change" ("kept", "split", "merged", "new" or "gone"), and the numbers of rows
        "before" (in the earlier model) and "after".
    cluster_sizes_ : ndarray of shape (k,)
        The "sizes" of ``report_``.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns of the fit, and their names if they have any.

    See Also
    --------
    partition_score : J of any partition, from mmcnb or from another program.
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

    @collecting_warnings
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

        If some labels are known, candidates that contradict clearly more known labels
        than another candidate are excluded, and the remaining candidate with the
        largest J is selected. If labels of all clusters are known, they also provide an
        additional candidate.

        Parameters
        ----------
        X : {rows}
            The rows.
        y : None
            Ignored, even if it contains labels; exists for compatibility with
            scikit-learn.
        sample_weight : {weights}
            Weight of each row. A row of weight 2 counts as two equal rows. Only the
            proportions of the weights matter.
        partial_labels : array-like of shape (n_samples,), dict or None, default=None
            Known labels: an array of nonnegative integers, with -1 for rows whose label
            is not known, or a dict that maps row numbers to labels. Row numbers are
            positions in X, even if rows with missing values are left out. Known labels
            only determine which rows belong together; the clusters are still numbered
            in the order of their first rows.
        {element}
        columns : {None, "auto", "all"}, list of str or int, or plan, default=None
            Columns of a data frame or a table to use, by name or number. None and
            "auto" leave out text columns with many different values, dates, row
            numbers, identifiers and empty columns. "all" also uses these columns. A
            plan of `mmcnb.table_plan` sets all table options.
        keep : list of str or int, default=None
            Columns of a data frame or a table to use even though "auto" would leave
            them out.
        like : estimator or None, default=None
            An earlier model: a clusterer that was fitted to rows with the same columns.
            Each cluster that matches a cluster of the earlier model gets the number of
            that cluster; all other clusters get new numbers. ``report_["changes"]``
            lists the changes of all clusters.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If the rows, the known labels or a parameter are invalid, or if ``like`` is
            not a fitted model of rows with these columns.

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
        self.__dict__.pop("outlier_score_", None)  # scores of an earlier fit
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
        """Return the outlier scores of the rows of the fit."""
        if self.model_.graph is None:  # all rows are equal
            return np.zeros(samples.n_samples, np.float32)
        features, _ = self.model_.labelling(samples, of_nodes=True)
        return self._run(DecisionPass(OutlierScores()), features, "outlier scores")

    @collecting_warnings
    @filling_gaps
    def update(self, X: object, *, element: str | None = None) -> Self:
        """Update the model with new rows, without reading the earlier rows again.

        Clusters keep their numbers. If the new rows are distributed among the nodes as
        the earlier rows were, they are labelled, and the model does not change.
        Otherwise, some of the new rows become nodes, and all nodes are clustered again.
        The axes of the nodes do not change. Groups of new rows that do not belong to
        any earlier cluster become new clusters. If the range of ``n_clusters`` does not
        allow more clusters, the model does not change, and a warning states how many
        rows are in such groups. The earlier clusters are kept unless a partition with
        at least as many clusters is clearly better. Once the model has changed, rows
        are labelled by the vote of the nodes, even if a support vector machine labelled
        them before.

        If ``checkpoint`` is set to a folder that no other fit uses, an interrupted
        update resumes from its checkpoint.

        Parameters
        ----------
        X : {rows}
            The new rows, with the columns of the fit. They are read block by block.
        {element}

        Returns
        -------
        self
            The updated estimator. ``labels_``, ``row_index_`` and ``outlier_score_``
            now describe the new rows only. The sizes in ``report_`` count the earlier
            and the new rows, and ``report_["changes"]`` is as after
            ``fit(X, like=model)``.

        Warns
        -----
        ClusterWarning
            If rows are far from all clusters and do not form a new cluster (the trust
            is then at most "medium"), if earlier clusters have changed, or if most new
            rows are in new clusters, for example because the data have drifted.
            ``report_["warnings"]`` contains the messages.

        Raises
        ------
        InputError
            If the rows do not have the columns of the fit. Models in which a support
            vector machine labels the rows also raise an error if the new rows are
            distributed differently and ``kernel`` is "rbf" or "linear", or if no new
            row is near the nodes, so that the vote of the nodes cannot replace the
            machine. After an error, the model is unchanged.

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
                "update is not possible with a precomputed metric, or if all rows of "
                "the fit are equal; fit all rows with fit(X, like=model)."
            )
        samples = read_input(self, X, reset=False, element=element)
        # All attributes are set at once, so that a failed update changes nothing.
        self.__dict__.update(updated(self, samples))
        self._row_index = row_index_of(X, samples)
        for sentence in self.report_["warnings"]:
            warn(sentence, Importance.CLUSTERS)
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

        `predict` returns the cluster with the largest probability.

        If the nodes vote, the probability of a cluster is its share of the votes of the
        nearest nodes. If a support vector machine labels the rows, the probabilities
        are the softmax of the scores, in units of the margin. With more than 4,096
        nodes, a row whose nearest node is deep inside a cluster gets probability 1 for
        this cluster without a vote, which is much faster.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit, which are read block by block.
        out : path or None, default=None
            Path of a new store, to which the probabilities are written block by block;
            `open_samples` opens it.
        exact : bool, default=False
            Whether to count the votes also for rows deep inside a cluster. If clusters
            overlap, the most probable cluster then differs from the result of `predict`
            for a few rows in a thousand.
        {element}

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), float64, or None
            Probabilities, which sum to 1 in each row; None if they were written to
            ``out``.

        Raises
        ------
        InputError
            If the probabilities need more memory than the limit allows. Pass ``out`` to
            write them to a store.

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
        """Return the probabilities of `predict_proba`, for use in pipelines.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit, which are read block by block.
        {element}

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), float64
            Probabilities, as a data frame if `set_output` was called to request it.

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
        """Return the outlier score of each row, from its distance to the nodes.

        The score is the logarithm of the distance to the tenth nearest node, minus an
        offset. The offset is a weighted mean of two medians of this logarithm: the
        median over all nodes, and the median over the nodes in the cluster of the
        nearest node. The median over the cluster has weight 0.5 if the cluster contains
        10 % of the nodes, and a larger weight if the cluster is larger. If the cluster
        contains less than 1 % of the nodes, 2 is added to the score. In small clusters
        that the fit found by an explicit search for them, the offset is the median over
        the cluster.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit, which are read block by block.
        out : path or None, default=None
            Path of a new store with one column, to which the scores are written block
            by block.
        {element}

        Returns
        -------
        ndarray of shape (n_samples,), float32, or None
            Scores, which are larger for rows farther out; None if they were written to
            ``out``.

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
        """Return the cluster of each row, in the selected partition or another layer.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit, which are read block by block.
        out : path or None, default=None
            Path of a new file, which is written block by block. If the path ends with
            ``.csv`` or ``.parquet``, the file is a table with the columns of `to_frame`
            and the number or name of each row. Otherwise, it is a Zarr array.
        layer : int, "all" or None, default=None
            Index of a row of ``layers_``. The clusters of a layer are numbered from the
            largest to the smallest. None uses the selected partition. "all" adds a
            column for each layer to the table ``out``, and requires such a table.
        {element}

        Returns
        -------
        ndarray of shape (n_samples,), int32, or None
            Labels, with -1 for noise; None if they were written to ``out``.

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
                "layer='all' needs a table for its columns; pass a path that ends with "
                ".csv or .parquet as out."
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
        if isinstance(rule, NodeRule):  # the features of this rule include the scores
            sweep = ClusterColumnsPass(rule, probabilities, scores)
            return [(sweep, features)], names
        of_nodes, _ = self.model_.labelling(samples, of_nodes=True)
        sweep = ClusterColumnsPass(rule, probabilities)
        return [(sweep, features), (OutlierColumnPass(scores), of_nodes)], names

    @filling_gaps
    def labels_at(
        self, X: object, n_clusters: int, *, element: str | None = None
    ) -> np.ndarray:
        """Return the cluster of each row in the tree cut with ``n_clusters`` clusters.

        The cuts for different numbers of clusters are nested. They do not require a new
        fit, because the model stores the merge tree. The cut with ``n_clusters_``
        clusters may differ from ``labels_``, which come from the best of several
        candidates.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit, which are read block by block.
        n_clusters : int
            Number of clusters, at most the number of leaves of ``linkage_``.
        {element}

        Returns
        -------
        ndarray of shape (n_samples,), int32
            Cluster of each row. Clusters are numbered from the largest to the smallest.
        """
        Interval(1, self._tree.n_pieces, integer=True).check("n_clusters", n_clusters)
        layer = self._tree.cluster_of_piece(int(n_clusters))
        return np.asarray(self._labels(X, None, element, layer=layer))

    @property
    def _tree(self) -> MergeTree:
        """Merge tree of the nodes of the fit."""
        check_is_fitted(self, "model_")
        nodes = self.model_.graph
        if nodes is None:
            raise AbsentError(
                "this model has no merge tree because all rows of its fit are equal; "
                "fit rows that differ."
            )
        return nodes.tree

    @property
    def linkage_(self) -> np.ndarray:
        """Merge tree in the format of SciPy's linkage matrix."""
        return self._tree.linkage()

    @property
    def piece_of_node_(self) -> np.ndarray:
        """Index of the leaf of the merge tree to which each node belongs."""
        return self._tree.piece_of_node

    @property
    def layers_(self) -> "pd.DataFrame":
        """Partitions at different resolutions; see the attributes of the class."""
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
                f"min_cluster_size={self.min_cluster_size!r} applies only if the "
                f"number of clusters is chosen, but n_clusters={self.n_clusters!r}; "
                "drop one."
            )
        is_precomputed = self.metric == "precomputed"
        if is_precomputed and (
            self.kernel in MARGIN_KERNELS or self.scale not in (None, "auto")
        ):
            raise InputError(
                f"metric='precomputed' cannot be combined with kernel={self.kernel!r} "
                f"and scale={self.scale!r}; pass kernel='graph' and scale=None."
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
                f"{n_samples:,} rows; pass at most {most / least:.6g}."
            )

    @property
    def _request(self) -> Request:
        """The requested clusters, as specified by the parameters."""
        return Request.of(
            self.n_clusters, self.min_cluster_size, self.kernel, self.metric
        )

    def _needs(self, rows: RowShape) -> FitNeeds:
        return search_needs(rows, self._request, self.metric, int(self.n_nodes))

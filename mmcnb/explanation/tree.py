"""Grow a shallow decision tree that predicts the clusters of most rows.

scikit-learn grows the tree on a sample. Its thresholds are then rounded to few digits,
splits that add few correctly predicted rows are removed, and all rows are counted by
leaf.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from mmcnb.explanation.conditions import BINARY, Column, Condition, Term, columns_of
from mmcnb.explanation.groups import Groups, Sample
from mmcnb.explanation.rules import SearchRows, close_range
from mmcnb.explanation.sentences import cluster_title, percent, short_name
from mmcnb.explanation.summary import MOST_COLUMNS, Means
from mmcnb.samples import Samples
from mmcnb.samples.matrix import Block, Matrix, as_matrix

MOST_LEVELS = 4
MORE_LEAVES = 4  # number of leaves in addition to one for each cluster
# For each additional leaf, splits must increase the number of correctly predicted rows
# by at least LEAST_GAIN times the number of all rows, and by LEAST_DEVIATIONS times the
# standard deviation of this number. With random labels, even the best of many splits
# seldom achieves this increase.
LEAST_GAIN = 0.01
LEAST_DEVIATIONS = 3.0
# Accepted increase in the weighted Gini impurity for a threshold with fewer digits,
# relative to the weight of the rows of the split.
LOST_BY_ROUNDING = 0.002


class Split(NamedTuple):
    """A column and a threshold that divide rows into two sides.

    Attributes
    ----------
    column : Column
        Column whose values are compared with the threshold.
    threshold : float
        Upper bound of the values on the low side. Infinity separates known values from
        missing values.
    missing_is_low : bool
        Whether missing values are on the low side.
    """

    column: Column
    threshold: float
    missing_is_low: bool

    def is_low(self, values: np.ndarray) -> np.ndarray:
        """Return a boolean mask of the values on the low side of the split."""
        return np.where(
            np.isnan(values), self.missing_is_low, values <= self.threshold
        ).astype(bool)


class Branch(NamedTuple):
    """Condition that selects the rows on one side of a split."""

    split: Split
    is_low: bool
    has_gaps: bool  # whether rows with a missing value follow this branch

    @property
    def _condition(self) -> Condition:
        column, threshold, _ = self.split
        if self.is_low:
            return Condition(column, high=threshold)
        return Condition(column, low=threshold)

    @property
    def _divides_gaps(self) -> bool:
        return bool(np.isinf(self.split.threshold))

    @property
    def _is_negated(self) -> bool:
        """Whether the condition excludes a category, as in "payment is not invoice"."""
        return self.is_low and self.split.column.kind == "text"

    def terms(self) -> list[Term]:
        """Return the condition of the branch in machine-readable form."""
        name = self.split.column.name
        if self._divides_gaps:
            return [Term(name, "is not" if self.is_low else "is", "missing")]
        if self._is_negated:
            terms = [Term(name, "!=", self.split.column.category or "missing")]
        else:
            terms = list(self._condition.terms())
        if self.has_gaps:
            return [
                Term(name, f"{term.operator} or missing", term.value) for term in terms
            ]
        return terms

    def __str__(self) -> str:
        """Return the condition of the branch as text."""
        column = self.split.column
        name = short_name(column.name)
        if self._divides_gaps:
            return f"{name} is {'not ' if self.is_low else ''}missing"
        text = str(self._condition)
        if self._is_negated:
            text = f"{name} is not {short_name(column.category or 'missing')}"
        return f"{text} or is missing" if self.has_gaps else text


@dataclass(frozen=True, eq=False)
class Node:
    """A node of the tree, which is a leaf or has a split with two sides.

    Attributes
    ----------
    weights : ndarray of shape (k,)
        Total weight of the rows of each cluster in the node. The weights of all sampled
        rows except noise sum to their number.
    split : Split or None
        Split of the node, or None for a leaf.
    sides : tuple of Node
        Nodes on the low and the high side of the split; empty for a leaf.
    """

    weights: np.ndarray
    split: Split | None = None
    sides: tuple["Node", ...] = ()

    @property
    def nodes(self) -> list["Node"]:
        """The node and all its descendants, in preorder."""
        return [self, *(node for side in self.sides for node in side.nodes)]

    @property
    def leaves(self) -> list["Node"]:
        """The leaves among the node and its descendants."""
        return [node for node in self.nodes if node.split is None]

    def pruned(self, least_gain: float) -> "Node":
        """Return the node without splits that add too few correctly predicted rows.

        ``least_gain`` is the minimum number of correctly predicted rows that each
        additional leaf must add.
        """
        if self.split is None:
            return self
        sides = tuple(side.pruned(least_gain) for side in self.sides)
        node = Node(self.weights, self.split, sides)
        n_rows = self.weights.sum()
        named = min(n_rows, sum(leaf.weights.max() for leaf in node.leaves))
        gain = named - self.weights.max()
        deviation = np.sqrt(named * (n_rows - named) / n_rows)  # of a binomial variable
        least = max(least_gain, LEAST_DEVIATIONS * deviation)
        if gain < least * (len(node.leaves) - 1):
            return Node(self.weights)
        return node


class TreeCounts(NamedTuple):
    """Numbers of rows that reach the nodes of a tree.

    Attributes
    ----------
    rows : ndarray of shape (n_nodes, k)
        Number of rows of each cluster that reach each node, in the order of
        `Node.nodes`.
    gaps : ndarray of shape (n_nodes,)
        Number of rows that reach the node and have a missing value in the column of its
        split; 0 for leaves.
    """

    rows: np.ndarray
    gaps: np.ndarray


@dataclass(frozen=True)
class TreePass:
    """A pass that counts the rows of each cluster that reach each node of a tree.

    Parameters
    ----------
    tree : Node
        Root of the tree.
    codes : ndarray of shape (n,)
        For each row, the index of its cluster.
    n_clusters : int
        Number of clusters, k, including noise.
    """

    tree: Node
    codes: np.ndarray
    n_clusters: int

    def block(self, rows: Block, start: int, stop: int) -> TreeCounts:
        """Return the counts for one block."""
        return self.counts(as_matrix(rows), self.codes[start:stop])

    def combine(self, total: TreeCounts, other: TreeCounts) -> TreeCounts:
        """Add the counts for two ranges of rows."""
        return TreeCounts(total.rows + other.rows, total.gaps + other.gaps)

    def counts(self, X: Matrix, codes: np.ndarray) -> TreeCounts:
        """Return the counts for rows ``X`` with cluster indices ``codes``."""
        rows_of_nodes: list[np.ndarray] = []
        gaps_of_nodes: list[int] = []

        def follow(node: Node, rows: np.ndarray) -> None:
            rows_of_nodes.append(np.bincount(codes[rows], minlength=self.n_clusters))
            if node.split is None:
                gaps_of_nodes.append(0)
                return
            values = node.split.column.values_of(X)[rows]
            gaps_of_nodes.append(int(np.isnan(values).sum()))
            is_low = node.split.is_low(values)
            low, high = node.sides
            follow(low, rows[is_low])
            follow(high, rows[~is_low])

        follow(self.tree, np.arange(codes.size))
        return TreeCounts(np.array(rows_of_nodes), np.array(gaps_of_nodes))


@dataclass(frozen=True, eq=False, repr=False)
class ClusterTree:
    """A shallow decision tree that predicts clusters, as an alternative to rules.

    The tree has up to four levels of conditions. Each row is in exactly one leaf, and
    each leaf predicts the most frequent cluster of its rows. Printing the tree shows
    the conditions as indented text. `Explanation.tree` is an instance of this class.

    Attributes
    ----------
    leaves : DataFrame
        One row per leaf. "path" is the path from the root as text, such as "orders > 12
        and payment is not invoice". "conditions" is the path as a list of tuples of a
        name, an operator and a value; if missing values also meet a condition, its
        operator ends with "or missing". "cluster" is the cluster that the leaf
        predicts, "rows" is the number of rows in the leaf, "share" is their share of
        all rows, and "precision" is the share of the rows in the leaf that are in the
        predicted cluster. All rows are counted, including noise.
    accuracy : float
        Share of the rows, except noise, for which the tree predicts the correct
        cluster.
    text : str
        Conditions of the tree as indented text.
    """

    leaves: pd.DataFrame
    accuracy: float
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as a dict that JSON can represent.

        The keys are "accuracy", "text" and "leaves" (a list of dicts, one per leaf).
        """
        leaves = self.leaves.astype(object).to_dict("records")
        return {"accuracy": self.accuracy, "text": self.text, "leaves": leaves}

    def __str__(self) -> str:
        """Return the conditions of the tree as indented text."""
        return self.text

    __repr__ = __str__


def find_tree(
    samples: Samples, groups: Groups, means: Means, sample: Sample
) -> Node | None:
    """Grow a tree on a sample, and return its root.

    Parameters
    ----------
    samples : Samples
        All rows.
    groups : Groups
        Cluster of each row.
    means : Means
        Means and effects of the columns. Only the 50 columns with the largest effects
        are used.
    sample : Sample
        Sample on which the tree is grown.

    Returns
    -------
    Node or None
        Root of the tree. None if there is only one cluster, if there are more than 50
        columns that have no names or are sparse, or if no split separates the clusters.
    """
    columns = _readable_columns(samples, means)
    if groups.known.size < 2 or not columns:
        return None
    is_known = np.isin(sample.codes, groups.known)
    rows = SearchRows.of_sample(columns, sample)
    # scikit-learn converts values to float32. Ranks are exact in float32, but values
    # may not be.
    ranks = np.full(rows.values.shape, np.nan, np.float32)
    distinct = []
    for place, values in enumerate(rows.values.T):
        answers = ~np.isnan(values)
        different, of_rows = np.unique(values[answers], return_inverse=True)
        ranks[answers, place] = of_rows
        distinct.append(different)
    used = np.flatnonzero([different.size > 0 for different in distinct])
    if not used.size:
        return None
    classifier = DecisionTreeClassifier(
        max_depth=MOST_LEVELS,
        max_leaf_nodes=groups.known.size + MORE_LEAVES,
        random_state=0,
    )
    classifier.fit(
        ranks[is_known][:, used], rows.codes[is_known], rows.weights[is_known]
    )
    n_rows = np.count_nonzero(is_known)
    weights = rows.weights * (n_rows / rows.weights[is_known].sum())
    rows = replace(rows, weights=weights)
    grown = _Grown(rows, groups.counts.size, classifier.tree_, used, distinct)
    root = grown.node(0, np.flatnonzero(is_known))
    root = root.pruned(LEAST_GAIN * n_rows)
    return None if root.split is None else root


def _readable_columns(samples: Samples, means: Means) -> list[Column]:
    """Return the columns that the tree may use in splits.

    These are all columns or, if the rows have more than 50 features, those with the 50
    largest effects. The result is empty if such wide rows are sparse or have no column
    names.
    """
    columns = columns_of(samples)
    places = np.arange(len(columns))
    if len(columns) > MOST_COLUMNS:
        has_names = samples.feature_names is not None
        if samples.encoding is not None:
            has_names = samples.encoding.has_names
        if samples.is_sparse or not has_names:
            return []
        effects = np.nan_to_num(np.abs(means.effect)).max(axis=0).round(9)
        places = np.sort(np.argsort(-effects, kind="stable")[:MOST_COLUMNS])
    return [column for place in places if (column := columns[place]) is not None]


class _Grown(NamedTuple):
    """A tree that scikit-learn has grown on the ranks of the values.

    Attributes
    ----------
    rows : SearchRows
        Rows of the sample.
    n_clusters : int
        Number of clusters, including noise.
    tree : sklearn.tree._tree.Tree
        Tree that scikit-learn has grown.
    used : ndarray of int
        For each feature of ``tree``, the index of its column in ``rows``.
    distinct : list of ndarray
        For each column of ``rows``, its distinct values in ascending order.
    """

    rows: SearchRows
    n_clusters: int
    tree: Any
    used: np.ndarray
    distinct: list[np.ndarray]

    def node(self, number: int, rows: np.ndarray) -> Node:
        """Convert a node of ``tree`` and its descendants, and round their thresholds.

        Parameters
        ----------
        number : int
            Index of the node in ``tree``.
        rows : ndarray of int
            Indices of the rows that reach the node.
        """
        codes = self.rows.codes[rows]
        weights = self.rows.weights[rows]
        by_cluster = np.bincount(codes, weights, minlength=self.n_clusters)
        low = self.tree.children_left[number]
        high = self.tree.children_right[number]
        if low == high:
            return Node(by_cluster)
        place = self.used[self.tree.feature[number]]
        values = self.rows.values[rows, place]
        split = self._short_split(number, place, values, codes, weights)
        is_low = split.is_low(values)
        if is_low.all() or not is_low.any():
            return Node(by_cluster)
        sides = (self.node(low, rows[is_low]), self.node(high, rows[~is_low]))
        return Node(by_cluster, split, sides)

    def _short_split(
        self,
        number: int,
        place: int,
        values: np.ndarray,
        codes: np.ndarray,
        weights: np.ndarray,
    ) -> Split:
        """Return the split of a node, with its threshold rounded to few digits.

        The rounded threshold adds little impurity.
        """
        column = self.rows.columns[place]
        missing_is_low = bool(self.tree.missing_go_to_left[number])
        distinct = self.distinct[place]
        rank = self.tree.threshold[number]
        if rank >= distinct.size - 1:
            return Split(column, np.inf, missing_is_low=False)
        bound = float(distinct[max(int(rank), 0)])
        cuts = _Cuts.of_rows(values, codes, weights, missing_is_low)
        threshold = cuts.short_threshold(column, bound)
        return Split(column, threshold, missing_is_low)


class _Cuts(NamedTuple):
    """Possible thresholds of a split on a column, and the resulting impurities.

    Attributes
    ----------
    values : ndarray of shape (v,)
        Distinct values of the column, in ascending order.
    impurity : ndarray of shape (v - 1,)
        Weighted Gini impurity of the two sides for a threshold at each value except the
        last.
    tolerance : float
        Impurity that a threshold with fewer digits may add.
    """

    values: np.ndarray
    impurity: np.ndarray
    tolerance: float

    @classmethod
    def of_rows(
        cls,
        values: np.ndarray,
        codes: np.ndarray,
        weights: np.ndarray,
        missing_is_low: bool,
    ) -> "_Cuts":
        """Return the possible thresholds of a column, given its value in each row.

        Missing values are NaN.
        """
        is_gap = np.isnan(values)
        order = np.argsort(values, kind="stable")[: np.count_nonzero(~is_gap)]
        known = values[order]
        lasts = np.flatnonzero(known[1:] != known[:-1])
        of_low = np.zeros((2, lasts.size))  # weight, and sum of squared weights
        of_high = np.zeros((2, lasts.size))
        for code in np.unique(codes):
            of_cluster = np.where(codes == code, weights, 0.0)
            low = of_cluster[order].cumsum()[lasts]
            if missing_is_low:
                low = low + of_cluster[is_gap].sum()
            high = of_cluster.sum() - low
            of_low += low, low**2
            of_high += high, high**2
        # The impurity of each side is W - sum over clusters of w_c^2 / W.
        impurity = of_low[0] - of_low[1] / of_low[0]
        impurity += of_high[0] - of_high[1] / of_high[0]
        distinct = known[np.append(lasts, known.size - 1)]
        return cls(distinct, impurity, LOST_BY_ROUNDING * float(weights.sum()))

    def short_threshold(self, column: Column, bound: float) -> float:
        """Return a threshold with few digits near ``bound``.

        The threshold adds at most ``tolerance`` to the impurity.
        """
        place = int(np.searchsorted(self.values, bound, "right")) - 1
        if not 0 <= place < self.impurity.size:
            return bound
        is_close = self.impurity <= self.impurity[place] + self.tolerance
        first, last = close_range(is_close, place)
        least, most = self.values[[first, last + 1]].tolist()
        near = bound  # thresholds of columns with levels are not rounded
        if not column.levels:
            near = float(self.values[place : place + 2].mean())
        return column.threshold(least, most, near)


class _Leaf(NamedTuple):
    """A row of `ClusterTree.leaves`; see `ClusterTree` for the fields."""

    path: str
    conditions: list[tuple[Any, ...]]
    cluster: object
    rows: int
    share: float
    precision: float


class _Place(NamedTuple):
    """A node, and the branches on the path from the root to the node."""

    node: Node
    path: tuple[Branch, ...]


def _places(
    node: Node, gaps: dict[Node, int], path: tuple[Branch, ...] = ()
) -> Iterator[_Place]:
    """Yield a node and its descendants in the order in which they are printed.

    ``gaps`` contains the number of rows at each node in which the value of its split is
    missing.
    """
    yield _Place(node, path)
    if node.split is None:
        return
    low, high = node.sides
    split = node.split
    has_gaps = bool(gaps[node])
    sides = [
        (low, Branch(split, True, has_gaps and split.missing_is_low)),
        (high, Branch(split, False, has_gaps and not split.missing_is_low)),
    ]
    if split.column.kind in BINARY:  # presence comes before absence
        sides.reverse()
    for side, branch in sides:
        yield from _places(side, gaps, (*path, branch))


def counted_tree(tree: Node, counts: TreeCounts, groups: Groups) -> ClusterTree:
    """Return the `ClusterTree` that describes a tree, given its counts on all rows."""
    rows = dict(zip(tree.nodes, counts.rows, strict=True))
    gaps = dict(zip(tree.nodes, counts.gaps.tolist(), strict=True))
    n_rows = int(groups.counts.sum())
    leaves = []
    lines = []
    n_named = 0
    for node, path in _places(tree, gaps):
        if not path:
            continue
        line = f"{'  ' * (len(path) - 1)}{path[-1]}"
        if node.split is not None:
            lines.append(f"{line}:")
            continue
        of_clusters = rows[node]
        best = groups.known[int(np.argmax(of_clusters[groups.known]))]
        n_of_leaf = int(of_clusters.sum())
        leaf = _Leaf(
            path=" and ".join(map(str, path)),
            conditions=[tuple(term) for branch in path for term in branch.terms()],
            cluster=groups.clusters[best],
            rows=n_of_leaf,
            share=n_of_leaf / n_rows,
            precision=int(of_clusters[best]) / n_of_leaf,
        )
        leaves.append(leaf)
        lines.append(f"{line} → {_outcome(leaf)}")
        n_named += int(of_clusters[best])
    accuracy = n_named / int(groups.counts[groups.known].sum())
    lines.append(f"The tree names the cluster of {percent(accuracy)} of the rows.")
    return ClusterTree(
        leaves=pd.DataFrame(leaves, columns=_Leaf._fields),
        accuracy=accuracy,
        text="\n".join(lines),
    )


def _outcome(leaf: _Leaf) -> str:
    """Return the cluster that a leaf predicts, and its precision, as text."""
    title = cluster_title(leaf.cluster)
    name = f"{title[0].lower()}{title[1:]}"
    return f"{name} ({percent(leaf.precision)} of {leaf.rows:,} rows)"

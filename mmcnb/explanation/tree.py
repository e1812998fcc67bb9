"""Grow a shallow decision tree that predicts the clusters of most rows.

scikit-learn grows the tree on a sample. Its thresholds are then shortened, splits that
add few correctly predicted rows are removed, and the rows in each leaf are counted on
all rows.
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
# by at least this share of all rows, and by this multiple of the standard deviation of
# this number. The best of many splits of rows with random labels seldom gains as much.
LEAST_GAIN = 0.01
LEAST_DEVIATIONS = 3.0
# Accepted increase in the Gini impurity for a shorter threshold, as a share of the rows
# of the split.
LOST_BY_ROUNDING = 0.002


class Split(NamedTuple):
    """A column and a threshold that divide rows into two sides.

    Attributes
    ----------
    column : Column
        The column.
    threshold : float
        The largest value of the low side. Infinity separates values from gaps.
    missing_is_low : bool
        Whether missing values are on the low side.
    """

    column: Column
    threshold: float
    missing_is_low: bool

    def is_low(self, values: np.ndarray) -> np.ndarray:
        """Return which values are on the low side."""
        return np.where(
            np.isnan(values), self.missing_is_low, values <= self.threshold
        ).astype(bool)


class Branch(NamedTuple):
    """One side of a split, as a condition."""

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
        """Whether the branch means that a text does not have a category."""
        return self.is_low and self.split.column.kind == "text"

    def terms(self) -> list[Term]:
        """Return the branch in machine-readable form."""
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
        """Return the branch in words."""
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
    """A node of the tree, which is a leaf or a split with two sides.

    Attributes
    ----------
    weights : ndarray of shape (k,)
        Weight of the rows of each cluster, in units of rows of the sample.
    split : Split or None
        The split, or None for a leaf.
    sides : tuple of Node
        The low and the high side of the split; empty for a leaf.
    """

    weights: np.ndarray
    split: Split | None = None
    sides: tuple["Node", ...] = ()

    @property
    def nodes(self) -> list["Node"]:
        """The node and all nodes below it, with each node before its sides."""
        return [self, *(node for side in self.sides for node in side.nodes)]

    @property
    def leaves(self) -> list["Node"]:
        """The leaves below the node."""
        return [node for node in self.nodes if node.split is None]

    def pruned(self, least_gain: float) -> "Node":
        """Return the node without splits that gain too few correctly predicted rows."""
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
    """Numbers of rows in the nodes of a tree, counted on all rows.

    Attributes
    ----------
    rows : ndarray of shape (n_nodes, k)
        Number of rows of each cluster that reach each of `Node.nodes`.
    gaps : ndarray of shape (n_nodes,)
        Number of rows with a missing value in the column of the split; 0 for leaves.
    """

    rows: np.ndarray
    gaps: np.ndarray


@dataclass(frozen=True)
class TreePass:
    """A pass that counts the rows of each cluster that reach each node of a tree.

    Parameters
    ----------
    tree : Node
        The root.
    codes : ndarray of shape (n,)
        Index of the cluster of each row.
    n_clusters : int
        Number of clusters, k.
    """

    tree: Node
    codes: np.ndarray
    n_clusters: int

    def block(self, rows: Block, start: int, stop: int) -> TreeCounts:
        """Return the counts in one block."""
        return self.counts(as_matrix(rows), self.codes[start:stop])

    def combine(self, total: TreeCounts, other: TreeCounts) -> TreeCounts:
        """Add the counts of two ranges of rows."""
        return TreeCounts(total.rows + other.rows, total.gaps + other.gaps)

    def counts(self, X: Matrix, codes: np.ndarray) -> TreeCounts:
        """Return the counts for some rows."""
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
    the conditions as an indented text. `Explanation.tree` is a tree of this class.

    Attributes
    ----------
    leaves : DataFrame
        One row per leaf. "path" is the path from the root as text, such as "orders > 12
        and payment is not invoice", and "conditions" is this path as a list of tuples
        of a name, an operator and a value. "cluster" is the cluster that the leaf
        predicts, "rows" the number of rows in the leaf, "share" their share of all
        rows, and "precision" the share of the rows in the leaf that are in the cluster.
        All rows are counted, including noise. If missing values follow a branch, its
        operator ends with "or missing".
    accuracy : float
        Share of the rows, except noise, for which the tree predicts the correct
        cluster.
    text : str
        The indented text.
    """

    leaves: pd.DataFrame
    accuracy: float
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the accuracy, the text, and the leaves as a list of rows for JSON."""
        leaves = self.leaves.astype(object).to_dict("records")
        return {"accuracy": self.accuracy, "text": self.text, "leaves": leaves}

    def __str__(self) -> str:
        """Return the indented text."""
        return self.text

    __repr__ = __str__


def find_tree(
    samples: Samples, groups: Groups, means: Means, sample: Sample
) -> Node | None:
    """Grow a tree on a sample, and return its root.

    Parameters
    ----------
    samples : Samples
        The rows.
    groups : Groups
        The cluster of each row.
    means : Means
        Means of the columns. If there are more than 50 columns, the 50 columns with the
        largest effects are used.
    sample : Sample
        The sample.

    Returns
    -------
    Node or None
        The root. None if there is only one cluster, if there are more than 50 columns
        that have no names or are sparse, or if no split separates the clusters.
    """
    columns = _readable_columns(samples, means)
    if groups.known.size < 2 or not columns:
        return None
    is_known = np.isin(sample.codes, groups.known)
    rows = SearchRows.of_sample(columns, sample)
    # scikit-learn converts values to single precision, in which ranks are exact.
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
    """Return the columns for splits: all of them, or up to 50 that have names."""
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
        The sample.
    n_clusters : int
        Number of clusters, including noise.
    tree : sklearn.tree._tree.Tree
        The tree.
    used : ndarray of int
        The columns of the sample that were used to grow the tree.
    distinct : list of ndarray
        The distinct values of each column of the sample, by rank.
    """

    rows: SearchRows
    n_clusters: int
    tree: Any
    used: np.ndarray
    distinct: list[np.ndarray]

    def node(self, number: int, rows: np.ndarray) -> Node:
        """Return a node of the tree for the given rows, with short thresholds."""
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
        """Return a split with a short threshold that adds little impurity."""
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
    """All thresholds between the values of a column, and the resulting impurities.

    Attributes
    ----------
    values : ndarray of shape (v,)
        The distinct values, in ascending order.
    impurity : ndarray of shape (v - 1,)
        Weighted Gini impurity of the two sides for a threshold at each value except the
        last.
    tolerance : float
        Impurity that a shorter threshold may add.
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
        """Return the cuts of the values of some rows; NaN marks missing values."""
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
        """Return a threshold with few digits near a value."""
        place = int(np.searchsorted(self.values, bound, "right")) - 1
        if not 0 <= place < self.impurity.size:
            return bound
        is_close = self.impurity <= self.impurity[place] + self.tolerance
        first, last = close_range(is_close, place)
        least, most = self.values[[first, last + 1]].tolist()
        near = bound  # the levels of an order are not rounded
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
    """A node, and the branches that lead to it from the root."""

    node: Node
    path: tuple[Branch, ...]


def _places(
    node: Node, gaps: dict[Node, int], path: tuple[Branch, ...] = ()
) -> Iterator[_Place]:
    """Yield a node and all nodes below it in the order in which they are printed."""
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
    """Return the tree to show to users, with leaves counted on all rows."""
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

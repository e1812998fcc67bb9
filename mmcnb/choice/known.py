"""Known labels of rows: propagate them, or compare them with a partition."""

from dataclasses import dataclass, replace

import numpy as np

from mmcnb.graph.neighbours import NodeGraph

CHANCE = 0.05  # share contradicted by chance, in trials with 1 % of labels known
MOST_ROUNDS = 200  # each round propagates labels along one more edge


@dataclass(frozen=True)
class KnownRows:
    """Known labels of some rows.

    Parameters
    ----------
    rows : ndarray of shape (r,), int64
        Indices of the labelled rows in the data or in a sample, in ascending order.
    labels : ndarray of shape (r,), int64
        Class of each labelled row, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.known import KnownRows
    >>> known = KnownRows(np.array([0, 2]), np.array([1, 0]))
    >>> known.broken(np.array([0, 0, 1])), known.broken(np.array([0, 0, 0]))
    (0.0, 0.5)
    """

    rows: np.ndarray
    labels: np.ndarray

    def among(self, rows: np.ndarray) -> "KnownRows":
        """Return the known labels with row indices replaced by positions in ``rows``.

        ``rows`` must be in ascending order and contain all labelled rows.
        """
        return replace(self, rows=np.searchsorted(rows, self.rows))

    def broken(self, labels: np.ndarray) -> float:
        """Return the share of the known labels that a partition contradicts.

        Parameters
        ----------
        labels : ndarray of shape (m,), int64
            Cluster of every row of the data or of the sample. Clusters may be numbered
            in any order.

        Returns
        -------
        float
            Share from 0 to 1. Classes are matched one to one with clusters, such that
            the share is minimal. A label is contradicted if its row is not in the
            cluster that is matched with its class.
        """
        return _mismatched(self.labels, labels[self.rows]) / self.rows.size

    @property
    def tolerance(self) -> float:
        """Difference in `broken` that may be due to chance.

        It is the share of one label plus 0.05.
        """
        return 1 / self.rows.size + CHANCE

    @property
    def least_clusters(self) -> int:
        """Smallest number of clusters that these labels allow.

        It is the largest label plus 1, but at least 2.
        """
        return max(2, int(self.labels.max()) + 1)


def _mismatched(known: np.ndarray, clusters: np.ndarray) -> int:
    """Count the rows that are not in the cluster matched with their known class.

    Classes and clusters are matched one to one, such that this count is minimal.
    """
    from scipy.optimize import linear_sum_assignment

    k = int(max(known.max(initial=0), clusters.max(initial=0))) + 1
    counts = np.bincount(known * k + clusters, minlength=k * k).reshape(k, k)
    matching = linear_sum_assignment(counts, maximize=True)
    return int(known.size - counts[matching].sum())


def spread(graph: NodeGraph, known: KnownRows, n_clusters: int) -> np.ndarray | None:
    """Propagate the known labels to all nodes by votes of their neighbours.

    Votes are repeated until no label changes, but at most 200 times. Nodes with known
    labels keep them.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the nodes.
    known : KnownRows
        Known labels of rows of the sample.
    n_clusters : int
        Number of clusters, one for each class.

    Returns
    -------
    ndarray of shape (p,), int64, or None
        Cluster of each node; None if a class has no labelled node.
    """
    nodes, first = np.unique(graph.node_of[known.rows], return_index=True)
    fixed = known.labels[first]
    if np.unique(fixed).size != n_clusters:
        return None
    weights, _ = graph.edges()
    shares = np.zeros((graph.n_nodes, n_clusters))
    shares[nodes, fixed] = 1.0
    labels = np.full(graph.n_nodes, -1)
    for _ in range(MOST_ROUNDS):
        votes = weights @ shares
        voted = np.where(votes.max(axis=1) > 0, votes.argmax(axis=1), -1)
        voted[nodes] = fixed
        if (voted == labels).all():
            break
        labels = voted
        shares[:] = labels[:, None] == np.arange(n_clusters)
    return np.maximum(labels, 0)  # nodes that no label has reached get label 0


def held_out(graph: NodeGraph, known: KnownRows, n_clusters: int) -> float:
    """Return the share of known labels that cross-validation contradicts.

    In two folds, stratified by class, labels are propagated from one half of the known
    labels and compared with the other half.
    """
    in_half = np.zeros(known.rows.size, bool)
    for label in range(n_clusters):
        in_half[np.flatnonzero(known.labels == label)[::2]] = True
    n_broken = 0
    for is_out in (in_half, ~in_half):
        labels = known.labels[is_out]
        rest = KnownRows(known.rows[~is_out], known.labels[~is_out])
        of_nodes = spread(graph, rest, n_clusters)
        if of_nodes is None:
            n_broken += labels.size
        else:
            clusters = of_nodes[graph.node_of[known.rows[is_out]]]
            n_broken += _mismatched(labels, clusters)
    return n_broken / known.rows.size

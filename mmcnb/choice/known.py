"""Known labels of rows: spread them, or count the labels that a partition breaks."""

from dataclasses import dataclass, replace

import numpy as np

from mmcnb.graph.neighbours import NodeGraph

CHANCE = 0.05  # share of labels broken by chance, in trials with 1 % of the labels
MOST_ROUNDS = 200  # each round spreads labels along one more edge


@dataclass(frozen=True)
class KnownRows:
    """Known labels of some rows.

    Parameters
    ----------
    rows : ndarray of shape (r,), int64
        Row numbers in the data or in a sample, in ascending order.
    labels : ndarray of shape (r,), int64
        Class of each of these rows, from 0.

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
        """Return the labels with row numbers replaced by positions in ``rows``."""
        return replace(self, rows=np.searchsorted(rows, self.rows))

    def broken(self, labels: np.ndarray) -> float:
        """Return the share of the known labels that a partition breaks.

        Parameters
        ----------
        labels : ndarray of shape (m,), int64
            Cluster of every row of the data or of the sample. Clusters may be numbered
            in any order.

        Returns
        -------
        float
            Share from 0 (no label is broken) to 1. Classes are matched one to one with
            clusters. A label is broken if its row is not in the cluster that is matched
            with its class.
        """
        return _mismatched(self.labels, labels[self.rows]) / self.rows.size

    @property
    def tolerance(self) -> float:
        """Difference of broken shares that chance may cause: one label plus 0.05."""
        return 1 / self.rows.size + CHANCE

    @property
    def least_clusters(self) -> int:
        """Number of classes among the labels, at least two."""
        return max(2, int(self.labels.max()) + 1)


def _mismatched(known: np.ndarray, clusters: np.ndarray) -> int:
    """Count the rows outside the cluster that is matched with their label."""
    from scipy.optimize import linear_sum_assignment

    k = int(max(known.max(initial=0), clusters.max(initial=0))) + 1
    counts = np.bincount(known * k + clusters, minlength=k * k).reshape(k, k)
    matching = linear_sum_assignment(counts, maximize=True)
    return int(known.size - counts[matching].sum())


def spread(graph: NodeGraph, known: KnownRows, n_clusters: int) -> np.ndarray | None:
    """Spread the known labels to all nodes by neighbour votes until no label changes.

    Parameters
    ----------
    graph : NodeGraph
        Graph of the nodes.
    known : KnownRows
        Labels of rows of the sample.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    ndarray of shape (p,), int64, or None
        Cluster of each node; None if a cluster has no known row.
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
    return np.maximum(labels, 0)  # nodes that no label has reached still have -1


def held_out(graph: NodeGraph, known: KnownRows, n_clusters: int) -> float:
    """Return the share of labels that a partition spread from other labels breaks.

    The share is estimated by twofold cross-validation, stratified by class.
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

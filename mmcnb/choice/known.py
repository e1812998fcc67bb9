"""What is known of some rows: labels, and pairs that belong together or apart. It picks among partitions."""

from dataclasses import dataclass, replace

import numpy as np

from mmcnb.graph.neighbours import NodeGraph

CHANCE = 0.05  # of the labels, from trials with 1 % of them
MOST_SPREADS = 200  # rounds, in each of which labels reach the next nodes


@dataclass(frozen=True)
class KnownRows:
    """Labels of some rows, and pairs of rows that belong to one cluster or to two.

    Parameters
    ----------
    rows : ndarray of shape (r,), int64
        Numbers of the rows, rising; among all rows, or among those of a sample.
    labels : ndarray of shape (r,), int64
        Label of each of them, from 0; -1 where it is not known.
    pairs : ndarray of shape (q, 2), int64
        Places in ``rows``.
    together : ndarray of shape (q,), bool
        Whether the two of a pair belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.known import KnownRows
    >>> rows, labels = np.array([0, 2]), np.array([1, 0])
    >>> known = KnownRows(rows, labels, np.empty((0, 2), np.int64), np.empty(0, bool))
    >>> known.broken(np.array([0, 0, 1])), known.broken(np.array([0, 0, 0]))
    (0.0, 0.5)
    """

    rows: np.ndarray
    labels: np.ndarray
    pairs: np.ndarray
    together: np.ndarray

    def among(self, rows: np.ndarray) -> "KnownRows":
        """The same, its rows numbered by their places among some, which hold all of them."""
        return replace(self, rows=np.searchsorted(rows, self.rows))

    def broken(self, labels: np.ndarray) -> float:
        """Share of the labels and pairs that a partition breaks.

        Parameters
        ----------
        labels : ndarray of shape (m,), int64
            Clusters of all rows among which these are numbered; in any order.

        Returns
        -------
        float
            0 where all hold. A label holds where its row lies in the cluster matched with its class.
        """
        found = labels[self.rows]
        apart = found[self.pairs[:, 0]] != found[self.pairs[:, 1]]
        named = self.labels >= 0
        wrong = _mismatched(self.labels[named], found[named]) + int((apart == self.together).sum())
        return float(wrong / self.count)

    @property
    def count(self) -> int:
        """Labels and pairs."""
        return int(np.count_nonzero(self.labels >= 0) + self.together.size)

    @property
    def tolerance(self) -> float:
        """What may be chance between two broken shares: one label, and a twentieth of all."""
        return 1 / self.count + CHANCE

    @property
    def least_clusters(self) -> int:
        """The fewest clusters, at least two, that there are labels for."""
        return max(2, int(self.labels.max()) + 1)


def _mismatched(labels: np.ndarray, found: np.ndarray) -> int:
    """Rows outside the cluster that is matched with their label, under the best matching."""
    from scipy.optimize import linear_sum_assignment

    k = int(max(labels.max(initial=0), found.max(initial=0))) + 1
    counts = np.bincount(labels * k + found, minlength=k * k).reshape(k, k)
    return int(labels.size - counts[linear_sum_assignment(counts, maximize=True)].sum())


def spread(graph: NodeGraph, known: KnownRows, n_clusters: int) -> np.ndarray | None:
    """Labels of all nodes from the known ones, by votes of their neighbours until none changes.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    known : KnownRows
        Labels of rows of the sample.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    ndarray of shape (p,), int64, or None
        Labels; None if no row of some cluster has one.
    """
    named = known.labels >= 0
    nodes, first = np.unique(graph.node_of[known.rows[named]], return_index=True)
    fixed = known.labels[named][first]
    if np.unique(fixed).size != n_clusters:
        return None
    weights, shares = graph.edges()[0], np.zeros((graph.n_nodes, n_clusters))
    shares[nodes, fixed] = 1.0
    labels = np.full(graph.n_nodes, -1)
    for _ in range(MOST_SPREADS):
        votes = weights @ shares
        found = np.where(votes.max(axis=1) > 0, votes.argmax(axis=1), -1)
        found[nodes] = fixed
        if (found == labels).all():
            break
        labels = found
        shares[:] = labels[:, None] == np.arange(n_clusters)
    return np.maximum(labels, 0)


def held_out(graph: NodeGraph, known: KnownRows, labels: np.ndarray) -> float:
    """The share that a partition from labels breaks: of the labels of each half, from those of the other."""
    k = int(labels.max()) + 1
    classes = [np.flatnonzero(known.labels == one) for one in range(k)]
    named, of_rows = np.concatenate(classes), labels[graph.node_of]
    of_labels = _mismatched(known.labels[named], of_rows[known.rows[named]])
    wrong = known.broken(of_rows) * known.count - of_labels  # of pairs
    for first in (0, 1):
        half = np.concatenate([places[first::2] for places in classes])
        others = known.labels.copy()
        others[half] = -1
        found = spread(graph, replace(known, labels=others), k)
        if found is None:
            wrong += half.size
        else:
            wrong += _mismatched(known.labels[half], found[graph.node_of][known.rows[half]])
    return float(wrong / known.count)

"""Known labels of some rows: how many of them a partition breaks, and the partition that they give."""

from dataclasses import dataclass, replace

import numpy as np

from mmcnb.graph.neighbours import NodeGraph

CHANCE = 0.05  # of the labels, from trials with 1 % of them
MOST_SPREADS = 200  # rounds, in each of which labels reach the next nodes


@dataclass(frozen=True)
class KnownRows:
    """Labels of some rows.

    Parameters
    ----------
    rows : ndarray of shape (r,), int64
        Numbers of the rows, rising; among all rows, or among those of a sample.
    labels : ndarray of shape (r,), int64
        Label of each of them, from 0.

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
        """The same, its rows numbered by their places among some, which hold all of them."""
        return replace(self, rows=np.searchsorted(rows, self.rows))

    def broken(self, labels: np.ndarray) -> float:
        """Share of the known labels that a partition breaks.

        Parameters
        ----------
        labels : ndarray of shape (m,), int64
            Clusters of all rows among which these are numbered; in any order.

        Returns
        -------
        float
            0 where all hold. A label holds where its row lies in the cluster matched
            with its class.
        """
        return _mismatched(self.labels, labels[self.rows]) / self.rows.size

    @property
    def tolerance(self) -> float:
        """What may be chance between two broken shares: one label, and a twentieth of all."""
        return 1 / self.rows.size + CHANCE

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
    nodes, first = np.unique(graph.node_of[known.rows], return_index=True)
    fixed = known.labels[first]
    if np.unique(fixed).size != n_clusters:
        return None
    weights = graph.edges()[0]
    shares = np.zeros((graph.n_nodes, n_clusters))
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


def held_out(graph: NodeGraph, known: KnownRows, n_clusters: int) -> float:
    """Share of the known labels of each half that are broken by a partition from those of the other."""
    half = np.zeros(known.rows.size, bool)
    wrong = 0
    for one in range(n_clusters):
        half[np.flatnonzero(known.labels == one)[::2]] = True
    for out, kept in ((half, ~half), (~half, half)):
        found = spread(
            graph, KnownRows(known.rows[kept], known.labels[kept]), n_clusters
        )
        if found is None:
            wrong += int(out.sum())
        else:
            wrong += _mismatched(
                known.labels[out], found[graph.node_of][known.rows[out]]
            )
    return wrong / known.rows.size

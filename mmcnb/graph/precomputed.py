"""Precomputed neighbour graphs: only the distances between their nodes are known."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import coo_array, csr_array, csr_matrix

from mmcnb.errors import InputError
from mmcnb.graph.neighbours import LEAST_DISTANCE, N_LISTED, SCALE_NEIGHBOUR, NodeGraph
from mmcnb.graph.nodes import Matrix
from mmcnb.samples.matrix import CSRBlock, as_matrix

REMEDY = (
    "give a sparse matrix as returned by "
    "sklearn.neighbors.kneighbors_graph(rows, 25, mode='distance')"
)


@dataclass(frozen=True)
class Precomputed:
    """Row map and node search for rows that contain distances to some of p nodes.

    Parameters
    ----------
    n_features : int
        Number of nodes, p.
    distances : csr_array of shape (p, p) or None, default=None
        Known distances between the nodes, which only a fit needs.
    """

    n_features: int
    distances: csr_array = None
    nodes: ClassVar[None] = None  # only the distances between nodes are known

    def __call__(self, rows: Matrix | CSRBlock) -> csr_array:
        """Return rows as a csr_array of float64."""
        return csr_array(as_matrix(rows), dtype=np.float64)

    def beyond(self, rows: Matrix | CSRBlock, points: Matrix) -> np.ndarray:
        """Return zeros, because precomputed distances are not projected on axes."""
        return np.zeros(points.shape[0])

    def nearest(self, rows: csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices and distances of each row's nearest nodes, nearest first.

        Ties go to the node with the lower index. Raise InputError if a row has fewer
        than ``count`` distances or a negative distance.
        """
        entries = rows.tocoo()
        n_distances = np.diff(rows.indptr)
        is_short = n_distances.min(initial=count) < count
        if is_short or rows.data.min(initial=0) < 0:
            raise InputError(
                f"rows need {count} distances to rows of the fit, none of them "
                f"negative; {REMEDY}."
            )
        order = np.lexsort((entries.col, entries.data, entries.row))
        places = order[rows.indptr[:-1, None] + np.arange(count)]
        return rows.indices[places].astype(np.int64), rows.data[places]

    def lengths(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the distances between pairs of nodes.

        For a pair without a known distance, return twice the longest known distance.
        """
        both = self.distances.maximum(self.distances.T)
        lengths = np.ravel(csr_matrix(both)[starts, ends])
        return np.where(lengths > 0, lengths, 2 * both.max())


def given_graph(distances: csr_array, weights: np.ndarray | None = None) -> NodeGraph:
    """Build the neighbour graph of rows from precomputed distances.

    Parameters
    ----------
    distances : csr_array of shape (p, p)
        Distances of each row to at least its 7 nearest other rows. The diagonal is
        ignored.
    weights : ndarray of shape (p,) or None, default=None
        Positive weights of the rows. If None, all are 1.

    Returns
    -------
    NodeGraph
        The graph, in which each row is a node.

    Raises
    ------
    InputError
        If ``distances`` is not a square sparse matrix, has more than 1,000,000 rows,
        negative values or too few values in a row, or if all values are below 1e-6.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import kneighbors_graph
    >>> from mmcnb.graph.precomputed import given_graph
    >>> rows = np.random.RandomState(0).normal(size=(60, 2))
    >>> given_graph(kneighbors_graph(rows, 10, mode="distance")).numbers.shape
    (60, 10)
    """
    p = distances.shape[0]
    if not hasattr(distances, "indptr") and distances.shape[1] == p > 10:
        count = min(25, p - 1)
        raise InputError(
            f"X of shape {distances.shape} is dense, but metric='precomputed' expects "
            "a sparse matrix of the distances to the nearest rows; give "
            "sklearn.neighbors.kneighbors_graph("
            f"X, {count}, mode='distance', metric='precomputed')."
        )
    if not hasattr(distances, "indptr") or distances.shape[1] != p:
        raise InputError(
            f"X of shape {distances.shape} is not a sparse matrix of distances between "
            f"rows; {REMEDY}."
        )
    if p > 10**6:
        raise InputError(
            f"X has {p:,} rows, but a precomputed graph has at most 1,000,000; "
            "give the rows themselves."
        )
    entries = coo_array(distances)
    is_off_diagonal = entries.row != entries.col
    row = entries.row[is_off_diagonal]
    column = entries.col[is_off_diagonal]
    data = entries.data[is_off_diagonal]
    n_distances = np.bincount(row, minlength=p)
    _check_distances(row, column, data, n_distances)
    lengths = np.maximum(data, LEAST_DISTANCE).astype(np.float64)
    known = csr_array((lengths, (row, column)), shape=(p, p))
    nodes = Precomputed(p, known)
    numbers, nearest = nodes.nearest(known, min(N_LISTED, int(n_distances.min())))
    return NodeGraph(
        axes=nodes,
        search=nodes,
        sizes=np.ones(p) if weights is None else weights / weights.max(),
        node_of=np.arange(p),
        numbers=numbers,
        distances=nearest,
        is_unit=False,
    )


def _check_distances(
    row: np.ndarray, column: np.ndarray, data: np.ndarray, n_distances: np.ndarray
) -> None:
    """Raise InputError if a row has too few distances, or if a distance is invalid."""
    least = min(SCALE_NEIGHBOUR, n_distances.size - 1)
    if n_distances.min() < least:
        raise InputError(
            f"row {n_distances.argmin()} has {n_distances.min()} distances to other "
            f"rows, but {least} are needed; {REMEDY}."
        )
    place = data.argmin()
    if data[place] < 0:
        raise InputError(
            f"row {row[place]}, column {column[place]}: the value {data[place]:g} "
            f"is negative; {REMEDY}."
        )
    # Distances below LEAST_DISTANCE are raised to LEAST_DISTANCE, so very small
    # distances would become nearly equal.
    if data.max() < 1e6 * LEAST_DISTANCE:
        raise InputError(
            f"the largest distance is {data.max():g}, which is too small; "
            "multiply all distances by a number that makes it about 1."
        )

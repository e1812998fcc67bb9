"""Nodes known by the distances between them alone: a neighbour graph that is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import coo_array, csr_array, csr_matrix

from mmcnb.errors import InputError
from mmcnb.graph.neighbours import LEAST_DISTANCE, N_LISTED, SCALE_NEIGHBOUR, NodeGraph
from mmcnb.graph.nodes import check_fits
from mmcnb.graph.sparse_nodes import AllColumns
from mmcnb.samples.matrix import as_matrix

REMEDY = "give a sparse matrix as sklearn.neighbors.kneighbors_graph(rows, 25, mode='distance') makes it"


@dataclass(frozen=True)
class Precomputed:
    """Rows that are distances to the nearest of p nodes: what maps rows to nodes, and the search.

    Parameters
    ----------
    n_features : int
        Number of nodes, p.
    given : csr_array of shape (p, p) or None, default=None
        The distances between nodes that are known, of a fit.
    """

    n_features: int
    given: Any = None
    is_exact: ClassVar[bool] = True

    def arrays(self) -> dict[str, np.ndarray]:
        """The number of nodes, by name."""
        return {"shape": np.array([self.n_features])}

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray]) -> "Precomputed":
        """The search of its `arrays`."""
        check_fits("shape", arrays["shape"].shape == (1,))
        return cls(int(arrays["shape"][0]))

    def __call__(self, rows: Any) -> csr_array:
        """Rows as a csr_array of float64."""
        return csr_array(as_matrix(rows), dtype=np.float64)

    beyond = AllColumns.beyond  # zeros: a distance is of all columns

    def nearest(self, rows: csr_array, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Nearest nodes of rows, by rising distance; of equal distances the first node comes first."""
        found = np.diff(rows.indptr)
        if found.min(initial=count) < count or rows.data.min(initial=0) < 0:
            raise InputError(
                f"rows need {count} distances to rows of the fit, none below 0; {REMEDY}."
            )
        order = np.lexsort(
            (rows.indices, rows.data, np.repeat(np.arange(found.size), found))
        )
        places = order[rows.indptr[:-1, None] + np.arange(count)]
        return rows.indices[places].astype(np.int64), rows.data[places]

    def lengths(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Distances of pairs of nodes; of a pair that is not given, twice the longest one."""
        both = self.given.maximum(self.given.T)
        found = np.ravel(csr_matrix(both)[one, other])
        return np.where(found > 0, found, 2 * both.max())


def given_graph(distances: Any, weights: np.ndarray | None = None) -> NodeGraph:
    """The neighbour graph of rows whose nearest neighbours are given.

    Parameters
    ----------
    distances : csr_array of shape (p, p)
        Distances of each row to its nearest other rows, 7 at least; entries of the
        diagonal do not count.
    weights : ndarray of shape (p,) or None, default=None
        Weights of the rows, positive; None is 1 each.

    Returns
    -------
    NodeGraph
        Each row is a node.

    Raises
    ------
    InputError
        If these are no distances between rows, or too few, or all are below 1e-6.

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
    if not hasattr(distances, "indptr") or distances.shape[1] != p:
        raise InputError(
            f"X of shape {distances.shape} is no sparse matrix of rows by rows; {REMEDY}."
        )
    if p > 10**6:
        raise InputError(
            f"X has {p:,} rows, and a graph at most 1,000,000; give the rows themselves."
        )
    entries = coo_array(distances)
    others = entries.row != entries.col
    row, column, data = (
        part[others] for part in (entries.row, entries.col, entries.data)
    )
    found = np.bincount(row, minlength=p)
    least = min(SCALE_NEIGHBOUR, p - 1)
    if found.min() < least:
        fault = f"row {found.argmin()} has {found.min()} distances to other rows, of {least} needed"
        raise InputError(f"{fault}; {REMEDY}.")
    if data[at := data.argmin()] < 0:
        raise InputError(
            f"row {row[at]}, column {column[at]} is {data[at]:g}; {REMEDY}."
        )
    if data.max() < 1e6 * LEAST_DISTANCE:  # all would be nearly equal
        raise InputError(
            f"the largest distance is {data.max():g}; multiply all of them, up to about 1."
        )
    lengths = np.maximum(data, LEAST_DISTANCE).astype(np.float64)
    search = Precomputed(p, csr_array((lengths, (row, column)), shape=(p, p)))
    nearest = search.nearest(search.given, min(N_LISTED, int(found.min())))
    sizes = np.ones(p) if weights is None else weights / weights.max()
    return NodeGraph(search, search, sizes, np.arange(p), *nearest, is_unit=False)

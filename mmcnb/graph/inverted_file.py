"""Inverted-file index that finds the nodes nearest to a row."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mmcnb.graph.nodes import Each, Matrix, Result, finite
from mmcnb.graph.sparse_nodes import SparseSearch
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples.matrix import WORK_NUMBERS

# Up to this number of nodes, scanning all nodes is faster than scanning a few cells.
SEARCHED_NODES = 4096
# To choose `n_probes`, the recall of an index is measured when it is built, on about
# CHECKED_ROWS nodes and at least CHECKED_NEIGHBOURS neighbours of each node.
CHECKED_ROWS = 2000
CHECKED_NEIGHBOURS = 10
LEAST_RECALL = 0.995
SHARED_ROWS = 1024  # rows per task of a thread


@dataclass(frozen=True)
class InvertedFileIndex:
    """Inverted-file index: nodes are grouped in cells, and a query scans few cells.

    Parameters
    ----------
    nodes : ndarray of shape (p, c)
        The nodes, ordered by cell.
    starts : ndarray of shape (cells + 1,), int64
        Index of the first node of each cell, followed by p.
    centres : ndarray of shape (cells, c)
        Mean of the nodes in each cell.
    n_probes : int
        Number of nearest cells that a query scans. If a query scans all cells, the
        search is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.inverted_file import exact_index
    >>> exact_index(np.array([[0.0], [1.0], [5.0]])).nearest(np.array([[4.0]]), 2)[0]
    array([[2, 1]])
    """

    nodes: np.ndarray
    starts: np.ndarray
    centres: np.ndarray
    n_probes: int

    @property
    def is_exact(self) -> bool:
        """Whether a query scans all cells."""
        return self.n_probes >= self.centres.shape[0]

    @cached_property
    def _halves(self) -> np.ndarray:
        return _half_squares(self.nodes)

    @cached_property
    def _by_centre(self) -> "InvertedFileIndex":
        return exact_index(self.centres)

    def lengths(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the distances between pairs of nodes, as float64."""
        lengths = np.empty(starts.size)
        step = max(1, WORK_NUMBERS // self.nodes.shape[1])
        for first in range(0, starts.size, step):
            pairs = slice(first, first + step)
            a = self.nodes[starts[pairs]].astype(np.float64)
            b = self.nodes[ends[pairs]]
            squares = ((a - b) ** 2).sum(axis=1)
            lengths[pairs] = np.sqrt(squares)
        return lengths

    def nearest(self, rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes nearest to each row, nearest first.

        Ties go to the node with the lower index.

        Parameters
        ----------
        rows : ndarray of shape (m, c)
            The rows, in the dtype of the nodes.
        count : int
            Number of nodes to find for each row, at most p.

        Returns
        -------
        numbers : ndarray of shape (m, count), int64
            Indices of the nodes.
        distances : ndarray of shape (m, count), float64
            Euclidean distances to these nodes.
        """
        if self.is_exact:
            return self._scan(rows, count)
        probes, _ = self._by_centre.nearest(rows, self.n_probes)
        numbers, distances = self._scan(rows, count, probes)
        short = np.flatnonzero(numbers[:, -1] < 0)  # too few nodes in the scanned cells
        numbers[short], distances[short] = self._scan(rows[short], count)
        return numbers, distances

    def three_nearest(
        self, rows: np.ndarray, probes: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the indices of the three nearest nodes in each row's probed cells.

        If ``probes`` is None, all cells are searched. If there are fewer than three
        nodes, the missing indices are -1.
        """
        m = rows.shape[0]
        starts = self.starts
        if probes is None:
            starts = np.array([0, self.nodes.shape[0]])
            probes = np.zeros((m, 1), np.int64)
        numbers = np.empty((m, 3), np.int64)
        rows = rows.astype(self.nodes.dtype, copy=False)
        kernels.three_nearest_into(
            rows, self.nodes, self._halves, starts, probes, numbers
        )
        return numbers

    def two_nearest_cells(self, rows: np.ndarray) -> np.ndarray:
        """Return the indices of the two cells nearest to each row, nearest first."""
        return self._by_centre.three_nearest(rows)[:, :2]

    def _scan(
        self, rows: np.ndarray, count: int, probes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices and distances of the nearest nodes in the probed cells.

        If ``probes`` is None, all cells are scanned.
        """
        m = rows.shape[0]
        starts = self.starts
        if probes is None:
            starts = np.array([0, self.nodes.shape[0]])
            probes = np.zeros((m, 1), np.int64)
        rows = rows.astype(self.nodes.dtype, copy=False)
        numbers = np.empty((m, count), np.int64)
        distances = np.empty((m, count))
        kernels.nearest_nodes_into(
            rows, self.nodes, self._halves, starts, probes, numbers, distances
        )
        return numbers, distances


@finite
def _half_squares(nodes: np.ndarray) -> np.ndarray:
    """Return half of the squared norm of each node."""
    return np.square(nodes, dtype=np.float64).sum(axis=1) / 2


def exact_index(nodes: np.ndarray) -> InvertedFileIndex:
    """Return an index with a single cell, so that each query scans all nodes."""
    nodes = np.ascontiguousarray(nodes)
    return InvertedFileIndex(nodes, np.array([0, nodes.shape[0]]), nodes[:1], 1)


def of_blocks(
    rows: Matrix, function: Callable[[Matrix], Result], each: Each
) -> list[Result]:
    """Apply a function to blocks of 1,024 rows, and return the list of results."""
    starts = range(0, rows.shape[0], SHARED_ROWS)
    return list(each(function, [rows[i : i + SHARED_ROWS] for i in starts]))


def nearest_of_all(
    search: InvertedFileIndex | SparseSearch, count: int, each: Each = map
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes nearest to each node, nearest first.

    The nodes must be distinct, so the nearest node of each node is the node itself.

    Parameters
    ----------
    search : InvertedFileIndex or SparseSearch
        Search structure that contains the p nodes.
    count : int
        Number of nodes to find for each node, at most p.
    each : callable, default=map
        Maps a function over items, possibly in several threads.

    Returns
    -------
    numbers : ndarray of shape (p, count), int64
        Indices of the nodes.
    distances : ndarray of shape (p, count), float64
        Distances to these nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.inverted_file import exact_index, nearest_of_all
    >>> nearest_of_all(exact_index(np.array([[0.0], [1.0], [5.0]])), 2)[0].tolist()
    [[0, 1], [1, 0], [2, 1]]
    """
    parts = of_blocks(search.nodes, lambda rows: search.nearest(rows, count), each)
    numbers, distances = zip(*parts, strict=True)
    return np.concatenate(numbers), np.concatenate(distances)


def without_own(
    numbers: np.ndarray, distances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Remove each node itself from its nearest nodes, as found by `nearest_of_all`.

    The returned arrays have one column fewer than ``numbers`` and ``distances``.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.inverted_file import exact_index, nearest_of_all, without_own
    >>> index = exact_index(np.array([[0.0], [1.0], [5.0]]))
    >>> without_own(*nearest_of_all(index, 2))[0].ravel()
    array([1, 0, 1])
    """
    p, count = numbers.shape
    is_other = numbers != np.arange(p)[:, None]
    # Distinct rows have positive distances, so each node is nearest to itself. The node
    # itself may be missing if distances underflow. In this case, the last node is
    # removed.
    is_other[is_other.all(axis=1), -1] = False
    shape = p, count - 1
    return numbers[is_other].reshape(shape), distances[is_other].reshape(shape)


def build_index(
    nodes: np.ndarray,
    random_state: np.random.RandomState,
    count: int = CHECKED_NEIGHBOURS,
    each: Each = map,
) -> tuple[InvertedFileIndex, np.ndarray]:
    """Build an inverted-file index: k-means splits p nodes into about √p cells.

    A query scans the smallest number of cells that finds at least 99.5 % of the nearest
    nodes, measured on a sample of the nodes.

    Parameters
    ----------
    nodes : ndarray of shape (p, c)
        Distinct nodes.
    random_state : RandomState
        Random number generator.
    count : int, default=10
        Number of nearest nodes that queries will request. The recall is measured for
        this number of nodes, but for at least ten.
    each : callable, default=map
        Maps a function over items, possibly in several threads.

    Returns
    -------
    index : InvertedFileIndex
        The index. If there are at most 4,096 nodes, they form a single cell and keep
        their order.
    order : ndarray of shape (p,), int64
        For each node of the index, its row index in ``nodes``.
    """
    p = nodes.shape[0]
    seed = random_state.randint(2**31 - 1)
    if p <= SEARCHED_NODES:
        return exact_index(nodes), np.arange(p)
    cell_of_node = _cells(nodes, seed)
    order = np.argsort(cell_of_node, kind="stable")
    by_cell = np.ascontiguousarray(nodes[order])
    _, sizes = np.unique(cell_of_node, return_counts=True)
    starts = np.append(0, np.cumsum(sizes))
    sums = np.add.reduceat(by_cell.astype(np.float64), starts[:-1])
    means = sums / sizes[:, None]
    centres = means.astype(nodes.dtype)
    index = InvertedFileIndex(by_cell, starts, centres, n_probes=sizes.size)
    n_probes = _probes_needed(index, max(count, CHECKED_NEIGHBOURS), each)
    return replace(index, n_probes=n_probes), order


def _cells(nodes: np.ndarray, seed: int) -> np.ndarray:
    """Return the cell of each node, found by at most five steps of k-means."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    n_cells = int(nodes.shape[0] ** 0.5)
    kmeans = KMeans(n_cells, n_init=1, init="random", max_iter=5, random_state=seed)
    with threadpool_limits(1):  # sums depend on the number of threads
        # Use float64, because in float32, many nodes would be equally near to the
        # centres of two cells.
        return kmeans.fit(nodes.astype(np.float64)).labels_


def _probes_needed(index: InvertedFileIndex, count: int, each: Each) -> int:
    """Return the smallest number of probed cells that finds 99.5 % of nearest nodes."""
    step = math.ceil(index.nodes.shape[0] / CHECKED_ROWS)
    checked = np.ascontiguousarray(index.nodes[::step])
    n_cells = index.centres.shape[0]

    def probes(rows: np.ndarray) -> np.ndarray:
        """Return how many cells must be scanned to find each of the nearest nodes."""
        cells, _ = index._by_centre.nearest(rows, n_cells)
        rank_of_cell = np.argsort(cells, axis=1)
        numbers, _ = index.nearest(rows, count)
        found_in = np.searchsorted(index.starts[1:], numbers, side="right")
        return 1 + np.take_along_axis(rank_of_cell, found_in, axis=1)

    parts = of_blocks(checked, probes, each)
    needed = np.sort(np.concatenate(parts), axis=None)
    n_found = math.ceil(LEAST_RECALL * needed.size)
    return int(needed[n_found - 1])

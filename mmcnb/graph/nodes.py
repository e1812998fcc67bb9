"""Nodes of a graph: the leading axes of a sample, and the search for the nodes nearest to a row."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np

from mmcnb.errors import InputError
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples.matrix import (
    WIDE_COLUMNS,
    WORK_NUMBERS,
    as_matrix,
    range_error,
    row_blocks,
    to_dense,
    with_fixed_signs,
)

# The cells of each graph are measured when it is built: `NodeSearch.n_probes` follows
# from the recall.
LEADING_AXES = 50  # of more columns: in many columns most of a distance is noise
COVARIANCE_COLUMNS = (
    1000  # up to which all axes cost little more than iterations for some
)
SPARE_AXES = 10
POWER_STEPS = 6
BLOCKS_AT_ONCE = (
    2  # whose products take as much memory as the solver of the covariance matrix
)
SEARCHED_NODES = 4096  # up to which a search in all nodes costs less than one in cells
CHECKED_ROWS = 2000  # nodes on which the cells are measured
CHECKED_NEIGHBOURS = 10  # of each of them, at least
LEAST_RECALL = 0.995  # of the true neighbours
SHARED_ROWS = 1024  # that a thread searches at once
Result = TypeVar("Result")
Each = Any  # maps a function over items, as `map` does, perhaps in threads


def finite(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A function of rows that refuses rows whose values are so large that its result overflows."""

    @wraps(function)
    def checked(*given: Any) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            values = function(*given)
        if not np.isfinite(values).all():
            rows = next(
                one
                for one in (getattr(one, "nodes", one) for one in given)
                if hasattr(one, "shape")
            )
            raise range_error("differences or sums of the values overflow", rows)
        return values

    return checked


def check_fits(name: str, fits: bool) -> None:
    """Refuse an array of a model that does not fit the others."""
    if not fits:
        raise InputError(f"graph_{name} does not fit the other arrays of the graph")


@dataclass(frozen=True)
class Axes:
    """Centred rows, and where there are many columns, their scores on the leading principal axes.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        Mean of the columns.
    axes : ndarray of shape (d, c) or None, default=None
        Principal axes; None keeps the columns.
    """

    mean: np.ndarray
    axes: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        """Number of columns of the rows."""
        return int(self.mean.shape[0])

    @property
    def n_axes(self) -> int:
        """Number of columns along the axes."""
        return self.n_features if self.axes is None else int(self.axes.shape[1])

    def arrays(self) -> dict[str, np.ndarray]:
        """The mean and the axes, by name."""
        return {"mean": self.mean} | ({} if self.axes is None else {"axes": self.axes})

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray]) -> "Axes":
        """The axes of their `arrays`."""
        axes = cls(arrays["mean"], arrays.get("axes"))
        check_fits("axes", axes.axes is None or axes.axes.shape[:1] == axes.mean.shape)
        return axes

    @finite
    def __call__(self, rows: Any) -> np.ndarray:
        """Dense or CSR rows along the axes, C-ordered and of their dtype."""
        matrix = as_matrix(rows)
        if self.axes is None:
            return np.ascontiguousarray(
                to_dense(matrix) - self.mean.astype(matrix.dtype)
            )
        axes, mean = (
            part.astype(matrix.dtype, copy=False) for part in (self.axes, self.mean)
        )
        sparse = hasattr(matrix, "toarray")
        scores = matrix @ axes - mean @ axes if sparse else (matrix - mean) @ axes
        # Keeps 24 bits: the last ones of BLAS differ between processors.
        wide = scores * np.float64(2**29 + 1)
        return np.ascontiguousarray(wide - (wide - scores), matrix.dtype)

    @finite
    def beyond(self, rows: Any, points: np.ndarray) -> np.ndarray:
        """How far rows, which lie at these points along the axes, are from the space of the axes; float64."""
        matrix = as_matrix(rows)
        mean = self.mean
        if self.axes is None:
            return np.zeros(matrix.shape[0])
        if hasattr(matrix, "toarray"):
            squares = (
                matrix.astype(np.float64).power(2).sum(axis=1)
                - 2 * (matrix @ mean)
                + mean @ mean
            )
        else:
            squares = np.square(
                matrix - mean.astype(matrix.dtype), dtype=np.float64
            ).sum(axis=1)
        return np.sqrt(
            np.maximum(squares - np.square(points, dtype=np.float64).sum(axis=1), 0.0)
        )


def leading_axes(
    sample: Any,
    random_state: np.random.RandomState,
    each: Each = map,
    n_axes: int = LEADING_AXES,
) -> Axes:
    """So many axes of a dense or CSR sample; `each` maps a function over its blocks."""
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # `Axes` refuses rows whose sums overflow
        mean = np.asarray(sample.mean(axis=0, dtype=np.float64)).ravel()
    if min(sample.shape) <= n_axes:
        return Axes(mean)
    axes = _principal_axes(sample, mean, random_state, each, n_axes)
    return Axes(mean, np.ascontiguousarray(with_fixed_signs(axes)))


def _principal_axes(
    sample: Any,
    mean: np.ndarray,
    random_state: np.random.RandomState,
    each: Each,
    n_axes: int,
) -> np.ndarray:
    """Leading principal axes, without a copy of the sample; by subspace iteration where columns are many."""
    from scipy.linalg import eigh

    d = sample.shape[1]
    if d <= COVARIANCE_COLUMNS:
        covariance = np.zeros((d, d))  # times the number of rows
        for part in of_row_blocks(sample, lambda rows: _scatter(rows, mean), each):
            covariance += part
        wanted = [d - n_axes, d - 1]
        return np.asarray(
            eigh(covariance, overwrite_a=True, subset_by_index=wanted)[1][:, ::-1]
        )
    axes = random_state.standard_normal((d, n_axes + SPARE_AXES))
    columns = np.arange(d)
    if hasattr(sample, "indices") and d > WIDE_COLUMNS:
        used = np.unique(sample.indices)  # the axes are 0 in the others
        if used.shape[0] > axes.shape[1]:
            columns = used
            sample = sample[:, used]
            mean = mean[used]
            axes = axes[used]
    for _ in range(POWER_STEPS):
        axes, _ = np.linalg.qr(_covariance_times(sample, mean, axes))
    _, turned = eigh(axes.T @ _covariance_times(sample, mean, axes))
    whole = np.zeros((d, n_axes))
    whole[columns] = axes @ turned[:, ::-1][:, :n_axes]
    return whole


def of_row_blocks(
    sample: Any, function: Callable[[Any], Result], each: Each
) -> Iterator[Result]:
    """What a function gives for the rows of a sample, block by block"""
    blocks = row_blocks(sample)
    while some := list(itertools.islice(blocks, BLOCKS_AT_ONCE)):
        yield from each(function, some)


@finite
def _scatter(rows: Any, mean: np.ndarray) -> np.ndarray:
    """Sum of the products of centred rows, in the precision of the rows.

    Each column is divided by its largest value, so that small columns beside large ones
    are as precise.
    """
    centred = to_dense(rows) - mean.astype(rows.dtype, copy=False)
    scales = np.abs(centred).max(axis=0)
    scales[scales == 0] = 1
    centred /= scales
    return (centred.T @ centred) * np.multiply.outer(scales, scales, dtype=np.float64)


def _covariance_times(sample: Any, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The covariance matrix of a sample, times its number of rows and some axes."""
    total = np.zeros_like(axes)
    for rows in row_blocks(sample):
        scores = rows @ axes - mean @ axes
        total += rows.T @ scores - np.outer(mean, scores.sum(axis=0))
    return total


def distinct_rows(sample: Any, each: Each = map) -> tuple[Any, np.ndarray]:
    """Distinct rows of a dense or CSR sample, bit for bit.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        The rows; CSR rows have rising columns.
    each : callable, default=map
        Maps a function over items, perhaps in threads.

    Returns
    -------
    rows : ndarray or csr_array of shape (p, d)
        The rows that differ, in the order of their first ones.
    number : ndarray of shape (m,), int64
        Number of each row among them.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.nodes import distinct_rows
    >>> distinct_rows(np.array([[3.0], [1.0], [3.0]]))[1]
    array([0, 1, 0])
    """
    digests = np.concatenate(list(of_row_blocks(sample, _digests, each)))
    _, first, number = np.unique(digests, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rows = sample if first.size == sample.shape[0] else sample[first[order]]
    return rows, np.argsort(order)[number.ravel()]


def _digests(rows: Any) -> np.ndarray:
    """A digest of each dense or CSR row; equal rows have equal ones."""
    if not hasattr(rows, "indptr"):
        parts: Any = np.ascontiguousarray(
            rows + 0.0
        )  # the bytes of -0 are not those of 0
    else:
        rows = rows.copy()
        rows.eliminate_zeros()
        ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        parts = (
            rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in ends
        )
    return np.frombuffer(
        b"".join(blake2b(part, digest_size=16).digest() for part in parts),
        np.dtype("V16"),
    )


@dataclass(frozen=True)
class NodeSearch:
    """The nearest of some nodes, which lie in cells.

    Parameters
    ----------
    nodes : ndarray of shape (p, c)
        The nodes, cell after cell.
    starts : ndarray of shape (cells + 1,), int64
        First node of each cell, and p.
    centres : ndarray of shape (cells, c)
        Means of the cells.
    n_probes : int
        Nearest cells in which each row looks; with as many as there are, the search is
        exact.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.nodes import search_all
    >>> search_all(np.array([[0.0], [1.0], [5.0]])).nearest(np.array([[4.0]]), 2)[0]
    array([[2, 1]])
    """

    nodes: np.ndarray
    starts: np.ndarray
    centres: np.ndarray
    n_probes: int

    def arrays(self) -> dict[str, np.ndarray]:
        """The nodes and their cells, by name."""
        return {"nodes": self.nodes, "starts": self.starts, "centres": self.centres}

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray], n_axes: int) -> "NodeSearch":
        """The search of its `arrays` and of the first number of "search"; none may lead out of the nodes."""
        nodes, starts, centres = (
            arrays[name] for name in ("nodes", "starts", "centres")
        )
        bounds = (starts.dtype.name, starts.shape) == ("int64", (centres.shape[0] + 1,))
        rising = (
            bounds
            and (starts[0], starts[-1]) == (0, nodes.shape[0])
            and (np.diff(starts) > 0).all()
        )
        check_fits("starts", bool(rising))
        alike = (
            nodes.shape[1] == centres.shape[1] == n_axes
            and nodes.dtype == centres.dtype
        )
        check_fits("centres", alike)
        return cls(nodes, starts, centres, int(arrays["search"][0]))

    @property
    def is_exact(self) -> bool:
        """Whether rows look into all cells."""
        return self.n_probes >= self.centres.shape[0]

    @cached_property
    @finite
    def _halves(self) -> np.ndarray:
        """Half of the squared norm of each node."""
        return np.asarray(np.square(self.nodes, dtype=np.float64).sum(axis=1) / 2)

    @cached_property
    def _by_centre(self) -> "NodeSearch":
        return search_all(self.centres)

    def lengths(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Distances of pairs of nodes, float64."""
        found = np.empty(one.size)
        step = max(1, WORK_NUMBERS // self.nodes.shape[1])
        for start in range(0, one.size, step):
            pairs = slice(start, start + step)
            apart = self.nodes[one[pairs]].astype(np.float64) - self.nodes[other[pairs]]
            found[pairs] = np.sqrt((apart**2).sum(axis=1))
        return found

    def nearest(self, rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Nearest nodes of rows, by rising distance; of equal distances the first node comes first.

        Parameters
        ----------
        rows : ndarray of shape (m, c)
            Rows of the dtype of the nodes.
        count : int
            How many nodes, at most p.

        Returns
        -------
        numbers : ndarray of shape (m, count), int64
            Numbers of the nodes.
        distances : ndarray of shape (m, count), float64
            Their Euclidean distances.
        """
        if self.is_exact:
            return self._among(rows, count)
        numbers, distances = self.in_cells(rows, count, self.n_probes)
        few = np.flatnonzero(numbers[:, -1] < 0)  # their cells hold fewer nodes
        numbers[few], distances[few] = self._among(rows[few], count)
        return numbers, distances

    def nearest_cells(self, rows: np.ndarray) -> np.ndarray:
        """Number of the nearest cell of each row, int64; of equal distances the first."""
        cells = np.empty(rows.shape[0], np.int64)
        halves = self._by_centre._halves
        kernels.nearest_centres_into(
            rows.astype(self.nodes.dtype, copy=False), self.centres, halves, cells
        )
        return cells

    def in_cells(
        self, rows: np.ndarray, count: int, n_cells: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `nearest` gives of the nodes in so many nearest cells; -1 and inf if these hold fewer."""
        return self._among(rows, count, self._by_centre.nearest(rows, n_cells)[0])

    def _among(
        self, rows: np.ndarray, count: int, probes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nearest nodes in the cells that each row probes; of no probes, in all."""
        rows = rows.astype(self.nodes.dtype, copy=False)
        starts = self.starts
        if probes is None:
            starts = np.array([0, self.nodes.shape[0]])
            probes = np.zeros((rows.shape[0], 1), np.int64)
        found = (
            np.empty((rows.shape[0], count), np.int64),
            np.empty((rows.shape[0], count)),
        )
        kernels.nearest_nodes_into(
            rows, self.nodes, self._halves, starts, probes, *found
        )
        return found


def search_all(nodes: np.ndarray) -> NodeSearch:
    """The exact search in all nodes."""
    return NodeSearch(
        np.ascontiguousarray(nodes), np.array([0, nodes.shape[0]]), nodes[:1], 1
    )


def nearest_of_all(search: Any, count: int, each: Each = map) -> tuple[np.ndarray, ...]:
    """The nearest nodes of each of some distinct nodes, by rising distance; each is its own nearest one.

    Parameters
    ----------
    search : NodeSearch or SparseSearch
        The p nodes.
    count : int
        How many, at most p.
    each : callable, default=map
        Maps a function over items, perhaps in threads.

    Returns
    -------
    numbers : ndarray of shape (p, count), int64
        Numbers of the nodes.
    distances : ndarray of shape (p, count), float64
        Their distances.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.nodes import nearest_of_all, search_all
    >>> nearest_of_all(search_all(np.array([[0.0], [1.0], [5.0]])), 2)[0].tolist()
    [[0, 1], [1, 0], [2, 1]]
    """
    parts = of_blocks(search.nodes, lambda rows: search.nearest(rows, count), each)
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def without_own(
    numbers: np.ndarray, distances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What `nearest_of_all` gave but for each node itself: one column less.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.nodes import nearest_of_all, search_all, without_own
    >>> without_own(*nearest_of_all(search_all(np.array([[0.0], [1.0], [5.0]])), 2))[0].ravel()
    array([1, 0, 1])
    """
    p, count = numbers.shape
    # A node is its own nearest one: distinct rows have positive distances, but for
    # underflow.
    others = numbers != np.arange(p)[:, None]
    others[others.all(axis=1), -1] = False
    return numbers[others].reshape(p, count - 1), distances[others].reshape(
        p, count - 1
    )


def of_blocks(
    rows: np.ndarray, function: Callable[[np.ndarray], Result], each: Each
) -> list[Result]:
    """What a function gives for rows, block by block"""
    blocks = [
        rows[start : start + SHARED_ROWS]
        for start in range(0, rows.shape[0], SHARED_ROWS)
    ]
    return list(each(function, blocks))


def search_in_cells(
    nodes: np.ndarray,
    random_state: np.random.RandomState,
    count: int = CHECKED_NEIGHBOURS,
    each: Each = map,
) -> tuple[NodeSearch, np.ndarray]:
    """Lay nodes in about √p cells by k-means; many rows then look into a few cells each.

    A row looks into as few cells as find at least 99.5 % of the nearest nodes.

    Parameters
    ----------
    nodes : ndarray of shape (p, c)
        Distinct nodes.
    random_state : RandomState
        Source of randomness.
    count : int, default=10
        Nearest nodes that will be asked for; at least ten are measured.
    each : callable, default=map
        Maps a function over items, perhaps in threads.

    Returns
    -------
    search : NodeSearch
        The nodes, cell after cell; few nodes keep their order and are all searched.
    order : ndarray of shape (p,), int64
        Their numbers in the given order.
    """
    seed = random_state.randint(2**31 - 1)
    if nodes.shape[0] <= SEARCHED_NODES:
        return search_all(nodes), np.arange(nodes.shape[0])
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # the sums of several threads have other bits
        fitted = KMeans(
            int(nodes.shape[0] ** 0.5),
            n_init=1,
            init="random",
            max_iter=5,
            random_state=seed,
        )
        cell = fitted.fit(
            nodes.astype(np.float64)
        ).labels_  # in float32 many are nearly as near to two
    order = np.argsort(cell, kind="stable")
    sizes = np.unique(cell, return_counts=True)[1]
    nodes = np.ascontiguousarray(nodes[order])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    centres = np.add.reduceat(nodes.astype(np.float64), starts[:-1]) / sizes[:, None]
    centres = centres.astype(nodes.dtype)
    checked = np.ascontiguousarray(nodes[:: -(-nodes.shape[0] // CHECKED_ROWS)])
    whole = search_all(nodes)
    count = max(count, CHECKED_NEIGHBOURS)
    by_centre = search_all(centres)

    def probes(rows: np.ndarray) -> np.ndarray:
        """How many cells rows look into until they find each of their nearest nodes."""
        cells, _ = by_centre.nearest(rows, centres.shape[0])
        place = np.argsort(cells, axis=1) + 1  # of each cell: each row has all of them
        cell_of = (
            np.searchsorted(starts, whole.nearest(rows, count)[0], side="right") - 1
        )
        return np.take_along_axis(place, cell_of, axis=1)

    needed = np.sort(np.concatenate(of_blocks(checked, probes, each)), axis=None)
    n_probes = int(needed[math.ceil(LEAST_RECALL * needed.shape[0]) - 1])
    return NodeSearch(nodes, starts, centres, n_probes), order

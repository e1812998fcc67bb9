"""Find the rows farthest from all nodes, which may form clusters without nodes.

A second pass sums the weights of the rows between groups of far rows and the larger
clusters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from mmcnb.engine.passes import draw_sample, sample_rows
from mmcnb.engine.run import Engine
from mmcnb.graph.inverted_file import InvertedFileIndex
from mmcnb.graph.neighbours import N_NEIGHBORS, NodeGraph, RowMap
from mmcnb.graph.tubes import Tube, weights_in_slabs
from mmcnb.graph.vote import is_own
from mmcnb.samples import Samples
from mmcnb.samples.matrix import Block, Matrix, Weights, as_matrix

FAR_SHARE = 0.2  # maximum number of far rows, as a fraction of the number of nodes
MOST_LOOKED_AT = 10**6  # maximum number of randomly drawn rows to examine


@dataclass(frozen=True)
class FarRowsPass:
    """Pass that finds the rows with the largest distances to their tenth nearest node.

    The total consists of these distances and the indices of the rows. Rows that are
    themselves nodes are skipped.

    Parameters
    ----------
    drawn : ndarray of shape (m,), int64
        Indices of the rows to examine, in increasing order.
    axes : Axes or AllColumns
        Maps rows to the coordinates in which the nodes are stored.
    search : InvertedFileIndex
        Inverted-file index of the nodes.
    count : int
        Maximum number of rows to return.
    """

    drawn: np.ndarray
    axes: RowMap
    search: InvertedFileIndex
    count: int

    def block(self, rows: Block, start: int, stop: int) -> list[np.ndarray]:
        """Return the rows of a block that are farthest from the nodes.

        The first array contains the distances, the second the indices of the rows.
        """
        first, last = np.searchsorted(self.drawn, (start, stop))
        drawn = self.drawn[first:last]
        points = self.axes(as_matrix(rows)[drawn - start])
        n_neighbors = min(N_NEIGHBORS, self.search.nodes.shape[0])
        _, distances = self.search.nearest(points, n_neighbors)
        is_other = ~is_own(distances)
        return self._farthest(distances[is_other, -1], drawn[is_other])

    def combine(
        self, total: list[np.ndarray], other: list[np.ndarray]
    ) -> list[np.ndarray]:
        """Return the farthest rows among the farthest rows of two ranges of rows."""
        distances = np.concatenate([total[0], other[0]])
        return self._farthest(distances, np.concatenate([total[1], other[1]]))

    def _farthest(self, distances: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
        first = np.lexsort((rows, -distances))[: self.count]
        return [distances[first], rows[first]]


def far_rows(
    engine: Engine,
    samples: Samples,
    weights: Weights,
    graph: NodeGraph,
    most: int = MOST_LOOKED_AT,
) -> tuple[Matrix, Weights]:
    """Return the rows farthest from the nodes of a graph, in two passes.

    Only a random sample of the rows is examined. Each sampled row is compared only with
    the nodes in its nearest cell of the inverted-file index.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    samples : Samples
        All n rows.
    weights : ndarray of shape (n,) or None
        Sample weights; rows of weight 0 are left out.
    graph : NodeGraph
        The nodes, in an `InvertedFileIndex`.
    most : int, default=10**6
        Maximum number of rows to examine.

    Returns
    -------
    sample : ndarray or csr_array of shape (m, d)
        The far rows, in their original order. m is at most a fifth of the number of
        nodes, rounded up, and is 0 if all examined rows are nodes.
    weights : ndarray of shape (m,) or None
        Sample weights of the far rows; None if the rows are not weighted.
    """
    nodes = cast(InvertedFileIndex, graph.search)
    sweep = FarRowsPass(
        drawn=sample_rows(samples.n_samples, most, weights, 0),
        axes=graph.axes,
        search=replace(nodes, n_probes=1),
        count=int(np.ceil(FAR_SHARE * graph.n_nodes)),
    )
    rows = np.sort(engine.run(sweep, samples, "far rows")[1])
    sample, _ = draw_sample(engine, samples, rows)
    return sample, None if weights is None else weights[rows]


@dataclass(frozen=True)
class TubesPass:
    """Pass that sums the weights of the rows in each slab of each tube.

    Parameters
    ----------
    drawn : ndarray of shape (m,), int64
        Indices of the rows to examine, in increasing order.
    weights : ndarray of shape (m,)
        Weights of the rows to examine.
    axes : Axes or AllColumns
        Maps rows to the coordinates in which the tubes are defined.
    tubes : sequence of Tube
        Tubes between pairs of clusters.
    """

    drawn: np.ndarray
    weights: np.ndarray
    axes: RowMap
    tubes: Sequence[Tube]

    def block(self, rows: Block, start: int, stop: int) -> np.ndarray:
        """Return the total weight of the drawn rows of a block in each slab."""
        first, last = np.searchsorted(self.drawn, (start, stop))
        points = self.axes(as_matrix(rows)[self.drawn[first:last] - start])
        return weights_in_slabs(points, self.weights[first:last], self.tubes)

    def combine(self, total: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Add the total weights in each slab of two ranges of rows."""
        return total + other


def rows_in_tubes(
    engine: Engine,
    samples: Samples,
    weights: Weights,
    axes: RowMap,
    tubes: Sequence[Tube],
    most: int = MOST_LOOKED_AT,
) -> np.ndarray:
    """Sum the weights of the rows in each slab of each tube, in one pass.

    With the same ``most``, the pass examines the same random sample of the rows as
    `far_rows`. The sums therefore include all far rows.

    Parameters
    ----------
    engine : Engine
        Runs the pass.
    samples : Samples
        All n rows.
    weights : ndarray of shape (n,) or None
        Sample weights. They are divided by the mean weight of the examined rows. If
        None, each row has weight 1.
    axes : Axes or AllColumns
        Maps rows to the coordinates in which the tubes are defined.
    tubes : sequence of Tube
        Tubes between pairs of clusters.
    most : int, default=10**6
        Maximum number of rows to examine.

    Returns
    -------
    ndarray of shape (number of tubes, 64)
        Total weight in each of the 64 slabs of each tube.
    """
    drawn = sample_rows(samples.n_samples, most, weights, 0)
    counts = np.ones(drawn.size)
    if weights is not None:
        counts = weights[drawn] / weights[drawn].mean()
    sweep = TubesPass(drawn=drawn, weights=counts, axes=axes, tubes=tubes)
    return engine.run(sweep, samples, "rows between clusters")

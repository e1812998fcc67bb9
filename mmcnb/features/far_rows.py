"""A second draw of rows: those farthest from the nodes of a graph, where small clusters are."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmcnb.engine.passes import draw_sample, sample_rows
from mmcnb.engine.run import Engine
from mmcnb.graph.inverted_file import InvertedFileIndex
from mmcnb.graph.neighbours import N_NEIGHBORS, NodeGraph, RowMap
from mmcnb.graph.vote import is_own
from mmcnb.samples import Samples
from mmcnb.samples.matrix import as_matrix

FAR_SHARE = 0.2  # of the nodes: so many rows are drawn


@dataclass(frozen=True)
class FarRowsPass:
    """The rows farthest from their tenth node, and these distances; rows of a node itself are left out.

    Parameters
    ----------
    drawn : ndarray of shape (m,), int64
        Numbers of the rows that are looked at, rising.
    axes : Axes or AllColumns
        Maps rows to the nodes.
    search : InvertedFileIndex
        The nodes.
    count : int
        Most rows.
    """

    drawn: np.ndarray
    axes: RowMap
    search: InvertedFileIndex
    count: int

    def block(self, rows: Any, start: int, stop: int) -> list[np.ndarray]:
        """The farthest rows of one block."""
        drawn = self.drawn[slice(*np.searchsorted(self.drawn, (start, stop)))]
        count = min(N_NEIGHBORS, self.search.nodes.shape[0])
        _, distances = self.search.nearest(
            self.axes(as_matrix(rows)[drawn - start]), count
        )
        is_other = ~is_own(distances)
        return self._farthest(distances[is_other, -1], drawn[is_other])

    def combine(
        self, total: list[np.ndarray], other: list[np.ndarray]
    ) -> list[np.ndarray]:
        """The farthest of both."""
        return self._farthest(*map(np.concatenate, zip(total, other, strict=True)))

    def _farthest(self, distances: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
        first = np.lexsort((rows, -distances))[: self.count]
        return [distances[first], rows[first]]


def far_rows(
    engine: Engine,
    samples: Samples,
    weights: np.ndarray | None,
    graph: NodeGraph,
    most: int = 10**6,
) -> tuple[Any, np.ndarray | None]:
    """Draw the rows farthest from the nodes of a graph, in two passes.

    Rows at random are looked at; each looks at the nodes of the cell nearest to it.

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
        Most rows that are looked at.

    Returns
    -------
    sample : ndarray or csr_array of shape (m, d)
        At most so many rows as a fifth of the nodes, in their order; none if all rows
        are nodes.
    weights : ndarray of shape (m,) or None
        Their weights.
    """
    nodes: Any = graph.search
    drawn = sample_rows(samples.n_samples, most, weights, 0)
    given = (
        drawn,
        graph.axes,
        replace(nodes, n_probes=1),
        int(np.ceil(FAR_SHARE * graph.n_nodes)),
    )
    rows = np.sort(engine.run(FarRowsPass(*given), samples, "far rows")[1])
    return draw_sample(engine, samples, rows)[0], None if weights is None else weights[
        rows
    ]

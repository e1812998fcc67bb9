"""The inner functions that studies call: the graph of nodes, and its evidence."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from mmcnb.choice import no_structure
from mmcnb.choice.no_structure import loss_terms, spread_terms, term_matrix
from mmcnb.choice.structure import find_structure
from mmcnb.graph.neighbours import NodeGraph, node_graph

__all__ = [
    "COEFFICIENTS_FILE",
    "evidence_of",
    "graph_of",
    "loss_terms",
    "spread_terms",
    "term_matrix",
]

COEFFICIENTS_FILE = no_structure.__file__


def graph_of(X: Any, seed: int) -> NodeGraph:
    """Build the graph that the default estimator uses, with all rows as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._inner import graph_of
    >>> graph_of(np.array([[0.0], [1.0], [1.0], [5.0]]), 0).n_nodes
    3
    """
    rows = csr_array(X) if issparse(X) else np.asarray(X)
    return node_graph(rows, None, np.random.RandomState(seed))


def evidence_of(graph: NodeGraph) -> list[list[float]]:
    """Return n, k, H, d and L of each partition that may give the number."""
    structure = find_structure(graph)
    rows = []
    for partition in structure.partitions:
        row = [
            graph.n_nodes,
            partition.n_clusters,
            partition.entropy,
            structure.d,
            partition.loss,
        ]
        rows.append([float(value) for value in row])
    return rows

"""The only inner functions that studies call: the graph of nodes, and the evidence of clusters on it."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from mmcnb.choice import number
from mmcnb.choice.number import terms_of_loss, terms_of_spread
from mmcnb.graph.neighbours import node_graph

__all__ = ["evidence_of", "graph_of", "terms_of_loss", "terms_of_spread"]


def graph_of(X: Any, seed: int) -> Any:
    """The graph on which the default stands, with all rows as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._inner import graph_of
    >>> graph_of(np.array([[0.0], [1.0], [1.0], [5.0]]), 0).n_nodes
    3
    """
    rows = csr_array(X) if issparse(X) else np.asarray(X)
    return node_graph(rows, None, np.random.RandomState(seed))


def evidence_of(graph: Any) -> list[list[float]]:
    """Nodes n, clusters k, entropy H, dimension d and loss L of each partition that may give the number."""
    found = number.structure(graph)
    one_row = (
        (one.n_clusters, one.entropy, found.d, one.loss) for one in found.partitions
    )
    return [[float(graph.n_nodes), *map(float, row)] for row in one_row]

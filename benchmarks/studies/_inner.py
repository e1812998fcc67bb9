"""Private functions of mmcnb that studies call: the graph of nodes, its evidence and its candidates."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from mmcnb.choice import no_structure
from mmcnb.choice.candidates import (
    LAYOUT,
    Candidate,
    graph_proposals,
    judge_candidates,
)
from mmcnb.choice.no_structure import loss_terms, spread_terms, term_matrix
from mmcnb.choice.pick import pick
from mmcnb.choice.structure import find_structure
from mmcnb.graph.neighbours import NodeGraph, node_graph

__all__ = [
    "COEFFICIENTS_FILE",
    "LayoutAndOthers",
    "evidence_of",
    "graph_of",
    "layout_and_others",
    "loss_terms",
    "spread_terms",
    "term_matrix",
]

COEFFICIENTS_FILE = no_structure.__file__


def graph_of(X: Any, seed: int) -> NodeGraph:
    """Build the graph of the default estimator on all rows.

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
    """Return n, k, H, d and L of each partition from which the number of clusters may be selected."""
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


class LayoutAndOthers(NamedTuple):
    """Candidates of a graph: the selected one, the layout, and the best of the others.

    ``node_of`` is the node of each row.
    """

    picked: Candidate
    layout: Candidate
    other: Candidate
    node_of: np.ndarray


def layout_and_others(X: Any, n_clusters: int, seed: int) -> LayoutAndOthers:
    """Compute the candidates for directions as the default estimator does, and select one."""
    graph = graph_of(X, seed)
    proposals = graph_proposals(graph, n_clusters, seed)
    candidates = judge_candidates(graph, n_clusters, proposals).candidates
    layout = next(one for one in candidates if one.name == LAYOUT)
    others = [one for one in candidates if one.name != LAYOUT]
    other = max(others, key=lambda one: one.score.J)
    picked = pick(graph, candidates, seed)
    return LayoutAndOthers(picked, layout, other, graph.node_of)

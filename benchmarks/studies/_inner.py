"""The inner functions that studies call: the graph of nodes, its evidence and candidates."""

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


class LayoutAndOthers(NamedTuple):
    """Candidates of a graph: the one picked, the layout, and the best of the others.

    ``node_of`` is the node of each row.
    """

    picked: Candidate
    layout: Candidate
    other: Candidate
    node_of: np.ndarray


def layout_and_others(X: Any, n_clusters: int, seed: int) -> LayoutAndOthers:
    """Make the candidates of directions as the default estimator does, and pick one."""
    graph = graph_of(X, seed)
    proposals = graph_proposals(graph, n_clusters, seed)
    candidates = judge_candidates(graph, n_clusters, proposals).candidates
    layout = next(one for one in candidates if one.name == LAYOUT)
    others = [one for one in candidates if one.name != LAYOUT]
    other = max(others, key=lambda one: one.score.J)
    picked = pick(graph, candidates, seed)
    return LayoutAndOthers(picked, layout, other, graph.node_of)

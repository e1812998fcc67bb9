"""Graphs and candidates that the tests of the choice share."""

import numpy as np
from scipy.sparse import csr_array

from mmcnb.choice.candidates import Candidate
from mmcnb.choice.judge import Score
from mmcnb.graph.neighbours import NodeGraph, node_graph


def blobs(n=120, k=3, gap=6.0, d=2, seed=0):
    """Rows of k groups in turn."""
    centres = gap * np.random.default_rng(seed + 1).standard_normal((k, d))
    return (
        np.random.default_rng(seed).standard_normal((n, d)) + centres[np.arange(n) % k]
    )


def graph_of(X, weights=None, seed=0):
    return node_graph(X, weights, np.random.RandomState(seed))


def ring(k, n=120, gap=20.0, seed=0):
    """A graph of k groups far apart on a circle, and the group of each node."""
    angle = 2 * np.pi * (np.arange(n) % k) / k
    X = k * gap / 6 * np.c_[np.cos(angle), np.sin(angle)] + np.random.default_rng(
        seed
    ).standard_normal((n, 2))
    graph = graph_of(X)
    return graph, graph.of_nodes(np.arange(n) % k)


def bare(numbers, distances, sizes=None):
    """Neighbours without nodes, for what looks at nothing else; all edges weigh the same."""
    p = len(numbers)
    W = np.zeros((p, p))
    for i, near in enumerate(numbers):
        W[i, near] = W[near, i] = 1.0
    arrays = np.array(numbers), np.array(distances, float)
    sizes = np.ones(p) if sizes is None else np.array(sizes, float)
    edges = {arrays[0].shape[1]: (csr_array(W), np.zeros(p))}
    return NodeGraph(None, None, sizes, np.arange(p), *arrays, False, edges)


def candidate(J, labels, name="some", **others):
    return Candidate(name, np.asarray(labels), Score(J, 0.0, J), **others)

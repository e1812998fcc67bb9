"""How much of a graph a partition cuts: what judges partitions of the nodes."""

from typing import Any

import numpy as np

from mmcnb.features.graph import NodeGraph
from mmcnb.kernels import unchecked as kernels

UNEVENNESS = 1.0  # price of uneven clusters in `cut_score`


def cut_score(weights: Any, labels: np.ndarray, n_clusters: int) -> float:
    """How well a partition cuts a graph: -log Σ(cut_h/vol_h) - k Σ(vol_h/vol)²; larger is better.

    The normalised cut alone prefers to halve a long cluster and to merge two that touch; where cuts differ by
    little, the second term decides for clusters of even volume. Where clusters are apart, the first decides.

    Parameters
    ----------
    weights : csr_array of shape (p, p)
        Symmetric weights of the edges.
    labels : ndarray of shape (p,), int
        Clusters of the nodes.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    float
        The score; -inf where a cluster has no node.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.least_squares.normalized_cut import cut_score
    >>> path = csr_array(np.diag([1.0, 0.1, 1.0], 1) + np.diag([1.0, 0.1, 1.0], -1))
    >>> cut_score(path, np.array([0, 0, 1, 1]), 2) > cut_score(path, np.array([0, 1, 1, 1]), 2)
    True
    """
    cuts, shares = _cuts(weights, labels, n_clusters)
    if (shares == 0).any():
        return -np.inf
    least = np.finfo(float).tiny  # one cluster cuts nothing
    return float(-np.log(max(cuts.sum(), least)) - UNEVENNESS * n_clusters * (shares**2).sum())


def _cuts(weights: Any, labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut of each cluster as a share of its volume, and its share of the volume."""
    cuts, volumes = kernels.cluster_cuts(weights.data, weights.indices, weights.indptr, labels, n_clusters)
    return cuts / np.maximum(volumes, np.finfo(float).tiny), volumes / volumes.sum()


def relative_cut(graph: NodeGraph, labels: np.ndarray, n_clusters: int) -> float:
    """Normalised cut of a partition of the sample, as a share of that of random labels: k - 1.

    Parameters
    ----------
    graph : NodeGraph
        The graph of the sample.
    labels : ndarray of shape (m,), int
        Clusters of its rows.
    n_clusters : int
        Number of clusters, k.

    Returns
    -------
    float
        0 where no edge is cut, and about 1 at random.
    """
    cuts, _ = _cuts(graph.weights, graph.node_labels(labels), n_clusters)
    return float(cuts.sum() / max(1, n_clusters - 1))

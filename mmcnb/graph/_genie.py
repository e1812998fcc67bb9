"""The Genie linkage: merge along a spanning tree, small clusters first if uneven.

The distinct sizes are kept in rising order with their counts, so that the Gini index of
all sizes is one pass over few numbers. It is summed anew at each merge: nothing drifts,
and whole weights are added exactly.

A merged cluster is always larger than the smallest one. So while the smallest size is
the same, an edge that touches no such cluster never will, and the search for one that
does goes on from the last place.
"""

import numpy as np

from mmcnb._numba import njit


@njit()
def _root(parents, node):
    """Return the first node of a cluster from any node, and shorten the way there."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@njit()
def _count(values, counts, length, size, by):
    """Count one cluster of a size more or less (by is 1 or -1).

    Return the number of distinct sizes.
    """
    place = np.searchsorted(values[:length], size)
    if place == length or values[place] != size:
        for i in range(length, place, -1):
            values[i] = values[i - 1]
            counts[i] = counts[i - 1]
        values[place] = size
        counts[place] = 0
        length += 1
    counts[place] += by
    if counts[place] == 0:
        length -= 1
        for i in range(place, length):
            values[i] = values[i + 1]
            counts[i] = counts[i + 1]
    return length


@njit()
def _differences(values, counts, length, n_clusters):
    """Return the sum of |s - t| over all pairs of clusters with sizes s and t."""
    total = 0.0
    below = 0
    for i in range(length):
        total += counts[i] * (2 * below + counts[i] - n_clusters) * values[i]
        below += counts[i]
    return total


@njit()
def _first_at(least, ends, parents, sizes, after, edge):
    """Return the first edge left, from one on, at a cluster of the least size."""
    while edge < ends.shape[0]:
        for end in ends[edge]:
            if sizes[_root(parents, end)] == least:
                return edge
        edge = after[edge]
    return edge


@njit()
def genie(ends, weights, distinct_weights, n_of_weight, threshold, n_clusters):
    """Find clusters by the Genie linkage on a spanning tree.

    All nodes start alone. Two clusters merge along the first edge that is left. While
    the Gini index of the cluster sizes is above the threshold, they merge along the
    first edge at a cluster of the smallest size.

    Parameters
    ----------
    ends : ndarray of shape (n_edges, 2), int64
        The two nodes of each edge of a tree, shortest edge first. A forest leaves a
        cluster for each tree at least; edges are taken in their order once none is left
        at a smallest cluster.
    weights : ndarray of shape (p,), float64, above 0
        Sizes of the nodes.
    distinct_weights : ndarray of shape (s,), float64
        The distinct sizes, rising.
    n_of_weight : ndarray of shape (s,), int64
        How many nodes have each of them.
    threshold : float
        The Gini index allowed, above 0. At 1 this is single linkage.
    n_clusters : int
        Number of clusters to stop at.

    Returns
    -------
    ndarray of shape (p,), int64
        The first node of the cluster of each node.

    References
    ----------
    M. Gagolewski, M. Bartoszuk and A. Cena, Genie: A new, fast, and outlier-resistant
    hierarchical clustering algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph._genie import genie
    >>> # Two pairs, and a node that lies far out.
    >>> tree = np.array([[0, 1], [2, 3], [1, 2], [3, 4]])
    >>> sizes = np.ones(5), np.array([1.0]), np.array([5])
    >>> genie(tree, *sizes, 1.0, 2)
    array([0, 0, 0, 0, 4])
    >>> genie(tree, *sizes, 0.1, 2)
    array([0, 0, 2, 2, 2])
    """
    p = weights.shape[0]
    n_edges = ends.shape[0]
    parents = np.arange(p)
    sizes = weights.copy()
    total = weights.sum()
    values = np.empty(p)
    counts = np.empty(p, np.int64)
    length = distinct_weights.shape[0]
    for i in range(length):
        values[i] = distinct_weights[i]
        counts[i] = n_of_weight[i]
    # A linked list of the edges that are left: its end leads to its first edge.
    after = np.arange(1, n_edges + 2)
    after[n_edges] = 0
    before = np.arange(-1, n_edges)
    before[0] = n_edges
    clusters = p
    least = 0.0
    place = n_edges
    while clusters > max(n_clusters, 1) and after[n_edges] < n_edges:
        edge = after[n_edges]
        differences = _differences(values, counts, length, clusters)
        gini = differences / ((clusters - 1) * total)
        if gini > threshold:
            if values[0] > least:
                least = values[0]
                place = edge
            place = _first_at(least, ends, parents, sizes, after, place)
            if place < n_edges:
                edge = place
        if edge == place:
            place = after[edge]
        after[before[edge]] = after[edge]
        before[after[edge]] = before[edge]
        x = _root(parents, ends[edge, 0])
        y = _root(parents, ends[edge, 1])
        length = _count(values, counts, length, sizes[x], -1)
        length = _count(values, counts, length, sizes[y], -1)
        first = min(x, y)
        second = max(x, y)
        parents[second] = first
        sizes[first] += sizes[second]
        length = _count(values, counts, length, sizes[first], 1)
        clusters -= 1
    for node in range(p):
        parents[node] = _root(parents, node)
    return parents

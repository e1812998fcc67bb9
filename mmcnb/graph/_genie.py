"""Genie linkage: merge along a spanning tree, small clusters first if sizes are uneven.

The distinct sizes are stored in ascending order with their counts, so that computing
the Gini index of all sizes takes one pass over the distinct sizes. The index is
computed anew at each merge, so rounding errors do not accumulate, and integer weights
are added exactly.

A merged cluster is always larger than the smallest cluster. Therefore, until the
smallest size changes, an edge between two larger clusters never touches a smallest
cluster again. The search for the next edge at a smallest cluster continues where the
previous search stopped.
"""

import numpy as np

from mmcnb._numba import njit


@njit()
def _root(parents, node):
    """Return the root of the cluster of a node, and halve the path to it."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@njit()
def _count(values, counts, length, size, by):
    """Add (``by=1``) or remove (``by=-1``) one cluster of the given size.

    Return the new number of distinct sizes.
    """
    place = 0
    end = length
    while place < end:
        middle = (place + end) // 2
        if values[middle] < size:
            place = middle + 1
        else:
            end = middle
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
    """Return the first edge, from ``edge`` on, that touches a cluster of size least."""
    while edge < ends.shape[0]:
        for end in ends[edge]:
            if sizes[_root(parents, end)] == least:
                return edge
        edge = after[edge]
    return edge


@njit()
def genie(ends, weights, distinct_weights, n_of_weight, threshold, n_clusters):
    """Find clusters by the Genie linkage on a spanning tree.

    Initially, each node is a cluster. Each merge joins the clusters at the two ends of
    the shortest remaining edge. While the Gini index of the cluster sizes is above the
    threshold, a merge instead uses the shortest remaining edge that touches a cluster
    of the smallest size.

    Parameters
    ----------
    ends : ndarray of shape (n_edges, 2), int64
        The two nodes of each edge of a tree, shortest edge first. For a forest, at
        least one cluster per tree remains. If no remaining edge touches a smallest
        cluster, the shortest remaining edge is used.
    weights : ndarray of shape (p,), float64, above 0
        Sizes of the nodes.
    distinct_weights : ndarray of shape (s,), float64
        The distinct sizes, in ascending order.
    n_of_weight : ndarray of shape (s,), int64
        Number of nodes of each distinct size.
    threshold : float
        Gini index, in (0, 1], above which a smallest cluster is merged. A threshold of
        1 gives single linkage.
    n_clusters : int
        Number of clusters at which merging stops.

    Returns
    -------
    ndarray of shape (p,), int64
        For each node, the index of the first node in its cluster.

    References
    ----------
    M. Gagolewski, M. Bartoszuk and A. Cena, Genie: A new, fast, and outlier-resistant
    hierarchical clustering algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph._genie import genie
    >>> # Two pairs, and a distant node.
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
    total = 0.0
    for node in range(p):
        total += weights[node]
    values = np.empty(p)
    counts = np.empty(p, np.int64)
    # With literal arguments, numba would compile `_count` a second time.
    removed = np.int64(-1)
    added = np.int64(1)
    length = distinct_weights.shape[0]
    for i in range(length):
        values[i] = distinct_weights[i]
        counts[i] = n_of_weight[i]
    # A circular linked list of the remaining edges. The entry n_edges is its head.
    after = np.empty(n_edges + 1, np.int64)
    before = np.empty(n_edges + 1, np.int64)
    for edge in range(n_edges + 1):
        after[edge] = edge + 1
        before[edge] = edge - 1
    after[n_edges] = 0
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
        length = _count(values, counts, length, sizes[x], removed)
        length = _count(values, counts, length, sizes[y], removed)
        first = min(x, y)
        second = max(x, y)
        parents[second] = first
        sizes[first] += sizes[second]
        length = _count(values, counts, length, sizes[first], added)
        clusters -= 1
    for node in range(p):
        parents[node] = _root(parents, node)
    return parents

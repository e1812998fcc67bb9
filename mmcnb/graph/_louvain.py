"""Louvain communities of a weighted graph, and moves of single nodes.

The volume of a node is the sum of the weights of its edges and its loop. The gain of a
node in a community is ``w - r v V / T``, where w is the weight of the edges between the
node and the community, r the resolution, v the volume of the node, V the volume of the
other nodes in the community, and T the volume of all nodes. Terms are added in a fixed
order, so a graph gives the same labels on every machine.
"""

import numpy as np

from mmcnb._numba import jitable, njit
from mmcnb.graph.communities import Graph

# Least gain of a move, as a fraction of the terms of the gain. Smaller gains may be
# rounding errors, and moves based on them might never end.
LEAST_GAIN = 1e-12


@njit()
def _numbered(labels):
    """Renumber communities by their first nodes, in place; return their number."""
    numbers = np.empty(labels.shape[0], np.int64)
    for i in range(labels.shape[0]):
        numbers[i] = -1
    count = 0
    for i in range(labels.shape[0]):
        if numbers[labels[i]] < 0:
            numbers[labels[i]] = count
            count += 1
        labels[i] = numbers[labels[i]]
    return count


@njit()
def _best(row, weights, labels, own, volumes, volume, price, links):
    """Return the community in which a node has the largest gain.

    The node stays in its community unless the gain of a move exceeds the fraction
    ``LEAST_GAIN`` of its terms. Ties between other communities go to the lowest number.
    ``links`` is a work array of zeros, and contains zeros again afterwards.
    """
    for e in range(row.shape[0]):
        links[labels[row[e]]] += weights[e]
    paid = price * (volumes[own] - volume)
    stays = links[own] - paid
    best = own
    most = -np.inf
    for e in range(row.shape[0]):
        c = labels[row[e]]
        if c != own:
            gain = links[c] - price * volumes[c]
            if gain > most or (gain == most and c < best):
                best = c
                most = gain
        links[c] = 0.0  # another edge to c then has a smaller gain, which is ignored
    return best if most - stays > LEAST_GAIN * (volume + paid) else own


@njit()
def _volumes(graph):
    """Return the volume of each node."""
    volume = graph.loops.copy()
    for i in range(volume.shape[0]):
        for e in range(graph.indptr[i], graph.indptr[i + 1]):
            volume[i] += graph.weights[e]
    return volume


@njit()
def _settle(graph, labels, k, resolution, order, least_size):
    """Move nodes between communities until no move has a gain; update labels in place.

    Communities keep at least ``least_size`` nodes. After a move, only neighbours
    outside the new community of the moved node are visited again, because the move
    increases the gain of neighbours inside it.

    Both callers pass ``least_size`` as a literal, so that numba compiles one version
    for each value. A fit of the graph then takes 10 % less time than with a variable.
    """
    p = labels.shape[0]
    volume = _volumes(graph)
    total = 0.0
    volumes = np.zeros(k)
    sizes = np.zeros(k, np.int64)
    for i in range(p):
        total += volume[i]
        volumes[labels[i]] += volume[i]
        sizes[labels[i]] += 1
    links = np.zeros(k)
    scale = resolution / total if total > 0 else 0.0
    queue = order.astype(np.int64)
    waits = np.ones(p, np.bool_)
    head = 0
    count = p
    while count > 0:
        i = queue[head]
        head = (head + 1) % p
        count = count - 1
        waits[i] = False
        own = labels[i]
        if sizes[own] == least_size:
            continue
        row = graph.indices[graph.indptr[i] : graph.indptr[i + 1]]
        weights = graph.weights[graph.indptr[i] : graph.indptr[i + 1]]
        price = scale * volume[i]
        c = _best(row, weights, labels, own, volumes, volume[i], price, links)
        if c == own:
            continue
        labels[i] = c
        volumes[own] -= volume[i]
        volumes[c] += volume[i]
        sizes[own] -= 1
        sizes[c] += 1
        for j in row:
            if labels[j] != c and not waits[j]:
                queue[(head + count) % p] = j
                waits[j] = True
                count += 1


@njit()
def _by_label(labels, k):
    """Return the nodes, sorted by their labels."""
    order = np.empty(labels.shape[0], np.int64)
    place = np.zeros(k + 1, np.int64)
    for i in range(labels.shape[0]):
        place[labels[i] + 1] += 1
    for c in range(k):
        place[c + 1] += place[c]
    for i in range(labels.shape[0]):
        order[place[labels[i]]] = i
        place[labels[i]] += 1
    return order


@njit()
def aggregate_parts(graph, labels, k):
    """Return the arrays of the `Graph` that `aggregate` returns."""
    starts = np.zeros(k + 1, np.int64)
    loops = np.zeros(k)
    # Reserve space in each row of the result for the entries of all its nodes.
    for i in range(labels.shape[0]):
        starts[labels[i] + 1] += graph.indptr[i + 1] - graph.indptr[i]
    for c in range(k):
        starts[c + 1] += starts[c]
    ends = starts.copy()
    columns = np.empty(graph.indices.shape[0], np.int64)
    sums = np.empty(graph.indices.shape[0])
    # The graph is symmetric, so visiting its nodes by community gives ascending
    # columns.
    for j in _by_label(labels, k):
        b = labels[j]
        loops[b] += graph.loops[j]
        for e in range(graph.indptr[j], graph.indptr[j + 1]):
            a = labels[graph.indices[e]]
            weight = graph.weights[e]
            end = ends[a]
            if a == b:
                loops[b] += weight
            elif end > starts[a] and columns[end - 1] == b:
                sums[end - 1] += weight
            else:
                columns[end] = b
                sums[end] = weight
                ends[a] = end + 1
    stored = 0
    for c in range(k):
        start = starts[c]
        starts[c] = stored
        for e in range(start, ends[c]):
            columns[stored] = columns[e]
            sums[stored] = sums[e]
            stored += 1
    starts[k] = stored
    return starts, columns[:stored].copy(), sums[:stored].copy(), loops


@jitable
def aggregate(graph, labels, k):
    """Return the graph of the communities, with weights summed over their nodes.

    Parameters
    ----------
    graph : Graph
        Graph of p nodes.
    labels : ndarray of shape (p,), int64
        Community of each node, from 0 to k - 1.
    k : int
        Number of communities.

    Returns
    -------
    Graph
        The graph of the communities, whose rows have ascending columns. The loop of a
        community is the sum of the loops of its nodes and of the weights of its inner
        edges in both directions.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph._louvain import aggregate
    >>> from mmcnb.graph.communities import Graph
    >>> starts, ends = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])
    >>> chain = Graph(starts, ends, np.array([5.0, 5.0, 1.0, 1.0]), np.zeros(3))
    >>> [part.tolist() for part in aggregate(chain, np.array([0, 0, 1]), 2)]
    [[0, 1, 2], [1, 0], [1.0, 1.0], [10.0, 0.0]]
    """
    return Graph(*aggregate_parts(graph, labels, k))


@njit()
def louvain(graph, resolution, order):
    """Find communities by Louvain: move nodes, aggregate communities, and repeat.

    Parameters
    ----------
    graph : Graph
        Graph of p nodes.
    resolution : float
        Resolution r in the gain of a move. A larger resolution gives more communities.
    order : ndarray of shape (p,), int64
        All nodes, in the order in which they are first visited.

    Returns
    -------
    ndarray of shape (p,), int64
        Community of each node. Communities are numbered in the order of their first
        nodes.

    References
    ----------
    V. Blondel et al., Fast unfolding of communities in large networks. The queue of
    nodes is described in V. Traag et al., From Louvain to Leiden.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph._louvain import louvain
    >>> from mmcnb.graph.communities import Graph
    >>> starts, ends = np.arange(0, 9, 2), np.array([1, 3, 0, 2, 1, 3, 0, 2])
    >>> weights = np.array([5.0, 1.0, 5.0, 1.0, 1.0, 5.0, 1.0, 5.0])
    >>> louvain(Graph(starts, ends, weights, np.zeros(4)), 1.0, np.arange(4)).tolist()
    [0, 0, 1, 1]
    """
    labels = np.arange(order.shape[0])
    while True:
        p = graph.loops.shape[0]
        level = np.arange(p)
        _settle(graph, level, p, resolution, order, 0)
        count = _numbered(level)
        for i in range(labels.shape[0]):
            labels[i] = level[labels[i]]
        # If any node has moved, a community is empty, because nodes never move to an
        # empty community.
        if count == p:
            return labels
        graph = aggregate(graph, level, count)
        order = np.arange(count)


@njit()
def move_nodes(graph, labels, k, resolution, order):
    """Move nodes between k communities until no move has a gain; return the labels.

    The last node of a community never moves.

    Parameters
    ----------
    graph : Graph
        Graph of p nodes.
    labels : ndarray of shape (p,), int64
        Initial community of each node, from 0 to k - 1.
    k : int
        Number of communities.
    resolution : float
        Resolution r in the gain of a move.
    order : ndarray of shape (p,), int64
        All nodes, in the order in which they are first visited.

    Returns
    -------
    ndarray of shape (p,), int64
        Community of each node; the communities are not renumbered.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph._louvain import move_nodes
    >>> from mmcnb.graph.communities import Graph
    >>> starts, ends = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])
    >>> chain = Graph(starts, ends, np.array([5.0, 5.0, 1.0, 1.0]), np.zeros(3))
    >>> move_nodes(chain, np.array([0, 1, 1]), 2, 1.0, np.arange(3)).tolist()
    [0, 0, 1]
    """
    moved = labels.copy()
    _settle(graph, moved, k, resolution, order, 1)
    return moved

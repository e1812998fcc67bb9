"""Communities of a weighted graph: Louvain, and moves of single nodes.

A graph is symmetric, in CSR form without its diagonal. ``loops`` is the diagonal: the
weight of each node with itself. The volume of a node is the sum of its row and its
loop.

In a community a node gains ``w - r v V / T``. Here w is the weight of its edges there,
r the resolution and v its volume. V is the volume of the others there, and T that of
all nodes. Sums go in a fixed order, so a graph gives the same labels on every machine.
"""

import numpy as np

from mmcnb._numba import njit

# of the terms of a gain: less may be rounding, and moves for rounding might never end
LEAST_GAIN = 1e-12


@njit()
def _numbered(labels):
    """Number the communities by their first nodes, in place; returns how many there are."""
    numbers = np.full(labels.shape[0], -1, np.int64)
    count = 0
    for i in range(labels.shape[0]):
        if numbers[labels[i]] < 0:
            numbers[labels[i]] = count
            count += 1
        labels[i] = numbers[labels[i]]
    return count


@njit()
def _best(row, weights, labels, own, volumes, volume, price, links):
    """The community in which a node gains most: its own unless another is clearly better.

    ``links`` is zero before and after. Among equal ones the lowest number is best.
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
        links[c] = 0.0  # a second edge there sees less gain, which changes nothing
    return best if most - stays > LEAST_GAIN * (volume + paid) else own


@njit()
def _settle(indptr, indices, weights, loops, labels, k, resolution, order, kept):
    """Move nodes, in place, until none gains; a community of ``kept`` nodes loses none.

    After a move, only neighbours in other communities look again: those in the same one
    gain by it.
    """
    p = labels.shape[0]
    volume = loops.copy()
    volumes = np.zeros(k)
    sizes = np.zeros(k, np.int64)
    links = np.zeros(k)
    total = 0.0
    for i in range(p):
        for e in range(indptr[i], indptr[i + 1]):
            volume[i] += weights[e]
        volumes[labels[i]] += volume[i]
        sizes[labels[i]] += 1
        total += volume[i]
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
        start = indptr[i]
        end = indptr[i + 1]
        if sizes[own] == kept:
            continue
        row = indices[start:end]
        c = _best(
            row,
            weights[start:end],
            labels,
            own,
            volumes,
            volume[i],
            scale * volume[i],
            links,
        )
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
    """Nodes in the order of their labels."""
    order = np.empty(labels.shape[0], np.int64)
    sizes = np.bincount(labels, minlength=k)
    place = np.cumsum(sizes) - sizes
    for i in range(labels.shape[0]):
        order[place[labels[i]]] = i
        place[labels[i]] += 1
    return order


@njit()
def aggregate(indptr, indices, weights, loops, labels, k):
    """Graph of the communities of a graph: each becomes one node, with the sum of all weights between two.

    Parameters
    ----------
    indptr : ndarray of shape (p + 1,), int
        Start of each row of the graph.
    indices : ndarray of shape (stored,), int
        Neighbours of each node.
    weights : ndarray of shape (stored,), float64, above 0
        Weights of the edges; symmetric.
    loops : ndarray of shape (p,), float64, at least 0
        Weight of each node with itself.
    labels : ndarray of shape (p,), int
        Community of each node, from 0 to k - 1.
    k : int
        Number of communities.

    Returns
    -------
    indptr : ndarray of shape (k + 1,), int64
        Start of each row of the graph of communities.
    indices : ndarray, int64
        Neighbours of each community, in ascending order.
    weights : ndarray, float64
        Sums of the weights.
    loops : ndarray of shape (k,), float64
        Loops of the nodes of each community and its inner edges, each in both
        directions.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph._louvain import aggregate
    >>> chain = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), np.array([5.0, 5.0, 1.0, 1.0])
    >>> [part.tolist() for part in aggregate(*chain, np.zeros(3), np.array([0, 0, 1]), 2)]
    [[0, 1, 2], [1, 0], [1.0, 1.0], [10.0, 0.0]]
    """
    starts = np.zeros(k + 1, np.int64)
    inner = np.zeros(k)
    for i in range(labels.shape[0]):
        starts[labels[i] + 1] += (
            indptr[i + 1] - indptr[i]
        )  # the most that a row can take
    starts = np.cumsum(starts)
    ends = starts.copy()
    columns = np.empty(indices.shape[0], np.int64)
    sums = np.empty(indices.shape[0])
    for j in _by_label(
        labels, k
    ):  # the graph is symmetric: columns in order give rows in order
        b = labels[j]
        inner[b] += loops[j]
        for e in range(indptr[j], indptr[j + 1]):
            a = labels[indices[e]]
            if a == b:
                inner[b] += weights[e]
            elif ends[a] > starts[a] and columns[ends[a] - 1] == b:
                sums[ends[a] - 1] += weights[e]
            else:
                columns[ends[a]], sums[ends[a]] = b, weights[e]
                ends[a] += 1
    stored = 0
    for c in range(k):
        start = starts[c]
        starts[c] = stored
        for e in range(start, ends[c]):
            columns[stored], sums[stored] = columns[e], sums[e]
            stored += 1
    starts[k] = stored
    return starts, columns[:stored].copy(), sums[:stored].copy(), inner


@njit()
def louvain(indptr, indices, weights, loops, resolution, order):
    """Communities by Louvain: nodes move until none gains, then whole communities, and so on.

    Parameters
    ----------
    indptr : ndarray of shape (p + 1,), int
        Start of each row of the graph.
    indices : ndarray of shape (stored,), int
        Neighbours of each node.
    weights : ndarray of shape (stored,), float64, above 0
        Weights of the edges; symmetric.
    loops : ndarray of shape (p,), float64, at least 0
        Weight of each node with itself.
    resolution : float
        The price of volume; more gives more communities.
    order : ndarray of shape (p,), int
        All nodes, in the order in which they look first.

    Returns
    -------
    ndarray of shape (p,), int64
        Community of each node, numbered by first node.

    References
    ----------
    V. Blondel et al., Fast unfolding of communities in large networks. The queue is
    that of V. Traag et al., From Louvain to Leiden.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph._louvain import louvain
    >>> ring = np.arange(0, 9, 2), np.array([1, 3, 0, 2, 1, 3, 0, 2])
    >>> weights = np.array([5.0, 1.0, 5.0, 1.0, 1.0, 5.0, 1.0, 5.0])
    >>> louvain(*ring, weights, np.zeros(4), 1.0, np.arange(4)).tolist()
    [0, 0, 1, 1]
    """
    starts = indptr.astype(np.int64)
    columns = indices.astype(np.int64)
    sums = weights.copy()
    inner = loops.copy()
    labels = np.arange(loops.shape[0])
    turns = order.astype(np.int64)
    while True:
        c = inner.shape[0]
        level = np.arange(c)
        _settle(starts, columns, sums, inner, level, c, resolution, turns, 0)
        count = _numbered(level)
        for i in range(labels.shape[0]):
            labels[i] = level[labels[i]]
        if (
            count == c
        ):  # the first move of a level empties a community, and nothing fills it again
            return labels
        starts, columns, sums, inner = aggregate(
            starts, columns, sums, inner, level, count
        )
        turns = np.arange(count)


@njit()
def move_nodes(indptr, indices, weights, loops, labels, k, resolution, order):
    """Labels after moves of single nodes among k communities, until none gains.

    No community loses its last node.

    Parameters
    ----------
    indptr : ndarray of shape (p + 1,), int
        Start of each row of the graph.
    indices : ndarray of shape (stored,), int
        Neighbours of each node.
    weights : ndarray of shape (stored,), float64, above 0
        Weights of the edges; symmetric.
    loops : ndarray of shape (p,), float64, at least 0
        Weight of each node with itself.
    labels : ndarray of shape (p,), int
        Community of each node at the start, from 0 to k - 1.
    k : int
        Number of communities.
    resolution : float
        The price of volume.
    order : ndarray of shape (p,), int
        All nodes, in the order in which they look first.

    Returns
    -------
    ndarray of shape (p,), int64
        Community of each node, under its number from the start.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph._louvain import move_nodes
    >>> chain = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), np.array([5.0, 5.0, 1.0, 1.0])
    >>> move_nodes(*chain, np.zeros(3), np.array([0, 1, 1]), 2, 1.0, np.arange(3)).tolist()
    [0, 0, 1]
    """
    moved = labels.astype(np.int64)
    _settle(indptr, indices, weights, loops, moved, k, resolution, order, 1)
    return moved

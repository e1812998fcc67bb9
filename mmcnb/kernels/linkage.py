"""Average linkage of rows by their distances: chains of nearest neighbours.

A chain goes from a cluster to its nearest other one, and on, each step shorter than the one before. It ends
in two clusters that are nearest to each other; they merge, and the chain goes on from the one before them.
A merged cluster is never nearer to a third than the nearer of its parts was, so these merges are those of the
closest pairs.
"""

import numpy as np

from mmcnb._numba import njit


@njit()
def _nearest(row, active, x, before):
    """The active row nearest to x; the one before it in the chain where no other is nearer."""
    nearest, least = before, row[before] if before >= 0 else np.inf
    for y in range(row.shape[0]):
        if row[y] < least and active[y] and y != x:
            nearest, least = y, row[y]
    return nearest


@njit()
def _merge(distances, active, sizes, x, y):
    """Let y stand for the rows of x too."""
    share = sizes[x] / (sizes[x] + sizes[y])
    row, other = distances[y], distances[x]
    for z in range(row.shape[0]):
        row[z] = share * other[z] + (1.0 - share) * row[z]
        if active[z]:
            distances[z, y] = row[z]
    sizes[y] += sizes[x]
    active[x] = False


@njit()
def _still_active(chain, active):
    """How much of a chain is left; where distances differ by rounding, a row may have been in it twice."""
    for length in range(chain.shape[0]):
        if not active[chain[length]]:
            return length
    return chain.shape[0]


@njit()
def average_linkage(distances):
    """Merges of average linkage, and the mean distance between the two clusters of each.

    Time grows with m², and nothing of that size is held beside the distances.

    Parameters
    ----------
    distances : ndarray of shape (m, m), float32 or float64, at least 0, overwritten
        Distances of the rows, symmetric and finite.

    Returns
    -------
    merges : ndarray of shape (m - 1, 2), int64
        The last row of each of the two clusters that merge; the second is the last row of both. Merges are
        in the order in which they were found: order them by their heights.
    heights : ndarray of shape (m - 1,), float64
        Mean distance between the rows of the two clusters.

    References
    ----------
    F. Murtagh, A survey of recent advances in hierarchical clustering algorithms.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import average_linkage
    >>> x = np.array([0.0, 5.0, 1.0])
    >>> merges, heights = average_linkage(np.abs(x[:, None] - x))
    >>> merges.tolist(), heights.tolist()
    ([[0, 2], [1, 2]], [1.0, 4.5])
    """
    m = distances.shape[0]
    merges, heights = np.empty((max(m - 1, 0), 2), np.int64), np.empty(max(m - 1, 0))
    active, sizes = np.ones(m, np.bool_), np.ones(m)
    chain, length, first = np.empty(m, np.int64), 0, 0
    for step in range(m - 1):
        if length == 0:
            while not active[first]:
                first += 1
            chain[0], length = first, 1
        while True:
            x = chain[length - 1]
            before = chain[length - 2] if length > 1 else -1
            y = _nearest(distances[x], active, x, before)
            if y < 0:  # all are infinitely far
                y = m - 1
                while y == x or not active[y]:
                    y -= 1
            if y == before or length == m:
                break
            chain[length] = y
            length += 1
        merges[step, 0], merges[step, 1] = min(x, y), max(x, y)
        heights[step] = distances[x, y]
        _merge(distances, active, sizes, min(x, y), max(x, y))
        length = _still_active(chain[: max(length - 2, 0)], active)
    return merges, heights

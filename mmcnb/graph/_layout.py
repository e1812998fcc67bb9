"""Layout of a graph: edges pull their ends together, and random nodes push them away.

Let s = 1/(1 + d²) be the similarity of two nodes at distance d. An edge pulls with the
gradient of log s, and a random node pushes with the gradient of log(1 - s).

Terms are added in a fixed order, and random numbers are computed with integers, so the
result is identical to the last bit on all processors.
"""

import numpy as np

from mmcnb._numba import njit

LARGEST_STEP = 4.0  # maximum force along each axis
CLOSE = 1e-3  # added to squared distances in a push, to avoid a division by 0


# SplitMix64, copied from `mmcnb.kernels.evolution` because the compile cache would not
# notice changes in another module.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_30 = np.uint64(30)
SHIFT_27 = np.uint64(27)
SHIFT_31 = np.uint64(31)
SHIFT_11 = np.uint64(11)


@njit()
def _below(state, n):
    """Return a random integer from 0 to n - 1."""
    state[0] += GOLDEN
    x = state[0]
    x = (x ^ (x >> SHIFT_30)) * MIX_1
    x = (x ^ (x >> SHIFT_27)) * MIX_2
    x = x ^ (x >> SHIFT_31)
    return np.int64(np.float64(x >> SHIFT_11) * 2.0**-53 * n)


# The next functions are inlined and receive row indices instead of rows, because calls
# and views of rows would take more time than the arithmetic.
@njit(inline="always")
def _difference(positions, i, j, differences, n):
    """Write row i minus row j to ``differences[n]``; return its squared length."""
    square = 0.0
    for c in range(positions.shape[1]):
        differences[n, c] = positions[i, c] - positions[j, c]
    for c in range(positions.shape[1]):
        square += differences[n, c] * differences[n, c]
    return square


@njit(inline="always")
def _clipped(force):
    """Limit a force along one axis to ``LARGEST_STEP``."""
    return max(-LARGEST_STEP, min(force, LARGEST_STEP))


@njit(inline="always")
def _pull(positions, i, j, rate, differences):
    """Pull both ends of an edge together."""
    square = _difference(positions, i, j, differences, 0)
    scale = -2.0 / (1.0 + square)
    for c in range(positions.shape[1]):
        step = rate * _clipped(scale * differences[0, c])
        positions[i, c] += step
        positions[j, c] -= step


@njit(inline="always")
def _push(positions, i, pushers, rate, differences, scales, force):
    """Push node i away from several nodes at once.

    Each step has its own loop, so that the processor can start a sum before the
    previous sum is complete.
    """
    for n in range(pushers.shape[0]):
        scales[n] = _difference(positions, i, pushers[n], differences, n)
    for n in range(pushers.shape[0]):
        square = scales[n]
        scales[n] = 2.0 / ((CLOSE + square) * (1.0 + square))
    force[:] = 0.0
    for n in range(pushers.shape[0]):
        for c in range(positions.shape[1]):
            force[c] += _clipped(scales[n] * differences[n, c])
    for c in range(positions.shape[1]):
        positions[i, c] += rate * force[c]


@njit()
def lay_out(indptr, indices, weights, start, n_epochs, n_negative, seed):
    """Compute positions with connected nodes close together and other nodes apart.

    An edge with weight w is visited in a fraction w of the epochs. Each visit pulls the
    ends of the edge together, and pushes the first end away from random nodes.

    Parameters
    ----------
    indptr, indices : ndarray of int32 or int64
        Rows of a symmetric graph in CSR form.
    weights : ndarray of shape (stored,), float64
        Weights of the edges divided by the largest weight, in (0, 1].
    start : ndarray of shape (p, q), float64
        Initial positions.
    n_epochs : int
        Number of passes over all edges; the step size decreases linearly to 0.
    n_negative : int
        Number of random nodes from which each visit pushes the first end away.
    seed : int
        Random seed, at least 0.

    Returns
    -------
    ndarray of shape (p, q), float64
        Final positions.

    References
    ----------
    L. McInnes, J. Healy and J. Melville, UMAP: Uniform manifold approximation and
    projection.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph._layout import lay_out
    >>> start = np.array([[0.0], [4.0]])
    >>> positions = lay_out(np.arange(3), np.array([1, 0]), np.ones(2), start, 10, 0, 0)
    >>> positions.round(1).tolist()
    [[2.0], [2.0]]
    """
    positions = start.copy()
    p = start.shape[0]
    due = np.zeros(weights.shape[0])
    pushers = np.empty(n_negative, np.int64)
    scales = np.empty(n_negative)
    differences = np.empty((max(n_negative, 1), start.shape[1]))
    force = np.empty(start.shape[1])
    state = np.array([seed], np.uint64)
    for epoch in range(n_epochs):
        rate = 1.0 - epoch / n_epochs
        for i in range(start.shape[0]):
            for edge in range(indptr[i], indptr[i + 1]):
                due[edge] += weights[edge]
                if due[edge] < 1.0:
                    continue
                due[edge] -= 1.0
                for n in range(n_negative):
                    pushers[n] = _below(state, p)
                _pull(positions, i, indices[edge], rate, differences)
                _push(positions, i, pushers, rate, differences, scales, force)
    return positions

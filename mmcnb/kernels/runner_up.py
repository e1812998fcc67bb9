"""Sums over the rows of a block for the margin of k clusters (Crammer and Singer).

The runner-up r of a row in cluster c is the other cluster with the largest score; ties
go to the first cluster. The margin of the row is f_c - f_r, and its hinge loss is
max(0, rho - (f_c - f_r)).
"""

import numpy as np

from mmcnb._numba import VECTORISED, njit
from mmcnb.kernels._checks import FLOATS, INTEGERS, Array, FromZero, Number, takes

FEATURES = Array("(rows, p)", FLOATS)
SCORES = Array("(rows, k)", "float64")
LABELS = FromZero("(rows,)", INTEGERS, below="k")
WEIGHTS = FromZero("(rows,)", "float64")


# Process four rows and two vectors at once, so that each loaded number is used several
# times.
@njit(fastmath=VECTORISED)
def _dots(F, i0, i1, i2, i3, a, b):
    """Return the inner products of four rows of a block with two vectors."""
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    t0 = 0.0
    t1 = 0.0
    t2 = 0.0
    t3 = 0.0
    for j in range(F.shape[1]):
        x0 = np.float64(F[i0, j])
        x1 = np.float64(F[i1, j])
        x2 = np.float64(F[i2, j])
        x3 = np.float64(F[i3, j])
        s0 = s0 + x0 * a[j]
        s1 = s1 + x1 * a[j]
        s2 = s2 + x2 * a[j]
        s3 = s3 + x3 * a[j]
        t0 = t0 + x0 * b[j]
        t1 = t1 + x1 * b[j]
        t2 = t2 + x2 * b[j]
        t3 = t3 + x3 * b[j]
    return s0, s1, s2, s3, t0, t1, t2, t3


@njit()
@takes(F=FEATURES, coef=Array("(k, p)", "float64"), offset=Array("(k,)", "float64"))
def cluster_scores(F, coef, offset):
    """Compute the scores f_h = F coef_h - offset_h of the rows of a block.

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64
        Features of the rows.
    coef : ndarray of shape (k, p), float64
        Coefficients of the score of each cluster.
    offset : ndarray of shape (k,), float64
        Offset that is subtracted from the score of each cluster.

    Returns
    -------
    ndarray of shape (rows, k), float64
        ``F @ coef.T - offset``, computed without a float64 copy of float32 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import cluster_scores
    >>> coef, offset = np.array([[3.0, -1.0], [0.0, 1.0]]), np.array([0.5, 0.0])
    >>> cluster_scores(np.array([[1.0, 2.0]]), coef, offset)
    array([[0.5, 2. ]])
    """
    rows = F.shape[0]
    k = coef.shape[0]
    scores = np.empty((rows, k))
    for i in range(0, rows, 4):
        # Repeat the last row and the last score if fewer than four rows or two scores
        # are left, so that all sums are computed in the same order.
        i1 = min(i + 1, rows - 1)
        i2 = min(i + 2, rows - 1)
        i3 = min(i + 3, rows - 1)
        for h in range(0, k, 2):
            g = min(h + 1, k - 1)
            s0, s1, s2, s3, t0, t1, t2, t3 = _dots(F, i, i1, i2, i3, coef[h], coef[g])
            scores[i, h] = s0
            scores[i1, h] = s1
            scores[i2, h] = s2
            scores[i3, h] = s3
            scores[i, g] = t0
            scores[i1, g] = t1
            scores[i2, g] = t2
            scores[i3, g] = t3
    scores -= offset
    return scores


@njit(fastmath=VECTORISED)
def _add_difference(gaining, losing, row, scale):
    for j in range(row.shape[0]):
        value = row[j] * scale
        gaining[j] += value
        losing[j] -= value


@njit()
def _largest(scores, without):
    """Return the first cluster other than ``without`` with the largest score, or -1."""
    best = -1
    largest = -np.inf
    for h in range(scores.shape[0]):
        if h != without and scores[h] > largest:
            best = h
            largest = scores[h]
    return best


@njit()
@takes(
    F=FEATURES, scores=SCORES, labels=LABELS, weights=WEIGHTS, rho=Number(finite=False)
)
def most_violated_runner_ups(F, scores, labels, weights, rho):
    """Find the most violated constraint of the margin of k clusters, for fixed labels.

    The margin of a row is f_c - f_r, where r is its runner-up. A row is in the
    constraint if its margin is at most rho. It is then added to the sum of its cluster
    and subtracted from the sum of its runner-up.

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64
        Features of the rows.
    scores : ndarray of shape (rows, k), float64
        Score of each row for each cluster.
    labels : ndarray of shape (rows,), int32 or int64, in [0, k)
        Zero-based index of the cluster of each row.
    weights : ndarray of shape (rows,), float64, at least 0
        Sample weights.
    rho : float
        Threshold of the margin, which may be infinite.

    Returns
    -------
    row_sums : ndarray of shape (k, p), float64
        Weighted sum of (e_c - e_r) F over the rows in the constraint, where e_c and e_r
        are unit vectors.
    shares : ndarray of shape (k,), float64
        Weighted sum of (e_c - e_r) over the rows in the constraint.
    sums : ndarray of shape (4,), float64
        Sums over the rows in the constraint: weight, and weighted rho - margin. Sums
        over all rows: weight of the rows whose largest score belongs to another
        cluster, and weighted hinge loss if each row were in the cluster with its
        largest score.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import most_violated_runner_ups
    >>> F, scores = np.array([[2.0], [3.0]]), np.array([[1.0, 0.0], [0.0, 5.0]])
    >>> labels = np.array([0, 1])
    >>> row_sums, shares, sums = most_violated_runner_ups(
    ...     F, scores, labels, np.ones(2), 1.5
    ... )
    >>> row_sums.tolist(), shares.tolist(), sums.tolist()
    ([[2.0], [-2.0]], [1.0, -1.0], [1.0, 0.5, 0.0, 0.5])
    """
    k = scores.shape[1]
    row_sums = np.zeros((k, F.shape[1]))
    shares = np.zeros(k)
    active = 0.0
    violation = 0.0
    changed = 0.0
    hinge = 0.0
    for i in range(F.shape[0]):
        c = labels[i]
        weight = weights[i]
        r = _largest(scores[i], c)
        if r < 0:
            continue
        margin = scores[i, c] - scores[i, r]
        # The margin if the row were in the cluster with its largest score; ties go to
        # the first cluster.
        largest = margin
        if not (margin > 0 or (margin == 0 and c < r)):
            largest = scores[i, r] - scores[i, _largest(scores[i], r)]
            changed += weight
        hinge += weight * max(0.0, rho - largest)
        if margin <= rho:
            active += weight
            violation += weight * (rho - margin)
            shares[c] += weight
            shares[r] -= weight
            _add_difference(row_sums[c], row_sums[r], F[i], weight)
    return row_sums, shares, np.array([active, violation, changed, hinge])

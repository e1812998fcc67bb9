"""Single moves of rows between clusters, for regularised least squares.

The smoother ``R`` = K (K + λI)^-1 is symmetric of shape (m, m), and e_h is the
indicator of cluster h. All searches store ``T[h]`` = R e_h, so that computing the gain
of a move costs O(1) and making a move costs O(m): Pahikkala et al., Lemmas 2 and 3. Two
objectives are maximised: Σ_h e_h'R e_h, which is the negative of Q in Pahikkala et al.
up to constants, and the mean form J = Σ_h e_h'R e_h / n_h, where n_h is the size of
cluster h. Ties go to the first row.
"""

import numpy as np

from mmcnb._numba import njit
from mmcnb.kernels._checks import (
    FLOATS,
    INTEGERS,
    Array,
    Flag,
    FromZero,
    Number,
    Whole,
    takes,
)

LANES = 64  # number of gains that are compared with the largest gain at once
# Gain that a move must exceed: far above rounding errors, and far below the gain of a
# useful move.
LEAST_GAIN = 1e-9

ROWS = {
    "F": Array("(rows, p)", FLOATS),
    "labels": FromZero("(rows,)", INTEGERS, below="k"),
}
SMOOTHED = {
    "R": Array("(m, m)", "float64"),
    "labels": FromZero("(m,)", INTEGERS, below="k"),
}
SIZES = {
    "low": Array("(k,)", INTEGERS, least=1),
    "high": Array("(k,)", INTEGERS, least="low"),
}
SHARES = FromZero("(k,)", "float64")


@njit()
@takes(**ROWS, n_clusters=Whole(least=1, size="k"), weights=Array("(rows,)", "float64"))
def cluster_row_sums(F, labels, n_clusters, weights):
    """Sum the weighted rows of each cluster.

    If F is the smoother R and all weights are 1, the sums are R e_h: Pahikkala et al.,
    Lemma 2.

    Parameters
    ----------
    F : ndarray of shape (rows, p), float32 or float64
        The rows.
    labels : ndarray of shape (rows,), int32 or int64, in [0, k)
        Zero-based index of the cluster of each row.
    n_clusters : int, at least 1
        Number of clusters, k.
    weights : ndarray of shape (rows,), float64
        Weights of the rows.

    Returns
    -------
    sums : ndarray of shape (k, p), float64
        Weighted sum of the rows of each cluster.
    sizes : ndarray of shape (k,), float64
        Sum of the weights of each cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import cluster_row_sums
    >>> labels, weights = np.array([0, 1, 0]), np.array([1.0, 1.0, 2.0])
    >>> sums, sizes = cluster_row_sums(np.eye(3), labels, 2, weights)
    >>> sums.tolist(), sizes.tolist()
    ([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]], [3.0, 1.0])
    """
    sums = np.zeros((n_clusters, F.shape[1]))
    sizes = np.zeros(n_clusters)
    for i in range(F.shape[0]):
        sizes[labels[i]] += weights[i]
        total = sums[labels[i]]
        row = F[i]
        for j in range(F.shape[1]):
            total[j] += weights[i] * row[j]
    return sums, sizes


@njit()
def _start(R, labels, n_clusters):
    """Return R e_h and the size of each cluster, and the diagonal of R."""
    m = R.shape[0]
    weights = np.empty(m)
    diagonal = np.empty(m)
    counts = np.zeros(n_clusters, np.int64)
    for i in range(m):
        weights[i] = 1.0
        diagonal[i] = R[i, i]
        counts[labels[i]] += 1
    T, _ = cluster_row_sums(R, labels, n_clusters, weights)
    return T, counts, diagonal


@njit()
def _move(R, labels, T, counts, i, d):
    """Move row i to cluster d."""
    a = labels[i]
    row = R[i]
    loser = T[a]
    winner = T[d]
    for j in range(row.shape[0]):
        loser[j] -= row[j]
        winner[j] += row[j]
    labels[i] = d
    counts[a] -= 1
    counts[d] += 1


@njit()
def _first_largest(values):
    """Return the index of the first largest value, or -1 if all values are -inf."""
    best = -1
    largest = -np.inf
    for start in range(0, values.shape[0], LANES):
        part = values[start : start + LANES]
        above = 0
        # First count larger values with vector instructions, which is faster than
        # branches.
        for j in range(part.size):
            above += part[j] > largest
        if above == 0:
            continue
        for j in range(part.size):
            if part[j] > largest:
                best = start + j
                largest = part[j]
    return best


@njit()
def _claim(R, diagonal, labels, T, counts, d, n_rows, gains):
    """Move rows to cluster d, largest gain first, and return the number of moves.

    At most ``n_rows`` rows are moved. The last row of another cluster is never moved.
    """
    for j in range(gains.shape[0]):
        a = labels[j]
        gains[j] = -np.inf
        if a != d and counts[a] > 1:
            gains[j] = T[d, j] - T[a, j] + diagonal[j]
    for step in range(n_rows):
        i = _first_largest(gains)
        if i < 0:
            return step
        a = labels[i]
        row = R[i]
        _move(R, labels, T, counts, i, d)
        gains[i] = -np.inf
        for j in range(gains.shape[0]):
            gains[j] += 2.0 * row[j] if labels[j] == a else row[j]
        if counts[a] == 1:
            for j in range(gains.shape[0]):
                if labels[j] == a:
                    gains[j] = -np.inf
    return max(n_rows, 0)


@njit()
@takes(
    **SMOOTHED,
    proportions=SHARES,
    amplitude=Number(least=0),
    decay=Number(least=0),
    rounds=Whole(),
)
def shake(R, labels, proportions, amplitude, decay, rounds):
    """Search by steepest descent with shaking: Pahikkala et al., Algorithm 3.

    In round i, each cluster h in turn takes rows from other clusters until it has
    ``(1 + amplitude * decay**i) * m * proportions[h]`` rows. The published schedule has
    equal proportions, amplitude 1, decay 1/2 and 21 rounds.

    Parameters
    ----------
    R : ndarray of shape (m, m), float64
        The symmetric smoother.
    labels : ndarray of shape (m,), int32 or int64, in [0, k)
        Initial labels.
    proportions : ndarray of shape (k,), float64, at least 0
        Target proportions of the clusters, with sum 1.
    amplitude, decay : float, at least 0
        Excess over the target size that each cluster reaches in the first round, as a
        fraction of the target size, and factor by which this fraction is multiplied
        after each round.
    rounds : int, at least 0
        Number of rounds.

    Returns
    -------
    labels : ndarray of shape (m,), int64
        Final labels.
    moves : int
        Number of moves in all rounds.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import shake
    >>> R = np.kron(np.eye(2), np.full((2, 2), 0.4))
    >>> labels, moves = shake(R, np.array([0, 1, 0, 1]), np.full(2, 0.5), 1.0, 0.5, 21)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    labels = labels.astype(np.int64)
    m = R.shape[0]
    T, counts, diagonal = _start(R, labels, proportions.shape[0])
    gains = np.empty(m)
    moves = 0
    for i in range(rounds):
        before = moves
        for d in range(proportions.shape[0]):
            target = m * proportions[d]
            n_rows = int(amplitude * decay**i * target + target - counts[d])
            moves += _claim(R, diagonal, labels, T, counts, d, n_rows, gains)
        # Later rounds move fewer rows to each cluster, so they would not move any rows.
        if moves == before:
            break
    return labels, moves


@njit()
def _leaving_losses(labels, T_own, counts, sums, diagonal, may_leave, by_mean, losses):
    """Write, for each row, the loss of the objective if the row leaves its cluster.

    ``T_own`` contains, for each row, the entry of T for the row and its own cluster.
    """
    now = np.empty(counts.shape[0])
    rests = np.empty(counts.shape[0])
    for h in range(counts.shape[0]):
        now[h] = np.inf
        rests[h] = 1.0
        if not may_leave[h]:
            continue
        now[h] = sums[h]
        if by_mean:
            now[h] = sums[h] / counts[h]
            rests[h] = counts[h] - 1.0
    for j in range(losses.shape[0]):
        a = labels[j]
        # e_a'R e_a without row j.
        rest = sums[a] - 2.0 * T_own[j] + diagonal[j]
        losses[j] = now[a] - rest / rests[a]


@njit()
def _best_targets(T, labels, counts, sums, diagonal, may_enter, by_mean, best, targets):
    """Write, for each row, the other cluster with the largest gain, and this gain."""
    for j in range(best.shape[0]):
        best[j] = -np.inf
    for d in range(T.shape[0]):
        if not may_enter[d]:
            continue
        scale = 1.0
        now = sums[d]
        if by_mean:
            scale = 1.0 / (counts[d] + 1)
            if counts[d] > 0:
                now = sums[d] / counts[d]
        total = T[d]
        constant = scale * sums[d] - now
        for j in range(best.shape[0]):
            win = scale * (2.0 * total[j] + diagonal[j]) + constant
            better = (win > best[j]) & (labels[j] != d)
            best[j] = win if better else best[j]
            targets[j] = d if better else targets[j]


@njit()
def _allowed(counts, low, high, may_leave, may_enter):
    """Mark which clusters may lose or gain a row; return whether sizes force a move."""
    over = False
    under = False
    for h in range(counts.shape[0]):
        over = over or counts[h] > high[h]
        under = under or counts[h] < low[h]
    for h in range(counts.shape[0]):
        least = low[h]
        most = high[h]
        if over:
            least = high[h]
        elif under:
            most = low[h]
        may_leave[h] = counts[h] > least
        may_enter[h] = counts[h] < most
    return over or under


@njit()
@takes(**SMOOTHED, **SIZES, most=Whole(), by_mean=Flag())
def steepest_moves(R, labels, low, high, most, by_mean):
    """Repeat the best single move within size limits: Pahikkala et al., Algorithm 2.

    Parameters
    ----------
    R : ndarray of shape (m, m), float64
        The symmetric smoother.
    labels : ndarray of shape (m,), int32 or int64, in [0, k)
        Initial labels. If cluster sizes are outside the limits, the first moves correct
        them.
    low : ndarray of shape (k,), int32 or int64, at least 1
        Minimum number of rows in each cluster.
    high : ndarray of shape (k,), int32 or int64, at least low
        Maximum number of rows in each cluster. The published algorithm has the limits 1
        and m.
    most : int, at least 0
        Maximum number of moves.
    by_mean : bool
        Whether the objective is the mean form J. Otherwise, it is Q, as published.

    Returns
    -------
    labels : ndarray of shape (m,), int64
        Final labels.
    moves : int
        Number of moves.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import steepest_moves
    >>> R = np.kron(np.eye(2), np.full((2, 2), 0.4)) - 0.2
    >>> bounds = np.array([1, 1]), np.array([3, 3])
    >>> labels, moves = steepest_moves(R, np.array([0, 0, 1, 0]), *bounds, 9, True)
    >>> labels.tolist(), moves
    ([0, 0, 1, 1], 1)
    """
    labels = labels.astype(np.int64)
    m = R.shape[0]
    k = low.shape[0]
    T, counts, diagonal = _start(R, labels, k)
    T_own = np.empty(m)
    losses = np.empty(m)
    gains = np.empty(m)
    targets = np.empty(m, np.int64)
    sums = np.zeros(k)
    for j in range(m):
        T_own[j] = T[labels[j], j]
        sums[labels[j]] += T_own[j]
    may_leave = np.empty(k, np.bool_)
    may_enter = np.empty(k, np.bool_)
    for step in range(most):
        forced = _allowed(counts, low, high, may_leave, may_enter)
        _leaving_losses(
            labels, T_own, counts, sums, diagonal, may_leave, by_mean, losses
        )
        _best_targets(
            T, labels, counts, sums, diagonal, may_enter, by_mean, gains, targets
        )
        for j in range(m):
            gains[j] -= losses[j]
        i = _first_largest(gains)
        if i < 0 or not (forced or gains[i] > LEAST_GAIN):
            return labels, step
        a = labels[i]
        d = targets[i]
        sums[a] += diagonal[i] - 2.0 * T[a, i]
        sums[d] += diagonal[i] + 2.0 * T[d, i]
        for j in range(m):
            change = 0.0
            if labels[j] == d:
                change = R[i, j]
            elif labels[j] == a:
                change = -R[i, j]
            T_own[j] += change
        _move(R, labels, T, counts, i, d)
        T_own[i] = T[d, i]
    return labels, most


@njit()
@takes(**SMOOTHED, **SIZES, order=FromZero("(m,)", INTEGERS, below="m"), sweeps=Whole())
def stochastic_moves(R, labels, low, high, order, sweeps):
    """Improve Q row by row within size limits: Pahikkala et al., Algorithm 1.

    Parameters
    ----------
    R : ndarray of shape (m, m), float64
        The symmetric smoother.
    labels : ndarray of shape (m,), int32 or int64, in [0, k)
        Initial labels.
    low : ndarray of shape (k,), int32 or int64, at least 1
        Minimum number of rows in each cluster.
    high : ndarray of shape (k,), int32 or int64, at least low
        Maximum number of rows in each cluster. No move violates the limits. The
        published algorithm has the limits 1 and m.
    order : ndarray of shape (m,), int32 or int64, in [0, m)
        Indices of the rows, in the order in which they are visited.
    sweeps : int, at least 0
        Maximum number of sweeps over all rows. The search stops after a sweep without a
        move.

    Returns
    -------
    labels : ndarray of shape (m,), int64
        Final labels.
    moves : int
        Number of moves.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import stochastic_moves
    >>> R = np.kron(np.eye(2), np.full((2, 2), 0.4)) - 0.2
    >>> bounds = np.array([1, 1]), np.array([3, 3])
    >>> start, order = np.array([0, 0, 1, 0]), np.array([3, 2, 1, 0])
    >>> labels, moves = stochastic_moves(R, start, *bounds, order, 9)
    >>> labels.tolist(), moves
    ([0, 0, 1, 1], 1)
    """
    labels = labels.astype(np.int64)
    T, counts, _ = _start(R, labels, low.shape[0])
    moves = 0
    for _ in range(sweeps):
        before = moves
        for i in order:
            a = labels[i]
            if counts[a] <= low[a]:
                continue
            target = -1
            best = LEAST_GAIN
            for d in range(T.shape[0]):
                gain = 2.0 * (T[d, i] - T[a, i] + R[i, i])
                if d != a and counts[d] < high[d] and gain > best:
                    target = d
                    best = gain
            if target >= 0:
                _move(R, labels, T, counts, i, target)
                moves += 1
        if moves == before:
            break
    return labels, moves

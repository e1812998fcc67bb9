"""Assign rows to clusters by their scores, with bounds on the sizes of the clusters.

The labels c that maximise Σ_i s_i,c(i) within the bounds are c(i) = argmax_h (s_ih -
b_h). The multipliers b minimise the dual Σ_i max_h (s_ih - b_h) + Σ_h max(low_h b_h,
high_h b_h). First, the multipliers are approximated by rounds of coordinate descent
over the clusters (five by default), in which each b_h is an order statistic. Then, if
all weights are 1, single rows move along shortest paths between clusters (min-cost flow
on k + 1 nodes) until all sizes are within the bounds. The last node is a hub with
multiplier 0: there is an edge of cost 0 to the hub from each cluster that may have one
row more, and from the hub to each cluster that may have one row less. With other
weights, more rounds of coordinate descent follow instead.
"""

import numpy as np

from mmcnb._numba import njit
from mmcnb.errors import InputError
from mmcnb.kernels._checks import INTEGERS, Array, FromZero, Whole, takes

# This file uses plain loops, because a single NumPy function would take longer to
# compile than the whole file. Functions that are called once, outside the inner loops,
# are inlined before LLVM sees them. Otherwise, LLVM would optimise their code again for
# each caller.

# Tolerance of path lengths as a fraction of the largest score, far above the rounding
# errors of sums along a path.
ROUNDING = 1e-12

SCORES = Array("(n, k)", "float64")
WEIGHTS = FromZero("(n,)", "float64")
BOUNDS = {
    "low": FromZero("(k,)", INTEGERS),
    "high": Array("(k,)", INTEGERS, least="low"),
}
START = Array("(k,)", "float64")


@np.errstate(over="ignore")
def _check_sizes(arguments):
    total = arguments["weights"].sum()
    rounding = 1e-9 * total
    least = arguments["low"].sum()
    most = arguments["high"].sum()
    if not least - rounding <= total <= most + rounding:
        raise InputError(
            f"low adds up to {least} and high to {most}, but the rows weigh {total:g}; "
            "give bounds such that this weight lies between the two sums."
        )


@njit()
def _margins(scores, b, h):
    """Return, for each row, score h minus the largest s - b of the other clusters."""
    n, k = scores.shape
    margins = np.empty(n)
    for i in range(n):
        other = -np.inf
        for g in range(k):
            if g != h:
                other = max(other, scores[i, g] - b[g])
        margins[i] = scores[i, h] - other
    return margins


@njit()
def _range(values):
    lowest = values[0]
    largest = values[0]
    for value in values:
        lowest = min(lowest, value)
        largest = max(largest, value)
    return lowest, largest


@njit()
def _find(margins, weights, order, limit):
    """Find the position at which the cumulative weight exceeds a limit.

    Rows are ordered by decreasing margin, and ties by row index. This is Hoare's FIND
    (quickselect) by weight, in place: afterwards, the rows before the position come
    first in ``order``.
    """
    first = 0
    last = order.shape[0] - 1
    before = 0.0
    while first <= last:
        middle = (first + last) // 2
        pivot = order[middle]
        order[middle] = order[last]
        order[last] = pivot
        place = first
        weight = before
        for k in range(first, last):
            i = order[k]
            if margins[i] > margins[pivot] or (
                margins[i] == margins[pivot] and i < pivot
            ):
                order[k] = order[place]
                order[place] = i
                weight += weights[i]
                place += 1
        order[last] = order[place]
        order[place] = pivot
        if weight > limit:
            last = place - 1
        elif weight + weights[pivot] > limit:
            return place
        else:
            first = place + 1
            before = weight + weights[pivot]
    return first


@njit()
def _order_statistic(margins, weights, low, high):
    """Return the b_h nearest to 0 for which rows with larger margins fit the bounds."""
    n = margins.shape[0]
    free = 0.0
    total = 0.0
    order = np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
        if margins[i] > 0:
            free += weights[i]
        total += weights[i]
    if low <= free <= high:
        return 0.0
    grain = 1e-9 * total
    if free > high:
        inside = _find(margins, weights, order, high + grain)
    else:
        inside = _find(margins, weights, order, low - grain) + 1
    least = np.inf
    largest = -np.inf
    for k in range(n):
        if k < inside:
            least = min(least, margins[order[k]])
        else:
            largest = max(largest, margins[order[k]])
    if inside == 0:
        return largest + 1.0
    if inside >= n:
        return least - 1.0
    return (least + largest) / 2


@njit()
def _rounds(scores, low, high, weights, b, rounds):
    """Optimise each b_h in turn; return whether the sizes are within the bounds."""
    k = scores.shape[1]
    grain = _range(weights)[1]
    for _ in range(rounds):
        holds = True
        for h in range(k):
            margins = _margins(scores, b, h)
            size = 0.0
            for i in range(margins.shape[0]):
                if margins[i] > b[h]:
                    size += weights[i]
            slack = 0.0
            if b[h] > 0:
                slack = high[h] - size
            elif b[h] < 0:
                slack = size - low[h]
            if size < low[h] or size > high[h] or slack >= grain:
                b[h] = _order_statistic(margins, weights, low[h], high[h])
                holds = False
        if holds:
            return True
    return False


@njit()
def _assign(scores, b):
    labels = np.empty(scores.shape[0], np.int64)
    for i in range(scores.shape[0]):
        best = 0
        largest = -np.inf
        for h in range(scores.shape[1]):
            value = scores[i, h] - b[h]
            if value > largest:
                best = h
                largest = value
        labels[i] = best
    return labels


@njit()
def _costs(scores, labels, sizes, low, high):
    """Return, for each pair of clusters, the least cost of a move, and the row."""
    n, k = scores.shape
    costs = np.empty((k + 1, k + 1))
    rows = np.empty((k + 1, k + 1), np.int64)
    for a in range(k + 1):
        for g in range(k + 1):
            costs[a, g] = np.inf
            rows[a, g] = -1
    for i in range(n):
        a = labels[i]
        for g in range(k):
            cost = scores[i, a] - scores[i, g]
            if cost < costs[a, g]:
                costs[a, g] = cost
                rows[a, g] = i
    # Node k is the hub.
    for h in range(k):
        costs[h, h] = 0.0
        if sizes[h] < high[h]:
            costs[h, k] = 0.0
        if sizes[h] > low[h]:
            costs[k, h] = 0.0
    return costs, rows


@njit()
def _shortest(costs, excess, rounding):
    """Return each node's distance from the nodes with an excess, and predecessor."""
    nodes = costs.shape[0]
    distance = np.empty(nodes)
    before = np.empty(nodes, np.int64)
    for a in range(nodes):
        distance[a] = np.inf
        before[a] = -1
        if excess[a] > 0:
            distance[a] = 0.0
    for _ in range(nodes):
        for a in range(nodes):
            for d in range(nodes):
                if distance[a] + costs[a, d] < distance[d] - rounding:
                    distance[d] = distance[a] + costs[a, d]
                    before[d] = a
    return distance, before


@njit()
def _add_extremes(b, distance, sign):
    """Add the multipliers that follow from the distances of all nodes to each root.

    Return the number of roots that all nodes can reach.
    """
    nodes = distance.shape[0]
    roots = 0
    for root in range(nodes):
        farthest = -np.inf
        for node in range(nodes):
            farthest = max(farthest, distance[node, root])
        if farthest == np.inf:
            continue
        roots += 1
        for h in range(b.shape[0]):
            b[h] += sign * (distance[h, root] - distance[-1, root])
    return roots


@njit(inline="always")
def _interior(costs):
    """Return multipliers far from ties: the mean of the extreme multipliers."""
    distance = costs.copy()
    k = costs.shape[0] - 1
    all_fixed = True
    for h in range(k):
        all_fixed = all_fixed and costs[h, k] == np.inf and costs[k, h] == np.inf
    # If all sizes are fixed, one multiplier is arbitrary.
    if all_fixed:
        distance[0, k] = 0.0
        distance[k, 0] = 0.0
    for via in range(k + 1):
        for a in range(k + 1):
            for d in range(k + 1):
                distance[a, d] = min(
                    distance[a, d], distance[a, via] + distance[via, d]
                )
    b = np.zeros(k)
    roots = _add_extremes(b, distance, 1.0)
    backwards = np.empty((k + 1, k + 1))
    for a in range(k + 1):
        for d in range(k + 1):
            backwards[a, d] = distance[d, a]
    roots += _add_extremes(b, backwards, -1.0)
    for h in range(k):
        b[h] /= max(roots, 1)
    return b


@njit(inline="always")
def _first_sizes(counts, low, high, b):
    """Return target sizes, which are at a bound where the multiplier is not 0."""
    sizes = np.empty(counts.shape[0], np.int64)
    for h in range(counts.shape[0]):
        if b[h] > 0:
            sizes[h] = high[h]
        elif b[h] < 0:
            sizes[h] = low[h]
        else:
            sizes[h] = min(max(counts[h], low[h]), high[h])
    return sizes


@njit(inline="always")
def _nearest_deficit(excess, distance):
    """Return the nearest node that lacks rows."""
    nearest = -1
    for node in range(excess.shape[0]):
        if excess[node] < 0 and (nearest < 0 or distance[node] < distance[nearest]):
            nearest = node
    return nearest


@njit(inline="always")
def _flow(scores, least, most, b):
    """Move single rows along shortest paths until every size is within its bounds."""
    n, k = scores.shape
    labels = _assign(scores, b)
    counts = np.zeros(k, np.int64)
    # Use integers, because rows are never split.
    low = np.empty(k, np.int64)
    high = np.empty(k, np.int64)
    for i in range(n):
        counts[labels[i]] += 1
    for h in range(k):
        low[h] = least[h]
        high[h] = min(most[h], n + 1)  # a larger bound makes no difference
    sizes = _first_sizes(counts, low, high, b)
    largest = 0.0
    for i in range(n):
        for h in range(k):
            largest = max(largest, abs(scores[i, h]))
    excess = np.empty(k + 1, np.int64)
    # Each path reduces the total excess and the total deficit by one row.
    for _ in range(2 * k * (n + 1)):
        costs, rows = _costs(scores, labels, sizes, low, high)
        excess[k] = -n
        fits = True
        for h in range(k):
            excess[h] = counts[h] - sizes[h]
            excess[k] += sizes[h]
            fits = fits and excess[h] == 0
        if fits and excess[k] == 0:
            return _interior(costs)
        distance, before = _shortest(costs, excess, ROUNDING * largest)
        node = _nearest_deficit(excess, distance)
        if not np.isfinite(distance[node]):
            return b
        while before[node] >= 0:
            a = before[node]
            # This ends a cycle, which NaN scores could cause.
            before[node] = -1
            if node == k:
                sizes[a] += 1
            elif a == k:
                sizes[node] -= 1
            else:
                labels[rows[a, node]] = node
                counts[a] -= 1
                counts[node] += 1
            node = a
    return b


@njit()
@takes(
    _check_sizes, scores=SCORES, **BOUNDS, weights=WEIGHTS, start=START, rounds=Whole()
)
def size_multipliers(scores, low, high, weights, start, rounds=5):
    """Find multipliers to subtract from scores so that cluster sizes are within bounds.

    With multipliers b, row i is assigned to argmax_h (s_ih - b_h). The multipliers
    minimise the dual Σ_i max_h (s_ih - b_h) + Σ_h max(low_h b_h, high_h b_h).

    Parameters
    ----------
    scores : ndarray of shape (n, k), float64
        Score of each row for each cluster.
    low : ndarray of shape (k,), int32 or int64, at least 0
        Minimum total weight of the rows in each cluster.
    high : ndarray of shape (k,), int32 or int64, at least low
        Maximum total weight of the rows in each cluster. The weight of all rows must be
        between the sum of ``low`` and the sum of ``high``.
    weights : ndarray of shape (n,), float64, at least 0
        Sample weights. If they differ, sizes may miss the bounds slightly, because rows
        are not split.
    start : ndarray of shape (k,), float64
        Initial multipliers, for instance the multipliers of similar scores, or zeros.
    rounds : int, at least 0, default=5
        Number of rounds of coordinate descent before rows are moved one by one.

    Returns
    -------
    ndarray of shape (k,), float64
        The multipliers b. All are 0 if assigning each row to its largest score
        satisfies the bounds. Otherwise, b_h is positive only if cluster h has its
        maximum size, and negative only if it has its minimum size. Rows with equal
        scores stay together, which may leave a size outside the bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import size_multipliers
    >>> scores = np.column_stack([[1.0, 3.0, 5.0, 7.0], np.zeros(4)])
    >>> low, high = np.array([1, 1]), np.array([2, 3])
    >>> b = size_multipliers(scores, low, high, np.ones(4), np.zeros(2))
    >>> (scores - b).argmax(axis=1).tolist()
    [1, 1, 0, 0]
    """
    k = start.shape[0]
    b = np.zeros(k)
    plain = _assign(scores, np.zeros(k))
    sizes = np.zeros(k)
    for i in range(scores.shape[0]):
        sizes[plain[i]] += weights[i]
    fits = True
    for h in range(k):
        fits = fits and low[h] <= sizes[h] <= high[h]
    if fits:
        return b
    b = start.copy()
    # With a literal integer, numba would compile `_rounds` a second time.
    most = np.int64(rounds)
    if _rounds(scores, low, high, weights, b, most):
        return b
    lightest, heaviest = _range(weights)
    if lightest == heaviest == 1.0:
        return _flow(scores, low, high, b)
    _rounds(scores, low, high, weights, b, 20 * most)
    return b

"""Assign rows to clusters by their scores, with bounds on the sizes of the clusters.

The labelling of largest Σ_i s_i,c(i) within the bounds is c(i) = argmax_h (s_ih - b_h).
The multipliers b minimise the dual Σ_i max_h (s_ih - b_h) + Σ_h max(low_h b_h, high_h
b_h). A few rounds over the clusters, each b_h an order statistic, come near; then
single rows go along shortest paths between clusters (min-cost flow on k + 1 nodes)
until all sizes fit. The last node is a hub of multiplier 0: a cluster that may hold a
row more than it does sends there at no cost, one that may hold a row less receives.
"""

import numpy as np

from mmcnb._numba import njit
from mmcnb.errors import InputError
from mmcnb.kernels._checks import INTEGERS, Array, FromZero, Whole, takes

# Plain loops here: each function of NumPy's would bring more code to compile than this
# whole file has.
# of the largest score: far above the error of the sums along a path, in float64
ROUNDING = 1e-12

SCORES = Array("(n, k)", "float64")
WEIGHTS = FromZero("(n,)", "float64")
BOUNDS = {
    "low": FromZero("(k,)", INTEGERS),
    "high": Array("(k,)", INTEGERS, least="low"),
}
START = Array("(k,)", "float64")


@np.errstate(over="ignore")
def _check_sizes(given):
    total = given["weights"].sum()
    rounding = 1e-9 * given["weights"].sum()
    least = given["low"].sum()
    most = given["high"].sum()
    if not least - rounding <= total <= most + rounding:
        wrong = (
            f"low adds up to {least} and high to {most}, with rows of weight {total:g}"
        )
        raise InputError(f"{wrong}; give bounds that this weight lies between.")


@njit()
def _margins(scores, b, h):
    """By how much each row prefers cluster h, whatever b_h, to the best other one."""
    n, k = scores.shape
    margins = np.empty(n)
    for i in range(n):
        other = -np.inf
        for g in range(k):
            value = scores[i, g] - b[g]
            other = max(other, value) if g != h else other
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
    """Where rows from the largest margin on weigh more than a limit: Hoare's FIND, by weight and in place.

    The rows before that place come first, of equal margins those of smaller numbers.
    """
    first = 0
    last = order.shape[0] - 1
    before = 0.0
    while first <= last:
        middle = (first + last) // 2
        order[middle], order[last] = order[last], order[middle]
        pivot = order[last]
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
        order[place], order[last] = pivot, order[place]
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
    """The b_h nearest to 0 at which the rows of larger margin weigh between low and high."""
    n = margins.shape[0]
    free = 0.0
    total = 0.0
    order = np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
        free += weights[i] if margins[i] > 0 else 0.0
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
    return (
        largest + 1.0
        if inside == 0
        else least - 1.0
        if inside >= n
        else (least + largest) / 2
    )


@njit()
def _rounds(scores, low, high, weights, b, rounds):
    """Each b_h in turn as the others stand, in place; True where all bounds hold."""
    k = scores.shape[1]
    grain = _range(weights)[1]
    for _ in range(rounds):
        settled = True
        for h in range(k):
            margins = _margins(scores, b, h)
            size = 0.0
            for i in range(margins.shape[0]):
                size += weights[i] if margins[i] > b[h] else 0.0
            slack = high[h] - size if b[h] > 0 else size - low[h] if b[h] < 0 else 0.0
            if size < low[h] or size > high[h] or slack >= grain:
                b[h] = _order_statistic(margins, weights, low[h], high[h])
                settled = False
        if settled:
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
def _costs(scores, labels, held, low, high):
    """The least score lost by moving a row from one cluster to another, and that row; the hub is node k."""
    n, k = scores.shape
    costs = np.full((k + 1, k + 1), np.inf)
    rows = np.full((k + 1, k + 1), -1)
    for i in range(n):
        a = labels[i]
        for g in range(k):
            cost = scores[i, a] - scores[i, g]
            if cost < costs[a, g]:
                costs[a, g] = cost
                rows[a, g] = i
    for h in range(k):
        costs[h, h] = 0.0
        costs[h, k] = 0.0 if held[h] < high[h] else np.inf
        costs[k, h] = 0.0 if held[h] > low[h] else np.inf
    return costs, rows


@njit()
def _shortest(costs, excess, rounding):
    """Distance of each node from the nearest one with an excess, and the node before it."""
    nodes = costs.shape[0]
    distance = np.empty(nodes)
    before = np.full(nodes, -1)
    for a in range(nodes):
        distance[a] = 0.0 if excess[a] > 0 else np.inf
    for _ in range(nodes):
        for a in range(nodes):
            for d in range(nodes):
                if distance[a] + costs[a, d] < distance[d] - rounding:
                    distance[d] = distance[a] + costs[a, d]
                    before[d] = a
    return distance, before


@njit()
def _interior(costs):
    """Multipliers as far as can be from any tie: the mean of the extreme ones, one for each node."""
    distance = costs.copy()
    k = costs.shape[0] - 1
    given = True
    for h in range(k):
        given = given and costs[h, k] == np.inf and costs[k, h] == np.inf
    if given:
        distance[0, k] = distance[k, 0] = (
            0.0  # every size is given: one multiplier is free
        )
    for via in range(k + 1):
        for a in range(k + 1):
            for d in range(k + 1):
                distance[a, d] = min(
                    distance[a, d], distance[a, via] + distance[via, d]
                )
    b = np.zeros(k)
    roots = 0
    for leaving in (False, True):  # distances to each root, then from each
        for root in range(k + 1):
            farthest = -np.inf
            for node in range(k + 1):
                farthest = max(
                    farthest, distance[root, node] if leaving else distance[node, root]
                )
            if farthest == np.inf:
                continue
            roots += 1
            for h in range(k):
                to = distance[h, root] - distance[k, root]
                back = distance[root, k] - distance[root, h]
                b[h] += back if leaving else to
    for h in range(k):
        b[h] /= max(roots, 1)
    return b


@njit()
def _flow(scores, least, most, b):
    """Single rows along shortest paths until every size is within its bounds."""
    n, k = scores.shape
    labels = _assign(scores, b)
    counts = np.zeros(k, np.int64)
    held = np.empty(k, np.int64)
    # whole: a row is never split
    low = np.empty(k, np.int64)
    high = np.empty(k, np.int64)
    for i in range(n):
        counts[labels[i]] += 1
    for h in range(k):
        low[h], high[h] = (
            least[h],
            min(most[h], n + 1),
        )  # so many rows hold no cluster back
        held[h] = (
            high[h]
            if b[h] > 0
            else low[h]
            if b[h] < 0
            else min(max(counts[h], low[h]), high[h])
        )
    largest = 0.0
    excess = np.empty(k + 1, np.int64)
    for score in scores.flat:
        largest = max(largest, abs(score))
    rounding = ROUNDING * largest
    for _ in range(
        2 * k * (n + 1)
    ):  # a path takes one row of those that are too many or too few
        costs, rows = _costs(scores, labels, held, low, high)
        excess[k] = -n
        settled = True
        for h in range(k):
            excess[h] = counts[h] - held[h]
            excess[k] += held[h]
            settled = settled and excess[h] == 0
        if settled and excess[k] == 0:
            return _interior(costs)
        distance, before = _shortest(costs, excess, rounding)
        node = -1
        for candidate in range(k + 1):
            if excess[candidate] < 0 and (
                node < 0 or distance[candidate] < distance[node]
            ):
                node = candidate
        if not np.isfinite(distance[node]):
            return b
        while before[node] >= 0:
            # so that a circle ends, which NaN would make
            a = before[node]
            before[node] = -1
            if node == k:
                held[a] += 1
            elif a == k:
                held[node] -= 1
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
    """What to subtract from each cluster's scores so that the largest score gives sizes within bounds.

    With the multipliers b, row i goes to argmax_h (s_ih - b_h). They minimise the dual
    Σ_i max_h (s_ih - b_h) + Σ_h max(low_h b_h, high_h b_h).

    Parameters
    ----------
    scores : ndarray of shape (n, k), float64
        Score of each row in each cluster.
    low : ndarray of shape (k,), int32 or int64, at least 0
        Least rows, or weight, of each cluster.
    high : ndarray of shape (k,), int32 or int64, at least low
        Most of them. The weight of all rows lies between the sums of the two.
    weights : ndarray of shape (n,), float64, at least 0
        Sample weights. Where they differ, sizes come near the bounds, but rows are not
        split.
    start : ndarray of shape (k,), float64
        Multipliers of similar scores, or zeros.
    rounds : int, at least 0, default=5
        Rounds over the clusters before rows are moved one by one.

    Returns
    -------
    ndarray of shape (k,), float64
        b, and 0 wherever the plain largest scores fit; positive where a cluster is full
        and negative where it holds the least. Rows of equal scores stay together and
        can keep a size outside.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import size_multipliers
    >>> scores = np.column_stack([[1.0, 3.0, 5.0, 7.0], np.zeros(4)])
    >>> b = size_multipliers(scores, np.array([1, 1]), np.array([2, 3]), np.ones(4), np.zeros(2))
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
    most = np.int64(rounds)  # a constant would have `_rounds` compiled once more
    if _rounds(scores, low, high, weights, b, most):
        return b
    lightest, heaviest = _range(weights)
    if lightest == heaviest == 1.0:
        return _flow(scores, low, high, b)
    _rounds(scores, low, high, weights, b, 20 * most)
    return b

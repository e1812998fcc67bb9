"""Find the nearest nodes of rows, and compute weights and cluster shares from them.

X has shape (rows, d) and nodes have shape (p, d); both are C-ordered and of one dtype.
The nodes are ordered by cells: cell c has the nodes ``starts[c]`` to ``starts[c + 1] -
1``. A search in all nodes has a single cell.
"""

import numpy as np

from mmcnb._numba import VECTORISED, njit
from mmcnb.kernels._checks import FLOATS, Array, FromZero, Starts, takes

# Size of a tile of products that stays in the second-level cache.
TILE_ROWS = 128
TILE_NODES = 512
SPARE = 4  # additional candidates, because float32 products may change the order
# Relative rounding error and range of float32.
UNIT = 2.0**-24
LEAST_FLOAT32 = 2.0**-126
MOST_SQUARE = 1e37
# Search for the scale of weights: largest number of steps (of Newton's method, or
# bisection if a step leaves the interval), and the relative step that ends the search.
MOST_STEPS = 64
CLOSE = 1e-12
LEAST_SCALE = 1e-3  # of the mean distance; otherwise duplicates would make the scale 0
# Weights are rounded to multiples of it, because the last bits of exp differ between
# processors.
LEAST_WEIGHT = 2.0**-20

POINTS = {"X": Array("(rows, d)", FLOATS), "nodes": Array("(p, d)", FLOATS)}
HALVES = Array("(p,)", "float64")
STARTS = Starts("(cells + 1,)", "int64", below="p")
PROBES = Array("(rows, m)", "int64", least=-1, below="cells")
NUMBERS = Array("(rows, k)", "int64", written=True)
DISTANCES = Array("(rows, k)", "float64", written=True)
VOTERS = FromZero("(rows, r)", "int64", below="p")
WEIGHTS = Array("(rows, r)", "float64")
LABELS = FromZero("(p,)", "int64", below="k")
SHARES = Array("(rows, k)", FLOATS, written=True)


@njit()
def _rows_by_cell(probes, n_cells):
    """Return the rows that probe each cell, ordered by cell, and starts of cells."""
    first = np.zeros(n_cells + 1, np.int64)
    for i in range(probes.shape[0]):
        for cell in probes[i]:
            # -1 means no cell.
            if cell >= 0:
                first[cell + 1] += 1
    for cell in range(n_cells):
        first[cell + 1] += first[cell]
    order = np.empty(first[-1], np.int64)
    place = first.copy()
    for i in range(probes.shape[0]):
        for cell in probes[i]:
            if cell >= 0:
                order[place[cell]] = i
                place[cell] += 1
    return order, first


@njit()
def _bound(tile, least):
    """Return an upper bound of the ``least.size`` smallest scores of a tile.

    The nodes are divided among the places of ``least``, and each place gets the
    smallest score of its nodes. The largest of these scores bounds as many scores as
    there are places.
    """
    count = least.size
    # A loop, because numba takes seconds to compile the assignment of an array.
    for place in range(count):
        least[place] = tile[place]
    for start in range(count, tile.size - count + 1, count):
        for place in range(count):
            least[place] = min(tile[start + place], least[place])
    largest = least[0]
    for value in least:
        largest = max(largest, value)
    return np.nextafter(largest, np.float32(np.inf))


@njit()
def _keep_nearest(products, halves, members, first_node, scores, candidates):
    """Insert the nodes of a tile into the sorted candidates of its rows."""
    last = scores.shape[1] - 1
    near = np.empty(products.shape[1], np.int64)
    least = np.empty(last + 1, np.float32)
    for a in range(members.size):
        row_scores = scores[members[a]]
        row_candidates = candidates[members[a]]
        tile = products[a]
        worst = row_scores[last]
        is_near = False
        # Check first, with vector instructions, which is faster than branches.
        for b in range(tile.size):
            tile[b] = halves[b] - tile[b]
            is_near |= tile[b] < worst
        if not is_near:
            continue
        if worst == np.inf and tile.size >= 2 * least.size:
            bound = _bound(tile, least)
            if bound < worst:
                worst = bound
        count = 0
        for b in range(tile.size):
            near[count] = b
            count += tile[b] < worst
        for b in near[:count]:
            place = last
            score = tile[b]
            if not score < row_scores[last]:
                continue
            while place > 0 and row_scores[place - 1] > score:
                row_scores[place] = row_scores[place - 1]
                row_candidates[place] = row_candidates[place - 1]
                place -= 1
            row_scores[place] = score
            row_candidates[place] = first_node + b


@njit()
def _scan_cell(X, members, nodes, halves, first_node, scores, candidates):
    """Compare some rows with the nodes of a cell, tile by tile."""
    part = X[members].astype(np.float32)
    for start in range(0, nodes.shape[0], TILE_NODES):
        tile = slice(start, start + TILE_NODES)
        products = np.dot(part, nodes[tile].astype(np.float32).T)
        first = first_node + start
        _keep_nearest(products, halves[tile], members, first, scores, candidates)


@njit()
def _candidates(X, nodes, halves, starts, probes, count):
    """Find the nodes y with the smallest scores |y|²/2 - x'y in float32."""
    n_cells = starts.size - 1
    halves = halves.astype(np.float32)
    scores = np.empty((X.shape[0], count), np.float32)
    scores[:] = np.inf
    candidates = np.empty((X.shape[0], count), np.int64)
    candidates[:] = -1
    # Scan the first, nearest cell before the others: few nodes of other cells are
    # closer, so most of them are rejected quickly.
    for searched in (probes[:, :1], probes[:, 1:]):
        order, row_starts = _rows_by_cell(searched, n_cells)
        for cell in range(n_cells):
            rows = order[row_starts[cell] : row_starts[cell + 1]]
            first_node = starts[cell]
            in_cell = slice(first_node, starts[cell + 1])
            for start in range(0, rows.size, TILE_ROWS):
                _scan_cell(
                    X,
                    rows[start : start + TILE_ROWS],
                    nodes[in_cell],
                    halves[in_cell],
                    first_node,
                    scores,
                    candidates,
                )
    return candidates, scores


@njit(fastmath=VECTORISED)
def _length(x):
    """Return the norm of a row."""
    square = 0.0
    for value in x:
        square += np.float64(value) ** 2
    return np.sqrt(square)


@njit()
def _longest(halves):
    """Return the largest norm of the nodes."""
    largest = 0.0
    # Comparisons skip NaN.
    for half in halves:
        largest = max(largest, half)
    return np.sqrt(2 * largest)


@njit()
def _rounding(length, longest, columns):
    """Return a bound of the float32 error of a score, for a row of this length.

    It is infinite beyond the range of float32.

    The computed product of x and a node differs from the exact one by at most d + 1
    rounding errors of |x| times the longest node. The other terms account for rounded
    inputs, the half norm, the difference and underflow.
    """
    length += longest
    if not length * length < MOST_SQUARE:
        return np.inf
    return (columns + 5) * (UNIT * length * longest + LEAST_FLOAT32 * (1 + length))


@njit()
def _are_nearest(x, distance, candidate, worst, longest):
    """Return whether no node except the candidates can be nearer than a distance."""
    length = _length(x)
    error = _rounding(length, longest, x.size)
    return error < np.inf and (
        candidate < 0 or (distance * distance - length * length) / 2 < worst - error
    )


@njit()
def _squared_difference(a, b):
    return (np.float64(a) - np.float64(b)) ** 2


@njit()
def _distance(X, i, nodes, number):
    """Compute a distance in four sums, which have the same bits on every processor."""
    x = X[i]
    node = nodes[number]
    whole = X.shape[1] // 4 * 4
    sum0 = 0.0
    sum1 = 0.0
    sum2 = 0.0
    sum3 = 0.0
    for c in range(0, whole, 4):
        sum0 += _squared_difference(x[c], node[c])
        sum1 += _squared_difference(x[c + 1], node[c + 1])
        sum2 += _squared_difference(x[c + 2], node[c + 2])
        sum3 += _squared_difference(x[c + 3], node[c + 3])
    for c in range(whole, x.size):
        sum0 += _squared_difference(x[c], node[c])
    return np.sqrt((sum0 + sum1) + (sum2 + sum3))


@njit()
def _insert(number, distance, numbers, distances):
    """Insert a node into the sorted nearest ones; ties go to the smaller number."""
    place = numbers.size
    while place > 0 and (
        numbers[place - 1] < 0
        or (distance, number) < (distances[place - 1], numbers[place - 1])
    ):
        if place < numbers.size:
            distances[place] = distances[place - 1]
            numbers[place] = numbers[place - 1]
        place -= 1
    if place < numbers.size:
        distances[place] = distance
        numbers[place] = number


@njit()
@takes(
    **POINTS,
    halves=HALVES,
    starts=STARTS,
    probes=PROBES,
    numbers=NUMBERS,
    distances=DISTANCES,
)
def nearest_nodes_into(X, nodes, halves, starts, probes, numbers, distances):
    """Find the nearest nodes of each row in the cells that the row probes.

    Candidates are found by matrix products in float32. If rounding errors could have
    excluded a nearer node, all distances of the row are computed in float64.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
        The rows.
    nodes : ndarray of shape (p, d), float32 or float64
        The nodes, ordered by cell.
    halves : ndarray of shape (p,), float64
        Half of the squared norm of each node.
    starts : ndarray of shape (cells + 1,), int64, rising from at least 0 to at most p
        First node of each cell, followed by p.
    probes : ndarray of shape (rows, m), int64, in [-1, cells)
        Cells that each row probes, preferably the nearest one first; -1 means no cell.
    numbers : ndarray of shape (rows, k), int64, overwritten
        Numbers of the nearest nodes, nearest first; ties are ordered by number. -1 if
        the cells contain fewer nodes.
    distances : ndarray of shape (rows, k), float64, overwritten
        Distances to these nodes; inf if there is no node.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import nearest_nodes_into
    >>> nodes = np.array([[0.0], [1.0], [5.0]])
    >>> nodes = nodes, (nodes**2).sum(axis=1) / 2
    >>> everywhere = np.array([0, 3]), np.zeros((1, 1), np.int64)
    >>> numbers, distances = np.empty((1, 2), np.int64), np.empty((1, 2))
    >>> nearest_nodes_into(np.array([[3.0]]), *nodes, *everywhere, numbers, distances)
    >>> numbers, distances
    (array([[1, 2]]), array([[2., 2.]]))
    """
    count = min(numbers.shape[1] + SPARE, nodes.shape[0])
    longest = _longest(halves)
    candidates, scores = _candidates(X, nodes, halves, starts, probes, count)
    numbers[:] = -1
    distances[:] = np.inf
    for i in range(X.shape[0]):
        row_numbers = numbers[i]
        row_distances = distances[i]
        for number in candidates[i]:
            if number >= 0:
                _insert(
                    number, _distance(X, i, nodes, number), row_numbers, row_distances
                )
        if _are_nearest(
            X[i], row_distances[-1], candidates[i, -1], scores[i, -1], longest
        ):
            continue
        row_numbers[:] = -1
        row_distances[:] = np.inf
        for cell in probes[i]:
            if cell < 0:
                continue
            for number in range(starts[cell], starts[cell + 1]):
                distance = _distance(X, i, nodes, number)
                if not distance > row_distances[-1]:
                    _insert(number, distance, row_numbers, row_distances)


@njit()
def _keep_two_least(products, half, number, best, second, place):
    """Update the two smallest scores of some rows, and the place of the smallest."""
    for i in range(products.size):
        score = half - products[i]
        is_less = score < best[i]
        other = best[i] if is_less else score
        second[i] = other if other < second[i] else second[i]
        place[i] = number if is_less else place[i]
        best[i] = score if is_less else best[i]


@njit()
def _nearest_by_distance(X, i, centres, guess):
    """Return the nearest centre of a row; ties go to the first.

    If no distance is finite, the result is ``guess``.
    """
    nearest = guess
    least = np.inf
    for number in range(centres.shape[0]):
        distance = _distance(X, i, centres, number)
        if distance < least:
            nearest = number
            least = distance
    return nearest


@njit()
def nearest_centres_into(X, centres, halves, numbers):
    """Find the nearest centre of each row of a block; ties go to the first centre.

    It is found by matrix products in float32. If rounding errors could have changed the
    result, all distances of the row are computed in float64.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
        The rows.
    centres : ndarray of shape (p, d), of the dtype of X
        The centres, at least one.
    halves : ndarray of shape (p,), float64
        Half of the squared norm of each centre.
    numbers : ndarray of shape (rows,), int64, overwritten
        Number of the nearest centre of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import nearest_centres_into
    >>> centres, numbers = np.array([[0.0], [1.0], [5.0]]), np.empty(2, np.int64)
    >>> halves = (centres**2).sum(axis=1) / 2
    >>> nearest_centres_into(np.array([[2.9], [3.1]]), centres, halves, numbers)
    >>> numbers
    array([1, 2])
    """
    longest = _longest(halves)
    scores = halves.astype(np.float32)
    rounded = centres.astype(np.float32)
    for start in range(0, X.shape[0], TILE_ROWS):
        part = X[start : start + TILE_ROWS]
        # Each row of the products belongs to one centre, so that vector instructions
        # process many rows of X at once.
        products = np.dot(rounded, part.astype(np.float32).T)
        n, d = part.shape
        best = np.empty(n, np.float32)
        best[:] = np.inf
        second = best.copy()
        place = np.zeros(n, np.int32)
        for number in range(scores.size):
            _keep_two_least(
                products[number], scores[number], np.int32(number), best, second, place
            )
        for i in range(n):
            nearest = np.int64(place[i])
            error = _rounding(_length(part[i]), longest, d)
            lead = np.float64(second[i]) - best[i]
            if not lead > 2 * error:
                nearest = _nearest_by_distance(part, i, centres, nearest)
            numbers[start + i] = nearest


@njit()
def calibrated_weights(distances):
    """Weight the nearest nodes of each row by exp(-(d - d_1)/s).

    The scale s of each row is chosen so that its weights sum to log2(r). These are the
    weights of UMAP: McInnes, Healy and Melville, Algorithm 3.

    Parameters
    ----------
    distances : ndarray of shape (rows, r), float64
        Distances of each row in ascending order; r is at least 1.

    Returns
    -------
    ndarray of shape (rows, r), float64
        The weights, multiples of 2**-20 up to 1; the first weight of each row is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import calibrated_weights
    >>> calibrated_weights(np.array([[1.0, 2.0, 2.0, 3.0]])).round(3)
    array([[1.   , 0.414, 0.414, 0.172]])
    """
    weights = np.empty_like(distances)
    r = distances.shape[1]
    target = np.log2(r)
    share = 0.0
    if r > 2:
        share = r / (r - 1) / np.log((r - 1) / (target - 1))
    for i in range(distances.shape[0]):
        excess = distances[i] - distances[i, 0]
        mean = distances[i].mean()
        # The exact scale if all nodes except the first were equally far.
        start = (mean - distances[i, 0]) * share
        scale = max(start if start > 0 else mean, 1e-300)
        low = 0.0
        high = np.inf
        least = LEAST_SCALE * mean
        for _ in range(MOST_STEPS):
            total = 0.0
            slope = 0.0
            for d in excess:
                weight = np.exp(-d / scale)
                total += weight
                slope += weight * d
            if total > target:
                high = scale
            else:
                low = scale
            before = scale
            scale = np.nan
            if slope > 0:
                scale = before - (total - target) * before / slope * before
            if not low < scale < high and scale != before:
                scale = 2 * before if high == np.inf else (low + high) / 2
            if abs(scale - before) <= CLOSE * before or high <= least:
                break
        scale = max(scale, least)
        for j in range(excess.size):
            weight = np.exp(-excess[j] / scale) if scale > 0 else 1.0
            weights[i, j] = max(np.rint(weight / LEAST_WEIGHT), 1.0) * LEAST_WEIGHT
    return weights


@njit()
@takes(numbers=VOTERS, weights=WEIGHTS, labels=LABELS, out=SHARES)
def node_shares_into(numbers, weights, labels, out):
    """Compute the share of each cluster in the vote of each row's nearest nodes.

    Parameters
    ----------
    numbers : ndarray of shape (rows, r), int64, in [0, p)
        Nearest nodes of each row.
    weights : ndarray of shape (rows, r), float64
        Weights of their votes, positive.
    labels : ndarray of shape (p,), int64, in [0, k)
        Cluster of each node.
    out : ndarray of shape (rows, k), float32 or float64, overwritten
        Shares of the clusters, with sum 1 in each row; NaN if the weights of a row sum
        to 0. Sums are computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import node_shares_into
    >>> out = np.empty((1, 2))
    >>> numbers, weights = np.array([[0, 1]]), np.array([[3.0, 1.0]])
    >>> node_shares_into(numbers, weights, np.array([1, 0]), out)
    >>> out
    array([[0.25, 0.75]])
    """
    sums = np.empty(out.shape[1])
    for i in range(numbers.shape[0]):
        sums[:] = 0.0
        total = 0.0
        for j in range(numbers.shape[1]):
            weight = weights[i, j]
            cluster = labels[numbers[i, j]]
            total += weight
            sums[cluster] += weight
        if total == 0:
            total = np.nan
        for c in range(sums.size):
            out[i, c] = sums[c] / total

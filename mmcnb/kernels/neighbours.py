"""Find the nearest nodes of rows, and compute weights and cluster shares from them.

X has shape (rows, d) and nodes have shape (p, d); both are C-ordered and have the same
dtype. The nodes are ordered by the cells of an inverted-file index: cell c contains the
nodes from ``starts[c]`` to ``starts[c + 1] - 1``. A search in all nodes uses a single
cell.
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
# Search for the scale of the weights: maximum number of Newton steps (a step that
# leaves the interval is replaced by bisection), and the relative step size that ends
# the search.
MOST_STEPS = 64
CLOSE = 1e-12
# Smallest scale, as a fraction of the mean distance. Without it, duplicates would make
# the scale 0.
LEAST_SCALE = 1e-3
# Weights are rounded to multiples of this value, because the last bits of exp differ
# between processors.
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
    """Return the rows ordered by probed cell, and the start of each cell's rows."""
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

    The nodes are divided among the entries of ``least``, and each entry becomes the
    smallest score of its nodes. The scores of at least ``least.size`` nodes are then at
    most the largest entry.
    """
    count = least.size
    # Use a loop, because numba takes seconds to compile the assignment of an array.
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
    """Insert the nodes of a tile into the sorted candidates of each row."""
    last = scores.shape[1] - 1
    near = np.empty(products.shape[1], np.int64)
    least = np.empty(last + 1, np.float32)
    for a in range(members.size):
        row_scores = scores[members[a]]
        row_candidates = candidates[members[a]]
        tile = products[a]
        worst = row_scores[last]
        is_near = False
        # First check all nodes with vector instructions, which is faster than branches.
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
    """Find, for each row x, the nodes y with the smallest |y|²/2 - x'y in float32."""
    n_cells = starts.size - 1
    halves = halves.astype(np.float32)
    scores = np.empty((X.shape[0], count), np.float32)
    scores[:] = np.inf
    candidates = np.empty((X.shape[0], count), np.int64)
    candidates[:] = -1
    # Scan the first cell, which should be the nearest, before the others. Few nodes of
    # the other cells are closer, so most of them are rejected quickly.
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
def _score(x, node, half):
    """Return the score of one node, as accurately as a float32 matrix product does."""
    product = np.float32(0)
    for c in range(x.size):
        product += np.float32(x[c]) * np.float32(node[c])
    return np.float32(half) - product


@njit(fastmath=VECTORISED)
def _length(x):
    """Return the Euclidean norm of a row."""
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
    """Return a bound on the float32 error of a score, for a row with this norm.

    The bound is infinite if scores may exceed the range of float32.

    The computed product of x and a node differs from the exact product by at most d + 1
    rounding errors of |x| times the largest norm of a node. The other terms account for
    rounded inputs, the half norm, the difference and underflow.
    """
    length += longest
    if not length * length < MOST_SQUARE:
        return np.inf
    return (columns + 5) * (UNIT * length * longest + LEAST_FLOAT32 * (1 + length))


@njit()
def _squared_difference(a, b):
    return (np.float64(a) - np.float64(b)) ** 2


@njit()
def _distance(X, i, nodes, number):
    """Compute a distance from four sums, with the same bits on all processors."""
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
    """Insert a node into the sorted nearest nodes; ties go to the smaller index."""
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
def _search_by_distance(X, i, nodes, halves, starts, probes, most, numbers, distances):
    """Find the nearest nodes of one row by distances in float64.

    Nodes with a float32 score above ``most`` cannot be among the nearest and are
    skipped.
    """
    numbers[:] = -1
    distances[:] = np.inf
    for cell in probes:
        if cell < 0:
            continue
        for number in range(starts[cell], starts[cell + 1]):
            if _score(X[i], nodes[number], halves[number]) > most:
                continue
            distance = _distance(X, i, nodes, number)
            if not np.isnan(distance):
                _insert(number, distance, numbers, distances)


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

    Matrix products in float32 yield candidates, whose distances are computed in
    float64. If rounding errors could have excluded a nearer node, the distances to all
    nodes that may be nearer are also computed in float64.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
        A block of rows.
    nodes : ndarray of shape (p, d), float32 or float64
        The nodes, ordered by cell.
    halves : ndarray of shape (p,), float64
        Half of the squared norm of each node.
    starts : ndarray of shape (cells + 1,), int64, rising from at least 0 to at most p
        Index of the first node of each cell, followed by p.
    probes : ndarray of shape (rows, m), int64, in [-1, cells)
        Cells that each row probes, preferably the nearest cell first; -1 means no cell.
    numbers : ndarray of shape (rows, k), int64, overwritten
        Indices of the nearest nodes, nearest first; ties are ordered by index. If the
        cells contain fewer than k nodes, the last entries are -1.
    distances : ndarray of shape (rows, k), float64, overwritten
        Distances to these nodes; inf where the index is -1.

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
        length = _length(X[i])
        error = _rounding(length, longest, X.shape[1])
        # A node that is not farther than the last node found has a float32 score of at
        # most this value.
        last = row_distances[-1]
        most = (last * last - length * length) / 2 + error
        if error < np.inf and (candidates[i, -1] < 0 or most < scores[i, -1]):
            continue
        _search_by_distance(
            X, i, nodes, halves, starts, probes[i], most, row_numbers, row_distances
        )


@njit()
def _keep_three_least(products, half, number, scores, places):
    """Update the four smallest scores of each row, and the nodes of the first three.

    Both arrays are flat, with ``TILE_ROWS`` values for each rank. Conditional
    expressions instead of branches allow vector instructions, which process many rows
    at once.
    """
    for i in range(products.size):
        first = scores[i]
        second = scores[i + TILE_ROWS]
        third = scores[i + 2 * TILE_ROWS]
        fourth = scores[i + 3 * TILE_ROWS]
        node1 = places[i]
        node2 = places[i + TILE_ROWS]
        node3 = places[i + 2 * TILE_ROWS]
        score = half - products[i]
        is_first = score < first
        is_second = score < second
        is_third = score < third
        least = score if score < fourth else fourth
        scores[i + 3 * TILE_ROWS] = third if is_third else least
        least = score if is_third else third
        scores[i + 2 * TILE_ROWS] = second if is_second else least
        least = score if is_second else second
        scores[i + TILE_ROWS] = first if is_first else least
        scores[i] = score if is_first else first
        place = number if is_third else node3
        places[i + 2 * TILE_ROWS] = node2 if is_second else place
        place = number if is_second else node2
        places[i + TILE_ROWS] = node1 if is_first else place
        places[i] = number if is_first else node1


@njit()
def _scan_cell_for_three(X, members, nodes, halves, first_node, scores, places):
    """Compare some rows, at most ``TILE_ROWS``, with the nodes of a cell."""
    of_tile = np.empty(4 * TILE_ROWS, np.float32)
    nodes_of_tile = np.empty(3 * TILE_ROWS, np.int32)
    for a in range(members.size):
        for rank in range(4):
            of_tile[a + rank * TILE_ROWS] = scores[members[a], rank]
        for rank in range(3):
            nodes_of_tile[a + rank * TILE_ROWS] = places[members[a], rank]
    part = X[members].astype(np.float32)
    for start in range(0, nodes.shape[0], TILE_NODES):
        tile = nodes[start : start + TILE_NODES].astype(np.float32)
        # Unlike in `_scan_cell`, each row of the products belongs to one node.
        products = np.dot(tile, part.T)
        for b in range(products.shape[0]):
            number = np.int32(first_node + start + b)
            half = halves[start + b]
            _keep_three_least(products[b], half, number, of_tile, nodes_of_tile)
    for a in range(members.size):
        for rank in range(4):
            scores[members[a], rank] = of_tile[a + rank * TILE_ROWS]
        for rank in range(3):
            places[members[a], rank] = nodes_of_tile[a + rank * TILE_ROWS]


@njit()
def three_nearest_into(X, nodes, halves, starts, probes, numbers):
    """Find the three nearest nodes of each row in the cells that the row probes.

    The nodes are the same as with `nearest_nodes_into`. This routine is faster, but it
    does not return distances.

    Parameters
    ----------
    X : ndarray of shape (rows, d), float32 or float64
        A block of rows.
    nodes : ndarray of shape (p, d), of the dtype of X
        The nodes, ordered by cell; fewer than 2**31.
    halves : ndarray of shape (p,), float64
        Half of the squared norm of each node.
    starts : ndarray of shape (cells + 1,), int64
        Index of the first node of each cell, followed by p.
    probes : ndarray of shape (rows, m), int64
        Cells that each row probes; -1 means no cell.
    numbers : ndarray of shape (rows, 3), int64, overwritten
        Indices of the three nearest nodes, nearest first; ties are ordered by index. If
        the cells contain fewer than three nodes, or if distances are NaN, the last
        entries are -1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.unchecked import three_nearest_into
    >>> nodes, numbers = np.array([[0.0], [1.0], [5.0]]), np.empty((1, 3), np.int64)
    >>> halves = (nodes**2).sum(axis=1) / 2
    >>> everywhere = np.array([0, 3]), np.zeros((1, 1), np.int64)
    >>> three_nearest_into(np.array([[3.1]]), nodes, halves, *everywhere, numbers)
    >>> numbers
    array([[2, 1, 0]])
    """
    n_cells = starts.size - 1
    longest = _longest(halves)
    rounded = halves.astype(np.float32)
    scores = np.empty((X.shape[0], 4), np.float32)
    scores[:] = np.inf
    places = np.empty((X.shape[0], 3), np.int32)
    places[:] = -1
    for m in range(probes.shape[1]):
        order, row_starts = _rows_by_cell(probes[:, m : m + 1], n_cells)
        for cell in range(n_cells):
            rows = order[row_starts[cell] : row_starts[cell + 1]]
            in_cell = slice(starts[cell], starts[cell + 1])
            for start in range(0, rows.size, TILE_ROWS):
                _scan_cell_for_three(
                    X,
                    rows[start : start + TILE_ROWS],
                    nodes[in_cell],
                    rounded[in_cell],
                    starts[cell],
                    scores,
                    places,
                )
    distances = np.empty(3)
    for i in range(X.shape[0]):
        nearest = numbers[i]
        first, second, third, fourth = scores[i]
        error = 2 * _rounding(_length(X[i]), longest, X.shape[1])
        if fourth - third > error:
            # These are the three nearest nodes, possibly in another order.
            for rank in range(3):
                nearest[rank] = places[i, rank]
            if second - first > error and third - second > error:
                continue
            nearest[:] = -1
            for rank in range(3):
                number = np.int64(places[i, rank])
                _insert(number, _distance(X, i, nodes, number), nearest, distances)
        else:
            most = third + error
            _search_by_distance(
                X, i, nodes, halves, starts, probes[i], most, nearest, distances
            )


@njit()
def calibrated_weights(distances):
    """Compute weights exp(-(d - d_1)/s) of the nearest nodes of each row.

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
        # This scale is exact if all nodes except the first are at the same distance.
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
        Indices of the nearest nodes of each row.
    weights : ndarray of shape (rows, r), float64
        Positive weights of the votes.
    labels : ndarray of shape (p,), int64, in [0, k)
        Zero-based index of the cluster of each node.
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

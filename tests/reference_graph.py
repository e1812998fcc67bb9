"""Slow, plain twins of the neighbour graph and its votes: the formula in float64, and nothing else."""

import math

import numpy as np


def nearest_nodes(X, nodes, starts, probes, count):
    """All nodes in the cells of a row, sorted by distance, then by number."""
    numbers = np.full((len(X), count), -1)
    distances = np.full((len(X), count), np.inf)
    for i, x in enumerate(X.astype(float)):
        seen = {
            number
            for cell in probes[i]
            for number in range(starts[cell], starts[cell + 1])
        }
        pairs = sorted(
            (math.dist(x, nodes[number].astype(float)), number) for number in seen
        )[:count]
        for place, (distance, number) in enumerate(pairs):
            numbers[i, place] = number
            distances[i, place] = distance
    return numbers, distances


def nearest_centres(X, centres):
    """The first of the nearest centres of each row."""
    return np.array(
        [
            min(
                (math.dist(x, c), place)
                for place, c in enumerate(centres.astype(float))
            )[1]
            for x in X.astype(float)
        ],
        int,
    )


def settled(points, nodes, starts, centres, labels, is_deep):
    """Cluster of the deep nodes in the nearest cell of a row, or of the three nearest in two cells."""
    cell_of = np.searchsorted(starts, np.arange(len(nodes)), side="right") - 1
    own = nearest_centres(nodes, centres)
    found = np.full(len(points), -1)
    for i, x in enumerate(points.astype(float)):
        cells = sorted(
            range(len(centres)),
            key=lambda cell: math.dist(x, centres[cell].astype(float)),
        )[:2]
        around = np.flatnonzero((cell_of == cells[0]) | (own == cells[0]))
        three, _ = nearest_nodes(points[i : i + 1], nodes, starts, [cells], 3)
        for some in (around, three[0]):
            if (
                found[i] < 0
                and (some >= 0).all()
                and is_deep[some].all()
                and len(set(labels[some])) == 1
            ):
                found[i] = labels[some[0]]
    return found


def calibrated_weights(distances):
    """exp(-(d - d_1)/s), s by bisection on a logarithmic scale so that the row sums to log2 of its length."""
    weights = np.empty_like(distances)
    for i, row in enumerate(distances):
        beyond = (row - row[0]).tolist()
        target = math.log2(len(row))
        low = -700.0
        high = 700.0
        for _ in range(200):
            middle = (low + high) / 2
            total = sum(math.exp(-min(d / math.exp(middle), 700.0)) for d in beyond)
            low, high = (low, middle) if total > target else (middle, high)
        scale = max(math.exp(low), 1e-3 * row.mean())
        weights[i] = (
            np.maximum(np.rint(np.exp((row[0] - row) / scale) * 2**20), 1) / 2**20
        )
    return weights


def node_averages(numbers, weights, values):
    means = np.empty((len(numbers), values.shape[1]))
    for i, (of_row, shares) in enumerate(zip(numbers, weights, strict=True)):
        means[i] = sum(
            w * values[j] for w, j in zip(shares, of_row, strict=True)
        ) / sum(shares)
    return means


def node_shares(numbers, weights, labels, k):
    return node_averages(numbers, weights, np.eye(k)[labels])


def components(W):
    """Component of each node, by walks, numbered by first node."""
    component = np.full(len(W), -1)
    for start in range(len(W)):
        if component[start] < 0:
            number = component.max() + 1
            waiting = [start]
            while waiting:
                node = waiting.pop()
                if component[node] < 0:
                    component[node] = number
                    waiting += np.flatnonzero(W[node] > 0).tolist()
    return component


def connected_graph(nodes, count):
    """Dense weights a + b - ab of the nearest neighbours, and bridges until there is one component."""
    p = len(nodes)
    D = np.array([[math.dist(a, b) for b in nodes] for a in nodes])
    A = np.zeros((p, p))
    scales = np.empty(p)
    for i in range(p):
        order = sorted((D[i, j], j) for j in range(p) if j != i)[:count]
        near = np.array([distance for distance, _ in order])
        A[i, [j for _, j in order]] = calibrated_weights(near[None])[0]
        scales[i] = near[min(7, count) - 1]
    W = A + A.T - A * A.T
    component = components(W)
    n_components = component.max() + 1
    while component.max() > 0:
        sizes = np.bincount(component)
        bridges = {}
        for one in sorted(range(len(sizes)), key=lambda c: -sizes[c])[1:]:
            inside = np.flatnonzero(component == one)
            outside = np.flatnonzero(component != one)
            distance, a, b = min((D[a, b], a, b) for a in inside for b in outside)
            bridges[min(a, b), max(a, b)] = 0.5 / (
                1 + distance**2 / (scales[a] * scales[b])
            )
        for (a, b), weight in bridges.items():
            W[a, b] = W[b, a] = weight
        component = components(W)
    return W, n_components


def merges(W, loops, pieces):
    """Pairs of clusters that merge, each by its first piece, and links w_ab T / (v_a v_b), largest first."""
    c = max(pieces) + 1
    total = W.sum() + loops.sum()
    member = np.eye(c)[pieces]
    table = member.T @ (W + np.diag(loops)) @ member
    members = [[one] for one in range(c)]
    pairs = []
    links = []

    def link(a, b):
        volumes = [table[one].sum() for one in (a, b)]
        return table[np.ix_(a, b)].sum() * total / (volumes[0] * volumes[1])

    while len(members) > 1:
        a, b = max(
            ((a, b) for a in members for b in members if a[0] < b[0]),
            key=lambda ab: link(*ab),
        )
        links.append(link(a, b))
        pairs.append((a[0], b[0]))
        members = [one for one in members if one not in (a, b)] + [a + b]
    return pairs, links


def cut_of(pieces, pairs, k):
    """Cluster of each node after all merges but the last k - 1."""
    of_piece = np.arange(max(pieces) + 1)
    for a, b in pairs[: of_piece.size - k]:
        of_piece[of_piece == of_piece[b]] = of_piece[a]
    return of_piece[pieces]


def given_neighbours(D, count):
    """The nearest of the given distances of each row of a sparse matrix, but for its own; ties by number."""
    numbers = []
    distances = []
    for i in range(D.shape[0]):
        row = D[[i]].tocoo()
        nearest = sorted(
            (d, j)
            for j, d in zip(row.col.tolist(), row.data.tolist(), strict=True)
            if j != i
        )
        numbers.append([j for _, j in nearest[:count]])
        distances.append([d for d, _ in nearest[:count]])
    return np.array(numbers), np.array(distances)

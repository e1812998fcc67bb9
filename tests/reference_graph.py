"""Slow, plain twins of the neighbour graph and its votes: the formula in float64, and nothing else."""

import math

import numpy as np


def nearest_nodes(X, nodes, starts, probes, count):
    """All nodes in the cells of a row, sorted by distance, then by number."""
    numbers, distances = np.full((len(X), count), -1), np.full((len(X), count), np.inf)
    for i, x in enumerate(X.astype(float)):
        seen = {number for cell in probes[i] for number in range(starts[cell], starts[cell + 1])}
        pairs = sorted((math.dist(x, nodes[number].astype(float)), number) for number in seen)[:count]
        for place, (distance, number) in enumerate(pairs):
            numbers[i, place], distances[i, place] = number, distance
    return numbers, distances


def calibrated_weights(distances):
    """exp(-(d - d_1)/s), s by bisection on a logarithmic scale so that the row sums to log2 of its length."""
    weights = np.empty_like(distances)
    for i, row in enumerate(distances):
        beyond, target = (row - row[0]).tolist(), math.log2(len(row))
        low, high = -700.0, 700.0
        for _ in range(200):
            middle = (low + high) / 2
            total = sum(math.exp(-min(d / math.exp(middle), 700.0)) for d in beyond)
            low, high = (low, middle) if total > target else (middle, high)
        scale = max(math.exp(low), 1e-3 * row.mean())
        weights[i] = np.maximum(np.rint(np.exp((row[0] - row) / scale) * 2**20), 1) / 2**20
    return weights


def node_averages(numbers, weights, values):
    means = np.empty((len(numbers), values.shape[1]))
    for i, (of_row, shares) in enumerate(zip(numbers, weights, strict=True)):
        means[i] = sum(w * values[j] for w, j in zip(shares, of_row, strict=True)) / sum(shares)
    return means


def components(W):
    """Component of each node, by walks, numbered by first node."""
    component = np.full(len(W), -1)
    for start in range(len(W)):
        if component[start] < 0:
            number, waiting = component.max() + 1, [start]
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
    A, scales = np.zeros((p, p)), np.empty(p)
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
            inside, outside = np.flatnonzero(component == one), np.flatnonzero(component != one)
            distance, a, b = min((D[a, b], a, b) for a in inside for b in outside)
            bridges[min(a, b), max(a, b)] = 0.5 / (1 + distance**2 / (scales[a] * scales[b]))
        for (a, b), weight in bridges.items():
            W[a, b] = W[b, a] = weight
        component = components(W)
    return W, n_components

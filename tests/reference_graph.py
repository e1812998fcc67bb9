"""Slow, plain twins of what makes the graph kernel: the formula in float64, and nothing else."""

import itertools
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
        weights[i] = np.maximum(np.exp((row[0] - row) / scale), 1e-6)
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


def connected_graph(nodes, count, weights_of=calibrated_weights):
    """Dense weights a + b - ab of the nearest neighbours, and bridges until there is one component."""
    p = len(nodes)
    D = np.array([[math.dist(a, b) for b in nodes] for a in nodes])
    A, scales = np.zeros((p, p)), np.empty(p)
    for i in range(p):
        order = sorted((D[i, j], j) for j in range(p) if j != i)[:count]
        near = np.array([distance for distance, _ in order])
        A[i, [j for _, j in order]] = weights_of(near[None])[0]
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


def spectrum(W, count):
    """Eigenvalues and eigenvectors of D^-½ W D^-½ beside the trivial one, by a dense solver."""
    degrees = W.sum(axis=1)
    S = W / np.sqrt(np.outer(degrees, degrees))
    values, vectors = np.linalg.eigh(S - 4 * np.outer(np.sqrt(degrees), np.sqrt(degrees)) / degrees.sum())
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count] / np.sqrt(degrees)[:, None]
    return values, vectors / np.sqrt((vectors**2).mean(axis=0))


def chebyshev_filter(S, values, low, high, degree):
    """The Chebyshev polynomial of a matrix on an interval, times vectors, scaled to 1 at 1."""
    middle, half = (low + high) / 2, (high - low) / 2
    X, at_one = (S - middle * np.eye(len(S))) / half, (1 - middle) / half
    before, now = values, X @ values
    for _ in range(degree - 1):
        before, now = now, 2 * X @ now - before
    return now / math.cosh(degree * math.acosh(at_one))


def cluster_cuts(W, labels, n_clusters):
    """Weight of the edges between each cluster and the others, and of all edges at its nodes."""
    pairs = list(itertools.product(range(len(W)), repeat=2))
    cuts = [sum(W[i, j] for i, j in pairs if labels[i] == h != labels[j]) for h in range(n_clusters)]
    volumes = [sum(W[i, j] for i, j in pairs if labels[i] == h) for h in range(n_clusters)]
    return np.array(cuts), np.array(volumes)


def cut_score(W, labels, n_clusters):
    """-log of the normalised cut, less k times the sum of squared shares of the volume."""
    degrees = W.sum(axis=1)
    cut, shares = 0.0, []
    for h in range(n_clusters):
        inside = labels == h
        volume = degrees[inside].sum()
        if volume == 0:
            return -math.inf
        cut += W[np.ix_(inside, ~inside)].sum() / volume
        shares.append(volume / degrees.sum())
    return -math.log(cut) - n_clusters * sum(share**2 for share in shares)

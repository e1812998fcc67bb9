"""Slow, plain twins of the search for communities, on dense weights: the formula, and nothing else.

W is symmetric with a zero diagonal, and loops is the diagonal.
"""

from collections import deque

import numpy as np


def volumes_of(W, loops):
    return W.sum(axis=1) + loops


def modularity(W, loops, labels, resolution):
    """Sum over pairs of nodes in one community, each with itself too, of W_ij - r v_i v_j / T, over T."""
    volumes = volumes_of(W, loops)
    total = volumes.sum()
    excess = W + np.diag(loops) - resolution * np.outer(volumes, volumes) / total
    return excess[np.equal.outer(labels, labels)].sum() / total


def gain(W, loops, labels, i, c, resolution):
    volumes = volumes_of(W, loops)
    others = [j for j, label in enumerate(labels) if label == c and j != i]
    price = resolution / volumes.sum() * volumes[i]
    return sum(W[i, j] for j in others) - price * sum(volumes[j] for j in others)


def settled(W, loops, labels, resolution, order, kept):
    labels = list(labels)
    queue = deque(order)
    while queue:
        i = queue.popleft()
        own = labels[i]
        ends = np.flatnonzero(W[i])
        gains = {
            c: gain(W, loops, labels, i, c, resolution)
            for c in {own, *(labels[j] for j in ends)}
        }
        best = min(gains, key=lambda c: (c == own, -gains[c], c))
        if labels.count(own) > kept and gains[best] - gains[own] > 1e-10:
            labels[i] = best
            queue += [j for j in ends if labels[j] != best and j not in queue]
    return labels


def numbered(labels):
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([numbers[label] for label in labels])


def aggregate(W, loops, labels, k):
    member = np.eye(k)[labels]
    whole = member.T @ (W + np.diag(loops)) @ member
    inner = np.diag(whole).copy()
    return whole - np.diag(inner), inner


def louvain(W, loops, resolution, order):
    p = len(loops)
    labels = numbered(settled(W, loops, range(p), resolution, order, 0))
    k = labels.max() + 1
    if k == p:
        return labels
    return louvain(*aggregate(W, loops, labels, k), resolution, range(k))[labels]


def move_nodes(W, loops, labels, k, resolution, order):
    return np.array(settled(W, loops, labels, resolution, order, 1))


def merged(W, loops, k):
    """Labels after merges of the largest W / (v v), or without edges of the least volumes."""
    labels = np.arange(len(loops))
    while (count := labels.max() + 1) > k:
        links, inner = aggregate(W, loops, labels, count)
        volumes = volumes_of(links, inner)
        pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
        one, other = max(
            pairs, key=lambda ab: links[ab] / (volumes[ab[0]] * volumes[ab[1]] or 1.0)
        )
        if not links.any():
            one, other = sorted(np.argsort(volumes, kind="stable")[:2])
        labels = numbered(np.where(labels == other, one, labels))
    return labels


def communities_at(W, loops, k, seed):
    p = len(loops)
    order = np.random.RandomState(seed).permutation(len(loops))
    for resolution in 2.0 ** np.arange(41):
        pieces = louvain(W, loops, resolution, order)
        if pieces.max() + 1 >= min(8 * k, max(k, p // 8)):
            break
    c = pieces.max() + 1
    links, inner = aggregate(W, loops, pieces, c)
    tried = {resolution: np.arange(c)}
    low = 0.0
    high = resolution
    while len(tried) <= 40 and all(labels.max() + 1 != k for labels in tried.values()):
        middle = np.sqrt(low * high) if low else high / 2
        tried[middle] = louvain(links, inner, middle, range(c))
        low, high = (low, middle) if tried[middle].max() + 1 > k else (middle, high)
    enough = [at for at, labels in tried.items() if labels.max() + 1 >= k]
    resolution = min(enough, key=lambda at: (tried[at].max(), -at))
    joined = tried[resolution]
    joined = merged(*aggregate(links, inner, joined, joined.max() + 1), k)[joined]
    return numbered(move_nodes(W, loops, joined[pieces], k, resolution, order))


def random_graph(seed, p=None, loops=True):
    """Weights that are multiples of 1/64, so that all sums are exact."""
    rng = np.random.default_rng(seed)
    p = p or int(rng.integers(2, 24))
    upper = (
        np.triu(rng.integers(1, 65, (p, p)) * (rng.random((p, p)) < min(1.0, 4 / p)), 1)
        / 64
    )
    return upper + upper.T, rng.integers(0, 129, p) / 64 * loops


def cliques(n_cliques, size, link=0.125):
    """A ring of cliques of weights 1, which touch by one edge each."""
    W = np.kron(np.eye(n_cliques), np.ones((size, size))) - np.eye(n_cliques * size)
    for c in range(n_cliques):
        one = c * size
        other = ((c + 1) % n_cliques) * size + 1
        W[one, other] = W[other, one] = link
    return W

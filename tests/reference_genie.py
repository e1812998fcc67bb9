"""A slow, plain twin of the Genie linkage: all of it is found anew at each merge."""

import itertools

import numpy as np


def gini(sizes):
    pairs = sum(abs(s - t) for s, t in itertools.combinations(sizes, 2))
    return pairs / ((len(sizes) - 1) * sum(sizes))


def genie(ends, weights, threshold, n_clusters):
    labels = np.arange(len(weights))
    while True:
        sizes = {label: sum(weights[labels == label]) for label in np.unique(labels)}
        left = [pair for pair in labels[ends].tolist() if pair[0] != pair[1]]
        if len(sizes) <= max(n_clusters, 1) or not left:
            return labels
        x, y = left[0]
        if gini(sizes.values()) > threshold:
            least = min(sizes.values())
            x, y = next(
                (pair for pair in left if least in (sizes[pair[0]], sizes[pair[1]])),
                left[0],
            )
        # so each label is the first node of its cluster
        labels[labels == max(x, y)] = min(x, y)

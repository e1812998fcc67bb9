"""A slow, plain twin of the judge of partitions: loops over edges and neighbours, and nothing else."""

import math


def information(W, loops, labels):
    """Mutual information of the labels at the two ends of an edge; a loop is an edge with both at one."""
    p = len(labels)
    weights = {}
    for i in range(p):
        for j in range(p):
            pair = labels[i], labels[j]
            weights[pair] = weights.get(pair, 0.0) + (loops[i] if i == j else W[i][j])
    total = sum(weights.values())
    ends = {
        a: sum(weight for (one, _), weight in weights.items() if one == a)
        for a in set(labels)
    }
    return sum(
        w / total * math.log(w * total / (ends[a] * ends[b]))
        for (a, b), w in weights.items()
        if w > 0
    )


def quantile(pairs, share):
    """The smallest value up to which lies at least a share of the weight."""
    total = sum(weight for _, weight in pairs)
    reached = 0.0
    for value, weight in sorted(pairs, key=lambda pair: pair[0]):
        reached += weight
        if reached >= share * total:
            return value
    raise AssertionError("all of the weight is less than a share of it")


def gap(numbers, distances, sizes, labels):
    across = []
    within = []
    for i, (near, lengths) in enumerate(zip(numbers, distances, strict=True)):
        for j, length in zip(near, lengths, strict=True):
            (within if labels[i] == labels[j] else across).append(
                (max(length, 1e-12), sizes[i])
            )
    if not within:
        return -9.0
    between = (
        2 * max(length for length, _ in within)
        if len(across) < 5
        else quantile(across, 0.05)
    )
    return math.log(between / quantile(within, 0.75))


def judge(W, loops, numbers, distances, sizes, labels, n_classes=None):
    """J, the information and the gap."""
    share = information(W, loops, labels) / (
        math.log(n_classes or len(set(labels))) or 1.0
    )
    apart = gap(numbers, distances, sizes, labels)
    return 4 * share + apart, share, apart

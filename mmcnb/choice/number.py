"""The number of clusters: of partitions at many resolutions the one that agrees most with the likely ones.

Without structure, the share of the entropy that labels do not tell of is nearly a
formula of the numbers of nodes and clusters, the entropy of the clusters, and the
dimension of the rows. Structure has less.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any

import numpy as np

from mmcnb._agreement import adjusted_rand_index
from mmcnb.choice.judge import (
    INFORMATION_WEIGHT,
    ROUNDING_DIGITS,
    cluster_weights,
    gap_between,
    mutual_information,
)
from mmcnb.graph.communities import (
    LEAST_LINK,
    MergeTree,
    by_first,
    communities_by,
    merge_tree,
)
from mmcnb.graph.neighbours import LEAST_DISTANCE, NodeGraph

GATE = 2.5  # spreads below the loss without structure
# if the last cut has more than 30, cuts go on to 300
MANY = 30
MOST_CLUSTERS = 300
# Fitted to data without structure; `python -m benchmarks no-structure` fits the first
# two again. They weigh the terms of `terms_of_loss`, `terms_of_spread` and
# `real_merges`, in this order.
LOSS, SPREAD, LINK = (
    np.array(text.split(), float)
    for text in (
        "0.338 0.1264 2.3488 -0.1326 -0.6811 -0.4522 -0.0477 0.6175 "
        "-0.0043 0.0265 -0.0557 -1.1798 0.0298 -0.0225 0.0049 0.0294",
        "-2.8672 1.4935 0.2258 -0.3563 -0.4411 0.3235",
        "-0.2998 -2.0011 -1.7875 -0.1207 -0.2353 0.2312 -1.76 -0.0026 "
        "0.2198 0.3285 1.8275 -1.4191 0.0934 0.0581 -0.0009 -0.0563 "
        "-0.1307 -0.4208 0.0568 -0.0023 0.1572 2.1332 10.1903 -8.1478",
    )
)


@dataclass(frozen=True)
class Partition:
    """A partition of the nodes, and the evidence for it.

    Parameters
    ----------
    labels : ndarray of shape (p,), int64
        Cluster of each node, numbered by first nodes.
    n_clusters : int
        Number of clusters.
    entropy, loss : float
        Entropy of the volumes of the clusters, in nats, and its share that labels do
        not tell of.
    J : float
        J of the judge.
    z : float
        How many spreads its loss lies below that without structure.
    score : float
        The larger, the better, whatever the number.
    persistence : int
        At how many resolutions it was found.
    """

    labels: np.ndarray
    n_clusters: int
    entropy: float
    loss: float
    J: float
    z: float
    score: float
    persistence: int


@dataclass(frozen=True)
class Structure:
    """Partitions of the nodes of a graph at many resolutions.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    tree : MergeTree
        Of the graph that judges.
    d : float
        `dimension` of the nodes.
    partitions : sequence of Partition
        Each once.
    """

    graph: NodeGraph
    tree: MergeTree
    d: float
    partitions: Sequence[Partition]

    @cached_property
    def groups(self) -> np.ndarray:
        """Groups of nodes: the tree without merges that join two."""
        return self.tree.without(real_merges(self.graph, self.tree, self.d))

    def shares(self, sharpness: float) -> np.ndarray:
        """How likely each partition is, by its score and its persistence."""
        scores = np.array([one.score for one in self.partitions])
        shares = np.exp(sharpness * (scores - scores.max())) * [
            one.persistence for one in self.partitions
        ]
        return np.asarray(shares / shares.sum())

    def agreements(self, labels: np.ndarray) -> np.ndarray:
        """Adjusted Rand index of a partition with each; 0 in place of less."""
        found = [
            agreement(labels, one.labels, self.graph.counts) for one in self.partitions
        ]
        return np.maximum(np.array(found), 0.0)

    def judged(self, labels: np.ndarray) -> Partition:
        """A partition of the nodes with its evidence; it persists if one is found that is nearly the same."""
        same = np.dot(
            self.agreements(labels) >= 0.95,
            [one.persistence for one in self.partitions],
        )
        return judged(self.graph, self.d, labels, int(same))


def structure(
    graph: NodeGraph, n_clusters: int | None = None, each: Any = map
) -> Structure:
    """Partitions of a graph at many resolutions, of 2 clusters or more, and of 6 nodes or more in the mean.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    n_clusters : int or None, default=None
        A number that is given: then cuts of the tree are the only partitions, and it
        has so many pieces.
    each : callable, default=map
        Maps a function over items, perhaps in threads.

    Returns
    -------
    Structure

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.number import structure
    >>> from mmcnb.graph.neighbours import node_graph
    >>> rows = np.random.RandomState(0).normal(size=(200, 2)) + np.repeat([0, 9], 100)[:, None]
    >>> found = structure(node_graph(rows, None, np.random.RandomState(0)))
    >>> max(found.partitions, key=lambda one: one.score).n_clusters
    2
    """
    counts = (10, 25) if n_clusters is None and graph.n_nodes >= 300 else (10,)
    graphs = [graph.edges(count) for count in counts]
    trees = list(each(lambda edges: merge_tree(edges[0], edges[1], n_clusters), graphs))
    found = [labels for one in trees for labels in _cuts(one)]
    for edges in graphs if n_clusters is None else ():
        found += each(partial(communities_by, *edges), np.geomspace(3.14, 0.02, 13))
    keys = [blake2b(one.tobytes(), digest_size=16).digest() for one in found]
    kept = {
        key: one
        for key, one in zip(keys, found, strict=True)
        if 2 <= one.max() + 1 <= graph.n_nodes / 6
    }
    d = dimension(graph)
    partitions = each(lambda key: judged(graph, d, kept[key], keys.count(key)), kept)
    return Structure(graph, trees[0], d, list(partitions))


def _cuts(tree: MergeTree) -> list[np.ndarray]:
    """Cuts of a tree at links in equal ratios."""
    links = np.geomspace(0.01, 4.0, 22)
    numbers = [tree.n_at(link) for link in links]
    link = links[-1]
    ratio = links[1] / links[0]
    while MANY < numbers[-1] <= min(MOST_CLUSTERS, tree.n_pieces - 1):
        link *= ratio
        numbers.append(tree.n_at(link))
    made = {k: tree.labels(k) for k in set(numbers)}
    return [made[k] for k in numbers]


# -- evidence --------------------------------------------------------------------------


def dimension(graph: NodeGraph) -> float:
    """The dimension of the rows near each node, between 1.01 and 60.

    References
    ----------
    E. Levina and P. Bickel, Maximum likelihood estimation of intrinsic dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.number import dimension
    >>> from mmcnb.graph.neighbours import node_graph
    >>> rows = np.random.RandomState(0).uniform(size=(900, 2))
    >>> 1.7 < dimension(node_graph(rows, None, np.random.RandomState(0))) < 2.3
    True
    """
    logs = np.log(np.maximum(graph.distances[:, :10], LEAST_DISTANCE))
    sums = (logs[:, -1:] - logs[:, :-1]).sum(axis=1).mean()
    return float(np.clip((logs.shape[1] - 2) / max(sums, 1e-9), 1.01, 60.0))


def terms_of_loss(n: Any, k: Any, entropy: Any, d: Any) -> np.ndarray:
    """The terms of the logarithm of a loss without structure, of shape (..., 16)."""
    i = 1 / np.maximum(d, 1.2)
    H = np.asarray(entropy)
    logs = np.log(k)
    u = np.log(n / np.asarray(k))
    one = np.ones_like(H)
    of_u = [one, one * i, one * i**2, u, u * i, u * i**2]
    terms = [H, H * i, H**2, H**2 * i, logs, logs * i, u * H, u * H * i, u**2, u**2 * i]
    return np.stack([*of_u, *terms], axis=-1)


def terms_of_spread(n: Any, entropy: Any, d: Any) -> np.ndarray:
    """The terms of the logarithm of the spread of that, of shape (..., 6)."""
    i = 1 / np.maximum(d, 1.2)
    one = np.ones_like(entropy)
    return np.stack(
        [
            one,
            one * i,
            one * np.log(n),
            one * i * np.log(n),
            one * entropy,
            i * entropy,
        ],
        axis=-1,
    )


def significance(n: float, k: Any, loss: Any, entropy: Any, d: float) -> Any:
    """How many spreads the loss of a partition lies below that of one without structure.

    Parameters
    ----------
    n : float
        Number of nodes.
    k, loss, entropy : int and float, or ndarrays of one shape
        Clusters of the partition, its loss above 0, and the entropy of its volumes, in
        nats.
    d : float
        `dimension`.

    Examples
    --------
    >>> from mmcnb.choice.number import significance
    >>> bool(significance(1000, 2, 0.01, 0.693, 5.0) > 10 > 1 > significance(1000, 2, 0.7, 0.693, 5.0))
    True
    """
    spread = np.maximum(0.04, 1.5 * np.exp(terms_of_spread(n, entropy, d) @ SPREAD))
    return (terms_of_loss(n, k, entropy, d) @ LOSS - np.log(loss)) / spread


def judged(
    graph: NodeGraph, d: float, labels: np.ndarray, persistence: int = 1
) -> Partition:
    """A partition with its evidence.

    Its score is 4 MI / log(k + 1) + gap - 0.06 log(n / 100) log k + 1.4 / d log(1 + z).
    """
    n = graph.n_nodes
    k = int(labels.max()) + 1
    table = cluster_weights(graph, labels, k)
    volumes = table.sum(axis=1) / table.sum()
    information = mutual_information(table)
    gap = gap_between(graph, labels)
    entropy = float(-(volumes * np.log(volumes)).sum())
    loss = float(np.clip(1 - information / max(entropy, 1e-9), 1e-4, 1.0))
    z = float(significance(n, k, loss, entropy, d))
    rest = (
        gap
        - 0.06 * max(0.0, np.log(n / 100)) * np.log(k)
        + 1.4 / d * np.log1p(max(z, 0.0))
    )
    score = INFORMATION_WEIGHT * information / np.log(k + 1) + rest
    J = INFORMATION_WEIGHT * information / (np.log(k) or 1.0) + gap
    return Partition(labels, k, entropy, loss, float(J), z, float(score), persistence)


def agreement(
    one: np.ndarray, other: np.ndarray, counts: np.ndarray | None = None
) -> float:
    """Adjusted Rand index of labels from 0, of nodes that stand for so many rows each."""
    shape = int(one.max()) + 1, int(other.max()) + 1
    pairs: np.ndarray = np.bincount(one * shape[1] + other, counts, shape[0] * shape[1])
    return adjusted_rand_index(pairs.astype(np.int64).reshape(shape))


# -- the rule --------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A number of clusters, and why it was taken.

    Parameters
    ----------
    n_clusters : int
        The number; 1 without structure.
    labels : ndarray of shape (p,), int64
        The partition that has it.
    reason : str, default=""
        One sentence.
    next_best : int or None, default=None
        The number that comes next.
    agreement : float, default=1.0
        Expected agreement of the partition with the right one.
    """

    n_clusters: int
    labels: np.ndarray
    reason: str = ""
    next_best: int | None = None
    agreement: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """The entry of a report."""
        return {
            name: getattr(self, name)
            for name in ("n_clusters", "reason", "next_best", "agreement")
        }


def given_number(
    graph: NodeGraph, n_clusters: int, each: Any, reason: str = ""
) -> tuple[Number, Structure]:
    """A number that is given, with the cut of the tree that has it."""
    found = structure(graph, n_clusters, each)
    return Number(n_clusters, found.tree.labels(n_clusters), reason), found


def found_number(
    graph: NodeGraph, least: int, most: float, least_weight: float, each: Any
) -> tuple[Number, Structure]:
    """The number in a range, with no cluster of less than a weight of nodes."""
    found = structure(graph, each=each)
    number = best_number(found, least, max(least, most))
    if number.n_clusters < least:  # which takes smaller pieces
        number, found = given_number(graph, least, each, number.reason)
    labels = without_small(graph, number.labels, least_weight)
    return replace(number, n_clusters=int(labels.max()) + 1, labels=labels), found


def best_number(
    found: Structure, least: int = 1, most: float = np.inf, sharpness: float = 8.0
) -> Number:
    """The number of clusters of the partition with the largest expected agreement.

    Each partition is as likely as its score and its persistence say. Clusters that are
    two or more groups are split afterwards.

    Parameters
    ----------
    found : Structure
        The partitions.
    least, most : int and float, default=1 and inf
        Range of the number; from 2 on there are clusters whatever the evidence.
    sharpness : float, default=8.0
        Weight of the scores.

    Returns
    -------
    Number
    """
    strongest = max((one.z for one in found.partitions), default=0.0)
    if least < 2 and strongest <= GATE:
        why = f"no partition differs from rows without structure by {GATE} (at most {strongest:.1f})"
        return Number(
            1, np.zeros(found.graph.n_nodes, np.int64), f"one cluster: {why}."
        )
    partitions = [one for one in found.partitions if least <= one.n_clusters <= most]
    if not partitions:
        k = int(min(max(least, 2), found.tree.n_pieces, most))
        return Number(
            k, found.tree.labels(k), "no resolution has a number in the range."
        )
    likely = [
        pair
        for pair in zip(found.shares(sharpness), found.partitions, strict=True)
        if pair[0] > 1e-6
    ]
    agree = partial(agreement, counts=found.graph.counts)
    expected = [
        sum(p * agree(one.labels, other.labels) for p, other in likely)
        for one in partitions
    ]
    ranked = np.round(
        expected, ROUNDING_DIGITS
    )  # of equally good partitions the first counts
    best = int(np.argmax(ranked))
    whole = partitions[best].labels
    before = partitions[best].n_clusters
    labels = split(found.groups, whole, found.graph.counts)
    labels = labels if labels.max() < most else whole
    k = int(labels.max()) + 1
    reason = f"{k} clusters: their expected agreement with the right partition is {expected[best]:.2f}"
    reason += f", after {before} were split at gaps inside" if k > before else ""
    others = (
        i for i, one in enumerate(partitions) if one.n_clusters not in (k, before)
    )
    following = max(others, key=ranked.__getitem__, default=None)
    next_best = None if following is None else partitions[following].n_clusters
    reason += (
        ""
        if following is None
        else f"; next are {next_best} with {expected[following]:.2f}"
    )
    return Number(k, labels, f"{reason}.", next_best, float(expected[best]))


def layers(
    found: Structure, labels: np.ndarray, most: int = 5, least_gain: float = 0.01
) -> list[Partition]:
    """A partition that was taken, and the cuts of the tree that add most to the expected agreement.

    Parameters
    ----------
    found : Structure
        The partitions.
    labels : ndarray of shape (p,), int64
        The partition taken.
    most : int, default=5
        Most layers.
    least_gain : float, default=0.01
        Of the expected agreement with the closest layer.

    Returns
    -------
    list of Partition
        By rising number of clusters; the one taken has these labels.
    """
    taken = found.judged(labels)
    made = [taken]
    reached = found.agreements(labels)
    cuts = {
        one.n_clusters: (one, found.agreements(one.labels))
        for one in (found.partitions if taken.n_clusters > 1 else ())
        if one.n_clusters != taken.n_clusters
        and np.array_equal(found.tree.labels(one.n_clusters), one.labels)
    }
    shares = found.shares(1.0) if cuts else reached

    def reached_with(k: int) -> float:
        """Return the expected agreement when the cut into k clusters is added, without its last bits."""
        return round(float(shares @ np.maximum(reached, cuts[k][1])), ROUNDING_DIGITS)

    while cuts and len(made) < most:
        one, agreements = cuts.pop(max(cuts, key=reached_with))
        gained = np.maximum(reached, agreements)
        if shares @ gained < shares @ reached + least_gain:
            break
        made = [*made, one]
        reached = gained
    return sorted(made, key=lambda one: one.n_clusters)


def layer_rows(
    found: Structure, labels: np.ndarray, sizes: np.ndarray
) -> list[dict[str, Any]]:
    """Figures of the layers; each node stands for so many of all rows."""
    rows = []
    for one in layers(found, labels):
        row = {name: getattr(one, name) for name in ("n_clusters", "persistence", "J")}
        row["smallest"] = round(float(np.bincount(one.labels, sizes).min()))
        row["agreement"] = agreement(one.labels, labels, found.graph.counts)
        rows.append(row | {"taken": one.labels is labels})
    return rows


# -- inner splits ----------------------------------------------------------------------


def real_merges(
    graph: NodeGraph, tree: MergeTree, d: float, clear: float = 2.0
) -> np.ndarray:
    """Which merges of a tree join two groups of 8 nodes or more: their link is far below that by chance.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    tree : MergeTree
        Of its edges.
    d : float
        `dimension` of the nodes.
    clear : float, default=2.0
        How far below, as a logarithm.

    Returns
    -------
    ndarray of shape (c - 1,), bool
    """
    n = graph.counts.sum()
    d = max(d, 1.35)
    sizes = tree.sums(graph.counts)
    a, c = np.sort(sizes[tree.merges], axis=1).T
    i = 1 / d
    r = d**-0.5
    u = np.log(a / 10)
    v = np.log(n / a)
    w = np.log(c / a)
    one = np.ones_like(u)
    e = np.exp(-v)
    first = [one, one * i, one * r, u, v, w, u * i, v * i, w * i, u * r, v * r, w * r]
    squares = [u**2 * i, v**2, w**2, w * v, v**2 * i, w**2 * i]
    products = [v * w * i, u * v * i, u * w * i, e, e * i, e * r]
    expected = np.stack([*first, *squares, *products], axis=1) @ LINK
    evidence = (
        expected
        - np.log(np.maximum(tree.links, LEAST_LINK))
        + _valleys(graph, tree, d) / 2
    )
    return np.asarray((evidence > clear) & (a >= 8))


def _valleys(graph: NodeGraph, tree: MergeTree, d: float) -> np.ndarray:
    """How much sparser the rows are between the two sides of each merge than within, as a power of d."""
    far = np.log(
        np.maximum(
            graph.distances[:, min(9, graph.distances.shape[1] - 1)], LEAST_DISTANCE
        )
    )
    edges = graph.edges()[0].tocoo()
    one = tree.piece_of_node[edges.row]
    other = tree.piece_of_node[edges.col]
    across = one != other
    of_edges = (far[edges.row] + far[edges.col]) / 2
    merge = tree.merge_of_pieces(one[across], other[across])
    count = np.bincount(merge, minlength=tree.links.size)
    between = np.bincount(merge, of_edges[across], tree.links.size) / np.maximum(
        count, 1
    )
    within = (tree.sums(far) / tree.sums(np.ones(far.size)))[tree.merges].mean(axis=1)
    return np.where(count > 0, np.clip(d * (between - within), -1.0, 1.5), 1.5)


def split(groups: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Labels with each cluster that is two or more groups split into these.

    Parameters
    ----------
    groups : ndarray of shape (p,), int64
        Group of each node: the tree without its real merges.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    counts : ndarray of shape (p,)
        Rows of each node.

    Returns
    -------
    ndarray of shape (p,), int64
        Numbered by first nodes. A node of many equal rows is a group, and nodes in
        small groups are in the largest one of their cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.number import split
    >>> split(np.repeat([0, 1], 10), np.zeros(20, int), np.ones(20)).sum()
    np.int64(10)
    """
    k = int(labels.max()) + 1
    new = labels.copy()
    groups = groups.copy()
    heaps = np.flatnonzero(counts >= max(8, counts.sum() / k / 2))  # of equal rows
    groups[heaps] = groups.max() + 1 + np.arange(heaps.size)
    for cluster in range(k):
        inside = np.flatnonzero(labels == cluster)
        sizes = np.bincount(groups[inside], counts[inside])
        large = np.flatnonzero(sizes >= max(8, min(counts.sum() / k, sizes.sum()) / 2))
        for group in large[large != sizes.argmax()] if large.size > 1 else ():
            new[inside[groups[inside] == group]] = new.max() + 1
    return by_first(new)


def without_small(graph: NodeGraph, labels: np.ndarray, least: float) -> np.ndarray:
    """Labels in which clusters of less than a weight of nodes have joined those they are linked to most."""
    while (sizes := np.bincount(labels, graph.sizes)).min() < least and sizes.size > 1:
        table = cluster_weights(graph, labels, sizes.size)
        smallest = int(sizes.argmin())
        link = table[smallest] / table.sum(axis=1)
        link[smallest] = -1.0
        labels = by_first(np.where(labels == smallest, link.argmax(), labels))
    return labels

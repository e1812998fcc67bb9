"""Pick the best of several candidate partitions, and repair it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from heapq import nlargest
from itertools import combinations
from typing import NamedTuple

import numpy as np

from mmcnb.choice.candidates import DENSITY, LAYOUT, MARGIN, Candidate
from mmcnb.choice.judge import (
    ROUNDING_DIGITS,
    cluster_weights,
    judge,
    mutual_information,
)
from mmcnb.graph.communities import communities_at
from mmcnb.graph.neighbours import NodeGraph

# These constants were chosen on data sets that are not part of the study
# `python -m benchmarks choice`, which measures how good the picked candidates are.
LEAST_GAIN = 0.1  # least gain in J for which a repaired partition replaces the original
LAYOUT_LEAD = 0.1
# The layout has no lead if its gap is narrower by more than this than the gap of its
# rival (see `score_with_lead`). The value was checked with
# `python -m benchmarks number`.
NARROWER_GAP = 0.03
# The lead of the partition by density is this factor times log(k)². With many clusters,
# J favours partitions that halve large clusters over partitions that separate small
# clusters, even if the density falls between the small clusters.
DENSITY_LEAD = 0.07
# These candidates are not found by maximising the mutual information.
WITHOUT_SEARCH = (MARGIN, LAYOUT, DENSITY)
MOST_REPAIRED = 30  # partitions with more clusters are not repaired
REPAIRED = ", repaired"  # suffix of the name of a repaired candidate
FEWEST_MERGES = 8  # least number of pairs of clusters that a round tries to merge
MOST_ROUNDS = 6
JUDGED = 10  # partitions with the largest mutual information for which J is computed


def pick(
    graph: NodeGraph,
    candidates: Sequence[Candidate],
    seed: int,
    tolerance: float = 0.0,
    repairs: bool = True,
) -> Candidate:
    """Pick the candidate with the largest J, and repair it.

    The candidates named "margin", "layout" and "density" get a lead in J, see
    `score_with_lead`.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the nodes.
    candidates : sequence of Candidate
        At least one candidate. If several have the same J, including the lead, the
        first of these is picked.
    seed : int
        Random seed for halving clusters in the repair.
    tolerance : float, default=0.0
        A candidate is eligible if the share of known labels that it contradicts exceeds
        the smallest share of all candidates by at most this value.
    repairs : bool, default=True
        Whether to repair the picked candidate.

    Returns
    -------
    Candidate
        One of the candidates, or a repaired candidate.
    """
    fewest_broken = min(candidate.broken or 0.0 for candidate in candidates)
    eligible = [
        candidate
        for candidate in candidates
        if (candidate.broken or 0.0) <= fewest_broken + tolerance
    ]
    rivals = [
        candidate for candidate in eligible if candidate.name not in WITHOUT_SEARCH
    ]
    rival = max(rivals, key=_rounded_J, default=None)
    best = max(eligible, key=partial(score_with_lead, rival=rival))
    has_labels_alone = best.model is None and best.broken is None
    # A repair maximises J, which does not take into account where the density falls.
    is_repairable = has_labels_alone and best.name != DENSITY
    if not (repairs and is_repairable and 2 < best.n_clusters <= MOST_REPAIRED):
        return best
    labels = repaired(graph, best.labels, seed)
    score = judge(graph, labels)
    if score.J <= best.score.J + LEAST_GAIN:
        return best
    return replace(best, name=f"{best.name}{REPAIRED}", labels=labels, score=score)


def margin_lead(n_nodes: int) -> float:
    """Return the lead in J of the partition with the widest margin.

    Most other candidates maximise the mutual information, so their J is biased upwards.
    The bias, and therefore the lead, is larger for fewer nodes.

    Examples
    --------
    >>> from mmcnb.choice.pick import margin_lead
    >>> margin_lead(20_000), margin_lead(900), margin_lead(100)
    (0.1, 0.2, 0.5)
    """
    return min(0.5, max(0.1, 6 / n_nodes**0.5))


def score_with_lead(candidate: Candidate, rival: Candidate | None = None) -> float:
    """Return J, plus a lead if the candidate does not maximise mutual information.

    The lead of the partition by density grows with its number of clusters.

    Parameters
    ----------
    candidate : Candidate
        The candidate to score.
    rival : Candidate or None, default=None
        The best candidate that maximises the mutual information, so that its J is
        biased upwards. The lead of the layout compensates for this bias. The layout has
        no lead if its gap is clearly narrower than the gap of the rival, because this
        shows that k-means has halved large clusters. If None, the layout has its lead.

    Returns
    -------
    float
    """
    J = _rounded_J(candidate)
    if candidate.name == DENSITY:
        J += DENSITY_LEAD * np.log(candidate.n_clusters) ** 2
    elif candidate.name == MARGIN:
        J += margin_lead(candidate.labels.size)
    elif candidate.name == LAYOUT and not _has_narrower_gap(candidate, rival):
        J += LAYOUT_LEAD
    return round(J, ROUNDING_DIGITS)


def _has_narrower_gap(candidate: Candidate, rival: Candidate | None) -> bool:
    """Return whether a candidate's gap is clearly narrower than that of its rival."""
    if rival is None:
        return False
    lacking = rival.score.gap - candidate.score.gap
    return round(lacking, ROUNDING_DIGITS) > NARROWER_GAP


def _rounded_J(candidate: Candidate) -> float:
    return round(candidate.score.J, ROUNDING_DIGITS)


# -- the repair ------------------------------------------------------------------------


class _Scored(NamedTuple):
    """Labels of a partition and its score, which is rounded before it is compared."""

    score: float
    labels: np.ndarray

    def rounded(self) -> float:
        return round(float(self.score), ROUNDING_DIGITS)


class _Halves:
    """Cache of the halves into which sets of nodes are divided.

    Halves are cached because most clusters recur in later rounds.
    """

    def __init__(self, graph: NodeGraph, seed: int) -> None:
        self.graph = graph
        self.seed = seed
        self._second: dict[bytes, np.ndarray | None] = {}

    def second(self, nodes: np.ndarray) -> np.ndarray | None:
        """Return a mask of the second half of ``nodes``.

        Return None if the nodes cannot be halved.
        """
        if nodes.size < 2:
            return None
        key = nodes.tobytes()
        if key not in self._second:
            weights, loops = self.graph.edges()
            inside = weights[nodes][:, nodes]
            halves = communities_at(inside, loops[nodes], 2, self.seed)
            self._second[key] = None if halves is None else halves == 1
        return self._second[key]


def repaired(graph: NodeGraph, labels: np.ndarray, seed: int) -> np.ndarray:
    """Repair a partition by merging two clusters and halving one where this raises J.

    There are at most six rounds, with one merge and one halving in each round.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the nodes.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    seed : int
        Random seed for halving clusters.

    Returns
    -------
    ndarray of shape (p,), int64
        Labels with the same number of clusters, and at least the same J.
    """
    halves = _Halves(graph, seed)
    best = _Scored(judge(graph, labels).J, labels)
    for _ in range(MOST_ROUNDS):
        moves = _merges_and_halvings(graph, best.labels, halves)
        likely = nlargest(JUDGED, moves, key=_Scored.rounded)
        judged = [_Scored(judge(graph, move.labels).J, move.labels) for move in likely]
        following = max(judged, key=_Scored.rounded, default=best)
        # Renumbering the clusters changes J by rounding errors.
        if following.score <= best.score + 1e-9:
            break
        best = following
    return best.labels


def _merges_and_halvings(
    graph: NodeGraph, labels: np.ndarray, halves: _Halves
) -> Iterator[_Scored]:
    """Yield partitions in which two clusters are merged and one cluster is halved.

    The halved cluster is another cluster or the merged one, so the number of clusters
    stays the same. The score of a partition is its mutual information.
    """
    k = int(labels.max()) + 1
    half = 2 * labels
    for cluster in range(k):
        inside = np.flatnonzero(labels == cluster)
        second = halves.second(inside)
        if second is not None:
            half[inside[second]] += 1
    halved = np.unique(half[half % 2 == 1] // 2).tolist()
    table = cluster_weights(graph, half, 2 * k)
    cluster_of_half = np.repeat(np.arange(k), 2)
    for a, b in _linked_pairs(_summed(table, cluster_of_half, k)):
        merged = np.where(cluster_of_half == b, a, cluster_of_half)
        for cluster in halved:
            if cluster not in (a, b):
                number = merged.copy()
                number[2 * cluster + 1] = b
                information = mutual_information(_summed(table, number, k))
                yield _Scored(information, number[half])
        both = np.flatnonzero((labels == a) | (labels == b))
        second = halves.second(both)
        if second is not None:
            divided = labels.copy()
            divided[both] = np.where(second, b, a)
            information = mutual_information(cluster_weights(graph, divided, k))
            yield _Scored(information, divided)


def _linked_pairs(table: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of clusters with the strongest links, the strongest first.

    The strength of a link is its weight divided by the volumes of both clusters.
    """
    volumes = table.sum(axis=1)

    def falling_link(pair: tuple[int, int]) -> float:
        return -table[pair] / (volumes[pair[0]] * volumes[pair[1]])

    pairs = sorted(combinations(range(volumes.size), 2), key=falling_link)
    return pairs[: max(FEWEST_MERGES, volumes.size)]


def _summed(table: np.ndarray, number: np.ndarray, n_clusters: int) -> np.ndarray:
    """Sum the weights between halves of clusters to weights between clusters.

    ``number`` is the cluster of each half.
    """
    indicators = np.eye(n_clusters)[number]
    return np.asarray(indicators.T @ table @ indicators)

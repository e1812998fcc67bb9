"""The pick among candidates, its repair, and how far it can be trusted."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import combinations
from typing import Any

import numpy as np

from mmcnb.choice.candidates import LAYOUT, MARGIN, Candidate
from mmcnb.choice.judge import (
    ROUNDING_DIGITS,
    cluster_weights,
    judge,
    mutual_information,
)
from mmcnb.choice.number import GATE, Number, Structure, agreement, split
from mmcnb.columns.columns import SingleColumns
from mmcnb.graph.communities import communities_at
from mmcnb.graph.neighbours import NodeGraph

# Chosen on other data sets; `python -m benchmarks choice` shows the result.
LEAST_GAIN = 0.1  # of J, for a repair
MOST_REPAIRED = 30  # clusters
REPAIRED = ", repaired"  # ends the name of a repaired candidate
FEWEST_MERGES = 8
MOST_ROUNDS = 6
JUDGED = 10


def pick(
    graph: NodeGraph,
    found: Sequence[Candidate],
    seed: int,
    tolerance: float = 0.0,
    repairs: bool = True,
) -> Candidate:
    """The candidate with the largest J, repaired.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    found : sequence of Candidate
        At least one; of equal J the first counts.
    seed : int
        Seed of the repair.
    tolerance : float, default=0.0
        Candidates that break more of the known labels than the best one, by more than
        this, do not count.
    repairs : bool, default=True
        Whether to repair it.

    Returns
    -------
    Candidate
        One of these, or a repaired one.
    """
    bound = min(one.broken or 0.0 for one in found) + tolerance
    best = max(
        (one for one in found if (one.broken or 0.0) <= bound), key=led
    )  # the first of equal ones
    k = int(best.labels.max()) + 1
    if (
        not repairs
        or best.model is not None
        or best.broken is not None
        or not 2 < k <= MOST_REPAIRED
    ):
        return best
    labels = repaired(graph, best.labels, seed)
    better = replace(
        best, name=f"{best.name}{REPAIRED}", labels=labels, score=judge(graph, labels)
    )
    return better if better.score.J > best.score.J + LEAST_GAIN else best


def margin_lead(n_nodes: int) -> float:
    """The lead of the widest margin in J.

    The other candidates search for the largest information, so by chance their J is too
    high, and more so among few nodes.

    Examples
    --------
    >>> from mmcnb.choice.pick import margin_lead
    >>> margin_lead(20_000), margin_lead(900), margin_lead(100)
    (0.1, 0.2, 0.5)
    """
    return min(0.5, max(0.1, 6 / n_nodes**0.5))


def led(one: Candidate) -> float:
    """J, with the lead of a candidate that does not search for the largest information."""
    leads = {MARGIN: margin_lead(one.labels.size), LAYOUT: 0.1}
    return round(one.score.J + leads.get(one.name, 0.0), ROUNDING_DIGITS)


def _rounded(scored: tuple[float, np.ndarray]) -> float:
    """Return the score of scored labels without the bits in which processors differ."""
    return round(float(scored[0]), ROUNDING_DIGITS)


def repaired(graph: NodeGraph, labels: np.ndarray, seed: int) -> np.ndarray:
    """Labels after up to six rounds, in each of which two clusters merge and another one is halved.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    labels : ndarray of shape (p,), int64
        Their clusters.
    seed : int
        Seed of the halves.

    Returns
    -------
    ndarray of shape (p,), int64
        Labels whose J is at least that of the given ones.
    """
    # most clusters stay as they are
    score = judge(graph, labels).J
    halves = dict[bytes, Any]()
    for _ in range(MOST_ROUNDS):
        likely = nlargest(JUDGED, _moves(graph, labels, seed, halves), key=_rounded)
        judged = [(judge(graph, other).J, other) for _, other in likely]
        best = max(judged, key=_rounded, default=(-np.inf, labels))
        if (
            best[0] <= score + 1e-9
        ):  # the same clusters in another order have another rounding
            break
        score, labels = best
    return labels


def _moves(
    graph: NodeGraph, labels: np.ndarray, seed: int, halves: dict[bytes, Any]
) -> Iterator[tuple[float, np.ndarray]]:
    """Partitions after a merge and a halving, each after its mutual information; halves are kept by nodes."""
    k = int(labels.max()) + 1
    half = 2 * labels
    for one in range(k):
        inside = np.flatnonzero(labels == one)
        if (upper := _halved(graph, inside, seed, halves)) is not None:
            half[inside[upper]] += 1
    halved = np.unique(half[half % 2 == 1] // 2).tolist()
    table = cluster_weights(graph, half, 2 * k)
    whole = np.repeat(np.arange(k), 2)  # the cluster of each half
    for a, b in _linked_pairs(_joined(table, whole, k)):
        merged = np.where(whole == b, a, whole)
        for one in halved:
            if one not in (a, b):
                number = merged.copy()
                number[2 * one + 1] = b
                yield mutual_information(_joined(table, number, k)), number[half]
        both = np.flatnonzero((labels == a) | (labels == b))
        upper = _halved(graph, both, seed, halves)
        if upper is not None:
            other = labels.copy()
            other[both] = np.where(upper, b, a)
            yield mutual_information(cluster_weights(graph, other, k)), other


def _halved(
    graph: NodeGraph, nodes: np.ndarray, seed: int, halves: dict[bytes, Any]
) -> np.ndarray | None:
    """Which of some nodes make the second of two communities; None if there are no two."""
    if nodes.size < 2:
        return None
    if nodes.tobytes() not in halves:
        weights, loops = graph.edges()
        found = communities_at(weights[nodes][:, nodes], loops[nodes], 2, seed)
        halves[nodes.tobytes()] = None if found is None else found == 1
    return halves[nodes.tobytes()]


def _linked_pairs(table: np.ndarray) -> list[tuple[int, int]]:
    """The pairs of clusters with the largest link, relative to their volumes."""
    volumes = table.sum(axis=1)
    pairs = list(combinations(range(volumes.size), 2))
    link = {pair: table[pair] / (volumes[pair[0]] * volumes[pair[1]]) for pair in pairs}
    return sorted(pairs, key=lambda pair: -link[pair])[
        : max(FEWEST_MERGES, volumes.size)
    ]


def _joined(table: np.ndarray, number: np.ndarray, n_clusters: int) -> np.ndarray:
    """The weights between clusters, from those between their parts."""
    indicators = np.eye(n_clusters)[number]
    return np.asarray(indicators.T @ table @ indicators)


# -- trust -----------------------------------------------------------------------------

# Fitted on other data sets; `python -m benchmarks choice` prints how often each level
# is right.
HIGH_AGREEMENT = 0.8
LIKELY_NUMBER = 0.9
NO_STRUCTURE = "the clusters are no clearer than those of rows without structure"
# of J + 1.5 agreement
LOW_SUM = 3.5
AGREEMENT_WEIGHT = 1.5


def doubts(seen: Structure, labels: np.ndarray, number: Number) -> list[str]:
    """What speaks against a partition, the gravest first: evidence, a look into the clusters, their number.

    Parameters
    ----------
    seen : Structure
        Partitions of the nodes.
    labels : ndarray of shape (p,), int64
        The partition taken.
    number : Number
        Its number of clusters.

    Returns
    -------
    list of str
    """
    if labels.max() == 0:
        return [
            number.reason.removesuffix(".") or "one cluster contains all rows, as asked"
        ]
    found = list[str]()
    z = seen.judged(labels).z
    if z <= GATE:
        found.append(f"{NO_STRUCTURE} (evidence {z:.1f}, of {GATE} needed)")
    elif z < 2 * GATE or seen.d < 1.1:  # gaps of rows along a line look like clusters
        found.append(f"the evidence for clusters is weak ({z:.1f})")
    if (
        more := int(split(seen.groups, labels, seen.graph.counts).max() - labels.max())
    ) > 0:
        found.append(f"a look into the clusters finds {more} more")
    if number.agreement < LIKELY_NUMBER:
        found.append(
            f"the expected agreement with the right partition is {number.agreement:.2f}"
        )
    return found


def trust(
    best: Candidate,
    others: Sequence[Candidate],
    single: SingleColumns | None = None,
    doubts: Sequence[str] = (),
) -> dict[str, Any]:
    """The level of trust, from the agreement of the other candidates and from single columns.

    Parameters
    ----------
    best : Candidate
        The partition that was taken.
    others : sequence of Candidate
        All others.
    single : SingleColumns or None, default=None
        Columns that make the clusters alone.
    doubts : sequence of str, default=()
        From `doubts`.

    Returns
    -------
    dict
        ``level`` is "low", "medium" or "high". ``reason`` is one sentence.
        ``agreement`` is the mean adjusted Rand index with the others, each weighted by
        exp(J - J of the best). ``columns`` has the names of columns that make the
        clusters alone.
    """
    if int(best.labels.max()) == 0:
        reason = [*doubts, "there is one cluster"][0]
        return {"level": "low", "reason": f"{reason}.", "agreement": 0.0, "columns": []}
    agreement = _agreement_of(best, others)
    agreed = (
        f"other candidates agree by {agreement:.2f}"
        if others
        else "there is no other candidate"
    )
    figures = f"{agreed}, and J is {best.score.J:.2f}"
    if single is not None:
        level = "low"
        reason = f"{single.sentence}."
    elif doubts and doubts[0].startswith(NO_STRUCTURE):
        level = "low"
        reason = f"{doubts[0]}; {figures}."
    elif others and agreement >= HIGH_AGREEMENT and not doubts:
        level = "high"
        reason = f"{figures}."
    elif best.score.J + AGREEMENT_WEIGHT * agreement < LOW_SUM:
        remedy = "try other columns, another scale or another n_clusters"
        level = "low"
        reason = f"{figures}; {remedy}."
    else:
        level = "medium"
        reason = f"{'; '.join([*doubts, figures])}."
    columns = single.names if single else []
    return {
        "level": level,
        "reason": reason,
        "agreement": agreement,
        "columns": columns,
    }


def _agreement_of(best: Candidate, others: Sequence[Candidate]) -> float:
    if not others:
        return 0.0
    weights = np.exp([min(one.score.J - best.score.J, 50.0) for one in others])
    same = [agreement(best.labels, one.labels) for one in others]
    return float(weights @ np.array(same) / weights.sum())

"""Candidate partitions of the nodes of a graph, found by several methods."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from mmcnb.choice.judge import Score, judge
from mmcnb.choice.known import KnownRows, held_out, spread
from mmcnb.errors import InputError
from mmcnb.graph.communities import communities_at
from mmcnb.graph.genie import genie_at, spanning_tree
from mmcnb.graph.layout import kmeans_in_layout, layout
from mmcnb.graph.neighbours import NodeGraph

COMMUNITY_NEIGHBOURS = 10, 15, 25  # per node; each value yields one candidate
# Genie linkage merges the smallest cluster first while the Gini index of the cluster
# sizes is above the threshold. Each threshold yields one candidate.
GINI_THRESHOLDS = 0.1, 0.3, 0.5, 0.7
MARGIN = "margin"
KNOWN = "known labels"
LAYOUT = "layout"
TREE = "merge tree"
DENSITY = "density"


class Proposal(NamedTuple):
    """A partition proposed by a method.

    Attributes
    ----------
    labels : ndarray of shape (p,), int64, or None
        Cluster of each node; None if the method finds no partition with the requested
        number of clusters.
    model : Model or None, default=None
        Model that labels rows. If None, each row is labelled by a vote of its nearest
        nodes.
    """

    labels: np.ndarray | None
    model: Any = None


Propose = Callable[[], Proposal]


@dataclass(frozen=True)
class Candidate:
    """A partition of the nodes, the method that found it, and its score.

    Parameters
    ----------
    name : str
        Name of the method that found the partition.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    score : Score
        Score of the partition, computed by `judge`.
    seconds : float, default=0.0
        Run time of the method in seconds, including the computation of the score.
    broken : float or None, default=None
        Share of the known labels that the partition contradicts, see
        `KnownRows.broken`; None if no labels are known.
    model : Model or None, default=None
        Model that labels rows. If None, each row is labelled by a vote of its nearest
        nodes.
    """

    name: str
    labels: np.ndarray
    score: Score
    seconds: float = 0.0
    broken: float | None = None
    model: Any = None

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max()) + 1

    def to_dict(self, sizes: np.ndarray) -> dict[str, Any]:
        """Return the entry for the report, given the number of rows of each node."""
        shares = np.bincount(self.labels, sizes) / sizes.sum()
        return {
            "candidate": self.name,
            **self.score._asdict(),
            "shares": np.sort(shares)[::-1].tolist(),
            "broken": self.broken,
            "seconds": self.seconds,
        }


class JudgedCandidates(NamedTuple):
    """The candidates with the requested number of clusters, and the failed methods.

    Attributes
    ----------
    candidates : list of Candidate
        Candidates, in the order of the proposals.
    left_out : dict of str to str
        Maps the name of each method without a candidate to the reason.
    """

    candidates: list[Candidate]
    left_out: dict[str, str]


def graph_proposals(graph: NodeGraph, n_clusters: int, seed: int) -> dict[str, Propose]:
    """Return functions that propose partitions of a graph, by name of the method."""
    # All linkage candidates cut the same spanning tree, so it is built only once.
    tree = cache(lambda: spanning_tree(graph.lengths()))

    def communities(n_neighbors: int) -> Proposal:
        weights, loops = graph.edges(n_neighbors)
        return Proposal(communities_at(weights, loops, n_clusters, seed))

    def linkage(gini: float) -> Proposal:
        return Proposal(genie_at(tree(), graph.sizes, n_clusters, gini))

    def in_layout() -> Proposal:
        weights, _ = graph.edges(15)
        places = layout(weights, seed)
        return Proposal(kmeans_in_layout(places, graph.sizes, n_clusters, seed))

    proposals: dict[str, Propose] = {}
    for count in COMMUNITY_NEIGHBOURS:
        proposals[f"communities {count}"] = partial(communities, count)
    for gini in GINI_THRESHOLDS:
        proposals[f"linkage {gini}"] = partial(linkage, gini)
    if graph.is_unit:
        proposals[LAYOUT] = in_layout
    return proposals


def judge_candidates(
    graph: NodeGraph,
    n_clusters: int,
    proposals: Mapping[str, Propose],
    each: Callable[..., Iterable[Any]] = map,
) -> JudgedCandidates:
    """Call the functions that propose partitions, and score these partitions.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the nodes.
    n_clusters : int
        Number of clusters that each candidate must have.
    proposals : mapping of str to callable
        Functions that return a `Proposal`, by name of the method.
    each : callable, default=map
        Replacement for the built-in ``map``, possibly with several threads.

    Returns
    -------
    JudgedCandidates

    Raises
    ------
    InputError
        If no method finds ``n_clusters`` clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.candidates import graph_proposals, judge_candidates
    >>> from mmcnb.graph.neighbours import node_graph
    >>> noise = np.random.RandomState(0).normal(size=(60, 2))
    >>> rows = noise + np.repeat([0, 9], 30)[:, None]
    >>> graph = node_graph(rows, None, np.random.RandomState(0))
    >>> found = judge_candidates(graph, 2, graph_proposals(graph, 2, seed=0))
    >>> len(found.candidates), found.left_out
    (7, {})
    """
    if len(proposals) == 1:  # a single method uses all threads itself
        each = map
    # The slowest methods come last. Starting with them balances the threads.
    latest_first = list(proposals.items())[::-1]
    results = list(each(partial(_judge_proposal, graph, n_clusters), latest_first))
    candidates: list[Candidate] = []
    left_out: dict[str, str] = {}
    for name, result in zip(proposals, reversed(results), strict=True):
        if isinstance(result, Candidate):
            candidates.append(result)
        else:
            left_out[name] = result
    if not candidates:
        reasons = ", ".join(
            f"{name}: {reason.removesuffix('.')}" for name, reason in left_out.items()
        )
        raise InputError(
            f"no candidate has {n_clusters} clusters ({reasons}); give fewer clusters."
        )
    return JudgedCandidates(candidates, left_out)


def _judge_proposal(
    graph: NodeGraph, n_clusters: int, item: tuple[str, Propose]
) -> Candidate | str:
    """Return the candidate that a method proposes, or the reason why it has none."""
    name, propose = item
    started = time.perf_counter()
    try:
        labels, model = propose()
    except (InputError, IndexError, ValueError) as error:
        # The number of clusters may be too large for this method, but not for others.
        return str(error) or type(error).__name__
    if labels is None or np.unique(labels).size != n_clusters:
        return f"it does not find {n_clusters} clusters."
    score = judge(graph, labels)
    return Candidate(name, labels, score, time.perf_counter() - started, model=model)


def with_broken(graph: NodeGraph, known: KnownRows, candidate: Candidate) -> Candidate:
    """Return the candidate with its share of contradicted known labels filled in."""
    labels = candidate.labels[graph.node_of]
    return replace(candidate, broken=known.broken(labels))


def with_known(
    graph: NodeGraph, known: KnownRows, n_clusters: int, candidates: list[Candidate]
) -> list[Candidate]:
    """Set ``broken`` of all candidates, and add a candidate made from known labels.

    If labels of all ``n_clusters`` classes are known, they are propagated over the
    graph, which yields one more candidate. The share of labels that this candidate
    contradicts is estimated by twofold cross-validation: labels are propagated from one
    half of the rows with known labels, and compared with the labels of the other half.
    """
    result = [with_broken(graph, known, candidate) for candidate in candidates]
    labels = spread(graph, known, n_clusters)
    if labels is not None and np.unique(labels).size == n_clusters:
        broken = held_out(graph, known, n_clusters)
        score = judge(graph, labels)
        result.append(Candidate(KNOWN, labels, score, broken=broken))
    return result

"""Search for clusters of nodes: make candidates, pick one, and assess its trust.

Fits and updates both call `search`. To add a kind of candidate, write a function that
returns a `Proposal`, and register it in `graph_proposals` if it needs only the graph,
and otherwise in `_proposals`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from mmcnb.choice.candidates import (
    DENSITY,
    MARGIN,
    TREE,
    Candidate,
    JudgedCandidates,
    Proposal,
    Propose,
    graph_proposals,
    judge_candidates,
    with_broken,
    with_known,
)
from mmcnb.choice.judge import judge
from mmcnb.choice.number import (
    ChosenNumber,
    Request,
    is_low_dimensional,
    layer_rows,
)
from mmcnb.choice.persistence import joined_without_valley
from mmcnb.choice.pick import REPAIRED, pick
from mmcnb.choice.small import set_apart, with_small
from mmcnb.choice.structure import Structure, agreement
from mmcnb.choice.trust import (
    HIGH_AGREEMENT,
    Doubts,
    Trust,
    Without,
    doubts_about,
    mean_agreement,
    tiny_clusters,
    trust,
)
from mmcnb.columns.kinds import ColumnName, SampleColumns
from mmcnb.columns.single import single_columns
from mmcnb.errors import InputError
from mmcnb.graph.merge_tree import by_first
from mmcnb.graph.neighbours import NodeGraph

RESOLUTIONS = "resolutions"
AS_BEFORE = "as before"
# An update replaces the clusters of the earlier fit only if J rises by more than this.
# The value is large because users rely on their cluster labels.
REPLACING_GAIN = 1.0


@dataclass(frozen=True)
class Nodes:
    """The nodes of a sample, with the number of clusters found in their graph.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        Rows of the sample, with scaled columns.
    sample_weights : ndarray of shape (m,) or None
        Weights of the rows of the sample. If None, all weights are equal.
    n_samples : float
        Number of rows that all nodes together represent.
    rows_of_node : ndarray of shape (p,)
        Number of rows that each node represents.
    structure : Structure
        Neighbour graph of the nodes, its merge tree, and partitions of the nodes at
        many resolutions.
    number : ChosenNumber
        The number of clusters, and a partition with this number of clusters.
    small : ndarray of shape (p,), int64
        Number of the small cluster of each node, from 1; 0 for nodes outside small
        clusters.
    columns : SampleColumns or None, default=None
        Unscaled columns of the first rows of the sample. If None, `search` does not
        look for columns that alone determine the clusters.
    doubts : sequence of str, default=()
        Reasons to doubt the clusters, whichever candidate is picked.
    """

    sample: Any
    sample_weights: np.ndarray | None
    n_samples: float
    rows_of_node: np.ndarray
    structure: Structure
    number: ChosenNumber
    small: np.ndarray
    columns: SampleColumns | None = None
    doubts: Sequence[str] = ()

    @property
    def graph(self) -> NodeGraph:
        """Neighbour graph of the nodes."""
        return self.structure.graph


class WidestMargin(Protocol):
    """Protocol of functions that propose the partition with the widest margin."""

    def __call__(
        self, nodes: Nodes, n_clusters: int, seed: int, like: Any = None
    ) -> Proposal:
        """Propose a partition.

        If ``like`` is a model, the bandwidth of its kernel is used.
        """


class SearchWithout(Protocol):
    """Protocol of functions that search for clusters without some of the columns."""

    def __call__(
        self, names: Sequence[ColumnName], labels: np.ndarray
    ) -> Without | None:
        """Search without the named columns, and compare the clusters with ``labels``.

        Return None if the search fails.
        """


@dataclass(frozen=True)
class Choice:
    """The chosen clusters of the nodes.

    Parameters
    ----------
    best : Candidate
        The picked candidate: labels of the nodes, their score, and the model that
        labels rows. Without a model, rows are labelled by a vote of their nearest
        nodes.
    others : list of Candidate
        All other candidates.
    left_out : dict of str to str
        Maps the name of each method without a candidate to the reason.
    number : ChosenNumber
        The number of clusters, and the reason why it was chosen.
    trust : Trust
        How far the clusters can be trusted.
    """

    best: Candidate
    others: list[Candidate]
    left_out: dict[str, str]
    number: ChosenNumber
    trust: Trust

    def report(self, nodes: Nodes) -> dict[str, Any]:
        """Return the entries for the report: candidates, trust, number and layers."""
        sizes = nodes.rows_of_node
        candidates = sorted([self.best, *self.others], key=_falling_J)
        return {
            "candidates": [candidate.to_dict(sizes) for candidate in candidates],
            "trust": self.trust.to_dict(),
            "number": self.number.to_dict() if self.number.reason else None,
            "layers": layer_rows(nodes.structure, self.best.labels, sizes),
        }


def search(
    nodes: Nodes,
    request: Request,
    seed: int,
    widest_margin: WidestMargin | None = None,
    each: Callable = map,
    search_without: SearchWithout | None = None,
) -> Choice:
    """Search for clusters of the nodes.

    Parameters
    ----------
    nodes : Nodes
        The nodes, and the number of clusters to find.
    request : Request
        User options of the search, such as the minimum cluster size.
    seed : int
        Random seed of the methods that find candidates.
    widest_margin : callable or None, default=None
        Function that proposes the partition with the widest margin. It is called if
        there are at most `Request.most_margin_clusters` clusters. If None, this
        candidate is left out.
    each : callable, default=map
        Replacement for the built-in ``map``, possibly with several threads.
    search_without : callable or None, default=None
        Function that searches for clusters without some columns. It is called if one or
        two columns alone determine the clusters. If None, this search is left out.

    Returns
    -------
    Choice
    """
    if request.earlier is None:
        ranking = _ranked(nodes, request, seed, widest_margin, each)
    else:
        ranking = _earlier_or_new(nodes, request.earlier, request.keeps_earlier)
    best = ranking.best
    others = ranking.others
    number = ranking.number
    single = None
    without = None
    if nodes.columns is not None:
        n_drawn = len(nodes.columns.rows)
        labels_of_rows = best.labels[nodes.graph.node_of[:n_drawn]]
        single = single_columns(nodes.columns, labels_of_rows)
        if single is not None and search_without is not None:
            without = search_without(single.names, labels_of_rows)
    doubts = doubts_about(nodes.structure, best.labels, number)
    if ranking.draws_agree < HIGH_AGREEMENT:
        doubts = Doubts(
            [*doubts.sentences, _draws_disagree(ranking.draws_agree)],
            doubts.no_structure,
        )
    level = trust(best, others, single, doubts, without)
    of_sizes = tiny_clusters(best.labels, nodes.rows_of_node)
    for doubt in filter(None, [of_sizes, *nodes.doubts]):
        level = level.with_doubt(doubt)
    return Choice(best, others, ranking.left_out, number, level)


def _falling_J(candidate: Candidate) -> float:
    return -candidate.score.J


def _draws_disagree(index: float) -> str:
    return f"two searches for the widest margin disagree (agreement {index:.2f})"


class _Ranking(NamedTuple):
    best: Candidate
    others: list[Candidate]
    left_out: dict[str, str]
    number: ChosenNumber
    draws_agree: float = 1.0  # adjusted Rand index of two widest-margin searches


def _ranked(
    nodes: Nodes,
    request: Request,
    seed: int,
    widest_margin: WidestMargin | None,
    each: Callable,
) -> _Ranking:
    """Pick the best candidate, then make small clusters separate in all candidates."""
    candidates, left_out = _candidates(nodes, request, seed, widest_margin, each)
    tolerance = request.known.tolerance if request.known else 0.0
    repairs = request.min_cluster_size == 0
    best = pick(nodes.graph, candidates, seed, tolerance, repairs)
    draws_agree = 1.0
    if widest_margin is not None and _is_contested(best, candidates):
        again = _second_margin(nodes, request, seed, widest_margin, best)
        draws_agree = agreement(best.labels, again.labels)
        best = pick(nodes.graph, [best, again], seed, tolerance, repairs)
    picked = best.name.removesuffix(REPAIRED)
    others = [
        candidate
        for candidate in candidates
        if candidate is not best and candidate.name != picked
    ]
    number = nodes.number
    if nodes.small.any():
        best = set_apart(nodes.graph, best, nodes.small)
        others = [set_apart(nodes.graph, other, nodes.small) for other in others]
        number = with_small(number, best.n_clusters, nodes.small)
    return _Ranking(best, others, left_out, number, draws_agree)


def _is_contested(best: Candidate, candidates: list[Candidate]) -> bool:
    """Return whether the widest margin is best but other candidates disagree.

    They disagree if their mean agreement with it is low.
    """
    others = [candidate for candidate in candidates if candidate is not best]
    if best.name != MARGIN or not others:
        return False
    return mean_agreement(best, others) < HIGH_AGREEMENT


def _second_margin(
    nodes: Nodes,
    request: Request,
    seed: int,
    widest_margin: WidestMargin,
    first: Candidate,
) -> Candidate:
    """Search for the widest margin again, with another random seed.

    The other candidates disagree with the result of the first search, which may be a
    poor local optimum. The better of two results depends less on the seed. The second
    search uses the bandwidth of the first search, because trying
    all bandwidths again would double the run time of the fit.
    """
    k = first.n_clusters
    propose = partial(widest_margin, nodes, k, seed + 1, like=first.model)
    try:
        again = judge_candidates(nodes.graph, k, {MARGIN: propose}).candidates[0]
    except InputError:  # no partition with k clusters was found
        return first
    if request.known is None:
        return again
    return with_broken(nodes.graph, request.known, again)


def _candidates(
    nodes: Nodes,
    request: Request,
    seed: int,
    widest_margin: WidestMargin | None,
    each: Callable,
) -> JudgedCandidates:
    """Compute and score the candidates, without those that have too small clusters."""
    graph = nodes.graph
    k = nodes.number.n_clusters
    proposals = _proposals(nodes, request, seed, widest_margin)
    candidates, left_out = judge_candidates(graph, k, proposals, each)
    if nodes.number.by_density:
        labels = nodes.number.labels
        candidates.append(Candidate(DENSITY, labels, judge(graph, labels)))
    if request.n_clusters is None and is_low_dimensional(nodes.structure):
        candidates, cutting = _apart_by_density(nodes.structure, candidates)
        left_out |= cutting
    if request.known is not None:
        candidates = with_known(graph, request.known, k, candidates)
    least = request.least_weight(nodes.n_samples, graph)
    if least > 0:
        labels = nodes.number.labels
        candidates = [
            candidate
            for candidate in candidates
            if np.bincount(candidate.labels, graph.sizes).min() >= least
        ]
        candidates.append(Candidate(RESOLUTIONS, labels, judge(graph, labels)))
    return JudgedCandidates(candidates, left_out)


def _apart_by_density(
    structure: Structure, candidates: list[Candidate]
) -> JudgedCandidates:
    """Drop candidates with clusters between which the density does not fall.

    If this would drop all candidates, none is dropped.
    """
    kept = []
    cutting = {}
    for candidate in candidates:
        joined = joined_without_valley(
            structure.graph, structure.d, candidate.labels, least=1
        )
        if joined.max() == candidate.labels.max():
            kept.append(candidate)
        else:
            cutting[candidate.name] = "it cuts where the density does not fall."
    if not kept:
        return JudgedCandidates(candidates, {})
    return JudgedCandidates(kept, cutting)


def _proposals(
    nodes: Nodes, request: Request, seed: int, widest_margin: WidestMargin | None
) -> dict[str, Propose]:
    """Return the functions that propose candidates, by name of the method."""
    k = nodes.number.n_clusters
    if k == 1:
        whole = Proposal(np.zeros(nodes.graph.n_nodes, np.int64))
        return {"one cluster": lambda: whole}
    proposals: dict[str, Propose] = {}
    if request.uses_graph:
        proposals[TREE] = lambda: Proposal(nodes.structure.tree.labels(k))
        proposals |= graph_proposals(nodes.graph, k, seed)
    if widest_margin is not None and k <= request.most_margin_clusters:
        proposals[MARGIN] = partial(widest_margin, nodes, k, seed)
    return proposals


def _earlier_or_new(nodes: Nodes, earlier: np.ndarray, keeps_earlier: bool) -> _Ranking:
    """Keep the clusters of the earlier fit unless a new partition is clearly better.

    In the new partition, each small cluster is a separate cluster. If the new search
    finds only one cluster besides small clusters, the earlier clusters are kept.
    """
    number = nodes.number

    def candidate(name: str, labels: np.ndarray) -> Candidate:
        labels = by_first(labels)
        return Candidate(name, labels, judge(nodes.graph, labels))

    best = candidate(AS_BEFORE, earlier)
    others: list[Candidate] = []
    among_others = number.labels[nodes.small == 0]
    if not keeps_earlier and np.unique(among_others).size > 1:
        new = candidate(RESOLUTIONS, number.labels)
        new = set_apart(nodes.graph, new, nodes.small)
        # Fewer clusters have wider gaps and therefore a larger J, without being better.
        is_fewer = new.n_clusters < best.n_clusters
        is_better = new.score.J > best.score.J + REPLACING_GAIN
        stays = is_fewer or (best.n_clusters > 1 and not is_better)
        others = [new]
        if not stays:
            others = [best]
            best = new
    reason = number.reason
    if reason:
        reason = f"{best.n_clusters} clusters, {best.name}; a new search: {reason}"
    number = replace(number, n_clusters=best.n_clusters, reason=reason)
    return _Ranking(best, others, {}, number)

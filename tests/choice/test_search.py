"""The search takes nodes and a request as values, and gives the same choice to a fit and an update."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmcnb.choice.candidates import KNOWN, MARGIN, TREE, Proposal
from mmcnb.choice.known import KnownRows
from mmcnb.choice.number import Request, choose_number
from mmcnb.choice.search import AS_BEFORE, RESOLUTIONS, Nodes, search
from mmcnb.graph.merge_tree import by_first
from tests.choice.graphs import ring


def nodes_of(graph, request, small=None):
    numbered = choose_number(graph, request, graph.n_nodes)
    return Nodes(
        sample=graph.search.nodes,
        sample_weights=None,
        n_samples=graph.n_nodes,
        rows_of_node=np.ones(graph.n_nodes),
        structure=numbered.structure,
        number=numbered.number,
        small=np.zeros(graph.n_nodes, np.int64) if small is None else small,
    )


@pytest.mark.parametrize("request_", [Request(), Request(3, 3, 3), Request(None, 2, 9)])
def test_groups_far_apart_are_chosen_whatever_is_asked(request_):
    graph, truth = ring(3, 150)
    nodes = nodes_of(graph, request_)
    choice = search(nodes, request_, seed=0)
    assert adjusted_rand_score(truth, choice.best.labels) == 1
    assert (choice.number.n_clusters, choice.trust.level) == (3, "high")
    assert TREE in {choice.best.name, *(other.name for other in choice.others)}
    report = choice.report(nodes)
    scores = [candidate["J"] for candidate in report["candidates"]]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 1 + len(choice.others)


@pytest.mark.parametrize(("most", "is_candidate"), [(0, False), (3, True)])
def test_the_widest_margin_is_a_candidate_up_to_its_number_of_clusters(
    most, is_candidate
):
    graph, truth = ring(3, 150)
    request = Request(3, 3, 3, most_margin_clusters=most)
    asked = []

    def margin(nodes, n_clusters, seed):
        asked.append((n_clusters, seed))
        return Proposal(by_first(truth), "a machine")

    choice = search(nodes_of(graph, request), request, 5, margin)
    assert asked == ([(3, 5)] if is_candidate else [])
    assert (choice.best.name == MARGIN) == is_candidate
    assert choice.best.model == ("a machine" if is_candidate else None)


def test_without_candidates_of_the_graph_the_margin_is_alone():
    graph, truth = ring(2, 100)
    request = Request(2, 2, 2, uses_graph=False, most_margin_clusters=np.inf)
    choice = search(
        nodes_of(graph, request), request, 0, lambda *_: Proposal(truth, "a machine")
    )
    assert (choice.best.name, choice.others) == (MARGIN, [])


def test_earlier_clusters_stay_unless_others_are_clearly_better():
    graph, truth = ring(4, 200)
    request = Request()
    nodes = nodes_of(graph, request)
    right = by_first(truth)
    good = search(nodes, replace(request, earlier=right), 0)
    assert (good.best.name, [one.name for one in good.others]) == (
        AS_BEFORE,
        [RESOLUTIONS],
    )
    assert good.number.reason.startswith("4 clusters, as before; a search: ")
    wrong = np.arange(200) % 4
    bad = search(nodes, replace(request, earlier=wrong), 0)
    assert (bad.best.name, [one.name for one in bad.others]) == (
        RESOLUTIONS,
        [AS_BEFORE],
    )
    kept = search(nodes, replace(request, earlier=wrong, keeps_earlier=True), 0)
    np.testing.assert_array_equal(kept.best.labels, by_first(wrong))
    assert kept.others == []


def test_small_clusters_are_set_apart_in_all_candidates():
    graph, truth = ring(3, 150)
    small = np.zeros(150, np.int64)
    small[np.flatnonzero(truth == 0)[:10]] = 1
    request = Request()
    choice = search(nodes_of(graph, request, small), request, 0)
    for candidate in (choice.best, *choice.others):
        inside = candidate.labels[small == 1]
        assert inside.min() == inside.max()
        assert not np.isin(inside[0], candidate.labels[small == 0])
    assert choice.number.n_clusters == 4
    assert "1 of them small" in choice.number.reason


def test_without_known_rows_no_label_is_broken_and_no_candidate_comes_from_them():
    graph, truth = ring(3, 150)
    request = Request()
    nodes = nodes_of(graph, request)
    free = search(nodes, request, 0)
    assert {one.broken for one in (free.best, *free.others)} == {None}
    known = KnownRows(np.arange(30), truth[graph.node_of][:30])
    told = search(nodes, replace(request, known=known), 0)
    names = [{one.name for one in (c.best, *c.others)} for c in (free, told)]
    assert KNOWN not in names[0]
    assert KNOWN in names[1]


def test_a_least_size_leaves_out_candidates_with_smaller_clusters():
    graph, _ = ring(3, 150)
    request = Request(min_cluster_size=0.3)
    choice = search(nodes_of(graph, request), request, 0)
    candidates = [choice.best, *choice.others]
    assert RESOLUTIONS in {candidate.name for candidate in candidates}
    for candidate in candidates:
        assert np.bincount(candidate.labels).min() >= 0.3 * 150
    asked = replace(request, min_cluster_size=45)
    assert asked.least_weight(150, graph) == request.least_weight(150, graph)
    alone = Request(min_cluster_size=60)  # of three groups of 50 rows
    assert search(nodes_of(graph, alone), alone, 0).number.n_clusters == 1

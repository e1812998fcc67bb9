"""The search takes nodes and a request as values, and gives the same choice to a fit and an update."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmcnb.choice.candidates import KNOWN, MARGIN, TREE, Proposal
from mmcnb.choice.known import KnownRows
from mmcnb.choice.number import Request, choose_number
from mmcnb.choice.search import AS_BEFORE, RESOLUTIONS, Nodes, search
from mmcnb.errors import InputError
from mmcnb.graph.merge_tree import by_first
from tests.choice.graphs import graph_of, ring


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


def rectangle(n=240):
    """A graph of groups at four corners, and its two partitions along an axis.

    The gap along the first axis is a little larger. Communities have one group, or
    three.
    """
    corner = np.arange(n) % 4
    centres = np.array([[0.0, 0.0], [0.0, 5.0], [5.3, 0.0], [5.3, 5.0]])
    noise = np.random.default_rng(1).standard_normal((n, 2))
    graph = graph_of(centres[corner] + noise)
    corner = graph.of_nodes(corner)
    return graph, by_first(corner // 2), by_first(corner % 2)


class Machines:
    """Propose one partition after another, and remember what was asked."""

    def __init__(self, *partitions):
        self.partitions = partitions
        self.asked = []

    def __call__(self, nodes, n_clusters, seed, like=None):
        self.asked.append((n_clusters, seed, like))
        number = len(self.asked)
        labels = self.partitions[number - 1]
        if labels is None:
            raise InputError("no rows are left.")
        return Proposal(labels, f"machine {number}")


ASKED_TWICE = [(2, 5, None), (2, 6, "machine 1")]
TWO_CLUSTERS = Request(2, 2, 2, most_margin_clusters=2)


def choice_of(graph, machines, request=TWO_CLUSTERS):
    return search(nodes_of(graph, request), request, 5, machines)


def test_a_widest_margin_that_others_contradict_is_searched_again():
    graph, right, wrong = rectangle()
    machines = Machines(wrong, right)
    choice = choice_of(graph, machines)
    assert machines.asked == ASKED_TWICE
    # Of two searches the larger J counts.
    assert (choice.best.name, choice.best.model) == (MARGIN, "machine 2")
    np.testing.assert_array_equal(choice.best.labels, right)
    assert MARGIN not in {other.name for other in choice.others}


def test_the_first_of_two_equal_margins_counts():
    graph, _, wrong = rectangle()
    machines = Machines(wrong, 1 - wrong)
    choice = choice_of(graph, machines)
    assert machines.asked == ASKED_TWICE
    assert choice.best.model == "machine 1"
    assert "two searches" not in choice.trust.reason


def test_trust_is_not_high_if_two_searches_disagree():
    graph, right, wrong = rectangle()
    index = adjusted_rand_score(right, wrong)
    choice = choice_of(graph, Machines(wrong, right))
    assert choice.trust.level != "high"
    sentence = f"two searches for the widest margin disagree (agreement {index:.2f})"
    assert sentence in choice.trust.reason


def test_a_second_search_that_fails_leaves_the_first():
    graph, _, wrong = rectangle()
    machines = Machines(wrong, None)
    choice = choice_of(graph, machines)
    assert machines.asked == ASKED_TWICE
    assert choice.best.model == "machine 1"


def test_known_labels_count_in_a_second_search():
    graph, right, wrong = rectangle()
    known = KnownRows(np.arange(40), wrong[graph.node_of][:40])
    machines = Machines(wrong, right)
    choice = choice_of(graph, machines, replace(TWO_CLUSTERS, known=known))
    assert choice.best.name != MARGIN or choice.best.model == "machine 1"
    np.testing.assert_array_equal(by_first(choice.best.labels), wrong)


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_a_widest_margin_is_searched_once_if_others_agree_or_win(is_confirmed):
    graph, truth = ring(2, 100)
    machines = Machines(truth if is_confirmed else np.arange(100) % 2)
    choice = choice_of(graph, machines)
    assert machines.asked == ASKED_TWICE[:1]
    assert (choice.best.name == MARGIN) == is_confirmed


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
    assert good.number.reason.startswith("4 clusters, as before; a new search: ")
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

"""Candidates have as many clusters as are asked for, in the order of their proposals; others give a reason."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmcnb.choice.candidates import (
    KNOWN,
    Proposal,
    graph_proposals,
    judge_candidates,
    with_known,
)
from mmcnb.choice.judge import judge
from mmcnb.choice.known import KnownRows
from mmcnb.errors import InputError
from mmcnb.graph.communities import communities_at
from mmcnb.graph.genie import genie_at, spanning_tree
from mmcnb.graph.layout import kmeans_in_layout, layout
from tests.choice.graphs import blobs, candidate, graph_of, ring


def directions():
    X = blobs(150, 4, 3.0, d=3)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def expected_labels(graph, k, seed):
    """Labels of all candidates by the routines that their names tell of."""
    labels = {
        f"communities {n}": communities_at(*graph.edges(n), k, seed)
        for n in (10, 15, 25)
    }
    tree = spanning_tree(graph.lengths())
    for gini in (0.1, 0.3, 0.5, 0.7):
        labels[f"linkage {gini}"] = genie_at(tree, graph.sizes, k, gini)
    if graph.is_unit:
        labels["layout"] = kmeans_in_layout(
            layout(graph.edges(15)[0], seed), graph.sizes, k, seed
        )
    return labels


@pytest.mark.parametrize(
    ("rows", "k"), [(blobs(150, 4, 3.0, d=3), 2), (directions(), 4)]
)
def test_candidates_are_what_their_names_say_and_are_judged(rows, k):
    graph = graph_of(rows)
    found, left_out = judge_candidates(graph, k, graph_proposals(graph, k, 5))
    expected = expected_labels(graph, k, 5)
    assert [one.name for one in found] == [
        name for name in expected if name not in left_out
    ]
    assert len(found) > 4
    for one in found:
        np.testing.assert_array_equal(one.labels, expected[one.name])
        assert one.score == judge(graph, one.labels)
        assert one.seconds > 0


def test_candidates_that_fail_or_find_another_number_are_left_out_with_a_reason():
    def refuse():
        raise InputError("this needs more rows.")

    labels = np.arange(30) % 3
    proposals = {
        "refuses": refuse,
        "none": lambda: Proposal(None),
        "good": lambda: Proposal(labels),
        "two": lambda: Proposal(labels % 2),
        "four": lambda: Proposal(np.arange(30) % 4),
        "with a model": lambda: Proposal(labels, "a machine"),
        "two with a model": lambda: Proposal(labels % 2, "a machine"),
    }
    found, left_out = judge_candidates(graph_of(blobs(30)), 3, proposals)
    assert [(one.name, one.model) for one in found] == [
        ("good", None),
        ("with a model", "a machine"),
    ]
    assert left_out.pop("refuses") == "this needs more rows."
    assert list(left_out) == ["none", "two", "four", "two with a model"]
    assert set(left_out.values()) == {"it does not find 3 clusters."}


def test_no_candidate_at_all_is_an_error_with_all_reasons():
    graph = graph_of(blobs(9))
    with pytest.raises(
        InputError, match=r"^no candidate has 10 clusters \(.*\); give fewer clu"
    ) as error:
        judge_candidates(graph, 10, graph_proposals(graph, 10, 0))
    assert str(error.value).count(": it does not find 10 clusters") == 7


def test_threads_give_the_same_candidates_to_the_bit():
    facts = []
    with ThreadPoolExecutor(4) as pool:
        for each in (map, pool.map):
            # whose edges are found while the candidates are
            graph = graph_of(directions())
            found, left_out = judge_candidates(
                graph, 5, graph_proposals(graph, 5, 3), each
            )
            facts.append(
                (
                    [(one.name, one.labels.tobytes(), one.score) for one in found],
                    left_out,
                )
            )
    assert facts[0] == facts[1]


def test_a_row_of_the_report_has_the_shares_of_the_clusters():
    one = candidate(1.5, [0, 0, 1, 2], "linkage 0.1", seconds=0.5, broken=0.25)
    assert one.to_dict(np.array([1.0, 0.5, 0.5, 1.0])) == {
        "candidate": "linkage 0.1",
        "J": 1.5,
        "information": 0.0,
        "gap": 1.5,
        "shares": pytest.approx([0.5, 1 / 3, 1 / 6]),
        "broken": 0.25,
        "seconds": 0.5,
    }


# -- what is known ---------------------------------------------------------------------


def test_known_labels_of_all_clusters_give_one_more_candidate():
    graph, truth = ring(3)
    rows = truth[graph.node_of]
    found = [
        candidate(1.0, truth, "right"),
        candidate(2.0, np.arange(120) % 3, "wrong"),
    ]
    known = KnownRows(np.arange(30), rows[:30])
    right, wrong, of_known = with_known(graph, known, 3, found)
    assert (right.broken, of_known.name, of_known.broken) == (0.0, KNOWN, 0.0)
    assert wrong.broken == known.broken(found[1].labels[graph.node_of]) > 0.3
    assert of_known.score == judge(graph, of_known.labels)
    assert adjusted_rand_score(truth, of_known.labels) == 1


def test_known_labels_of_some_clusters_give_no_candidate():
    graph, truth = ring(3)
    rows = np.flatnonzero(truth[graph.node_of] < 2)[:10]
    known = KnownRows(rows, truth[graph.node_of][rows])
    assert [
        one.broken for one in with_known(graph, known, 3, [candidate(1.0, truth)])
    ] == [0.0]

"""Candidates have as many clusters as are asked for, in the order of their makers; others give a reason."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmcnb.choice import candidates as module
from mmcnb.choice.candidates import KNOWN, candidates, makers, with_known
from mmcnb.choice.judge import judge
from mmcnb.choice.known import KnownRows
from mmcnb.errors import InputError
from mmcnb.graph.communities import communities_at
from mmcnb.graph.genie import genie_at, spanning_tree
from mmcnb.graph.layout import kmeans_in_layout, layout
from tests.choice.graphs import blobs, candidate, graph_of, ring

OF_GRAPH = [*(f"communities {n}" for n in (10, 15, 25)), *(f"linkage {t}" for t in (0.1, 0.3, 0.5, 0.7))]


def facts(found):
    return [(one.name, one.labels.tobytes(), one.score, one.model, one.broken) for one in found]


def known_of(rows, labels):
    return KnownRows(np.array(rows), np.array(labels))


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("is_unit", [False, True])
def test_all_candidates_of_a_graph_have_so_many_clusters_and_are_judged(k, is_unit):
    X = blobs(150, 4, 3.0, d=3)
    graph = graph_of(X / np.linalg.norm(X, axis=1, keepdims=True) if is_unit else X)
    made = makers(graph, k, 0)
    found, left_out = candidates(graph, k, made)
    assert [name for name, _ in made] == OF_GRAPH + ["layout"] * is_unit
    assert [one.name for one in found] == [name for name, _ in made if name not in left_out]
    for one in found:
        assert set(one.labels) == set(range(k))
        assert one.score == judge(graph, one.labels)
        assert one.seconds > 0


def test_candidates_are_what_their_names_say():
    X = blobs(150, 4, 3.0, d=3)
    graph, k, seed = graph_of(X / np.linalg.norm(X, axis=1, keepdims=True)), 4, 5
    for name, make in makers(graph, k, seed):
        kind, _, setting = name.partition(" ")
        if kind == "communities":
            expected = communities_at(*graph.edges(int(setting)), k, seed)
        elif kind == "linkage":
            expected = genie_at(spanning_tree(graph.lengths()), graph.sizes, k, float(setting))
        else:
            expected = kmeans_in_layout(layout(graph.edges(15)[0], seed), graph.sizes, k, seed)
        np.testing.assert_array_equal(make(), expected)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_groups_far_apart_are_found_by_most_candidates(k):
    graph, truth = ring(k)
    found, _ = candidates(graph, k, makers(graph, k, 0))
    assert np.mean([adjusted_rand_score(truth, one.labels) == 1 for one in found]) > 0.5


def test_candidates_that_fail_or_find_too_few_are_left_out_with_a_reason():
    def refuse():
        raise InputError("this needs more rows.")

    graph = graph_of(blobs(30))
    labels = np.arange(30) % 3
    made = [
        ("refuses", refuse),
        ("none", lambda: None),
        ("good", lambda: labels),
        ("two", lambda: labels % 2),
        ("four", lambda: np.arange(30) % 4),
        ("with a model", lambda: (labels, "a machine")),
        ("two with a model", lambda: (labels % 2, "a machine")),
    ]
    found, left_out = candidates(graph, 3, made)
    assert [(one.name, one.model) for one in found] == [("good", None), ("with a model", "a machine")]
    too_few = "it finds no 3 clusters."
    assert left_out == {
        "refuses": "this needs more rows.",
        **dict.fromkeys(("none", "two", "four", "two with a model"), too_few),
    }


def test_no_candidate_at_all_is_told_with_all_reasons():
    graph = graph_of(blobs(9))
    with pytest.raises(
        InputError, match=r"^no candidate has 10 clusters \(.*\); give fewer clusters\.$"
    ) as error:
        candidates(graph, 10, makers(graph, 10, 0))
    for name in OF_GRAPH:
        assert f"{name}: it finds no 10 clusters" in str(error.value)


def test_other_errors_are_not_hidden():
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        candidates(graph_of(blobs(9)), 2, [("fails", fail), ("good", lambda: np.arange(9) % 2)])


def test_the_order_in_which_threads_end_does_not_matter():
    graph = graph_of(blobs(60))
    made = [(str(i), lambda i=i: time.sleep(0.02 * (4 - i)) or np.arange(60) % (2 + i % 2)) for i in range(5)]
    alone = candidates(graph, 2, made)
    with ThreadPoolExecutor(5) as pool:
        shared = candidates(graph, 2, made, pool.map)
    assert [one.name for one in alone[0]] == ["0", "2", "4"]
    assert facts(alone[0]) == facts(shared[0])
    assert list(alone[1].items()) == list(shared[1].items())


def test_threads_give_the_same_candidates_to_the_bit():
    X = blobs(300, 5, 3.0, d=4)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    found = []
    with ThreadPoolExecutor(4) as pool:
        for each in (map, pool.map):
            graph = graph_of(X)  # whose edges are found while the candidates are
            found.append(facts(candidates(graph, 5, makers(graph, 5, 3), each)[0]))
    assert found[0] == found[1]


def test_a_row_of_the_report_has_the_shares_of_the_clusters():
    one = candidate(1.5, [0, 0, 1, 2], "linkage 0.1", seconds=0.5, broken=0.25)
    row = one.to_dict(np.array([1.0, 0.5, 0.5, 1.0]))
    assert row == {
        **{"candidate": "linkage 0.1", "J": 1.5, "information": 0.0, "gap": 1.5},
        **{"shares": pytest.approx([0.5, 1 / 3, 1 / 6]), "broken": 0.25, "seconds": 0.5},
    }


# -- what is known -----------------------------------------------------------------------------


def test_nothing_known_changes_nothing():
    found = [candidate(1.0, [0, 1])]
    assert with_known(None, None, 2, found) is found


def test_known_labels_of_all_clusters_give_one_more_candidate():
    graph, truth = ring(3)
    rows = truth[graph.node_of]
    found = [candidate(1.0, truth, "right"), candidate(2.0, np.arange(120) % 3, "wrong")]
    known = known_of(np.arange(30), rows[:30])
    right, wrong, of_known = with_known(graph, known, 3, found)
    assert (right.broken, of_known.name, of_known.broken) == (0.0, KNOWN, 0.0)
    assert wrong.broken == known.broken(found[1].labels[graph.node_of]) > 0.3
    assert of_known.score == judge(graph, of_known.labels)
    assert adjusted_rand_score(truth, of_known.labels) == 1


def test_known_labels_of_all_clusters_start_a_candidate():
    graph, truth = ring(3)
    found = [candidate(2.0, np.arange(120) % 3, "wrong")]
    known = known_of(np.arange(30), truth[graph.node_of][:30])
    assert [one.name for one in with_known(graph, known, 3, found)] == ["wrong", KNOWN]


def test_known_labels_that_spread_to_fewer_clusters_give_no_candidate(monkeypatch):
    graph, truth = ring(3)
    known = known_of(np.arange(30), truth[graph.node_of][:30])
    monkeypatch.setattr(module, "spread", lambda *given: np.minimum(truth, 1))
    assert len(with_known(graph, known, 3, [candidate(1.0, truth)])) == 1


def test_known_labels_of_some_clusters_give_no_candidate():
    graph, truth = ring(3)
    rows = np.flatnonzero(truth[graph.node_of] < 2)[:10]
    found = with_known(graph, known_of(rows, truth[graph.node_of][rows]), 3, [candidate(1.0, truth)])
    assert [one.broken for one in found] == [0.0]

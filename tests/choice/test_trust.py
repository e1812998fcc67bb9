"""Trust is high where candidates agree, and low where they disagree about clusters that hardly part."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.choice.number import GATE, ChosenNumber
from mmcnb.choice.structure import find_structure
from mmcnb.choice.trust import (
    AGREEMENT_WEIGHT,
    HIGH_AGREEMENT,
    LOW_SUM,
    Doubts,
    doubts_about,
    tiny_clusters,
    trust,
)
from tests.choice.graphs import candidate, graph_of, ring

HALVES = np.repeat([0, 1], 50)
STRIPES = np.tile([0, 1], 50)


def half_right(share):
    """Halves, of which a share has the labels of stripes."""
    return np.where(np.arange(100) % 100 < 100 * share, STRIPES, HALVES)


@pytest.mark.parametrize("J", [-5.0, 9.0])
def test_trust_is_high_where_all_candidates_agree(J):
    found = trust(
        candidate(J, HALVES), [candidate(J - 1, HALVES), candidate(J - 2, 1 - HALVES)]
    )
    assert found.level == "high"
    assert found.agreement == pytest.approx(1)
    agreement = "the agreement with other candidates is 1.00"
    assert found.reason == f"{agreement}, and J is {J:.2f}."


@pytest.mark.parametrize("labels", [STRIPES, half_right(0.5), None])
def test_without_agreement_J_decides_between_low_and_medium(labels):
    """A candidate alone is never trusted much."""
    others = [] if labels is None else [candidate(0.0, labels)]
    agreement = 0.0 if labels is None else adjusted_rand_score(HALVES, labels)
    bound = LOW_SUM - AGREEMENT_WEIGHT * agreement
    for J, level in ((bound - 0.01, "low"), (bound + 0.01, "medium")):
        found = trust(candidate(J, HALVES), others)
        assert (found.level, found.agreement) == (level, pytest.approx(agreement))
        assert ("try other columns" in found.reason) == (level == "low")


def test_the_level_is_high_from_its_bound_on():
    levels = set()
    for share in np.arange(0, 1, 0.02):
        found = trust(candidate(9.0, HALVES), [candidate(0.0, half_right(share))])
        assert (found.level == "high") == (found.agreement >= HIGH_AGREEMENT)
        levels.add(found.level)
    assert levels == {"high", "medium"}


def test_an_agreement_counts_as_much_as_the_J_of_the_other():
    other = [candidate(5.0 - np.log(3), STRIPES), candidate(5.0, HALVES)]
    strange = adjusted_rand_score(HALVES, STRIPES)
    found = trust(candidate(5.0, HALVES), other)
    assert found.agreement == pytest.approx((3 + strange) / 4)
    # A J may be far above where rows are known.
    for J, expected in ((-95.0, 1.0), (1e4, strange)):
        found = trust(candidate(5.0, HALVES), [candidate(J, STRIPES), other[1]])
        assert found.agreement == pytest.approx(expected)


def test_one_cluster_is_no_structure():
    one = candidate(9.0, np.zeros(10, int))
    for others in ([], [one]):
        found = trust(one, others, doubts=Doubts(["one cluster: none differs"]))
        reason = "one cluster: none differs."
        assert found.to_dict() == {
            "level": "low",
            "reason": reason,
            "agreement": 0.0,
            "columns": [],
        }
    assert trust(one, []).reason == "there is one cluster."


# -- doubts ----------------------------------------------------------------------------

INSIDE = Doubts(["splitting each cluster again suggests 2 more"])


@pytest.mark.parametrize(
    ("doubt", "labels", "J", "level"),
    [
        (Doubts(["no structure (evidence)"], no_structure=True), HALVES, 9.0, "low"),
        (INSIDE, HALVES, 9.0, "medium"),
        (INSIDE, STRIPES, 9.0, "medium"),
        (INSIDE, STRIPES, -5.0, "low"),
    ],
)
def test_a_doubt_keeps_the_trust_from_being_high(doubt, labels, J, level):
    found = trust(candidate(J, HALVES), [candidate(J - 9, labels)], doubts=doubt)
    assert found.level == level
    assert "the agreement with other candidates is " in found.reason
    assert found.reason.startswith(doubt.sentences[0]) == (J > 0)
    assert found.reason.count(". ") == 0


@pytest.mark.parametrize(
    ("sizes", "n_tiny"),
    [
        ([500, 480, 5, 5, 10], 2),  # not the most of five
        ([500, 480, 5, 5, 5, 5], 4),
        ([1] * 200, 0),  # small, but as large as the others
        ([50, 45, 3, 2], 0),
    ],
)
def test_a_partition_mostly_of_tiny_clusters_raises_a_doubt(sizes, n_tiny):
    labels = np.repeat(np.arange(len(sizes)), 2)
    doubt = tiny_clusters(labels, np.repeat(sizes, 2) / 2)
    expected = f"{n_tiny} of {len(sizes)} clusters have fewer than 1 % of the rows each"
    assert doubt == (expected if n_tiny > len(sizes) / 2 else "")


def test_groups_far_apart_raise_no_doubt():
    graph, truth = ring(4, 200)
    assert (
        doubts_about(find_structure(graph), truth, ChosenNumber(2, truth)).sentences
        == []
    )
    one = np.zeros(200, int)
    assert doubts_about(find_structure(graph), one, ChosenNumber(1, one)).sentences == [
        "one cluster contains all rows, as requested"
    ]
    assert doubts_about(
        find_structure(graph), one, ChosenNumber(1, one, "one cluster: why.")
    ).sentences == ["one cluster: why"]
    assert doubts_about(
        find_structure(graph), truth, ChosenNumber(2, truth, agreement=0.5)
    ).sentences == ["the expected agreement with the true partition is 0.50"]


def test_a_cluster_of_two_groups_raises_a_doubt_of_what_is_inside():
    graph, truth = ring(4, 200)
    for joined, count in (([0, 1, 2, 0], 1), ([0, 1, 1, 0], 2), ([0, 1, 0, 0], 2)):
        labels = np.array(joined)[truth]
        assert doubts_about(
            find_structure(graph), labels, ChosenNumber(2, labels)
        ).sentences == [f"splitting each cluster again suggests {count} more"]


def test_halves_without_a_gap_raise_a_doubt_of_their_structure():
    X = np.random.default_rng(0).standard_normal((400, 3))
    graph = graph_of(X)
    labels = graph.of_nodes((X[:, 0] > 0).astype(int))
    doubts = doubts_about(find_structure(graph), labels, ChosenNumber(2, labels))
    assert doubts.no_structure
    first = doubts.sentences[0]
    assert first.startswith("the clusters are no clearer than in rows without ")
    assert first.endswith(f"; more than {GATE} is needed)")


@pytest.mark.parametrize(
    ("d", "is_line"), [(0.99, True), (1.09, True), (1.11, False), (3.0, False)]
)
def test_strong_evidence_is_never_called_weak_even_along_a_line(d, is_line):
    graph, truth = ring(4, 400)
    seen = find_structure(graph)
    assert seen.scored(truth).z > 2 * GATE
    found = doubts_about(replace(seen, d=d), truth, ChosenNumber(4, truth, "asked."))
    assert any("nearly on a line" in one for one in found.sentences) == is_line
    assert not any("weak" in one for one in found.sentences)


def test_a_requested_number_is_doubted_only_if_fewer_clusters_are_much_clearer():
    X, _ = make_blobs([150, 150, 150], 3, cluster_std=0.5, random_state=0)
    for n_clusters, level in ((3, "high"), (5, "medium")):
        model = mmcnb.MaximumMarginClustering(n_clusters, random_state=0).fit(X)
        found = model.report_["trust"]
        clause = f"3 clusters are clearer than the requested {n_clusters} (J "
        assert found["level"] == level
        assert (clause in found["reason"]) == (n_clusters > 3)
    # Super-groups whose parts are clear do not make the parts doubtful.
    parts = np.arange(9)
    centres = np.column_stack([500 * (parts // 3), 10 * (parts % 3)])
    X, _ = make_blobs([40] * 9, centers=centres, random_state=0)
    model = mmcnb.MaximumMarginClustering(9, random_state=0).fit(X)
    assert "clearer" not in model.report_["trust"]["reason"]

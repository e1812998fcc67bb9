"""Trust is high where candidates agree, and low where they disagree about clusters that hardly part."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmcnb.choice.trust import AGREEMENT_WEIGHT, HIGH_AGREEMENT, LOW_SUM, trust
from tests.choice.graphs import candidate

HALVES, STRIPES = np.repeat([0, 1], 50), np.tile([0, 1], 50)


def half_right(share):
    """Halves, of which a share has the labels of stripes."""
    return np.where(np.arange(100) % 100 < 100 * share, STRIPES, HALVES)


@pytest.mark.parametrize("J", [-5.0, 1.0, 9.0])
def test_trust_is_high_where_all_candidates_agree(J):
    found = trust(candidate(J, HALVES), [candidate(J - 1, HALVES), candidate(J - 2, 1 - HALVES)])
    assert found["level"] == "high"
    assert found["agreement"] == pytest.approx(1)
    assert found["reason"] == f"other candidates agree by 1.00, and J is {J:.2f}."


@pytest.mark.parametrize("agrees", [0.0, 0.5])
def test_without_agreement_J_decides_between_low_and_medium(agrees):
    other = candidate(0.0, half_right(1 - agrees))
    agreement = adjusted_rand_score(HALVES, other.labels)
    bound = LOW_SUM - AGREEMENT_WEIGHT * agreement
    for J, level in ((bound - 0.01, "low"), (bound + 0.01, "medium")):
        found = trust(candidate(J, HALVES), [other])
        assert (found["level"], found["agreement"]) == (level, pytest.approx(agreement))
        assert ("try other columns" in found["reason"]) == (level == "low")
        assert found["reason"].count(". ") == 0


def test_the_level_is_high_from_its_bound_on(monkeypatch):
    others = [candidate(0.0, half_right(share)) for share in np.arange(0, 1, 0.02)]
    levels = []
    for other in others:
        found = trust(candidate(9.0, HALVES), [other])
        assert (found["level"] == "high") == (found["agreement"] >= HIGH_AGREEMENT)
        levels.append(found["level"])
    assert set(levels) == {"high", "medium"}
    monkeypatch.setattr("mmcnb.choice.trust.HIGH_AGREEMENT", found["agreement"])
    assert found["level"] == "medium"
    assert trust(candidate(9.0, HALVES), [other])["level"] == "high"


def test_an_agreement_counts_as_much_as_the_J_of_the_other():
    other = [candidate(5.0 - np.log(3), STRIPES), candidate(5.0, HALVES)]
    strange = adjusted_rand_score(HALVES, STRIPES)
    found = trust(candidate(5.0, HALVES), other)
    assert found["agreement"] == pytest.approx((3 + strange) / 4)
    assert trust(candidate(5.0, HALVES), [candidate(-95.0, STRIPES), other[1]])["level"] == "high"
    above = trust(
        candidate(5.0, HALVES), [candidate(1e4, STRIPES), other[1]]
    )  # as it may where rows are known
    assert above["agreement"] == pytest.approx(strange)


def test_names_of_clusters_do_not_matter():
    labels = np.random.default_rng(0).integers(0, 3, 100)
    one, other = (
        trust(candidate(2.0, HALVES), [candidate(1.0, names)]) for names in (labels, (labels + 1) % 3)
    )
    assert one == other


@pytest.mark.parametrize(("J", "level"), [(LOW_SUM - 0.01, "low"), (LOW_SUM + 0.01, "medium")])
def test_a_candidate_alone_is_never_trusted_much(J, level):
    assert trust(candidate(J, HALVES), [])["level"] == level
    assert trust(candidate(J, HALVES), [])["agreement"] == 0.0


def test_one_cluster_is_as_asked():
    found = trust(candidate(9.0, np.zeros(10, int)), [])
    reason = "one cluster contains all rows, as asked."
    assert found == {"level": "low", "reason": reason, "agreement": 0.0, "columns": []}

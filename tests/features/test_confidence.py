"""Confidence: margins, matching and kept shares equal plain counts, and shares rise with the margin."""

from itertools import combinations, permutations

import numpy as np
import pytest

from mmcnb.errors import InputError
from mmcnb.features.confidence import (
    MOST_KNOTS,
    Confidence,
    ConfidenceRule,
    calibrated,
    kept_shares,
    margins_of,
    matched,
)
from mmcnb.features.rules import Scores


def test_the_margin_is_the_largest_score_less_the_second():
    scores = np.random.default_rng(0).normal(size=(50, 4))
    plain = [sorted(row)[-1] - sorted(row)[-2] for row in scores.tolist()]
    np.testing.assert_allclose(margins_of(scores), plain, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(margins_of(scores[:, 0]), np.abs(scores[:, 0]))
    np.testing.assert_array_equal(margins_of(scores[:, :1]), np.zeros(50))


@pytest.mark.parametrize("seed", range(5))
def test_matching_keeps_as_many_rows_as_any_order_of_clusters(seed):
    one, other = np.random.default_rng(seed).integers(0, 4, (2, 40))
    best = max((np.array(order)[one] == other).sum() for order in permutations(range(4)))
    assert (matched(one, other, 4) == other).sum() == best


def test_kept_shares_are_those_of_all_pairs():
    labellings = list(np.random.default_rng(1).integers(0, 3, (4, 30)))
    plain = np.zeros(30)
    for one, other in combinations(labellings, 2):
        plain += matched(one, other, 3) == other
    np.testing.assert_allclose(kept_shares(labellings, 3), plain / 6)


@pytest.mark.parametrize("n", [1, 3, 19, 500])
def test_shares_rise_with_the_margin_and_have_the_mean_of_what_was_kept(n):
    rng = np.random.default_rng(2)
    margins = rng.exponential(size=n)
    kept = (rng.random(n) < 1 - np.exp(-margins)).astype(float)
    found = calibrated(margins, kept)
    assert found.margins.size == min(n, MOST_KNOTS)
    assert (np.diff(found.margins) >= 0).all()
    assert (np.diff(found.shares) >= 0).all()
    assert ((found.shares >= 0) & (found.shares <= 1)).all()
    if n == 500:  # groups of one size: their mean is that of the rows
        assert found.shares.mean() == pytest.approx(kept.mean())
    again = Confidence.from_dict(found.to_dict())
    np.testing.assert_array_equal(again.shares_of(margins), found.shares_of(margins))


@pytest.mark.parametrize(
    "knots",
    [
        {},
        {"margins": [0.0, 1.0], "shares": [0.5]},
        {"margins": [1.0, 0.0], "shares": [0.5, 0.6]},
        {"margins": [0.0, 1.0], "shares": [0.5, 1.5]},
        {"margins": [0.0, 1.0], "shares": [0.5, float("nan")]},
        {"margins": [], "shares": []},
        {"margins": "wide", "shares": [0.5]},
    ],
)
def test_knots_that_no_fit_writes_are_refused(knots):
    with pytest.raises(InputError, match="no confidence that a fit writes; fit again"):
        Confidence.from_dict(knots)


def test_the_rule_gives_the_confidence_of_each_row_of_a_block():
    scores = Scores(np.eye(2), np.zeros(2))
    rule = ConfidenceRule(scores, Confidence(np.array([0.0, 2.0]), np.array([0.5, 1.0])))
    np.testing.assert_allclose(rule.decide(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 9.0]])), [0.5, 0.75, 1.0])

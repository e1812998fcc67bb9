"""A set is in one half with all that is made of its rows."""

import pytest

import data_loaders
from benchmarks.halves import CONFIRMATION, TUNING, half_of, whole_of
from benchmarks.studies._choice_problems import problems
from mmcnb.datasets import SHAPES

MADE_OF = {
    "adult": ["a1a", "a9a", "a9a.t"],
    "mnist": ["mnist-train", "mnist-1v7"],
    "usps": ["usps-test", "usps-extended", "usps-extended-test", "usps-train-0v1"],
    "satellite": ["satellite-1v2"],
    "letter": ["letter-0v25"],
    "agnews": ["agnews-embedded"],
    "moons": ["two-moons", "padded-moons"],
}


@pytest.mark.parametrize("whole", MADE_OF)
def test_a_set_is_in_one_half(whole):
    assert {whole_of(name) for name in MADE_OF[whole]} == {whole}
    assert {half_of(name) for name in MADE_OF[whole]} == {half_of(whole)}


def test_each_half_has_sets_and_shapes():
    for names in (data_loaders.names(), SHAPES):
        assert {half_of(name) for name in names} == {TUNING, CONFIRMATION}


def test_all_problems_of_a_set_are_in_one_half():
    halves = {}
    for one in problems():
        halves.setdefault(one.whole, set()).add(one.half)
    assert {len(found) for found in halves.values()} == {1}

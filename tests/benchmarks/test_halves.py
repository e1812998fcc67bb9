"""Every data set and every family of shapes has one half, and related ones have the same."""

import re
from collections import Counter

import pytest

import data_loaders
from benchmarks.halves import CONFIRMATION, TUNING, half_of, halves
from mmcnb.errors import InputError
from mmcnb.synthetic import SHAPES

MADE = ("rings", "moons", "blobs", "arcs")  # by `mmcnb.synthetic.make_block`


def test_every_set_and_every_family_stands_once():
    frame = halves()
    families = {shape.family for shape in SHAPES.values()}
    assert not frame["set"].duplicated().any()
    assert set(frame["set"]) == {*data_loaders.names(), *MADE, *families}
    assert set(frame.loc[frame["kind"] == "shapes", "set"]) == families
    assert set(frame.loc[frame["kind"] == "made", "set"]) == set(MADE) - families
    assert set(frame["kind"]) == {"data", "shapes", "made"}


def test_there_are_two_halves():
    assert set(halves()["half"]) == {TUNING, CONFIRMATION} == {"tuning", "confirmation"}


def test_the_halves_hold_about_as_many_shapes_and_as_many_unrelated_data_sets():
    shapes = Counter(map(half_of, SHAPES))
    assert abs(shapes[TUNING] - shapes[CONFIRMATION]) <= len(SHAPES) // 10
    data = halves().query("kind == 'data'")
    unrelated = Counter(data.loc[~data["reason"].str.startswith("rows of"), "half"])
    assert abs(unrelated[TUNING] - unrelated[CONFIRMATION]) <= 2


def test_related_sets_are_in_one_half():
    related = {}
    for name in data_loaders.names():
        stem = "adult" if re.match(r"a\da", name) else re.split(r"-(?:\dv\d|tr|te|ext)", name)[0]
        related.setdefault(stem, []).append(half_of(name))
    assert [len(related[stem]) for stem in ("adult", "mnist", "usps", "waveform")] == [11, 7, 5, 2]
    assert {stem: set(found) for stem, found in related.items() if len(set(found)) > 1} == {}


@pytest.mark.parametrize(
    ("name", "half"),
    [
        ("waveform", TUNING),
        ("segment", CONFIRMATION),
        ("usps-train-0v1", CONFIRMATION),
        ("pendigits-3v8", CONFIRMATION),
        ("two-moons", TUNING),
        ("spirals", CONFIRMATION),
    ],
)
def test_a_part_has_the_half_of_the_whole(name, half):
    assert half_of(name) == half


@pytest.mark.parametrize("name", ["", "mnits", "-3v8"])
def test_a_set_without_a_half_is_refused(name):
    with pytest.raises(InputError, match=f"'{name}' has no half; add it to benchmarks/halves.csv"):
        half_of(name)


def test_a_reader_may_change_its_own_frame():
    halves()["half"] = TUNING
    assert half_of("usps") == CONFIRMATION

"""Known labels pick and start, whatever their names and order; what is out of range is refused."""

import numpy as np
import pytest
import zarr
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.choice.candidates import KNOWN, MARGIN
from mmcnb.datasets import make_shape
from mmcnb.errors import InputError


def front_door(n_clusters=2, **parameters):
    return mmcnb.MaximumMarginClustering(n_clusters, random_state=0, **parameters)


@pytest.fixture(scope="module")
def crossed():
    """Four groups: two clusters are the left and the right ones, or the upper and the lower."""
    rng = np.random.default_rng(0)
    side, height = rng.integers(0, 2, (2, 800))
    X = rng.standard_normal((800, 2)) * 0.7 + np.c_[9.0 * side, 7.0 * height]
    return X, side, height


def told(model):
    """The report, without what differs between equal fits."""
    bare = {name: value for name, value in model.report_.items() if not name.endswith("seconds")}
    bare["candidates"] = [{**one, "seconds": None} for one in model.report_["candidates"]]
    return bare


def taken(model):
    return next(one for one in model.report_["candidates"] if one["candidate"] == model.candidate_)


@pytest.mark.parametrize("kernel", ["auto", "graph", "rbf"])
@pytest.mark.parametrize("form", ["labels", "dict"])
def test_labels_of_some_rows_pick_between_two_ways_to_cluster(crossed, kernel, form):
    X, side, height = crossed
    rows = np.random.default_rng(1).permutation(800)[:40]
    for y in (side, height):
        known = {int(row): int(y[row]) for row in rows}
        if form == "labels":
            known = np.where(np.isin(np.arange(800), rows), y, -1)
        model = front_door(kernel=kernel).fit(X, partial_labels=known)
        assert adjusted_rand_score(y, model.labels_) == 1
        np.testing.assert_array_equal(model.labels_, model.predict(X))
        assert taken(model)["broken"] < 0.1


def test_the_candidates_that_break_least_come_first_and_then_j(crossed):
    X, side, height = crossed
    for y in (side, height):
        model = front_door(4).fit(
            X, partial_labels={row: int(2 * side[row] + height[row]) for row in range(40)}
        )
        assert adjusted_rand_score(2 * side + height, model.labels_) == 1
        model = front_door().fit(X, partial_labels={row: int(y[row]) for row in range(40)})
        least = min(one["broken"] for one in model.report_["candidates"])
        level = [one for one in model.report_["candidates"] if one["broken"] <= least + 1 / 40 + 0.05]
        lead = {MARGIN: 0.1}
        best = max(level, key=lambda one: one["J"] + lead.get(one["candidate"], 0.0))
        assert model.candidate_ == best["candidate"]


def test_labels_of_all_clusters_start_a_candidate_of_their_own(crossed):
    X, side, _ = crossed
    names = [[], [KNOWN]]
    for known, more in (({0: 0}, names[0]), ({row: int(side[row]) for row in range(9)}, names[1])):
        model = front_door(kernel="graph").fit(X, partial_labels=known)
        assert [one["candidate"] for one in model.report_["candidates"] if one["candidate"] == KNOWN] == more


def test_labels_of_halves_that_no_gap_parts_are_followed():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 2))
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    known = {row: int(y[row]) for row in range(200)}
    model = front_door(kernel="graph").fit(X, partial_labels=known)
    assert adjusted_rand_score(y, model.labels_) > 0.6
    assert adjusted_rand_score(y, model.labels_) > adjusted_rand_score(
        y, front_door(kernel="graph").fit(X).labels_
    )


@pytest.mark.parametrize("asked", [None, (2, 9)])
def test_there_are_at_least_as_many_clusters_as_known_labels(asked):
    X, _ = make_shape("two-moons", random_state=0)
    assert front_door(asked).fit(X).n_clusters_ == 2
    order = np.argsort(X[:, 0])
    rows = {int(order[40 * one]): one for one in range(5)}
    model = front_door(asked).fit(X, partial_labels=rows)
    assert 5 <= model.n_clusters_ <= 9
    assert model.n_clusters_ == np.unique(model.labels_).size == model.report_["number"]["n_clusters"]


def test_rows_that_are_known_to_part_are_no_one_cluster():
    X = np.random.default_rng(0).standard_normal((300, 3))
    assert front_door(None).fit(X).n_clusters_ == 1
    assert front_door(None).fit(X, partial_labels={0: 0, 1: 1}).n_clusters_ >= 2


def test_known_labels_are_of_no_more_clusters_than_the_range_has():
    X, _ = make_shape("two-moons", 100, random_state=0)
    with pytest.raises(InputError, match=r"^partial_labels of row 3 is 4; give labels from 0 to 3"):
        front_door((2, 4)).fit(X, partial_labels={3: 4})


def test_y_does_not_leak(crossed):
    X, side, height = crossed
    plain = front_door().fit(X)
    for y in (side, height):
        np.testing.assert_array_equal(front_door().fit(X, y).labels_, plain.labels_)
        np.testing.assert_array_equal(front_door().fit_predict(X, y), plain.labels_)


def test_names_of_labels_do_not_matter(crossed):
    X, _, height = crossed
    known = {row: int(height[row]) for row in range(6)}
    swapped = {row: 1 - label for row, label in reversed(known.items())}
    one, other = front_door().fit(X, partial_labels=known), front_door().fit(X, partial_labels=swapped)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert told(one) == told(other)


def test_known_rows_outside_the_sample_are_drawn_into_it(tmp_path, crossed):
    X, _, height = crossed
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(111, 2))
    known = {row: int(height[row]) for row in range(0, 800, 20)}
    settings = {"n_nodes": 200, "n_jobs": 2}
    stored = front_door(**settings).fit(tmp_path / "a.zarr", partial_labels=known)
    memory = front_door(**settings).fit(X, partial_labels=known)
    np.testing.assert_array_equal(stored.labels_, memory.labels_)
    assert adjusted_rand_score(height, stored.labels_) == 1


def test_a_checkpoint_of_other_known_rows_is_refused(tmp_path, crossed):
    X, side, _ = crossed
    kept, known = front_door(checkpoint=tmp_path / "kept"), {0: int(side[0]), 1: int(side[1])}
    labels = kept.fit(X, partial_labels=known).labels_
    np.testing.assert_array_equal(kept.fit(X, partial_labels=known).labels_, labels)
    with pytest.raises(InputError, match="known rows"):
        kept.fit(X, partial_labels={2: 0, 3: 1})


# -- what comes first --------------------------------------------------------------------------


def test_known_rows_may_have_no_weight(tmp_path):
    X = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat([0, 6], 60)[:, None]
    weights = np.ones(120)
    weights[[0, 70]] = 0
    model = front_door(kernel="graph").fit(
        X, sample_weight=weights, partial_labels={0: 0, 1: 0, 70: 1, 71: 1}
    )
    np.testing.assert_array_equal(model.labels_, np.repeat([0, 1], 60))
    assert model.report_["left_out"] == {}
    model.save(tmp_path / "a.model")
    np.testing.assert_array_equal(mmcnb.load(tmp_path / "a.model").predict(X), model.labels_)


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ([0, 1], r"partial_labels has the shape \(2,\) for 100 rows"),
        ({3: 2}, "partial_labels of row 3 is 2; give labels from 0 to 1"),
        ({3: -2}, "partial_labels of row 3 is -2"),
        ({100: 0}, "partial_labels names row 100; give row numbers from 0 to 99"),
        ({3: 0.5}, "partial_labels holds what is no whole number"),
        ({3: "red"}, "partial_labels contains text"),
        (np.full(100, np.nan), "partial_labels holds what is no whole number"),
    ],
)
def test_what_is_out_of_range_is_refused_in_one_sentence(known, told):
    X, _ = make_shape("two-moons", 100, random_state=0)
    with pytest.raises(InputError, match=told) as caught:
        front_door().fit(X, partial_labels=known)
    assert str(caught.value).count(". ") == 0


def test_nothing_known_is_as_if_nothing_were_given():
    X, _ = make_shape("two-moons", 100, random_state=0)
    plain = front_door().fit(X)
    for nothing in (np.full(100, -1), {}):
        model = front_door().fit(X, partial_labels=nothing)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        assert told(model) == told(plain)

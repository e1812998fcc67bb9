"""Known labels pick and start, whatever their names and order; what is out of range is refused."""

import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.choice.read_known import read_known_rows
from mmcnb.datasets import make_shape
from mmcnb.errors import InputError
from mmcnb.stores import convert
from tests.estimators.front_door import front_door, report_of


@pytest.fixture(scope="module")
def crossed():
    """Four groups: two clusters are the left and the right ones, or the upper and the lower."""
    rng = np.random.default_rng(0)
    side, height = rng.integers(0, 2, (2, 400))
    X = rng.standard_normal((400, 2)) * 0.7 + np.c_[9.0 * side, 7.0 * height]
    return X, side, height


def broken(model):
    """What share of the known rows each candidate breaks, that of the one taken first."""
    shares = {one["candidate"]: one["broken"] for one in model.report_["candidates"]}
    return [shares.pop(model.candidate_), *shares.values()]


@pytest.fixture(scope="module")
def with_gaps(crossed):
    """The four groups, and labels of their sides; each seventh row has a gap."""
    X, side, _ = crossed
    frame = pd.DataFrame(X.copy(), columns=["x", "y"])
    frame.loc[::7, "x"] = np.nan
    return frame, side


def opened_as(frame, form, folder):
    path = folder / f"rows.{form}"
    if form == "frame":
        return mmcnb.read_table(frame, missing="drop")
    if form == "index":
        named = frame.set_index(pd.Index([f"r{row}" for row in frame.index]))
        return mmcnb.read_table(named, missing="drop")
    if form == "parquet":
        frame.to_parquet(path)
        return mmcnb.read_table(path, missing="drop")
    frame.to_csv(folder / "rows.csv", index=False)
    if form == "csv":
        return mmcnb.read_table(path, missing="drop")
    convert(folder / "rows.csv", path, missing="drop")
    return mmcnb.open_samples(path)


@pytest.mark.parametrize("form", ["frame", "index", "csv", "parquet", "zarr"])
@pytest.mark.filterwarnings("ignore:.*were left out and have no label")
def test_rows_are_numbered_as_given_though_some_are_left_out(with_gaps, form, tmp_path):
    frame, side = with_gaps
    rows = opened_as(frame, form, tmp_path)
    kept = np.flatnonzero(frame["x"].notna())
    by_number = {int(row): int(side[row]) for row in kept[::9]}
    of_all_rows = np.full(len(frame), -1)
    of_all_rows[kept[::9]] = side[kept[::9]]
    for known in (by_number, of_all_rows, of_all_rows[kept]):
        model = front_door(2).fit(rows, partial_labels=known)
        assert broken(model)[0] == 0
        assert adjusted_rand_score(side[kept], model.labels_) > 0.9
    expected = [f"r{row}" for row in kept] if form == "index" else kept.tolist()
    assert model.row_index_.tolist() == expected


def test_labels_of_rows_that_are_left_out_are_named(with_gaps, tmp_path):
    frame, side = with_gaps
    rows = opened_as(frame, "csv", tmp_path)
    known = {row: int(side[row]) for row in range(60)}
    with pytest.warns(mmcnb.ClusterWarning, match=r"left out .* \(0, 7, 14, .*ignored"):
        front_door(2).fit(rows, partial_labels=known)
    for far in (400, -1):
        with pytest.raises(InputError, match=f"names row {far}; give .* 0 to 398"):
            front_door(2).fit(rows, partial_labels={far: 0})


@pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
def test_numbers_of_rows_of_a_folder_are_refused_if_some_are_left_out(
    with_gaps, tmp_path
):
    frame, side = with_gaps
    (tmp_path / "months").mkdir()
    frame[:200].to_csv(tmp_path / "months" / "a.csv", index=False)
    frame[200:].to_csv(tmp_path / "months" / "b.csv", index=False)
    rows = mmcnb.read_table(tmp_path / "months", missing="drop")
    with pytest.raises(InputError, match=r"array of shape \(342,\)"):
        front_door(2).fit(rows, partial_labels={1: 0})
    known = side[frame["x"].notna()]
    assert broken(front_door(2).fit(rows, partial_labels=known))[0] == 0


@pytest.mark.parametrize(
    ("kernel", "form"), [("auto", dict), ("graph", list), ("rbf", dict)]
)
def test_labels_of_some_rows_pick_between_two_ways_to_cluster(crossed, kernel, form):
    X, side, height = crossed
    rows = np.random.default_rng(1).permutation(400)[:40]
    for y in (side, height):
        known = {int(row): int(y[row]) for row in rows}
        if form is list:
            known = [known.get(row, -1) for row in range(400)]
        model = front_door(2, kernel=kernel).fit(X, partial_labels=known)
        assert adjusted_rand_score(y, model.labels_) == 1
        np.testing.assert_array_equal(model.labels_, model.predict(X))
        assert broken(model)[0] == min(broken(model)) < 0.1


def test_labels_of_all_clusters_start_a_candidate_of_their_own(crossed):
    X, side, height = crossed
    groups = 2 * side + height
    for known, is_candidate in (
        ({0: 0}, False),
        ({row: int(groups[row]) for row in range(40)}, True),
    ):
        model = front_door(4, kernel="graph").fit(X, partial_labels=known)
        assert (
            "known labels" in [one["candidate"] for one in model.report_["candidates"]]
        ) == is_candidate
        assert adjusted_rand_score(groups, model.labels_) == 1


def test_labels_of_halves_that_no_gap_parts_are_followed():
    X = np.random.default_rng(0).uniform(size=(600, 2))
    y = (X.sum(axis=1) > 1).astype(int)
    model = front_door(2, kernel="graph").fit(
        X, partial_labels={row: int(y[row]) for row in range(200)}
    )
    plain = front_door(2, kernel="graph").fit(X)
    assert adjusted_rand_score(y, model.labels_) > max(
        0.6, adjusted_rand_score(y, plain.labels_)
    )


@pytest.mark.parametrize("range_", [None, (2, 9)])
def test_there_are_at_least_as_many_clusters_as_known_labels(range_):
    X, _ = make_shape("two-moons", 400, random_state=0)
    assert front_door(range_).fit(X).n_clusters_ == 2
    order = np.argsort(X[:, 0])
    model = front_door(range_).fit(
        X, partial_labels={int(order[20 * k]): k for k in range(5)}
    )
    assert 5 <= model.n_clusters_ <= 9
    assert (
        model.n_clusters_
        == np.unique(model.labels_).size
        == model.report_["number"]["n_clusters"]
    )


def test_rows_that_are_known_to_part_are_no_one_cluster():
    X = np.random.default_rng(0).standard_normal((300, 3))
    assert front_door().fit(X).n_clusters_ == 1
    assert front_door().fit(X, partial_labels={0: 0, 1: 1}).n_clusters_ >= 2


def test_y_does_not_leak_and_nothing_known_is_as_if_nothing_were_given(crossed):
    X, side, _ = crossed
    plain = front_door(2).fit(X)
    assert plain.report_["candidates"][0]["broken"] is None
    np.testing.assert_array_equal(front_door(2).fit_predict(X, side), plain.labels_)
    for options in (
        {"y": side},
        {"partial_labels": np.full(400, -1)},
        {"partial_labels": {}},
    ):
        model = front_door(2).fit(X, **options)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        assert report_of(model) == report_of(plain)


def test_names_of_labels_do_not_matter(crossed):
    X, _, height = crossed
    known = {row: int(height[row]) for row in range(6)}
    swapped = {row: 1 - label for row, label in reversed(known.items())}
    one, other = (
        front_door(2).fit(X, partial_labels=labels) for labels in (known, swapped)
    )
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert report_of(one) == report_of(other)


def test_known_rows_outside_the_sample_are_drawn_into_it(tmp_path, crossed):
    X, _, height = crossed
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(111, 2))
    known = {row: int(height[row]) for row in range(0, 400, 10)}
    stored, memory = (
        front_door(2, n_nodes=100, n_jobs=2).fit(rows, partial_labels=known)
        for rows in (tmp_path / "a.zarr", X)
    )
    np.testing.assert_array_equal(stored.labels_, memory.labels_)
    assert adjusted_rand_score(height, stored.labels_) == 1


def test_a_checkpoint_of_other_known_rows_is_refused(tmp_path, crossed):
    X, side, _ = crossed
    known = {0: int(side[0]), 1: int(side[1])}
    model = front_door(2, checkpoint=tmp_path / "kept")
    labels = model.fit(X, partial_labels=known).labels_
    np.testing.assert_array_equal(model.fit(X, partial_labels=known).labels_, labels)
    with pytest.raises(InputError, match="known rows"):
        model.fit(X, partial_labels={2: 0, 3: 1})


def test_known_rows_may_have_no_weight():
    X = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat([0, 6], 60)[:, None]
    weights = np.ones(120)
    weights[[0, 70]] = 0
    known = {0: 0, 1: 0, 70: 1, 71: 1}
    model = front_door(2, kernel="graph").fit(
        X, sample_weight=weights, partial_labels=known
    )
    np.testing.assert_array_equal(model.labels_, np.repeat([0, 1], 60))
    assert model.report_["left_out"] == {}


def test_of_many_known_rows_two_thousand_are_used_evenly():
    for n, step in ((2000, 1), (2001, 2), (5000, 3)):
        labels = np.arange(n + 1) % 2
        labels[0] = -1
        known = read_known_rows(labels, n + 1, 2)
        assert known.rows.tolist() == list(range(1, n + 1, step))
        assert known.labels.tolist() == labels[known.rows].tolist()


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ([0, 1], r"partial_labels has the shape \(2,\) for 100 rows"),
        (
            np.zeros((100, 1), int),
            r"partial_labels has the shape \(100, 1\) for 100 rows",
        ),
        ({3: 4}, "partial_labels of row 3 is 4; give labels from 0 to 3"),
        ({3: -2}, "partial_labels of row 3 is -2"),
        ({100: 0}, "partial_labels names row 100; give row numbers from 0 to 99"),
        ({-1: 0}, "partial_labels names row -1"),
        ({3: 0.5}, "partial_labels has a value that is not an integer"),
        ({3: "red"}, "partial_labels contains text"),
        ({2.0**63: 1}, "partial_labels has a value that is not an integer"),
        (np.full(100, np.nan), "partial_labels has a value that is not an integer"),
    ],
)
def test_what_is_out_of_range_is_refused_in_one_sentence(known, sentence):
    X, _ = make_shape("two-moons", 100, random_state=0)
    for n_clusters in (4, (2, 4)):
        with pytest.raises(InputError, match=f"^{sentence}") as caught:
            front_door(n_clusters).fit(X, partial_labels=known)
        assert str(caught.value).count(". ") == 0

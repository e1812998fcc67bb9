"""SupportClusterMachine: machines on weighted representatives of clusters."""

import json
import pickle
import re
import shutil

import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import mmcnb
from mmcnb import SupportClusterMachine
from mmcnb.errors import DamagedStoreError, InputError, MemoryLimitError
from mmcnb.features.model import read_model, write_model
from mmcnb.stores import create_csr_store, create_dense_store
from mmcnb.support_clusters import shrinking
from mmcnb.support_clusters.active import ActiveSet, drawn_members, drawn_rows

pytestmark = pytest.mark.slow
REPRESENTATIVES = ["member", "pseudo-centre"]


@parametrize_with_checks([SupportClusterMachine()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make(**parameters):
    return SupportClusterMachine(
        **{"random_state": 0, "gamma": 0.5, "n_jobs": 1} | parameters
    )


def rare(n=3000, n_positive=60, shift=2.5):
    """A rare class beside a common one that it overlaps."""
    rng = np.random.default_rng(0)
    y = np.zeros(n, int)
    y[rng.choice(n, n_positive, replace=False)] = 1
    return rng.standard_normal((n, 3)) + shift * y[:, None], y


@pytest.fixture(scope="module")
def data():
    return rare()


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1, 2], [40, 700, 260])
    return rng.standard_normal((1000, 2)) + np.array([[0, 4], [0, 0], [4, 0]])[y], y


# Two classes without a difference have more support vectors than a tile of the
# expansion.
@pytest.mark.parametrize(
    ("kernel", "class_weight", "n", "shift"),
    [
        ("rbf", None, 300, 2.5),
        ("linear", "balanced", 300, 2.5),
        ("poly", {0: 0.5, 1: 4.0}, 300, 2.5),
        ("rbf", {1: 1.5}, 1800, 0.0),
    ],
)
def test_where_every_row_represents_itself_it_is_the_support_vector_machine(
    kernel, class_weight, n, shift
):
    X, y = rare(n, n // 3, shift)
    shared = {"kernel": kernel, "coef0": 1.0, "class_weight": class_weight}
    model = make(n_clusters=n - n // 3, **shared).fit(X, y)
    f = SVC(gamma=0.5, **shared).fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), f, atol=2e-3 * np.ptp(f))
    assert model.report_["ends"] == ["all negatives"]
    assert len(model.history_) == 1
    assert shift or model.report_["support_vectors"] > 1024


def test_a_representative_counts_for_all_copies_of_its_row():
    """Theorem 2: eq. (6) on representatives and eq. (7) on as many copies of each have one optimum."""
    rng = np.random.default_rng(1)
    common = rng.standard_normal((40, 2))
    copies = rng.integers(1, 8, 40)
    X = np.r_[rng.standard_normal((20, 2)) + 1.0, np.repeat(common, copies, axis=0)]
    y = np.arange(len(X)) < 20
    shared = {"class_weight": {True: 3.0}, "C": 0.3}
    once = {
        "n_clusters": 40,
        "representative": "pseudo-centre",
        "shrink_threshold": 1e9,
    }
    model = make(**once, **shared).fit(X, y)
    f = SVC(gamma=0.5, **shared).fit(X, y).decision_function(X)
    assert model.history_["representatives"].tolist() == [40]
    np.testing.assert_allclose(model.decision_function(X), f, atol=2e-3 * np.ptp(f))


@pytest.mark.parametrize("representative", REPRESENTATIVES)
def test_dropped_rows_go_on_through_rows_of_theirs(data, representative):
    """With a small C each multiplier is its bound, the weight of its row: all rows count, dropped or not."""
    X, y = data
    parameters = {
        "C": 1e-4,
        "class_weight": {1: 49.0},
        "n_clusters": 80,
        "representative": representative,
    }
    first = np.abs(make(max_rounds=1, **parameters).fit(X, y).decision_function(X))
    threshold = np.median(first[y == 0])
    model = make(max_rounds=2, shrink_threshold=threshold, **parameters).fit(X, y)
    last = model.history_.iloc[-1]
    assert 0 < last["settled"] <= 80
    assert last["negatives"] == (first[y == 0] <= threshold).sum()
    coef = model.model_.rule.coef
    basis = model.model_.basis
    assert coef[coef < 0].sum() == pytest.approx(-1e-4 * (y == 0).sum())
    assert coef[coef > 0].sum() == pytest.approx(1e-4 * 49 * (y == 1).sum())
    numbers = [np.flatnonzero((row == X).all(axis=1)).item() for row in basis[coef < 0]]
    assert (y[numbers] == 0).all()
    # drawn from the rows themselves; a pseudo-centre may not have been dropped
    if representative == "member":
        assert (first[numbers] > threshold).sum() == last["settled"]


def decision_values_of_the_first_round(X, y):
    model = make(max_rounds=1, n_clusters=80).fit(X, y)
    return np.abs(model.decision_function(X))


def test_only_rows_of_the_majority_are_dropped(data):
    X, y = data
    distances = decision_values_of_the_first_round(X, y)
    threshold = np.median(distances)
    assert (distances[y == 1] > threshold).any()
    model = make(max_rounds=2, n_clusters=80, shrink_threshold=threshold).fit(X, y)
    assert model.history_["positives"].tolist() == [60, 60]
    left = (distances[y == 0] <= threshold).sum()
    assert model.history_["negatives"].tolist() == [2940, left]


def test_a_round_that_drops_less_than_a_fifth_is_the_last(data):
    X, y = data
    distances = decision_values_of_the_first_round(X, y)[y == 0]
    for share, rounds in ((0.19, 1), (0.21, 2)):
        threshold = np.quantile(distances, 1 - share)
        model = make(max_rounds=2, n_clusters=80, shrink_threshold=threshold)
        assert len(model.fit(X, y).history_) == rounds
        assert (model.report_["ends"] == ["nothing to drop"]) == (rounds == 1)


def members_of(labels, weights, mask, random):
    """`drawn_members` of rows that all have a weight of their own."""
    active = ActiveSet(
        None, None, np.ones(labels.size), np.arange(labels.size), weights
    )
    return drawn_members(active, mask, labels, labels.max() + 1, random)


def test_members_are_drawn_by_weight():
    """Each cluster gives one of its rows, with chances as the weights are: sums are kept on average."""
    random = np.random.RandomState(0)
    labels = np.array([1, 0, 1, 1, 0, 2])
    weights = np.array([1.0, 2.0, 3.0, 4.0, 2.0, 0.5])
    mask = np.ones(6, bool)
    found = [members_of(labels, weights, mask, random) for _ in range(4000)]
    drawn = np.array([members.rows for members in found])
    np.testing.assert_array_equal(labels[drawn], np.tile([0, 1, 2], (4000, 1)))
    np.testing.assert_array_equal(found[0].sizes, [4.0, 8.0, 0.5])
    chances = np.bincount(drawn.ravel(), minlength=6) / 4000
    np.testing.assert_allclose(
        chances, weights / np.bincount(labels, weights)[labels], atol=0.03
    )


def test_members_of_many_rows_are_those_of_one_sort_of_all():
    rng = np.random.default_rng(0)
    n = 150_000
    labels = rng.choice([0, 1, 3, 4], n)
    weights = rng.choice([0.5, 0.3, 7.0], n)
    mask = rng.random(n) < 0.7
    members = members_of(labels, weights, mask, np.random.RandomState(1))
    rows = np.flatnonzero(mask)
    order = np.random.RandomState(1).exponential(size=rows.size) / weights[rows]
    expected = [
        rows[labels[rows] == k][order[labels[rows] == k].argmin()] for k in (0, 1, 3, 4)
    ]
    np.testing.assert_array_equal(members.rows, expected)
    sizes = np.bincount(labels[rows], weights[rows])
    np.testing.assert_array_equal(members.sizes, sizes[[0, 1, 3, 4]])


def test_rows_are_drawn_as_by_a_permutation_of_all():
    mask = np.random.default_rng(0).random(150_000) < 0.7
    rows = np.flatnonzero(mask)
    order = np.random.RandomState(1).permutation(rows.size)
    expected = rows[np.sort(order[:500])]
    drawn = drawn_rows(mask, 500, np.random.RandomState(1))
    np.testing.assert_array_equal(drawn, expected)


def test_a_large_minority_is_clustered_by_default():
    for n_positive, clustered in ((4000, "negatives"), (4001, "both")):
        X, y = rare(9000, n_positive)
        model = make(n_clusters=100).fit(X, y)
        expected = make(n_clusters=100, clustered=clustered).fit(X, y)
        assert bits(model, X) == bits(expected, X)


def test_the_memory_limit_changes_no_bit_and_is_refused_if_it_is_too_small(tmp_path):
    X, y = rare(100_000, 900)
    rows = zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(10_000, 3))
    fit = {"n_clusters": 40, "max_rounds": 3}
    model = make(**fit, memory_limit="4GiB").fit(rows, y)
    with pytest.raises(MemoryLimitError, match="least that works is") as refused:
        make(memory_limit="100MiB").fit(rows, y)
    least = re.search(r"works is (\d+ MiB)", str(refused.value))[1]
    limited = make(**fit, memory_limit=least, n_jobs=2).fit(rows, y)
    assert len(model.history_) > 1
    assert bits(limited, X) == bits(model, X)


def test_the_rarer_class_is_the_positive_one_whatever_its_name(data):
    X, y = data
    model = make().fit(X, y)
    turned = make().fit(X, 1 - y)
    np.testing.assert_array_equal(
        model.decision_function(X), -turned.decision_function(X)
    )
    named = make().fit(X, np.where(y == 1, "rare", "common"))
    assert named.classes_.tolist() == ["common", "rare"]
    np.testing.assert_array_equal(named.predict(X) == "rare", model.predict(X) == 1)
    assert [set(one.history_["class"]) for one in (model, turned, named)] == [
        {1},
        {0},
        {"rare"},
    ]


def test_it_is_close_to_the_machine_on_all_rows_and_tells_its_rounds(data):
    X, y = data
    model = make(n_clusters=100).fit(X, y)
    machine = SVC(gamma=0.5, class_weight="balanced").fit(X, y)
    assert np.mean(model.predict(X) == machine.predict(X)) > 0.98
    log = model.history_
    last = model.history_.iloc[-1]
    assert log["round"].tolist() == list(range(len(log)))
    assert log["support_vectors"].max() < machine.support_.size
    assert log["negatives"].iloc[0] == (y == 0).sum()
    assert log["negatives"].is_monotonic_decreasing
    assert last["miss_rate"] == np.mean(model.decision_function(X[y == 1]) < 0)
    assert last["support_vectors"] == model.report_["support_vectors"]


@pytest.mark.parametrize(
    ("parameters", "end", "rounds"),
    [
        ({"shrink_threshold": 1e9}, "nothing to drop", 1),
        ({"shrink_threshold": 0.0}, "nothing to drop", 1),
        ({"max_rounds": 1}, "max_rounds", 1),
        ({"level": 100.0}, "balance", 1),
        ({"n_clusters": 60, "level": 20.0}, "balance", None),
        ({"stop": "miss-rate", "level": 0.0, "class_weight": None}, "miss-rate", 1),
    ],
)
def test_rounds_end_as_they_are_told(data, parameters, end, rounds):
    X, y = data
    model = make(**parameters).fit(X, y)
    last = model.history_.iloc[-1]
    assert model.report_["ends"] == [end]
    assert len(model.history_) == rounds or (rounds is None and len(model.history_) > 1)
    if end == "balance":
        assert last["representatives"] == last["negatives"] <= model.level * y.sum()


def test_both_classes_may_be_clustered():
    X, y = rare(2000, 900)
    model = make(clustered="both", n_clusters=50).fit(X, y)
    assert (model.history_["support_vectors"] <= 100 + model.history_["settled"]).all()
    assert model.score(X, y) > 0.9


def test_several_classes_are_each_set_against_the_others(three):
    X, y = three
    model = make(n_clusters=300, class_weight={0: 2.0}).fit(X, y)
    f = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), f.argmax(axis=1))
    positives = model.history_.groupby("class")["positives"].first()
    # of the larger class, the others are the rare side
    assert positives.to_dict() == {
        0: 40,
        1: 300,
        2: 260,
    }
    weights = np.where(y == 0, 2.0, 1.0)
    for c in range(3):
        machine = SVC(gamma=0.5).fit(X, y == c, sample_weight=weights)
        assert np.mean(np.sign(machine.decision_function(X)) == np.sign(f[:, c])) > 0.97


def bits(model, X):
    return model.model_.rule.coef.tobytes(), model.decision_function(X).tobytes()


@pytest.mark.parametrize(
    ("parameters", "classes", "held"),
    [({"scale": "standard"}, 2, True), ({}, 3, True), ({}, 2, False)],
)
def test_dense_storages_and_threads_give_the_same_bits(
    tmp_path, monkeypatch, parameters, classes, held
):
    if not held:
        # Internal: rows stay in their store only where more are left than any test
        # could hold.
        monkeypatch.setattr(shrinking, "CACHED_ROWS", 100)
        monkeypatch.setattr(shrinking, "CACHED_VALUES", 0)
    X, y = rare(6000, 90)
    y[:: 7 * classes] = classes - 1
    with create_dense_store(
        tmp_path / "ours.zarr", 3, dtype="float64", chunk_rows=777
    ) as writer:
        writer.append(X, y)
    zarr.create_array(tmp_path / "bare.zarr", data=X, chunks=(1000, 2))
    labels = zarr.create_array(tmp_path / "y.zarr", data=y, chunks=(500,))
    storages = [
        (tmp_path / "ours.zarr", None),
        (tmp_path / "bare.zarr", tmp_path / "y.zarr"),
        (dask.array.from_array(X, chunks=(3000, 3)), labels),
    ]
    fit = {"n_clusters": 40, "max_rounds": 2, **parameters}
    expected = bits(make(**fit).fit(X, y), X)
    for rows, given in storages:
        assert bits(make(**fit, n_jobs=2).fit(rows, given), X) == expected


def test_sparse_storages_give_the_same_bits_and_agree_with_dense(tmp_path):
    X, y = rare(5000, 50)
    X[np.abs(X) < 0.5] = 0
    csr = scipy.sparse.csr_array(X)
    with create_csr_store(tmp_path / "csr.zarr", 3, dtype="float64") as writer:
        writer.append(csr, y=y)
    fit = {"n_clusters": 40, "max_rounds": 2}
    model = make(**fit).fit(csr, y)
    assert bits(make(**fit, n_jobs=2).fit(tmp_path / "csr.zarr"), csr) == bits(
        model, csr
    )
    assert np.mean(make(**fit).fit(X, y).predict(X) == model.predict(X)) > 0.98


def test_labels_go_to_stores_and_tables_and_models_to_a_pickle(tmp_path, three):
    X, y = three
    names = np.array(["a", "b", "c"])[y]
    model = make(n_clusters=50).fit(X, names)
    assert model.predict(X, out=tmp_path / "labels.zarr") is None
    numbers = zarr.open_array(tmp_path / "labels.zarr", mode="r")[:]
    np.testing.assert_array_equal(model.classes_[numbers], model.predict(X))
    frame = model.to_frame(X)
    ordered = np.sort(model.decision_function(X))
    np.testing.assert_array_equal(frame["class"], model.predict(X))
    np.testing.assert_array_equal(frame["margin"], ordered[:, -1] - ordered[:, -2])
    model.predict(X, out=tmp_path / "classes.csv")
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "classes.csv")[["class", "margin"]], frame
    )
    again = pickle.loads(pickle.dumps(model))
    assert again.score(X, names) == model.score(X, names) > 0.95
    assert json.dumps(again.report_) == json.dumps(model.report_)


@pytest.mark.parametrize("named", [np.array(["a", "b", "c"]), np.arange(3) - 1])
def test_a_saved_model_is_what_it_was(tmp_path, three, named):
    X, y = three
    weights = {named[0].item(): 2.0}
    parameters = {"n_clusters": 50, "class_weight": weights, "scale": "standard"}
    model = make(**parameters).fit(X, named[y])
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert bits(again, X) == bits(model, X)
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.classes_.tolist() == named.tolist()
    assert again.report_ == model.report_
    assert again.gamma_ == model.gamma_
    pd.testing.assert_frame_equal(again.history_, model.history_)
    assert again.class_weight == weights
    assert bits(again.fit(X, named[y]), X) == bits(model, X)


def test_a_model_of_other_classes_than_its_rule_has_is_refused(tmp_path, data):
    make(n_clusters=50).fit(*data).save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    for classes in ([0], [0, 0], [0, 1, 2], "ab", [0, [1]]):
        header["report"]["classes"] = classes
        write_model(tmp_path / "other", header, arrays)
        with pytest.raises(InputError, match=r"^[^\n]*other has [^\n]*classes"):
            mmcnb.load(tmp_path / "other")
    del header["report"]["classes"]
    write_model(tmp_path / "other", header, arrays)
    with pytest.raises(InputError, match="no classes"):
        mmcnb.load(tmp_path / "other")


def test_tables_have_the_class_of_each_row(tmp_path, three):
    X, y = three
    frame = pd.DataFrame(X, columns=["length", "width"])
    model = make(n_clusters=50).fit(frame, np.array(["a", "b", "../c"])[y])
    table = model.label_table(frame)
    assert table.columns.tolist() == ["length", "width", "class"]
    assert table["class"].tolist() == model.predict(frame).tolist()
    model.label_table(frame, tmp_path / "rows.csv")
    written = pd.read_csv(tmp_path / "rows.csv")
    assert written["class"].tolist() == model.predict(frame).tolist()
    model.label_table(frame, f"{tmp_path}/rows/")
    whole = pd.read_parquet(tmp_path / "rows")
    found = whole.sort_values(["length", "width"])["class"]
    assert found.tolist() == table.sort_values(["length", "width"])["class"].tolist()
    assert len([*(tmp_path / "rows").iterdir()]) == 3


@pytest.mark.parametrize("place", ["memory", "store"])
def test_gaps_are_filled_in_fits_and_predictions(tmp_path, place):
    X, y = rare(70_000, 700)
    X[69_000, 1] = np.nan
    rows = X
    if place == "store":
        rows = zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(30_000, 3))
    model = make(n_clusters=100, max_rounds=1).fit(rows, y)
    expected = make(n_clusters=100, max_rounds=1).fit(X, y)
    assert bits(model, X[:1000]) == bits(expected, X[:1000])
    assert np.isfinite(model.decision_function(X[68_999:])).all()


def test_units_do_not_matter_to_scaled_columns_and_scores_take_weights(data):
    X, y = data
    model, other = (
        make(scale="standard").fit(rows, y) for rows in (X, X * [1.0, 1e3, 1e-3])
    )
    np.testing.assert_array_equal(model.predict(X), other.predict(X * [1.0, 1e3, 1e-3]))
    right = model.predict(X) == y
    assert model.score(X, y, y + 1.0) == pytest.approx(np.average(right, weights=y + 1))
    for labels, weights, name in (
        (y.astype(str), None, "classes_"),
        (y, -1.0 - y, "sample_weight"),
    ):
        with pytest.raises(InputError, match=rf"^[^\n]*{name}[^\n]*\.$"):
            model.score(X, labels, weights)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"C": 0}, "C=0 is out of range"),
        ({"n_clusters": 2941}, "n_clusters=2941 is more than the 2940 rows of a class"),
        (
            {"n_clusters": 61, "clustered": "both"},
            "n_clusters=61 is more than the 60 rows of a class",
        ),
        ({"stop": "miss-rate", "level": 1.5}, "level=1.5 is out of range"),
        ({"representative": "mean"}, "representative='mean' is unknown"),
        ({"class_weight": "heavy"}, "class_weight='heavy' is unknown"),
        (
            {"class_weight": {2: 1.0}},
            "class_weight names the class 2, which y does not have",
        ),
        ({"class_weight": {1: -1.0}}, "class_weight of 1 is -1.0"),
    ],
)
def test_bad_parameters_are_one_sentence(data, changes, sentence):
    with pytest.raises(InputError, match=r"^[^\n]*\.$") as refused:
        make(**changes).fit(*data)
    assert sentence in str(refused.value)


def test_bad_classes_are_one_sentence(data, tmp_path):
    X, y = data
    zarr.create_array(tmp_path / "bare.zarr", data=X)
    for rows, labels, sentence in [
        (X, None, "requires y to be passed"),
        (tmp_path / "bare.zarr", None, "has no labels with its rows"),
        (X, y[:-1], "y has 2999 labels for the 3000 rows"),
        (X, 0 * y, "all rows are of the class 0"),
        (X, np.where(np.arange(3000) == 7, np.nan, y), "Input y contains NaN"),
        (X, X[:, 0], "Unknown label type"),
        (X, X, "give y as one class per row"),
        (X, tmp_path / "bare.zarr", "is not an array with one label per row"),
    ]:
        with pytest.raises(ValueError, match=r"^[^\n]*\.$") as refused:
            make().fit(rows, labels)
        assert sentence in str(refused.value)


def test_classes_that_are_not_what_was_written_are_refused(tmp_path, data):
    X, y = data
    for name, labels in (("rows.zarr", y), ("other.zarr", 1 - y)):
        with create_dense_store(tmp_path / name, 3) as writer:
            writer.append(X.astype("f4"), labels)
    shutil.rmtree(tmp_path / "rows.zarr/y")
    shutil.copytree(tmp_path / "other.zarr/y", tmp_path / "rows.zarr/y")
    with pytest.raises(DamagedStoreError, match="not what was written"):
        make().fit(tmp_path / "rows.zarr")

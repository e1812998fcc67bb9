"""SupportClusterMachine: machines on weighted representatives of clusters."""

import json
import pickle

import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import mmcnb
from benchmarks.support_cluster_machine import SupportClusterMachine, shrinking
from benchmarks.support_cluster_machine.classes import read_classes
from benchmarks.support_cluster_machine.expansions import ExpansionMap
from benchmarks.support_cluster_machine.shrinking import Part, drawn_members, train
from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.features.kernel import Kernel
from mmcnb.stores import create_csr_store, create_dense_store, open_class_labels
from tests.estimators.conftest import make_blobs
from tests.estimators.test_raw_columns import WISHES, front_door, raw
from tests.estimators.test_values_of_rows import NO_VALUES
from tests.samples.test_exchanged import CHUNK, MATCH, stale, swap, write

GAMMA = 0.5


@parametrize_with_checks([SupportClusterMachine()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make(**parameters):
    return SupportClusterMachine(**{"random_state": 0, "gamma": GAMMA} | parameters)


def rare(n=3000, n_positive=60, d=3, seed=0):
    """A rare class beside a common one that it overlaps."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n, int)
    y[rng.choice(n, n_positive, replace=False)] = 1
    return rng.standard_normal((n, d)) + 2.5 * y[:, None], y


@pytest.fixture(scope="module")
def data():
    return rare()


# -- what is trained ------------------------------------------------------------------------------


def dual_value(machine, kernel):
    """1/2 a'Qa - e'a of a machine on different rows."""
    a = np.abs(machine.coef)
    return 0.5 * machine.coef @ kernel(machine.vectors, machine.vectors) @ machine.coef - a.sum()


@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.5), Kernel("linear"), Kernel("poly", 0.5, 2, 1.0)])
def test_representatives_with_weights_have_the_optimum_of_duplicates(kernel):
    """Theorem 2: eq. (6) on representatives and eq. (7) on as many copies of each have one optimum."""
    rng = np.random.default_rng(1)
    rows, y = rng.standard_normal((30, 2)), np.repeat(np.int8([1, -1]), 15)
    rows[:15] += 1.0
    sizes = rng.integers(1, 6, 30)
    clusters = train(kernel, 0.3, [Part(np.arange(30), rows, y, sizes.astype(float))])
    copies = np.repeat(np.arange(30), sizes)
    duplicates = train(kernel, 0.3, [Part(copies, rows[copies], y[copies], np.ones(copies.size))])
    values = [dual_value(machine, kernel) for machine in (clusters, duplicates)]
    assert values[0] == pytest.approx(values[1], rel=1e-4)
    assert (np.abs(clusters.coef) <= 0.3 * sizes[clusters.numbers] * (1 + 1e-9)).all()
    summed = [np.zeros(30), np.zeros(30)]  # and the copies' multipliers add up to an optimum of eq. (6)
    for total, machine in zip(summed, (clusters, duplicates), strict=True):
        np.add.at(total, machine.numbers, machine.coef)
    f = [
        kernel(rows, rows) @ total + one.offset
        for total, one in zip(summed, (clusters, duplicates), strict=True)
    ]
    np.testing.assert_allclose(f[0], f[1], atol=1e-2)


@pytest.mark.parametrize("n_clusters", [20, 60, 78])
@pytest.mark.parametrize("C", [0.3, 5.0])
@pytest.mark.parametrize("gamma", [0.2, 1.0])
def test_the_error_by_representatives_is_bounded_by_that_of_the_kernel_matrix(gamma, C, n_clusters):
    """Theorem 3: let e = |Q - Q~| in the Frobenius norm, and l the least eigenvalue of Q.

    Neither optimum, a of Q and b of Q~, goes up towards the other, so (b - a)'(Q a - Q~ b) >= 0. Hence
    l |b - a|² <= (b - a)'(Q - Q~) b, and |b - a| <= e |b|/l. And as b is the optimum of G~, its value G(b) is
    above G(a) by at most the two changes from G to G~, e (|a|² + |b|²)/2. With m multipliers above 0 and at
    most C, |.|² <= m C². The paper's bounds, as its text reads, have m and m² there, and so follow.
    """
    rng, n = np.random.default_rng(2), 80  # in six columns, so that rows lie well apart
    rows, y = rng.standard_normal((n, 6)), np.repeat(np.int8([1, -1]), n // 2)
    rows[: n // 2] += 1.0
    labels = mmcnb.KernelKMeans(n_clusters, gamma=gamma, n_landmarks=n, random_state=0).fit_predict(rows)
    groups = np.unique(np.c_[labels, y], axis=0, return_inverse=True)[1].ravel()  # none of both classes
    stands = np.array([np.flatnonzero(groups == group)[0] for group in range(groups.max() + 1)])
    sizes, kernel = np.bincount(groups), Kernel("rbf", gamma)
    exact = train(kernel, C, [Part(np.arange(n), rows, y, np.ones(n))])
    machine = train(kernel, C, [Part(stands, rows[stands], y[stands], sizes.astype(float))])
    a, b, of_groups = np.zeros(n), np.zeros(n), np.zeros(n)
    a[exact.numbers], of_groups[machine.numbers] = np.abs(exact.coef), np.abs(machine.coef)
    b = of_groups[stands][groups] / sizes[groups]  # equal shares are an optimum of Q~ by Theorem 2
    Q = np.outer(y, y) * kernel(rows, rows)
    changed = Q - np.outer(y, y) * kernel(rows[stands][groups], rows[stands][groups])
    error, least = np.linalg.norm(changed), np.linalg.eigvalsh(Q)[0]
    value_a, value_b = (0.5 * one @ Q @ one - one.sum() for one in (a, b))
    assert least > 0
    assert error > 0
    precision = 1e-3 * C  # to which LIBSVM solves both
    assert np.linalg.norm(b - a) <= np.sqrt((b > 0).sum()) * C * error / least + precision / least
    assert -precision * n <= value_b - value_a <= ((a > 0).sum() + (b > 0).sum()) * C**2 * error / 2
    # The inequalities from which both bounds follow are closer.
    assert least * (b - a) @ (b - a) <= (b - a) @ changed @ b + precision * n
    assert value_b - value_a <= (b @ changed @ b - a @ changed @ a) / 2 + precision * n


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 4.0}])
def test_where_every_row_represents_itself_it_is_the_support_vector_machine(kernel, class_weight):
    X, y = rare(300, 30)
    shared = {"kernel": kernel, "gamma": GAMMA, "coef0": 1.0, "class_weight": class_weight}
    model = make(n_clusters=270, **shared).fit(X, y)
    machine = SVC(**shared).fit(X, y)
    f = machine.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), f, atol=2e-3 * np.ptp(f))
    assert model.report_["ends"] == ["all negatives"]
    assert len(model.history_) == 1


@pytest.mark.parametrize("representative", ["member", "pseudo-centre"])
def test_weights_of_the_representatives_are_those_of_all_rows(data, monkeypatch, representative):
    """Each round trains on a partition of all rows: what is dropped counts through its representative."""
    X, y = data
    trained = []

    def spy(kernel, C, parts):
        trained.append(parts)
        return train(kernel, C, parts)

    monkeypatch.setattr(shrinking, "train", spy)
    model = make(class_weight={1: 3.0}, n_clusters=80, representative=representative).fit(X, y)
    assert len(trained) == len(model.history_) > 1
    for parts in trained:
        weights, sides = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("weights", "y")
        )
        assert weights[sides < 0].sum() == pytest.approx((y == 0).sum())
        assert weights[sides > 0].sum() == pytest.approx(3.0 * (y == 1).sum())
        for part in parts:
            np.testing.assert_array_equal(part.rows, X[part.numbers])
            np.testing.assert_array_equal(part.y > 0, y[part.numbers] == 1)


def test_members_are_drawn_by_weight():
    """Each cluster gives one of its rows, with chances as the weights are: sums are kept on average."""
    random = np.random.RandomState(0)
    labels, weights = np.array([1, 0, 1, 1, 0, 2]), np.array([1.0, 2.0, 3.0, 4.0, 2.0, 0.5])
    drawn = np.array([drawn_members(labels, weights, random) for _ in range(4000)])
    np.testing.assert_array_equal(labels[drawn], np.tile([0, 1, 2], (4000, 1)))
    chances = np.bincount(drawn.ravel(), minlength=6) / 4000
    np.testing.assert_allclose(chances, weights / np.bincount(labels, weights)[labels], atol=0.03)


@pytest.mark.parametrize("representative", ["member", "pseudo-centre"])
def test_dropped_rows_go_on_through_rows_of_theirs(data, monkeypatch, representative):
    """A drawn member is itself one of the rows that were dropped; a pseudo-centre need not be."""
    X, y = data
    members, dropped = [], []
    drop = shrinking.Shrinking._drop

    def spy(self, active, majority, labels, outside):
        part = drop(self, active, majority, labels, outside)
        members.append(part.numbers)
        dropped.append(active.numbers[np.flatnonzero(active.y < 0)[outside]])
        return part

    monkeypatch.setattr(shrinking.Shrinking, "_drop", spy)
    make(n_clusters=80, representative=representative).fit(X, y)
    inside = [np.isin(some, rows).mean() for some, rows in zip(members, dropped, strict=True)]
    assert inside
    assert (np.array(inside) == 1).all() or representative == "pseudo-centre"
    assert all(np.unique(some).size == some.size for some in members)


def test_the_rarer_class_is_the_positive_one_whatever_its_name(data):
    X, y = data
    model, turned = make().fit(X, y), make().fit(X, 1 - y)
    np.testing.assert_array_equal(model.decision_function(X), -turned.decision_function(X))
    named = make().fit(X, np.where(y == 1, "rare", "common"))
    assert named.classes_.tolist() == ["common", "rare"]
    np.testing.assert_array_equal(named.predict(X) == "rare", model.predict(X) == 1)
    assert set(model.history_["class"]) == {1}
    assert set(turned.history_["class"]) == {0}
    assert set(named.history_["class"]) == {"rare"}


def test_it_is_close_to_the_machine_on_all_rows(data):
    X, y = data
    model = make(class_weight="balanced", n_clusters=100).fit(X, y)
    machine = SVC(gamma=GAMMA, class_weight="balanced").fit(X, y)
    assert np.mean(model.predict(X) == machine.predict(X)) > 0.98
    assert model.history_["support_vectors"].max() < machine.support_.size


# -- rounds ----------------------------------------------------------------------------------------


def test_history_tells_the_rounds(data):
    X, y = data
    model = make(n_clusters=100).fit(X, y)
    log = model.history_
    assert log["round"].tolist() == list(range(len(log)))
    assert (log["positives"] == y.sum()).all()
    assert log["negatives"].iloc[0] == (y == 0).sum()
    assert log["negatives"].is_monotonic_decreasing
    assert (log["representatives"] <= np.minimum(log["negatives"], 100)).all()
    assert log["settled"].iloc[0] == 0
    assert log["miss_rate"].iloc[-1] == np.mean(model.decision_function(X[y == 1]) < 0)
    assert log["support_vectors"].iloc[-1] == model.report_["support_vectors"]


def test_a_high_threshold_drops_nothing_and_a_low_one_nearly_all(data):
    X, y = data
    assert make(shrink_threshold=1e9).fit(X, y).report_["ends"] == ["nothing to drop"]
    few = make(shrink_threshold=0.0).fit(X, y)
    assert len(few.history_) == 1
    assert make(max_rounds=1).fit(X, y).report_["ends"] == ["max_rounds"]


def test_balance_ends_with_all_negatives_that_are_left(data):
    X, y = data
    model = make(n_clusters=60, level=20.0).fit(X, y)
    last = model.history_.iloc[-1]
    assert model.report_["ends"] == ["balance"]
    assert last["representatives"] == last["negatives"] <= 20 * y.sum()


def test_miss_rate_ends_with_a_machine_within_the_level(data):
    X, y = data
    free = make(stop="miss-rate", level=1.0, n_clusters=60).fit(X, y).history_["miss_rate"]
    rates = np.unique(free)
    if rates.size > 1 and free.iloc[0] < rates[-1]:
        model = make(stop="miss-rate", level=(free.iloc[0] + rates[-1]) / 2, n_clusters=60).fit(X, y)
        assert np.mean(model.decision_function(X[y == 1]) < 0) <= model.level
    stopped = make(stop="miss-rate", level=0.0, n_clusters=60).fit(X, y)
    assert len(stopped.history_) == 1 or free.iloc[0] == 0.0


def test_both_classes_may_be_clustered():
    X, y = rare(2000, 900)
    model = make(clustered="both", n_clusters=50).fit(X, y)
    assert (model.history_["support_vectors"] <= 100 + model.history_["settled"]).all()
    assert (model.history_["representatives"] <= 50).all()
    assert model.score(X, y) > 0.9


# -- classes ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1, 2], [40, 700, 260])
    return rng.standard_normal((1000, 2)) + np.array([[0, 4], [0, 0], [4, 0]])[y], y


def test_several_classes_are_each_set_against_the_others(three):
    X, y = three
    model = make(n_clusters=50).fit(X, y)
    assert set(model.history_["class"]) == {0, 1, 2}
    f = model.decision_function(X)
    assert f.shape == (1000, 3)
    np.testing.assert_array_equal(model.predict(X), f.argmax(axis=1))
    assert model.score(X, y) > 0.95
    positives = model.history_.groupby("class")["positives"].first()
    assert positives.to_dict() == {0: 40, 1: 300, 2: 260}  # of the larger class, the others are the rare side


def test_each_class_against_the_rest_is_the_machine_of_these_two(three):
    X, y = three
    f = make(n_clusters=300, class_weight={0: 2.0}).fit(X, y).decision_function(X)
    for c in range(3):
        weights = {True: 2.0} if c == 0 else None
        if c != 0:  # rows of class 0 weigh 2 among the others too
            machine = SVC(gamma=GAMMA).fit(X, y == c, sample_weight=np.where(y == 0, 2.0, 1.0))
        else:
            machine = SVC(gamma=GAMMA, class_weight=weights).fit(X, y == c)
        same = np.sign(machine.decision_function(X)) == np.sign(f[:, c])
        assert same.mean() > 0.97


@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.5), Kernel("linear"), Kernel("poly", 0.5, 2, 1.0)])
@pytest.mark.parametrize("p", [1, 1024, 2500])
def test_expansions_are_sums_over_the_basis_tile_by_tile(kernel, p):
    rng = np.random.default_rng(3)
    rows, basis = rng.standard_normal((40, 5)), rng.standard_normal((p, 5))
    coef = rng.standard_normal((p, 2))
    for given in (coef, coef[:, 0]):
        sums = ExpansionMap(kernel, basis, given)
        expected = (kernel(rows, basis) @ given).reshape(40, -1)
        np.testing.assert_allclose(sums.block(rows, np.float64), expected, rtol=1e-9, atol=1e-9)
        again = pickle.loads(pickle.dumps(sums))
        np.testing.assert_array_equal(again.block(rows, np.float64), sums.block(rows, np.float64))


# -- storages -----------------------------------------------------------------------------------------


def bits(model, X):
    plane = model.model_.rule
    return plane.coef.tobytes(), np.asarray(plane.offset).tobytes(), model.decision_function(X).tobytes()


@pytest.mark.parametrize("held", [100, 65_536])
@pytest.mark.parametrize("parameters", [{}, {"scale": "standard"}, {"classes": 3}])
def test_dense_storages_and_threads_give_the_same_bits(tmp_path, monkeypatch, held, parameters):
    """Also where rows stay in their store, because too many are in play to be held."""
    monkeypatch.setattr(shrinking, "CACHED_ROWS", held)
    monkeypatch.setattr(shrinking, "CACHED_VALUES", 0)
    X, y = rare(9000, 90)
    if "classes" in parameters:
        y[::7] = 2
        parameters = {"class_weight": "balanced"}
    with create_dense_store(tmp_path / "ours.zarr", 3, dtype="float64", chunk_rows=777) as writer:
        writer.append(X, y)
    zarr.create_array(tmp_path / "bare.zarr", data=X, chunks=(1000, 2))
    zarr.create_array(tmp_path / "y.zarr", data=y, chunks=(500,))
    storages = [
        (X, y, 2),
        (tmp_path / "ours.zarr", None, 1),
        (tmp_path / "bare.zarr", tmp_path / "y.zarr", 2),
        (
            zarr.open_array(tmp_path / "bare.zarr", mode="r"),
            zarr.open_array(tmp_path / "y.zarr", mode="r"),
            2,
        ),
        (mmcnb.open_samples(tmp_path / "ours.zarr"), list(y), 1),
        (dask.array.from_array(X, chunks=(3000, 3)), dask.array.from_array(y, chunks=(100,)), 2),
    ]
    fit = {"n_clusters": 40, "max_rounds": 2} | parameters
    expected = bits(make(n_jobs=1, **fit).fit(X, y), X)
    for rows, labels, n_jobs in storages:
        assert bits(make(n_jobs=n_jobs, **fit).fit(rows, labels), X) == expected


def test_csr_storages_and_threads_give_the_same_bits_and_agree_with_dense(tmp_path):
    X, y = rare(5000, 50)
    X[np.abs(X) < 0.5] = 0
    csr = scipy.sparse.csr_array(X)
    with create_csr_store(tmp_path / "csr.zarr", 3, dtype="float64") as writer:
        writer.append(csr, y)
    fit = {"n_clusters": 40, "max_rounds": 2}
    model = make(n_jobs=1, **fit).fit(csr, y)
    for storage, n_jobs in ((tmp_path / "csr.zarr", 2), (scipy.sparse.csr_matrix(X), 2)):
        assert bits(make(n_jobs=n_jobs, **fit).fit(storage, y), csr) == bits(model, csr)
    assert np.mean(make(**fit).fit(X, y).predict(X) == model.predict(X)) > 0.98


def test_labels_go_to_a_store_and_models_to_a_pickle(tmp_path, three):
    X, y = three
    names = np.array(["a", "b", "c"])[y]
    model = make(n_clusters=50).fit(X, names)
    assert model.predict(X, out=tmp_path / "labels.zarr") is None
    written = zarr.open_array(tmp_path / "labels.zarr", mode="r")[:]
    np.testing.assert_array_equal(model.classes_[written], model.predict(X))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.classes_, model.classes_)
    assert again.score(X, names) == model.score(X, names)
    assert json.dumps(again.report_) == json.dumps(model.report_)


def test_a_store_carries_its_labels(tmp_path, data):
    X, y = data
    with create_dense_store(tmp_path / "rows.zarr", 3, dtype="float64") as writer:
        writer.append(X, y)
    np.testing.assert_array_equal(open_class_labels(tmp_path / "rows.zarr"), y)
    model = make().fit(tmp_path / "rows.zarr")
    assert model.score(tmp_path / "rows.zarr") == make().fit(X, y).score(X, y)


def test_rows_given_many_times_are_fewer_clusters():
    X = np.repeat(np.arange(12.0).reshape(6, 2), 200, axis=0)
    y = (X[:, 0] == 0).astype(int)
    y[:190] = 0
    model = make(n_clusters=50, class_weight="balanced").fit(X, y)
    assert model.history_["representatives"].max() <= 6


# -- columns, tables and scores -----------------------------------------------------------------------


@pytest.mark.parametrize("scale", WISHES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_raw_columns_are_scaled_as_those_of_clusterers(scale, n_classes):
    X, y = raw(300)
    y = np.minimum(y, n_classes - 1)
    model = SupportClusterMachine(scale=WISHES[scale], random_state=0).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.95
    expected = front_door(scale=WISHES[scale]).fit(X).model_.scaling
    for array in ("mean", "deviation", "units"):
        np.testing.assert_array_equal(getattr(model.model_.scaling, array), getattr(expected, array))


def test_frames_and_tables_name_the_class(tmp_path, three):
    X, y = three
    model = make(n_clusters=50).fit(X, np.array(["a", "b", "c"])[y])
    frame, ordered = model.to_frame(X), np.sort(model.decision_function(X))
    assert frame.columns.tolist() == ["class", "margin"]
    np.testing.assert_array_equal(frame["class"], model.predict(X))
    np.testing.assert_array_equal(frame["margin"], ordered[:, -1] - ordered[:, -2])
    model.predict(X, out=tmp_path / "classes.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "classes.csv")[["class", "margin"]], frame)


def test_scores_take_weights_and_name_other_classes():
    X = make_blobs(40)
    y = (X[:, 0] > 0).astype(int)
    model = SupportClusterMachine(random_state=0, n_jobs=1).fit(X, y)
    assert model.score(X, y, np.arange(1.0, 41)) == 1.0
    for labels, weights, name in ((y.astype(str), None, "classes_"), (y, -np.ones(40), "sample_weight")):
        with pytest.raises(InputError, match=rf"^[^\n]*{name}[^\n]*\.$"):
            model.score(X, labels, weights)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"C": 0}, "C=0 is out of range"),
        ({"kernel": "sigmoid"}, "kernel='sigmoid' is unknown"),
        ({"n_clusters": 0}, "n_clusters=0 is out of range"),
        ({"n_clusters": 2941}, "n_clusters=2941 is more than the 2940 rows of a class"),
        ({"n_clusters": 61, "clustered": "both"}, "n_clusters=61 is more than the 60 rows of a class"),
        ({"shrink_threshold": -1}, "shrink_threshold=-1 is out of range"),
        ({"stop": "never"}, "stop='never' is unknown"),
        ({"stop": "miss-rate", "level": 1.5}, "level=1.5 is out of range"),
        ({"level": -0.1}, "level=-0.1 is out of range"),
        ({"max_rounds": 0}, "max_rounds=0 is out of range"),
        ({"representative": "mean"}, "representative='mean' is unknown"),
        ({"clustered": "positives"}, "clustered='positives' is unknown"),
        ({"class_weight": "heavy"}, "class_weight='heavy' is unknown"),
        ({"class_weight": {2: 1.0}}, "class_weight names the class 2, which y does not have"),
        ({"class_weight": {1: -1.0}}, "class_weight of 1 is -1.0"),
    ],
)
def test_bad_parameters_are_one_sentence(data, changes, sentence):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$") as refused:
        make(**changes).fit(*data)
    assert sentence in str(refused.value)


def test_bad_classes_are_one_sentence(data, tmp_path):
    X, y = data
    zarr.create_array(tmp_path / "bare.zarr", data=X)
    missing = np.where(np.arange(len(y)) == 7, np.nan, y)
    spoiled = X.copy()
    spoiled[17, 1] = np.nan
    for rows, labels, sentence in [
        (X, None, "requires y to be passed"),
        (tmp_path / "bare.zarr", None, "has no labels beside its rows"),
        (X, y[:-1], "y has 2999 labels for the 3000 rows"),
        (tmp_path / "bare.zarr", y[:-1], "y has 2999 labels for the 3000 rows"),
        (X, np.zeros_like(y), "all rows are of the class 0"),
        (X, missing, "Input y contains NaN"),
        (X, X[:, 0], "Unknown label type"),
        (X, X, "give y as one class a row"),
        (X, tmp_path / "bare.zarr", "is no array of one label a row"),
        (spoiled, y, "row 17"),
    ]:
        with pytest.raises(ValueError, match=r"^[^\n]*\.$") as refused:
            make().fit(rows, labels)
        assert sentence in str(refused.value)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", NO_VALUES)
def test_what_is_no_class_a_row_is_one_sentence(kind):
    with pytest.raises(InputError, match=r"^[^\n]*y [^\n]*$"):
        SupportClusterMachine(random_state=0, n_jobs=1).fit(make_blobs(40), NO_VALUES[kind]())


@pytest.mark.parametrize("exchange", [swap, stale])
def test_classes_that_are_not_what_was_written_are_refused(tmp_path, monkeypatch, exchange):
    monkeypatch.setattr("mmcnb.stores._write.LABEL_CHUNK_ROWS", CHUNK)
    write(tmp_path / "other.zarr", "dense", 1)
    store = write(tmp_path / "rows.zarr", "dense", 0)
    exchange(store, "y")
    with pytest.raises(DamagedStoreError, match=MATCH):
        read_classes(store / "y", store, mmcnb.open_samples(store))


def test_no_file_is_written_that_cannot_be_read(tmp_path, data):
    with pytest.raises(InputError, match=r"^SupportClusterMachine is not written [^\n]*with pickle\.$"):
        make().fit(*data).save(tmp_path / "model")
    assert not any(tmp_path.iterdir())

"""The choice without labels: the number of clusters, how far to trust them, and the confidence of rows."""

import warnings
from itertools import product

import numpy as np
import pytest
import zarr
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.errors import ClusterWarning, InputError
from mmcnb.estimators.choice import CLEAR_VALLEY, FEW_ROWS, trust
from mmcnb.features.confidence import kept_shares
from mmcnb.features.valley import surroundings
from mmcnb.synthetic import make_shape


def front_door(n_clusters=2, **parameters):
    return mmcnb.MaximumMarginClustering(n_clusters, random_state=0, **parameters)


def cloud(n=600, seed=0):
    """One group of rows, which nothing parts."""
    return np.random.default_rng(seed).standard_normal((n, 5))


# -- the number of clusters --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["two-moons", "four-moons", "scattered-blobs", "seven-blobs", "cube-corners"]
)
@pytest.mark.parametrize("asked", [None, "auto"])
def test_the_number_of_clusters_is_found(name, asked):
    X, y = make_shape(name, random_state=0)
    model = front_door(asked).fit(X)
    assert model.n_clusters_ == y.max() + 1
    assert np.unique(model.labels_).size == model.n_clusters_
    numbers = model.report_["numbers"]
    assert [one["n_clusters"] for one in numbers] == list(range(2, 13))
    assert max(numbers, key=lambda one: one["score"])["n_clusters"] == model.n_clusters_
    assert {one["n_clusters"] for one in model.report_["candidates"]} == {model.n_clusters_}


def test_no_more_clusters_are_tried_than_asked_for_or_than_rows_allow():
    X, _ = make_shape("seven-blobs", random_state=0)
    assert front_door(None, max_clusters=4).fit(X).report_["numbers"][-1]["n_clusters"] == 4
    few = front_door(None).fit(cloud(22)).report_["numbers"]
    assert [one["n_clusters"] for one in few] == [2, 3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["graph", "rbf"])
def test_the_number_is_chosen_for_a_given_kernel_too(kernel):
    X, y = make_shape("seven-blobs", random_state=0)
    model = front_door(None, kernel=kernel).fit(X)
    assert (model.n_clusters_, model.kernel_) == (7, kernel)
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.slow
def test_known_labels_are_the_least_number_that_is_tried():
    X, y = make_shape("seven-blobs", random_state=0)
    rows = {int(np.flatnonzero(y == one)[0]): one for one in range(5)}
    numbers = front_door(None).fit(X, partial_labels=rows).report_["numbers"]
    assert numbers[0]["n_clusters"] == 5


# -- the report --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [2, None])
def test_what_is_told_does_not_depend_on_storage_threads_or_weights_of_one(tmp_path, n_clusters):
    X, _ = make_shape("three-bars", 900, random_state=0)
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(123, 2))
    settings = {"n_refits": 2, "kernel": mmcnb.GraphKernel(n_nodes=400), "max_clusters": 4}
    expected = front_door(n_clusters, n_jobs=1, **settings).fit(X)
    stored = front_door(n_clusters, n_jobs=3, **settings).fit(tmp_path / "a.zarr")
    weighted = front_door(n_clusters, **settings).fit(X, sample_weight=np.ones(900))
    assert expected.report_ == stored.report_ == weighted.report_
    np.testing.assert_array_equal(stored.confidence(tmp_path / "a.zarr"), expected.confidence(X))
    stored.save(tmp_path / "a.model")
    read = mmcnb.load(tmp_path / "a.model")
    assert (read.report_, read.n_clusters_) == (stored.report_, stored.n_clusters_)
    np.testing.assert_array_equal(read.confidence(X), expected.confidence(X))


def test_a_gap_is_trusted_and_a_cut_through_a_group_is_not():
    X, _ = make_shape("two-moons", 600, random_state=0)
    assert front_door().fit(X).report_["trust"]["level"] == "high"
    with pytest.warns(ClusterWarning, match="may be none: (rows at the boundary|searches end)"):
        model = front_door().fit(cloud())
    trust = model.report_["trust"]
    assert trust["level"] == "low"
    assert trust["valley"] < CLEAR_VALLEY
    assert trust["reason"].count(". ") == 0


def test_searches_that_disagree_are_not_trusted():
    X = cloud() + 20.0 * (np.arange(600) % 2)[:, None]
    around, labels = surroundings(X, np.random.RandomState(0)), np.arange(600) % 2
    assert trust(around, labels, 0.61)["level"] == "high"
    doubted = trust(around, labels, 0.59)
    assert doubted["level"] == "low"
    assert doubted["reason"].startswith("searches end in different clusters (agreement 0.59)")


def test_two_clusters_that_touch_are_named():
    rng = np.random.default_rng(0)
    centres = [*product([0.0, 4.5, 9.0, 13.5], repeat=2), (-2.8, 0.0)]
    group = np.repeat(range(17), 200)
    X = rng.standard_normal((3400, 2)) + np.array(centres)[group]
    found = trust(surroundings(X, np.random.RandomState(0)), group)
    assert found["weakest_valley"] < CLEAR_VALLEY < found["valley"]
    assert found["level"] == "medium"
    assert found["reason"].startswith("hardly any gap parts the clusters 0 and 16 (valley")


def test_few_rows_are_never_sure():
    X = cloud(FEW_ROWS - 20) + 20.0 * (np.arange(FEW_ROWS - 20) % 2)[:, None]
    assert front_door().fit(X).report_["trust"]["level"] == "medium"
    assert front_door(1).fit(X).report_["trust"]["level"] == "high"
    more = np.concatenate([X, X + 0.01])
    assert front_door().fit(more).report_["trust"]["level"] == "high"


@pytest.mark.slow
def test_rows_that_are_nearly_all_equal_are_doubted():
    X = np.zeros((6000, 2))
    X[:4] = [[1, 0], [0, 1], [5, 5], [5, 6]]
    model = front_door().fit(X)
    assert model.report_["trust"]["level"] != "high"


def test_a_fit_that_did_not_converge_says_so():
    X = cloud(3000)
    with pytest.warns(ConvergenceWarning, match="did not converge within max_passes=1; raise it") as caught:
        model = mmcnb.UnsupervisedRLS(2, max_passes=1, random_state=0).fit(X)
    assert not model.converged_
    assert any(sentence in str(one.message) for one in caught for sentence in model.report_["warnings"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert front_door().fit(make_shape("two-moons", 400, random_state=0)[0]).converged_


# -- confidence --------------------------------------------------------------------------------


def test_confidence_rises_with_the_margin():
    X, _ = make_shape("noisy-moons", random_state=0)
    model = front_door(n_refits=3).fit(X)
    confidence, margin = model.confidence(X), np.abs(model.decision_function(X))
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert (np.diff(confidence[np.argsort(margin)]) >= -1e-12).all()
    new, _ = make_shape("noisy-moons", 100, random_state=1)
    assert model.confidence(new).shape == (100,)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_confidence_is_the_share_that_fits_to_new_samples_keep(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 3000)
    X = rng.standard_normal((3000, 2)) + 2.2 * y[:, None]
    fits = [front_door(kernel="rbf", n_refits=2 * (i == 0)).fit(X[i::4]) for i in range(3)]
    new = X[3::4]
    kept = kept_shares([fit.predict(new).astype(np.int64) for fit in fits], 2)
    assert fits[0].confidence(new).mean() == pytest.approx(kept.mean(), abs=0.05)


def test_what_cannot_be_is_refused():
    X, _ = make_shape("two-moons", 100, random_state=0)
    for parameters, told in (
        ({"n_refits": 1}, "n_refits=1 leaves nothing to compare; give 0, or at least 2"),
        ({"max_clusters": 1}, "max_clusters=1 is out of range; give a whole number of at least 2"),
        ({"n_clusters": "many"}, "n_clusters='many' is unknown; give a positive number or one of 'auto'"),
        ({"n_clusters": 2.5}, "n_clusters=2.5 is out of range"),
        ({"n_clusters": None, "cluster_sizes": [0.5, 0.5]}, "chooses their number; give n_clusters=2"),
    ):
        with pytest.raises(InputError, match=told):
            front_door().set_params(**parameters).fit(X)
    with pytest.raises(InputError, match="n_clusters=None needs 3 rows that differ, and there are 2"):
        front_door(None).fit(np.array([[0.0], [1.0]]))
    with pytest.raises(InputError, match="confidence needs refits of the sample; fit with n_refits=2"):
        front_door().fit(X).confidence(X)

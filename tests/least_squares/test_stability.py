"""Laws of the choice by stability: the same everywhere, no more reads, and blobs are told."""

import numpy as np
import pytest
import zarr
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from zarr.storage import LocalStore

import mmcnb
from mmcnb.errors import InputError
from mmcnb.features.kernel import Kernel
from mmcnb.least_squares.stability import (
    ALPHAS,
    BANDWIDTHS,
    draw_subsets,
    mean_adjusted_rand_index,
    most_stable,
)
from mmcnb.samples import open_samples
from mmcnb.stores import create_dense_store
from tests import reference
from tests.samples.test_reads import RecordingStore


def moons(n=300, seed=1):
    X, y = make_moons(n, noise=0.1, random_state=seed)
    return X.astype(np.float32), y


def rls(**parameters):
    settings = {"alpha": "auto", "n_init": 1, "sample_size": 150, "n_landmarks": 40, "random_state": 0}
    return mmcnb.UnsupervisedRLS(2, **settings | parameters)


def test_agreement_is_the_mean_over_all_pairs():
    rng = np.random.default_rng(0)
    labelings = [rng.integers(0, 3, 50) for _ in range(3)]
    pairs = [(0, 1), (0, 2), (1, 2)]
    wanted = np.mean([adjusted_rand_score(labelings[a], labelings[b]) for a, b in pairs])
    assert mean_adjusted_rand_index(labelings) == pytest.approx(wanted)


def test_subsets_are_bounded_and_rise():
    for n, size in ((30, 20), (10_000, 1000)):
        subsets = draw_subsets(n, 2, 3, np.random.RandomState(0))
        assert [len(rows) for rows in subsets] == [size] * 3
        assert all((np.diff(rows) > 0).all() and rows[-1] < n for rows in subsets)
        assert not np.array_equal(subsets[0], subsets[1])
    with pytest.raises(InputError, match=r"subsets of 4 of the 6 rows .* too few for n_clusters=4"):
        draw_subsets(6, 4, 3, np.random.RandomState(0))


def test_the_clearly_most_stable_wins_and_otherwise_the_default():
    widths = [width for width in BANDWIDTHS for _ in ALPHAS]
    alphas = [alpha for _ in BANDWIDTHS for alpha in ALPHAS]
    default = 3 * BANDWIDTHS.index(0.55) + ALPHAS.index(1e-3)
    for number in range(9):
        stabilities = np.full(9, 0.5)
        stabilities[number] = 0.9
        assert most_stable(stabilities, widths, alphas) == number
        stabilities[number] = 0.55
        assert most_stable(stabilities, widths, alphas) == default


@pytest.fixture(scope="module")
def chosen():
    """Moons that are told apart best by another setting than the default."""
    X, y = moons(600)
    given = {"n_init": 4, "sample_size": None, "n_landmarks": 100}
    return y, rls(**given).fit(X), rls(**given, alpha=1e-3).fit(X)


def test_auto_is_at_least_as_good_as_the_default_on_moons(chosen):
    y, auto, default = chosen
    scores = [adjusted_rand_score(y, model.labels_) for model in (auto, default)]
    assert scores[0] >= scores[1]
    assert scores[0] > 0.95


def test_the_setting_taken_is_the_most_stable_of_those_reported(chosen):
    _, model, default = chosen
    settings = model.report_["settings"]
    assert len(settings) == len(BANDWIDTHS) * len(ALPHAS)
    assert {one["alpha"] for one in settings} == set(ALPHAS)
    assert all(-1 <= one["stability"] <= 1 for one in settings)
    (taken,) = [one for one in settings if (one["gamma"], one["alpha"]) == (model.gamma_, model.alpha_)]
    assert taken["stability"] == pytest.approx(max(one["stability"] for one in settings))
    (usual,) = [one for one in settings if (one["gamma"], one["alpha"]) == (default.gamma_, default.alpha_)]
    assert usual["stability"] < taken["stability"] - 0.1


def test_the_objective_is_that_of_the_chosen_setting():
    X, _ = moons(300)
    model = rls(n_landmarks=300, sample_size=300).fit(X.astype(np.float64))  # the sample is the whole
    K = reference.centred(Kernel("rbf", model.gamma_)(X.astype(np.float64), X.astype(np.float64)))
    R = K @ np.linalg.inv(K + model.alpha_ * 300 * np.eye(300))
    J = sum(R[np.ix_(rows, rows)].sum() / rows.sum() for rows in (model.labels_ == 0, model.labels_ == 1))
    assert model.objective_ == pytest.approx(J, rel=1e-3)


def test_a_given_width_or_another_kernel_leaves_the_ridge_to_choose():
    X, _ = moons()
    for parameters in ({"gamma": 2.0}, {"gamma": "mean"}, {"kernel": "linear"}):
        model = rls(**parameters).fit(X)
        assert len(model.report_["settings"]) == len(ALPHAS)
        assert {one["gamma"] for one in model.report_["settings"]} == {model.gamma_}
    assert model.alpha_ in ALPHAS


def test_the_fit_is_the_one_with_the_chosen_numbers_given(chosen):
    _, auto, _ = chosen
    given = mmcnb.UnsupervisedRLS(**auto.get_params() | {"gamma": auto.gamma_, "alpha": auto.alpha_})
    given.fit(moons(600)[0])
    np.testing.assert_array_equal(given.labels_, auto.labels_)
    assert given.objective_ == auto.objective_


def test_a_number_is_kept_and_tried_against_nothing():
    X, _ = moons()
    model = rls(alpha=2e-3).fit(X)
    assert model.alpha_ == 2e-3
    assert "settings" not in model.report_


def test_same_bits_from_memory_and_stores_at_any_number_of_threads(tmp_path):
    X, _ = moons(5000)
    zarr.create_array(tmp_path / "bare.zarr", data=X, chunks=(777, 1))
    with create_dense_store(tmp_path / "ours.zarr", 2) as writer:
        writer.append(X)
    storages = ((X, 1), (X, 2), (tmp_path / "bare.zarr", 1), (tmp_path / "ours.zarr", 2))
    models = [rls(n_jobs=n_jobs).fit(storage) for storage, n_jobs in storages]
    for model in models[1:]:
        assert model.report_ == models[0].report_
        assert (model.gamma_, model.alpha_) == (models[0].gamma_, models[0].alpha_)
        np.testing.assert_array_equal(model.labels_, models[0].labels_)


def test_auto_reads_the_store_no_more_often(tmp_path):
    X, _ = moons(9000)
    with create_dense_store(tmp_path / "rows.zarr", 2) as writer:
        writer.append(X)
    counts = []
    for alpha in (1e-3, "auto"):
        store = RecordingStore(LocalStore(tmp_path / "rows.zarr"))
        samples = open_samples(zarr.open_group(store, mode="r"))
        samples.is_reopenable = True
        store.gets.clear()
        history = rls(alpha=alpha, max_passes=1).fit_model(samples).history_
        counts.append((history["reads"].iloc[-1], dict(store.gets)))
    assert counts[0] == counts[1]


def test_weights_and_more_clusters_are_taken():
    X, y = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
    model = rls().set_params(n_clusters=4).fit(X, sample_weight=np.where(np.arange(300) % 2, 1.0, 1.5))
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_the_choice_is_kept_in_a_file_and_in_a_checkpoint(tmp_path):
    X, _ = moons()
    model = rls(checkpoint=tmp_path / "run").fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert again.alpha == "auto"
    assert (again.alpha_, again.gamma_, again.report_) == (model.alpha_, model.gamma_, model.report_)
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    resumed = rls(checkpoint=tmp_path / "run").fit(X)
    assert resumed.alpha_ == model.alpha_
    np.testing.assert_array_equal(resumed.labels_, model.labels_)


def test_bad_ridges_and_samples_get_one_sentence():
    X, _ = moons()
    with pytest.raises(InputError, match="alpha='best' is unknown; give a positive number or one of 'auto'"):
        rls(alpha="best").fit(X)
    with pytest.raises(InputError, match="subsets of 4 of the 6 rows"):
        rls(sample_size=6).set_params(n_clusters=5).fit(X)

"""Noise: rows far out of their cluster are labelled -1, by the fit as by its model, and counted apart."""

import itertools

import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.stores import create_dense_store
from tests.estimators.front_door import WAYS, front_door

WITH_FEWER_NODES = WAYS | {"fewer nodes": (3, {"n_nodes": 150})}


def groups(n=400, n_far=12, seed=0):
    """Three round groups, and rows far out; which these are."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = 12.0 * np.eye(3)[y] + rng.standard_normal((n, 3))
    far = rng.permutation(n)[:n_far]
    X[far] = rng.uniform(-60, 60, (n_far, 3))
    return X, np.isin(np.arange(n), far), y


X, IS_FAR, Y = groups()


@pytest.mark.parametrize(
    ("way", "noise"), list(zip(WITH_FEWER_NODES, itertools.cycle(["auto", 0.1])))
)
def test_noise_has_the_largest_scores_and_changes_no_other_label(tmp_path, way, noise):
    n_clusters, parameters = WITH_FEWER_NODES[way]
    rows = np.abs(X) + 1 if way == "directions" else X
    model = front_door(n_clusters, noise=noise, **parameters).fit(rows)
    labels = model.labels_
    scores = model.outlier_score_
    assert (labels.dtype, scores.dtype, scores.shape) == (np.int32, np.float32, (400,))
    np.testing.assert_array_equal(model.predict(rows), labels)
    is_noise = labels == -1
    assert 0 < is_noise.sum() < 200
    assert scores[is_noise].min() >= scores[~is_noise].max()
    # sizes and numbers are those of the other rows
    kept = labels[~is_noise]
    assert model.report_["noise"] == is_noise.sum()
    assert (
        model.report_["sizes"]
        == np.bincount(kept, minlength=model.n_clusters_).tolist()
    )
    _, first = np.unique(kept, return_index=True)
    assert (np.diff(first) > 0).all()
    # which have the labels and probabilities that they have without noise
    plain = front_door(n_clusters, **parameters).fit(rows)
    assert adjusted_rand_score(plain.labels_[~is_noise], kept) == 1
    assert model.objective_ == plain.objective_
    shares = model.predict_proba(rows)
    np.testing.assert_array_equal(
        np.sort(shares, axis=1), np.sort(plain.predict_proba(rows), axis=1)
    )
    for values in (shares, model.decision_function(rows)):
        np.testing.assert_array_equal(values.argmax(axis=1)[~is_noise], kept)
    for one in (model, plain):
        np.testing.assert_allclose(
            one.score_outliers(rows), scores, rtol=1e-6, atol=1e-6
        )
    assert not hasattr(plain, "outlier_score_")
    assert "noise" not in plain.report_
    np.testing.assert_array_equal(model.to_frame()["cluster"], labels)
    model.save(tmp_path / "a.model")
    np.testing.assert_array_equal(
        mmcnb.load(tmp_path / "a.model").predict(rows), labels
    )


def test_rows_far_out_are_noise_and_score_more_the_farther():
    model = front_door(3, noise="auto", scale=None).fit(X)
    assert (model.labels_[IS_FAR] == -1).all()
    assert (model.labels_[~IS_FAR] == -1).mean() < 0.1
    assert (
        adjusted_rand_score(Y[model.labels_ >= 0], model.labels_[model.labels_ >= 0])
        == 1
    )
    distances = np.array([0, 4, 8, 30, 200, 1e6])
    scores = model.score_outliers([12.0, 0, 0] + distances[:, None] * [1.0, 0, 0])
    assert (np.diff(scores) > 0).all()
    assert model.predict([[1e6, 1e6, 1e6], [12.0, 0.0, 0.0]])[0] == -1


@pytest.mark.parametrize(
    ("share", "n_nodes"), [(0.02, 20_000), (0.3, 20_000), (0.1, 300)]
)
def test_a_share_leaves_out_about_so_many_rows(share, n_nodes):
    rows, _, _ = groups(1500)
    model = front_door(3, noise=share, n_nodes=n_nodes).fit(rows)
    is_noise = model.labels_ == -1
    assert is_noise.mean() == pytest.approx(
        share, abs=1 / 1500 if n_nodes > 1500 else 0.03
    )
    new, _, _ = groups(1500, seed=1)
    assert (model.predict(new) == -1).mean() == pytest.approx(share, abs=0.05)


def test_a_share_is_of_the_weights():
    weights = np.random.default_rng(0).integers(1, 5, 400)
    weighted = front_door(3, noise=0.1).fit(X, sample_weight=weights)
    report = weighted.report_
    assert report["noise"] == weights[weighted.labels_ == -1].sum()
    assert 0.1 * weights.sum() - 5 < report["noise"] <= 0.1 * weights.sum() + 1e-9
    assert report["sizes"] == [weights[weighted.labels_ == k].sum() for k in range(3)]
    repeated = front_door(3, noise=0.1).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(
        np.repeat(weighted.labels_, weights), repeated.labels_
    )
    assert (repeated.report_["sizes"], repeated.report_["noise"]) == (
        report["sizes"],
        report["noise"],
    )


@pytest.mark.parametrize(("count", "is_noise"), [(1, True), (10, False), (25, False)])
def test_ten_equal_rows_far_out_are_no_noise(count, is_noise):
    rows = np.r_[groups(n_far=0)[0], np.full((count, 3), 50.0)]
    model = front_door(3, noise="auto", scale=None).fit(rows)
    assert (model.labels_[400:] == -1).all() == is_noise
    assert (model.outlier_score_[400:] > 0).all() == is_noise


@pytest.mark.parametrize("n_clusters", [2, 3])  # a machine, and the vote of the nodes
def test_a_checkpoint_and_labels_that_are_written_have_the_same_noise(
    tmp_path, n_clusters
):
    rows = groups(9000, 300)[0].astype(np.float32)
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(rows)
    settings = {"n_nodes": 300, "noise": "auto"}
    expected = front_door(n_clusters, **settings).fit(rows)
    kept = front_door(n_clusters, checkpoint=tmp_path / "run", **settings)
    for _ in range(2):
        kept.fit(tmp_path / "rows.zarr")
        assert kept.labels_.tobytes() == expected.labels_.tobytes()
        assert kept.outlier_score_.tobytes() == expected.outlier_score_.tobytes()
    bare = front_door(n_clusters, **settings).fit_model(
        rows, out=tmp_path / "labels.zarr"
    )
    np.testing.assert_array_equal(
        zarr.open_array(tmp_path / "labels.zarr", mode="r")[:], expected.labels_
    )
    assert not hasattr(bare, "outlier_score_")


def test_sparse_rows_have_noise():
    rows = np.where(np.abs(X) < 1, 0, X)
    dense = front_door(3, noise=0.1, scale=None).fit(rows)
    sparse = front_door(3, noise=0.1, scale=None).fit(scipy.sparse.csr_array(rows))
    np.testing.assert_array_equal(sparse.labels_ == -1, dense.labels_ == -1)
    np.testing.assert_allclose(
        sparse.outlier_score_, dense.outlier_score_, rtol=1e-4, atol=1e-4
    )


def test_scores_of_an_earlier_fit_are_gone():
    model = front_door(3, noise="auto").fit(X)
    assert not hasattr(model.set_params(noise=None).fit(X), "outlier_score_")
    assert (model.labels_ >= 0).all()


@pytest.mark.parametrize("noise", ["auto", 0.2])
def test_equal_rows_are_no_noise_and_one_cluster_has_some(noise):
    model = front_door(noise=noise).fit(np.ones((30, 1)))
    assert (model.labels_.tolist(), model.outlier_score_.tolist()) == (
        [0] * 30,
        [0.0] * 30,
    )
    rows = np.r_[
        np.random.default_rng(0).standard_normal((400, 3)), [[40.0, 0, 0], [0, -50, 0]]
    ]
    model = front_door(noise=noise, scale=None).fit(rows)
    assert model.n_clusters_ == 1
    assert model.labels_[-2:].tolist() == [-1, -1]
    n_noise = (model.labels_ < 0).sum()
    assert (model.report_["noise"], model.report_["sizes"]) == (
        n_noise,
        [402 - n_noise],
    )
    np.testing.assert_array_equal(model.predict(rows), model.labels_)

"""Noise: rows far out of their cluster are labelled -1, by the fit as by its model, and counted apart."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.errors import MemoryLimitError
from mmcnb.stores import create_dense_store

pytestmark = pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
WAYS = {
    "found": (None, {}),
    "given": (3, {}),
    "two": (2, {}),
    "graph": (2, {"kernel": "graph"}),
    "Gaussian margin": (2, {"kernel": "rbf"}),
    "linear margin": (3, {"kernel": "linear"}),
    "directions": (3, {"metric": "cosine"}),
    "fewer nodes": (3, {"n_nodes": 150}),
}


def front_door(n_clusters=3, **parameters):
    return mmcnb.MaximumMarginClustering(n_clusters, random_state=0, **parameters)


def groups(n=400, n_far=12, seed=0):
    """Three round groups, and rows far out; which these are."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = 12.0 * np.eye(3)[y] + rng.standard_normal((n, 3))
    far = rng.permutation(n)[:n_far]
    X[far] = rng.uniform(-60, 60, (n_far, 3))
    return X, np.isin(np.arange(n), far), y


def rows_of(way):
    X, _, _ = groups()
    return np.abs(X) + 1 if way == "directions" else X


@pytest.mark.parametrize("noise", ["auto", 0.1])
@pytest.mark.parametrize("way", WAYS)
def test_labels_are_those_of_the_model_and_noise_has_the_largest_scores(tmp_path, way, noise):
    n_clusters, parameters = WAYS[way]
    X = rows_of(way)
    model = front_door(n_clusters, noise=noise, **parameters).fit(X)
    labels, scores = model.labels_, model.outlier_score_
    assert (labels.dtype, scores.dtype, scores.shape) == (np.int32, np.float32, (400,))
    np.testing.assert_array_equal(model.predict(X), labels)
    is_noise, threshold = labels == -1, model.model_.graph.threshold
    assert 0 < is_noise.sum() < 200
    np.testing.assert_allclose(model.score_outliers(X), scores, rtol=1e-6, atol=1e-6)
    assert (scores[is_noise] >= np.float32(threshold)).all()
    assert (scores[~is_noise] <= np.float32(threshold)).all()
    # sizes and numbers are those of the other rows
    assert model.report_["noise"] == is_noise.sum()
    assert model.report_["sizes"] == np.bincount(labels[~is_noise], minlength=model.n_clusters_).tolist()
    assert set(labels[~is_noise]) <= set(range(model.n_clusters_))
    _, first = np.unique(labels[~is_noise], return_index=True)
    assert (np.diff(first) > 0).all()
    # and so are those of its file
    model.save(tmp_path / "a.model")
    read = mmcnb.load(tmp_path / "a.model")
    np.testing.assert_array_equal(read.predict(X), labels)
    assert read.report_ == model.report_
    assert read.get_params() == model.get_params()


@pytest.mark.parametrize("way", WAYS)
def test_noise_changes_no_other_label_and_no_probability(way):
    n_clusters, parameters = WAYS[way]
    X = rows_of(way)
    plain = front_door(n_clusters, **parameters).fit(X)
    model = front_door(n_clusters, noise="auto", **parameters).fit(X)
    kept = model.labels_ >= 0
    assert adjusted_rand_score(plain.labels_[kept], model.labels_[kept]) == 1
    assert model.objective_ == plain.objective_
    shares = model.predict_proba(X)
    np.testing.assert_array_equal(shares.argmax(axis=1)[kept], model.labels_[kept])
    np.testing.assert_array_equal(model.decision_function(X).argmax(axis=1)[kept], model.labels_[kept])
    np.testing.assert_array_equal(np.sort(shares, axis=1), np.sort(plain.predict_proba(X), axis=1))
    np.testing.assert_allclose(plain.score_outliers(X), model.outlier_score_, atol=1e-6)
    assert not hasattr(plain, "outlier_score_")
    assert "noise" not in plain.report_


def test_rows_far_out_are_noise_and_score_more_the_farther():
    X, is_far, y = groups()
    model = front_door(noise="auto", scale=None).fit(X)
    assert (model.labels_[is_far] == -1).all()
    assert (model.labels_[~is_far] == -1).mean() < 0.1
    assert adjusted_rand_score(y[model.labels_ >= 0], model.labels_[model.labels_ >= 0]) == 1
    assert model.outlier_score_[is_far].min() > np.median(model.outlier_score_[~is_far])
    scores = model.score_outliers(
        12.0 * np.eye(3)[:1] + np.array([0, 4, 8, 30, 200, 1e6])[:, None] * [1.0, 0, 0]
    )
    assert (np.diff(scores) > 0).all()
    assert model.predict([[1e6, 1e6, 1e6], [12.0, 0.0, 0.0]]).tolist()[0] == -1


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("n_nodes", [20_000, 300])
def test_a_share_leaves_out_about_so_many_rows(share, n_nodes):
    X, _, _ = groups(1500)
    model = front_door(noise=share, n_nodes=n_nodes).fit(X)
    found = (model.labels_ == -1).mean()
    assert found == pytest.approx(share, abs=1 / 1500 if n_nodes > 1500 else 0.03)
    new, _, _ = groups(1500, seed=1)
    assert (model.predict(new) == -1).mean() == pytest.approx(share, abs=0.05)


def test_a_share_is_of_the_weights():
    X, _, _ = groups()
    weights = np.random.default_rng(0).integers(1, 5, 400)
    weighted = front_door(noise=0.1).fit(X, sample_weight=weights)
    assert weights[weighted.labels_ == -1].sum() <= 0.1 * weights.sum() + 1e-9
    assert weights[weighted.labels_ == -1].sum() > 0.1 * weights.sum() - 5
    report = weighted.report_
    assert report["noise"] == weights[weighted.labels_ == -1].sum()
    assert report["sizes"] == [weights[weighted.labels_ == k].sum() for k in range(3)]
    repeated = front_door(noise=0.1).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, weights), repeated.labels_)
    assert (repeated.report_["sizes"], repeated.report_["noise"]) == (report["sizes"], report["noise"])


@pytest.mark.parametrize(("count", "is_noise"), [(1, True), (10, False), (25, False)])
def test_ten_equal_rows_far_out_are_no_noise(count, is_noise):
    X, _, _ = groups(n_far=0)
    rows = np.r_[X, np.full((count, 3), 50.0)]
    model = front_door(noise="auto", scale=None).fit(rows)
    assert (model.labels_[400:] == -1).all() == is_noise
    assert (model.outlier_score_[400:] > 0).all() == is_noise


def test_unit_and_origin_do_not_matter():
    X, _, _ = groups()
    expected = front_door(noise="auto", scale=None).fit(X)
    for changed in (2.0**20 * X, X / 2**20, X + 64, -X, X[:, ::-1]):
        model = front_door(noise="auto", scale=None).fit(changed)
        np.testing.assert_allclose(model.outlier_score_, expected.outlier_score_, atol=1e-4)
        assert ((model.labels_ == -1) != (expected.labels_ == -1)).mean() < 0.01


def test_frames_and_tables_have_noise(tmp_path):
    X, _, _ = groups()
    model = front_door(noise=0.1).fit(X)
    frame = model.to_frame(X)
    np.testing.assert_array_equal(frame["cluster"], model.labels_)
    np.testing.assert_array_equal(model.to_frame()["cluster"], model.labels_)
    assert (frame["margin"] >= 0).all()
    for name in ("l.csv", "l.parquet"):
        model.predict(X, out=tmp_path / name)
        read = pd.read_csv(tmp_path / name) if name.endswith("csv") else pd.read_parquet(tmp_path / name)
        np.testing.assert_array_equal(read["cluster"], model.labels_)
        np.testing.assert_array_equal(read["margin"], frame["margin"])
    model.predict(X, out=tmp_path / "l.zarr")
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "l.zarr", mode="r")[:], model.labels_)


@pytest.mark.parametrize("way", ["given", "Gaussian margin"])
def test_storages_and_threads_have_the_same_noise_to_the_bit(tmp_path, way):
    n_clusters, parameters = WAYS[way]
    X = groups(9000, 300)[0].astype(np.float32)
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(X)
    settings = parameters | {"n_nodes": 600, "noise": "auto"}
    model = front_door(n_clusters, n_jobs=1, **settings).fit(X)
    again = front_door(n_clusters, n_jobs=3, **settings).fit(tmp_path / "rows.zarr")
    assert again.labels_.tobytes() == model.labels_.tobytes()
    assert again.outlier_score_.tobytes() == model.outlier_score_.tobytes()
    assert (again.report_["sizes"], again.report_["noise"]) == (
        model.report_["sizes"],
        model.report_["noise"],
    )
    bare = front_door(n_clusters, **settings).fit_model(X, out=tmp_path / "labels.zarr")
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "labels.zarr", mode="r")[:], model.labels_)
    assert not hasattr(bare, "outlier_score_")


def test_a_checkpoint_has_the_same_noise(tmp_path):
    X = groups(9000, 300)[0].astype(np.float32)
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(X)
    settings = {"n_nodes": 600, "noise": "auto"}
    expected = front_door(**settings).fit(tmp_path / "rows.zarr")
    kept = front_door(checkpoint=tmp_path / "run", **settings)
    for _ in range(2):
        kept.fit(tmp_path / "rows.zarr")
        assert kept.labels_.tobytes() == expected.labels_.tobytes()
        assert kept.outlier_score_.tobytes() == expected.outlier_score_.tobytes()


def test_sparse_rows_have_noise():
    X, _, _ = groups()
    X = np.where(np.abs(X) < 1, 0, X)
    dense, sparse = (front_door(noise=0.1, scale=None).fit(rows) for rows in (X, scipy.sparse.csr_array(X)))
    np.testing.assert_array_equal(sparse.labels_ == -1, dense.labels_ == -1)
    np.testing.assert_allclose(sparse.outlier_score_, dense.outlier_score_, rtol=1e-4, atol=1e-4)


def test_scores_are_streamed_to_a_store_or_refused_above_the_limit(tmp_path):
    X = np.repeat(groups()[0], 300, axis=0)
    model = front_door().fit(X[::300])
    whole = model.score_outliers(X)
    assert model.score_outliers(X, tmp_path / "scores.zarr") is None
    kept = mmcnb.open_samples(tmp_path / "scores.zarr")
    assert (kept.n_samples, kept.n_features) == (len(X), 1)
    assert kept.block(0, len(X))[:, 0].tobytes() == whole.tobytes()
    with pytest.raises(MemoryLimitError, match="give out, a path"):
        model.set_params(memory_limit=4 * len(X) - 1).score_outliers(X)


def test_scores_of_an_earlier_fit_are_gone():
    X, _, _ = groups()
    model = front_door(noise="auto").fit(X)
    assert not hasattr(model.set_params(noise=None).fit(X), "outlier_score_")
    assert (model.labels_ >= 0).all()


@pytest.mark.parametrize("noise", ["auto", 0.1])
def test_equal_rows_are_no_noise(noise):
    model = front_door(None, noise=noise).fit(np.ones((30, 1)))
    assert (model.labels_.tolist(), model.outlier_score_.tolist()) == ([0] * 30, [0.0] * 30)


@pytest.mark.parametrize("noise", ["auto", 0.2])
def test_one_cluster_has_noise_too(noise):
    X = np.r_[np.random.default_rng(0).standard_normal((400, 3)), [[40.0, 0, 0], [0, -50, 0]]]
    model = clone(front_door(None, noise=noise, scale=None)).fit(X)
    assert model.n_clusters_ == 1
    assert model.labels_[-2:].tolist() == [-1, -1]
    assert (model.report_["noise"], model.report_["sizes"]) == (
        (model.labels_ < 0).sum(),
        [(model.labels_ == 0).sum()],
    )
    np.testing.assert_array_equal(model.predict(X), model.labels_)

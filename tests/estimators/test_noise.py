"""Noise: rows far out of their cluster are labelled -1, by the fit as by its model, and counted apart."""

import itertools

import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.features.model import read_model, write_model
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
def test_noise_has_the_largest_scores_of_its_cluster_and_changes_no_other_label(
    tmp_path, way, noise
):
    n_clusters, parameters = WITH_FEWER_NODES[way]
    rows = np.abs(X) + 1 if way == "directions" else X
    model = front_door(n_clusters, noise=noise, **parameters).fit(rows)
    labels = model.labels_
    scores = model.outlier_score_
    assert (labels.dtype, scores.dtype, scores.shape) == (np.int32, np.float32, (400,))
    np.testing.assert_array_equal(model.predict(rows), labels)
    is_noise = labels == -1
    assert 0 < is_noise.sum() < 200
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
    for cluster in range(model.n_clusters_):
        inside = shares.argmax(axis=1) == cluster
        of_noise = scores[inside & is_noise]
        assert of_noise.min(initial=np.inf) >= scores[inside & ~is_noise].max()
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


@pytest.mark.parametrize("unit", [0.5, 2.5, 1 / 3])
def test_noise_is_counted_in_the_unit_of_the_weights(unit):
    weights = unit * np.random.default_rng(0).integers(1, 5, 400)
    model = front_door(3, noise=0.1).fit(X, sample_weight=weights)
    noise = weights[model.labels_ == -1].sum()
    assert model.report_["noise"] == pytest.approx(noise)
    total = model.report_["noise"] + sum(model.report_["sizes"])
    assert total == pytest.approx(weights.sum())


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


# -- clusters are kept or dropped whole ------------------------------------------------


def one_wide(seed, width, shape="normal", n=2500):
    """Three groups, and a fourth of 3 % of the rows that is wider; the group of each row."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 100)
    y = np.digitize(y, [45, 77, 97])
    draws = {
        "normal": rng.standard_normal((n, 4)),
        "uniform": rng.uniform(-1.7, 1.7, (n, 4)),
        "heavy": rng.standard_t(5, (n, 4)) / 1.3,
    }
    centres = np.array([[0, 0, 0, 0], [11, 0, 0, 0], [0, 11, 0, 0], [0, 0, 30, 12]])
    spread = np.array([1, 1, 1, width])[y]
    return centres[y] + draws[shape] * spread[:, None], y


@pytest.mark.parametrize("n_clusters", [None, 4])
@pytest.mark.parametrize(
    ("seed", "width", "shape"),
    [
        (0, 2.0, "normal"),
        (1, 2.5, "uniform"),
        (2, 3.0, "normal"),
        (3, 3.0, "heavy"),
        (4, 4.0, "normal"),
    ],
)
def test_a_wide_small_cluster_keeps_its_rows(n_clusters, seed, width, shape):
    rows, y = one_wide(seed, width, shape)
    model = front_door(n_clusters, noise="auto").fit(rows)
    assert model.n_clusters_ == 4
    assert model.report_["dropped"] == []
    of_wide = model.labels_[y == 3]
    number = np.bincount(of_wide + 1)[1:].argmax()
    assert np.mean(of_wide == number) >= 0.9
    assert not (model.labels_[y != 3] == number).any()


def among_scattered(seed=1):
    """Five groups in ten columns, and 300 rows scattered in the box around them."""
    rng = np.random.default_rng(seed)
    y = np.arange(1500) % 5
    rows = 15.0 * np.eye(10)[y] + rng.standard_normal((1500, 10))
    scattered = rng.permutation(1500)[:300]
    rows[scattered] = rng.uniform(rows.min(0), rows.max(0), (300, 10))
    y[scattered] = -1
    return rows, y


SCATTERED, SCATTERED_Y = among_scattered()


def number_of_layers_taken(model):
    return model.layers_["n_clusters"][model.layers_["taken"]].tolist()


@pytest.mark.parametrize(
    ("n_clusters", "noise"), [(None, "auto"), (6, "auto"), (6, 0.25)]
)
def test_a_cluster_of_scattered_rows_is_dropped_whole(tmp_path, n_clusters, noise):
    plain = front_door(n_clusters, scale=None).fit(SCATTERED)
    assert plain.n_clusters_ == 6
    sparse = np.bincount(plain.labels_[SCATTERED_Y == -1]).argmax()
    is_dropped = plain.labels_ == sparse
    model = front_door(n_clusters, noise=noise, scale=None).fit(SCATTERED)
    assert (model.labels_[is_dropped] == -1).all()
    assert np.mean(model.labels_[SCATTERED_Y == -1] == -1) > 0.95
    # whatever counts clusters counts those that are left
    report = model.report_
    kept = model.labels_[model.labels_ >= 0]
    assert model.n_clusters_ == len(report["sizes"]) == 5
    assert report["sizes"] == np.bincount(kept).tolist()
    assert min(report["sizes"]) > 0
    assert adjusted_rand_score(SCATTERED_Y[model.labels_ >= 0], kept) > 0.98
    assert number_of_layers_taken(model) == [5]
    assert model.predict_proba(SCATTERED).shape == (1500, 5)
    if n_clusters is None:
        assert report["number"]["n_clusters"] == 5
        assert report["number"]["reason"].startswith("5 clusters, because a cluster")
    # and says what was dropped, and why
    (dropped,) = report["dropped"]
    assert dropped["share"] == pytest.approx(is_dropped.mean())
    assert "as dense as elsewhere" in dropped["reason"]
    assert report["trust"]["level"] == "medium"
    assert report["trust"]["reason"].startswith("a cluster of scattered rows (")
    # the scores do not depend on it, and a file keeps it
    np.testing.assert_array_equal(
        model.score_outliers(SCATTERED), plain.score_outliers(SCATTERED)
    )
    np.testing.assert_array_equal(model.predict(SCATTERED), model.labels_)
    model.save(tmp_path / "a.model")
    loaded = mmcnb.load(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.predict(SCATTERED), model.labels_)
    assert loaded.report_["dropped"] == report["dropped"]


def test_a_cluster_larger_than_the_share_of_noise_is_not_dropped():
    model = front_door(6, noise=0.05, scale=None).fit(SCATTERED)
    assert model.n_clusters_ == 6
    assert model.report_["dropped"] == []
    assert np.mean(model.labels_ == -1) == pytest.approx(0.05, abs=0.002)


def test_known_labels_keep_a_cluster_of_scattered_rows():
    known = np.where(np.arange(1500) < 150, SCATTERED_Y + 1, -1)
    model = front_door(noise="auto", scale=None).fit(SCATTERED, partial_labels=known)
    assert model.report_["dropped"] == []


def test_scattered_rows_in_a_cluster_do_not_hide_each_other():
    """Most rows of the cluster that has them are noise, and trust says so."""
    model = front_door(5, noise="auto", scale=None, random_state=1).fit(SCATTERED)
    is_scattered = SCATTERED_Y == -1
    assert np.mean(model.labels_[is_scattered] == -1) > 0.95
    assert np.mean(model.labels_[~is_scattered] == -1) < 0.03
    assert model.report_["trust"]["level"] == "medium"
    assert model.report_["trust"]["reason"].startswith("most rows of a cluster are")


def test_a_weight_is_a_repetition_where_a_cluster_is_dropped():
    weights = np.random.default_rng(1).integers(1, 4, 1500)
    weighted = front_door(6, noise="auto", scale=None).fit(
        SCATTERED, sample_weight=weights
    )
    repeated = front_door(6, noise="auto", scale=None).fit(
        np.repeat(SCATTERED, weights, axis=0)
    )
    assert weighted.n_clusters_ == repeated.n_clusters_ == 5
    np.testing.assert_array_equal(
        np.repeat(weighted.labels_, weights), repeated.labels_
    )
    for name in ("sizes", "noise"):
        assert weighted.report_[name] == repeated.report_[name]
    shares = [model.report_["dropped"][0]["share"] for model in (weighted, repeated)]
    assert shares[0] == pytest.approx(shares[1])


def test_an_update_keeps_what_is_noise():
    model = front_door(noise="auto", scale=None).fit(SCATTERED)
    rows, y = among_scattered(seed=2)
    before = model.predict(rows)
    np.testing.assert_array_equal(model.update(rows).labels_, before)
    far = np.random.default_rng(2).normal(60.0, 1.0, (200, 10))
    model.update(np.vstack([rows[y >= 0][:300], far]))
    assert model.report_["changes"][-1]["change"] == "new"
    assert np.mean(model.labels_[300:] == 5) > 0.9
    after = model.predict(rows)
    assert np.mean(after[y == -1] == -1) > 0.9
    assert np.mean(after[y >= 0] == before[y >= 0]) > 0.97
    assert model.report_["trust"]["level"] != "high"


@pytest.mark.parametrize("noise", ["auto", 0.5, 0.95])
def test_every_cluster_keeps_a_row(noise):
    """Also among rows on a grid, whose distances are all equal."""
    grid = np.stack(np.meshgrid(*[np.arange(8.0)] * 2), axis=-1).reshape(-1, 2)
    rows = np.vstack([grid + centre for centre in ([0, 0], [40, 0], [0, 40])])
    model = front_door(3, noise=noise, scale=None).fit(rows)
    assert model.n_clusters_ == 3
    assert min(model.report_["sizes"]) > 0


def test_files_with_one_threshold_for_all_rows_label_as_they_did(tmp_path):
    model = front_door(3, noise="auto").fit(X)
    model.save(tmp_path / "new.model")
    header, arrays = read_model(tmp_path / "new.model")
    arrays["graph_threshold"] = np.array(1.5)
    write_model(tmp_path / "old.model", header, arrays)
    labels = mmcnb.load(tmp_path / "old.model").predict(X)
    np.testing.assert_array_equal(labels == -1, model.score_outliers(X) > 1.5)

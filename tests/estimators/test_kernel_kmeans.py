"""Kernel k-means, rows in any storage: k-means itself, kernel matrices, weights, bits, files, bad input."""

import re
import warnings

import dask.array
import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.errors import ClusterWarning, InputError
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import read_model, write_model
from mmcnb.least_squares.partition import canonical_labels
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS
from mmcnb.stores import create_csr_store, create_dense_store

N = 2 * GROUP_ROWS + 3001  # three groups of blocks, so that workers share them
QUICK = {"n_clusters": 4, "n_init": 2, "sample_size": 300, "n_landmarks": 12, "max_iter": 4, "n_jobs": 1}
CASES = {
    "full": {},
    "scaled": {"scale": "standard", "kernel": "poly", "degree": 2, "gamma": 0.1},
}
cases = pytest.mark.parametrize("case", CASES)


def groups(n, k=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return rng.uniform(-4, 4, (k, d))[y] + rng.standard_normal((n, d)), y


def whole(X, n_clusters, **parameters):
    """A fit whose sample is all rows, each of them a landmark."""
    settings = {"sample_size": len(X), "n_landmarks": len(X), "tol": 0, "random_state": 0} | parameters
    return mmcnb.KernelKMeans(n_clusters, **settings).fit(X)


# -- what is found ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_linear_kernel_ends_where_k_means_stands_still(seed):
    X, _ = groups(2000, seed=seed)
    model = mmcnb.KernelKMeans(5, kernel="linear", tol=0, sample_size=500, random_state=seed).fit(X)
    means = np.array([X[model.labels_ == h].mean(axis=0) for h in range(5)])
    plain = KMeans(5, init=means, n_init=1, tol=0, algorithm="lloyd").fit(X)
    assert model.converged_
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-5)
    np.testing.assert_array_equal(model.labels_, canonical_labels(plain.labels_))
    np.testing.assert_allclose(model.transform(X)[:, plain.predict(means)], plain.transform(X), rtol=1e-3)
    np.testing.assert_array_equal(model.labels_[model.transform(X).argmin(axis=0)], np.arange(5))


@pytest.mark.parametrize("weighted", [False, True])
def test_at_every_row_a_landmark_the_inertia_is_that_of_the_kernel_matrix(weighted):
    X, _ = groups(200)
    omega = np.random.default_rng(0).integers(1, 4, 200).astype(float) if weighted else np.ones(200)
    model = mmcnb.KernelKMeans(6, n_landmarks=200, tol=0, random_state=0).fit(X, sample_weight=omega)
    K, inertia = Kernel("rbf", model.gamma_)(X, X), 0.0
    for h in range(6):
        own = np.where(model.labels_ == h, omega, 0.0)
        assert model.cluster_sizes_[h] == own.sum()
        inertia += own @ np.diag(K) - own @ K @ own / own.sum()
    assert model.inertia_ == pytest.approx(inertia, rel=1e-4)
    assert model.objective_ == model.inertia_


@cases
def test_labels_are_predictions_numbered_by_first_row_and_the_inertia_falls(case):
    X, _ = groups(6000)
    model = mmcnb.KernelKMeans(**QUICK | CASES[case] | {"max_iter": 30, "random_state": 0, "tol": 0}).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, canonical_labels(model.labels_))
    np.testing.assert_array_equal(model.labels_, model.decision_function(X).argmax(axis=1))
    np.testing.assert_array_equal(np.bincount(model.labels_), model.cluster_sizes_)
    passes = model.history_[model.history_["stage"] == "all rows"]
    assert len(passes) == model.n_iter_ > 1
    assert (np.diff(passes["inertia"]) <= 0).all()
    assert passes["inertia"].iloc[-1] == model.inertia_
    if model.converged_:
        assert (model.transform(X).min(axis=1) ** 2).sum() == pytest.approx(model.inertia_, rel=1e-5)
    starts = model.history_[model.history_["stage"] == "sample"]
    assert model.report_["sample_inertia"] == starts["inertia"].min()
    assert len(starts) == 2


def test_a_ring_around_a_group_is_told_from_it_where_k_means_cuts_both():
    rng = np.random.default_rng(0)
    angle, y = rng.uniform(0, 2 * np.pi, 600), rng.integers(2, size=600)
    X = np.c_[np.cos(angle), np.sin(angle)] * np.where(y == 1, 3.0, 0.3)[:, None]
    X += 0.1 * rng.standard_normal((600, 2))
    model = mmcnb.KernelKMeans(2, gamma=0.5, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert adjusted_rand_score(y, KMeans(2, n_init=4, random_state=0).fit(X).labels_) < 0.5


def test_rows_of_weight_0_count_for_nothing_and_are_labelled_all_the_same():
    X, _ = groups(900)
    weights = np.random.default_rng(0).integers(0, 2, 900).astype(float)
    there = weights > 0
    settings = {"n_clusters": 5, "random_state": 0}
    model = mmcnb.KernelKMeans(**settings).fit(X, sample_weight=weights)
    alone = mmcnb.KernelKMeans(**settings).fit(X[there])
    assert model.inertia_ == pytest.approx(alone.inertia_, rel=1e-9)
    np.testing.assert_array_equal(canonical_labels(model.labels_[there]), alone.labels_)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_more_clusters_than_landmarks_are_no_matter():
    X, _ = groups(500)
    model = mmcnb.KernelKMeans(40, n_landmarks=10, gamma=0.1, random_state=0).fit(X)
    assert (np.bincount(model.labels_, minlength=40) > 0).all()


def test_one_cluster_and_as_many_as_rows():
    X, _ = groups(30)
    one = whole(X, 1)
    assert one.cluster_sizes_.tolist() == [30]
    assert one.inertia_ == pytest.approx(30 - Kernel("rbf", one.gamma_)(X, X).mean() * 30, rel=1e-4)
    every = whole(X, 30)
    assert every.inertia_ == pytest.approx(0, abs=1e-4)
    np.testing.assert_array_equal(every.labels_, np.arange(30))


def test_a_cluster_that_ends_empty_is_told(monkeypatch):
    X, _ = groups(300)

    def far(z, k, **_):
        return np.r_[z[:2], np.full((1, z.shape[1]), 99.0)], None

    monkeypatch.setattr("sklearn.cluster.kmeans_plusplus", far)
    with pytest.warns(ClusterWarning, match="1 of the 3 clusters contain no row") as caught:
        model = mmcnb.KernelKMeans(3, n_landmarks=300, random_state=0).fit(X)
    assert caught[0].filename == __file__
    assert model.cluster_sizes_[2] == 0


# -- one answer in every storage ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def dense():
    return groups(N, 4)[0].astype("f4")


@pytest.fixture(scope="module")
def stores(dense, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    zarr.create_array(folder / "30,000.zarr", data=dense, chunks=(30_000, 2))
    with create_dense_store(folder / "ours.zarr", 3, chunk_rows=3 * BLOCK_ROWS) as writer:
        writer.append(dense)
    with create_csr_store(folder / "csr.zarr", 3) as writer:
        writer.append(sparse_of(dense))
    return {name: folder / f"{name}.zarr" for name in ("30,000", "ours", "csr")}


def sparse_of(dense):
    return scipy.sparse.csr_array(np.where(dense > 0.5, dense, 0))


def fitted(case, X, sample_weight=None, **parameters):
    settings = QUICK | {"random_state": 0} | CASES[case] | parameters
    return mmcnb.KernelKMeans(**settings).fit(X, sample_weight=sample_weight)


def facts(model):
    """What must be the same to the bit."""
    told = model.history_[["stage", "start", "round", "inertia"]].to_numpy(dtype=str).tolist()
    rule = model.model_.rule
    arrays = model.labels_.tobytes(), rule.coef.tobytes(), rule.offset.tobytes()
    return *arrays, model.inertia_, model.report_, told


@pytest.mark.slow
@pytest.mark.parametrize(("case", "weighted"), [("full", False), ("scaled", True)])
def test_storages_threads_and_clusters_give_the_same_bits(dense, stores, dask_client, case, weighted):
    omega = np.random.default_rng(1).integers(0, 4, N).astype(float) if weighted else None
    expected = facts(fitted(case, dense, omega))
    lazy = dask.array.from_array(dense, chunks=(30_000, 3))
    ways = [
        (dense, {"n_jobs": 2}),
        (lazy, {"n_jobs": 2}),
        (stores["30,000"], {"n_jobs": 2}),
        (stores["ours"], {}),
    ]
    ways.append((stores["ours"], {"engine": dask_client(2)}))
    for number, (storage, manner) in enumerate(ways):
        assert facts(fitted(case, storage, omega, **manner)) == expected, number
    csr = facts(fitted(case, sparse_of(dense), omega))
    assert facts(fitted(case, stores["csr"], omega, n_jobs=2)) == csr


def test_dense_and_csr_rows_agree(dense):
    sparse = sparse_of(dense[:20_000])
    one, other = fitted("full", sparse), fitted("full", sparse.toarray())
    assert one.inertia_ == pytest.approx(other.inertia_, rel=1e-5)
    assert np.mean(one.labels_ == other.labels_) > 0.999


@pytest.mark.slow
@cases
def test_the_place_of_the_features_decides_the_reads_and_no_bit(stores, dense, keep_columns_in, case):
    expected = facts(fitted(case, dense))
    for store in ("memory", "scratch", "recompute"):
        keep_columns_in(store)
        model = fitted(case, stores["ours"], n_jobs=2)
        assert facts(model) == expected, store
        assert model.history_["reads"].iloc[-1] == (1 + model.n_iter_ if store == "recompute" else 2), store


@pytest.mark.slow
@cases
def test_a_checkpoint_of_some_passes_is_gone_on_from(stores, dense, tmp_path, case):
    expected = facts(fitted(case, stores["ours"], checkpoint=tmp_path / "kept"))
    assert facts(fitted(case, dense)) == expected
    passes = sorted((tmp_path / "kept" / "passes").iterdir())
    for entry in passes[len(passes) // 2 :]:
        entry.unlink()
    assert facts(fitted(case, stores["ours"], checkpoint=tmp_path / "kept")) == expected


def test_a_file_gives_the_model_back(tmp_path):
    X, _ = groups(300)
    model = mmcnb.KernelKMeans(4, random_state=0).fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    assert again.transform(X).tobytes() == model.transform(X).tobytes()
    for name in ("inertia_", "gamma_", "n_iter_", "converged_", "report_"):
        assert getattr(again, name) == getattr(model, name)


def test_a_model_of_0_2_may_name_the_algorithm_that_is_left(tmp_path):
    X, _ = groups(300)
    model = mmcnb.KernelKMeans(4, random_state=0).fit(X)
    model.save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    for algorithm in ("full", "mini-batch"):
        header["parameters"]["algorithm"] = algorithm
        write_model(tmp_path / algorithm, header, arrays)
    assert mmcnb.load(tmp_path / "full").predict(X).tobytes() == model.labels_.tobytes()
    with pytest.raises(
        InputError, match=r"^[^\n]*the parameter 'algorithm', which no [^\n]*; fit again[^\n]*\.$"
    ):
        mmcnb.load(tmp_path / "mini-batch")


# -- bad input -------------------------------------------------------------------------------------

BAD = {
    "n_clusters": 0,
    "kernel": "sigmoid",
    "gamma": -1.0,
    "n_landmarks": 0,
    "n_init": 0,
    "max_iter": 0,
    "tol": -1e-3,
    "sample_size": 1,
    "scale": "robust",
    "degree": 0,
    "coef0": np.nan,
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_parameter_is_named_with_its_value(name):
    with pytest.raises(InputError, match=re.escape(f"{name}={BAD[name]!r}")) as caught:
        mmcnb.KernelKMeans(**{name: BAD[name]}).fit(groups(30)[0])
    assert "\n" not in str(caught.value)


def test_rows_that_cannot_be_clustered_get_one_sentence():
    X, _ = groups(30)
    hole = X.copy()
    hole[3, 1] = np.nan
    twice = np.repeat(X[:3], 10, axis=0)
    for rows, k, match in (
        (X, 31, "n_clusters=31 is more than the 30 rows"),
        (twice, 4, "the sample has 3 rows that differ, fewer than n_clusters=4"),
        (hole, 2, "NaN at row 3, column 1"),
    ):
        with warnings.catch_warnings(), pytest.raises(InputError, match=re.escape(match)) as caught:
            mmcnb.KernelKMeans(k, random_state=0).fit(rows)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="sample_size=4 is smaller than n_clusters=5"):
        mmcnb.KernelKMeans(5, sample_size=4).fit(X)

"""Laws of k clusters by least squares: model, labels and objective agree, wherever the rows live."""

import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.errors import InputError, MemoryLimitError
from mmcnb.stores import create_dense_store


def blobs(n=900, k=3, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-4, 4, (k, 4))
    labels = np.arange(n) % k
    return (centres[labels] + 0.6 * rng.standard_normal((n, 4))).astype(np.float32), labels


def rls(n_clusters=3, **parameters):
    settings = {"n_init": 2, "sample_size": 200, "n_landmarks": 40, "random_state": 0} | parameters
    return mmcnb.UnsupervisedRLS(n_clusters=n_clusters, **settings)


def sums_of(model, X):
    """z and the sums of z by cluster, from scratch."""
    z = model.transform(X)
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    return z, np.array([z[model.labels_ == h].sum(axis=0) for h in range(model.n_clusters)]), sizes


@pytest.mark.parametrize("k", [2, 3, 5])
def test_clusters_are_found_and_numbered_by_their_first_row(k):
    X, y = blobs(k=k)
    model = rls(k).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    _, first = np.unique(model.labels_, return_index=True)
    assert (np.diff(first) > 0).all()


@pytest.mark.parametrize(
    "parameters", [{}, {"cluster_sizes": "equal"}, {"n_clusters": 2}, {"kernel": "linear"}]
)
def test_labels_sizes_and_objectives_are_those_of_the_model(parameters):
    X, _ = blobs()
    model = rls(**parameters).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, model.decision_function(X).argmax(axis=1))
    _, S, sizes = sums_of(model, X)
    np.testing.assert_array_equal(model.cluster_sizes_, sizes)
    n, k = len(X), model.n_clusters
    J = ((S**2).sum(axis=1) / n / sizes).sum()
    Q = k * n - 4 * (S**2).sum() / n + (4 - k) * (S.sum(axis=0) ** 2).sum() / n
    assert model.objective_ == pytest.approx(J, rel=1e-6)
    assert model.report_["one_against_all_objective"] == pytest.approx(Q, rel=1e-6)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_objective_is_at_most_one_less_than_the_clusters(k):
    X, _ = blobs(300)
    assert 0 < rls(k, sample_size=300).fit(X).objective_ <= k - 1


def test_a_pass_with_free_sizes_never_lowers_the_objective():
    X = make_moons(3000, noise=0.1, random_state=0)[0]
    history = rls(2, max_passes=8, sample_size=60, n_landmarks=30, alpha=1e-4).fit(X).history_
    passes = history[history["stage"] == "all rows"]["objective"]
    assert len(passes) > 1
    assert (np.diff(passes) >= -1e-9).all()


@pytest.mark.parametrize("shares", [[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]])
def test_sizes_that_are_held_are_kept(shares):
    X, _ = blobs(2000)
    sizes = rls(cluster_sizes=shares, sample_size=1000).fit(X).cluster_sizes_
    assert np.sort(sizes / 2000) == pytest.approx(np.sort(shares), rel=0.2)


@pytest.mark.parametrize("sparse", [False, True])
def test_same_bits_wherever_the_rows_live(tmp_path, sparse):
    X, _ = blobs(9000)
    X = np.where(X > 0, X, 0) if sparse else X
    storages = [scipy.sparse.csr_array(X), scipy.sparse.csr_matrix(X)] if sparse else [X]
    if not sparse:
        zarr.create_array(tmp_path / "bare.zarr", data=X, chunks=(777, 2))
        with create_dense_store(tmp_path / "ours.zarr", 4) as writer:
            writer.append(X)
        storages += [tmp_path / "bare.zarr", str(tmp_path / "ours.zarr")]
    models = [rls(n_jobs=n_jobs).fit(storage) for storage in storages for n_jobs in (1, 2)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_array_equal(model.model_.rule.coef, models[0].model_.rule.coef)
        assert model.objective_ == models[0].objective_


def test_dense_and_csr_rows_agree():
    X, _ = blobs()
    X = np.where(X > 0, X, 0)
    dense, sparse = rls().fit(X), rls().fit(scipy.sparse.csr_array(X))
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-6)
    assert np.mean(sparse.labels_ == dense.labels_) > 0.999


def test_few_reads_and_a_history_of_them(tmp_path):
    X, _ = blobs(9000)
    with create_dense_store(tmp_path / "rows.zarr", 4) as writer:
        writer.append(X)
    model = rls(max_passes=3).fit(tmp_path / "rows.zarr")
    last = model.history_.iloc[-1]
    assert last["reads"] + last["sweeps"] <= 4  # the sample, and a pass each
    assert {"sample", "all rows"} == set(model.history_["stage"])


def test_a_saved_model_labels_and_transforms_alike(tmp_path):
    X, _ = blobs()
    model = rls().fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.cluster_sizes_, model.cluster_sizes_)


def test_a_checkpoint_of_a_finished_fit_answers_without_a_read(tmp_path):
    X, _ = blobs(9000)
    with create_dense_store(tmp_path / "rows.zarr", 4) as writer:
        writer.append(X)
    settings = {"cluster_sizes": np.array([0.4, 0.3, 0.3]), "checkpoint": tmp_path / "run"}
    first, second = (rls(**settings).fit(tmp_path / "rows.zarr") for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert second.history_["reads"].max() == 0
    with pytest.raises(InputError, match=r"cluster_sizes is \[0.4, 0.3, 0.3\] there and 'auto' here"):
        rls(checkpoint=tmp_path / "run").fit(tmp_path / "rows.zarr")


def test_weights_count_in_the_sizes():
    X, y = blobs(300)
    twice = np.arange(300) % 3 == 0
    shares = [0.5, 0.25, 0.25]
    weighted = rls(cluster_sizes=shares).fit(X, sample_weight=np.where(twice, 2.0, 1.0))
    assert adjusted_rand_score(y, weighted.labels_) > 0.95
    assert weighted.cluster_sizes_.sum() == 400


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_clusters": 0}, "n_clusters=0 is out of range"),
        ({"n_clusters": 300, "sample_size": 1000}, "n_clusters=300 is more than the 200 rows"),
        ({"n_clusters": 30, "sample_size": 20}, "sample_size=20 is smaller than n_clusters=30"),
        ({"alpha": 0.0}, "alpha=0.0 is out of range"),
        ({"cluster_sizes": [0.5, 0.4, 0.2]}, "sum to 1"),
        ({"cluster_sizes": [0.5, 0.5]}, "one share for each of the 3 clusters"),
        ({"cluster_sizes": "even"}, "cluster_sizes"),
        ({"search": "luck"}, "search='luck' is unknown"),
        ({"schedule": "slow"}, "schedule='slow' is unknown"),
        ({"gamma": -1.0}, "gamma=-1.0 is out of range"),
    ],
)
def test_bad_parameters_get_one_sentence(parameters, sentence):
    X, _ = blobs(200)
    with pytest.raises(InputError, match=sentence) as error:
        rls(**parameters).fit(X)
    assert str(error.value).count(".") >= 1
    assert "\n" not in str(error.value)


def test_rows_that_are_all_equal_or_too_few_kinds_are_refused():
    with pytest.raises(InputError, match="all rows are equal"):
        rls().fit(np.ones((50, 2)))
    with pytest.raises(InputError, match="has 2 rows that differ, fewer than n_clusters=3"):
        rls().fit(np.repeat(np.eye(2), 30, axis=0))


def test_a_kernel_matrix_that_does_not_fit_is_refused():
    X, _ = blobs(5000)
    with pytest.raises(MemoryLimitError, match=r"5,000 rows .* a smaller sample_size needs less\.$"):
        rls(sample_size=5000, memory_limit="450MiB").fit(X)

"""Laws of more than two clusters in the hinge form: model, labels and objective agree, wherever rows live."""

import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.engine.checkpoint import CheckpointEngine
from mmcnb.errors import ClusterWarning, InputError
from mmcnb.stores import create_dense_store


def blobs(n=900, k=3, seed=0, total_variance=0.6):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-4, 4, (k, 4))
    labels = np.arange(n) % k
    return (centres[labels] + total_variance * rng.standard_normal((n, 4))).astype(np.float32), labels


def hinge(n_clusters=3, **parameters):
    settings = {"n_init": 1, "sample_size": 200, "n_landmarks": 40, "random_state": 0} | parameters
    return mmcnb.CrammerSingerMMC(n_clusters, **settings)


def norm2_of(model):
    """|W|² from the coefficients of the model."""
    coef, basis = model.model_.rule.coef, model.model_.basis.astype(float)
    return float(np.trace(coef.T @ model.model_.kernel(basis, basis) @ coef))


def objective_of(model, X, weights=None):
    f = model.decision_function(X)
    ranked = np.sort(f, axis=1)
    hinges = np.maximum(0, model.rho_ - (ranked[:, -1] - ranked[:, -2]))
    C = model.report_["C"]
    return norm2_of(model) / 2 - model.rho_ + C * np.average(hinges, weights=weights)


def same_bits(one, other):
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.model_.rule.coef, other.model_.rule.coef)
    np.testing.assert_array_equal(one.model_.rule.offset, other.model_.rule.offset)
    assert (one.objective_, one.rho_) == (other.objective_, other.rho_)


@pytest.mark.parametrize("k", [3, 4, 6])
def test_clusters_are_found_and_numbered_by_their_first_row(k):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(900) % k)
    X = np.eye(6)[y] + 0.1 * rng.standard_normal((900, 6))
    model = hinge(k, sample_size=900).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    _, first = np.unique(model.labels_, return_index=True)
    assert (np.diff(first) > 0).all()
    assert model.labels_.dtype == np.int32
    assert model.converged_
    assert model.report_["clusters_found"]
    assert model.report_["w_norm"] > model.report_["w_norm_random"]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"sample_size": 900},
        {"spread": 2.0},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2},
        {"scale": "standard"},
        {"C": 1.5},
        {"C": 3.0, "continuation": False},
        {"cluster_sizes": [0.5, 0.3, 0.2]},
        {"gamma": 0.3, "eta": 0.1, "max_rounds": 1},
    ],
)
def test_labels_sizes_and_objective_are_those_of_the_model(parameters):
    X, _ = blobs(total_variance=parameters.pop("spread", 0.6))
    model = hinge(**parameters).fit(X)
    f = model.decision_function(X)
    assert f.shape == (900, 3)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, f.argmax(axis=1))
    np.testing.assert_array_equal(model.report_["sizes"], np.bincount(model.labels_, minlength=3))
    assert model.report_["w_norm"] ** 2 == pytest.approx(norm2_of(model), rel=1e-4)
    # Kernel values in float32: rho and the mean slack nearly cancel.
    assert model.objective_ == pytest.approx(objective_of(model, X), rel=1e-3, abs=1e-5 * model.rho_)


def test_the_gap_at_the_end_is_at_most_eta():
    X, _ = blobs(total_variance=1.5)
    for eta in (0.1, 0.01):
        model = hinge(eta=eta).fit(X)
        assert model.report_["gap"] <= eta * (1 + 1e-6)


def test_labels_are_near_those_of_least_squares():
    X, y = blobs(3000, 5, total_variance=1.2)
    settings = {"sample_size": 1000, "n_landmarks": 100, "random_state": 0}
    ours = mmcnb.CrammerSingerMMC(5, **settings).fit(X).labels_
    theirs = mmcnb.UnsupervisedRLS(5, **settings).fit(X).labels_
    assert adjusted_rand_score(ours, theirs) > 0.9
    assert adjusted_rand_score(y, ours) > adjusted_rand_score(y, theirs) - 0.02


@pytest.mark.parametrize("shares", ["equal", [0.5, 0.3, 0.2]])
def test_sizes_are_held(shares):
    X, _ = blobs(2000, total_variance=1.5)
    sizes = hinge(cluster_sizes=shares, sample_size=1000).fit(X).report_["sizes"]
    wanted = [1 / 3] * 3 if shares == "equal" else shares
    assert np.sort(np.array(sizes) / 2000) == pytest.approx(np.sort(wanted), rel=0.2)


def test_j_of_refined_partitions_does_not_fall_and_is_in_the_history():
    X, _ = blobs(total_variance=2.0)
    model = hinge(sample_size=900, max_rounds=5).fit(X)
    history = model.history_
    partitions = history[(history["stage"] == "least squares") & history["start"].notna()]
    best = partitions["J"].max()
    assert model.report_["sample_objective"] == best
    assert partitions["start"].nunique() == 7  # two more than n_init of shaking, and four ridge paths
    refined = partitions[partitions["start"].duplicated(keep=False)]
    assert len(refined) <= 4
    hinged = history[history["stage"] == "sample"]
    assert hinged["start"].dropna().nunique() == 2
    assert hinged[["objective", "norm", "C", "planes"]].notna().all(axis=None)


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
    models = [hinge(n_jobs=n_jobs).fit(storage) for storage in storages for n_jobs in (1, 2)]
    for model in models[1:]:
        same_bits(model, models[0])


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_dense_and_csr_rows_agree(kernel):
    X, _ = blobs()
    X = np.where(X > 0, X, 0)
    dense, sparse = hinge(kernel=kernel).fit(X), hinge(kernel=kernel).fit(scipy.sparse.csr_array(X))
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-3, abs=1e-5 * dense.rho_)
    assert np.mean(sparse.labels_ == dense.labels_) > 0.99


def test_a_saved_model_labels_alike(tmp_path):
    X, _ = blobs()
    model = hinge(cluster_sizes=[0.4, 0.3, 0.3], scale="standard").fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.report_ == model.report_
    assert again.get_params()["cluster_sizes"] == [0.4, 0.3, 0.3]


def test_a_fit_that_was_stopped_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    X, _ = blobs(9000)
    with create_dense_store(tmp_path / "rows.zarr", 4) as writer:
        writer.append(X)
    whole, run = hinge().fit(tmp_path / "rows.zarr"), CheckpointEngine.run

    class Stop(Exception):
        pass

    def limited(self, *args):
        if self.passes == 8:
            raise Stop
        return run(self, *args)

    monkeypatch.setattr(CheckpointEngine, "run", limited)
    with pytest.raises(Stop):
        hinge(checkpoint=tmp_path / "folder").fit(tmp_path / "rows.zarr")
    monkeypatch.undo()
    again = hinge(checkpoint=tmp_path / "folder").fit(tmp_path / "rows.zarr")
    assert again.history_["resumed"].any()
    same_bits(again, whole)
    kept = [name for name in whole.history_ if name not in ("seconds", "reads", "sweeps", "bytes", "resumed")]
    assert again.history_[kept].equals(whole.history_[kept])


@pytest.mark.parametrize("most", [3000, 10**9])
def test_the_objective_of_weighted_rows_and_of_a_larger_sample(monkeypatch, most):
    X, y = blobs(4000, total_variance=1.0)
    weights = np.random.default_rng(0).integers(0, 4, 4000).astype(float)
    monkeypatch.setattr("mmcnb.hinge.multiclass.larger_sample", lambda n: 2000 if n > most else 0)
    model = hinge().fit(X, sample_weight=weights)
    sizes = np.bincount(model.labels_, weights, 3)
    np.testing.assert_allclose(model.report_["sizes"], sizes)
    expected = objective_of(model, X, weights)
    assert model.objective_ == pytest.approx(expected, rel=1e-3, abs=1e-5 * model.rho_)
    assert adjusted_rand_score(y, model.labels_) > 0.8
    assert ("larger sample" in set(model.history_["stage"])) == (most == 3000)


def test_equal_weights_count_for_nothing():
    X, _ = blobs(600)
    same_bits(hinge().fit(X, sample_weight=np.ones(600)), hinge().fit(X))


def test_one_cluster_holds_all_rows():
    with pytest.warns(ClusterWarning, match="no clusters found"):
        model = hinge(1).fit(blobs(100)[0])
    assert not model.labels_.any()
    assert model.objective_ == pytest.approx(0, abs=1e-6)


def test_labels_without_a_margin_end_at_a_lower_C():
    X = np.random.default_rng(0).standard_normal((400, 1))
    model = hinge(3, C=1000.0, kernel="linear", sample_size=400).fit(X)
    assert model.report_["C"] < 1000
    assert model.objective_ == pytest.approx(objective_of(model, X), rel=1e-3, abs=1e-5 * model.rho_)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_clusters": 0}, "n_clusters=0 is out of range"),
        ({"n_clusters": 2.5}, "n_clusters=2.5 is out of range"),
        ({"n_clusters": 101}, "n_clusters=101 is more than the 100 rows; give fewer"),
        ({"n_clusters": 60, "sample_size": 50}, "sample_size=50 is smaller than n_clusters=60"),
        ({"cluster_sizes": [0.5, 0.5]}, "one share for each of the 3 clusters"),
        ({"size_tolerance": 2.0}, "size_tolerance=2.0 is out of range"),
        ({"continuation": "no"}, "continuation='no' is unknown"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        hinge(**parameters).fit(blobs(100)[0])


def test_fewer_different_rows_than_clusters_are_refused():
    X = np.repeat(np.eye(3), 20, axis=0)
    with pytest.raises(InputError, match="3 rows that differ, fewer than n_clusters=5"):
        hinge(5).fit(X)

"""What must not matter: weights written as repetitions, the order of rows, threads, the seed's type."""

import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.preprocessing import StandardScaler

import mmcnb
from tests.estimators.conftest import ESTIMATORS, bits, make, make_blobs, make_sparse, same_clusters

pytestmark = pytest.mark.slow

# One hill, so coin flips, one a row, cannot lead to different partitions.
SMOOTH = {"C": 1.3, "eta": 1e-6}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("gap", [4.0, 6.0])
def test_weights_are_repetitions(name, gap):
    X = make_blobs(150, gap=gap)
    weights = np.random.default_rng(0).integers(0, 4, 150)
    assert (weights == 0).any()
    X_repeated = np.repeat(X, weights, axis=0)
    # Every row is a basis vector, so no landmark is drawn.
    parameters = SMOOTH | ({} if name == "CPMMC" else {"gamma": "mean"})
    parameters |= {"n_landmarks": 1000} if name == "SparseKernelMMC" else {}
    one = make(name, **parameters).fit(X, sample_weight=weights)
    other = make(name, **parameters).fit(X_repeated)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-5)
    assert same_clusters(np.repeat(one.labels_, weights), other.labels_)
    assert sum(one.report_["sizes"]) == sum(other.report_["sizes"]) == weights.sum()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_equal_weights_are_no_weights(name):
    X = make_blobs(150)
    one, other = make(name).fit(X), make(name).fit(X, sample_weight=np.full(150, 2.5))
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-6)
    np.testing.assert_array_equal(other.labels_, one.labels_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_unit_weights_are_no_weights_to_the_bit(name):
    X = make_blobs(150)
    assert bits(make(name).fit(X, sample_weight=np.ones(150)), X) == bits(make(name).fit(X), X)


def test_weights_of_a_store_are_those_in_memory(tmp_path):
    X, weights = make_blobs(150), np.random.default_rng(0).integers(0, 4, 150)
    array = zarr.create_array(tmp_path / "weights.zarr", data=weights, chunks=(64,))
    wanted = bits(make("SparseKernelMMC").fit(X, sample_weight=weights), X)
    for stored in (array, tmp_path / "weights.zarr", str(tmp_path / "weights.zarr")):
        assert bits(make("SparseKernelMMC").fit(X, sample_weight=stored), X) == wanted
    zarr.create_array(tmp_path / "table.zarr", data=X)
    with pytest.raises(mmcnb.InputError, match=r"table\.zarr is no 1-D array of numbers"):
        make("SparseKernelMMC").fit(X, sample_weight=tmp_path / "table.zarr")


@pytest.mark.parametrize("name", ["SparseKernelMMC", "CPMMC"])
def test_rows_without_weight_do_not_pull_when_streamed(name):
    X = make_blobs(6000)
    outliers = np.random.default_rng(0).standard_normal((6000, 3)) + 40
    mixed, weights = np.empty((12_000, 3)), np.tile([1.0, 0.0], 6000)
    mixed[::2], mixed[1::2] = X, outliers
    # All rows with weight are the sample, in both; the others only stream by.
    one = make(name, sample_size=300).fit(mixed, sample_weight=weights)
    other = make(name, sample_size=300).fit(X)
    assert same_clusters(one.labels_[::2], other.labels_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_permuted_rows_have_permuted_labels(name):
    # The sample is the whole and every row is a basis vector.
    X = make_blobs(200)
    order = np.random.default_rng(1).permutation(200)
    parameters = SMOOTH | ({} if name == "CPMMC" else {"gamma": "mean"})
    parameters |= {"n_landmarks": 1000} if name == "SparseKernelMMC" else {}
    one, other = make(name, **parameters).fit(X), make(name, **parameters).fit(X[order])
    assert same_clusters(one.labels_[order], other.labels_)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-5)
    assert one.labels_[0] == other.labels_[0] == 0


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("sparse", [False, True])
def test_standard_scale_is_a_standard_scaler_before(name, sparse):
    X = make_sparse(300) * 7.0 if sparse else make_blobs(300) * [1, 100, 0.01] + 3
    X = scipy.sparse.csr_array(X) if sparse else X
    scaler = StandardScaler(with_mean=not sparse).fit(X)
    parameters = {} if name == "CPMMC" else {"gamma": "median"}
    one = make(name, scale="standard", **parameters).fit(X)
    other = make(name, **parameters).fit(scaler.transform(X))
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-5)
    np.testing.assert_array_equal(one.labels_, other.labels_)


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_same_seed_same_bits_and_random_state_is_accepted(name):
    X = make_blobs(300, gap=2.0)
    first = bits(make(name, random_state=7).fit(X), X)
    assert bits(make(name, random_state=7).fit(X), X) == first
    assert bits(make(name, random_state=np.random.RandomState(7)).fit(X), X) == first
    model = make(name, random_state=None).fit(X)
    assert set(model.labels_.tolist()) == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_n_jobs_changes_nothing(name):
    X = make_blobs(400, gap=2.0)
    assert bits(make(name, n_jobs=2).fit(X), X) == bits(make(name, n_jobs=1).fit(X), X)
    assert bits(make(name, n_jobs=-1).fit(X), X) == bits(make(name, n_jobs=None).fit(X), X)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fitting_again_forgets_the_first_fit(name):
    X, other = make_blobs(200), make_blobs(150, d=5, seed=1)
    model = make(name)
    first = bits(model.fit(X), X)
    model.fit(other)
    assert model.n_features_in_ == 5
    assert bits(model.fit(X), X) == first


@pytest.mark.parametrize("name", ESTIMATORS)
def test_input_is_left_as_it_was(name):
    X, csr = make_blobs(200), make_sparse(200)
    copies = X.copy(), csr.toarray()
    X.flags.writeable = False
    parameters = {"scale": "standard"} | ({} if name == "CPMMC" else {"gamma": "median"})
    make(name, **parameters).fit(X).predict(X)
    make(name, **parameters).fit(csr).predict(csr)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(csr.toarray(), copies[1])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_layout_of_an_array_does_not_matter(name):
    X = make_blobs(300)
    first = bits(make(name).fit(X), X)
    assert bits(make(name).fit(np.asfortranarray(X)), X) == first
    wide = np.zeros((600, 6))
    wide[::2, ::2] = X
    assert bits(make(name).fit(wide[::2, ::2]), X) == first


def test_landmarks_of_all_rows_are_the_exact_method():
    X = make_blobs(150, gap=2.0)
    exact = make("KernelCPMMC", eta=1e-5).fit(X)
    sparse = make("SparseKernelMMC", n_landmarks=150, eta=1e-5).fit(X)
    assert np.mean(exact.labels_ == sparse.labels_) >= 0.99
    assert sparse.objective_ == pytest.approx(exact.objective_, rel=1e-2)


def test_linear_kernel_on_enough_landmarks_is_the_linear_method():
    # Nearer groups have several local optima, and the loose solutions on the way may lead to either.
    X = make_blobs(150, gap=5.0)
    linear = make("CPMMC", eta=1e-5).fit(X)
    kernel = make("SparseKernelMMC", kernel="linear", n_landmarks=50, eta=1e-5).fit(X)
    np.testing.assert_array_equal(kernel.labels_, linear.labels_)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-3)


def test_polynomial_of_degree_one_is_the_linear_kernel():
    X = make_blobs(150, gap=4.0)
    poly, linear = (
        make("KernelCPMMC", gamma=1.0, degree=1, coef0=0.0, kernel=kernel, eta=1e-5).fit(X)
        for kernel in ("poly", "linear")
    )
    np.testing.assert_array_equal(poly.labels_, linear.labels_)
    assert poly.objective_ == pytest.approx(linear.objective_, rel=1e-5)


def test_coef_and_intercept_of_the_linear_method_are_its_decision_values():
    X = make_blobs(150)
    model = make("CPMMC").fit(X)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_ + model.intercept_, atol=1e-12)
    assert model.report_["w_norm"] == pytest.approx(np.linalg.norm(model.coef_))
    scaled = make("CPMMC", scale="standard").fit(X)
    f = StandardScaler().fit_transform(X) @ scaled.coef_ + scaled.intercept_
    np.testing.assert_allclose(scaled.decision_function(X), f, atol=1e-10)

"""What must not matter: order and layout of rows, earlier fits; and methods that are one in a limit."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.preprocessing import StandardScaler

from tests.estimators.conftest import (
    ESTIMATORS,
    VARIANTS,
    bits,
    fitted,
    make,
    make_blobs,
    make_sparse,
    rows_of,
    same_clusters,
    variant,
)
from tests.estimators.every import NAMES

SCALED = [
    name
    for name, model in VARIANTS.items()
    if hasattr(model, "scale") and name in NAMES
]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_permuted_rows_have_permuted_labels(name):
    # The sample is the whole, every row is a basis vector, and on one hill coin flips
    # lead to one partition.
    X = make_blobs(200)
    order = np.random.default_rng(1).permutation(200)
    parameters = {"C": 1.3, "eta": 1e-6}
    parameters |= {} if name == "CPMMC" else {"gamma": "mean"}
    parameters |= {"n_landmarks": 1000} if name == "SparseKernelMMC" else {}
    model = make(name, **parameters).fit(X)
    permuted = make(name, **parameters).fit(X[order])
    assert same_clusters(model.labels_[order], permuted.labels_)
    assert permuted.objective_ == pytest.approx(model.objective_, rel=1e-5)
    assert model.labels_[0] == permuted.labels_[0] == 0


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("name", SCALED)
def test_standard_scale_is_a_standard_scaler_before(name, is_sparse):
    X = make_sparse(300) * 7.0 if is_sparse else rows_of(name, 300) * [1, 100, 0.01] + 3
    scaler = StandardScaler(with_mean=not is_sparse).fit(X)
    model = fitted(name, X, scale="standard")
    other = fitted(name, scaler.transform(X), scale=None)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-4)
    np.testing.assert_array_equal(model.labels_, other.labels_)


@pytest.mark.parametrize("name", NAMES)
def test_layout_earlier_fits_and_the_form_of_the_seed_change_no_bit_and_rows_are_left_alone(
    name,
):
    X = rows_of(name, 300)
    copied = X.copy()
    model = variant(name, random_state=7)
    expected = bits(model.fit(X), X)
    wide = np.zeros((600, 6))
    wide[::2, ::2] = X
    for same_rows in (np.asfortranarray(X), wide[::2, ::2]):
        assert bits(model.fit(same_rows), X) == expected
    model.fit(make_blobs(150, d=5))
    assert model.n_features_in_ == 5
    for seed in (7, np.random.RandomState(7)):
        assert (
            bits(model.set_params(random_state=seed, n_jobs=-1).fit(X), X) == expected
        )
    np.testing.assert_array_equal(X, copied)
    csr = scipy.sparse.csr_array(X)
    model.fit(csr).predict(csr)
    np.testing.assert_array_equal(csr.toarray(), X)


# -- methods that are one in a limit ---------------------------------------------------


def test_landmarks_of_all_rows_are_the_exact_method():
    X = make_blobs(150, gap=2.0)
    exact = make("KernelCPMMC", eta=1e-5).fit(X)
    sparse = make("SparseKernelMMC", n_landmarks=150, eta=1e-5).fit(X)
    assert np.mean(exact.labels_ == sparse.labels_) >= 0.99
    assert sparse.objective_ == pytest.approx(exact.objective_, rel=1e-2)


def test_linear_kernels_are_the_linear_method():
    # Nearer groups have several local optima, and the loose solutions on the way may
    # lead to either.
    X = make_blobs(150, gap=5.0)
    linear = make("CPMMC", eta=1e-5).fit(X)
    kernels = [
        make("SparseKernelMMC", kernel="linear", n_landmarks=50, eta=1e-5),
        make("KernelCPMMC", kernel="linear", eta=1e-5),
        make("KernelCPMMC", kernel="poly", gamma=1.0, degree=1, coef0=0.0, eta=1e-5),
    ]
    for model in kernels:
        np.testing.assert_array_equal(model.fit(X).labels_, linear.labels_)
        assert model.objective_ == pytest.approx(linear.objective_, rel=1e-3)


@pytest.mark.parametrize("scale", [None, "standard"])
def test_coef_and_intercept_of_the_linear_method_are_its_decision_values(scale):
    X = make_blobs(150)
    model = make("CPMMC", scale=scale).fit(X)
    scaled = X if scale is None else StandardScaler().fit_transform(X)
    np.testing.assert_allclose(
        model.decision_function(X), scaled @ model.coef_ + model.intercept_, atol=1e-10
    )
    assert model.report_["w_norm"] == pytest.approx(np.linalg.norm(model.coef_))

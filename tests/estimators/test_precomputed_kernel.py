"""A kernel matrix in place of rows: the same fit as of the kernel function that made it."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_predict
from sklearn.utils import get_tags

import mmcnb
from tests.estimators.conftest import make_blobs, make_rings


@pytest.fixture(scope="module")
def X():
    return make_rings(300)


@pytest.fixture(scope="module")
def model(X):
    return mmcnb.KernelCPMMC(kernel="precomputed", random_state=0).fit(rbf_kernel(X, gamma=1.0))


def test_it_is_the_fit_of_the_kernel_function(X, model):
    other = mmcnb.KernelCPMMC(gamma=1.0, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, other.labels_)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-4)
    assert model.gamma_ is None


def test_new_rows_are_labelled_by_their_kernel_values(X, model):
    np.testing.assert_array_equal(model.predict(rbf_kernel(X, gamma=1.0)), model.labels_)
    new = make_rings(100, seed=1)
    other = mmcnb.KernelCPMMC(gamma=1.0, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(rbf_kernel(new, X, gamma=1.0)), other.predict(new))


def test_the_model_file_keeps_it(X, model, tmp_path):
    model.save(tmp_path / "rings.model")
    values = rbf_kernel(X[:50], X, gamma=1.0)
    np.testing.assert_array_equal(mmcnb.load(tmp_path / "rings.model").predict(values), model.labels_[:50])


def test_scikit_learn_cuts_rows_and_columns():
    X = make_blobs(120, gap=8.0)
    estimator = mmcnb.KernelCPMMC(kernel="precomputed", random_state=0)
    assert get_tags(estimator).input_tags.pairwise
    assert not get_tags(mmcnb.KernelCPMMC()).input_tags.pairwise
    assert set(cross_val_predict(estimator, rbf_kernel(X, gamma=0.1), cv=3)) == {0, 1}


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        (np.ones((4, 3)), r"square kernel matrix, and X has shape \(4, 3\)"),
        (np.array([[1.0, 0.5], [0.2, 1.0]]), "row 0, column 1"),
        (np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0))), "not distances"),
    ],
)
def test_what_is_no_kernel_matrix_is_refused(matrix, sentence):
    with pytest.raises(mmcnb.InputError, match=sentence):
        mmcnb.KernelCPMMC(kernel="precomputed").fit(matrix)


def test_columns_of_a_matrix_are_not_scaled(X):
    with pytest.raises(mmcnb.InputError, match="scale is for columns"):
        mmcnb.KernelCPMMC(kernel="precomputed", scale="standard").fit(np.eye(4))


@pytest.mark.parametrize("name", ["SparseKernelMMC", "UnsupervisedRLS", "MaximumMarginClustering"])
def test_methods_on_a_sample_refuse_it(X, name):
    with pytest.raises(mmcnb.InputError, match="kernel='precomputed' needs the kernel values of all rows"):
        getattr(mmcnb, name)(kernel="precomputed").fit(np.eye(4))

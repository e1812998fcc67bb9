"""Landmarks that a user gives: they are the basis of the model, whatever holds the rows."""

import numpy as np
import pytest

import mmcnb
from tests.estimators.conftest import make_blobs, make_rings, make_sparse

METHODS = {
    "SparseKernelMMC": {"gamma": 2.0, "random_state": 0},
    "UnsupervisedRLS": {"gamma": 2.0, "random_state": 0},
}


def make(name, **parameters):
    return getattr(mmcnb, name)(**METHODS[name], **parameters)


@pytest.mark.parametrize("name", METHODS)
def test_they_are_the_basis_of_the_model(name):
    X = make_rings(500)
    model = make(name, landmarks=np.r_[X[:40], X[:3]]).fit(X)
    np.testing.assert_array_equal(model.model_.basis, X[:40])
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    inner = np.hypot(X[:, 0], X[:, 1]) < 0.7
    assert len(set(zip(model.labels_.tolist(), inner.tolist(), strict=True))) == 2


@pytest.mark.parametrize("name", METHODS)
def test_they_are_in_the_units_of_the_rows(name):
    X = make_rings(500) * [1.0, 100.0, 0.1]
    model = make(name, landmarks=X[:40], scale="standard").fit(X)
    expected = (X[:40] - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(model.model_.basis, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_sparse_rows_take_them_too(name):
    X = make_sparse(400)
    model = make(name, landmarks=X[:30].toarray(), scale="standard").fit(X)
    deviation = X.toarray().std(axis=0)
    np.testing.assert_allclose(
        model.model_.basis, X[:30].toarray() / deviation, rtol=1e-6
    )


def test_the_model_file_and_the_checkpoint_keep_to_them(tmp_path):
    X = make_blobs(300)
    model = make(
        "UnsupervisedRLS", landmarks=X[:30], checkpoint=tmp_path / "steps"
    ).fit(X)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        mmcnb.load(tmp_path / "model").predict(X), model.labels_
    )
    with pytest.raises(mmcnb.InputError, match="landmarks"):
        make("UnsupervisedRLS", landmarks=X[:31], checkpoint=tmp_path / "steps").fit(X)


def test_landmarks_of_unlike_rows_end_the_search_for_components_too():
    # All kernel values between rows are 0, so the principal components are all alike.
    X = make_blobs(300)
    labels = mmcnb.SparseKernelMMC(gamma=1e6, random_state=0).fit(X).labels_
    assert set(labels) == {0, 1}

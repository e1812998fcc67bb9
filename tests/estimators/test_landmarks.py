"""Landmarks that a user gives: they are the basis of the model, whatever holds the rows."""

import numpy as np
import pytest
import zarr

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
    np.testing.assert_allclose(model.model_.basis, X[:30].toarray() / deviation, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_memory_and_zarr_give_the_same_bits(name, tmp_path):
    X = make_blobs(5000)
    zarr.create_array(tmp_path / "X.zarr", data=X, chunks=(777, 2))
    one, other = (make(name, landmarks=X[:30]).fit(rows) for rows in (X, tmp_path / "X.zarr"))
    assert one.decision_function(X).tobytes() == other.decision_function(X).tobytes()


@pytest.mark.parametrize("name", METHODS)
def test_the_model_file_and_the_checkpoint_keep_to_them(name, tmp_path):
    X = make_blobs(300)
    model = make(name, landmarks=X[:30], checkpoint=tmp_path / "steps").fit(X)
    model.save(tmp_path / "blobs.model")
    np.testing.assert_array_equal(mmcnb.load(tmp_path / "blobs.model").predict(X), model.labels_)
    with pytest.raises(mmcnb.InputError, match="landmarks"):
        make(name, landmarks=X[:31], checkpoint=tmp_path / "steps").fit(X)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("landmarks", "sentence"),
    [
        (np.ones(3), r"shape \(3,\)"),
        (np.eye(4), "4 columns where the rows have 3"),
        (np.array([[0.0, np.nan, 1.0], [0.0, 0.0, 1.0]]), "row 0, column 1"),
        ("k-means", "landmarks is a str: give an array"),
    ],
)
def test_what_cannot_be_landmarks_is_refused(name, landmarks, sentence):
    with pytest.raises(mmcnb.InputError, match=sentence):
        make(name, landmarks=landmarks).fit(make_blobs(100))


def test_landmarks_of_unlike_rows_end_the_search_for_components_too():
    # All kernel values between rows are 0, so the principal components are all alike.
    X = make_blobs(300)
    labels = mmcnb.SparseKernelMMC(gamma=1e6, random_state=0).fit(X).labels_
    assert set(labels) == {0, 1}

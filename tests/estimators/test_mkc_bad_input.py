"""Several kernels: rows of any shape are borne, and what cannot be used is refused by one sentence."""

import re
import warnings

import numpy as np
import pytest

from mmcnb import MultipleKernelClustering
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from tests.estimators.conftest import make_blobs, make_sparse
from tests.estimators.several_kernels import QUICK, fitted, one_time, two_and_three

# -- hard shapes -----------------------------------------------------------------------------

SHAPES = {
    "one column": make_blobs(60, d=1),
    "two places": np.r_[np.zeros((20, 2)), np.ones((15, 2))],
    "three places": np.repeat(np.eye(3), 7, axis=0),
    "two rows": np.array([[0.0, 0.0], [1.0, 0.0]]),
    "three rows": np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]]),
    "a constant column": np.c_[make_blobs(60), np.full(60, 7.0)],
    "a constant column of 1e4": np.c_[make_blobs(60), np.full(60, 1e4)],
    "a constant column of 1e6": np.c_[make_blobs(60), np.full(60, 1e6)],
    "far from 0": make_blobs(60) + 1e5,
    "tiny": make_blobs(60) * 1e-8,
    "huge": make_blobs(60) * 1e8,
    "beyond float32": make_blobs(60) * 1e25,
    "below float32": make_blobs(60) * 1e-25,
    "duplicates": np.repeat(make_blobs(12), 5, axis=0),
    "an outlier": np.r_[make_blobs(59), [[1e6, 0, 0]]],
    "sparse": make_sparse(60),
}


BEARABLE = [
    (shape, k)
    for shape, X in SHAPES.items()
    for k in (1, 2, 3)
    if not isinstance(X, np.ndarray) or k <= len(np.unique(X, axis=0))
]


@pytest.mark.parametrize(("shape", "k"), BEARABLE)
def test_automatic_kernels_bear_any_shape(shape, k):
    X = SHAPES[shape]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ClusterWarning)
        model = fitted(X, k, kernels="auto", threshold="fixed", C=2.0)
    assert model.labels_[0] == 0
    assert set(model.labels_.tolist()) <= set(range(k))
    assert len(set(model.labels_.tolist())) >= min(k, 2)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert np.isfinite(model.objective_)
    assert len(model.kernel_names_) == len(model.kernel_weights_) >= 1
    assert np.linalg.norm(model.kernel_weights_) == pytest.approx(1.0)


@two_and_three
@pytest.mark.parametrize("n_landmarks", [1, 2])
def test_few_landmarks_are_no_reason_to_take_kernels_for_copies(n_landmarks, k):
    X = make_blobs(100)
    model = fitted(X, k, n_landmarks=n_landmarks)
    assert len(model.kernel_names_) == 3
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    zeros = np.r_[np.zeros((99, 1)), np.ones((1, 1))]
    with pytest.raises(InputError, match=r"^kernel 0 has the same values [^\n]* 1 landmarks[^\n]*\.$"):
        fitted(zeros, kernels=["linear"], n_landmarks=1)


def test_kernels_that_rounding_alone_tells_apart_are_left_out():
    names = fitted(SHAPES["far from 0"], kernels="auto").kernel_names_
    assert [name.split(",")[0] for name in names] == ["rbf"] * 3
    assert fitted(SHAPES["two places"], kernels="auto").kernel_names_ == ["linear"]


# -- bad input -------------------------------------------------------------------------------


def nan(rows, basis):
    return np.full((rows.shape[0], basis.shape[0]), np.nan)


def wrong_shape(rows, basis):
    return np.ones((rows.shape[0], 2))


def zero(rows, basis):
    return np.zeros((rows.shape[0], basis.shape[0]))


def one_everywhere(rows, basis):
    return zero(rows, basis) + 1


def lopsided(rows, basis):
    return rows.sum(axis=1)[:, None] * np.ones(basis.shape[0])


def indefinite(rows, basis):
    return -(rows @ basis.T)


def seven_linear(rows, basis):
    return 7 * rows @ basis.T + 2


BAD = {
    "no kernel": ({"kernels": []}, "kernels is empty"),
    "no list": ({"kernels": {"rbf": 1}}, "is no list"),
    "None": ({"kernels": None}, "is no list"),
    "a name alone": ({"kernels": "rbf"}, r"kernels='rbf' is unknown"),
    "unknown name": ({"kernels": ["cosine"]}, r"kernels\[0\]='cosine' is unknown"),
    "unknown parameter": (
        {"kernels": ["rbf", ("rbf", {"width": 1})]},
        r"kernels\[1\] has no parameter 'width'",
    ),
    "text width": ({"kernels": [("rbf", {"gamma": "wide"})]}, r"kernels\[0\]: gamma='wide'"),
    "no width": ({"kernels": [("rbf", {"gamma": None})]}, r"kernels\[0\]: gamma=None"),
    "infinite width": ({"kernels": [("rbf", {"gamma": np.inf})]}, r"kernels\[0\]: gamma="),
    "half a degree": ({"kernels": [("poly", {"degree": 1.5})]}, r"kernels\[0\]: degree=1.5"),
    "text coef0": ({"kernels": [("poly", {"coef0": "1"})]}, r"kernels\[0\]: coef0='1'"),
    "a number": ({"kernels": ["linear", 3]}, r"kernels\[1\]=3 is no kernel"),
    "a matrix": ({"kernels": [np.eye(60)]}, r"kernels\[0\] is an array, which is no kernel"),
    "columns of another length": ({"columns": [[0], [1]]}, "one entry for each of the 3 kernels"),
    "columns of auto": ({"kernels": "auto", "columns": [[0]]}, "columns are given"),
    "columns that are no list": ({"columns": 0}, "one entry for each of the 3 kernels"),
    "column outside": ({"columns": [None, [0, 3], None]}, r"columns\[1\] are no column numbers \(index 3 "),
    "column outside, negative": (
        {"columns": [[-4], None, None]},
        r"columns\[0\] are no column numbers \(index -4 ",
    ),
    "columns empty": ({"columns": [[], None, None]}, r"columns\[0\] names no column"),
    "slice empty": ({"columns": [slice(3, None), None, None]}, r"columns\[0\] names no column"),
    "slice of floats": ({"columns": [slice(0.5), None, None]}, r"columns\[0\] are no column numbers"),
    "mask empty": ({"columns": [[False] * 3, None, None]}, r"columns\[0\] names no column"),
    "mask too short": ({"columns": [[True, False], None, None]}, r"columns\[0\] are no column numbers"),
    "columns of floats": ({"columns": [[0.0, 1.0], None, None]}, r"columns\[0\] are no column numbers"),
    "columns by name": ({"columns": [["a"], None, None]}, r"columns\[0\] are no column numbers"),
    "columns ragged": ({"columns": [[[0], [1, 2]], None, None]}, r"columns\[0\] are no column numbers"),
    "one number": ({"columns": [0, None, None]}, r"columns\[0\] are no column numbers"),
    "NaN": ({"kernels": ["linear", nan]}, "kernel nan gave nan"),
    "wrong shape": ({"kernels": ["linear", wrong_shape]}, "kernel wrong_shape gave values of shape"),
    "not symmetric": ({"kernels": [lopsided]}, "kernel lopsided is not symmetric"),
    "negative": ({"kernels": [indefinite]}, "kernel indefinite has an eigenvalue of -"),
    "copies": (
        {"kernels": ["linear", ("rbf", {"gamma": 1}), "linear"]},
        "kernel linear is kernel linear again",
    ),
    "copies but for scale": (
        {"kernels": ["linear", seven_linear]},
        "kernel seven_linear is kernel linear again",
    ),
    "zero": ({"kernels": ["linear", zero]}, "kernel zero is the same for all rows"),
    "constant": ({"kernels": ["linear", one_everywhere]}, "kernel one_everywhere is the same for all rows"),
    "clusters": ({"n_clusters": 61}, "n_clusters=61 is more than the 60 rows"),
    "no cluster": ({"n_clusters": 0}, "n_clusters=0"),
    "balance of three": ({"n_clusters": 3, "balance": 0.1}, "balance and init are for two clusters"),
    "init of three": ({"n_clusters": 3, "init": "random"}, "balance and init are for two clusters"),
    "balance": ({"C": 2.0, "balance": 0.5}, "balance=0.5 is infeasible with C=2"),
    "basis": ({"basis": "own"}, "basis='own'"),
    "landmarks of all rows": ({"basis": "exact", "n_landmarks": 9}, "leave n_landmarks at None"),
    "sample of all rows": ({"basis": "exact", "sample_size": 9}, "leave sample_size at None"),
    "checkpoint": ({"kernels": [one_time], "checkpoint": "run"}, "a checkpoint knows kernels by name alone"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_refused_by_one_sentence(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parameters, said = BAD[case]
    with pytest.raises(InputError, match=r"^[^\n]*\.$") as refused:
        MultipleKernelClustering(**QUICK | parameters).fit(make_blobs(60))
    assert re.search(said, str(refused.value))
    assert list(tmp_path.iterdir()) == []


def test_rows_without_differences_are_refused():
    for k in (2, 3):
        with pytest.raises(InputError, match=r"^all rows are equal[^\n]*\.$"):
            fitted(np.ones((20, 3)), k)
    X = np.c_[np.ones(60), make_blobs(60)]
    for kernel in ("rbf", ("rbf", {"gamma": 1.0})):
        with pytest.raises(InputError, match=r"^[^\n]*(kernels\[0\]|kernel rbf)[^\n]*\.$"):
            fitted(X, kernels=[kernel, "linear"], columns=[[0], None])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_linear_kernel_far_from_the_origin_asks_for_centred_columns():
    X = make_blobs(100) + 1e5
    with pytest.raises(
        InputError, match=r"^kernel linear is the same for all rows[^\n]*scale='standard'[^\n]*\.$"
    ):
        fitted(X)
    assert fitted(X, scale="standard").labels_.max() == 1


@two_and_three
def test_matrices_that_do_not_fit_are_refused_with_the_basis_that_does(k):
    X = np.random.default_rng(0).standard_normal((8000, 2)).astype(np.float32)
    with pytest.raises(MemoryLimitError, match=r"^[^\n]* for 8,000 rows [^\n]*'landmarks'[^\n]*\.$"):
        fitted(X, k, basis="exact", memory_limit="2GiB")


def test_functions_that_know_dense_rows_alone_say_so_of_sparse_ones():
    with pytest.raises(InputError, match=r"^kernel one_time failed on sparse rows[^\n]*\.$"):
        fitted(make_sparse(60), kernels=[one_time, "linear"])

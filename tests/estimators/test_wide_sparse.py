"""Sparse rows of very many columns are clustered without being made dense."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import mmcnb
from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import choose_landmarks, principal_directions
from mmcnb.samples.matrix import as_csr_block

pytestmark = pytest.mark.slow

MIB = 2**20
WIDE = """
import json, sys
import numpy as np, scipy.sparse as sp
import mmcnb
from mmcnb._machine import peak_memory
n, d = 2000, 300_000
X = sp.random_array((n, d), density=1e-4, format="csr", rng=np.random.default_rng(0))
words = np.where(np.arange(n)[:, None] < n // 2, [0, 1, 2], [3, 4, 5]).ravel()
X = sp.csr_array(X + sp.csr_array((np.ones(3 * n), (np.repeat(np.arange(n), 3), words)), shape=(n, d)))
model = getattr(mmcnb, sys.argv[1])(random_state=0, memory_limit="1GiB").fit(X)
print(json.dumps({"peak": peak_memory(), "plan": model.plan(X).peak, "labels": model.labels_.tolist()}))
"""


def wide_rows(n=120, d=10_500, seed=0):
    """Two halves that share three words each among many that are rare."""
    rows = sp.random_array((n, d), density=1e-3, format="csr", rng=np.random.default_rng(seed))
    words = np.where(np.arange(n)[:, None] < n // 2, [0, 1, 2], [3, 4, 5]).ravel()
    return sp.csr_array(rows + sp.csr_array((np.ones(3 * n), (np.repeat(np.arange(n), 3), words)), (n, d)))


METHODS = [
    mmcnb.CPMMC(n_init=3, random_state=0),
    mmcnb.SparseKernelMMC(random_state=0),
    mmcnb.SparseKernelMMC(kernel="linear", n_init=1, random_state=0),
    mmcnb.SparseKernelMMC(kernel="poly", gamma=0.2, n_init=1, random_state=0),
    mmcnb.UnsupervisedRLS(random_state=0),
]


@pytest.mark.parametrize(
    "model", METHODS, ids=lambda model: f"{type(model).__name__}-{vars(model).get('kernel')}"
)
def test_wide_sparse_rows_are_clustered_as_dense_ones_are(model):
    X = wide_rows()
    labels = model.fit(X).labels_
    objective = model.objective_
    np.testing.assert_array_equal(model.predict(X.toarray()), labels)
    np.testing.assert_array_equal(model.fit(X.toarray()).labels_, labels)
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-4)


def test_a_model_of_wide_sparse_rows_is_read_back(tmp_path):
    X, new = wide_rows(), wide_rows(seed=1)
    model = mmcnb.SparseKernelMMC(random_state=0).fit(X)
    assert sp.issparse(model.model_.basis)
    model.save(tmp_path / "model")
    loaded = mmcnb.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(new), model.decision_function(new))
    with np.load(tmp_path / "model") as file:
        parts = dict(file)
    parts["basis_indices"] = parts["basis_indices"] + 10_500
    with (tmp_path / "damaged").open("wb") as file:
        np.savez(file, **parts)
    with pytest.raises(mmcnb.InputError, match="basis is no sparse matrix"):
        mmcnb.load(tmp_path / "damaged")


@pytest.mark.parametrize("name", ["rbf", "linear", "poly"])
def test_a_sparse_basis_gives_the_kernel_of_the_dense_one(name):
    X = wide_rows()
    basis = choose_landmarks(X, 20, np.random.RandomState(0), may_be_sparse=True)
    assert sp.issparse(basis)
    assert basis.shape == (20, X.shape[1])
    kernel = Kernel(name, 0.2)
    expected = kernel(X.toarray(), basis.toarray())
    for rows in (X, as_csr_block(X), X.toarray()):
        np.testing.assert_allclose(kernel(rows, basis), expected, rtol=1e-10)


def test_a_sparse_basis_has_distinct_rows_and_narrow_ones_are_dense():
    X = wide_rows(10)
    twice = sp.csr_array(sp.vstack([X, X]))
    assert choose_landmarks(twice, 20, np.random.RandomState(0), may_be_sparse=True).shape[0] == 10
    assert isinstance(choose_landmarks(twice, 20, np.random.RandomState(0)), np.ndarray)
    narrow = twice[:, :6].tocsr()
    assert isinstance(choose_landmarks(narrow, 20, np.random.RandomState(0), may_be_sparse=True), np.ndarray)


@pytest.mark.parametrize("count", [3, 49, 50])
def test_principal_directions_of_wide_rows_are_those_of_the_columns(monkeypatch, count):
    X = sp.random_array((50, 1_200), density=1e-2, format="csr", rng=np.random.default_rng(0))
    weights = np.linspace(0.5, 2, 50)
    found = principal_directions(X, count, weights)
    np.testing.assert_allclose(principal_directions(X.toarray(), count, weights), found, atol=1e-9)
    monkeypatch.setattr("mmcnb.features.nystroem.MANY_COLUMNS", 10**9)
    np.testing.assert_allclose(principal_directions(X, 3, weights), found[:, :3], atol=1e-9)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(
    "method",
    [pytest.param("CPMMC", marks=pytest.mark.nightly), "SparseKernelMMC", "MaximumMarginClustering"],
)
def test_two_thousand_rows_of_300_000_columns_take_less_than_their_plan(method):
    for estimator in (None, getattr(mmcnb, method)()):
        mmcnb.warmup(estimator)  # a process that compiles would not keep the limit
    command = [sys.executable, "-W", "ignore", "-c", WIDE, method]
    report = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert report["labels"] == [0] * 1000 + [1] * 1000
    assert report["peak"] <= report["plan"] <= 1024 * MIB

"""Sparse rows of very many columns are clustered without being made dense."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import mmcnb
from mmcnb.features.nystroem import choose_landmarks

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WIDE = """
import json, re, sys
from pathlib import Path
import mmcnb
from tests.estimators.test_wide_sparse import wide_rows
X = wide_rows(2000, 300_000)
model = getattr(mmcnb, sys.argv[1])(random_state=0, memory_limit="1GiB").fit(X)
peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps({"peak": peak, "plan": model.plan(X).peak, "labels": model.labels_.tolist()}))
"""


def wide_rows(n=120, d=10_500, seed=0):
    """Two halves that share three words each among many that are rare."""
    rows = sp.random_array(
        (n, d), density=12 / d, format="csr", rng=np.random.default_rng(seed)
    )
    words = np.where(np.arange(n)[:, None] < n // 2, [0, 1, 2], [3, 4, 5]).ravel()
    return sp.csr_array(
        rows
        + sp.csr_array((np.ones(3 * n), (np.repeat(np.arange(n), 3), words)), (n, d))
    )


@pytest.mark.parametrize(
    "model",
    [
        mmcnb.CPMMC(n_init=3, random_state=0),
        mmcnb.SparseKernelMMC(random_state=0),
        mmcnb.SparseKernelMMC(kernel="poly", gamma=0.2, n_init=1, random_state=0),
        mmcnb.UnsupervisedRLS(random_state=0),
    ],
    ids=str,
)
def test_wide_sparse_rows_are_clustered_as_dense_ones_are(model):
    X = wide_rows()
    labels = model.fit(X).labels_
    objective = model.objective_
    np.testing.assert_array_equal(model.predict(X.toarray()), labels)
    np.testing.assert_array_equal(model.fit(X.toarray()).labels_, labels)
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-4)


def test_a_model_of_wide_sparse_rows_is_read_back(tmp_path):
    new = wide_rows(seed=1)
    model = mmcnb.SparseKernelMMC(random_state=0).fit(wide_rows())
    model.save(tmp_path / "model")
    loaded = mmcnb.load(tmp_path / "model")
    np.testing.assert_array_equal(
        loaded.decision_function(new), model.decision_function(new)
    )
    with np.load(tmp_path / "model") as file:
        parts = dict(file)
    parts["basis_indices"] = parts["basis_indices"] + 10_500
    with (tmp_path / "damaged").open("wb") as file:
        np.savez(file, **parts)
    with pytest.raises(mmcnb.InputError, match="basis is not a valid sparse matrix"):
        mmcnb.load(tmp_path / "damaged")


def test_a_sparse_basis_has_distinct_rows_and_narrow_ones_are_dense():
    X = wide_rows(10)
    twice = sp.csr_array(sp.vstack([X, X]))
    assert (
        choose_landmarks(twice, 20, np.random.RandomState(0), may_be_sparse=True).shape[
            0
        ]
        == 10
    )
    assert isinstance(choose_landmarks(twice, 20, np.random.RandomState(0)), np.ndarray)
    narrow = twice[:, :6].tocsr()
    assert isinstance(
        choose_landmarks(narrow, 20, np.random.RandomState(0), may_be_sparse=True),
        np.ndarray,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("method", ["SparseKernelMMC", "MaximumMarginClustering"])
def test_two_thousand_rows_of_300_000_columns_take_less_than_their_plan(method):
    for estimator in (None, getattr(mmcnb, method)()):
        mmcnb.warmup(estimator)  # a process that compiles would not keep the limit
    command = [sys.executable, "-W", "ignore", "-c", WIDE, method]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    report = json.loads(done.stdout)
    assert report["labels"] == [0] * 1000 + [1] * 1000
    assert report["peak"] <= report["plan"] <= 2**30

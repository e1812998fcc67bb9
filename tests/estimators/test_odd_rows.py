"""Rows of any shape, scale and type are clustered: the labels are predictions, or a warning says why not."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mmcnb.errors import ClusterWarning
from tests.estimators.conftest import make_blobs, make_sparse
from tests.estimators.every import NAMES, make_any

FAR = make_blobs(60, gap=8.0)
ROWS = {
    "one column": FAR[:, :1],
    "three rows": FAR[:3],
    "each row five times": np.repeat(FAR[:12], 5, axis=0),
    "two kinds of rows, one of a single row": np.repeat(
        [[0.0], [5.0]], [59, 1], axis=0
    ),
    "three kinds of rows": np.repeat(
        [[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], [40, 10, 10], axis=0
    ),
    "a constant column": np.c_[FAR, np.full(60, 7.0)],
    "a large constant column": np.c_[FAR, np.full(60, 1e6)],
    "far from 0": FAR + 1e5,
    "an outlier": np.r_[FAR, [[1e15] * 3]].astype(np.float32),
    "tiny values": 1e-8 * FAR,
    "huge values": 1e25 * FAR,
    "bytes": (10 * FAR).astype(np.int8),
    "truth values": FAR > 2,
    "half precision": FAR.astype(np.float16),
    "sparse": make_sparse(60),
}
QUICK = {"n_init": 2, "kernels": "auto"}


def check(name, rows, n_clusters, **parameters):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make_any(name, n_clusters=n_clusters, **QUICK | parameters).fit(rows)
    assert {warning.category for warning in caught} <= {
        ClusterWarning,
        ConvergenceWarning,
    }
    labels = model.labels_
    np.testing.assert_array_equal(labels, model.predict(rows))
    sizes = np.bincount(labels, minlength=n_clusters)
    assert len(sizes) <= n_clusters
    _, firsts = np.unique(labels, return_index=True)
    assert (np.diff(firsts) > 0).all()
    if "sizes" in model.report_:
        np.testing.assert_allclose(model.report_["sizes"], sizes)
    assert caught or (sizes > 0).all()
    return model


IN_TURN = [
    (case, NAMES[(i + j) % len(NAMES)])
    for i, case in enumerate(ROWS)
    for j in (0, 3, 6)
]
FEW_KINDS = ("two kinds of rows, one of a single row", "an outlier", "truth values")
THREE_CLUSTERS = [
    (case, name, 3)
    for case in ROWS
    for name in ("KernelKMeans", "MultipleKernelClustering", "UnsupervisedRLS")
    if case not in FEW_KINDS
]
ALL = [(case, name, 2) for case in ROWS for name in NAMES] + THREE_CLUSTERS


@pytest.mark.parametrize(("case", "name"), IN_TURN)
def test_odd_rows_are_divided(case, name):
    check(name, ROWS[case], 2)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize(("case", "name", "n_clusters"), ALL)
def test_odd_rows_are_divided_whatever_the_method(case, name, n_clusters, scale):
    check(name, ROWS[case], n_clusters, scale=scale)

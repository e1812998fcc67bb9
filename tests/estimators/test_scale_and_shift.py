"""Laws of scale and shift: the same partition wherever the rows lie and whatever their unit."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import mmcnb

X, Y = make_blobs(300, 4, centers=3, random_state=2, cluster_std=0.5)
TWO = np.random.default_rng(0).normal(size=(60, 3)) + 8 * (np.arange(60) % 2)[:, None]
OF_THREE = [
    mmcnb.MaximumMarginClustering(3, kernel="linear", random_state=0),
    mmcnb.MaximumMarginClustering(3, kernel="rbf", random_state=0),
    mmcnb.MaximumMarginClustering(3, random_state=0),
    mmcnb.CrammerSingerMMC(n_clusters=3, kernel="linear", random_state=0),
    mmcnb.UnsupervisedRLS(n_clusters=3, random_state=0),
    mmcnb.KernelKMeans(n_clusters=3, random_state=0),
]
OF_TWO = [
    mmcnb.MaximumMarginClustering(2, kernel="rbf", random_state=0),
    mmcnb.MaximumMarginClustering(2, random_state=0),
    mmcnb.CPMMC(random_state=0),
    mmcnb.SparseKernelMMC(random_state=0),
    mmcnb.KernelCPMMC(random_state=0),
    mmcnb.UnsupervisedRLS(n_clusters=2, random_state=0),
    mmcnb.KernelKMeans(n_clusters=2, random_state=0),
]


@pytest.mark.parametrize("model", OF_THREE, ids=str)
@pytest.mark.parametrize("shift", [1e3, -1e4, 1e6, 1e9])
def test_rows_far_from_the_origin_have_the_same_clusters(model, shift):
    found = model.fit(X).labels_
    assert np.array_equal(model.fit(X + shift).labels_, found)
    assert np.array_equal(model.predict(X + shift), found)
    assert adjusted_rand_score(Y, found) == 1


@pytest.mark.parametrize("sample_weight", [None, np.r_[np.full(150, 2.0), np.ones(150)]])
def test_a_weight_is_a_repetition_far_from_the_origin(sample_weight):
    model = mmcnb.CPMMC(random_state=0, n_init=2)
    rows = X + 1e6
    weighted = model.fit(rows, sample_weight=sample_weight).labels_
    if sample_weight is not None:
        repeated = model.fit(np.repeat(rows, sample_weight.astype(int), axis=0)).predict(rows)
        assert adjusted_rand_score(weighted, repeated) == 1
    assert np.array_equal(model.predict(rows), weighted) or sample_weight is not None


@pytest.mark.filterwarnings("ignore::UserWarning")  # three columns, of which one may decide
@pytest.mark.parametrize("model", OF_TWO, ids=str)
@pytest.mark.parametrize("unit", [1e-150, 1e-24, 1e-10, 1e10, 1e20, 1e38, 1e150])
def test_sparse_rows_in_any_unit_have_the_clusters_of_dense_ones(model, unit):
    dense, sparse = model.fit(TWO).labels_, model.fit(csr_array(TWO * unit))
    assert adjusted_rand_score(sparse.labels_, dense) == 1
    assert np.array_equal(sparse.predict(csr_array(TWO * unit)), sparse.labels_)
    assert adjusted_rand_score(dense, np.arange(60) % 2) == 1

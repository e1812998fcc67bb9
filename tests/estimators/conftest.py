"""Rows with two clusters, and the storages they can have."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import zarr

import mmcnb
from mmcnb.engine.plan import plan_fit
from mmcnb.stores import create_csr_store, create_dense_store

ESTIMATORS = ("SparseKernelMMC", "KernelCPMMC", "CPMMC")


def make_blobs(n, d=3, gap=5.0, seed=0, dtype=np.float64):
    """Two round groups with a few rows between them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 0] += np.where(rng.random(n) < 0.6, gap / 2, -gap / 2)
    return X.astype(dtype)


def make_rings(n, d=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(rng.random(n) < 0.5, 1.0, 0.4)
    noise = rng.standard_normal((n, d)) * 0.05
    noise[:, :2] += np.c_[np.cos(angle), np.sin(angle)] * radius[:, None]
    return noise.astype(dtype)


def make_sparse(n, d=30, seed=0, dtype=np.float64):
    """Two topics: rows that mostly use the first or the second half of the columns."""
    rng = np.random.default_rng(seed)
    topic = rng.random(n) < 0.55
    likely = np.where((np.arange(d) < d // 2)[None, :] == topic[:, None], 0.5, 0.03)
    return scipy.sparse.csr_array(((rng.random((n, d)) < likely) * (0.5 + rng.random((n, d)))).astype(dtype))


def make(name, **parameters):
    """An estimator with a fixed width, so that small fits take milliseconds."""
    if name != "CPMMC":
        parameters = {"gamma": 0.5} | parameters
    return getattr(mmcnb, name)(**({"random_state": 0} | parameters))


def bits(model, X):
    """Labels and decision values, to the bit."""
    return model.labels_.tobytes(), model.decision_function(X).tobytes(), model.objective_


def same_clusters(one, other):
    """Whether two labelings are the same up to numbering."""
    return np.array_equal(one, other) or np.array_equal(one, 1 - np.asarray(other))


@pytest.fixture
def dense_storages(tmp_path):
    """A function that gives the storages of one dense array, by name."""

    def storages(X):
        zarr.create_array(tmp_path / "bare.zarr", data=X, chunks=(777, 2))
        with create_dense_store(
            tmp_path / "ours.zarr", X.shape[1], dtype=X.dtype.name, chunk_rows=4096
        ) as writer:
            writer.append(X)
        return {
            "array": X,
            "zarr, 777 x 2": tmp_path / "bare.zarr",
            "zarr, 4096 rows": str(tmp_path / "ours.zarr"),
            "opened zarr": zarr.open_array(tmp_path / "bare.zarr", mode="r"),
        }

    return storages


@pytest.fixture
def csr_storages(tmp_path):
    """A function that gives the storages of one CSR matrix, by name."""

    def storages(X):
        with create_csr_store(tmp_path / "csr.zarr", X.shape[1], dtype=X.dtype.name) as writer:
            writer.append(X)
        return {"csr": X, "zarr csr": tmp_path / "csr.zarr", "csr matrix": scipy.sparse.csr_matrix(X)}

    return storages


@pytest.fixture
def keep_columns_in(monkeypatch):
    """A function that makes every plan keep its kernel columns in one place."""

    def keep(store):
        def plan(*args, **options):
            return replace(plan_fit(*args, **options), store=store)

        monkeypatch.setattr("mmcnb.estimators.base.plan_fit", plan)

    return keep

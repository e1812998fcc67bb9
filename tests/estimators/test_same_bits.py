"""One answer, to the bit, wherever the rows live, however they are cut, and whoever reads them."""

import hashlib
import itertools
import os
import subprocess
import sys
from functools import cache

import dask.array
import numpy as np
import pytest
import scipy.sparse
import zarr

from mmcnb.samples import GROUP_ROWS
from mmcnb.stores import create_csr_store, create_dense_store
from tests.estimators.conftest import VARIANTS, differing, facts, fitted, make, rows_of
from tests.estimators.every import NAMES

FEW = 9000  # in three blocks of reduction
# in three groups of blocks, which workers share; a larger sample is drawn
MANY = 2 * GROUP_ROWS + 3001
STORES = ("memory", "zarr", "sharded", "ours", "dask")
CHUNK_ROWS = (3000, 30_000, MANY)
ENGINES = ("one thread", "two threads", "Dask")
# Each value of one of these with each value of any other, in as few cases as may be.
PAIRS = [
    (
        variant,
        store,
        CHUNK_ROWS[(v + s) % 3],
        ENGINES[(v + 2 * s) % 3],
        (v + s) % 2 == 0,
        (v + s + v // 2) % 2 == 0,
    )
    for (v, variant), (s, store) in itertools.product(
        enumerate(VARIANTS), enumerate(STORES)
    )
]
NAMES_OF_FACTORS = (
    "variant",
    "store",
    "chunk_rows",
    "engine",
    "is_sparse",
    "is_weighted",
)


@pytest.mark.parametrize("name", NAMES)
def test_odd_chunks_and_threads_change_no_bit(name, tmp_path):
    X = rows_of(name, FEW)
    expected = facts(fitted(name, X, n_jobs=1), X)
    zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(777, 2))
    for n_jobs in (1, 2):
        model = fitted(name, tmp_path / "rows.zarr", n_jobs=n_jobs)
        assert differing(expected, facts(model, X)) == []
        np.testing.assert_array_equal(
            model.predict(tmp_path / "rows.zarr"), model.labels_
        )


# -- all storages, chunks and engines --------------------------------------------------


def many_rows(variant, is_sparse):
    X = rows_of(variant, MANY, np.float32)
    return scipy.sparse.csr_array(np.where(X > 0, X, 0)) if is_sparse else X


def weights_of(X, is_weighted):
    return (
        np.random.default_rng(0).integers(0, 4, X.shape[0]).astype(float)
        if is_weighted
        else None
    )


@cache
def facts_in_memory(variant, is_sparse, is_weighted):
    X = many_rows(variant, is_sparse)
    return facts(fitted(variant, X, weights_of(X, is_weighted), n_jobs=1), X[:FEW])


def stored(X, store, chunk_rows, path):
    """Rows in a kind of storage with chunks of some rows."""
    is_sparse = scipy.sparse.issparse(X)
    if store == "memory":
        return X
    if store == "dask":
        lazy = dask.array.from_array(
            X.toarray() if is_sparse else X, chunks=(chunk_rows, 3)
        )
        return lazy.map_blocks(scipy.sparse.csr_array) if is_sparse else lazy
    if store == "ours":
        create = (
            create_csr_store(path)
            if is_sparse
            else create_dense_store(path, 3, chunk_rows=chunk_rows)
        )
        with create as writer:
            writer.append(X)
        return path
    if not is_sparse:
        shards = (4 * chunk_rows, 4) if store == "sharded" else None
        zarr.create_array(path, data=X, chunks=(chunk_rows, 2), shards=shards)
        return path
    group = zarr.create_group(path)
    encoding = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}
    group.attrs.update(encoding | {"shape": list(X.shape)})
    for name in ("data", "indices", "indptr"):
        shards = (4 * chunk_rows,) if store == "sharded" else None
        group.create_array(
            name, data=getattr(X, name), chunks=(chunk_rows,), shards=shards
        )
    return path


@pytest.fixture
def differing_from_memory(tmp_path, dask_client):
    """A function that gives the facts in which a fit differs from that of rows in memory by one thread."""

    def differences(variant, store, chunk_rows, engine, is_sparse, is_weighted):
        expected = facts_in_memory(variant, is_sparse, is_weighted)
        X = many_rows(variant, is_sparse)
        source = stored(
            X, store, chunk_rows, tmp_path / f"{len(list(tmp_path.iterdir()))}.zarr"
        )
        manner = (
            {"engine": dask_client(2)}
            if engine == "Dask"
            else {"n_jobs": 1 + ENGINES.index(engine)}
        )
        model = fitted(variant, source, weights_of(X, is_weighted), **manner)
        return differing(expected, facts(model, X[:FEW]))

    return differences


@pytest.mark.slow
@pytest.mark.parametrize(NAMES_OF_FACTORS, PAIRS)
def test_every_pair_of_storage_chunks_and_engine_gives_the_bits_of_memory(
    variant, store, chunk_rows, engine, is_sparse, is_weighted, differing_from_memory
):
    assert (
        differing_from_memory(
            variant, store, chunk_rows, engine, is_sparse, is_weighted
        )
        == []
    )


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("store", STORES)
def test_every_combination_gives_the_bits_of_memory(
    variant, store, differing_from_memory
):
    ways = itertools.product(CHUNK_ROWS, ENGINES, (False, True), (False, True))
    assert [way for way in ways if differing_from_memory(variant, store, *way)] == []


WITH_KERNEL_COLUMNS = [
    name for name, model in VARIANTS.items() if hasattr(model, "n_landmarks")
]


@pytest.mark.slow
@pytest.mark.parametrize("variant", WITH_KERNEL_COLUMNS)
def test_kernel_columns_in_a_file_or_computed_anew_give_the_same_bits(
    variant, keep_columns_in
):
    X = rows_of(variant, 2 * FEW)
    expected = facts(fitted(variant, X), X)
    for place in ("scratch", "recompute"):
        keep_columns_in(place)
        assert differing(expected, facts(fitted(variant, X, n_jobs=2), X)) == []


# -- other processes, layouts and types ------------------------------------------------


def digests(n_jobs):
    """A digest of the facts of every estimator."""
    every = {name: rows_of(name, FEW) for name in NAMES}
    told = {
        name: repr(facts(fitted(name, X, n_jobs=n_jobs), X))
        for name, X in every.items()
    }
    return {
        name: hashlib.sha256(text.encode()).hexdigest() for name, text in told.items()
    }


@pytest.mark.slow
def test_another_process_with_another_seed_of_hashes_gives_the_same_bits():
    script = f"from {__name__} import digests; print(digests(2))"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONHASHSEED": "12345",
    }
    command = [sys.executable, "-W", "ignore", "-c", script]
    assert (
        subprocess.check_output(command, env=environment, text=True)
        == f"{digests(1)}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_csr_rows_and_single_precision_give_nearly_the_same_clusters(variant):
    X = rows_of(variant, 2000, np.float32)
    # From a single start, rounding decides between two optima on some processors.
    starts = {"n_init": 4} if variant == "CrammerSingerMMC" else {}
    model = fitted(variant, X, **starts)
    for same_rows in (scipy.sparse.csr_array(X), X.astype(np.float64)):
        other = fitted(variant, same_rows, **starts)
        assert other.objective_ == pytest.approx(model.objective_, rel=1e-2)
        assert np.mean(other.labels_ == model.labels_) > 0.99


@pytest.mark.parametrize("seed", [10, 19, 52])
def test_rounding_does_not_choose_the_width_of_a_few_rows(seed):
    # All widths part these rows alike, so that their leave-one-out scores are one
    # number but for rounding.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 2)) + np.array(
        [[0, 0], [3, 0], [0, 0], [3, 3]]
    ) * rng.integers(0, 2)
    X = np.rint(2 * X) if seed % 2 else X
    weights = rng.integers(1, 4, 4)
    for name in ("KernelCPMMC", "SparseKernelMMC"):
        dense, sparse = (
            make(name, gamma="auto", scale="standard").fit(
                storage, sample_weight=weights
            )
            for storage in (X, scipy.sparse.csr_array(X))
        )
        np.testing.assert_array_equal(sparse.labels_, dense.labels_)
        assert sparse.gamma_ == pytest.approx(dense.gamma_, rel=1e-9)

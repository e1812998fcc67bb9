"""Every estimator gives the same bits of labels, objective and model from any store, on any threads."""

import hashlib
import json
import os
import subprocess
import sys

import dask.array
import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.datasets import make_blobs

from mmcnb.features.model import read_model
from mmcnb.samples import BLOCK_ROWS
from mmcnb.stores import create_csr_store, create_dense_store
from tests.campaigns import truth
from tests.estimators.every import NAMES, make_any

pytestmark = pytest.mark.slow

MANY = 2 * BLOCK_ROWS + 808  # rows in three blocks of reduction
SMALL = {"sample_size": 200, "n_init": 1, "n_landmarks": 20, "n_nodes": 400}  # so that many rows stream by
CHUNKS = ((97, 2), (1000, 3), (MANY, 1))
HASH_SEEDS = ("0", "1", "12345", "random")


def rows_of(name, n_clusters=2):
    """Rows of which some are equal and some values 0; few for the estimator that holds all kernel values."""
    n = 300 if name == "KernelCPMMC" else MANY
    X = make_blobs(n, 3, centers=n_clusters, random_state=1)[0]
    X[::7], X[np.abs(X) < 0.5] = X[0], 0
    return X


def facts(model, folder):
    """Digests of labels, objective and each array of the saved model."""
    model.save(folder / "model")
    _, arrays = read_model(folder / "model")
    parts = {"labels": model.labels_, "objective": np.float64(model.objective_), **arrays}
    return {name: hashlib.sha256(np.asarray(part).tobytes()).hexdigest()[:16] for name, part in parts.items()}


def differing(expected, found):
    return [name for name in {**expected, **found} if expected.get(name) != found.get(name)]


def test_every_estimator_is_in_the_campaign_of_truth():
    assert {type(model).__name__ for _, model in truth.ESTIMATORS.values()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_stores_chunks_and_dask_arrays_give_the_bits_of_memory(name, tmp_path):
    X, settings = rows_of(name), SMALL
    expected = facts(make_any(name, n_jobs=1, **settings).fit(X), tmp_path)
    sources = {"file": tmp_path / "rows.npy", "store": tmp_path / "ours.zarr"}
    np.save(sources["file"], X)
    with create_dense_store(sources["store"], 3, dtype="float64", chunk_rows=1000) as writer:
        writer.append(X)
    for chunks in CHUNKS:
        sources |= {
            f"zarr {chunks}": tmp_path / f"{chunks}.zarr",
            f"dask {chunks}": dask.array.from_array(X, chunks),
        }
        zarr.create_array(sources[f"zarr {chunks}"], data=X, chunks=chunks)
    for n_jobs, (kind, source) in enumerate(sources.items(), start=1):
        found = facts(make_any(name, n_jobs=n_jobs, **settings).fit(source), tmp_path)
        assert differing(expected, found) == [], f"{kind}, {n_jobs} threads"


@pytest.mark.parametrize("name", NAMES)
def test_stores_of_sparse_rows_give_the_bits_of_memory(name, tmp_path):
    X = scipy.sparse.csr_array(rows_of(name))
    expected = facts(make_any(name, n_jobs=1, **SMALL).fit(X), tmp_path)
    with create_csr_store(tmp_path / "ours.zarr", 3, dtype="float64") as writer:
        writer.append(X)
    for n_jobs in (2, 8):
        found = facts(make_any(name, n_jobs=n_jobs, **SMALL).fit(tmp_path / "ours.zarr"), tmp_path)
        assert differing(expected, found) == [], f"{n_jobs} threads"


@pytest.mark.parametrize("name", NAMES)
def test_a_cluster_of_dask_gives_the_bits_of_threads(name, tmp_path, dask_client):
    X = rows_of(name)
    zarr.create_array(tmp_path / "bare.zarr", data=X, chunks=(1000, 3))
    expected = facts(make_any(name, n_jobs=1, **SMALL).fit(X), tmp_path)
    found = facts(make_any(name, engine=dask_client(2), **SMALL).fit(tmp_path / "bare.zarr"), tmp_path)
    assert differing(expected, found) == []


def in_a_process(n_jobs, hash_seed):
    """The facts of a fit of every estimator in a process of its own."""
    told = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-W", "ignore", __file__, str(n_jobs)]
    done = subprocess.run(command, env=os.environ | told, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def expected():
    return in_a_process(1, "0")


@pytest.mark.parametrize("n_jobs", [2, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(3, 9))])
def test_threads_and_seeds_of_hashes_change_no_bit(n_jobs, expected):
    found = in_a_process(n_jobs, HASH_SEEDS[n_jobs % len(HASH_SEEDS)])
    assert list(expected) == NAMES
    assert {name: differing(expected[name], found[name]) for name in NAMES} == {name: [] for name in NAMES}


if __name__ == "__main__":
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        jobs = int(sys.argv[1])
        fits = {name: make_any(name, n_jobs=jobs, **SMALL).fit(rows_of(name)) for name in NAMES}
        print(json.dumps({name: facts(model, Path(folder)) for name, model in fits.items()}))

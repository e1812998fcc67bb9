"""Estimators on a Dask cluster: the answer of threads, to the bit."""

import copy
import pickle
import signal
import threading

import numpy as np
import pytest
import zarr
from sklearn.base import clone

import mmcnb
from mmcnb.engine import dask as dask_engine
from mmcnb.engine.session import open_engine
from mmcnb.samples import GROUP_ROWS
from mmcnb.stores import create_dense_store
from tests.estimators.conftest import bits, make, make_blobs

N = 2 * GROUP_ROWS + 5000  # more than two groups: the larger sample is used
QUICK = {"n_init": 1, "C": 2.0, "sample_size": 300, "n_jobs": 1}
PARAMETERS = {"SparseKernelMMC": {"gamma": 0.2, "n_landmarks": 8}, "CPMMC": {}}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of workers that were killed
]


@pytest.fixture(scope="module")
def X():
    return make_blobs(N, d=3, gap=3.0, dtype=np.float32)


@pytest.fixture(scope="module")
def path(X, tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "rows.zarr"
    with create_dense_store(path, 3, dtype="float32", chunk_rows=10_000) as writer:
        writer.append(X)
    return str(path)


def fitted(name, X, sample_weight=None, **parameters):
    return make(name, **QUICK | PARAMETERS[name] | parameters).fit(X, sample_weight=sample_weight)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["SparseKernelMMC", "CPMMC"])
def test_a_cluster_gives_the_bits_and_the_history_of_threads(dask_client, path, name, weighted):
    weights = np.random.default_rng(0).integers(0, 3, N) if weighted else None
    here = fitted(name, path, weights)
    there = fitted(name, path, weights, engine=dask_client(2))
    assert bits(there, path) == bits(here, path)
    columns = [column for column in here.history_ if column not in ("seconds", "sweeps", "reads", "bytes")]
    assert there.history_[columns].equals(here.history_[columns])


def test_labels_are_written_by_workers(dask_client, path, tmp_path):
    model = fitted("SparseKernelMMC", path)
    with mmcnb.config(engine=dask_client(2)):
        assert model.predict(path, out=tmp_path / "labels.zarr") is None
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "labels.zarr", mode="r")[:], model.labels_)


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "sends"), [(1, 2), (2, 5)])
def test_a_worker_killed_in_mid_fit_changes_nothing(own_cluster, path, monkeypatch, workers, sends):
    expected = bits(fitted("SparseKernelMMC", path), path)
    client, send, passes = own_cluster(workers), dask_engine._Sweep._submit, []

    def send_and_kill(sweep, batch):
        futures = send(sweep, batch)
        passes.append(batch)
        if len(passes) == sends:
            pid = next(iter(client.run(_pid).values()))
            threading.Timer(0.01, _kill, [pid]).start()
        return futures

    monkeypatch.setattr(dask_engine._Sweep, "_submit", send_and_kill)
    assert bits(fitted("SparseKernelMMC", path, engine=client), path) == expected
    assert len(passes) > sends


def _pid():
    import os

    return os.getpid()


def _kill(pid):
    import os

    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # on Windows either one ends it at once


def test_rows_in_memory_are_worked_on_here(dask_client, X):
    small = X[:5000]
    assert bits(fitted("CPMMC", small, engine=dask_client(2)), small) == bits(fitted("CPMMC", small), small)


def test_a_fit_started_by_its_address_ends_its_connection(dask_client, path):
    client = dask_client(1)
    before = set(client.scheduler_info()["workers"])
    connections = client.run_on_scheduler(_clients)
    there = fitted("CPMMC", path, engine=client.scheduler.address)
    assert bits(there, path) == bits(fitted("CPMMC", path), path)
    assert client.run_on_scheduler(_clients) == connections
    assert set(client.scheduler_info()["workers"]) == before


def _clients(dask_scheduler):
    return len(dask_scheduler.clients)


def test_config_holds_for_the_process_and_is_restored(dask_client):
    client = dask_client(1)
    found = []
    with mmcnb.config(engine=client):
        with open_engine() as engine:
            assert engine.client is client
        thread = threading.Thread(target=lambda: found.append(open_engine()))
        thread.start()
        thread.join()
        with mmcnb.config(engine=None), open_engine() as engine:
            assert not hasattr(engine, "client")
        with found[0] as engine:
            assert engine.client is client
    with open_engine() as engine:
        assert not hasattr(engine, "client")


def test_an_estimators_own_engine_comes_first(dask_client, path):
    client, model = dask_client(1), make("CPMMC", engine=dask_client(1), **QUICK)
    with mmcnb.config(engine="tcp://127.0.0.1:9"):
        assert model.fit(path).labels_.shape == (N,)
    assert model.engine is client


def test_clones_share_a_client_and_pickles_name_its_scheduler(dask_client):
    client = dask_client(1)
    model = make("CPMMC", engine=client, C=3.0).set_params(n_init=2)
    for copied in (clone(model), clone(clone(model))):
        assert copied.engine is client
        assert copied.get_params() == model.get_params()
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert copied.engine == client.scheduler.address
        assert copied.C == 3.0
    assert model.engine is client


def test_a_saved_model_knows_no_cluster(dask_client, path, tmp_path):
    for engine in (dask_client(1), dask_client(1).scheduler.address):
        fitted("CPMMC", path, engine=engine).save(tmp_path / "model")
        assert mmcnb.load(tmp_path / "model").engine is None


def test_a_task_of_a_worker_can_fit(dask_client, path):
    here = fitted("SparseKernelMMC", path)
    client = dask_client(2)
    futures = [client.submit(_fit_in_task, path, jobs, pure=False) for jobs in (1, 2)]
    for labels in client.gather(futures):
        assert labels.tobytes() == here.labels_.tobytes()


def _fit_in_task(path, n_jobs):
    return fitted("SparseKernelMMC", path, n_jobs=n_jobs).labels_

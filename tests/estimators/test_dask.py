"""Estimators on a Dask cluster: how the cluster is given, and what becomes of it."""

import copy
import os
import pickle
import signal
import threading

import numpy as np
import pytest
import zarr
from sklearn.base import clone

import mmcnb
from mmcnb.engine.session import open_engine
from mmcnb.samples import GROUP_ROWS
from mmcnb.stores import create_dense_store
from tests.engine.fakes import after_each_pass
from tests.estimators.conftest import bits, fitted, rows_of

pytestmark = [
    pytest.mark.slow,
    # sockets of workers that were killed
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "rows.zarr"
    with create_dense_store(path, 3, chunk_rows=10_000) as writer:
        writer.append(rows_of("", 2 * GROUP_ROWS + 5000))
    return str(path)


@pytest.fixture(scope="module")
def expected(path):
    return bits(fitted("SparseKernelMMC", path), path)


def test_a_worker_killed_in_mid_fit_changes_nothing(own_cluster, path, expected):
    client = own_cluster(2)
    killed = []

    def kill_a_worker(passes):
        if passes == 2:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], getattr(signal, "SIGKILL", signal.SIGTERM))

    with after_each_pass(kill_a_worker):
        assert bits(fitted("SparseKernelMMC", path, engine=client), path) == expected
    assert killed


def test_a_fit_started_by_its_address_ends_its_connection(dask_client, path, expected):
    def connections(dask_scheduler):
        return len(dask_scheduler.clients)

    client = dask_client(1)
    before = client.run_on_scheduler(connections)
    workers = set(client.scheduler_info()["workers"])
    assert (
        bits(fitted("SparseKernelMMC", path, engine=client.scheduler.address), path)
        == expected
    )
    assert client.run_on_scheduler(connections) == before
    assert set(client.scheduler_info()["workers"]) == workers


@pytest.mark.filterwarnings("ignore:.*gaps (were|are) filled")
def test_gaps_of_dask_arrays_are_filled_on_workers(dask_client):
    dask_array = pytest.importorskip("dask.array")
    y = np.arange(1200) % 3
    X = 9.0 * np.eye(3)[y] + np.random.default_rng(0).normal(size=(1200, 3))
    with_gaps = X.copy()
    with_gaps[::7, 1] = np.nan
    rows = dask_array.from_array(with_gaps, chunks=(500, 3))
    for fitted_rows in (with_gaps, X):
        model = mmcnb.CPMMC(random_state=0).fit(fitted_rows)
        expected = model.predict(with_gaps)
        with mmcnb.config(engine=dask_client(2)):
            np.testing.assert_array_equal(model.predict(rows), expected)
            if fitted_rows is with_gaps:
                again = mmcnb.CPMMC(random_state=0).fit(rows)
                np.testing.assert_array_equal(again.labels_, model.labels_)


def test_workers_write_labels_and_a_task_of_one_can_fit(
    dask_client, path, expected, tmp_path
):
    def labels_of_fit():
        return fitted("SparseKernelMMC", path, n_jobs=2).labels_.tobytes()

    client = dask_client(2)
    assert client.submit(labels_of_fit, pure=False).result() == expected[0]
    model = fitted("SparseKernelMMC", path)
    with mmcnb.config(engine=client):
        model.predict(path, out=tmp_path / "labels.zarr")
    assert (
        zarr.open_array(tmp_path / "labels.zarr", mode="r")[:].tobytes() == expected[0]
    )


def test_config_holds_for_the_process_and_is_restored(dask_client):
    client = dask_client(1)
    engines = []
    with mmcnb.config(engine=client):
        thread = threading.Thread(target=lambda: engines.append(open_engine()))
        thread.start()
        thread.join()
        for context in (*engines, open_engine()):
            with context as engine:
                assert engine.client is client
        with mmcnb.config(engine=None), open_engine() as engine:
            assert not hasattr(engine, "client")
    with open_engine() as engine:
        assert not hasattr(engine, "client")


def test_an_estimators_own_engine_comes_first_and_no_file_or_pickle_keeps_it(
    dask_client, path, tmp_path
):
    client = dask_client(1)
    with mmcnb.config(engine="tcp://127.0.0.1:9"):
        model = fitted("CPMMC", path, engine=client)
    assert model.engine is client
    again = clone(clone(model))
    assert again.engine is client
    assert again.get_params() == model.get_params()
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert copied.engine == client.scheduler.address
        np.testing.assert_array_equal(copied.labels_, model.labels_)
    model.save(tmp_path / "model")
    assert mmcnb.load(tmp_path / "model").engine is None

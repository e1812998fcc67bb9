"""The Dask engine gives the bits of threads, and nothing is lost with a worker."""

import asyncio
import gc
import os
import pickle
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import mmcnb
from mmcnb.engine import checkpoint
from mmcnb.engine import dask as dask_engine
from mmcnb.engine.dask import DaskEngine, LostError, Opened, PassUnpickler, pickle_pass
from mmcnb.engine.passes import CombinedPass, GatherPass, RowSumPass
from mmcnb.engine.plan import FitNeeds, RowShape, plan_fit
from mmcnb.engine.run import ThreadEngine
from mmcnb.engine.session import connected, open_engine
from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.features.kernel import BasisMap, Kernel, KernelSamples
from mmcnb.samples import GROUP_ROWS, open_samples
from mmcnb.samples.derived import CachedSamples
from mmcnb.stores import create_dense_store
from tests.engine.dask_passes import Deadly, Interrupted, Named, Processes
from tests.engine.fakes import OrderedSum

N = 5 * GROUP_ROWS + 4321
GROUPS = range(0, N, GROUP_ROWS)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of workers that were killed
]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, 2)) * 10.0 ** rng.integers(-8, 8, (N, 2))


@pytest.fixture(scope="module")
def path(X, tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "rows.zarr"
    with create_dense_store(path, X.shape[1], dtype="float64", chunk_rows=50_000) as writer:
        writer.append(X)
    return str(path)


def features(samples, p=5):
    return KernelSamples(samples, BasisMap(Kernel("rbf", 0.5), samples.block(0, p)))


def held_on_workers(client):
    def held():
        gc.collect()
        return sum(isinstance(samples, CachedSamples) for samples in Opened._all.values())

    return sum(client.run(held).values())


def open_late():
    raise TimeoutError("no answer")


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_same_bits_and_block_order_as_threads(dask_client, path, workers):
    samples = open_samples(path)
    with ThreadEngine(1) as threads, DaskEngine(dask_client(workers)) as cluster:
        expected, found = threads.run(OrderedSum(), samples), cluster.run(OrderedSum(), samples)
        named = cluster.run(Named(), samples)
    assert found[0] == expected[0]
    assert found[1].tobytes() == named[1].tobytes() == expected[1].tobytes()
    assert [start for start, _ in named[0]] == list(GROUPS)


def test_groups_stay_with_their_worker_and_are_shared_out(dask_client, path):
    samples = open_samples(path)
    with DaskEngine(dask_client(2)) as engine:
        first, second = (engine.run(Processes(), samples) for _ in range(2))
    assert first == second
    of_group = [{pid for start, pid in first if start // GROUP_ROWS == k} for k in range(len(GROUPS))]
    assert all(len(pids) == 1 for pids in of_group)
    pids = [pids.pop() for pids in of_group]
    assert sorted(pids.count(pid) for pid in set(pids)) == [3, 3]


def test_rows_in_memory_are_not_sent(dask_client, X):
    class Local(OrderedSum):
        """Cannot be pickled."""

    with DaskEngine(dask_client(2), n_jobs=1) as cluster, ThreadEngine(1) as threads:
        samples = open_samples(X)
        assert cluster.run(Local(), samples)[1].tobytes() == threads.run(Local(), samples)[1].tobytes()


@pytest.mark.slow
def test_features_are_cached_where_they_were_computed_and_dropped_at_the_end(dask_client, path, tmp_path):
    client = dask_client(2)
    copy = tmp_path / "copy.zarr"
    subprocess.run(["cp", "-r", path, copy], check=True)
    samples = open_samples(copy)
    plan = plan_fit(RowShape(N, 2), FitNeeds(n_landmarks=5))
    with ThreadEngine(1) as threads:
        expected = threads.run(OrderedSum(), features(samples))[1].tobytes()
    with DaskEngine(client) as engine:
        cached = engine.cache(features(samples), plan.store, plan.capacity)
        assert not cached.cached
        assert engine.run(OrderedSum(), cached)[1].tobytes() == expected
        assert cached.cached
        subprocess.run(["rm", "-r", copy], check=True)
        assert engine.run(OrderedSum(), cached)[1].tobytes() == expected
        assert held_on_workers(client) == 2
    wait_until(lambda: held_on_workers(client) == 0)


def test_workers_let_go_of_what_a_client_that_is_gone_had(dask_client, path):
    from distributed import Client

    client = dask_client(1)
    other = Client(client.scheduler.address, set_as_default=False)
    with DaskEngine(other) as engine:
        engine.run(OrderedSum(), CachedSamples(open_samples(path)))
        assert held_on_workers(client) == 1
        other.close()
        wait_until(lambda: held_on_workers(client) == 0)


@pytest.mark.parametrize("groups", [0, 2])
def test_what_does_not_fit_is_computed_anew(dask_client, path, groups):
    samples = features(open_samples(path))
    with DaskEngine(dask_client(1)) as engine, ThreadEngine(1) as threads:
        expected = threads.run(OrderedSum(), samples)[1].tobytes()
        cached = CachedSamples(samples, capacity=groups * GROUP_ROWS * 5 * 4)
        for _ in range(2):
            assert engine.run(OrderedSum(), cached)[1].tobytes() == expected
            assert not cached.cached
        here = CachedSamples(samples, capacity=groups * GROUP_ROWS * 5 * 4)
        for _ in range(2):
            assert threads.run(OrderedSum(), here)[1].tobytes() == expected
            assert not here.cached
        assert here.cached_bytes == here.capacity


@pytest.mark.slow
def test_weights_are_sent_once_and_by_group(dask_client, path, monkeypatch):
    samples, rng = open_samples(path), np.random.default_rng(1)
    weights, rows = rng.random(N), np.sort(rng.choice(N, 1000, replace=False))
    sweep = CombinedPass((GatherPass(rows), RowSumPass(weights)))
    client, sent = dask_client(2), []
    scatter = client.scatter
    monkeypatch.setattr(client, "scatter", lambda data, **o: sent.append(data.nbytes) or scatter(data, **o))
    with ThreadEngine(1) as threads, DaskEngine(client) as cluster:
        expected = threads.run(sweep, samples)
        for _ in range(2):
            found = cluster.run(sweep, samples)
            assert np.concatenate(found[0]).tobytes() == np.concatenate(expected[0]).tobytes()
            assert found[1][0].tobytes() == expected[1][0].tobytes()
            assert found[1][1] == expected[1][1]
    assert sum(sent) == weights.nbytes


def test_a_pass_as_bytes_leaves_out_values_of_rows_and_nothing_else():
    n = 2 * GROUP_ROWS
    weights, rows = np.linspace(0, 1, n), np.arange(n)
    data, values = pickle_pass(CombinedPass((GatherPass(rows), RowSumPass(weights), RowSumPass(weights))), n)
    assert [array is weights for array in values] == [True]
    gather, *sums = PassUnpickler(data, [weights[GROUP_ROWS:]], GROUP_ROWS).load().passes
    np.testing.assert_array_equal(gather.rows, rows)
    for part in sums:
        np.testing.assert_array_equal(part.weights_of(GROUP_ROWS + 5, n), weights[GROUP_ROWS + 5 :])
    few = pickle_pass(RowSumPass(np.ones(3)), 3)
    assert few[1] == []
    assert PassUnpickler(*few, 0).load().weights.tolist() == [1, 1, 1]


def test_bad_rows_are_the_sentence_of_threads(dask_client, tmp_path):
    X = np.ones((GROUP_ROWS + 10, 2))
    X[GROUP_ROWS + 7, 1] = np.nan
    zarr.create_array(tmp_path / "nan.zarr", data=X, chunks=(GROUP_ROWS, 2))
    samples, sentences = open_samples(tmp_path / "nan.zarr"), []
    for engine in (ThreadEngine(1), DaskEngine(dask_client(2))):
        with engine, pytest.raises(InputError, match=f"NaN at row {GROUP_ROWS + 7}, column 1") as caught:
            engine.run(OrderedSum(), samples)
        sentences.append(str(caught.value))
    assert sentences[0] == sentences[1]


def test_a_damaged_chunk_is_the_sentence_of_threads(dask_client, tmp_path):
    path = tmp_path / "rows.zarr"
    with create_dense_store(path, 2, dtype="float64", chunk_rows=GROUP_ROWS) as writer:
        writer.append(np.random.default_rng(0).random((GROUP_ROWS + 10, 2)))
    samples, chunk = open_samples(path), path / "X" / "c" / "1" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-3])
    for engine in (ThreadEngine(1), DaskEngine(dask_client(2))):
        with engine, pytest.raises(DamagedStoreError, match=r"rows\.zarr: chunk X/c/1/0 is damaged"):
            engine.run(OrderedSum(), samples)


def test_an_interrupt_cancels_what_is_in_flight(dask_client, path, monkeypatch):
    monkeypatch.setattr(dask_engine, "GROUPS_AHEAD", 1)
    client, samples = dask_client(2), open_samples(path)
    with DaskEngine(client) as engine:
        with pytest.raises(KeyboardInterrupt):
            engine.run(Interrupted(), samples)
        wait_until(lambda: not any(client.processing().values()), seconds=10)
        assert engine.run(OrderedSum(), samples)[0]  # the engine goes on to work


# -- workers that are lost -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "ahead"), [(1, 1), (2, 8)])
def test_a_worker_killed_in_a_pass_changes_nothing(own_cluster, path, tmp_path, monkeypatch, workers, ahead):
    monkeypatch.setattr(dask_engine, "GROUPS_AHEAD", ahead)
    client, samples = own_cluster(workers), open_samples(path)
    weights = np.random.default_rng(1).random(N)
    with ThreadEngine(1) as threads:
        expected = threads.run(CombinedPass((OrderedSum(), RowSumPass(weights))), samples)
    with DaskEngine(client) as engine:
        cached = CachedSamples(samples)
        engine.run(OrderedSum(), cached)
        (tmp_path / "once").touch()
        sweep = CombinedPass((Deadly(tmp_path, 2 * GROUP_ROWS), RowSumPass(weights)))
        found = engine.run(sweep, cached)
        assert not (tmp_path / "once").exists()
        assert found[0][0] == expected[0][0]
        assert found[0][1].tobytes() == expected[0][1].tobytes()
        assert found[1][0].tobytes() == expected[1][0].tobytes()
        assert engine.run(OrderedSum(), cached)[1].tobytes() == expected[0][1].tobytes()


@pytest.mark.slow
def test_data_that_died_with_a_worker_is_sent_again(own_cluster, path, monkeypatch):
    client, samples = own_cluster(2), open_samples(path)
    monkeypatch.setattr(dask_engine, "GRAPH_BYTES", 0)  # all is scattered, and Dask cannot make it again
    with ThreadEngine(1) as threads, DaskEngine(client) as engine:
        expected = threads.run(OrderedSum(), samples)[1].tobytes()
        assert engine.run(OrderedSum(), samples)[1].tobytes() == expected
        client.restart()
        assert engine.run(OrderedSum(), samples)[1].tobytes() == expected


@pytest.mark.parametrize("most", [0, dask_engine.GRAPH_BYTES])
def test_what_is_sent_while_its_worker_leaves_is_sent_again(dask_client, path, monkeypatch, most):
    client, samples = dask_client(2), open_samples(path)
    sweep = RowSumPass(np.random.default_rng(2).random(N))
    scatter, failures = client.scatter, [OSError("closed"), TimeoutError("none"), KeyError("tcp://")]

    def unsteady(*arguments, **options):
        if failures:
            raise failures.pop()
        return scatter(*arguments, **options)

    monkeypatch.setattr(client, "scatter", unsteady)
    monkeypatch.setattr(dask_engine, "GRAPH_BYTES", most)  # with 0, samples and pass are scattered as well
    with ThreadEngine(1) as threads, DaskEngine(client) as engine:
        expected = threads.run(sweep, samples)[0].tobytes()
        assert engine.run(sweep, samples)[0].tobytes() == expected
    assert not failures


@pytest.mark.parametrize("status", ["pending", "lost"])
def test_results_lost_while_they_are_gathered_are_noticed(dask_client, monkeypatch, status):
    async def never(futures, asynchronous):
        await asyncio.Event().wait()

    client = dask_client(1)
    monkeypatch.setattr(dask_engine, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(client, "gather", never)
    with DaskEngine(client) as engine, pytest.raises(LostError):
        engine.results({0: ("tcp://127.0.0.1:1", SimpleNamespace(status=status))})


@pytest.mark.slow
def test_results_that_were_ready_when_all_workers_died_are_computed_again(own_cluster, path, monkeypatch):
    monkeypatch.setattr(dask_engine, "GROUPS_AHEAD", 1)
    client, samples = own_cluster(1), open_samples(path)
    with ThreadEngine(1) as threads:
        expected = list(threads.groups(OrderedSum(), samples))
    with DaskEngine(client) as engine:
        found = engine.groups(OrderedSum(), samples)
        totals = [next(found)]  # the next group is sent already
        states = [state for key, state in client.futures.items() if "mmcnb-group" in str(key)]
        wait_until(lambda: all(state.status == "finished" for state in states))
        pid = next(iter(client.run(os.getpid).values()))
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        wait_until(lambda: {state.status for state in states} == {"lost"})
        totals += found
    assert [names for names, _ in totals] == [names for names, _ in expected]
    np.testing.assert_array_equal([total for _, total in totals], [total for _, total in expected])


@pytest.mark.slow
def test_a_task_that_times_out_is_not_waited_for(dask_client):
    client = dask_client(1)
    task = client.submit(open_late, pure=False)
    with DaskEngine(client) as engine, pytest.raises(TimeoutError, match=r"^no answer$"):
        engine.results({0: (next(iter(client.nthreads())), task)})


@pytest.mark.slow
def test_rows_that_kill_every_worker_end_in_one_sentence(own_cluster, path, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine, "TRIES", 2)
    for name in range(50):
        (tmp_path / str(name)).touch()
    with (
        DaskEngine(own_cluster(1)) as engine,
        pytest.raises(
            InputError, match=r"^workers of [^\n]* died again and again at rows 0 to [^\n]*memory[^\n]*\.$"
        ),
    ):
        engine.run(Deadly(tmp_path, 0), open_samples(path))


def test_a_cluster_without_workers_ends_in_one_sentence(path, monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(dask_engine, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(dask_engine, "POLL_SECONDS", 0.1)
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        DaskEngine(client) as engine,
        pytest.raises(InputError, match=r"has had no worker for 0 s; start workers and fit again\.$"),
    ):
        engine.run(OrderedSum(), open_samples(path))


@given(
    groups=st.integers(1, 40),
    threads=st.dictionaries(st.integers(0, 8).map(str), st.integers(1, 4), min_size=1),
)
def test_groups_are_shared_out_evenly_and_stay_while_the_workers_do(groups, threads):
    engine = DaskEngine("local:1")
    engine._workers = lambda: threads
    starts = range(0, groups * 3, 3)
    assert engine.assign(starts) == sum(threads.values())
    assert list(engine.assigned) == list(starts)
    rounds = -(-groups // sum(threads.values()))
    assert all(list(engine.assigned.values()).count(one) <= rounds * n for one, n in threads.items())
    before = engine.assigned
    threads = dict(reversed(threads.items()))
    engine.assign(starts)
    assert engine.assigned == before


@pytest.mark.slow
def test_a_worker_of_another_version_ends_in_one_sentence(own_cluster, path):
    def pretend():
        checkpoint.version = lambda name: "0.1"

    client = own_cluster(1)
    with DaskEngine(client) as engine:
        client.run(pretend)
        sentence = (
            r"^a Dask worker differs from its client: [^\n]*numba is '[\d.]+' there and '0.1' here[^\n]*\.$"
        )
        with pytest.raises(InputError, match=sentence):
            engine.run(OrderedSum(), open_samples(path))


def test_a_worker_without_this_mmcnb_ends_in_one_sentence(dask_client, path):
    class Lacking(OrderedSum):
        """Fails as what a worker lacks does."""

        def __reduce__(self):
            return __import__, ("mmcnb.later",)

    sentence = r"^a worker of [^\n]* cannot run this version of mmcnb \([^\n]*\); install the same[^\n]*\.$"
    with DaskEngine(dask_client(1)) as engine, pytest.raises(InputError, match=sentence):
        engine.run(Lacking(), open_samples(path))


# -- which engine --------------------------------------------------------------------------------


def test_no_scheduler_is_one_sentence_within_seconds(monkeypatch):
    monkeypatch.setattr("mmcnb.engine.dask.CONNECT_SECONDS", 1)
    started = time.monotonic()
    sentence = r"^no Dask scheduler answers at tcp://127\.0\.0\.1:9 \([^\n]*\); check the address[^\n]*\.$"
    with pytest.raises(InputError, match=sentence), open_engine("tcp://127.0.0.1:9"):
        pass
    assert time.monotonic() - started < 8


@pytest.mark.parametrize("engine", ["host:8786", "local:0", "local:two", "tcp://", 3, object()])
def test_what_is_no_engine_is_one_sentence(engine):
    with (
        pytest.raises(InputError, match=r"^engine=[^\n]* is no [^\n]*tcp://host:8786[^\n]*\.$"),
        open_engine(engine),
    ):
        pass


def test_without_dask_the_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(InputError, match=r"needs Dask; install it with `pip install 'mmcnb\[dask\]'`"),
        open_engine("tcp://127.0.0.1:9"),
    ):
        pass


def test_a_client_that_is_closed_is_one_sentence(dask_client):
    from distributed import Client

    client = Client(dask_client(1).scheduler.address, set_as_default=False)
    client.close()
    with pytest.raises(InputError, match=r"^engine is a Dask client that is closed"), open_engine(client):
        pass
    with pytest.raises(InputError, match=r"^engine is a Dask client that is closed"):
        mmcnb.config(engine=client)


def test_an_address_is_connected_once_and_left_at_the_end(dask_client, path):
    address = dask_client(1).scheduler.address
    with connected(address) as outer:
        with open_engine(address) as engine:
            assert engine.client is outer
            assert engine.run(OrderedSum(), open_samples(path))[0]
        assert outer.status == "running"
    assert outer.status == "closed"


@pytest.mark.slow
def test_a_cluster_of_processes_here_ends_with_the_block(path):
    with open_engine("local:1") as engine:
        (pid,) = {pid for _, pid in engine.run(Processes(), open_samples(path))}
        cluster = engine.client.cluster
    assert cluster.status.name == "closed"
    wait_until(lambda: subprocess.run(["kill", "-0", str(pid)], capture_output=True).returncode != 0)


def test_cached_features_are_pickled_without_their_rows(path):
    cached = CachedSamples(features(open_samples(path)))
    with ThreadEngine(1) as threads:
        before = len(pickle.dumps(cached))
        expected = threads.run(OrderedSum(), cached)[1].tobytes()
        assert len(pickle.dumps(cached)) <= before + 1000
        again = pickle.loads(pickle.dumps(cached))
        assert not again.cached
        assert threads.run(OrderedSum(), again)[1].tobytes() == expected

"""The Dask engine gives the bits of threads, and nothing is lost with a worker."""

import gc
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import zarr

import mmcnb
from mmcnb.engine import checkpoint
from mmcnb.engine import dask as dask_engine
from mmcnb.engine.dask import DaskEngine, Opened
from mmcnb.engine.passes import CombinedPass, GatherPass, RowSumPass
from mmcnb.engine.run import ThreadEngine
from mmcnb.engine.session import connected, open_engine
from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.features.kernel import BasisMap, Kernel, KernelSamples
from mmcnb.samples import GROUP_ROWS, open_samples
from mmcnb.samples.derived import CachedSamples
from mmcnb.stores import create_dense_store
from tests.engine.dask_passes import Deadly, Interrupted, Lacking, Named, TimedOut
from tests.engine.fakes import OrderedSum, run

N = 5 * GROUP_ROWS + 4321
GROUPS = range(0, N, GROUP_ROWS)
pytestmark = [
    pytest.mark.slow,
    # sockets of workers that were killed
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, 2)) * 10.0 ** rng.integers(-8, 8, (N, 2))


@pytest.fixture(scope="module")
def path(X, tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "rows.zarr"
    with create_dense_store(
        path, X.shape[1], dtype="float64", chunk_rows=50_000
    ) as writer:
        writer.append(X)
    return str(path)


@pytest.fixture
def samples(path):
    return open_samples(path)


@pytest.fixture(scope="module")
def expected(path):
    """The sum of all rows."""
    return run(OrderedSum(), open_samples(path))[1].tobytes()


@pytest.fixture
def set_limit(monkeypatch):
    """A function that sets a limit of the engine: what takes minutes and gigabytes takes little then."""

    def set_limit(name, value):
        # Internal: limits of a cluster are no parameters, and a test cannot wait for
        # them.
        monkeypatch.setattr(dask_engine, name, value)

    return set_limit


def sum_of(engine, samples):
    return engine.run(OrderedSum(), samples)[1].tobytes()


def features(samples, p=5):
    return KernelSamples(samples, BasisMap(Kernel("rbf", 0.5), samples.block(0, p)))


def held_on_workers(client):
    def held():
        gc.collect()
        # Internal: what a worker keeps in memory is nowhere told.
        return sum(
            isinstance(samples, CachedSamples) for samples in Opened._all.values()
        )

    return sum(client.run(held).values())


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def kill(pid):
    os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


@pytest.mark.parametrize("workers", [1, 2])
def test_same_bits_as_threads_from_groups_that_stay_with_their_worker(
    dask_client, samples, expected, workers
):
    with DaskEngine(dask_client(workers)) as cluster:
        assert cluster.run(OrderedSum(), samples)[0] == run(OrderedSum(), samples)[0]
        places, total = cluster.run(Named(), samples)
        again, _ = cluster.run(Named(), samples)
    assert total.tobytes() == expected
    assert places == again
    assert [start for start, _ in places] == list(GROUPS)
    pids = [pid for _, pid in places]
    assert {pids.count(pid) for pid in pids} == {len(GROUPS) // workers}


def test_tasks_of_several_groups_give_the_same_bits(
    dask_client, samples, expected, set_limit
):
    """As on a cluster of many threads, whose scheduler would be short of time."""
    set_limit("THREADS_SERVED", 1)
    set_limit("LEAST_TASKS", 1)
    weighted = RowSumPass(np.random.default_rng(3).random(N))
    client = dask_client(2)
    with DaskEngine(client) as engine:
        places, total = engine.run(Named(), samples)
        sums, _ = engine.run(weighted, samples)
        cached = engine.cache(features(samples), "memory")
        of_features = [sum_of(engine, cached) for _ in range(2)]
    assert total.tobytes() == expected
    assert sums.tobytes() == run(weighted, samples)[0].tobytes()
    assert set(of_features) == {run(OrderedSum(), features(samples))[1].tobytes()}
    pids = [pid for _, pid in places]
    assert [start for start, _ in places] == list(GROUPS)
    assert pids[::2] == pids[1::2]
    assert len(set(pids)) == 2


def test_features_are_cached_on_the_workers_and_dropped_at_the_end(
    dask_client, samples
):
    client = dask_client(2)
    expected = run(OrderedSum(), features(samples))[1].tobytes()
    with DaskEngine(client) as engine:
        cached = engine.cache(features(samples), "memory")
        assert not cached.cached
        assert sum_of(engine, cached) == expected
        assert cached.cached
        assert sum_of(engine, cached) == expected
        assert held_on_workers(client) == 2
    wait_until(lambda: held_on_workers(client) == 0)


def test_workers_let_go_of_what_a_client_that_is_gone_had(dask_client, samples):
    from distributed import Client

    client = dask_client(1)
    other = Client(client.scheduler.address, set_as_default=False)
    with DaskEngine(other) as engine:
        engine.run(OrderedSum(), CachedSamples(samples))
        assert held_on_workers(client) == 1
        other.close()
        wait_until(lambda: held_on_workers(client) == 0)


def test_what_does_not_fit_is_computed_anew(dask_client, samples):
    capacity = 2 * GROUP_ROWS * 5 * 4
    expected = run(OrderedSum(), features(samples))[1].tobytes()
    with DaskEngine(dask_client(1)) as cluster, ThreadEngine(1) as threads:
        for engine in (cluster, threads):
            cached = CachedSamples(features(samples), capacity=capacity)
            for _ in range(2):
                assert sum_of(engine, cached) == expected
                assert not cached.cached
    assert cached.cached_bytes == capacity


def test_weights_are_sent_once_and_by_group(dask_client, samples, monkeypatch):
    rng = np.random.default_rng(1)
    weights = rng.random(N)
    rows = np.sort(rng.choice(N, 1000, replace=False))
    sweep = CombinedPass((GatherPass(rows), RowSumPass(weights)))
    client = dask_client(2)
    scatter = client.scatter
    sent = []
    monkeypatch.setattr(
        client,
        "scatter",
        lambda data, **o: sent.append(data.nbytes) or scatter(data, **o),
    )
    gathered, sums = run(sweep, samples)
    with DaskEngine(client) as cluster:
        for _ in range(2):
            there = cluster.run(sweep, samples)
            assert (
                np.concatenate(there[0]).tobytes() == np.concatenate(gathered).tobytes()
            )
            assert there[1][0].tobytes() == sums[0].tobytes()
            assert there[1][1] == sums[1]
    assert sum(sent) == weights.nbytes


@pytest.mark.parametrize("fault", ["NaN", "damage"])
def test_bad_rows_are_the_sentence_of_threads(dask_client, tmp_path, fault):
    X = np.random.default_rng(0).random((GROUP_ROWS + 10, 2))
    X[GROUP_ROWS + 7, 1] = np.nan if fault == "NaN" else 0
    zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(GROUP_ROWS, 2))
    if fault == "damage":
        chunk = tmp_path / "rows.zarr" / "c" / "1" / "0"
        chunk.write_bytes(chunk.read_bytes()[:-3])
    samples = open_samples(tmp_path / "rows.zarr")
    sentences = []
    for engine in (ThreadEngine(1), DaskEngine(dask_client(2))):
        with engine, pytest.raises((InputError, DamagedStoreError)) as caught:
            engine.run(OrderedSum(), samples)
        sentences.append(str(caught.value))
    assert sentences[0] == sentences[1]
    assert f"NaN at row {GROUP_ROWS + 7}, column 1" in sentences[0] or fault == "damage"


def test_an_interrupt_cancels_what_is_in_flight(
    dask_client, samples, expected, set_limit
):
    set_limit("GROUPS_AHEAD", 1)
    client = dask_client(2)
    with DaskEngine(client) as engine:
        with pytest.raises(KeyboardInterrupt):
            engine.run(Interrupted(), samples)
        wait_until(lambda: not any(client.processing().values()), seconds=10)
        assert sum_of(engine, samples) == expected


# -- workers that are lost -------------------------------------------------------------


@pytest.mark.parametrize("served", [64, 1])
def test_a_worker_killed_in_a_pass_changes_nothing(
    own_cluster, samples, expected, tmp_path, set_limit, served
):
    set_limit("THREADS_SERVED", served)  # with 1, a task has two groups
    set_limit("LEAST_TASKS", 1)
    weighted = RowSumPass(np.random.default_rng(1).random(N))
    sums = run(weighted, samples)
    with DaskEngine(own_cluster(2)) as engine:
        cached = CachedSamples(samples)
        engine.run(OrderedSum(), cached)
        (tmp_path / "once").touch()
        total, sums_there = engine.run(
            CombinedPass((Deadly(tmp_path, 2 * GROUP_ROWS), weighted)), cached
        )
        assert not (tmp_path / "once").exists()
        assert total[1].tobytes() == expected
        assert sums_there[0].tobytes() == sums[0].tobytes()
        assert sum_of(engine, cached) == expected


@pytest.mark.parametrize("most", [0, 2**22])
def test_what_is_sent_while_its_worker_leaves_is_sent_again(
    dask_client, samples, monkeypatch, set_limit, most
):
    set_limit("GRAPH_BYTES", most)  # with 0, samples and pass are scattered as well
    client = dask_client(2)
    weighted = RowSumPass(np.random.default_rng(2).random(N))
    scatter = client.scatter
    failures = [OSError("closed"), TimeoutError("none"), KeyError("tcp://")]

    def unsteady(*arguments, **options):
        if failures:
            raise failures.pop()
        return scatter(*arguments, **options)

    monkeypatch.setattr(client, "scatter", unsteady)
    with DaskEngine(client) as engine:
        assert (
            engine.run(weighted, samples)[0].tobytes()
            == run(weighted, samples)[0].tobytes()
        )
    assert not failures


@pytest.mark.nightly
def test_results_that_were_ready_when_all_workers_died_are_computed_again(
    own_cluster, samples, set_limit
):
    set_limit("GROUPS_AHEAD", 1)
    client = own_cluster(1)
    with ThreadEngine(1) as threads:
        expected = list(threads.groups(OrderedSum(), samples))
    with DaskEngine(client) as engine:
        groups = engine.groups(OrderedSum(), samples)
        totals = [next(groups)]  # the next group is sent already
        states = [
            state for key, state in client.futures.items() if "mmcnb-group" in str(key)
        ]
        wait_until(lambda: all(state.status == "finished" for state in states))
        kill(next(iter(client.run(os.getpid).values())))
        wait_until(lambda: {state.status for state in states} == {"lost"})
        totals += groups
    assert [names for names, _ in totals] == [names for names, _ in expected]
    np.testing.assert_array_equal(
        [total for _, total in totals], [total for _, total in expected]
    )


def test_a_task_that_times_out_is_not_waited_for(dask_client, samples):
    with (
        DaskEngine(dask_client(1)) as engine,
        pytest.raises(TimeoutError, match=r"^no answer$"),
    ):
        engine.run(TimedOut(), samples)


@pytest.mark.nightly
def test_rows_that_kill_every_worker_end_in_one_sentence(
    own_cluster, samples, tmp_path, set_limit
):
    set_limit("TRIES", 2)
    for name in range(50):
        (tmp_path / str(name)).touch()
    sentence = r"^workers of [^\n]* died repeatedly at rows 0 to [^\n]*memory[^\n]*\.$"
    with (
        DaskEngine(own_cluster(1)) as engine,
        pytest.raises(InputError, match=sentence),
    ):
        engine.run(Deadly(tmp_path, 0), samples)


def test_a_cluster_without_workers_ends_in_one_sentence(samples, set_limit):
    from distributed import Client, LocalCluster

    set_limit("PATIENCE_SECONDS", 0.2)
    set_limit("POLL_SECONDS", 0.1)
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        DaskEngine(client) as engine,
        pytest.raises(
            InputError,
            match=r"has had no worker for 0 s; start workers and fit again\.$",
        ),
    ):
        engine.run(OrderedSum(), samples)


def test_a_worker_of_another_version_ends_in_one_sentence(own_cluster, samples):
    def pretend():
        # Internal: a worker with other libraries would take an environment of its own.
        checkpoint.version = lambda name: "0.1"

    client = own_cluster(1)
    client.run(pretend)
    sentence = r"^a Dask worker differs from its client: [^\n]*numba is '[\d.]+' there and '0.1' here[^\n]*\.$"
    with DaskEngine(client) as engine, pytest.raises(InputError, match=sentence):
        engine.run(OrderedSum(), samples)


def test_a_worker_without_this_mmcnb_ends_in_one_sentence(dask_client, samples):
    sentence = r"^a worker of [^\n]* cannot run this version of mmcnb \([^\n]*\); install the same[^\n]*\.$"
    with (
        DaskEngine(dask_client(1)) as engine,
        pytest.raises(InputError, match=sentence),
    ):
        engine.run(Lacking(), samples)


# -- which engine ----------------------------------------------------------------------


def test_no_scheduler_is_one_sentence_within_seconds(set_limit):
    set_limit("CONNECT_SECONDS", 1)
    started = time.monotonic()
    sentence = r"^no Dask scheduler answers at tcp://127\.0\.0\.1:9 \([^\n]*\); check the address[^\n]*\.$"
    with pytest.raises(InputError, match=sentence), open_engine("tcp://127.0.0.1:9"):
        pass
    assert time.monotonic() - started < 8


@pytest.mark.parametrize(
    "engine", ["host:8786", "local:0", "local:two", "tcp://", 3, object()]
)
def test_what_is_no_engine_is_one_sentence(engine):
    sentence = r"^engine=[^\n]* is not [^\n]*tcp://host:8786[^\n]*\.$"
    with pytest.raises(InputError, match=sentence), open_engine(engine):
        pass


def test_without_dask_the_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    sentence = r"needs Dask; install it with `pip install 'mmcnb\[dask\]'`"
    with pytest.raises(InputError, match=sentence), open_engine("tcp://127.0.0.1:9"):
        pass


def test_a_client_that_is_closed_is_one_sentence(dask_client):
    from distributed import Client

    client = Client(dask_client(1).scheduler.address, set_as_default=False)
    client.close()
    for use in (
        lambda: open_engine(client).__enter__(),
        lambda: mmcnb.config(engine=client),
    ):
        with pytest.raises(
            InputError, match=r"^engine is a Dask client that is closed"
        ):
            use()


def test_an_address_is_connected_once_and_left_at_the_end(
    dask_client, samples, expected
):
    address = dask_client(1).scheduler.address
    with connected(address) as outer:
        with open_engine(address) as engine:
            assert engine.client is outer
            assert sum_of(engine, samples) == expected
        assert outer.status == "running"
    assert outer.status == "closed"


def test_a_cluster_of_processes_here_ends_with_the_block(samples):
    with open_engine("local:1") as engine:
        (pid,) = {pid for _, pid in engine.run(Named(), samples)[0]}
        cluster = engine.client.cluster
    assert cluster.status.name == "closed"
    wait_until(
        lambda: (
            subprocess.run(["kill", "-0", str(pid)], capture_output=True).returncode
            != 0
        )
    )

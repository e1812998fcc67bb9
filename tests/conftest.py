"""Settings for all tests."""

import os
import time
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.compile_kernels import compile_all

os.environ["MPLBACKEND"] = "Agg"

# The same examples in every run, and no deadline: the first call of a kernel compiles
# it.
settings.register_profile("mmcnb", deadline=None, derandomize=True)
settings.load_profile("mmcnb")
# Of the state machine alone, which takes the first unless the second is asked for by
# --hypothesis-profile.
STEPS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": set(Phase) - {Phase.explain},
}
settings.register_profile(
    "ci", max_examples=20, stateful_step_count=20, derandomize=True, **STEPS
)
settings.register_profile("nightly", max_examples=200, stateful_step_count=30, **STEPS)


def pytest_sessionstart(session):
    """Compile the kernels before several workers start, so that no two workers compile the same one."""
    config = session.config
    is_worker = hasattr(config, "workerinput")
    has_workers = bool(getattr(config.option, "numprocesses", None))
    if has_workers and not is_worker and not config.option.collectonly:
        compile_all()


@pytest.fixture(scope="session", autouse=True)
def fits_that_need_no_compilation():
    """Equal fits have equal reports, whichever of them compiled: they see a compile clock that stands still.

    `test_compile_seconds.py` has the tests of the clock, in processes of their own.
    """
    with pytest.MonkeyPatch.context() as patch:
        # Internal: whether this process compiles is not the concern of tests that
        # compare reports.
        patch.setattr("mmcnb.engine.session.times", lambda: (time.perf_counter(), 0.0))
        yield


# With Dask's own settings, which look at a process up to a hundred times a second, the
# clusters that wait for their next test take a tenth of a core.
SELDOM = {
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
}


def start_cluster(stack, workers):
    """A client of a new cluster of worker processes with one thread each."""
    import dask
    from distributed import Client, LocalCluster

    with dask.config.set(SELDOM):
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=":0",
            worker_dashboard_address=None,
            silence_logs=50,
        )
    stack.callback(cluster.close)
    client = Client(cluster, set_as_default=False)
    stack.callback(client.close)
    return client


@pytest.fixture(scope="session")
def dask_client():
    """A function that gives the client of a cluster with some number of workers, the same to all tests."""
    clients = {}
    with ExitStack() as stack:

        def client(workers):
            if workers not in clients:
                clients[workers] = start_cluster(stack, workers)
            return clients[workers]

        yield client


@pytest.fixture
def own_cluster():
    """A function that starts a cluster which the test may break."""
    with ExitStack() as stack:
        yield lambda workers: start_cluster(stack, workers)

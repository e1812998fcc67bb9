"""Fits from several threads and processes at once: none aborts, none hangs, all give the same labels."""

import hashlib
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zarr
from threadpoolctl import threadpool_info

import mmcnb
from mmcnb.engine.run import SINGLE_THREADED_BLAS, ThreadEngine
from mmcnb.samples import BLOCK_ROWS, open_samples
from tests.engine.fakes import OrderedSum, run

SECONDS = (
    90  # what hangs fails then; on a slow machine a first run compiles the kernels
)
PARAMETERS = {
    "gamma": 0.5,
    "n_init": 1,
    "n_landmarks": 20,
    "sample_size": 300,
    "C": 2.0,
    "random_state": 0,
}
LAYERS = {"workqueue": "workqueue", "omp": "omppool", "tbb": "tbbpool"}
FORKS = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux forks a process with threads safely"
)


def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3 * BLOCK_ROWS, 3))
    X[:, 0] += np.where(rng.random(len(X)) < 0.6, 2.0, -2.0)
    return X


def labels(source=None, n_jobs=2):
    source = rows() if source is None else source
    return (
        mmcnb.SparseKernelMMC(n_jobs=n_jobs, **PARAMETERS).fit(source).labels_.tobytes()
    )


def blas_threads():
    return [
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]


def blas_threads_of_an_engine():
    """The threads of BLAS before an engine, inside and afterwards."""
    before = blas_threads()
    with ThreadEngine(2):
        inside = blas_threads()
    return before, inside, blas_threads()


def in_process(context, function, *arguments):
    """What a function gives in a child process."""
    queue = context.Queue()
    child = context.Process(
        target=_put, args=(queue, function, *arguments), daemon=True
    )
    child.start()
    try:
        return queue.get(timeout=SECONDS)
    finally:
        child.join(SECONDS)
        assert child.exitcode == 0


def _put(queue, function, *arguments):
    queue.put(function(*arguments))


@pytest.fixture(scope="module")
def expected():
    return labels(n_jobs=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "rows.zarr"
    zarr.create_array(path, data=rows(), chunks=(1000, 3))
    return str(path)


def test_fits_in_several_python_threads(expected, store):
    before = blas_threads()
    answers = []
    threads = [
        threading.Thread(
            target=lambda n_jobs=n_jobs: answers.append(labels(store, n_jobs)),
            daemon=True,
        )
        for n_jobs in (1, 2, 2, 4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert answers == [expected] * 4
    assert blas_threads() == before


def test_limits_are_lifted_by_the_last_of_engines_that_overlap():
    before = blas_threads()
    first = ThreadEngine(1)
    second = ThreadEngine(1)
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert set(blas_threads()) <= {1}
    second.__exit__()
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_no_more_threads_than_asked_for(n_jobs):
    names = set()

    class Watched(OrderedSum):
        def block(self, rows, start, stop):
            time.sleep(0.005)
            names.add(threading.current_thread().name)
            return super().block(rows, start, stop)

    run(Watched(), open_samples(np.ones((20 * BLOCK_ROWS, 60))), n_jobs)
    assert len(names) == n_jobs
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith("mmcnb")
    ]


@pytest.mark.slow
# newer Pythons warn of any fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("method", [pytest.param("fork", marks=FORKS), "spawn"])
def test_a_child_process_fits_after_its_parent_did(expected, store, method):
    assert labels(store) == expected
    assert in_process(multiprocessing.get_context(method), labels, store) == expected


@FORKS
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_forked_in_mid_fit_fits_and_gets_its_blas_threads_back(expected, store):
    before = blas_threads()
    context = multiprocessing.get_context("fork")
    with ThreadEngine(2):
        assert in_process(context, labels, store) == expected
        _, inside, after = in_process(context, blas_threads_of_an_engine)
        assert set(inside) <= {1}
        assert after == before
    assert blas_threads() == before


@FORKS
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_forked_while_another_thread_enters_an_engine_does_not_hang():
    context = multiprocessing.get_context("fork")
    with SINGLE_THREADED_BLAS.lock:
        child = context.Process(target=ThreadEngine(1).__enter__, daemon=True)
        child.start()
    child.join(SECONDS)
    assert child.exitcode == 0


@pytest.mark.slow
def test_fits_in_processes_of_joblib(expected, store):
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    with Parallel(n_jobs=2, backend="loky", timeout=SECONDS) as parallel:
        assert (
            parallel(delayed(labels)(store, n_jobs) for n_jobs in (1, 2))
            == [expected] * 2
        )
    get_reusable_executor().shutdown(wait=True)


UNDER_A_LAYER = """
import hashlib
import threading

import numba
import numpy as np

from tests.engine.test_threads import labels


@numba.njit(parallel=True)
def other(x):
    total = 0.0
    for i in numba.prange(x.shape[0]):
        total += x[i]
    return total


ones = np.ones(10**6)
sums = [other(ones)]
stop = threading.Event()


def run_other():
    while not stop.is_set():
        sums.append(other(ones))


thread = threading.Thread(target=run_other)
thread.start()
threads = numba.get_num_threads()
mine = labels(n_jobs=2)
assert numba.get_num_threads() == threads
stop.set()
thread.join()
assert set(sums) == {10.0**6}
print(numba.threading_layer(), hashlib.sha256(mine).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "layer",
    [
        "omp",
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in ("workqueue", "tbb")
        ),
    ],
)
def test_fits_beside_a_parallel_kernel_on_each_threading_layer(expected, layer):
    loads = [sys.executable, "-c", f"import numba.np.ufunc.{LAYERS[layer]}"]
    if subprocess.run(loads, capture_output=True).returncode:
        pytest.skip(f"numba finds no library for the threading layer {layer} here")
    done = subprocess.run(
        [sys.executable, "-c", UNDER_A_LAYER],
        env=os.environ
        | {"NUMBA_THREADING_LAYER": layer, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [layer, hashlib.sha256(expected).hexdigest()]

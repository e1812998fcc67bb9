"""Resident memory of a fit, watched from outside: it stays within the limit, whatever the number of rows."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import mmcnb
from benchmarks.protocol import compile_seconds, run_and_watch
from mmcnb.datasets import make_block
from mmcnb.engine.plan import RowShape
from mmcnb.errors import MemoryLimitError
from mmcnb.stores import convert, create_dense_store

LIMIT = 448  # MiB
FRONT_DOOR_LIMIT = 640
FEATURES = 48
MIB = 2**20


LEAST_SQUARES = """
import json, sys
import mmcnb
from mmcnb._machine import peak_memory
store, labels, limit = sys.argv[1:]
settings = {"n_landmarks": 50, "sample_size": 1000, "n_init": 2, "random_state": 0}
model = mmcnb.UnsupervisedRLS(3, **settings, memory_limit=limit).fit_model(store)
model.predict(store, out=labels)
print(json.dumps({"peak_memory_bytes": peak_memory()}))
"""


# Parts as small as these come from the heap; what lies between them keeps it from shrinking at its end.
STACK = """
import numpy as np
from mmcnb._machine import peak_memory
from mmcnb.samples.matrix import stack
parts, between = [], []
for _ in range(2048):
    parts.append(np.ones((1, 2**14), np.float32))
    between.append(bytes(4096))
before = peak_memory()
assert stack(parts).sum() == 2048 * 2**14
print(peak_memory() - before)
"""


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A small and a large store; the large one holds 275 MiB, more than the limit leaves beside libraries."""
    folder = tmp_path_factory.mktemp("rings")
    return [store_of(folder, rows) for rows in (300_000, 1_500_000)]


def store_of(folder, rows):
    store = folder / f"{rows}.zarr"
    with create_dense_store(store, FEATURES) as writer:
        for start in range(0, rows, 2**16):
            stop = min(start + 2**16, rows)
            writer.append(make_block("rings", start, stop, FEATURES, random_state=0)[0])
    return store


def peak_of_fit(store, folder):
    outputs = ["--model", str(folder / "model"), "--labels", str(folder / "labels.zarr")]
    options = [
        "--method",
        "sparse-kernel-mmc",
        *("--set", "gamma=median", "--set", "n_init=1", "--set", "n_landmarks=50"),
        "--random-state",
        "0",
        "--json",
    ]
    command = [sys.executable, "-m", "mmcnb", "fit", str(store), *outputs, *options]
    report, polled = run_and_watch([*command, "--memory-limit", f"{LIMIT}MiB"])
    return max(polled, report["peak_memory_bytes"]) / MIB


def peak_of_least_squares(store, folder):
    command = [sys.executable, "-c", LEAST_SQUARES, str(store), str(folder / "labels.zarr"), f"{LIMIT}MiB"]
    # What is polled can count pages twice: joblib forks once, to ask for the number of cores.
    return run_and_watch(command)[0]["peak_memory_bytes"] / MIB


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("n_clusters", [None, *(pytest.param(k, marks=pytest.mark.nightly) for k in (2, 3))])
def test_the_front_door_takes_no_more_than_its_plan(stores, tmp_path, n_clusters):
    rows = make_block("rings", 0, 3000, FEATURES)[0]
    compile_seconds(rows, mmcnb.MaximumMarginClustering(n_clusters))  # compilation takes memory of its own
    number = [] if n_clusters is None else ["--n-clusters", str(n_clusters)]
    words = [*number, "--memory-limit", f"{FRONT_DOOR_LIMIT}MiB"]
    outputs = ["--model", str(tmp_path / "model"), "--labels", str(tmp_path / "labels.zarr")]
    given = [str(stores[0]), *words, *outputs, "--random-state", "0", "--json"]
    report = run_and_watch([sys.executable, "-m", "mmcnb", "fit", *given])[0]
    plan = mmcnb.MaximumMarginClustering(n_clusters, memory_limit=FRONT_DOOR_LIMIT * MIB).plan(stores[0])
    assert report["peak_memory_bytes"] <= plan.peak <= FRONT_DOOR_LIMIT * MIB


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("jobs", [2, 8])
def test_the_plan_counts_what_each_thread_keeps(stores, tmp_path, jobs):
    default = mmcnb.MaximumMarginClustering(2, memory_limit="1GiB", n_jobs=jobs)
    compile_seconds(make_block("rings", 0, 3000, FEATURES)[0], default)
    plan = default.plan(stores[1])
    outputs = ["--model", str(tmp_path / "model"), "--labels", str(tmp_path / "labels.zarr")]
    words = f"--n-clusters 2 --memory-limit 1GiB --jobs {jobs} --random-state 0 --json".split()
    report = run_and_watch([sys.executable, "-m", "mmcnb", "fit", str(stores[1]), *words, *outputs])[0]
    assert plan.threads == jobs
    assert report["peak_memory_bytes"] <= plan.peak


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("peak", [peak_of_fit, peak_of_least_squares])
def test_peak_memory_is_set_by_the_limit_and_not_by_the_rows(stores, tmp_path, peak):
    for estimator in (mmcnb.SparseKernelMMC(), mmcnb.UnsupervisedRLS(3)):
        mmcnb.warmup(estimator)  # compilation takes memory of its own
    peaks = []
    for store in stores:
        folder = tmp_path / store.stem
        folder.mkdir()
        peaks.append(peak(store, folder))
    small, large = peaks
    assert large <= LIMIT
    assert large - small <= 60


@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries return freed memory in their own way")
def test_arrays_that_are_put_together_are_held_once(tmp_path):
    script = tmp_path / "stack.py"
    script.write_text(STACK)
    grown = json.loads(subprocess.check_output([sys.executable, str(script)], text=True))
    assert grown < 40 * MIB  # of 128 MiB that are put together


def estimators_of(k):
    """Every estimator, and those of its settings that plan in another way."""
    return [
        mmcnb.MaximumMarginClustering(),
        mmcnb.MaximumMarginClustering(k),
        mmcnb.MaximumMarginClustering(k, kernel="rbf"),
        mmcnb.MaximumMarginClustering((2, k), kernel="graph", metric="cosine"),
        mmcnb.CPMMC(),
        mmcnb.SparseKernelMMC(),
        mmcnb.SparseKernelMMC(n_landmarks=3000),
        mmcnb.SparseKernelMMC(basis="paper"),
        mmcnb.KernelCPMMC(),
        mmcnb.KernelCPMMC(gamma="mean", kernel="poly"),
        mmcnb.UnsupervisedRLS(k),
        mmcnb.UnsupervisedRLS(k, cluster_sizes="equal"),
        mmcnb.UnsupervisedRLS(k, sample_size=20_000),
        mmcnb.CrammerSingerMMC(k),
        mmcnb.KernelKMeans(k),
        mmcnb.MultipleKernelClustering(),
        mmcnb.MultipleKernelClustering(n_clusters=k),
        mmcnb.MultipleKernelClustering(basis="exact"),
        mmcnb.EvolutionaryMMC(),
        mmcnb.EvolutionaryMMC(n_landmarks=100),
    ]


def shape_of(random):
    """A shape of rows, dense or sparse, stored or not, in chunks of any size."""
    is_sparse, columns = random.random() < 0.4, int(10 ** random.uniform(0, 5))
    return RowShape(
        int(10 ** random.uniform(1, 9)),
        columns,
        random.choice(["float32", "float64"]),
        8.0 * random.integers(2, 2 + min(columns, 300)) if is_sparse else 0.0,
        is_reopenable=bool(random.random() < 0.8),
        is_sparse=is_sparse,
        chunk_bytes=float(random.integers(2**26)),
        edge_bytes=float(random.integers(2**26)),
    )


@pytest.mark.parametrize("number", range(20))
def test_the_least_limit_that_is_named_works_and_no_smaller_one_does(number):
    random = np.random.default_rng(number)
    for _ in range(11):
        rows, threads = shape_of(random), int(random.integers(1, 65))
        k = int(random.integers(2, min(rows.n_samples, 60)))
        estimator = estimators_of(k)[number].set_params(n_jobs=threads)
        for low in (1, int(2 ** random.uniform(20, 28))):
            with pytest.raises(MemoryLimitError, match=r"^[^\n]*\.$") as refused:
                estimator.set_params(memory_limit=low).plan(rows)
            least = int(re.search(r"the least that works is (\d+) MiB[.;]", str(refused.value))[1])
            plan = estimator.set_params(memory_limit=f"{least} MiB").plan(rows)
            assert plan.peak <= plan.memory_limit == least * MIB
            assert 1 <= plan.threads <= threads
            with pytest.raises(MemoryLimitError):
                estimator.set_params(memory_limit=(least - 1) * MIB).plan(rows)


@pytest.mark.parametrize("action", ["predict", "decision_function", "explain", "update", "to_frame"])
def test_what_reads_rows_refuses_a_limit_that_is_too_small_and_keeps_to_the_one_it_names(action, tmp_path):
    X = np.random.default_rng(0).normal(size=(600, 3)) + 9 * (np.arange(600) % 2)[:, None]
    convert(X, tmp_path / "rows.zarr", progress=False)
    model = mmcnb.MaximumMarginClustering(2, kernel="graph", random_state=0).fit(X)
    with pytest.raises(MemoryLimitError, match=r"^[^\n]*the least that works is \d+ MiB\.$") as refused:
        getattr(model.set_params(memory_limit="1MiB"), action)(tmp_path / "rows.zarr")
    least = re.search(r"works is (.*)\.$", str(refused.value))[1]
    getattr(model.set_params(memory_limit=least, n_jobs=64), action)(tmp_path / "rows.zarr")


def test_a_plan_counts_the_compilation_that_a_fit_begins_with(monkeypatch):
    rows, estimator = RowShape(10**6, 32), mmcnb.SparseKernelMMC(memory_limit="512MiB")
    monkeypatch.setattr("mmcnb._numba.is_compiled", lambda routine: True)
    warm = estimator.plan(rows)
    monkeypatch.setattr("mmcnb._numba.is_compiled", lambda routine: False)
    with pytest.raises(MemoryLimitError, match=r"MiB of them for compilation, which mmcnb.warmup\(\) does"):
        estimator.plan(rows)
    cold = estimator.set_params(memory_limit="768MiB").plan(rows)
    assert 100 * MIB < cold.sizes["libraries"] - warm.sizes["libraries"] < 150 * MIB


def test_a_plan_counts_what_blocks_of_wide_rows_and_a_basis_of_all_rows_hold():
    wide = RowShape(10**6, 30_000, row_bytes=808.0, is_sparse=True)
    plan = mmcnb.CPMMC(memory_limit="4GiB", n_jobs=2).plan(wide)
    assert plan.sizes["in_flight"] > 3 * 40 * 30_000 * 8  # sums of all columns for some planes, of each block
    evolution = mmcnb.EvolutionaryMMC(memory_limit="8GiB", n_jobs=1)
    assert evolution.plan(wide).sizes["sample"] > 2000 * 30_000 * (4 + 4 + 8 + 8)  # sample and basis, dense

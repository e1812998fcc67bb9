"""Resident memory of a fit, watched from outside: it stays within the limit, whatever the number of rows."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import mmcnb
from benchmarks.protocol import compile_seconds, run_and_watch
from benchmarks.studies._limits_papers import METHODS as PAPERS
from mmcnb.datasets import make_block
from mmcnb.engine.plan import RowShape
from mmcnb.errors import MemoryLimitError
from mmcnb.samples import GROUP_ROWS
from mmcnb.stores import convert, create_dense_store
from tests.estimators.conftest import VARIANTS

FEATURES = 48
MIB = 2**20
LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="the peak is read from /proc"
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A small and a large store; the large one holds 275 MiB, more than a limit leaves beside libraries."""
    folder = tmp_path_factory.mktemp("rings")
    return [store_of(folder, rows) for rows in (300_000, 1_500_000)]


def store_of(folder, rows):
    store = folder / f"{rows}.zarr"
    with create_dense_store(store, FEATURES) as writer:
        for start in range(0, rows, 2**16):
            stop = min(start + 2**16, rows)
            writer.append(make_block("rings", start, stop, FEATURES, random_state=0)[0])
    return store


def peak_of_command(store, folder, limit, *words):
    """The peak of a fit by the command, in MiB."""
    outputs = [
        "--model",
        str(folder / "model"),
        "--labels",
        str(folder / "labels.zarr"),
    ]
    command = [sys.executable, "-m", "mmcnb", "fit", str(store), *outputs, *words]
    options = ["--memory-limit", f"{limit}MiB", "--random-state", "0", "--json"]
    return run_and_watch([*command, *options])[0]["peak_memory_bytes"] / MIB


METHODS = {
    "sparse-kernel-mmc": "--set gamma=median --set n_init=1 --set n_landmarks=50",
    "unsupervised-rls": "--n-clusters 3 --set n_landmarks=50 --set sample_size=1000 --set n_init=2",
}


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize(
    "method",
    ["sparse-kernel-mmc", pytest.param("unsupervised-rls", marks=pytest.mark.nightly)],
)
def test_peak_memory_is_set_by_the_limit_and_not_by_the_rows(stores, tmp_path, method):
    mmcnb.warmup(
        mmcnb.SparseKernelMMC() if "sparse" in method else mmcnb.UnsupervisedRLS(3)
    )
    peaks = []
    for store in stores:
        folder = tmp_path / store.stem
        folder.mkdir()
        peaks.append(
            peak_of_command(
                store, folder, 448, "--method", method, *METHODS[method].split()
            )
        )
    small, large = peaks
    assert large <= 448
    assert large - small <= 60


@pytest.mark.slow
@pytest.mark.nightly
@LINUX
@pytest.mark.parametrize(
    ("n_clusters", "jobs", "limit", "threads"),
    [(None, 2, 640, 2), (2, 8, 1024, 8), (3, 8, 1024, 8), (2, 2, 512, 1)],
)
def test_the_front_door_takes_no_more_than_its_plan_for_all_threads(
    stores, tmp_path, n_clusters, jobs, limit, threads
):
    estimator = mmcnb.MaximumMarginClustering(
        n_clusters, memory_limit=limit * MIB, n_jobs=jobs
    )
    compile_seconds(make_block("rings", 0, 3000, FEATURES)[0], estimator)
    plan = estimator.plan(stores[1])
    number = [] if n_clusters is None else ["--n-clusters", str(n_clusters)]
    peak = peak_of_command(stores[1], tmp_path, limit, "--jobs", str(jobs), *number)
    assert peak * MIB <= plan.peak <= limit * MIB
    assert plan.threads == threads  # fewer where the limit is too small


# -- plans -----------------------------------------------------------------------------

PLANNED = {
    **VARIANTS,
    "sparse defaults": mmcnb.SparseKernelMMC(),
    "many landmarks": mmcnb.SparseKernelMMC(n_landmarks=3000),
    "basis of the paper": mmcnb.SparseKernelMMC(basis="paper"),
    "polynomial": mmcnb.KernelCPMMC(gamma="mean", kernel="poly"),
    "equal sizes": mmcnb.UnsupervisedRLS(3, cluster_sizes="equal"),
    "large sample": mmcnb.UnsupervisedRLS(3, sample_size=20_000),
    "exact kernels": mmcnb.MultipleKernelClustering(basis="exact"),
    "a range of numbers": mmcnb.MaximumMarginClustering(
        (2, 9), kernel="graph", metric="cosine"
    ),
}


def shape_of(random):
    """A shape of rows, dense or sparse, stored or not, in chunks of any size."""
    is_sparse = random.random() < 0.4
    columns = int(10 ** random.uniform(0, 5))
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


@pytest.mark.parametrize("name", PLANNED)
def test_the_least_limit_that_is_named_works_and_no_smaller_one_does(name):
    random = np.random.default_rng(list(PLANNED).index(name))
    for _ in range(11):
        rows = shape_of(random)
        threads = int(random.integers(1, 65))
        estimator = clone(PLANNED[name]).set_params(n_jobs=threads)
        for low in (1, int(2 ** random.uniform(20, 28))):
            with pytest.raises(MemoryLimitError, match=r"^[^\n]*\.$") as refused:
                estimator.set_params(memory_limit=low).plan(rows)
            least = int(
                re.search(r"the least that works is (\d+) MiB[.;]", str(refused.value))[
                    1
                ]
            )
            plan = estimator.set_params(memory_limit=f"{least} MiB").plan(rows)
            assert plan.peak <= plan.memory_limit == least * MIB
            assert 1 <= plan.threads <= threads
            with pytest.raises(MemoryLimitError):
                estimator.set_params(memory_limit=(least - 1) * MIB).plan(rows)


@pytest.mark.parametrize(
    "action", ["predict", "decision_function", "explain", "update", "to_frame"]
)
def test_what_reads_rows_refuses_a_limit_that_is_too_small_and_keeps_to_the_one_it_names(
    action, tmp_path
):
    X = (
        np.random.default_rng(0).normal(size=(600, 3))
        + 9 * (np.arange(600) % 2)[:, None]
    )
    convert(X, tmp_path / "rows.zarr", progress=False)
    model = mmcnb.MaximumMarginClustering(2, kernel="graph", random_state=0).fit(X)
    with pytest.raises(
        MemoryLimitError, match=r"^[^\n]*the least that works is \d+ MiB\.$"
    ) as refused:
        getattr(model.set_params(memory_limit="1MiB"), action)(tmp_path / "rows.zarr")
    least = re.search(r"works is (.*)\.$", str(refused.value))[1]
    getattr(model.set_params(memory_limit=least, n_jobs=64), action)(
        tmp_path / "rows.zarr"
    )


@pytest.mark.parametrize("name", PAPERS)
def test_every_method_of_the_papers_fits_eight_million_rows_in_512_mib(
    name, monkeypatch
):
    # Internal: what a fit compiles depends on the cache of this machine.
    monkeypatch.setattr("mmcnb.engine.plan.compile_seconds", lambda routines: 0.0)
    rows = RowShape(8_000_000, 64, chunk_bytes=2.0**22)
    make = PAPERS[name]
    if make is None:
        plan = mmcnb.basis_plan(rows, memory_limit="512MiB")
    else:
        plan = make(memory_limit="512MiB").plan(rows)
    assert plan.peak <= plan.memory_limit == 512 * MIB


@pytest.mark.parametrize(
    "estimator",
    [mmcnb.CrammerSingerMMC(3), mmcnb.MultipleKernelClustering()],
    ids=["CrammerSingerMMC", "MultipleKernelClustering"],
)
def test_samples_are_smaller_only_where_a_limit_is_too_small_for_the_usual_ones(
    estimator, monkeypatch
):
    # Internal: as above.
    monkeypatch.setattr("mmcnb.engine.plan.compile_seconds", lambda routines: 0.0)
    rows = RowShape(8_000_000, 64)
    usual, small = (
        clone(estimator).set_params(memory_limit=limit, n_jobs=1).plan(rows).needs
        for limit in ("1GiB", "500MiB")
    )
    assert usual.larger_rows == GROUP_ROWS > small.larger_rows
    assert usual.sample_size == small.sample_size


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize(
    "name",
    [
        "EvolutionaryMMC, exact",
        "CrammerSingerMMC, 3 clusters",
        pytest.param("MultipleKernelClustering", marks=pytest.mark.nightly),
        pytest.param("MultipleKernelClustering, 3 clusters", marks=pytest.mark.nightly),
        "estimate_basis",
    ],
)
def test_the_peak_of_a_method_that_takes_smaller_samples_is_within_its_plan(
    stores, tmp_path, name
):
    python = [sys.executable, "-m", "benchmarks.studies._limits_papers"]
    run_and_watch([*python, "warm-up", name])
    words = [name, str(stores[0]), "512", "0", str(tmp_path / "labels.zarr")]
    report, peak = run_and_watch([*python, *words])
    assert report["refused"] == ""
    assert peak <= report["planned_mib"] * MIB <= 512 * MIB


PLAN = """
import json, mmcnb
from mmcnb.engine.plan import RowShape
for limit in ("512MiB", "768MiB"):
    plan = mmcnb.SparseKernelMMC(memory_limit=limit).plan(RowShape(10**6, 32))
    print(json.dumps([plan.compiles_apart, plan.sizes["libraries"], plan.needs.larger_bytes]))
"""


@pytest.mark.slow
def test_a_plan_counts_the_compilation_or_leaves_it_to_other_processes(tmp_path):
    # with nothing compiled
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    lines = subprocess.check_output(
        [sys.executable, "-c", PLAN], env=environment, text=True
    ).splitlines()
    tight, wide = map(json.loads, lines)
    estimator = mmcnb.SparseKernelMMC(memory_limit="512MiB")
    mmcnb.warmup(estimator)
    warm = estimator.plan(RowShape(10**6, 32))
    # The sizes, and with them the labels, do not depend on what is compiled.
    assert tight == [True, warm.sizes["libraries"], warm.needs.larger_bytes]
    assert wide[0] is False
    assert 100 * MIB < wide[1] - warm.sizes["libraries"] < 150 * MIB


FIT = """
import json, sys, mmcnb
model = mmcnb.SparseKernelMMC(memory_limit=sys.argv[2], random_state=0)
apart = model.plan(sys.argv[1]).compiles_apart
model.fit(sys.argv[1])
print(json.dumps([apart, model.report_["compile_seconds"], model.labels_.tolist()]))
"""


@pytest.mark.slow
def test_a_fit_whose_routines_are_compiled_in_other_processes_is_the_same(
    tmp_path, stores
):
    limit = "512MiB"  # with compilation in the process it would not be enough
    expected = mmcnb.SparseKernelMMC(memory_limit=limit, random_state=0)
    mmcnb.warmup(expected)
    expected.fit(stores[1])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    printed = subprocess.check_output(
        [sys.executable, "-W", "ignore", "-c", FIT, str(stores[1]), limit],
        env=environment,
        text=True,
    )
    apart, seconds, labels = json.loads(printed)
    assert apart
    assert seconds < 5  # most is read from the cache
    assert labels == expected.labels_.tolist()

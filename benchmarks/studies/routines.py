"""Single routines and passes beside a bound: a bare scan, a bare product, or scikit-learn's kernel.

``python -m benchmarks routines [--quick] [--part NAME ...]`` times each routine in turn
with its peer:

scan     the pass of ``predict`` over a Zarr store of incompressible float32 (64
         columns, 64 basis vectors) against plain Zarr slices of the same chunks with
         the best number of threads
shards   the pass of "scan" over a plain Zarr array with shards of 16 chunks, against
         slices of whole shards
product  the pass of "scan" over rows in memory (784 columns, 256 basis vectors) against
         a bare single-precision product of the pass's blocks
threads  the pass of ``predict`` with one thread and with two, over a store and over
         rows in memory
csr      kernel values of a9a against 200 of its rows, beside scikit-learn's
         ``rbf_kernel``
checks   kernel values of a block of 4,096 rows (50 columns, 200 basis vectors) by
         ``mmcnb.kernels``, which checks its arguments, beside
         ``mmcnb.kernels.unchecked``
inside   each public routine called in a user's compiled function, with the arguments of
         its example
search   the ten nearest of 20,000 nodes (ten groups, 60 columns) for each node, in 15
         of the 141 cells of the index, beside a bare single-precision product with the
         same number of inner products; also with two threads
fits     fits of 2,000 rows (two groups, 50 columns), which mostly search, with one
         thread and with two
chunks   the pass of ``predict``, and a bare read, of a Zarr store whose chunks are
         compared with its inventory, beside the same store without an inventory, for
         noise, which zstd hardly compresses, and for whole numbers
tables   ``convert`` of CSV, Parquet and Arrow beside a bare read by pyarrow, in seconds
         of the processor
labels   a table of 1 GB, as CSV and as Parquet, to labels by the default, beside a bare
         read by pyarrow
foreign  a scan of Zarr stores that other programs wrote beside a bare decode of their
         chunks

Ratios are ratios of the medians over the turns; for ``chunks``, they are medians of the
ratios within a turn, in processor seconds. ``--quick`` uses small sizes.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from functools import partial
from itertools import product as pairs_of
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import zarr
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits

import mmcnb
from benchmarks.methods import GRAPH, HINGE, LEAST_SQUARES, estimator
from benchmarks.protocol import (
    bare_scans,
    compile_seconds,
    facts,
    fit,
    turns,
    written_once,
)
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _foreign, _inside, _table_labels
from benchmarks.studies import tables as of_tables
from benchmarks.tables import Goal, Result, measures_of
from mmcnb import kernels
from mmcnb.kernels import unchecked
from mmcnb.samples import BLOCK_ROWS, open_samples
from mmcnb.stores import create_dense_store

TURNS = 5
QUICK_TURNS = 3
WRITE_ROWS = 2**16
# each node is its own nearest node, and searches a few cells
NODE_COLUMNS = 60
NEIGHBOURS = 11
PROBES = 15
SEARCHED_AT_ONCE = 1024
STORED = "noise, in a store"
IN_MEMORY = "noise, in memory"
THREADED = {STORED: (2**22, 2**15), IN_MEMORY: (2**17, 2**13)}
# 2 MiB with 64 columns
SHARDED = "noise, in shards"
CHUNK_ROWS = 2**13


@frame_of_runs
def grid(
    dataset: str,
    method: str,
    turns: int,
    sizes: tuple[int, int] | None,
    options: Options,
) -> Runs:
    """Yield one run per seed.

    For synthetic rows, there are two sizes, of a full run and of ``--quick``; without
    sizes, the rows are those of a9a.
    """
    rows = options.sized(*sizes) if sizes else options.rows_of("a9a")
    settings = {
        "rows": rows,
        "turns": turns * options.pick(TURNS, QUICK_TURNS, QUICK_TURNS),
    }
    for seed in options.repeats(1):
        yield Run(dataset, method, seed, settings=settings)


def tables(name: str, column: str, goal: Goal, frame: pd.DataFrame) -> Result:
    """Return a routine and its peers, with one row per run; the goal is for the mean of a column."""
    figure = float(frame[column].mean()) * (100 if goal.unit == "%" else 1)
    return Result(
        {f"routines-{name}": measures_of(frame)}, [goal._replace(figure=figure)]
    )


# -- routines --------------------------------------------------------------------------


def scan(run: Run) -> dict[str, Any]:
    """Measure ``predict`` over a store in turns with bare scans.

    The scans have several numbers of threads.
    """
    rows = run.settings["rows"]
    features = 64
    landmarks = 64
    write = write_shards if run.dataset == SHARDED else write_noise
    path = written_once(
        run.folder,
        f"{write.__name__}-{rows}",
        lambda store: write(str(store), rows, features),
    )
    model, compiled = labeller(features, landmarks)
    labels = f"{path}.labels.zarr"

    def predict() -> None:
        model.predict(path, out=labels)
        shutil.rmtree(labels)

    scans = bare_scans(path)
    seconds = turns({**scans, "predict": predict}, run.settings["turns"])
    ours = seconds.pop("predict")
    best = min(scans, key=lambda name: seconds[name])
    return facts(path) | {
        "seconds": ours,
        "compile_seconds": compiled,
        "bare_scan_seconds": seconds[best],
        "bare_scan_threads": int(best.split()[2]),
        "scans": ours / seconds[best],
        "megabytes_per_second": rows * features * 4 / 1e6 / ours,
        "basis_vectors": landmarks,
    }


def product(run: Run) -> dict[str, Any]:
    """Measure ``predict`` of rows in memory in turns with only the product."""
    rows = run.settings["rows"]
    features = 784
    landmarks = 256
    X = np.random.default_rng(0).standard_normal((rows, features), np.float32)
    model, compiled = labeller(features, landmarks)
    basis = np.ascontiguousarray(model.model_.basis, np.float32)

    def bare() -> None:
        with threads() as pool:
            list(
                pool.map(
                    lambda start: X[start : start + BLOCK_ROWS] @ basis.T,
                    range(0, rows, BLOCK_ROWS),
                )
            )

    samples = open_samples(X)
    seconds = turns(
        {"bare": bare, "predict": lambda: model.predict(samples)}, run.settings["turns"]
    )
    return facts(X) | {
        "seconds": seconds["predict"],
        "compile_seconds": compiled,
        "bare_product_seconds": seconds["bare"],
        "of_bare_rate": seconds["bare"] / seconds["predict"],
        "gflops": 2 * rows * features * landmarks / 1e9 / seconds["predict"],
        "basis_vectors": landmarks,
    }


@frame_of_runs
def thread_grid(options: Options) -> Runs:
    """Yield a store, and rows in memory."""
    for seed, (dataset, sizes) in pairs_of(options.repeats(1), THREADED.items()):
        settings = {
            "rows": options.sized(*sizes),
            "turns": options.pick(TURNS, QUICK_TURNS, 1),
        }
        yield Run(dataset, "predict", seed, settings=settings)


def second_thread(run: Run) -> dict[str, Any]:
    """Measure ``predict`` with one thread and with two, in turns."""
    rows = run.settings["rows"]
    stored = run.dataset == STORED
    features, landmarks = (64, 64) if stored else (784, 256)
    model, compiled = labeller(features, landmarks)
    X: Any = None
    if stored:
        X = written_once(
            run.folder,
            f"noise-{rows}",
            lambda path: write_noise(str(path), rows, features),
        )
    else:
        X = open_samples(
            np.random.default_rng(0).standard_normal((rows, features), np.float32)
        )
    alone, both = (copy(model).set_params(n_jobs=threads) for threads in (1, 2))
    seconds = turns(
        {"one": partial(alone.predict, X), "two": partial(both.predict, X)},
        run.settings["turns"],
    )
    return facts(X) | {
        "seconds": seconds["two"],
        "compile_seconds": compiled,
        "one_thread_seconds": seconds["one"],
        "second_thread": seconds["one"] / seconds["two"],
    }


def search(run: Run) -> dict[str, Any]:
    """Measure the search for all neighbours beside a product, and with two threads."""
    X, _ = make_blobs(
        run.settings["rows"],
        NODE_COLUMNS,
        centers=10,
        center_box=(-3, 3),
        random_state=0,
    )
    rows = X.astype(np.float32)
    found = KMeans(
        int(len(rows) ** 0.5), n_init=1, init="random", max_iter=5, random_state=0
    ).fit(rows)
    order = np.argsort(found.labels_, kind="stable")
    nodes = np.ascontiguousarray(rows[order])
    starts = np.concatenate([[0], np.cumsum(np.bincount(found.labels_))])
    probes = np.argsort(found.transform(nodes), axis=1)[:, :PROBES].astype(np.int64)
    looked_into = round(np.diff(starts)[probes].sum(axis=1).mean())  # number of nodes
    halves = np.square(nodes, dtype=np.float64).sum(axis=1) / 2
    numbers = np.empty((len(nodes), NEIGHBOURS), np.int64)
    distances = np.empty((len(nodes), NEIGHBOURS))
    some = np.ascontiguousarray(nodes[:looked_into].T)

    def nearest(start: int) -> None:
        part = slice(start, start + SEARCHED_AT_ONCE)
        cells = nodes, halves, starts, probes[part]
        unchecked.nearest_nodes_into(
            nodes[part], *cells, numbers[part], distances[part]
        )

    def by_threads(count: int) -> None:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(nearest, range(0, len(nodes), SEARCHED_AT_ONCE)))

    def bare() -> None:
        for start in range(0, len(nodes), BLOCK_ROWS):
            nodes[start : start + BLOCK_ROWS] @ some

    ways: dict[str, Callable[[], object]] = {
        "bare": bare,
        "one": partial(by_threads, 1),
        "two": partial(by_threads, 2),
    }
    with threadpool_limits(1, "blas"):
        seconds = turns(ways, run.settings["turns"])
    return facts(nodes) | {
        "seconds": seconds["one"],
        "bare_product_seconds": seconds["bare"],
        "of_bare_rate": seconds["bare"] / seconds["one"],
        "second_thread": seconds["one"] / seconds["two"],
        "nodes_looked_into": looked_into,
    }


@frame_of_runs
def fit_grid(options: Options) -> Runs:
    """Yield the hinge form, least squares, and the default on the graph alone."""
    for seed, method in pairs_of(options.repeats(1), (HINGE, LEAST_SQUARES, GRAPH)):
        settings = {
            "rows": options.sized(2000, 300),
            "turns": options.pick(TURNS, QUICK_TURNS, 1),
        }
        yield Run("groups, in memory", method, seed, settings=settings)


def fits(run: Run) -> dict[str, Any]:
    """Measure a fit with all rows in its sample, with one thread and with two, in turns."""
    X, _ = make_blobs(
        run.settings["rows"], 50, centers=2, center_box=(-0.5, 0.5), random_state=0
    )
    alone, both = (
        estimator(run.method, 2, random_state=0, n_jobs=threads) for threads in (1, 2)
    )
    compiled = compile_seconds(X, alone)
    seconds = turns(
        {"one": partial(fit, alone, X), "two": partial(fit, both, X)},
        run.settings["turns"],
    )
    return facts(X) | {
        "seconds": seconds["two"],
        "compile_seconds": compiled,
        "one_thread_seconds": seconds["one"],
        "second_thread": seconds["one"] / seconds["two"],
    }


def csr(run: Run) -> dict[str, Any]:
    """Measure kernel values of sparse rows in turns with scikit-learn's."""
    from sklearn.metrics.pairwise import rbf_kernel

    X = run.data.X
    chosen = X[np.linspace(0, X.shape[0] - 1, min(200, X.shape[0]), dtype=int)]
    gamma = 1 / X.shape[1]
    basis = np.ascontiguousarray(chosen.toarray(), np.float64)
    prepared = (
        np.ascontiguousarray(basis.T),
        unchecked.squared_norms(basis),
        unchecked.column_tiles(basis),
    )
    samples = open_samples(X)
    starts = range(0, X.shape[0], BLOCK_ROWS)
    blocks = [
        samples.block(start, min(start + BLOCK_ROWS, X.shape[0])) for start in starts
    ]

    def ours(block: Any) -> np.ndarray:
        out = np.empty((block.indptr.size - 1, len(basis)), np.float32)
        unchecked.rbf_kernel_block_csr_into(*block[:3], *prepared, gamma, out)
        return out

    with threads() as pool:
        methods: dict[str, Callable[[], Any]] = {
            "ours": lambda: list(pool.map(ours, blocks)),
            "rbf_kernel_csr_seconds": lambda: rbf_kernel(X, chosen, gamma),
            "rbf_kernel_dense_seconds": lambda: rbf_kernel(X, basis, gamma),
        }
        seconds = turns(methods, run.settings["turns"])
    ours_seconds = seconds.pop("ours")
    found = {
        "times_faster": min(seconds.values()) / ours_seconds,
        "basis_vectors": len(basis),
    }
    return facts(X) | {"seconds": ours_seconds} | seconds | found


def checks(run: Run) -> dict[str, Any]:
    """Measure one block with and without checks, in turns."""
    X = np.random.default_rng(0).standard_normal((run.settings["rows"], 50), np.float32)
    basis = X[:200].copy()
    out = np.empty((len(X), 200), np.float32)
    routines = {
        "checked": kernels.rbf_kernel_block_into,
        "unchecked": unchecked.rbf_kernel_block_into,
    }
    with threadpool_limits(1, "blas"):
        calls = {
            name: partial(routine, X, basis, 0.02, out)
            for name, routine in routines.items()
        }
        seconds = turns(calls, run.settings["turns"])
    found = {"seconds": seconds["checked"], "unchecked_seconds": seconds["unchecked"]}
    return facts(X) | found | {"checks": seconds["checked"] / seconds["unchecked"] - 1}


@frame_of_runs
def chunk_grid(options: Options) -> Runs:
    """Yield both kinds of numbers in turn."""
    settings = {"rows": options.sized(2**20, 2**15), "turns": options.pick(15, 5, 1)}
    for seed in options.repeats(1):
        for dataset in ("noise, in a store", "counts, in a store"):
            yield Run(dataset, "predict", seed, settings=settings)


def chunks(run: Run) -> dict[str, Any]:
    """Measure ``predict`` and a bare read of a store with and without its inventory."""
    rows = run.settings["rows"]
    features = 64
    landmarks = 64
    noise = run.dataset.startswith("noise")
    name = f"pair-{run.dataset[:5]}-{rows}"
    path = written_once(run.folder, name, lambda store: write_pair(store, rows, noise))
    model, compiled = labeller(features, landmarks)
    plain = path.removesuffix(".zarr") + ".plain.zarr"
    assert open_samples(path).checksummed > open_samples(plain).checksummed
    found: dict[str, Any] = {}
    for what, way in (("predict", model.predict), ("read", read_blocks)):
        ratios = []
        for turn in range(run.settings["turns"] + 1):
            pair = [processor_seconds(partial(way, store)) for store in (path, plain)]
            if turn:
                ratios.append(pair[0] / pair[1] - 1)
        found |= {
            f"{what}_check": float(np.median(ratios)),
            f"{what}_processor_seconds": pair[0],
        }
    return (
        facts(path)
        | {"seconds": found["predict_processor_seconds"], "compile_seconds": compiled}
        | found
    )


def write_pair(path: Path, rows: int, noise: bool) -> None:
    """Write a store of noise or of small whole numbers, and a plain copy.

    The copy has no inventory.
    """
    (write_noise if noise else write_counts)(str(path), rows, 64)
    plain = path.with_name(f"{path.stem}.plain.zarr")
    shutil.copytree(path, plain)
    del zarr.open_group(plain).attrs["mmcnb"]


def read_blocks(store: str) -> None:
    """Read a store group by group, in one thread."""
    samples = open_samples(store)
    for start in range(0, samples.n_samples, 16 * BLOCK_ROWS):
        samples.block(start, min(start + 16 * BLOCK_ROWS, samples.n_samples))


def processor_seconds(way: Callable[[], object]) -> float:
    """Return the processor seconds of all threads."""
    started = time.process_time()
    way()
    return time.process_time() - started


@contextmanager
def threads() -> Iterator[ThreadPoolExecutor]:
    """Limit BLAS to one thread, and return as many threads as there are cores."""
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
        yield pool


def write_noise(path: str, rows: int, features: int) -> None:
    """Write normal float32 numbers, which no codec can compress."""
    random = np.random.default_rng(0)
    with create_dense_store(path, features) as writer:
        for start in range(0, rows, WRITE_ROWS):
            writer.append(
                random.standard_normal(
                    (min(WRITE_ROWS, rows - start), features), np.float32
                )
            )


def write_shards(path: str, rows: int, features: int) -> None:
    """Write such numbers to the shards of a group created by Zarr."""
    random = np.random.default_rng(0)
    shard = 16 * CHUNK_ROWS
    shapes = (rows, features), (CHUNK_ROWS, features), (shard, features)
    group = zarr.create_group(path)
    array = group.create_array(
        "X", dtype="float32", shape=shapes[0], chunks=shapes[1], shards=shapes[2]
    )
    for start in range(0, rows, shard):
        some = min(shard, rows - start), features
        array[start : start + shard] = random.standard_normal(some, np.float32)


def write_counts(path: str, rows: int, features: int) -> None:
    """Write whole numbers from 0 to 15 as float32.

    Compressed, they take at most a third of the bytes.
    """
    random = np.random.default_rng(0)
    with create_dense_store(path, features) as writer:
        for start in range(0, rows, WRITE_ROWS):
            writer.append(
                random.integers(0, 16, (min(WRITE_ROWS, rows - start), features))
            )


def labeller(features: int, landmarks: int) -> tuple[Any, float]:
    """Return a model with a given number of basis vectors, and the seconds of a first fit.

    The rows to which the model is fitted do not affect the measurement.
    """
    rows = np.random.default_rng(1).standard_normal(
        (4 * landmarks, features), np.float32
    )
    model = mmcnb.SparseKernelMMC(
        gamma="median", n_landmarks=landmarks, n_init=1, random_state=0
    )
    compiled = compile_seconds(rows, model)
    return fit(model, rows), compiled


RATIO = Goal(
    "scan: predict over a store, against the best bare scan", np.nan, 1.2, "times"
)
SHARDS = Goal(
    "shards: predict over a sharded store, in bare scans", np.nan, 1.25, "times"
)
RATE = Goal(
    "product: predict, of the rate of a bare product", np.nan, 70, "%", at_least=True
)
SEARCH = Goal(
    "search: neighbours in cells, of the rate of a bare product",
    np.nan,
    60,
    "%",
    at_least=True,
)
FITS = Goal(
    "fits: the search on a sample by two threads, times as fast",
    np.nan,
    1.7,
    "times",
    at_least=True,
)
FASTER = Goal(
    "csr: kernel blocks, against the faster rbf_kernel",
    np.nan,
    8,
    "times",
    at_least=True,
)
BOTH = Goal(
    "threads: a pass by two threads, times as fast", np.nan, 1.9, "times", at_least=True
)
FREE = Goal("chunks: time of predict beyond that without an inventory", np.nan, 5, "%")
CHEAP = Goal("checks: time beyond that of the unchecked routine", np.nan, 3, "%")
grids = {  # the store of the first study has 2 GiB of float32
    "scan": partial(grid, "noise, in a store", "predict", 1, (2**23, 2**17)),
    "shards": partial(grid, SHARDED, "predict", 1, (2**22, 2**17)),
    "product": partial(grid, "noise, in memory", "predict", 1, (2**17, 2**14)),
    "search": partial(grid, "nodes", "neighbours", 1, (20_000, 3000)),
    "csr": partial(grid, "a9a", "kernel blocks", 4, None),
    "checks": partial(grid, "noise, in memory", "kernel block", 100, (2**12, 2**12)),
}
SECTIONS = {
    "scan": Section(grids["scan"], scan, partial(tables, "scan", "scans", RATIO)),
    "shards": Section(
        grids["shards"], scan, partial(tables, "shards", "scans", SHARDS)
    ),
    "product": Section(
        grids["product"], product, partial(tables, "product", "of_bare_rate", RATE)
    ),
    "threads": Section(
        thread_grid, second_thread, partial(tables, "threads", "second_thread", BOTH)
    ),
    "search": Section(
        grids["search"], search, partial(tables, "search", "of_bare_rate", SEARCH)
    ),
    "fits": Section(fit_grid, fits, partial(tables, "fits", "second_thread", FITS)),
    "csr": Section(grids["csr"], csr, partial(tables, "csr", "times_faster", FASTER)),
    "checks": Section(
        grids["checks"], checks, partial(tables, "checks", "checks", CHEAP)
    ),
    "inside": Section(_inside.grid, _inside.compute, _inside.tables),
    "chunks": Section(
        chunk_grid, chunks, partial(tables, "chunks", "predict_check", FREE)
    ),
    "tables": Section(of_tables.grid, of_tables.compute, of_tables.tables),
    "labels": Section(_table_labels.grid, _table_labels.compute, _table_labels.tables),
    "foreign": Section(_foreign.grid, _foreign.compute, _foreign.tables),
}

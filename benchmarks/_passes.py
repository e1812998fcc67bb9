"""Passes of the engine beside what bounds them: a bare scan, a bare product, scikit-learn's kernel."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._cells import Cell, facts, load_once, written_once
from benchmarks._common import Goal, Options, rows_of, temporary_folder
from benchmarks._compare import compile_seconds, fit
from benchmarks._journal import Journal
from benchmarks._parts import Tables
from mmcnb.engine.run import ThreadEngine
from mmcnb.features.kernel import Kernel
from mmcnb.samples import BLOCK_ROWS, create_dense_store, open_samples

SCAN = {"rows": 2**23, "quick_rows": 2**17, "features": 64, "landmarks": 64}  # 2 GiB of float32
PRODUCT = {"rows": 2**17, "quick_rows": 2**14, "features": 784, "landmarks": 256}
SCAN_THREADS = (1, 2, 4, 8)
TURNS, QUICK_TURNS = 5, 3
WRITE_ROWS = 2**16
LEAST_RATE, MOST_SCANS, LEAST_FASTER = 70, 1.35, 8


def size(sizes: dict[str, int], options: Options) -> int:
    """Rows of a made data set."""
    rows = sizes["quick_rows"] if options.quick else sizes["rows"]
    return min(rows, options.rows or rows)


def turns(methods: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each method; they take turns, after one turn that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for turn in range(repeats + 1):
        for name, method in methods.items():
            started = time.perf_counter()
            method()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def best_bare_scan(path: str, repeats: int) -> float:
    """Median seconds of a bare scan of a store with the best number of threads."""
    return min(turns(bare_scans(path), repeats).values())


def bare_scans(path: str) -> dict[str, Callable[[], object]]:
    """A bare scan with each number of threads."""
    return {f"bare scan, {threads} threads": partial(bare_scan, path, threads) for threads in SCAN_THREADS}


def bare_scan(path: str, threads: int) -> None:
    """Read and decode every chunk of a dense store once, and do nothing with it."""
    import zarr

    array = zarr.open_group(path, mode="r")["X"]
    assert isinstance(array, zarr.Array)
    chunk = array.chunks[0]
    with ThreadPoolExecutor(threads) as pool:
        for future in [
            pool.submit(array.__getitem__, slice(start, start + chunk))
            for start in range(0, array.shape[0], chunk)
        ]:
            future.result()


def passes(
    part: str, compute: Callable[[], dict[str, Any]], dataset: str, options: Options, journal: Journal
) -> pd.DataFrame:
    """The cells of a pass, one a seed; figures of a peer that took turns with it stand in the same cell."""
    runs = range(options.seeds or 1)
    return journal.rows([Cell(dataset, "predict", seed, compute, part=part) for seed in runs])


def scan(options: Options, journal: Journal) -> Tables:
    """The pass that ``predict`` runs over a store, and plain Zarr slices of the same chunks."""
    repeats = QUICK_TURNS if options.quick else TURNS
    with temporary_folder(options) as folder:
        compute = partial(scanned, str(folder), size(SCAN, options), repeats)
        frame = passes("scan", compute, "noise, in a store", options, journal)
    what = "scan: predict over a store, against the best bare scan"
    return {"engine-scan": told(frame)}, [Goal(what, float(frame["scans"].mean()), MOST_SCANS, "times")]


def scanned(folder: str, rows: int, repeats: int) -> dict[str, Any]:
    """Compute a cell: ``predict`` over a store in turns with bare scans by several numbers of threads."""
    features, landmarks = SCAN["features"], SCAN["landmarks"]
    path = written_once(folder, f"noise-{rows}", lambda store: write_noise(str(store), rows, features))
    model, compiled = labeller(features, landmarks)
    labels = f"{path}.labels"

    def predict() -> None:
        model.predict(path, out=labels)
        shutil.rmtree(labels)

    seconds = turns({**bare_scans(path), "predict": predict}, repeats)
    ours = seconds.pop("predict")
    bare = min(seconds.values())
    rate = rows * features * 4 / 1e6
    return facts(path) | {
        "seconds": ours,
        "compile_seconds": compiled,
        "bare_scan_seconds": bare,
        "bare_scan_threads": SCAN_THREADS[list(seconds.values()).index(bare)],
        "scans": ours / bare,
        "megabytes_per_second": rate / ours,
        "basis_vectors": landmarks,
    }


def write_noise(path: str, rows: int, features: int) -> None:
    """Write normal float32 numbers, which no codec can make smaller."""
    random = np.random.default_rng(0)
    with create_dense_store(path, features) as writer:
        for start in range(0, rows, WRITE_ROWS):
            writer.append(random.standard_normal((min(WRITE_ROWS, rows - start), features), np.float32))


def product(options: Options, journal: Journal) -> Tables:
    """The same pass where arithmetic is all, and a bare product of the same blocks."""
    compute = partial(multiplied, size(PRODUCT, options), QUICK_TURNS if options.quick else TURNS)
    frame = passes("product", compute, "noise, in memory", options, journal)
    rate = 100 * float(frame["of_bare_rate"].mean())
    what = "product: predict, of the rate of a bare product"
    return {"engine-product": told(frame)}, [Goal(what, rate, LEAST_RATE, "%", at_least=True)]


def multiplied(rows: int, repeats: int) -> dict[str, Any]:
    """Compute a cell: ``predict`` of rows in memory in turns with the product alone."""
    features, landmarks = PRODUCT["features"], PRODUCT["landmarks"]
    X = np.random.default_rng(0).standard_normal((rows, features), np.float32)
    model, compiled = labeller(features, landmarks)
    basis = np.ascontiguousarray(model.model_.basis, np.float32)

    def bare() -> None:
        with ThreadEngine() as engine:
            engine.each(
                lambda start: np.dot(X[start : start + BLOCK_ROWS], basis.T), range(0, rows, BLOCK_ROWS)
            )

    samples = open_samples(X)
    seconds = turns({"bare": bare, "predict": lambda: model.predict(samples)}, repeats)
    return facts(X) | {
        "seconds": seconds["predict"],
        "compile_seconds": compiled,
        "bare_product_seconds": seconds["bare"],
        "of_bare_rate": seconds["bare"] / seconds["predict"],
        "gflops": 2 * rows * features * landmarks / 1e9 / seconds["predict"],
        "basis_vectors": landmarks,
    }


def csr(options: Options, journal: Journal) -> Tables:
    """Kernel values of sparse rows against 200 of them, and scikit-learn's."""
    compute = partial(sparse_blocks, rows_of("a9a", options), 4 * (QUICK_TURNS if options.quick else TURNS))
    cells = [Cell("a9a", "kernel blocks", seed, compute, part="csr") for seed in range(options.seeds or 1)]
    frame = journal.rows(cells)
    faster = float(frame["times_faster"].mean())
    what = "csr: kernel blocks, against the faster rbf_kernel"
    return {"engine-csr": told(frame)}, [Goal(what, faster, LEAST_FASTER, "times", at_least=True)]


def sparse_blocks(rows: int | None, repeats: int) -> dict[str, Any]:
    """Compute a cell: kernel values of sparse rows in turns with scikit-learn's."""
    from sklearn.metrics.pairwise import rbf_kernel

    X = load_once("a9a", rows).X
    chosen = X[np.linspace(0, X.shape[0] - 1, min(200, X.shape[0]), dtype=int)]
    gamma, basis = 1 / X.shape[1], np.ascontiguousarray(chosen.toarray())
    samples, basis_map = open_samples(X), Kernel("rbf", gamma).against(basis)
    starts = range(0, X.shape[0], BLOCK_ROWS)
    blocks = [samples.block(start, min(start + BLOCK_ROWS, X.shape[0])) for start in starts]
    with ThreadEngine() as engine:
        methods: dict[str, Callable[[], object]] = {
            "ours": lambda: engine.each(lambda rows: basis_map.block(rows, np.float32), blocks),
            "rbf_kernel_csr_seconds": lambda: rbf_kernel(X, chosen, gamma),
            "rbf_kernel_dense_seconds": lambda: rbf_kernel(X, basis, gamma),
        }
        seconds = turns(methods, repeats)
    ours = seconds.pop("ours")
    found = {"seconds": ours, "times_faster": min(seconds.values()) / ours, "basis_vectors": len(basis)}
    return facts(X) | seconds | found


def labeller(features: int, landmarks: int) -> tuple[Any, float]:
    """A model with so many basis vectors, whatever it was fitted to, and the seconds of a first fit."""
    rows = np.random.default_rng(1).standard_normal((4 * landmarks, features), np.float32)
    compiled = compile_seconds(rows)
    model = mmcnb.SparseKernelMMC(gamma="median", n_landmarks=landmarks, n_init=1, random_state=0)
    return fit(model, rows), compiled


def told(frame: pd.DataFrame) -> pd.DataFrame:
    """What was measured, without the identity of the cells."""
    hidden = ["part", "protocol", "parameters", "status", "reason", "digest"]
    return frame[frame["status"] == "ok"].drop(columns=hidden)

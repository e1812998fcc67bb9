"""Passes of the engine beside what bounds them: a bare scan, a bare product, scikit-learn's kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._common import Goal, Options, load, say, temporary_folder
from benchmarks._compare import fit
from mmcnb.engine import Kernel, ThreadEngine
from mmcnb.samples import BLOCK_ROWS, create_dense_store, open_samples

SCAN = {"rows": 2**23, "quick_rows": 2**18, "features": 64, "landmarks": 64}  # 2 GiB of float32
PRODUCT = {"rows": 2**17, "quick_rows": 2**14, "features": 784, "landmarks": 256}
SCAN_THREADS = (1, 2, 4, 8)
REPEATS = 5
WRITE_ROWS = 2**16


def turns(methods: dict[str, Callable[[], object]], repeats: int = REPEATS) -> dict[str, float]:
    """Median seconds of each method; they take turns, after one turn that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for turn in range(repeats + 1):
        for name, method in methods.items():
            started = time.perf_counter()
            method()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def scan(options: Options) -> tuple[pd.DataFrame, list[Goal]]:
    """The pass that ``predict`` runs over a store, and plain Zarr slices of the same chunks."""
    rows, d, p = _size(SCAN, options), SCAN["features"], SCAN["landmarks"]
    with temporary_folder(options) as folder:
        path = str(folder / "noise.zarr")
        say(f"scan: writing {rows:,} x {d} of noise")
        write_noise(path, rows, d)
        model = _labeller(d, p)
        labels = str(folder / "labels.zarr")

        def predict() -> None:
            model.predict(path, out=labels)
            _remove(labels)

        methods = bare_scans(path)
        seconds = turns({**methods, "predict": predict})
    best = min(seconds[name] for name in methods)
    table = _table("noise", rows, d, seconds, f"{p} basis vectors")
    table["megabytes_per_second"] = rows * d * 4 / 1e6 / table["seconds"]
    what = "scan: predict over a store, against the best bare scan"
    return table, [Goal(what, seconds["predict"] / best, 1.35, "times")]


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


def write_noise(path: str, rows: int, features: int) -> None:
    """Write normal float32 numbers, which no codec can make smaller."""
    random = np.random.default_rng(0)
    with create_dense_store(path, features) as writer:
        for start in range(0, rows, WRITE_ROWS):
            writer.append(random.standard_normal((min(WRITE_ROWS, rows - start), features), np.float32))


def product(options: Options) -> tuple[pd.DataFrame, list[Goal]]:
    """The same pass where arithmetic is all, and a bare product of the same blocks."""
    rows, d, p = _size(PRODUCT, options), PRODUCT["features"], PRODUCT["landmarks"]
    X = np.random.default_rng(0).standard_normal((rows, d), np.float32)
    model = _labeller(d, p)
    basis = np.ascontiguousarray(model.model_.basis, np.float32)

    def bare() -> None:
        with ThreadEngine() as engine:
            engine.each(
                lambda start: np.dot(X[start : start + BLOCK_ROWS], basis.T), range(0, rows, BLOCK_ROWS)
            )

    samples = open_samples(X)
    seconds = turns({"bare product": bare, "predict": lambda: model.predict(samples)})
    table = _table("noise", rows, d, seconds, f"{p} basis vectors")
    table["gflops"] = 2 * rows * d * p / 1e9 / table["seconds"]
    rate = 100 * seconds["bare product"] / seconds["predict"]
    return table, [Goal("product: predict, of the rate of a bare product", rate, 70, "%", at_least=True)]


def csr(options: Options) -> tuple[pd.DataFrame, list[Goal]]:
    """Kernel values of sparse rows against 200 of them, and scikit-learn's."""
    from sklearn.metrics.pairwise import rbf_kernel

    X = load("a9a", options).X
    chosen = X[np.linspace(0, X.shape[0] - 1, min(200, X.shape[0]), dtype=int)]
    gamma, basis = 1 / X.shape[1], np.ascontiguousarray(chosen.toarray())
    samples, basis_map = open_samples(X), Kernel("rbf", gamma).against(basis)
    starts = range(0, X.shape[0], BLOCK_ROWS)
    blocks = [samples.block(start, min(start + BLOCK_ROWS, X.shape[0])) for start in starts]
    with ThreadEngine() as engine:
        methods: dict[str, Callable[[], object]] = {
            "kernel blocks": lambda: engine.each(lambda rows: basis_map.block(rows, np.float32), blocks),
            "rbf_kernel, CSR x CSR": lambda: rbf_kernel(X, chosen, gamma),
            "rbf_kernel, CSR x dense": lambda: rbf_kernel(X, basis, gamma),
        }
        seconds = turns(methods, 4 * REPEATS)
    fastest = min(seconds[name] for name in methods if name != "kernel blocks")
    ratio = fastest / seconds["kernel blocks"]
    table = _table("a9a", X.shape[0], X.shape[1], seconds, f"{basis.shape[0]} basis vectors")
    return table, [
        Goal("csr: kernel blocks, against the faster rbf_kernel", ratio, 8, "times", at_least=True)
    ]


def _labeller(features: int, landmarks: int) -> Any:
    """A model with so many basis vectors; what it was fitted to does not matter."""
    rows = np.random.default_rng(1).standard_normal((4 * landmarks, features), np.float32)
    return fit(mmcnb.SparseKernelMMC(gamma="median", n_landmarks=landmarks, n_init=1, random_state=0), rows)


def _size(sizes: dict[str, int], options: Options) -> int:
    rows = sizes["quick_rows"] if options.quick else sizes["rows"]
    return min(rows, options.rows) if options.rows else rows


def _table(dataset: str, n: int, d: int, seconds: dict[str, float], parameters: str) -> pd.DataFrame:
    rows = [{"method": name, "seconds": value} for name, value in seconds.items()]
    return pd.DataFrame(rows).assign(dataset=dataset, n=n, d=d, parameters=parameters)


def _remove(path: str) -> None:
    import shutil

    shutil.rmtree(path)

"""Check this installation: versions, threads, compile cache, a tiny fit."""

import argparse
import os
import platform
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mmcnb.cli._common import table
from mmcnb.errors import InputError

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "zarr", "numcodecs", "pandas", "scikit-learn", "piqp")
EXTRAS = ("dask", "distributed", "fsspec", "anndata", "matplotlib")
TINY = (1000, 8)  # rows and features of the fit that proves the machine works


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb doctor``: it has none of its own."""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Look at the installation and fit a tiny data set."""
    import mmcnb

    return {
        "versions": {
            "mmcnb": mmcnb.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
            **{name: _version_of_extra(name) for name in EXTRAS},
        },
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
        # The fit loads the libraries whose thread pools and compile cache are reported after it.
        "tiny_fit": _tiny_fit(),
        "numba": _numba(),
        "thread_pools": _thread_pools(),
    }


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word what was found."""
    for part, found in report.items():
        yield f"{part.replace('_', ' ')}:"
        entries: Iterable[dict[str, Any]] = found if isinstance(found, list) else [found]
        for entry in entries:
            yield from (f"  {line}" for line in table(entry))


def _tiny_fit() -> dict[str, Any]:
    from mmcnb import SparseKernelMMC
    from mmcnb.metrics import balanced_clustering_error
    from mmcnb.synthetic import make_block

    X, y = make_block("blobs", 0, TINY[0], TINY[1], random_state=0)
    started = time.perf_counter()
    estimator = SparseKernelMMC(random_state=0).fit(X)
    error = balanced_clustering_error(y, estimator.labels_)
    if error > 0.05:
        raise InputError(f"a tiny fit of two plain blobs ends at an error of {error:.2f}; reinstall mmcnb.")
    return {"seconds_compiling_included": time.perf_counter() - started, "balanced_error": error}


def _version_of_extra(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _numba() -> dict[str, Any]:
    from mmcnb import _numba, kernels

    kernel: Any = kernels.unchecked.squared_norms
    folder = kernel.stats.cache_path
    writable = folder is not None and os.access(folder, os.W_OK)
    return {
        # Our kernels are serial and run in our own threads: the layer matters to other libraries alone.
        "threading_layer_wanted": _numba.numba.config.THREADING_LAYER,
        "threading_layer_active": _numba.active_layer() or "none: the kernels of mmcnb need none",
        "threading_layers": _numba.threading_layers(),
        "threads": _numba.numba.config.NUMBA_NUM_THREADS,
        "compile_cache": folder if writable else "none: set NUMBA_CACHE_DIR to a folder that can be written",
        "compile_cache_can_be_written": writable,
    }


def _thread_pools() -> list[dict[str, Any]]:
    from threadpoolctl import threadpool_info

    return [
        {"pool": pool["internal_api"], "threads": pool["num_threads"], "library": Path(pool["filepath"]).name}
        for pool in threadpool_info()
    ]

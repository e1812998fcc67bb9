"""Check this installation; compile ahead; find and remove leftovers of killed commands."""

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

LIBRARIES = ["numpy", "scipy", "numba", "llvmlite", "zarr", "pandas", "scikit-learn"]
EXTRAS = ["dask", "distributed", "fsspec", "anndata", "matplotlib"]
TINY = (1000, 8)  # rows and features of the fit that proves the machine works


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb doctor``."""
    folder = "look for leftovers of killed commands there, and check nothing else"
    parser.add_argument("folder", metavar="FOLDER", nargs="?", help=folder)
    clean = "remove leftovers; files that a living process writes are never touched"
    parser.add_argument("--clean", action="store_true", help=clean)
    parser.add_argument(
        "--warm", action="store_true", help="compile for default fits, then fit a tiny data set"
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Look at the installation, and compile and fit if wanted; look for leftovers."""
    folder, is_alone = Path(arguments.folder or "."), arguments.folder is not None or arguments.clean
    found = {"leftovers": _leftovers(folder, arguments.clean)}
    return found if is_alone and not arguments.warm else _installation(arguments.warm) | found


def _installation(warm: bool) -> dict[str, Any]:
    import mmcnb

    names = {"mmcnb": mmcnb.__version__, "python": platform.python_version()}
    return {
        "versions": names | {name: _version(name) for name in (*LIBRARIES, *EXTRAS)},
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
        # The work loads the libraries whose thread pools and compile cache are reported after it.
        **({"warm_up": _warm_up()} if warm else {"routine": _routine()}),
        "numba": _numba(),
        "thread_pools": _thread_pools(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word the findings."""
    for part, found in report.items():
        yield f"{part.replace('_', ' ')}:"
        if part == "leftovers":
            yield from [f"  {_worded(entry)}" for entry in found] or ["  none"]
            continue
        entries: Iterable[dict[str, Any]] = found if isinstance(found, list) else [found]
        for entry in entries:
            yield from (f"  {line}" for line in table(entry))


def _leftovers(folder: Path, clean: bool) -> list[dict[str, Any]]:
    """Hidden folders of processes that write or wrote outputs in a folder."""
    from mmcnb.stores.atomic import leftovers

    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: give doctor the folder of your outputs.")
    return leftovers(folder, clean)


def _worded(entry: dict[str, Any]) -> str:
    """One leftover and its remedy."""
    from mmcnb.stores.atomic import ALIVE, GONE

    if entry["done"] is not None:
        return f"{entry['path']}: {entry['done']}"
    remedies = {GONE: '; "--clean" removes it', ALIVE: ""}
    remedy = remedies.get(entry["owner"], "; move it back or remove it by hand once nothing writes there")
    return f"{entry['path']}: the process that writes {entry['of']} {entry['owner']}{remedy}"


def _routine() -> dict[str, Any]:
    """Compile the smallest routine, or load it, and compare it with NumPy."""
    import numpy as np
    import scipy.linalg  # noqa: F401  its pool is one of those that are reported

    from mmcnb import MaximumMarginClustering, kernels
    from mmcnb._compiling import times
    from mmcnb.engine.needs import RowShape

    X, compiled = np.random.default_rng(0).normal(size=TINY), times()[1]
    if not np.allclose(kernels.squared_norms(X), (X**2).sum(axis=1)):
        raise InputError("a compiled routine does not agree with NumPy; reinstall mmcnb, numba and llvmlite.")
    seconds = times()[1] - compiled
    wanted = MaximumMarginClustering(2).plan(RowShape(1000, 2)).compile_seconds
    later = f'about {wanted:.0f} s, once; "mmcnb doctor --warm" does it now' if wanted else "none is left"
    return {"agrees_with_numpy": True, "seconds_compiling": seconds, "compilation_of_the_first_fit": later}


def _warm_up() -> dict[str, Any]:
    """Compile the routines of default fits, and fit two plain blobs."""
    from mmcnb import SparseKernelMMC, warmup
    from mmcnb.metrics import balanced_clustering_error
    from mmcnb.synthetic import make_block

    compiling = warmup() + warmup(SparseKernelMMC())
    X, y = make_block("blobs", 0, *TINY, random_state=0)
    started = time.perf_counter()
    error = balanced_clustering_error(y, SparseKernelMMC(random_state=0).fit(X).labels_)
    if error > 0.05:
        raise InputError(f"a tiny fit of two plain blobs ends at an error of {error:.2f}; reinstall mmcnb.")
    seconds = time.perf_counter() - started
    return {"seconds_compiling": compiling, "tiny_fit_seconds": seconds, "tiny_fit_error": error}


def _numba() -> dict[str, Any]:
    from mmcnb import kernels
    from mmcnb._numba import numba

    folder = kernels.unchecked.squared_norms.stats.cache_path
    writable = folder is not None and os.access(folder, os.W_OK)
    return {
        "threads": numba.config.NUMBA_NUM_THREADS,
        "compile_cache": folder if writable else "none: set NUMBA_CACHE_DIR to a folder that can be written",
        "compile_cache_can_be_written": writable,
    }


def _thread_pools() -> list[dict[str, Any]]:
    from threadpoolctl import threadpool_info

    shown = {"pool": "internal_api", "threads": "num_threads", "library": "filepath"}
    return [{name: pool[key] for name, key in shown.items()} for pool in threadpool_info()]

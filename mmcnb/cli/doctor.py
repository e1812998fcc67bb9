"""Check the installation, compile in advance, or find and remove leftovers."""

import os
import platform
from importlib.metadata import distributions
from pathlib import Path

import mmcnb
from mmcnb._config import n_threads
from mmcnb.cli._options import Arguments, Lines, Parser, Report
from mmcnb.cli._words import table
from mmcnb.errors import InputError

LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "zarr",
    "pandas",
    "scikit-learn",
    "dask",
    "distributed",
    "fsspec",
    "anndata",
    "matplotlib",
)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb doctor``."""
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        help="only search for leftovers, in this folder",
    )
    parser.add_argument(
        "--clean",
        action="store_true",
        help="remove the leftovers of processes that have ended",
    )
    parser.add_argument(
        "--warm", action="store_true", help="compile the routines of default fits"
    )


def run(arguments: Arguments) -> Report:
    """Return the state of the installation, or the unfinished outputs in a folder."""
    folder = Path(arguments.folder or ".")
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the folder of your outputs.")
    leftovers = {"leftovers": _leftovers(folder, arguments.clean)}
    if arguments.warm:
        mmcnb.warmup()
    elif arguments.folder is not None or arguments.clean:
        return leftovers
    import scipy.linalg  # noqa: F401  loads a thread pool that the report lists
    from threadpoolctl import threadpool_info

    return {
        "versions": _versions(),
        "machine": _machine(),
        "thread_pools": threadpool_info(),
        **leftovers,
    }


def lines(report: Report) -> Lines:
    """Format the findings as text."""
    for name, findings in report.items():
        yield f"{name.replace('_', ' ')}:"
        for finding in findings if isinstance(findings, list) else [findings]:
            for line in table(finding):
                yield f"  {line}"
        if not findings:
            yield "  none"


def _leftovers(folder: Path, clean: bool) -> list[Report]:
    """Return the unfinished outputs in a folder, with a remedy for each of them."""
    from mmcnb.stores.leftovers import ALIVE, GONE, leftovers

    remedies = {GONE: f"mmcnb doctor --clean {folder}", ALIVE: None}
    by_hand = "move it back or remove it manually when no process writes there"
    unfinished = leftovers(folder, clean)
    for leftover in unfinished:
        remedy = remedies.get(leftover["owner"], by_hand)
        leftover["remedy"] = None if leftover["done"] else remedy
    return unfinished


def _versions() -> dict[str, str]:
    installed = {package.name.lower(): package.version for package in distributions()}
    versions = {"mmcnb": mmcnb.__version__, "python": platform.python_version()}
    for name in LIBRARIES:
        versions[name] = installed.get(name, "not installed")
    return versions


def _machine() -> Report:
    from mmcnb import kernels

    cache = kernels.unchecked.squared_norms.stats.cache_path
    if cache is None or not os.access(cache, os.W_OK):
        cache = "none: set NUMBA_CACHE_DIR to a writable folder"
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": n_threads(None),
        "compile_cache": cache,
    }

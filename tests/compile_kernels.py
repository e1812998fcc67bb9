"""Compile the kernels that the fast tests call, once, on two cores, before the workers of pytest start.

    python -m tests.compile_kernels             # compile what signatures.csv lists into numba's cache
    python -m tests.compile_kernels --record    # list what the cache in NUMBA_CACHE_DIR contains

Without this step each worker compiles whatever its own tests call, and two workers
compile the same kernels twice. A kernel that is missing from the list is compiled by
the first test that calls it, so an old list costs time and nothing else. To renew it,
run the fast tests with an empty NUMBA_CACHE_DIR, and then record.
"""

import argparse
import csv
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

from mmcnb.engine.compile_apart import SIGNATURES, compile_module, listed_routines

MODULES = (
    "mmcnb.graph._genie",
    "mmcnb.graph._layout",
    "mmcnb.graph._louvain",
    "mmcnb.kernels.cone",
    "mmcnb.kernels.cutting_plane",
    "mmcnb.kernels.evolution",
    "mmcnb.kernels.gaps",
    "mmcnb.kernels.landmarks",
    "mmcnb.kernels.losses",
    "mmcnb.kernels.moves",
    "mmcnb.kernels.neighbours",
    "mmcnb.kernels.pairwise",
    "mmcnb.kernels.planes",
    "mmcnb.kernels.runner_up",
    "mmcnb.kernels.sizes",
)
PROCESSES = 2


def dispatchers(module):
    """Return the compiled routines of a module by name."""
    routines = vars(import_module(module))
    return {
        name: routine
        for name, routine in routines.items()
        if hasattr(routine, "overloads")
    }


def spelled(kind):
    """Return a type of numba as an expression of names, or None if it has none.

    The names are those of numba.types and of the module of the routine.
    """
    if hasattr(kind, "instance_class"):
        values = ", ".join(map(str, map(spelled, kind)))
        return f"NamedTuple([{values}], {kind.instance_class.__name__})"
    if hasattr(kind, "ndim") and kind.mutable:
        step = {"C": "::1", "F": "::1", "A": ":"}[kind.layout]
        steps = [":"] * (kind.ndim - 1)
        steps = [step, *steps] if kind.layout == "F" else [*steps, step]
        return f"{kind.dtype}[{','.join(steps)}]"
    if hasattr(kind, "value") and type(kind).__name__ == "Omitted":
        return f"Omitted({kind.value!r})"
    if hasattr(kind, "ndim"):
        return f"Array({kind.dtype}, {kind.ndim}, {kind.layout!r}, readonly=True)"
    return str(kind) if str(kind).isidentifier() else None


def record():
    """Write the signatures of all routines in the cache."""
    with SIGNATURES.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["module", "routine", "types"])
        for module in MODULES:
            for name, routine in sorted(dispatchers(module).items()):
                cache = getattr(routine._cache, "_cache_file", None)
                overloads = cache._load_index() if cache else {}
                types = [
                    [spelled(kind) for kind in signature] for signature, *_ in overloads
                ]
                rows.writerows(
                    [module, name, "; ".join(one)]
                    for one in sorted(types, key=str)
                    if all(one)
                )


def compile_modules(modules):
    """Compile the listed signatures of some modules, or load them from the cache."""
    for module in modules:
        compile_module(module)


def shared_out():
    """Return the modules of each process, such that all have about as many signatures to compile."""
    weights = defaultdict(int)
    for routine in listed_routines():
        weights[routine.module] += 1
    shares = [[0, []] for _ in range(PROCESSES)]
    for module in sorted(weights, key=weights.get, reverse=True):
        least = min(shares, key=lambda share: share[0])
        least[0] += weights[module]
        least[1].append(module)
    return [modules for _, modules in shares if modules]


def compile_all():
    """Compile every listed signature, in one process for each share of the modules."""
    command = [sys.executable, "-m", "tests.compile_kernels"]
    root = Path(__file__).parents[1]
    running = [
        subprocess.Popen([*command, *modules], cwd=root) for modules in shared_out()
    ]
    for process in running:
        process.wait()  # what it could not compile fails in the test that calls it


def main():
    """Compile or record."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.compile_kernels", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "modules",
        nargs="*",
        help="compile the routines of these modules only, in this process",
    )
    parser.add_argument(
        "--record", action="store_true", help="write signatures.csv from the cache"
    )
    options = parser.parse_args()
    if options.record:
        record()
    elif options.modules:
        compile_modules(options.modules)
    else:
        compile_all()


if __name__ == "__main__":
    main()

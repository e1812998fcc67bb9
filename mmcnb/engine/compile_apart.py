"""Compile routines in separate processes, which release their memory when they end.

Numba needs more than 100 MiB to compile, and a process never returns this memory. If
the memory limit of a fit is too small for this, separate processes first compile the
routines, one process after another, and the fit loads the machine code from the cache.

``python -m mmcnb.engine.compile_apart START SPARSE NAME...`` compiles the routines that
a fit needs, beginning at index START, until the peak memory of the process exceeds
`GROWN_BYTES`. SPARSE is 1 if the rows are in CSR form and 0 otherwise. Each NAME is a
routine whose compilation the plan of the fit includes. The command prints the index at
which the next process begins.
"""

import csv
import logging
import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from mmcnb import _numba, kernels
from mmcnb._machine import peak_memory

logger = logging.getLogger("mmcnb")

SIGNATURES = Path(kernels.__file__).with_name("signatures.csv")
# A process ends after the first routine that raises its peak memory above this value.
GROWN_BYTES = 170 * 2**20
# Memory of the waiting process before the fit has read any rows, plus the memory of the
# largest compiling process: 270 and 237 MiB by measurement.
APART_BYTES = (272 + 238) * 2**20
# Modules that only some methods call. A fit calls a module if its plan includes the
# routine named here.
GRAPH = "nearest_nodes_into"
EVOLUTION = "evolve_labels"
OF_SOME_METHODS = {
    "mmcnb.graph._genie": GRAPH,
    "mmcnb.graph._layout": GRAPH,
    "mmcnb.graph._louvain": GRAPH,
    "mmcnb.kernels.evolution": EVOLUTION,
    "mmcnb.kernels.neighbours": GRAPH,
}


class ListedRoutine(NamedTuple):
    """A routine and the types of the arguments passed to it during a fit.

    Attributes
    ----------
    module, name : str
        Module and name of the routine.
    types : str
        Numba types of the arguments, as Python expressions separated by semicolons.
    """

    module: str
    name: str
    types: str

    @property
    def takes_csr(self) -> bool:
        """Whether the routine takes rows in CSR form."""
        return "_csr" in self.name


def listed_routines() -> list[ListedRoutine]:
    """Return the routines that are listed in ``signatures.csv``.

    A routine has one entry for each combination of argument types.

    Examples
    --------
    >>> from mmcnb.engine.compile_apart import listed_routines
    >>> listed_routines()[0].name
    'genie'
    """
    with SIGNATURES.open(encoding="utf-8", newline="") as file:
        return [ListedRoutine(*row) for row in csv.reader(file)][1:]


def compile_module(module: str) -> None:
    """Compile the listed routines of a module, or load them from the cache.

    The routines and their argument types are listed in ``signatures.csv``.
    """
    names = vars(import_module(module))
    for routine in listed_routines():
        if routine.module == module:
            _numba.compile_for(names[routine.name], routine.types, names)


def needed_routines(routines: Collection[str], is_sparse: bool) -> list[ListedRoutine]:
    """Return the entries of `listed_routines` that a fit may call.

    Parameters
    ----------
    routines : collection of str
        Names of the routines whose compilation the plan of the fit includes.
    is_sparse : bool
        Whether the rows are in CSR form.
    """
    needed = []
    for routine in listed_routines():
        marker = OF_SOME_METHODS.get(routine.module)
        is_called = marker is None or marker in routines
        if is_called and (is_sparse or not routine.takes_csr):
            needed.append(routine)
    return needed


def compile_from(start: int, needed: Sequence[ListedRoutine]) -> int:
    """Compile routines in this process until its peak memory exceeds GROWN_BYTES.

    Parameters
    ----------
    start : int
        Index of the first routine to compile.
    needed : sequence of ListedRoutine
        All routines that the fit may call.

    Returns
    -------
    int
        Index of the next routine to compile, or ``len(needed)`` if all are compiled.
    """
    for place, routine in enumerate(needed[start:], start):
        names = vars(import_module(routine.module))
        _numba.compile_for(names[routine.name], routine.types, names)
        if peak_memory() > GROWN_BYTES:
            return place + 1
    return len(needed)


def compile_apart(routines: Collection[str], is_sparse: bool) -> None:
    """Compile routines into the cache, in a sequence of separate processes.

    Parameters
    ----------
    routines : collection of str
        Names of the routines whose compilation the plan of the fit includes.
    is_sparse : bool
        Whether the rows are in CSR form.
    """
    logger.info("compiling in other processes (once); this takes some minutes")
    n_needed = len(needed_routines(routines, is_sparse))
    place = 0
    while place < n_needed:
        command = [sys.executable, "-m", __name__, str(place), str(int(is_sparse))]
        result = subprocess.run(
            [*command, *routines],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:  # the fit compiles what is missing
            reason = result.stderr.strip()[-300:]
            logger.warning("routines were not compiled in advance: %s", reason)
            return
        place = int(result.stdout)


@contextmanager
def graph_compiled_apart() -> Iterator[None]:
    """Compile the routines of the graph in another process during the ``with`` block.

    At the end of the block, wait for the process. If the process fails, a later fit
    compiles the missing routines.
    """
    modules = [name for name, marker in OF_SOME_METHODS.items() if marker == GRAPH]
    code = f"from {__name__} import compile_module as of\n" + "\n".join(
        f"of({module!r})" for module in modules
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            yield
        except BaseException:
            process.kill()
            raise


def _environment() -> dict[str, str]:
    """Return environment variables with which a process can import this package."""
    package = Path(kernels.__file__).parents[2]
    paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def main(arguments: Sequence[str]) -> None:
    """Compile routines, and print the index of the first routine that is left.

    The next process begins with this routine.
    """
    start, is_sparse, *routines = arguments
    needed = needed_routines(routines, is_sparse == "1")
    print(compile_from(int(start), needed))


if __name__ == "__main__":
    main(sys.argv[1:])

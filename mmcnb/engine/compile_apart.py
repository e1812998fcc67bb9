"""Compile routines in processes of their own, whose memory ends with them.

Numba needs more than 100 MiB to compile, and a process never gives them back. A fit
whose memory limit has no room for them compiles here first, in one process after the
other, and then reads the machine code from the cache.

``python -m mmcnb.engine.compile_apart START`` compiles the routines of
``kernels/signatures.csv`` from a place in that list on, until its memory has grown, and
prints the place at which the next process goes on.
"""

import csv
import logging
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from mmcnb import _numba, kernels
from mmcnb._machine import peak_memory

logger = logging.getLogger("mmcnb")

SIGNATURES = Path(kernels.__file__).with_name("signatures.csv")
# A process ends after the routine with which it has reached so many bytes.
GROWN_BYTES = 170 * 2**20
# A process that has compiled the largest routine, and the one that waits for it before
# a fit has read a row: about 230 and 270 MiB, measured.
APART_BYTES = 500 * 2**20


class ListedRoutine(NamedTuple):
    """A routine, and types that fits call it with.

    Attributes
    ----------
    module, name : str
        Where it is.
    types : str
        Expressions of Numba's types, separated by semicolons.
    """

    module: str
    name: str
    types: str

    @property
    def takes_csr(self) -> bool:
        """Whether it takes rows in CSR form."""
        return "_csr" in self.name


def listed_routines() -> list[ListedRoutine]:
    """Return the routines that are listed, once for each list of types.

    Examples
    --------
    >>> from mmcnb.engine.compile_apart import listed_routines
    >>> listed_routines()[0].name
    'genie'
    """
    with SIGNATURES.open(encoding="utf-8", newline="") as file:
        return [ListedRoutine(*row) for row in csv.reader(file)][1:]


def compile_module(module: str) -> None:
    """Compile the listed routines of a module in this process, or load them."""
    names = vars(import_module(module))
    for routine in listed_routines():
        if routine.module == module:
            _numba.compile_for(names[routine.name], routine.types, names)


def compile_from(start: int, is_sparse: bool) -> int:
    """Compile listed routines in this process until its memory has grown.

    Parameters
    ----------
    start : int
        Place of the first routine in `listed_routines`.
    is_sparse : bool
        Whether routines for rows in CSR form are compiled, too.

    Returns
    -------
    int
        Place of the next routine; the length of the list at its end.
    """
    routines = listed_routines()
    for place, routine in enumerate(routines[start:], start):
        if routine.takes_csr and not is_sparse:
            continue
        names = vars(import_module(routine.module))
        _numba.compile_for(names[routine.name], routine.types, names)
        if peak_memory() > GROWN_BYTES:
            return place + 1
    return len(routines)


def compile_apart(is_sparse: bool) -> None:
    """Compile all listed routines into the cache, in one process after the other.

    Parameters
    ----------
    is_sparse : bool
        Whether the rows are in CSR form.
    """
    logger.info("compiling in other processes (once); this takes a minute or two")
    package = Path(kernels.__file__).parents[2]
    paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    n_listed = len(listed_routines())
    place = 0
    while place < n_listed:
        command = [sys.executable, "-m", __name__, str(place), str(int(is_sparse))]
        result = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:  # the fit compiles what is missing
            reason = result.stderr.strip()[-300:]
            logger.warning("routines were not compiled ahead: %s", reason)
            return
        place = int(result.stdout)


if __name__ == "__main__":
    print(compile_from(int(sys.argv[1]), sys.argv[2] == "1"))

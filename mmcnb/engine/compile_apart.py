"""Compile routines in processes of their own, whose memory ends with them.

Numba needs more than 100 MiB to compile, and a process never gives them back. A fit
whose memory limit has no room for them compiles here first, one module after the other,
and then reads the machine code from the cache.

``python -m mmcnb.engine.compile_apart MODULE`` compiles the routines of a module for
the types in ``kernels/signatures.csv``.
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

logger = logging.getLogger("mmcnb")

SIGNATURES = Path(kernels.__file__).with_name("signatures.csv")
# A process that has compiled a module, and the one that waits for it before a fit has
# read a row: 191 and 263 MiB, measured.
APART_BYTES = 460 * 2**20


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


def compile_module(module: str, is_sparse: bool = True) -> None:
    """Compile the listed routines of a module in this process, or load them.

    Parameters
    ----------
    module : str
        Its name.
    is_sparse : bool, default=True
        Whether routines for rows in CSR form are compiled, too.
    """
    names = vars(import_module(module))
    for routine in listed_routines():
        if routine.module == module and (is_sparse or not routine.takes_csr):
            _numba.compile_for(names[routine.name], routine.types, names)


def compile_apart(is_sparse: bool) -> None:
    """Compile all listed routines into the cache, a process for each module.

    Parameters
    ----------
    is_sparse : bool
        Whether the rows are in CSR form.
    """
    logger.info("compiling in other processes (once); this takes a minute or two")
    package = Path(kernels.__file__).parents[2]
    paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    modules = dict.fromkeys(routine.module for routine in listed_routines())
    for module in modules:
        command = [sys.executable, "-m", __name__, module]
        if is_sparse:
            command.append("--sparse")
        result = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:  # the fit compiles what is missing
            logger.warning(
                "%s was not compiled ahead: %s", module, result.stderr[-300:]
            )


if __name__ == "__main__":
    compile_module(sys.argv[1], "--sparse" in sys.argv[2:])

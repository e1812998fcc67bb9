"""Compiled routines on NumPy arrays, which process one block of rows at a time.

Each routine checks its arguments: arrays must be C-ordered, and must have the shapes,
dtypes and ranges that the docstring states. Where the docstring allows it, rows may
also be in CSR form: a `mmcnb.samples.CSRBlock` or a SciPy CSR matrix. The routines in
`mmcnb.kernels.unchecked` do not check their arguments, and can be called from njit
code. Numba is imported when a routine is first accessed.
"""

from collections.abc import Callable

import numpy as np

from mmcnb.kernels import unchecked
from mmcnb.kernels._checks import checked

__all__ = sorted(unchecked.PUBLIC)


def _twin_of_csr(name: str) -> Callable | None:
    """Return the variant of a routine for CSR rows (its twin), or None.

    Instead of the rows, the twin takes the arrays ``data``, ``indices`` and ``indptr``.
    All other arguments are the same.
    """
    twin = f"{name}_csr"
    if name.endswith("_into"):
        twin = name.replace("_into", "_csr_into")
    if twin not in unchecked.__all__:
        return None
    routine = getattr(unchecked, twin)
    if "kernel_block" not in name:
        return routine

    def call(
        data: np.ndarray,
        indices: np.ndarray,
        indptr: np.ndarray,
        B: np.ndarray,
        *arguments: object,
    ) -> None:
        basis = [np.ascontiguousarray(B.T)]
        if "rbf" in name:
            basis += [unchecked.squared_norms(B), unchecked.column_tiles(B)]
        routine(data, indices, indptr, *basis, *arguments)

    return call


def __getattr__(name: str) -> Callable:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    routine = checked(getattr(unchecked, name), _twin_of_csr(name))
    return globals().setdefault(name, routine)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Compiled routines on arrays: pure functions of one block of rows, each usable alone.

Each checks its arguments: C-ordered arrays of the shapes, dtypes and ranges that its
docstring names. Rows may also be in CSR form: a `mmcnb.samples.CSRBlock`, or a matrix
of SciPy's. `mmcnb.kernels.unchecked` has the routines without the checks, to be called
from njit code. Numba is loaded when the first name is used.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mmcnb.kernels import unchecked
from mmcnb.kernels._checks import checked

__all__ = sorted(unchecked.PUBLIC)


def _twin_of_csr(name: str) -> Callable | None:
    """The twin of a routine for CSR rows, with the arguments of the routine; None if it has no twin."""
    twin = (
        name.replace("_into", "_csr_into") if name.endswith("_into") else f"{name}_csr"
    )
    if twin not in unchecked.__all__:
        return None
    routine = getattr(unchecked, twin)

    def call(data: Any, indices: Any, indptr: Any, *others: Any) -> Any:
        if "kernel_block" in name:
            B, *others = others
            prepared = (
                (unchecked.squared_norms(B), unchecked.column_tiles(B))
                if "rbf" in name
                else ()
            )
            others = np.ascontiguousarray(B.T), *prepared, *others
        return routine(data, indices, indptr, *others)

    return call


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(
        name, checked(getattr(unchecked, name), _twin_of_csr(name))
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

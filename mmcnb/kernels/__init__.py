"""Compiled routines on arrays: pure functions of one block of rows, each usable alone.

Each checks what it is given: C-ordered arrays of the shapes, dtypes and ranges that its docstring names.
`mmcnb.kernels.unchecked` has the same routines without the checks, to be called from njit code. Numba is
loaded when the first name is used.
"""

from typing import Any

from mmcnb.kernels import unchecked
from mmcnb.kernels._checks import checked

__all__ = [*unchecked.__all__]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = checked(getattr(unchecked, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

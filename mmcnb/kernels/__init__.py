"""Compiled routines on arrays: pure functions of one block of rows, each usable alone.

Arrays are C-ordered unless a docstring says otherwise. Numba is loaded when the first name is used.
`mmcnb.kernels.unchecked` has the same names for the library's own passes and for njit code.
"""

from typing import Any

from mmcnb.kernels import unchecked

__all__ = [*unchecked.__all__]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(unchecked, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

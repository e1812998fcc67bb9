"""Seconds and bytes that a fit needs to compile its routines."""

from collections.abc import Mapping

from mmcnb import _numba, kernels

# Resident memory of a process that compiles, beyond a process that finds its routines
# in the cache: 106 to 126 MiB, measured.
COMPILER_BYTES = 104 * 2**20
COMPILED_BYTES_A_SECOND = 1.5 * 2**20


def compile_seconds(routines: Mapping[str, float]) -> float:
    """Return the seconds to compile those routines that have no machine code yet.

    The machine code may be in this process or in the cache.

    Parameters
    ----------
    routines : mapping of str to float
        Seconds of each, as in `FitNeeds`.

    Returns
    -------
    float
        0 if all are compiled.

    Examples
    --------
    >>> from mmcnb.engine.compilation import compile_seconds
    >>> compile_seconds({})
    0.0
    """
    cold = [
        seconds
        for name, seconds in routines.items()
        if not _numba.is_compiled(getattr(kernels.unchecked, name))
    ]
    return sum(cold, 0.0)


def can_compile_apart(routines: Mapping[str, float]) -> bool:
    """Return whether another process can compile routines for this one.

    Examples
    --------
    >>> from mmcnb.engine.compilation import can_compile_apart
    >>> can_compile_apart({})
    False
    """
    return any(_numba.has_cache(getattr(kernels.unchecked, name)) for name in routines)


def compiler_bytes(seconds: float) -> int:
    """Return the bytes that compilation of some seconds takes, and keeps."""
    return int(COMPILER_BYTES + seconds * COMPILED_BYTES_A_SECOND) if seconds else 0

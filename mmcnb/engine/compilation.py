"""Time and memory that a fit needs to compile its routines."""

from collections.abc import Mapping

from mmcnb import _numba, kernels

# A process that compiles needs 106 to 126 MiB more resident memory than a process that
# loads the same routines from the cache (measured).
COMPILER_BYTES = 104 * 2**20
COMPILED_BYTES_A_SECOND = 1.5 * 2**20


def compile_seconds(routines: Mapping[str, float]) -> float:
    """Return the estimated seconds to compile the routines that are not yet compiled.

    A routine counts as compiled if its machine code is in this process or in the cache.

    Parameters
    ----------
    routines : mapping of str to float
        Seconds to compile each routine, by the name of the routine, as in `FitNeeds`.

    Returns
    -------
    float
        Estimated seconds; 0 if all routines are compiled.

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
    """Return whether compiling some routine in another process would help this process.

    This process would load the machine code from the cache, so numba must cache at
    least one of the routines on disk.

    Examples
    --------
    >>> from mmcnb.engine.compilation import can_compile_apart
    >>> can_compile_apart({})
    False
    """
    return any(_numba.has_cache(getattr(kernels.unchecked, name)) for name in routines)


def compiler_bytes(seconds: float) -> int:
    """Return the memory, in bytes, that a process needs to compile for ``seconds``.

    The process does not release this memory before it ends.
    """
    return int(COMPILER_BYTES + seconds * COMPILED_BYTES_A_SECOND) if seconds else 0

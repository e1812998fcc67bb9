"""Memory that reading a file takes, beside a limit."""

from mmcnb._config import LIBRARIES, format_bytes, resolve_memory_limit
from mmcnb._machine import resident_memory
from mmcnb.errors import MemoryLimitError

READING_BYTES = 64 * 2**20  # of pieces of a file, and of arrays made of them


def spare_bytes(memory_limit: str | int | None) -> int:
    """Return what a memory limit leaves beside the libraries."""
    return max(0, resolve_memory_limit(memory_limit) - LIBRARIES)


def check_reading(name: str, n_bytes: float, memory_limit: str | int | None) -> None:
    """Refuse a memory limit that reading a file would exceed.

    Parameters
    ----------
    name : str
        Of the file.
    n_bytes : float
        That reading takes beside the libraries and pieces of the file.
    memory_limit : str, int or None

    Raises
    ------
    MemoryLimitError
        The message names the least limit that works.
    """
    limit = resolve_memory_limit(memory_limit)
    before = min(resident_memory() or LIBRARIES, LIBRARIES)  # not the caller's arrays
    least = before + READING_BYTES + int(n_bytes)
    if limit < least:
        raise MemoryLimitError(
            f"memory_limit={format_bytes(limit)} is too small to read {name} with; the "
            f"least that works is {format_bytes(least, up=True)}."
        )

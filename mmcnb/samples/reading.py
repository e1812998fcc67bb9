"""Check the memory that is needed to read a file against the memory limit."""

from mmcnb._config import LIBRARIES, format_bytes, resolve_memory_limit
from mmcnb._machine import resident_memory
from mmcnb.errors import MemoryLimitError

# Memory for pieces of a file and the arrays that are parsed from them.
READING_BYTES = 64 * 2**20


def spare_bytes(memory_limit: str | int | None) -> int:
    """Return the number of bytes that a memory limit leaves for the rows."""
    return max(0, resolve_memory_limit(memory_limit) - LIBRARIES)


def check_reading(name: str, n_bytes: float, memory_limit: str | int | None) -> None:
    """Raise an error if reading a file would exceed the memory limit.

    Parameters
    ----------
    name : str
        Name of the file, for the message.
    n_bytes : float
        Number of bytes needed in addition to the memory of the libraries and of pieces
        of the file.
    memory_limit : str, int or None
        Limit on the resident memory. None means the setting of `mmcnb.config` or, if it
        is not set, half of the free memory.

    Raises
    ------
    MemoryLimitError
        If the limit is too small. The message names the smallest limit that works.
    """
    limit = resolve_memory_limit(memory_limit)
    # Arrays of the caller do not count towards the memory limit, so at most LIBRARIES
    # bytes of the memory in use are counted.
    before = min(resident_memory() or LIBRARIES, LIBRARIES)
    least = before + READING_BYTES + int(n_bytes)
    if limit < least:
        raise MemoryLimitError(
            f"memory_limit={format_bytes(limit)} is too small to read {name}; the "
            f"least that works is {format_bytes(least, up=True)}."
        )

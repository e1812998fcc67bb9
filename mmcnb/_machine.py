"""Cores, processor and memory of this machine, on Linux, macOS and Windows."""

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

PROC = Path("/proc")  # Linux alone
KEPT_BYTES = 32 * 2**20
GROUP = Path("/sys/fs/cgroup")  # the control group of a container, likewise


def cores() -> int:
    """Return how many cores this process may use.

    Examples
    --------
    >>> from mmcnb._machine import cores
    >>> cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """Return the name of the processor; empty if the system does not say."""
    names = _lines(PROC / "cpuinfo", "model name")
    return names[0] if names else platform.processor()


def available_memory() -> int:
    """Return the bytes that are free on this machine or left in this control group.

    0 if the system says neither.
    """
    import psutil

    free = []
    with suppress(OSError, psutil.Error):
        free.append(int(psutil.virtual_memory().available))
    with suppress(OSError, ValueError):  # "max" is no limit
        limit = int((GROUP / "memory.max").read_text(encoding="ascii"))
        used = int((GROUP / "memory.current").read_text(encoding="ascii"))
        free.append(max(0, limit - used))
    return min(free, default=0)


def resident_memory() -> int | None:
    """Return the resident memory of this process; None if the system does not say."""
    import psutil

    with suppress(OSError, psutil.Error):
        return int(psutil.Process().memory_info().rss)
    return None


def peak_memory() -> int:
    """Return the most resident memory this process has had, in bytes.

    Where the system keeps no count, it is the memory that the process has now.

    Examples
    --------
    >>> from mmcnb._machine import peak_memory
    >>> peak_memory() > 2**20
    True
    """
    # On Linux getrusage would count what the parent had before it started this program.
    marks = _lines(PROC / "self" / "status", "VmHWM")
    if marks:
        return int(marks[0].split()[0]) * 1024
    import psutil

    with suppress(OSError, psutil.Error, AttributeError):
        return int(psutil.Process().memory_info().peak_wset)  # Windows
    if sys.platform == "darwin":
        with suppress(ImportError):
            import resource

            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return resident_memory() or 0


def _c_library(name: str, *arguments: int) -> Callable[[], Any]:
    """Return a call of a function of the C library of Linux.

    It does nothing if another C library lacks the function.
    """
    try:
        return partial(getattr(ctypes.CDLL(None), name), *arguments)
    except (OSError, TypeError, AttributeError):
        return lambda: None


# The C library of Linux keeps freed memory for later use; this returns it to the
# system.
return_freed_memory = _c_library("malloc_trim", 0)


def keep_freed_memory() -> None:
    """Keep freed blocks of up to 32 MiB for later use, whatever the environment says.

    Dask starts its workers with a limit of 64 KiB. Each array of a block would then be
    mapped and unmapped, which costs a pass half of its time.
    """
    for option in (-3, -1):  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h
        _c_library("mallopt", option, KEPT_BYTES)()


def _lines(path: Path, name: str) -> list[str]:
    """Return the values of the lines ``name: value`` of a file of the system.

    The list is empty if the file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    pairs = (line.partition(":") for line in lines)
    return [value.strip() for key, _, value in pairs if key.strip() == name]

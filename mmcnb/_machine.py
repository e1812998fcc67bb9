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

PROC = Path("/proc")  # exists only on Linux
KEPT_BYTES = 32 * 2**20  # largest threshold that glibc's malloc accepts
GROUP = Path("/sys/fs/cgroup")  # control group of a container; exists only on Linux


def cores() -> int:
    """Return the number of cores that this process may use.

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
    """Return the name of the processor, or "" if the system does not report it."""
    names = _lines(PROC / "cpuinfo", "model name")
    return names[0] if names else platform.processor()


def available_memory() -> int:
    """Return the memory that is available to this process, in bytes.

    The result is the smaller of the available memory of the machine and the free memory
    within the limit of the control group. If the system reports neither, it is 0.
    """
    import psutil

    free = []
    with suppress(OSError, psutil.Error):
        free.append(int(psutil.virtual_memory().available))
    with suppress(OSError, ValueError):  # the file contains "max" if there is no limit
        limit = int((GROUP / "memory.max").read_text(encoding="ascii"))
        used = int((GROUP / "memory.current").read_text(encoding="ascii"))
        free.append(max(0, limit - used))
    return min(free, default=0)


def resident_memory() -> int | None:
    """Return the resident memory of this process in bytes, or None if unknown."""
    import psutil

    with suppress(OSError, psutil.Error):
        return int(psutil.Process().memory_info().rss)
    return None


def peak_memory() -> int:
    """Return the peak resident memory of this process, in bytes.

    If the system does not record the peak, return the current resident memory.

    Examples
    --------
    >>> from mmcnb._machine import peak_memory
    >>> peak_memory() > 2**20
    True
    """
    # On Linux, ru_maxrss of getrusage is not used, because it includes the memory that
    # the parent process had when it started this process.
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
    """Return a callable that calls the C function ``name`` with ``arguments``.

    If the C library does not have the function, the callable does nothing.
    """
    try:
        return partial(getattr(ctypes.CDLL(None), name), *arguments)
    except (OSError, TypeError, AttributeError):
        return lambda: None


# glibc retains freed memory for later use. This function returns it to the system.
return_freed_memory = _c_library("malloc_trim", 0)


def keep_freed_memory() -> None:
    """Make malloc keep freed blocks of up to 32 MiB for reuse.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_ set to 64 KiB. Each array of a
    block would then be mapped and unmapped, which takes half of the time of a pass.
    """
    for option in (-3, -1):  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h
        _c_library("mallopt", option, KEPT_BYTES)()


def _lines(path: Path, name: str) -> list[str]:
    """Return the values of all lines ``name: value`` of a file in /proc.

    The list is empty if the file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    pairs = (line.partition(":") for line in lines)
    return [value.strip() for key, _, value in pairs if key.strip() == name]

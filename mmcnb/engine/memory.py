"""Bytes: what the user said, what the machine has, what the process holds."""

import os
import re
from pathlib import Path

from mmcnb.errors import InputError

MIB = 2**20
LIBRARIES = 300 * MIB  # interpreter and compiled libraries, measured
_UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_bytes(text: str | int | float) -> int:
    """Read a number of bytes such as ``"512MiB"``, ``"1.5 GB"`` or ``2**30``.

    Parameters
    ----------
    text : str, int or float
        A number, optionally followed by a unit; K, M, G and T are powers of 1,024
        when written KiB, MiB, GiB, TiB or without B, of 1,000 when written KB, MB, GB, TB.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    InputError
        If the text is no positive number of bytes.

    Examples
    --------
    >>> from mmcnb.engine.memory import parse_bytes
    >>> parse_bytes("512MiB")
    536870912
    """
    match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(I?)(B?)\s*", str(text).upper())
    try:
        if match is None:
            raise ValueError
        number, unit, binary, byte = match.groups()
        decimal = unit and byte and not binary
        scale = 1000 ** "_KMGT".index(unit) if decimal else _UNITS[unit]
        size = int(float(number) * scale)
        if size <= 0:
            raise ValueError
    except ValueError:
        raise InputError(f"memory_limit={text!r} is not a number of bytes; write it like '512MiB'.") from None
    return size


def format_bytes(size: float) -> str:
    """Write a number of bytes for people.

    Parameters
    ----------
    size : float
        Bytes.

    Returns
    -------
    str
        For instance ``"512 MiB"``.

    Examples
    --------
    >>> from mmcnb.engine.memory import format_bytes
    >>> format_bytes(3 * 2**29)
    '1.5 GiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.3g} {unit}" if size < 100 or unit == "B" else f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.3g} TiB"


def available_bytes() -> int:
    """Memory that is free on this machine or left in this control group, in bytes."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    group, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if group.exists() and used.exists() and group.read_text().strip() != "max":
        free = min(free, max(0, int(group.read_text()) - int(used.read_text())))
    return free


def resolve_memory_limit(memory_limit: str | int | None) -> int:
    """The limit in bytes: what was asked for, or half of what is free."""
    return (
        parse_bytes(memory_limit) if memory_limit is not None else max(available_bytes() // 2, LIBRARIES * 2)
    )

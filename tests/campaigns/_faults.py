"""Calls that fail: those on the files of a folder, reads and writes of open files, and allocations of arrays.

Each of `KINDS` patches some functions for a while. They count, and the n-th call
raises.
"""

import builtins
import contextlib
import errno
import io
import itertools
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

OF_PATHS = (
    "open",
    "replace",
    "rename",
    "unlink",
    "remove",
    "rmdir",
    "mkdir",
    "stat",
    "lstat",
    "scandir",
)
OF_NUMBERS = (
    "fsync",
    "fdatasync",
    "read",
    "pread",
    "readv",
    "preadv",
    "write",
    "pwrite",
    "writev",
    "pwritev",
)
WRITING = {
    "open",
    "replace",
    "rename",
    "mkdir",
    "fsync",
    "fdatasync",
    "write",
    "pwrite",
    "writev",
    "pwritev",
}
ALLOCATORS = (
    "empty",
    "zeros",
    "ones",
    "full",
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "arange",
    "array",
    "asarray",
    "ascontiguousarray",
    "concatenate",
    "stack",
    "vstack",
    "hstack",
    "repeat",
    "sort",
)
FAULTS = (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE)


class Trap:
    """Counts calls, and lets one of them fail, or also those after it that write.

    Parameters
    ----------
    at : int or None
        The call that fails, from 1; None is none.
    error : callable
        Makes what is raised.
    lasts : bool, default=False
        Whether those after it that write, or take memory, fail too, as on a disk that
        stays full.
    """

    def __init__(
        self, at: int | None, error: Callable[[], BaseException], lasts: bool = False
    ) -> None:
        self.at = at
        self.error = error
        self.lasts = lasts
        self.calls = 0
        self._numbers = itertools.count(1)  # whose steps no other thread divides

    def __call__(self, writes: bool = True) -> None:
        """Count one call, which writes or only asks."""
        self.calls = number = next(self._numbers)
        if self.at is not None and (
            number == self.at or (self.lasts and writes and number > self.at)
        ):
            raise self.error()


def _patched(
    original: Any,
    trap: Trap,
    concerns: Callable[[Any], bool] = lambda first: True,
    writes: bool = True,
) -> Any:
    """A function that tells a trap of the calls whose first argument concerns it."""

    def function(*given: Any, **options: Any) -> Any:
        if concerns(given[0] if given else None):
            trap(writes)
        return original(*given, **options)

    return function


def _is_below(folder: Path) -> Callable[[Any], bool]:
    """Whether a path, or the file that has a number, lies below a folder."""

    def is_below(path: Any) -> bool:
        with contextlib.suppress(TypeError, ValueError, OSError):
            name = (
                Path(f"/proc/self/fd/{path}").readlink()
                if isinstance(path, int)
                else os.fspath(path)
            )
            return str(name).startswith(str(folder))
        return False

    return is_below


def _calls(folder: Path, trap: Trap) -> Iterator[Any]:
    """Calls of the system on paths and on numbers of open files, and maps of files into memory."""
    for name in (*OF_PATHS, *OF_NUMBERS):
        function = _patched(getattr(os, name), trap, _is_below(folder), name in WRITING)
        yield mock.patch.object(os, name, function)

    class Map(mmap.mmap):
        def __new__(cls, number: int, *given: Any, **options: Any) -> Any:
            trap()
            return super().__new__(cls, number, *given, **options)

    yield mock.patch.object(mmap, "mmap", Map)
    opened = _patched(
        io.open,
        trap,
        lambda path: not isinstance(path, int) and _is_below(folder)(path),
    )
    yield from (mock.patch.object(module, "open", opened) for module in (io, builtins))


def _files(folder: Path, trap: Trap) -> Iterator[Any]:
    """Reads, writes, seeks and ends of files that Python opens, below their buffers."""

    class Raw(io.FileIO):
        def readinto(self, *given: Any) -> Any:
            trap(False)
            return super().readinto(*given)

        def readall(self) -> Any:
            trap(False)
            return super().readall()

        def write(self, *given: Any) -> Any:
            trap()
            return super().write(*given)

        def seek(self, *given: Any) -> Any:
            trap(False)
            return super().seek(*given)

        def close(self) -> None:
            if not self.closed:
                is_written = self.writable()
                super().close()
                if is_written:  # the end of a file that was read loses nothing
                    trap()

    original = io.open
    is_below = _is_below(folder)

    def opened(
        path: Any, mode: str = "r", buffering: int = -1, *text: Any, **options: Any
    ) -> Any:
        if isinstance(path, int) or not is_below(path) or options.get("opener"):
            return original(path, mode, buffering, *text, **options)
        raw = Raw(path, mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        kind = (
            io.BufferedRandom
            if "+" in mode
            else io.BufferedReader
            if "r" in mode
            else io.BufferedWriter
        )
        buffered: Any = kind(raw)  # type: ignore[arg-type]
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *text, **options)

    yield from (mock.patch.object(module, "open", opened) for module in (io, builtins))


def _memory(folder: Path, trap: Trap) -> Iterator[Any]:
    """Arrays that are made by functions of NumPy."""
    for name in ALLOCATORS:
        yield mock.patch.object(np, name, _patched(getattr(np, name), trap))


KINDS = {"calls": _calls, "files": _files, "memory": _memory}


def error_of(kind: str, number: int, folder: Path) -> Callable[[], BaseException]:
    """What a call of a kind raises: one of a few errors, by a number."""
    if kind == "memory":
        message = (
            "Unable to allocate 7.45 GiB for an array with shape (1000000000,)",
            "",
        )[number % 2]
        return lambda: MemoryError(*[message] if message else [])
    fault = FAULTS[number % len(FAULTS)] if kind == "calls" else FAULTS[number % 2]
    # reads and writes name no file
    place = [str(folder / "somewhere")] if kind == "calls" else []
    return lambda: OSError(fault, os.strerror(fault), *place)


@contextlib.contextmanager
def failing(
    kind: str,
    folder: Path,
    at: int | None = None,
    error: Callable[[], BaseException] = OSError,
    lasts: bool = False,
) -> Iterator[Trap]:
    """Count the calls of a kind that concern a folder, and let one of them fail, or also later ones."""
    trap = Trap(at, error, lasts)
    with contextlib.ExitStack() as stack:
        # of modules that were first imported meanwhile
        stack.callback(setattr, trap, "at", None)
        for patch in list(KINDS[kind](folder, trap)):
            stack.enter_context(patch)
        yield trap

"""Rows of .npy files and of memory maps, read block by block.

Files are read plainly and not mapped, as mapped pages count as resident memory.
"""

import math
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples._base import BLOCK_ROWS, ChunkedSamples, Samples
from mmcnb.samples._files import file_identity, open_file
from mmcnb.samples._inventory import REMEDY
from mmcnb.samples._npy import read_header


@dataclass(frozen=True)
class RawRows:
    """Rows of an array whose bytes lie in a file one after the other.

    Parameters
    ----------
    path : str
    offset : int
        Place of the first number.
    shape : tuple of int
    dtype : dtype
    by_columns : bool
        Whether numbers of a column are neighbours (Fortran order), not those of a row.
    """

    path: str
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    by_columns: bool

    @cached_property
    def n_bytes(self) -> int:
        """Bytes of the whole array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def read(self, start: int, stop: int) -> np.ndarray:
        """The rows ``start <= row < stop``."""
        return self._at(np.arange(start, stop))

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Single rows; neighbours are read together."""
        return self._at(rows)

    def _at(self, rows: np.ndarray) -> np.ndarray:
        n, width = self.shape
        out = np.empty((width, len(rows)) if self.by_columns else (len(rows), width), self.dtype)
        try:
            with open_file(self.path) as file:
                if self.by_columns:
                    for column, place in enumerate(out):
                        self._read_column(file, column * n, rows, place)
                else:
                    for begin, end in _runs(rows):
                        self._fill(file, int(rows[begin]) * width, out[begin:end])
        except OSError as error:
            raise DamagedStoreError(f"{self.path} cannot be read ({error.strerror}): {REMEDY}.") from error
        return np.ascontiguousarray(out.T) if self.by_columns else out

    def _read_column(self, file: IO[bytes], begin: int, rows: np.ndarray, out: np.ndarray) -> None:
        """Read the span of the rows, a part of it at a time."""
        for first in range(int(rows[0]) if len(rows) else 0, int(rows[-1]) + 1 if len(rows) else 0, SPAN):
            here = slice(*np.searchsorted(rows, (first, first + SPAN)))
            if here.start < here.stop:
                span = np.empty(int(rows[here.stop - 1]) + 1 - first, self.dtype)
                self._fill(file, begin + first, span)
                out[here] = span[rows[here] - first]

    def _fill(self, file: IO[bytes], number: int, out: np.ndarray) -> None:
        """Read numbers from one place on."""
        file.seek(self.offset + number * self.dtype.itemsize)
        view = out.reshape(-1).data.cast("B")
        while len(view):
            count = file.readinto(view)  # type: ignore[attr-defined]
            if not count:
                raise DamagedStoreError(f"{self.path} ends early: {REMEDY}.")
            view = view[count:]


SPAN = 2**20  # numbers of a column that are read at once


def _runs(rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of neighbouring rows."""
    ends = np.flatnonzero(np.diff(rows) != 1) + 1
    yield from zip([0, *ends.tolist()], [*ends.tolist(), len(rows)], strict=True) if len(rows) else ()


class MappedRows:
    """Rows of a memory map, copied out of it."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def read(self, start: int, stop: int) -> np.ndarray:
        """The rows ``start <= row < stop``."""
        return np.array(self._array[start:stop], order="C")

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Single rows."""
        return np.asarray(self._array[rows])


class NpySamples(ChunkedSamples):
    """Rows of a file of raw numbers, or of a memory map."""

    is_sparse = False
    checksummed = False
    chunk_rows = BLOCK_ROWS

    def __init__(
        self, rows: RawRows | MappedRows, shape: tuple[int, ...], dtype: np.dtype, name: str
    ) -> None:
        self._describe(name, shape, dtype)
        self._rows = rows
        self.row_bytes = float(self.n_features * self.dtype.itemsize)
        if isinstance(rows, RawRows):
            self.path, self.is_reopenable = rows.path, True

    def identity(self) -> str:
        """A hash of the place of the numbers, and of size and time of the file."""
        assert self.path is not None
        return file_identity(self.path, self._rows)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise InputError(f"{self.name} cannot be sent to another process: give the path of its file.")
        return _open_again, (self._rows, self.identity())


def _open_again(rows: RawRows, identity: str) -> Samples:
    samples = _open_raw(rows)
    if samples.identity() != identity:
        raise InputError(f"{samples.name} was replaced by another file since it was opened: open it again.")
    return samples


def _open_raw(rows: RawRows) -> NpySamples:
    samples = NpySamples(rows, rows.shape, rows.dtype, rows.path)
    if Path(rows.path).stat().st_size < rows.offset + rows.n_bytes:
        raise DamagedStoreError(f"{rows.path} is shorter than its header says: {REMEDY}.")
    return samples


def open_npy(path: str | os.PathLike[str], element: str | None = None) -> Samples:
    """Open the rows of a .npy file, in C or in Fortran order.

    Raises
    ------
    InputError
        The file is missing, or holds no 2-D array of numbers.
    DamagedStoreError
        The file is shorter than its header says.
    """
    if element is not None:
        raise InputError(f"{path} is an array and has no element {element!r}: leave element out.")
    try:
        with open_file(path) as file:
            shape, by_columns, dtype = read_header(file)
            offset = file.tell()
    except InputError:
        raise
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{path} cannot be read as .npy ({error}): save it again with numpy.") from error
    return _open_raw(RawRows(str(Path(path).absolute()), offset, shape, dtype, by_columns))


def open_memmap(array: np.memmap) -> Samples:
    """Open the rows of a memory map; one that only reads a whole file is read from it without the map."""
    base: Any = array.base
    whole = isinstance(base, mmap.mmap) and array.mode == "r" and array.filename is not None
    if whole and array.ndim == 2 and (array.flags.c_contiguous or array.flags.f_contiguous):
        by_columns = not array.flags.c_contiguous
        return _open_raw(RawRows(str(array.filename), array.offset, array.shape, array.dtype, by_columns))
    return NpySamples(MappedRows(array), array.shape, array.dtype, "memory map")

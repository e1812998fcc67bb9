"""NumPy's files: rows of .npy files and of memory maps by blocks, and of .npz files in row order.

Files are read plainly and not mapped, as mapped pages count as resident memory.
"""

import math
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from mmcnb._machine import available_memory
from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import matrix
from mmcnb.samples._base import BLOCK_ROWS, ChunkedSamples, Samples, in_memory, open_again
from mmcnb.samples._files import file_identity, open_file
from mmcnb.samples._inventory import REMEDY
from mmcnb.samples._limits import ALWAYS_BYTES
from mmcnb.samples._stored import SlicedRows
from mmcnb.samples.matrix import CSRBlock

STEP_BYTES = 2**23  # of rows on their way into a store: two chunks of it
PIECE_BYTES = 2**14  # of neighbouring rows that are read together


class Rows(NamedTuple):
    """Rows on their way into a store.

    Attributes
    ----------
    block : ndarray or CSRBlock
    y : ndarray of int64 of shape (n_rows,), or None
        Class labels.
    names : ndarray of int64 or text of shape (n_rows,), or None
        Names of the rows.
    """

    block: np.ndarray | CSRBlock
    y: np.ndarray | None = None
    names: np.ndarray | None = None


Blocks = Iterator[Rows]


def step_rows(row_bytes: float) -> int:
    """Rows that make about 8 MiB."""
    return max(1, int(STEP_BYTES / max(row_bytes, 1.0)))


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether it is stored by columns, and type of an array in .npy format; the numbers follow.

    Raises
    ------
    ValueError
        The header is none.
    """
    read = np.lib.format
    try:
        version = read.read_magic(file)
        header = read.read_array_header_1_0 if version == (1, 0) else read.read_array_header_2_0
        shape, by_columns, dtype = header(file)
    except (OSError, ValueError, EOFError, zlib.error, zipfile.BadZipFile):
        raise
    except Exception as error:  # it is parsed as Python, which breaks in many ways
        raise ValueError("its header is damaged") from error
    if any(length < 0 for length in shape):
        raise ValueError("its header claims a length below 0")
    return shape, by_columns, dtype


# -- .npy files, and memory maps -----------------------------------------------------------------


class RawArray(NamedTuple):
    """An array whose numbers lie in a file one after the other.

    Attributes
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

    def read(self, start: int, stop: int) -> np.ndarray:
        """The rows ``start <= row < stop``."""
        n_rows, width = self.shape
        out = np.empty((width, stop - start) if self.by_columns else (1, (stop - start) * width), self.dtype)
        try:
            with open_file(self.path) as file:
                for column, place in enumerate(out):
                    first = column * n_rows + start if self.by_columns else start * width
                    file.seek(self.offset + first * self.dtype.itemsize)
                    if file.readinto(place.data.cast("B")) < place.nbytes:
                        raise DamagedStoreError(f"{self.path} ends early: {REMEDY}.")
        except OSError as error:
            raise DamagedStoreError(f"{self.path} cannot be read ({error.strerror}): {REMEDY}.") from error
        return out.T if self.by_columns else out.reshape(-1, width)


class _RawRows(SlicedRows):
    """Rows of an array in a file, by pieces of a few pages, or of whole blocks if columns lie together."""

    def __init__(self, array: RawArray) -> None:
        n_rows = max(1, PIECE_BYTES // max(1, array.shape[1] * array.dtype.itemsize))
        power = 1 << n_rows.bit_length() - 1  # so that no piece lies in two blocks
        super().__init__("", array, BLOCK_ROWS if array.by_columns else min(power, BLOCK_ROWS))

    def load(self, start: int, stop: int) -> np.ndarray:
        """Read whole pieces."""
        return self._array.read(start, stop)

    def load_into(self, out: np.ndarray, start: int, stop: int) -> None:
        """Read whole pieces into place."""
        out[...] = self._array.read(start, stop)


class NpySamples(ChunkedSamples):
    """Rows of a file of raw numbers."""

    is_sparse = False
    checksummed = False
    is_reopenable = True

    def __init__(self, array: RawArray) -> None:
        self._describe(array.path, array.shape, array.dtype)
        if Path(array.path).stat().st_size < array.offset + math.prod(array.shape) * array.dtype.itemsize:
            raise DamagedStoreError(f"{array.path} is shorter than its header says: {REMEDY}.")
        self._array, self.path, rows = array, array.path, _RawRows(array)
        self._set_rows(rows, rows.chunk_length)

    def identity(self) -> str:
        """A hash of the place of the numbers, and of size and time of the file."""
        return file_identity(self._array.path, self._array)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_again, (_open_array, self._array, None, self.identity())


def _open_array(array: RawArray, _element: None) -> NpySamples:
    return NpySamples(array)


def open_npy(path: str | os.PathLike[str]) -> NpySamples:
    """Open the rows of a .npy file, in C or in Fortran order.

    Raises
    ------
    InputError
        The file is missing, or contains no 2-D array of numbers.
    DamagedStoreError
        The file is shorter than its header says.
    """
    with open_file(path) as file:
        try:
            header = read_header(file)
        except (ValueError, EOFError, OSError) as error:
            raise InputError(f"{path} cannot be read as .npy ({error}): save it again with numpy.") from error
        shape, by_columns, dtype = header
        return NpySamples(RawArray(str(Path(path).absolute()), file.tell(), shape, dtype, by_columns))


def open_memmap(array: np.memmap) -> Samples:
    """Open the rows of a memory map: from its file, unless they lie apart in it or hide changes of it."""
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    is_whole = array.ndim == 2 and (array.flags.c_contiguous or array.flags.f_contiguous)
    if not is_whole or getattr(root, "filename", None) is None or root.mode == "c":
        return in_memory(array)
    offset = root.offset + array.ctypes.data - root.ctypes.data
    by_columns = not array.flags.c_contiguous
    return NpySamples(RawArray(str(root.filename), offset, array.shape, array.dtype, by_columns))


# -- .npz files ----------------------------------------------------------------------------------


class _Member:
    """An array of an archive, read from its beginning to its end."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._file = archive.open(f"{name}.npy")
        self.shape, self.by_columns, self.dtype = read_header(self._file)
        self.n_bytes = math.prod(self.shape) * self.dtype.itemsize
        size = archive.getinfo(f"{name}.npy").file_size
        if self.n_bytes > size:
            raise ValueError(f"its header claims {self.n_bytes:,} bytes and it has {size:,}")

    def read(self, n_rows: int | None = None) -> np.ndarray:
        """The next rows, or the whole array; its rows lie apart if it is stored by columns."""
        shape = self.shape if n_rows is None else (n_rows, *self.shape[1:])
        n_bytes = math.prod(shape) * self.dtype.itemsize
        if n_rows is None and n_bytes > max(ALWAYS_BYTES, free := available_memory()):
            raise ValueError(f"an array of {n_bytes:,} bytes is needed whole, and {free:,} are free")
        data = self._file.read(n_bytes)
        if len(data) < n_bytes:
            raise EOFError("an array ends early")
        return np.frombuffer(data, self.dtype).reshape(shape, order="F" if self.by_columns else "C")


@contextmanager
def _damage(path: Path, fault: str, remedy: str) -> Iterator[None]:
    """One sentence about a file that cannot be read."""
    try:
        yield
    except InputError:
        raise
    except (
        *(zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError),
        *(LookupError, RuntimeError, TypeError),
    ) as error:
        raise InputError(f"{path} {fault} ({error}): {remedy}.") from error


class NumpyArchive:
    """The arrays ``X`` and perhaps ``y`` of a .npz file, or a CSR matrix of ``scipy.sparse.save_npz``.

    A file with a single array needs no names.

    Attributes
    ----------
    is_sparse : bool
    n_samples, n_features : int
    dtype : dtype
    cached_bytes : int
        Of arrays that are needed whole: row pointers, or rows that are stored by columns.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._name = path, str(path)
        with _damage(path, "cannot be read as .npz", "save it again with numpy"), open_file(path) as file:
            self._open(file)

    def _open(self, file: IO[bytes]) -> None:
        archive = zipfile.ZipFile(file)
        members = {name.removesuffix(".npy"): name for name in archive.namelist()}
        self.is_sparse = "format" in members or "indptr" in members
        if self.is_sparse:
            self._open_sparse(archive, members)
        else:
            name = "X" if "X" in members else next(iter(members)) if len(members) == 1 else None
            if name is None:
                listed = ", ".join(members)
                raise InputError(f"{self._name} contains {listed} but no array X: save the rows as X.")
            self._rows = _Member(archive, name)
            self.n_samples, self.n_features = matrix.check_shape(self._rows.shape, self._name)
            self.cached_bytes = self._rows.n_bytes if self._rows.by_columns else 0
            self.row_bytes = float(self.n_features * self._rows.dtype.itemsize)
        self.dtype = self._rows.dtype
        matrix.check_dtype(self.dtype, self._name)
        self._y = _Member(archive, "y") if "y" in members else None
        if self._y is not None:
            matrix.check_dtype(self._y.dtype, f"y of {self._name}")
            if self._y.shape != (self.n_samples,):
                raise InputError(
                    f"{self._name}: y has shape {self._y.shape}, but X has {self.n_samples} rows: "
                    "save one label a row."
                )

    def _open_sparse(self, archive: zipfile.ZipFile, members: dict[str, str]) -> None:
        form: Any = _Member(archive, "format").read().item() if "format" in members else b"csr"
        form = form.decode() if isinstance(form, bytes) else str(form)
        if form != "csr" or not {"data", "indices", "indptr", "shape"} <= set(members):
            raise InputError(
                f"{self._name} contains a sparse matrix as {form}, whose rows lie apart: "
                "save it as CSR, by scipy.sparse.save_npz(path, X.tocsr())."
            )
        self._rows, self._indices = _Member(archive, "data"), _Member(archive, "indices")
        shape = _Member(archive, "shape").read()
        self.n_samples, self.n_features = matrix.check_shape(tuple(int(n) for n in shape), self._name)
        matrix.check_index_dtypes(self._name, indices=self._indices)
        self._indptr = _Member(archive, "indptr").read().astype(np.int64)
        lengths = self.n_samples, self._rows.shape[0], self._indices.shape[0]
        matrix.check_indptr(self._indptr, *lengths, self._name)
        self.cached_bytes = self._indptr.nbytes
        self.row_bytes = self._rows.shape[0] / self.n_samples * (self._rows.dtype.itemsize + 8) + 8

    def blocks(self) -> Blocks:
        """Rows and class labels, some at a time."""
        with _damage(self._path, "is damaged", "get or save it again"), open_file(self._path) as file:
            self._open(file)
            whole = self._rows.read() if self._rows.by_columns and not self.is_sparse else None
            step = step_rows(self.row_bytes)
            for start in range(0, self.n_samples, step):
                stop = min(start + step, self.n_samples)
                block = self._next(start, stop) if whole is None else np.ascontiguousarray(whole[start:stop])
                matrix.check_finite(block, self._name, start)
                yield Rows(block, self._labels(stop - start))

    def _next(self, start: int, stop: int) -> np.ndarray | CSRBlock:
        if not self.is_sparse:
            return self._rows.read(stop - start)
        indptr = self._indptr[start : stop + 1]
        count = int(indptr[-1] - indptr[0])
        data, indices = self._rows.read(count), self._indices.read(count)
        return matrix.csr_block(data, indices, indptr - indptr[0], self.n_features, self._name, start)

    def _labels(self, n_rows: int) -> np.ndarray | None:
        if self._y is None:
            return None
        y = self._y.read(n_rows)
        with np.errstate(invalid="ignore"):
            labels = y.astype(np.int64)
        if not np.array_equal(labels, y):
            raise InputError(
                f"{self._name}: y contains numbers that are not whole: class labels must be integers."
            )
        return labels

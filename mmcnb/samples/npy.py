"""Read NumPy files: .npy files and memory maps in pieces, .npz files into memory.

Files are read instead of memory-mapped, because mapped pages count as resident memory.
"""

import math
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse

from mmcnb._config import format_bytes
from mmcnb._machine import available_memory
from mmcnb.errors import RESTORE, DamagedStoreError, InputError, damage, worded
from mmcnb.samples import matrix
from mmcnb.samples.base import BLOCK_ROWS, ChunkedSamples, Samples, in_memory
from mmcnb.samples.files import file_identity, open_file
from mmcnb.samples.matrix import CSRBlock
from mmcnb.samples.stored import SlicedRows

STEP_BYTES = 2**23  # bytes of rows that are written to a store at a time: two chunks
SPARSE_PARTS = {"format", "data", "indices", "indptr", "shape"}
PIECE_BYTES = 2**14  # bytes of neighbouring rows that are read together


class Rows(NamedTuple):
    """Rows that a reader passes to a writer of a store.

    Attributes
    ----------
    block : ndarray or CSRBlock
        The rows.
    y : ndarray of int64 of shape (n_rows,), or None
        Class labels, if any.
    names : ndarray of int64 or text of shape (n_rows,), or None
        Names of the rows, if any.
    numbers : ndarray of int64 of shape (n_rows,), or None
        Zero-based number of each row in its file, for rows of a table.
    file : int
        Index of the file among the files of its folder.
    """

    block: np.ndarray | CSRBlock
    y: np.ndarray | None = None
    names: np.ndarray | None = None
    numbers: np.ndarray | None = None
    file: int = 0


Blocks = Iterator[Rows]


def step_rows(row_bytes: float) -> int:
    """Return the number of rows of ``row_bytes`` bytes that occupy about 8 MiB."""
    return max(1, int(STEP_BYTES / max(row_bytes, 1.0)))


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the header of a .npy file.

    The result is the shape, whether the array is in Fortran order, and the dtype.

    Raises
    ------
    ValueError
        If the header is invalid.
    """
    read = np.lib.format
    try:
        version = read.read_magic(file)
        header = (
            read.read_array_header_1_0
            if version == (1, 0)
            else read.read_array_header_2_0
        )
        shape, by_columns, dtype = header(file)
    except (OSError, ValueError, EOFError, zlib.error, zipfile.BadZipFile):
        raise
    # NumPy parses the header as a Python literal, which may raise any exception.
    except Exception as error:
        raise ValueError("its header is damaged") from error
    if any(length < 0 for length in shape):
        raise ValueError("its header declares a negative length")
    return shape, by_columns, dtype


# -- .npy files, and memory maps -------------------------------------------------------


class RawArray(NamedTuple):
    """An array whose numbers are stored contiguously in a file.

    Attributes
    ----------
    path : str
        The file.
    offset : int
        Position of the first number in the file, in bytes.
    shape : tuple of int
        Shape of the array.
    dtype : dtype
        Data type of the numbers.
    by_columns : bool
        Whether the numbers are in Fortran order, column by column.
    """

    path: str
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    by_columns: bool

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read the rows ``start <= row < stop``."""
        n_rows = self.shape[0]
        width = math.prod(self.shape[1:])
        out = np.empty(
            (width, stop - start) if self.by_columns else (1, (stop - start) * width),
            self.dtype,
        )
        with (
            damage(f"{self.path} cannot be read", OSError),
            open_file(self.path) as file,
        ):
            for column, place in enumerate(out):
                first = column * n_rows + start if self.by_columns else start * width
                file.seek(self.offset + first * self.dtype.itemsize)
                if file.readinto(place.view(np.uint8).data) < place.nbytes:
                    raise DamagedStoreError(f"{self.path} ends early: {RESTORE}.")
        return out.T if self.by_columns else out.reshape(-1, *self.shape[1:])


class NpySamples(ChunkedSamples):
    """Rows of an array whose numbers are stored contiguously in a file."""

    is_reopenable = True

    def __init__(self, array: RawArray, element: None = None) -> None:
        self._describe(array.path, array.shape, array.dtype)
        if (
            Path(array.path).stat().st_size
            < array.offset + math.prod(array.shape) * array.dtype.itemsize
        ):
            raise DamagedStoreError(
                f"{array.path} is shorter than its header says: {RESTORE}."
            )
        self._array = array
        self.path = array.path
        self.opening = NpySamples, array, element
        # Read pieces of at most PIECE_BYTES (or one row) that do not cross blocks. If
        # the numbers are in Fortran order, read whole blocks.
        n_rows = max(1, PIECE_BYTES // (self.n_features * array.dtype.itemsize))
        length = (
            BLOCK_ROWS
            if array.by_columns
            else min(1 << n_rows.bit_length() - 1, BLOCK_ROWS)
        )
        self._set_rows(SlicedRows("", array, length), length)

    def identity(self) -> str:
        """Return a hash that identifies the source of the rows.

        The hash covers the array's description, and the file's size and modification
        time.
        """
        return file_identity(self._array.path, self._array)


def open_npy(path: str | os.PathLike[str]) -> NpySamples:
    """Open the rows of a .npy file, in C or in Fortran order.

    Raises
    ------
    InputError
        If the file is missing, or does not contain a 2-D array of numbers.
    DamagedStoreError
        If the file is shorter than its header says.
    """
    with open_file(path) as file:
        with worded(f"{path} cannot be read as .npy", "save it again with numpy"):
            shape, by_columns, dtype = read_header(file)
        return NpySamples(
            RawArray(str(Path(path).absolute()), file.tell(), shape, dtype, by_columns)
        )


def open_memmap(array: np.memmap) -> Samples:
    """Open the file of a memory map, if the file contains the map's values in order.

    Other maps are opened as arrays in memory: strided maps, and maps in mode "c", whose
    changes are not written to the file.
    """
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    is_whole = array.ndim == 2 and (
        array.flags.c_contiguous or array.flags.f_contiguous
    )
    if not is_whole or getattr(root, "filename", None) is None or root.mode == "c":
        return in_memory(array)
    offset = root.offset + array.ctypes.data - root.ctypes.data
    by_columns = not array.flags.c_contiguous
    return NpySamples(
        RawArray(str(root.filename), offset, array.shape, array.dtype, by_columns)
    )


# -- .npz files ------------------------------------------------------------------------


def read_member(archive: zipfile.ZipFile, member: str) -> np.ndarray:
    """Read an array from a .npz archive, after comparing the size with the header.

    Raises
    ------
    ValueError
        If the header claims another size, or if the array contains objects.
    """
    with archive.open(member) as packed:
        shape, _, dtype = read_header(packed)
        claimed = math.prod(shape) * dtype.itemsize
        n_bytes = archive.getinfo(member).file_size
        if packed.tell() + claimed != n_bytes:
            raise ValueError(
                f"its header claims {claimed:,} bytes, but it has {n_bytes:,}"
            )
    with archive.open(member) as packed:  # again, because the CRC covers the header too
        return np.lib.format.read_array(packed, allow_pickle=False)


def read_npz(path: Path) -> tuple[Samples, np.ndarray | None]:
    """Read the rows of a .npz file and their class labels, if any, into memory.

    The file must contain an array ``X`` and optionally ``y``, or a CSR matrix written
    by ``scipy.sparse.save_npz``. If the file contains only one array, any name is
    accepted.

    Raises
    ------
    InputError
        If the file is damaged, has no such arrays, or needs more memory than is free.
    """
    name = str(path)
    with (
        worded(f"{path} cannot be read as .npz", "save it again with numpy"),
        open_file(path) as file,
    ):
        archive = zipfile.ZipFile(file)
        members = {member.removesuffix(".npy"): member for member in archive.namelist()}
        is_sparse = bool({"format", "indptr"} & set(members))
        if not is_sparse and "X" not in members and len(members) != 1:
            raise InputError(
                f"{name} contains {', '.join(members)} but no array X: "
                "save the rows as X."
            )
        wanted = {
            "y",
            *(SPARSE_PARTS if is_sparse else {"X"} if "X" in members else members),
        }
        parts = sorted(wanted & set(members))  # other arrays may be large
        n_bytes = sum(archive.getinfo(members[part]).file_size for part in parts)
        free = available_memory()
        if n_bytes > (free or np.inf):
            raise InputError(
                f"{name} needs {format_bytes(n_bytes)} of memory, but "
                f"{format_bytes(free)} are free: save it as .npy, which is read in "
                "pieces."
            )
        arrays = {part: read_member(archive, members[part]) for part in parts}
        samples = in_memory(_csr(arrays, name) if is_sparse else arrays[parts[0]], name)
        return samples, _labels(arrays["y"], samples) if "y" in arrays else None


def _csr(arrays: dict[str, np.ndarray], name: str) -> scipy.sparse.csr_array:
    form: Any = arrays["format"].item() if "format" in arrays else b"csr"
    form = form.decode() if isinstance(form, bytes) else str(form)
    if form != "csr" or not {*arrays, "format"} >= SPARSE_PARTS:
        fault = f"{name} contains a sparse matrix as {form}, not as CSR"
        raise InputError(
            f"{fault}: save it with scipy.sparse.save_npz(path, X.tocsr())."
        )
    matrix.check_index_dtypes(name, indices=arrays["indices"], indptr=arrays["indptr"])
    shape = tuple(map(int, arrays["shape"]))
    return scipy.sparse.csr_array(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape
    )


def _labels(y: np.ndarray, samples: Samples) -> np.ndarray:
    matrix.check_dtype(y.dtype, f"y of {samples.name}")
    if y.shape != (samples.n_samples,):
        n = samples.n_samples
        raise InputError(
            f"{samples.name}: y has shape {y.shape}, but X has {n} rows: "
            "save one label per row."
        )
    with np.errstate(invalid="ignore"):
        labels = y.astype(np.int64)
    if not np.array_equal(labels, y):
        raise InputError(
            f"{samples.name}: y has values that are not integers: "
            "class labels must be integers."
        )
    return labels

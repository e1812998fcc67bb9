"""NumPy's .npy and .npz files, read in row order without loading them whole.

They are read plainly and not mapped, as mapped pages count as resident memory.
"""

import math
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from mmcnb._machine import available_memory
from mmcnb.errors import InputError
from mmcnb.samples import matrix
from mmcnb.samples._files import open_file
from mmcnb.samples.matrix import CSRBlock

STEP_BYTES = 2**23  # two chunks of a store
ALWAYS_BYTES = 2**30  # an array that is needed whole may have them on any machine
ERRORS = (ValueError, EOFError, OSError, LookupError, RuntimeError, TypeError)  # of damaged files


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


class _Member:
    """An array in .npy format, read from its beginning to its end.

    Parameters
    ----------
    file : file
    size : int
        Its length in bytes, which its header may not exceed.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self.shape, self.by_columns, self.dtype = read_header(file)
        self.n_bytes = math.prod(self.shape) * self.dtype.itemsize
        if self.n_bytes > size:
            raise ValueError(f"its header claims {self.n_bytes:,} bytes and it has {size:,}")

    def read(self, n_rows: int) -> np.ndarray:
        """The next rows."""
        shape = (n_rows, *self.shape[1:])
        n_bytes = int(np.prod(shape)) * self.dtype.itemsize
        data = self._file.read(n_bytes)
        if len(data) < n_bytes:
            raise EOFError("an array ends early")
        return np.frombuffer(data, dtype=self.dtype).reshape(shape)

    def read_all(self) -> np.ndarray:
        """The whole array, of any shape and order."""
        if self.n_bytes > max(ALWAYS_BYTES, free := available_memory()):
            raise ValueError(f"an array of {self.n_bytes:,} bytes is needed whole, and {free:,} are free")
        data = self._file.read(self.n_bytes)
        return np.frombuffer(data, dtype=self.dtype).reshape(
            self.shape, order="F" if self.by_columns else "C"
        )


class NumpyFile:
    """The array of a .npy file, or ``X`` and perhaps ``y`` of a .npz file, dense or sparse.

    Sparse matrices are those of ``scipy.sparse.save_npz``; a .npz file with a single array needs no names.

    Attributes
    ----------
    is_sparse : bool
    n_samples, n_features : int
    dtype : dtype
    cached_bytes : int
        What must be in memory at once: row pointers, or an array stored by columns.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._name = path, str(path)
        self.is_sparse = False
        self._y: _Member | None = None
        try:
            with open_file(path) as file:
                self._open(file)
        except InputError:
            raise
        except (zipfile.BadZipFile, zlib.error, *ERRORS) as error:
            raise InputError(
                f"{path} cannot be read as {path.suffix} ({error}): save it again with numpy."
            ) from error

    def _open(self, file: IO[bytes]) -> None:
        if self.path.suffix.lower() == ".npz":
            self._open_npz(file)
        else:
            self._open_dense(_Member(file, self.path.stat().st_size))
        self._check()

    def _open_npz(self, file: IO[bytes]) -> None:
        self._archive = zipfile.ZipFile(file)
        members = [name.removesuffix(".npy") for name in self._archive.namelist()]
        self._y = self._member("y") if "y" in members else None
        if "indptr" in members:
            self._open_sparse(members)
            return
        name = "X" if "X" in members else members[0] if len(members) == 1 else None
        if name is None:
            raise InputError(f"{self._name} holds {', '.join(members)} but no array X: save the rows as X.")
        self._open_dense(self._member(name))

    def _member(self, name: str) -> _Member:
        member = f"{name}.npy"
        return _Member(self._archive.open(member), self._archive.getinfo(member).file_size)

    def _open_dense(self, rows: _Member) -> None:
        self._rows = rows
        self.n_samples, self.n_features = matrix.check_shape(rows.shape, self._name)
        self.cached_bytes = rows.n_bytes if rows.by_columns else 0

    def _open_sparse(self, members: list[str]) -> None:
        self.is_sparse = True
        form = self._member("format").read_all().item() if "format" in members else b"csr"
        form = form.decode() if isinstance(form, bytes) else str(form)
        if form != "csr" or not {"data", "indices", "shape"} <= set(members):
            raise InputError(f"{self._name} holds a sparse matrix as {form}: save X.tocsr() instead.")
        self._rows, self._indices = self._member("data"), self._member("indices")
        shape = self._member("shape").read_all()
        self.n_samples, self.n_features = matrix.check_shape(tuple(int(n) for n in shape), self._name)
        matrix.check_index_dtypes(self._name, indices=self._indices)
        self._indptr = self._member("indptr").read_all().astype(np.int64)
        lengths = self.n_samples, self._rows.shape[0], self._indices.shape[0]
        matrix.check_indptr(self._indptr, *lengths, self._name)
        self.cached_bytes = self._indptr.nbytes

    def _check(self) -> None:
        self.dtype = self._rows.dtype
        matrix.check_dtype(self.dtype, self._name)
        if self._y is None:
            return
        matrix.check_dtype(self._y.dtype, f"y of {self._name}")
        if self._y.shape != (self.n_samples,):
            raise InputError(
                f"{self._name}: y has shape {self._y.shape} where X has {self.n_samples} rows: "
                "save one label a row."
            )

    def blocks(self) -> Blocks:
        """Rows and class labels, some at a time."""
        try:
            with open_file(self.path) as file:
                self._open(file)
                yield from self._sparse_blocks() if self.is_sparse else self._dense_blocks()
        except InputError:
            raise
        except (zipfile.BadZipFile, zlib.error, *ERRORS) as error:
            raise InputError(f"{self.path} is damaged ({error}): get or save it again.") from error

    def _labels(self, n_rows: int) -> np.ndarray | None:
        if self._y is None:
            return None
        y = self._y.read(n_rows)
        with np.errstate(invalid="ignore"):
            labels = y.astype(np.int64)
        if not np.array_equal(labels, y):
            raise InputError(
                f"{self._name}: y holds numbers that are not whole: class labels must be integers."
            )
        return labels

    def _dense_blocks(self) -> Blocks:
        whole = self._rows.read_all() if self._rows.by_columns else None
        step = step_rows(self.n_features * self.dtype.itemsize)
        for start in range(0, self.n_samples, step):
            stop = min(start + step, self.n_samples)
            block = (
                self._rows.read(stop - start) if whole is None else np.ascontiguousarray(whole[start:stop])
            )
            matrix.check_finite(block, self._name, start)
            yield Rows(block, self._labels(stop - start))

    def _sparse_blocks(self) -> Blocks:
        step = step_rows(self._rows.shape[0] / self.n_samples * (self.dtype.itemsize + 8) + 8)
        for start in range(0, self.n_samples, step):
            indptr = self._indptr[start : start + step + 1]
            count = int(indptr[-1] - indptr[0])
            data, indices = self._rows.read(count), self._indices.read(count)
            block = matrix.csr_block(data, indices, indptr - indptr[0], self.n_features, self._name, start)
            matrix.check_finite(block, self._name, start)
            yield Rows(block, self._labels(len(indptr) - 1))

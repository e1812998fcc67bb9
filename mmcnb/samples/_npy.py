"""NumPy's .npy and .npz files, read in row order without loading them whole."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from mmcnb._errors import InputError
from mmcnb.samples._base import CSRBlock, check_dtype, check_finite, check_shape
from mmcnb.samples._csr import check_index_dtype, check_indptr, csr_block

STEP_BYTES = 2**23

Blocks = Iterator[tuple[np.ndarray | CSRBlock, np.ndarray | None]]


def step_rows(row_bytes: float) -> int:
    """Rows that make about 8 MiB."""
    return max(1, int(STEP_BYTES / max(row_bytes, 1.0)))


def open_npy(path: Path) -> np.ndarray:
    """Map the array of a .npy file; what is not read is not in memory."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(
            f"{path} is no .npy file of numbers ({error}): save it again with numpy.save."
        ) from error
    check_shape(array.shape, str(path))
    check_dtype(array.dtype, str(path))
    return array


def array_blocks(array: np.ndarray, name: str) -> Blocks:
    """Rows of an array, some at a time."""
    step = step_rows(array.shape[1] * array.itemsize)
    for start in range(0, len(array), step):
        block = np.ascontiguousarray(array[start : start + step])
        check_finite(block, name, start)
        yield block, None


class _Member:
    """One array of a .npz file, read from its beginning to its end."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._file: IO[bytes] = archive.open(f"{name}.npy")
        version = np.lib.format.read_magic(self._file)
        header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        self.shape, self.by_columns, self.dtype = header(self._file)

    def read(self, n_rows: int) -> np.ndarray:
        """The next rows."""
        shape = (n_rows, *self.shape[1:])
        wanted = int(np.prod(shape)) * self.dtype.itemsize
        data = self._file.read(wanted)
        if len(data) < wanted:
            raise EOFError("an array ends early")
        return np.frombuffer(data, dtype=self.dtype).reshape(shape)


class NpzFile:
    """Arrays ``X`` and, if there, ``y`` of a .npz file, or a matrix of ``scipy.sparse.save_npz``.

    A file with a single array needs no names.

    Attributes
    ----------
    is_sparse : bool
    n_samples, n_features : int
    dtype : dtype
    held_bytes : int
        What must be in memory at once: row pointers, or an array kept by columns.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._name = path, str(path)
        try:
            self._archive = zipfile.ZipFile(path)
            self._open()
        except (zipfile.BadZipFile, ValueError, EOFError, OSError, KeyError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{path} cannot be read as .npz ({error}): save it again with numpy.savez."
            ) from error

    def _open(self) -> None:
        members = [name.removesuffix(".npy") for name in self._archive.namelist()]
        self.is_sparse = "indptr" in members
        self._y = _Member(self._archive, "y") if "y" in members else None
        if self.is_sparse:
            self._open_sparse(members)
        else:
            name = "X" if "X" in members else members[0] if len(members) == 1 else None
            if name is None:
                raise InputError(
                    f"{self._name} holds {', '.join(members)} but no array X: save the rows as X."
                )
            self._rows = _Member(self._archive, name)
            self.n_samples, self.n_features = check_shape(self._rows.shape, self._name)
            self.held_bytes = 0
            if self._rows.by_columns:
                self.held_bytes = int(np.prod(self._rows.shape)) * self._rows.dtype.itemsize
        self.dtype = self._rows.dtype
        check_dtype(self.dtype, self._name)
        if self._y is not None:
            check_dtype(self._y.dtype, f"y of {self._name}")
        if self._y is not None and self._y.shape != (self.n_samples,):
            raise InputError(f"{self._name}: y has shape {self._y.shape} where X has {self.n_samples} rows.")

    def _open_sparse(self, members: list[str]) -> None:
        form = self._whole("format").item() if "format" in members else b"csr"
        form = form.decode() if isinstance(form, bytes) else str(form)
        if form != "csr" or not {"data", "indices", "shape"} <= set(members):
            raise InputError(f"{self._name} holds a sparse matrix as {form}: save X.tocsr() instead.")
        self._rows, self._indices = _Member(self._archive, "data"), _Member(self._archive, "indices")
        shape = self._whole("shape")
        self.n_samples, self.n_features = check_shape(tuple(int(n) for n in shape), self._name)
        check_index_dtype(self._indices.dtype, "indices", self._name)
        self._indptr = self._whole("indptr").astype(np.int64)
        check_indptr(self._indptr, self.n_samples, self._rows.shape[0], self._indices.shape[0], self._name)
        self.held_bytes = self._indptr.nbytes

    def _whole(self, name: str) -> np.ndarray:
        member = _Member(self._archive, name)
        return member.read(member.shape[0] if member.shape else 1)

    def blocks(self) -> Blocks:
        """Rows and class labels, some at a time."""
        try:
            yield from self._sparse_blocks() if self.is_sparse else self._dense_blocks()
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise InputError(f"{self.path} is damaged ({error}): get or save it again.") from error
        finally:
            self._archive.close()

    def _labels(self, n_rows: int) -> np.ndarray | None:
        if self._y is None:
            return None
        y = self._y.read(n_rows)
        labels = y.astype(np.int64)
        if not np.array_equal(labels, y):
            raise InputError(
                f"{self._name}: y holds numbers that are not whole; class labels must be integers."
            )
        return labels

    def _dense_blocks(self) -> Blocks:
        whole: Any = None
        if self._rows.by_columns:
            shape = self._rows.shape
            self._rows.shape = (shape[0] * shape[1],)
            whole = self._rows.read(shape[0] * shape[1]).reshape(shape, order="F")
        step = step_rows(self.n_features * self.dtype.itemsize)
        for start in range(0, self.n_samples, step):
            stop = min(start + step, self.n_samples)
            block = (
                self._rows.read(stop - start) if whole is None else np.ascontiguousarray(whole[start:stop])
            )
            check_finite(block, self._name, start)
            yield block, self._labels(stop - start)

    def _sparse_blocks(self) -> Blocks:
        row_bytes = self._rows.shape[0] / self.n_samples * (self.dtype.itemsize + 8) + 8
        step = step_rows(row_bytes)
        for start in range(0, self.n_samples, step):
            indptr = self._indptr[start : start + step + 1]
            count = int(indptr[-1] - indptr[0])
            data, indices = self._rows.read(count), self._indices.read(count)
            block = csr_block(data, indices, indptr - indptr[0], self.n_features, self._name, start)
            check_finite(block, self._name, start)
            yield block, self._labels(len(indptr) - 1)

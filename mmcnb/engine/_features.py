"""Rows seen as features: scaled columns, kernel values against a basis, and the cache that holds them."""

import os
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb._errors import InputError
from mmcnb.engine._run import Engine
from mmcnb.samples import BLOCK_ROWS, CSRBlock, Samples

FEATURE_DTYPE = np.dtype(np.float32)  # sums over the features are float64


@dataclass(frozen=True)
class Kernel:
    """A kernel function and its parameters.

    Parameters
    ----------
    name : {"rbf", "linear", "poly"}
        The function: exp(-gamma |x-b|²), x·b or (gamma x·b + coef0)^degree.
    gamma, coef0 : float
        Its parameters; gamma = 1/(2 sigma²) in the papers' notation.
    degree : int
        Degree of the polynomial.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.engine import Kernel
    >>> Kernel("linear")(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0

    def __call__(self, rows: Any, basis: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Kernel values between dense or CSR rows and a dense basis, of shape (rows, p)."""
        return BasisMap(self, basis).block(rows, dtype)


class BasisMap:
    """Kernel values against one basis, with what blocks share worked out once."""

    def __init__(self, kernel: Kernel, basis: np.ndarray) -> None:
        self.kernel = kernel
        self.basis = np.ascontiguousarray(basis)
        self._transposed: np.ndarray | None = None
        self._norms: np.ndarray | None = None

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """Kernel values of shape (rows, p)."""
        if isinstance(rows, CSRBlock):
            return self._csr_block(rows, dtype)
        kernel, basis = self.kernel, self.basis.astype(rows.dtype, copy=False)
        out = np.empty((rows.shape[0], basis.shape[0]), dtype)
        if kernel.name == "rbf":
            kernels.rbf_kernel_block_into(rows, basis, kernel.gamma, out)
        elif kernel.name == "linear":
            kernels.linear_kernel_block_into(rows, basis, out)
        else:
            kernels.polynomial_kernel_block_into(rows, basis, kernel.gamma, kernel.coef0, kernel.degree, out)
        return out

    def _csr_block(self, rows: CSRBlock, dtype: Any) -> np.ndarray:
        if self._transposed is None:
            self._norms = kernels.squared_norms(self.basis.astype(np.float64))
            self._transposed = np.ascontiguousarray(self.basis.T, np.float64)
        kernel, csr, transposed = self.kernel, rows[:3], self._transposed
        out = np.empty((rows.indptr.shape[0] - 1, self.basis.shape[0]), dtype)
        if kernel.name == "rbf":
            kernels.rbf_kernel_block_csr_into(*csr, transposed, self._norms, kernel.gamma, out)
        elif kernel.name == "linear":
            kernels.linear_kernel_block_csr_into(*csr, transposed, out)
        else:
            kernels.polynomial_kernel_block_csr_into(
                *csr, transposed, kernel.gamma, kernel.coef0, kernel.degree, out
            )
        return out


class DerivedSamples(Samples):
    """Rows computed from the rows of other samples, block by block."""

    def __init__(self, base: Samples) -> None:
        self.base = base
        self.n_samples, self.n_features = base.n_samples, base.n_features
        self.stored_dtype, self.is_sparse = base.stored_dtype, base.is_sparse
        self.name, self.path, self.checksummed = base.name, base.path, base.checksummed
        self.chunk_rows, self.row_bytes = base.chunk_rows, base.row_bytes

    def derive(self, rows: Any) -> Any:
        """The rows computed from rows of the base."""
        raise InputError(f"{type(self).__name__} derives no rows.")

    def block(self, start: int, stop: int) -> Any:
        """Rows start to stop, derived in the fixed blocks of the reduction."""
        parts = list(self.blocks(start, stop))
        return parts[0] if len(parts) == 1 else _stack(parts)

    def blocks(self, start: int, stop: int) -> Iterator[Any]:
        """Rows start to stop in fixed blocks, derived one by one."""
        yield from map(self.derive, self.base.blocks(start, stop))

    def gather(self, rows: np.ndarray) -> Any:
        """The given rows."""
        return self.derive(self.base.gather(rows))


def _stack(parts: list[Any]) -> Any:
    """Blocks one below the other."""
    if not isinstance(parts[0], CSRBlock):
        return np.concatenate(parts)
    first = np.cumsum([0, *(part.indptr[-1] for part in parts)])
    indptr = [part.indptr[:-1] + start for part, start in zip(parts, first[:-1], strict=True)]
    data, indices = (np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "indices"))
    return CSRBlock(data, indices, np.concatenate([*indptr, first[-1:]]), parts[0].n_features)


class ScaledSamples(DerivedSamples):
    """Columns divided by their standard deviation and, where rows are dense, centred."""

    def __init__(self, base: Samples, mean: np.ndarray, deviation: np.ndarray) -> None:
        super().__init__(base)
        self.mean = np.zeros_like(mean) if base.is_sparse else mean
        self.factor = 1.0 / np.where(deviation > 0, deviation, 1.0)

    def derive(self, rows: Any) -> Any:
        """Scaled rows, in the dtype they had."""
        factor = self.factor.astype(self.dtype)
        if isinstance(rows, CSRBlock):
            return rows._replace(data=rows.data * factor[rows.indices])
        return (rows - self.mean.astype(self.dtype)) * factor


class KernelSamples(DerivedSamples):
    """Kernel values of each row against a basis, recomputed whenever they are asked for."""

    def __init__(self, base: Samples, basis_map: BasisMap, dtype: Any = FEATURE_DTYPE) -> None:
        super().__init__(base)
        self.basis_map = basis_map
        self.n_features = basis_map.basis.shape[0]
        self.stored_dtype, self.is_sparse = np.dtype(dtype), False

    def derive(self, rows: Any) -> np.ndarray:
        """Kernel values of some rows."""
        return self.basis_map.block(rows, self.dtype)


class CachedSamples(DerivedSamples):
    """Features kept in memory, or in a scratch file by plain reads and writes."""

    def __init__(self, base: Samples, folder: str | None = None, in_memory: bool = True) -> None:
        super().__init__(base)
        self.chunk_rows = BLOCK_ROWS
        self.row_bytes = self.n_features * self.dtype.itemsize
        self._rows = np.empty((self.n_samples, self.n_features), self.dtype) if in_memory else None
        # Mapped pages would count as resident memory; the file has no name, so it cannot be left behind.
        self._file = None if in_memory else tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        if self._file is not None:
            weakref.finalize(self, self._file.close)

    def put(self, start: int, rows: np.ndarray) -> None:
        """Keep the rows from ``start`` on."""
        if self._rows is not None:
            self._rows[start : start + rows.shape[0]] = rows
            return
        assert self._file is not None
        view, position = rows.reshape(-1).data.cast("B"), start * int(self.row_bytes)
        while len(view):
            written = os.pwrite(self._file.fileno(), view, position)
            view, position = view[written:], position + written

    def blocks(self, start: int, stop: int) -> Iterator[Any]:
        """Rows start to stop in fixed blocks."""
        yield from Samples.blocks(self, start, stop)

    def block(self, start: int, stop: int) -> np.ndarray:
        """Rows start to stop: a view of memory, or read from the scratch file."""
        if self._rows is not None:
            return self._rows[start:stop]
        assert self._file is not None
        rows = np.empty((stop - start, self.n_features), self.dtype)
        view, position = rows.reshape(-1).data.cast("B"), start * int(self.row_bytes)
        while len(view):
            read = os.preadv(self._file.fileno(), [view], position)
            if read == 0:
                raise InputError("the scratch file ended early; free disk space and run again.")
            view, position = view[read:], position + read
        return rows


class _FillPass:
    """Compute every row of the base once and keep it."""

    def __init__(self, cache: CachedSamples) -> None:
        self.cache = cache

    def start(self) -> None:
        return None

    def block(self, rows: np.ndarray, start: int, stop: int) -> None:
        self.cache.put(start, np.ascontiguousarray(rows))

    def combine(self, total: None, partial: None) -> None:
        return None


def cache_features(engine: Engine, features: Samples, store: str) -> Samples:
    """Hold features where the plan says: in memory, in scratch, or nowhere.

    Parameters
    ----------
    engine : Engine
        Runs the one pass that fills the cache.
    features : Samples
        What to hold.
    store : {"memory", "scratch", "recompute"}
        Where.

    Returns
    -------
    Samples
        The same rows.
    """
    if store == "recompute":
        return features
    folder = str(Path(tempfile.gettempdir()))
    cache = CachedSamples(features, folder, in_memory=store == "memory")
    try:
        engine.run(_FillPass(cache), features, "kernel columns")
    except OSError as error:
        raise InputError(
            f"the scratch file of kernel columns in {folder} could not be written ({error.strerror}); "
            "free disk space, set TMPDIR to a larger disk, or raise memory_limit."
        ) from error
    return cache

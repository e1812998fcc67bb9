"""Rows computed from other rows: scaled or reordered columns, and cached features."""

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from mmcnb.errors import InputError, numbered_columns
from mmcnb.samples import matrix
from mmcnb.samples.base import BLOCK_ROWS, GROUP_ROWS, Samples
from mmcnb.samples.open import open_samples
from mmcnb.samples.paths import PathLike
from mmcnb.samples.scratch import ScratchRows


class DerivedSamples(Samples):
    """Rows that are computed block by block from other rows, called the base."""

    def __init__(self, base: Samples) -> None:
        self.base = base
        self.n_samples = base.n_samples
        self.n_features = base.n_features
        self.dtype = base.dtype
        self.stored_dtype = base.stored_dtype
        self.is_sparse = base.is_sparse
        self.name = base.name
        self.path = base.path
        self.checksummed = base.checksummed
        self.chunk_rows = base.chunk_rows
        self.row_bytes = base.row_bytes
        self.is_reopenable = base.is_reopenable
        self.column_order = base.column_order

    @property
    def root(self) -> Samples:
        """The stored rows from which the base, and hence these rows, are computed."""
        return self.base.root

    @property
    def cached(self) -> bool:
        """Whether all rows of the base are cached."""
        return self.base.cached

    def derive(self, rows: Any) -> Any:
        """Compute the rows of this object from the corresponding rows of the base."""
        raise InputError(f"{type(self).__name__} does not derive rows.")

    def _finite(self, rows: Any) -> Any:
        """Compute rows from rows of the base.

        Raise ColumnError if a result is not finite.
        """
        with numbered_columns(self.column_order):
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                found = self.derive(rows)
            values = found.data if isinstance(found, matrix.CSRBlock) else found
            if not matrix.all_finite(values):
                raise matrix.range_error(
                    f"{self.name}: its sums or products overflow", rows
                )
        return found

    def block(self, start: int, stop: int) -> Any:
        """Return the rows ``start <= row < stop``, derived block by block."""
        return matrix.stack_blocks(list(self.blocks(start, stop)))

    def blocks(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the rows ``start <= row < stop`` in blocks of BLOCK_ROWS rows."""
        yield from map(self._finite, self.base.blocks(start, stop))

    def gather(self, rows: np.ndarray) -> Any:
        """Return the rows with the given indices, which must increase strictly."""
        return self._finite(self.base.gather(rows))


@dataclass(frozen=True)
class Scaling:
    """A scaling of columns, which replaces x by (x - mean) / deviation.

    Attributes
    ----------
    mean, deviation : ndarray of shape (d,)
        Mean and standard deviation of each column. A deviation of 0 is replaced by 1.
        The columns of sparse rows are not centred.
    units : ndarray of shape (d,) or None
        In a column with a positive unit, x is first replaced by
        sign(x) log(1 + abs(x) / unit). None means that no column has a unit.
    """

    mean: np.ndarray
    deviation: np.ndarray
    units: np.ndarray | None = None

    def logarithms(self, rows: np.ndarray) -> np.ndarray:
        """Return dense rows with logarithms in the columns that have a unit."""
        if self.units is None or not self.units.any():
            return rows
        logged = np.flatnonzero(self.units)
        values = rows[:, logged].astype(np.float64)
        rows = rows.copy()
        rows[:, logged] = np.copysign(
            np.log1p(np.abs(values) / self.units[logged]), values
        )
        return rows


class ScaledSamples(DerivedSamples):
    """Rows whose columns are scaled and, if the rows are dense, centred."""

    def __init__(self, base: Samples, scaling: Scaling) -> None:
        super().__init__(base)
        self.scaling = scaling
        deviation = scaling.deviation
        self.factor = 1.0 / np.where(
            deviation > np.finfo(np.float64).tiny, deviation, 1.0
        )

    @cached_property
    def feature_names(self) -> list[str] | None:
        """Names of the columns, which are the same as in the base."""
        return self.base.feature_names

    def derive(self, rows: Any) -> Any:
        """Return the rows with scaled columns, in the dtype of the rows."""
        factor = self.factor.astype(self.dtype)
        if isinstance(rows, matrix.CSRBlock):
            return rows._replace(data=rows.data * factor[rows.indices])
        return (
            self.scaling.logarithms(rows) - self.scaling.mean.astype(self.dtype)
        ) * factor


class OrderedSamples(DerivedSamples):
    """Rows of the base with the columns in another order; see `take_columns`."""

    def __init__(self, base: Samples, order: np.ndarray) -> None:
        super().__init__(base)
        self.order = order
        self.column_order = order

    @cached_property
    def feature_names(self) -> list[str] | None:
        """Names of the columns, in the new order."""
        names = self.base.feature_names
        return names and [names[column] for column in self.order]

    def derive(self, rows: Any) -> Any:
        """Return the rows with their columns in the new order."""
        return matrix.take_columns(rows, self.order)

    def _finite(self, rows: Any) -> Any:
        """Return the rows with their columns in the new order.

        The values do not change, so they need not be checked.
        """
        return self.derive(rows)


class CachedSamples(DerivedSamples):
    """Features that the first pass computes and caches in memory or a scratch file.

    Parameters
    ----------
    base : Samples
        The features to cache. CSR rows are always cached in memory.
    folder : path or None, default=None
        Folder of the scratch file; None caches the features in memory.
    capacity : float, default=inf
        Maximum size of the features that are cached in memory, in bytes. Features that
        do not fit are computed again in each pass.

    Attributes
    ----------
    cached_elsewhere : bool
        Whether other processes have computed and cached all features. A pickle does not
        contain cached features.
    """

    feature_names = ScaledSamples.feature_names

    def __init__(
        self, base: Samples, folder: PathLike | None = None, capacity: float = math.inf
    ) -> None:
        super().__init__(base)
        self.folder = folder
        self.capacity = capacity
        self.cached_elsewhere = False
        self.cached_bytes = 0
        blocks = -(-self.n_samples // BLOCK_ROWS)
        self._there = np.zeros(blocks, bool)
        # Cached groups of dense rows by group index, or blocks of CSR rows by block
        # index.
        self._parts: dict[int, Any] = {}
        self._allocating = Lock()
        self._scratch: ScratchRows | None = None
        if folder is not None:
            self._scratch = ScratchRows(
                "kernel columns", folder, self.n_features, self.dtype
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.base, self.folder, self.capacity)

    @property
    def cached(self) -> bool:
        """Whether all features are cached, in this process or in other processes."""
        return self.cached_elsewhere or self.has_cached(0, self.n_samples)

    def has_cached(self, start: int, stop: int) -> bool:
        """Return whether this process has cached the rows ``start <= row < stop``."""
        return bool(self._there[start // BLOCK_ROWS : -(-stop // BLOCK_ROWS)].all())

    def blocks(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the rows ``start <= row < stop`` in blocks.

        Blocks that are not cached yet are computed, and cached if they fit.
        """
        begin = start // BLOCK_ROWS
        end = -(-stop // BLOCK_ROWS)
        if start % BLOCK_ROWS == 0 and not self._there[begin:end].any():
            firsts = range(start, stop, BLOCK_ROWS)
            for first, rows in zip(firsts, self.base.blocks(start, stop), strict=True):
                self._put(first, rows)
                yield rows
            return
        for first in range(start, stop, BLOCK_ROWS):
            yield self.block(first, min(first + BLOCK_ROWS, stop))

    def block(self, start: int, stop: int) -> Any:
        """Return the rows ``start <= row < stop``.

        The result is a view of the cache if one group in memory contains these rows.
        """
        numbers = range(start // BLOCK_ROWS, -(-stop // BLOCK_ROWS))
        for k in numbers:
            if not self._there[k]:
                first = k * BLOCK_ROWS
                rows = self.base.block(first, min(first + BLOCK_ROWS, self.n_samples))
                self._put(first, rows)
                if len(numbers) == 1 and not self._there[k]:
                    return matrix.slice_rows(rows, start - first, stop - first)
        if not self.has_cached(start, stop):
            return self.base.block(start, stop)
        if self._scratch is not None:
            return self._scratch.read(start, stop)
        size = BLOCK_ROWS if self.is_sparse else GROUP_ROWS
        parts = []
        for first in range(start // size * size, stop, size):
            place = max(start - first, 0), min(stop - first, size)
            parts.append(matrix.slice_rows(self._parts[first // size], *place))
        return matrix.stack_blocks(parts)

    def _part(self, key: int, n_bytes: int, make: Callable[[], Any]) -> Any:
        """Return the array or block that is cached under ``key``.

        If there is none, cache the result of ``make``. If its ``n_bytes`` bytes do not
        fit into the cache, return None.
        """
        with self._allocating:
            if key not in self._parts and self.cached_bytes + n_bytes <= self.capacity:
                self.cached_bytes += n_bytes
                self._parts[key] = make()
            return self._parts.get(key)

    def _put(self, start: int, rows: Any) -> None:
        """Cache the block that begins at row ``start``, if it fits into the cache."""
        if isinstance(rows, matrix.CSRBlock):
            if (
                self._part(start // BLOCK_ROWS, matrix.n_bytes_of(rows), lambda: rows)
                is None
            ):
                return
        elif self._scratch is None:
            group = start // GROUP_ROWS * GROUP_ROWS
            shape = min(GROUP_ROWS, self.n_samples - group), self.n_features
            n_bytes = math.prod(shape) * self.dtype.itemsize
            cached = self._part(
                group // GROUP_ROWS, n_bytes, lambda: np.empty(shape, self.dtype)
            )
            if cached is None:
                return
            cached[start - group : start - group + rows.shape[0]] = rows
        else:
            self._scratch.write(start, np.ascontiguousarray(rows))
        self._there[start // BLOCK_ROWS] = True


def cache_features(features: Samples, store: str) -> Samples:
    """Return the features, cached in memory or in a scratch file if ``store`` says so.

    Parameters
    ----------
    features : Samples
        Features to cache.
    store : {"memory", "scratch", "recompute"}
        Where to cache them; "recompute" does not cache.

    Returns
    -------
    Samples
        The features; the first pass over them fills the cache.
    """
    if store == "recompute":
        return features
    return CachedSamples(
        features, tempfile.gettempdir() if store == "scratch" else None
    )


def scaled_matrix(sample: Any, scaling: Scaling | None, overwrite: bool = False) -> Any:
    """Scale the columns of a matrix, or return the matrix if ``scaling`` is None."""
    if scaling is None:
        return sample
    rows = ScaledSamples(open_samples(sample), scaling)
    if hasattr(sample, "indptr"):
        return matrix.as_matrix(rows.block(0, rows.n_samples))
    scaled = sample if overwrite else np.empty(sample.shape, rows.dtype)
    for start in range(0, rows.n_samples, BLOCK_ROWS):
        scaled[start : start + BLOCK_ROWS] = rows.block(start, start + BLOCK_ROWS)
    return scaled

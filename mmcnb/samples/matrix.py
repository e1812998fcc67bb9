"""Blocks of rows, dense and CSR: their form, their checks, and how NumPy and SciPy know them."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mmcnb._machine import return_freed_memory
from mmcnb.errors import InputError

WORK_NUMBERS = 2**20  # in a block of rows that work on a sample copies
# beyond it basis vectors of sparse rows stay sparse: dense ones would fill the memory
WIDE_COLUMNS = 10_000
FREED_BYTES = (
    8 * 2**20
)  # of arrays that were put together, before they are returned to the system
_REMEDY = "write the matrix again (scipy.sparse's check_format names the fault)."


Weights = np.ndarray | None
"""Sample weights; None weights all rows equally."""

CSRParts = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Data, indices and row pointers."""


class CSRBlock(NamedTuple):
    """Rows of a sparse matrix: column indices rise within each row and ``indptr[0] == 0``.

    Attributes
    ----------
    data : ndarray of shape (nnz,), float32 or float64
    indices : ndarray of shape (nnz,), int32, or int64 if n_features >= 2**31
    indptr : ndarray of shape (n_rows + 1,), int64
    n_features : int
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_features: int


Block = np.ndarray | CSRBlock
"""Rows, dense or CSR."""


def slice_rows(
    rows: np.ndarray | CSRBlock, start: int, stop: int
) -> np.ndarray | CSRBlock:
    """Rows of a dense or CSR block, without a copy of the values.

    Parameters
    ----------
    rows : ndarray or CSRBlock
        The block.
    start, stop : int
        Range of rows, counted from the first of the block.

    Returns
    -------
    ndarray or CSRBlock

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples import slice_rows
    >>> slice_rows(np.array([[1.0], [2.0], [3.0]]), 1, 3).tolist()
    [[2.0], [3.0]]
    """
    if not isinstance(rows, CSRBlock):
        return rows[start:stop]
    first = rows.indptr[start]
    last = rows.indptr[stop]
    indptr = rows.indptr[start : stop + 1] - first
    return CSRBlock(
        rows.data[first:last], rows.indices[first:last], indptr, rows.n_features
    )


def block_dtype(*dtypes: Any) -> np.dtype:
    """Type in which rows are handed out: the one rule of types, for memory, files, stores and frames.

    It is float32 if float32 has each number of each given type: truth values, integers
    of 8 and 16 bits, and floats of 16 and 32 bits, in any byte order. It is float64 for
    others. A table has a type a column.
    """
    exact = all(np.can_cast(one, np.float32) for one in dtypes)
    return np.dtype(np.float32 if dtypes and exact else np.float64)


def n_rows_of(block: np.ndarray | CSRBlock) -> int:
    """Number of rows of a block."""
    return len(block.indptr) - 1 if isinstance(block, CSRBlock) else len(block)


def n_bytes_of(block: Any) -> int:
    """Bytes of an array, a CSR block or a SciPy CSR matrix."""
    if isinstance(block, np.ndarray):
        return block.nbytes
    return block.data.nbytes + block.indices.nbytes + block.indptr.nbytes


def check_dtype(dtype: np.dtype, name: str) -> None:
    """Refuse text, complex numbers and whatever else is not real numbers."""
    kind = np.dtype(dtype).kind
    if kind not in "biuf":
        text = "text", "convert them to real numbers, such as by X.astype(float)"
        kinds = {
            "c": ("complex numbers", "convert them to real numbers, such as by X.real"),
            "M": (
                "dates",
                "convert them to numbers, such as the days since the first one",
            ),
            "m": ("durations", "convert them to numbers, such as seconds"),
            "V": ("records", "give the fields as the columns of one array of numbers"),
        } | dict.fromkeys("UST", text)
        kind_of, remedy = kinds.get(
            kind, (f"{dtype} values", "convert them to real numbers")
        )
        start = (
            "Complex data not supported: " if kind == "c" else ""
        )  # as scikit-learn's checks ask for
        fault = (
            f"{start}{name} contains {kind_of} (dtype {dtype}), which are not supported"
        )
        raise InputError(f"{fault}: {remedy}.")


def check_shape(shape: tuple[int, ...], name: str) -> tuple[int, int]:
    """Refuse all but a table with at least one row and one column."""
    if len(shape) != 2:
        fault = f"{name} is a {len(shape)}-D array of shape {shape}, but rows x features (2-D) are needed"
        remedy = "Reshape your data to one row a sample, such as by X.reshape(-1, 1) or X.reshape(1, -1)"
        raise InputError(f"{fault}. {remedy}.")
    for size, unit, parts in zip(
        shape, ("sample", "feature"), ("rows", "columns"), strict=True
    ):
        if size == 0:
            fault = f"Found array with 0 {unit}(s) (shape={shape}) while a minimum of 1 is required"
            raise InputError(f"{fault}: give {name} {parts}.")
    return int(shape[0]), int(shape[1])


def all_finite(values: np.ndarray) -> bool:
    """Whether no value is NaN or infinite, by one sum unless that sum is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    return bool(np.isfinite(total)) or bool(np.isfinite(values).all())


def check_finite(
    block: np.ndarray | CSRBlock,
    name: str,
    rows: int | np.ndarray,
    names: Callable[[], Any] | None = None,
) -> None:
    """Refuse NaN and infinity, naming the first row and column.

    ``rows`` is the number of the block's first row, or the number of each of its rows;
    ``names`` gives the names of the columns, and is called if a value is refused.
    """
    values = block.data if isinstance(block, CSRBlock) else block
    if all_finite(values):
        return
    where = int(np.argmin(np.isfinite(values.reshape(-1))))
    if isinstance(block, CSRBlock):
        row = int(np.searchsorted(block.indptr, where, side="right")) - 1
        column = int(block.indices[where])
    else:
        row, column = divmod(where, block.shape[1])
    kind = "NaN" if np.isnan(values.reshape(-1)[where]) else "infinity"
    listed = None if names is None else names()
    shown = f"{column}" if listed is None else f"{column} ({listed[column]!r})"
    fault = (
        f"Input X contains {kind} at row {_number(rows, row)}, column {shown} of {name}"
    )
    raise InputError(
        f"{fault}: fill in or drop such rows before clustering (inf and NaN are not accepted)."
    )


def _number(rows: int | np.ndarray, k: int) -> int:
    """Number of row k of a block: ``rows`` is that of its first row, or those of all."""
    return int(rows[k]) if isinstance(rows, np.ndarray) else rows + k


def as_block(values: np.ndarray) -> np.ndarray:
    """Values in C order and their block dtype; no copy if they are so already."""
    with np.errstate(
        over="ignore"
    ):  # of wider floats; infinity is refused by row and column
        return np.ascontiguousarray(values, dtype=block_dtype(values.dtype))


def check_rows(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """Row numbers as int64; they must rise strictly and lie within the data."""
    rows = np.asarray(rows, dtype=np.int64)
    if len(rows) and (
        rows[0] < 0 or rows[-1] >= n_samples or (np.diff(rows) <= 0).any()
    ):
        raise InputError(
            f"row numbers to gather must rise strictly within 0..{n_samples - 1}."
        )
    return rows


def check_indptr(
    indptr: np.ndarray, n_samples: int, n_data: int, n_indices: int, name: str
) -> None:
    """Refuse row pointers that do not describe ``n_samples`` rows of the stored values."""
    check_indptr_length(len(indptr), n_samples, n_data, n_indices, name)
    check_indptr_ends(int(indptr[0]), int(indptr[-1]), n_data, name)
    check_indptr_rises(indptr[:-1], indptr[1:], n_data, name, 0)


def check_indptr_length(
    length: int, n_samples: int, n_data: int, n_indices: int, name: str
) -> None:
    """Refuse arrays of a sparse matrix whose lengths do not agree."""
    if length != n_samples + 1:
        need = f"{n_samples} rows need {n_samples + 1}"
        raise InputError(f"{name}: indptr has length {length}, but {need}: {_REMEDY}")
    if n_data != n_indices:
        raise InputError(
            f"{name}: data has length {n_data} but indices has length {n_indices}: {_REMEDY}"
        )


def check_indptr_ends(first: int, last: int, n_data: int, name: str) -> None:
    """Refuse row pointers that do not span the stored values."""
    if first != 0:
        raise InputError(
            f"{name}: indptr starts at {first}, but it must rise from 0: {_REMEDY}"
        )
    if last != n_data:
        raise InputError(
            f"{name}: indptr ends at {last} but data has length {n_data}: {_REMEDY}"
        )


def check_indptr_rises(
    starts: np.ndarray,
    stops: np.ndarray,
    n_data: int,
    name: str,
    rows: int | np.ndarray,
) -> None:
    """Refuse rows that end before they start or beyond the stored values.

    ``rows`` is the number of the first row, or the number of each.
    """
    wrong = stops < starts
    if wrong.any():
        row = _number(rows, int(np.argmax(wrong)))
        raise InputError(
            f"{name}: indptr falls at row {row}, but it must rise from 0: {_REMEDY}"
        )
    wrong = (starts < 0) | (stops > n_data)
    if wrong.any():
        row = int(np.argmax(wrong))
        value = starts[row] if starts[row] < 0 else stops[row]
        row = _number(rows, row)
        fault = (
            f"indptr at row {row} points to {value}, outside the {n_data} stored values"
        )
        raise InputError(f"{name}: {fault}: {_REMEDY}")


def check_index_dtypes(name: str, **arrays: Any) -> None:
    """Refuse indices that are not integers."""
    for part, array in arrays.items():
        if np.dtype(array.dtype).kind not in "iu":
            fault = f"{part} has dtype {array.dtype}, but integers are needed"
            raise InputError(f"{name}: {fault}: write the matrix again.")


def csr_block(
    parts: CSRParts, n_features: int, name: str, rows: int | np.ndarray
) -> CSRBlock:
    """Rows in canonical form: columns rise in each row, duplicates summed, indices in range.

    Parameters
    ----------
    parts : tuple of ndarray
        Data, indices and row pointers; these are int64 and rebased, ``indptr[0] == 0``.
    n_features : int
    name : str
        For messages.
    rows : int or ndarray
        Number of the first row, or of each row, for messages.

    Returns
    -------
    CSRBlock
    """
    data, indices, indptr = as_block(parts[0]), *parts[1:]
    if len(indices) and (indices.min() < 0 or indices.max() >= n_features):
        where = int(np.argmax((indices < 0) | (indices >= n_features)))
        row = _number(rows, int(np.searchsorted(indptr, where, side="right")) - 1)
        fault = f"{name}: column index {indices[where]} in row {row} is outside 0..{n_features - 1}"
        raise InputError(
            f"{fault}: write the matrix again with the right shape or indices."
        )
    index_dtype = np.int32 if n_features < 2**31 else np.int64
    indices = np.ascontiguousarray(indices, dtype=index_dtype)
    rows_of_scipy = sp.csr_array(
        (data, indices, indptr), shape=(len(indptr) - 1, n_features)
    )
    if rows_of_scipy.has_canonical_format:
        return CSRBlock(data, indices, indptr, n_features)
    canonical = (
        rows_of_scipy.copy()
    )  # a row by itself, so that its sums do not depend on other rows
    canonical.sum_duplicates()
    block = as_csr_block(canonical)
    return block._replace(indices=block.indices.astype(index_dtype, copy=False))


def row_positions(
    starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of rows' values in ``data`` and ``indices``, and the row pointers of the result.

    ``starts`` and ``stops`` are the row pointers around each row.
    """
    counts = stops - starts
    gathered = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    shift = np.repeat(starts - gathered[:-1], counts)
    return np.arange(gathered[-1], dtype=np.int64) + shift, gathered


def as_matrix(rows: Any) -> Any:
    """A block as NumPy or SciPy knows it."""
    if not isinstance(rows, CSRBlock):
        return rows
    return sp.csr_array(rows[:3], shape=(rows.indptr.shape[0] - 1, rows.n_features))


def as_csr_block(rows: Any) -> CSRBlock:
    """A CSR matrix of SciPy as a block."""
    return CSRBlock(
        rows.data, rows.indices, rows.indptr.astype(np.int64), rows.shape[1]
    )


def squared_sums(rows: np.ndarray) -> np.ndarray:
    """Sum of squares of each row, float64."""
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


def largest_column(rows: Any) -> str:
    """The column of a block with the value farthest from 0, in words."""
    return f"column {int(abs(as_matrix(rows)).max(axis=0).argmax())} has the largest values"


def range_error(fault: str, rows: Any, verb: str = "divide") -> InputError:
    """The error for a block whose values are too large, or too small."""
    return InputError(
        f"{fault} ({largest_column(rows)}); {verb} the columns by a constant."
    )


def stack(parts: list[Any]) -> Any:
    """Arrays or SciPy matrices one below the other; a list of arrays is emptied on the way."""
    if not isinstance(parts[0], np.ndarray):
        return sp.vstack(parts, format="csr")
    stop = sum(len(part) for part in parts)
    freed = 0
    stacked = np.empty((stop, *parts[0].shape[1:]), parts[0].dtype)
    while parts:
        part = parts.pop()
        stacked[stop - len(part) : stop] = part
        stop = stop - len(part)
        freed = freed + part.nbytes
        del part
        if freed >= FREED_BYTES:
            return_freed_memory()
            freed = 0
    return stacked


def row_blocks(X: Any) -> Iterator[Any]:
    """Dense or CSR rows in blocks of a few megabytes, for work that copies them."""
    columns = min(X.shape[1], 1024) if sp.issparse(X) else X.shape[1]
    size = max(1, WORK_NUMBERS // columns)
    for start in range(0, X.shape[0], size):
        yield X[start : start + size]


def stack_blocks(parts: list[Any]) -> Any:
    """Blocks one below the other; a single one is not copied."""
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], CSRBlock):
        return np.concatenate(parts)
    return as_csr_block(sp.vstack([as_matrix(part) for part in parts], format="csr"))


def to_dense(rows: Any, dtype: Any = None) -> np.ndarray:
    """Rows of a dense or sparse matrix as a C-ordered array, of the same type or another."""
    return np.ascontiguousarray(
        rows.toarray() if hasattr(rows, "toarray") else rows, dtype
    )


def row_shares(n_samples: int, weights: Weights) -> np.ndarray:
    """Share of each row in the total weight."""
    return (
        np.full(n_samples, 1 / n_samples)
        if weights is None
        else weights / weights.sum()
    )


# relative difference below which rounding may decide which entry is the largest
SIGN_TIE = 1e-6


def with_fixed_signs(axes: np.ndarray) -> np.ndarray:
    """Turn each column, an eigenvector for instance, so that its largest entry is positive.

    Eigenvectors have no sign of their own. Where several entries are the largest up to
    rounding, the first of them decides, because rounding differs between processors,
    and labels depend on the signs.

    Parameters
    ----------
    axes : ndarray of shape (d, c)
        One axis per column.

    Returns
    -------
    ndarray of shape (d, c)

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples.matrix import with_fixed_signs
    >>> with_fixed_signs(np.array([[-3.0, 1.0], [3.0 + 1e-15, -2.0]])).round(3)
    array([[ 3., -1.],
           [-3.,  2.]])
    """
    lengths = np.abs(axes)
    is_largest = lengths >= (1 - SIGN_TIE) * lengths.max(axis=0)
    deciding = is_largest.argmax(axis=0)
    return np.asarray(axes * np.sign(axes[deciding, np.arange(axes.shape[1])]))


def with_short_indices(sample: Any) -> Any:
    """Rows in memory, with 32-bit indices if these suffice, as scikit-learn's own estimators need."""
    if hasattr(sample, "indptr") and max(sample.shape[1], sample.nnz) < 2**31:
        sample.indices, sample.indptr = (
            sample.indices.astype(np.int32),
            sample.indptr.astype(np.int32),
        )
    return sample


def column_moments(X: Any, weights: np.ndarray) -> list[Any]:
    """Weight of dense or sparse rows, weighted mean of each column, and sum of its squares about the mean."""
    weight = float(weights.sum())
    mean = np.asarray(weights @ X).ravel() / (weight or 1.0)
    if sp.issparse(X):
        d = mean.size
        own = np.repeat(weights, np.diff(X.indptr))
        squares = np.bincount(X.indices, own * np.square(X.data - mean[X.indices]), d)
        has_zeros = np.bincount(X.indices, minlength=d) < X.shape[0]
        rest = np.where(has_zeros, weight - np.bincount(X.indices, own, d), 0.0)
        return [weight, mean, squares + rest * mean**2]
    return [weight, mean, weights @ np.square(X - mean)]


def moments(X: Any, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and mean square of each column of dense or CSR rows."""
    weights = np.ones(X.shape[0]) if weights is None else weights
    total = np.zeros(X.shape[1])
    squares = np.zeros(X.shape[1])
    start = 0
    for rows in row_blocks(X):
        own = weights[start : start + rows.shape[0]]
        square = (
            rows.power(2, np.float64)
            if sp.issparse(rows)
            else np.square(rows, dtype=np.float64)
        )
        total = total + own @ rows
        squares = squares + own @ square
        start = start + rows.shape[0]
    weight = weights.sum()
    return np.asarray(total).ravel() / weight, np.asarray(squares).ravel() / weight


def check_places(n_places: int, n_clusters: int, size: str = "sample_size") -> None:
    """Refuse more clusters than distinct rows; ``size`` is the parameter that gives more of them."""
    if n_places < n_clusters:
        fault = f"the sample has {n_places} rows that differ, fewer than n_clusters={n_clusters}"
        raise InputError(f"{fault}; give fewer clusters, or a larger {size}.")


def check_clusters(
    n_clusters: int, sample: Any, n_samples: float, size: str = "sample_size"
) -> None:
    """Refuse more clusters than rows; ``size`` is the parameter that gives the rows of the sample."""
    if n_clusters > n_samples:
        raise InputError(
            f"n_clusters={n_clusters} is more than the {n_samples} rows; give fewer clusters."
        )
    if n_clusters > sample.shape[0]:
        raise InputError(
            f"{size}={sample.shape[0]} is smaller than n_clusters={n_clusters}; give more rows."
        )

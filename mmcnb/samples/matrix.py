"""Blocks of rows, dense and CSR: conversions, checks and simple statistics."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from mmcnb._machine import return_freed_memory
from mmcnb.errors import (
    ColumnError,
    EqualRowsError,
    GapsError,
    InputError,
    NotFiniteError,
)

# Number of values of a sample that a computation copies at a time.
WORK_NUMBERS = 2**20

# With more columns than this, basis vectors of sparse rows stay sparse, because dense
# vectors would take too much memory.
WIDE_COLUMNS = 10_000

# Number of copied bytes after which `stack` returns freed memory to the system.
FREED_BYTES = 8 * 2**20

_REMEDY = "write the matrix again (scipy.sparse's check_format names the fault)."


Matrix: TypeAlias = np.ndarray | sp.csr_array
"""Rows as a NumPy array or a SciPy CSR array."""

Weights = np.ndarray | None
"""Sample weights; None means that all rows have the same weight."""

CSRParts = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The data, indices and row pointers (indptr) of CSR rows."""


class CSRBlock(NamedTuple):
    """Rows of a sparse matrix in CSR format.

    Attributes
    ----------
    data : ndarray of shape (nnz,), float32 or float64
        Stored values, row by row.
    indices : ndarray of shape (nnz,), int32, or int64 if n_features >= 2**31
        Column of each value; strictly increasing within a row.
    indptr : ndarray of shape (n_rows + 1,), int64
        The values of row i are ``data[indptr[i]:indptr[i + 1]]``; ``indptr[0]`` is 0.
    n_features : int
        Number of columns.
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
    """Return a range of rows of a dense or CSR block without copying the values.

    Parameters
    ----------
    rows : ndarray or CSRBlock
        The block.
    start, stop : int
        Range of rows, counted from the first row of the block.

    Returns
    -------
    ndarray or CSRBlock
        The rows ``start <= row < stop``.

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
    """Return the dtype of blocks of rows, given the stored dtype of each column.

    The result is float32 if float32 represents all numbers of these dtypes exactly:
    bool, integers of 8 and 16 bits, and floats of 16 and 32 bits, in any byte order.
    Otherwise it is float64. Arrays, files, stores and frames all follow this rule.
    """
    is_exact = all(np.can_cast(dtype, np.float32) for dtype in dtypes)
    return np.dtype(np.float32 if dtypes and is_exact else np.float64)


def n_rows_of(block: np.ndarray | CSRBlock) -> int:
    """Return the number of rows of a block."""
    return len(block.indptr) - 1 if isinstance(block, CSRBlock) else len(block)


def n_bytes_of(block: Matrix | CSRBlock) -> int:
    """Return the number of bytes of an array, a CSR block or a SciPy CSR matrix."""
    if isinstance(block, np.ndarray):
        return block.nbytes
    return block.data.nbytes + block.indices.nbytes + block.indptr.nbytes


def check_dtype(dtype: np.dtype, name: str) -> None:
    """Raise InputError unless ``dtype`` is a Boolean or real numeric dtype."""
    kind = np.dtype(dtype).kind
    if kind in "biuf":
        return
    values, remedy = _REFUSED_KINDS.get(
        kind, (f"{dtype} values", "convert them to real numbers")
    )
    # scikit-learn's checks look for these words.
    start = "Complex data not supported: " if kind == "c" else ""
    raise InputError(
        f"{start}{name} contains {values} (dtype {dtype}), "
        f"which are not supported: {remedy}."
    )


_TEXT = ("text", "convert them to real numbers")
_DAYS = "({}) / numpy.timedelta64(1, 'D')"
_REFUSED_KINDS = {
    "U": _TEXT,
    "S": _TEXT,
    "T": _TEXT,
    "c": ("complex numbers", "convert them to real numbers, for example with X.real"),
    "M": (
        "dates",
        f"convert them to numbers, for example with {_DAYS.format('X - X.min()')}",
    ),
    "m": (
        "durations",
        f"convert them to numbers, for example with {_DAYS.format('X')}",
    ),
    "V": ("records", "pass the fields as the columns of one array of numbers"),
}
"""What an array of an unsupported dtype contains, and a remedy, by dtype.kind."""


def check_shape(shape: tuple[int, ...], name: str) -> tuple[int, int]:
    """Return the numbers of rows and columns in a shape as integers.

    Raise InputError if the shape is not 2-D, or has no rows or no columns.
    """
    if len(shape) != 2:
        call = "X.reshape(-1, 1) or X.reshape(1, -1)"
        if len(shape) > 2:
            call = "X.reshape(len(X), -1)"
        raise InputError(
            f"{name} is a {len(shape)}-D array of shape {shape}, "
            "but rows x features (2-D) are needed. Reshape your data to one row per "
            f"sample, for example with {call}."
        )
    n_rows, n_columns = shape
    # scikit-learn's common checks look for the text before the colon.
    if n_rows == 0:
        raise InputError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is "
            f"required: give {name} rows."
        )
    if n_columns == 0:
        raise InputError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is "
            f"required: give {name} columns."
        )
    return int(n_rows), int(n_columns)


def all_finite(values: np.ndarray) -> bool:
    """Return whether all values are finite.

    If the sum is finite, all values are finite. Otherwise, the sum may have overflowed,
    and each value is checked.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    return bool(np.isfinite(total)) or bool(np.isfinite(values).all())


def check_finite(
    block: np.ndarray | CSRBlock,
    name: str,
    rows: int | np.ndarray,
    names: Callable[[], Sequence[str] | None] | None = None,
) -> None:
    """Raise NotFiniteError if a value is NaN or infinite, naming its row and column.

    ``rows`` is the index of the block's first row, or an array with the indices of its
    rows. ``names`` is a function that returns the names of the columns; it is called
    only for the message.
    """
    values = block.data if isinstance(block, CSRBlock) else block
    if all_finite(values):
        return
    flat = values.reshape(-1)
    where = int(np.argmin(np.isfinite(flat)))
    if isinstance(block, CSRBlock):
        row = int(np.searchsorted(block.indptr, where, side="right")) - 1
        column = int(block.indices[where])
    else:
        row, column = divmod(where, block.shape[1])
    kind = "NaN" if np.isnan(flat[where]) else "infinity"
    place = f"row {_row_number(rows, row)}, column {column}"
    columns = None if names is None else names()
    if columns is not None:
        place = f"{place} ({columns[column]!r})"
    remedy = "fill in or drop such rows before clustering"
    if not isinstance(block, CSRBlock):
        if kind == "NaN":
            option = "" if name == "X" else " (--missing median)"
            remedy = (
                f"fill such gaps with mmcnb.read_table(X, missing='median'){option}, "
                "or drop such rows"
            )
        if name == "X":
            remedy += ", for example with X[numpy.isfinite(X).all(axis=1)]"
    error = NotFiniteError
    if kind == "NaN" and not isinstance(block, CSRBlock):
        error = GapsError
    raise error(f"Input X contains {kind} at {place} of {name}: {remedy}.")


def _row_number(rows: int | np.ndarray, k: int) -> int:
    """Return the index among all rows of the row at position ``k`` of a block.

    ``rows`` is the index of the block's first row, or an array with the indices of its
    rows.
    """
    return int(rows[k]) if isinstance(rows, np.ndarray) else rows + k


def as_block(values: np.ndarray) -> np.ndarray:
    """Return values as a C-ordered array in the dtype of blocks.

    The values are copied only if necessary.
    """
    # Floats wider than 64 bits may overflow; `check_finite` reports the row and column.
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=block_dtype(values.dtype))


def check_rows(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """Return row indices as int64.

    Raise InputError if they are out of range or do not increase strictly.
    """
    rows = np.asarray(rows, dtype=np.int64)
    if len(rows) and (
        rows[0] < 0 or rows[-1] >= n_samples or (np.diff(rows) <= 0).any()
    ):
        raise InputError(
            f"row numbers must increase strictly within 0..{n_samples - 1}; sort them."
        )
    return rows


def check_indptr(
    indptr: np.ndarray, n_samples: int, n_data: int, n_indices: int, name: str
) -> None:
    """Raise InputError unless ``indptr`` is valid for a CSR matrix of these sizes."""
    check_indptr_length(len(indptr), n_samples, n_data, n_indices, name)
    check_indptr_ends(int(indptr[0]), int(indptr[-1]), n_data, name)
    check_indptr_rises(indptr[:-1], indptr[1:], n_data, name, 0)


def check_indptr_length(
    length: int, n_samples: int, n_data: int, n_indices: int, name: str
) -> None:
    """Raise InputError if the lengths of indptr, indices and data are inconsistent."""
    if length != n_samples + 1:
        need = f"{n_samples} rows need {n_samples + 1}"
        raise InputError(f"{name}: indptr has length {length}, but {need}: {_REMEDY}")
    if n_data != n_indices:
        raise InputError(
            f"{name}: data has length {n_data} "
            f"but indices has length {n_indices}: {_REMEDY}"
        )


def check_indptr_ends(first: int, last: int, n_data: int, name: str) -> None:
    """Raise InputError unless the first row pointer is 0 and the last is ``n_data``."""
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
    """Raise InputError if a row ends before it starts or beyond the stored values.

    ``rows`` is the index of the first row, or an array with the indices of all rows.
    """
    falls = stops < starts
    if falls.any():
        row = _row_number(rows, int(np.argmax(falls)))
        raise InputError(
            f"{name}: indptr falls at row {row}, but it must rise from 0: {_REMEDY}"
        )
    is_outside = (starts < 0) | (stops > n_data)
    if is_outside.any():
        k = int(np.argmax(is_outside))
        value = starts[k] if starts[k] < 0 else stops[k]
        raise InputError(
            f"{name}: indptr at row {_row_number(rows, k)} points to {value}, "
            f"outside the {n_data} stored values: {_REMEDY}"
        )


def check_index_dtypes(name: str, **arrays: Any) -> None:
    """Raise InputError if an index array does not contain integers."""
    for part, array in arrays.items():
        if np.dtype(array.dtype).kind not in "iu":
            raise InputError(
                f"{name}: {part} has dtype {array.dtype}, but integers are needed: "
                "write the matrix again."
            )


def csr_block(
    parts: CSRParts, n_features: int, name: str, rows: int | np.ndarray
) -> CSRBlock:
    """Return rows in canonical CSR format: indices sorted, and duplicates summed.

    Parameters
    ----------
    parts : tuple of ndarray
        Data, indices and row pointers. The row pointers are int64 and begin at 0.
    n_features : int
        Number of columns. InputError is raised if a column index is out of range.
    name : str
        Name used for the rows in messages.
    rows : int or ndarray
        Index of the first row, or the index of each row, for messages.

    Returns
    -------
    CSRBlock
        The rows.
    """
    values, indices, indptr = parts
    if len(indices) and (indices.min() < 0 or indices.max() >= n_features):
        where = int(np.argmax((indices < 0) | (indices >= n_features)))
        k = int(np.searchsorted(indptr, where, side="right")) - 1
        raise InputError(
            f"{name}: column index {indices[where]} in row {_row_number(rows, k)} "
            f"is outside 0..{n_features - 1}: "
            "write the matrix again with the right shape or indices."
        )
    index_dtype = np.int32 if n_features < 2**31 else np.int64
    indices = np.ascontiguousarray(indices, dtype=index_dtype)
    block = CSRBlock(as_block(values), indices, indptr, n_features)
    csr = as_matrix(block)
    if csr.has_canonical_format:
        return block
    # SciPy sums duplicates row by row, so the sums do not depend on the other rows.
    canonical = csr.copy()
    canonical.sum_duplicates()
    block = as_csr_block(canonical)
    return block._replace(indices=block.indices.astype(index_dtype, copy=False))


def row_positions(
    starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the stored values of some rows, and the rows' indptr.

    ``starts`` and ``stops`` are the row pointers at the beginning and end of each row.
    """
    counts = stops - starts
    gathered = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    shift = np.repeat(starts - gathered[:-1], counts)
    return np.arange(gathered[-1], dtype=np.int64) + shift, gathered


def as_matrix(rows: Matrix | CSRBlock) -> Any:
    """Return a CSR block as a SciPy array; return other rows unchanged."""
    if not isinstance(rows, CSRBlock):
        return rows
    return sp.csr_array(rows[:3], shape=(rows.indptr.shape[0] - 1, rows.n_features))


def as_csr_block(rows: sp.csr_array) -> CSRBlock:
    """Return a SciPy CSR matrix as a `CSRBlock`."""
    return CSRBlock(
        rows.data, rows.indices, rows.indptr.astype(np.int64), rows.shape[1]
    )


def squared_sums(rows: np.ndarray) -> np.ndarray:
    """Return the sum of the squared values of each row, in float64."""
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


def take_columns(rows: Matrix | CSRBlock, columns: np.ndarray | None) -> Any:
    """Return rows with their columns in the order ``columns``.

    If ``columns`` is None, the rows are returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples.matrix import take_columns
    >>> take_columns(np.array([[3.0, 4.0, 5.0]]), np.array([2, 0, 1]))
    array([[5., 3., 4.]])
    """
    if columns is None:
        return rows
    if isinstance(rows, np.ndarray):
        return np.take(rows, columns, axis=1)
    matrix = as_matrix(rows)
    places = np.empty(columns.size, matrix.indices.dtype)
    places[columns] = np.arange(columns.size)
    moved = matrix.data, places[matrix.indices], matrix.indptr
    # Two transpositions sort the columns of all rows in linear time.
    sorted_rows = sp.csr_array(moved, shape=matrix.shape).tocsc().tocsr()
    if isinstance(rows, CSRBlock):
        indices = sorted_rows.indices.astype(rows.indices.dtype, copy=False)
        return rows._replace(data=sorted_rows.data, indices=indices)
    return sorted_rows


def largest_column(rows: Matrix | CSRBlock) -> int:
    """Return the index of the column with the largest absolute value."""
    return int(abs(as_matrix(rows)).max(axis=0).argmax())


def range_error(
    fault: str, rows: Matrix | CSRBlock, verb: str = "divide"
) -> ColumnError:
    """Return the error for rows with values that are too large or too small.

    The error names the column with the largest absolute value.
    """
    remedy = f"{verb} the columns by a constant"
    return ColumnError(fault, largest_column(rows), remedy)


def equal_rows_error(rows: Matrix | CSRBlock) -> EqualRowsError:
    """Return the error for rows that are all equal."""
    if _are_equal(as_matrix(rows)):
        fault = "all rows are equal, so they cannot be split into clusters"
        return EqualRowsError(fault, None, "pass rows that differ")
    return EqualRowsError(
        "all rows are equal, or differ by less than rounding",
        largest_column(rows),
        "pass rows that differ, or subtract the mean of the columns",
    )


def _are_equal(rows: Matrix) -> bool:
    """Return whether all rows are exactly equal."""
    largest = rows.max(axis=0)
    smallest = rows.min(axis=0)
    if sp.issparse(rows):
        largest = largest.toarray()
        smallest = smallest.toarray()
    return bool((largest == smallest).all())


def stack(parts: list[Any]) -> Any:
    """Stack arrays or SciPy matrices vertically.

    A list of arrays is emptied, so that each array is freed once it has been copied.
    """
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


def row_blocks(X: Matrix) -> Iterator[Any]:
    """Yield dense or CSR rows in blocks of about WORK_NUMBERS values."""
    columns = min(X.shape[1], 1024) if sp.issparse(X) else X.shape[1]
    size = max(1, WORK_NUMBERS // columns)
    for start in range(0, X.shape[0], size):
        yield X[start : start + size]


def stack_blocks(parts: list[Any]) -> Any:
    """Stack blocks of rows vertically; a single block is returned without a copy."""
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], CSRBlock):
        return np.concatenate(parts)
    return as_csr_block(sp.vstack([as_matrix(part) for part in parts], format="csr"))


def to_dense(rows: Matrix, dtype: DTypeLike | None = None) -> np.ndarray:
    """Return a dense or sparse matrix as a C-ordered array."""
    dense = rows.toarray() if hasattr(rows, "toarray") else rows
    return np.ascontiguousarray(dense, dtype)


def row_shares(n_samples: int, weights: Weights) -> np.ndarray:
    """Return the weight of each row divided by the total weight."""
    if weights is None:
        return np.full(n_samples, 1 / n_samples)
    return weights / weights.sum()


# Relative difference below which entries count as equal.
SIGN_TIE = 1e-6


def with_fixed_signs(axes: np.ndarray) -> np.ndarray:
    """Flip each column, such as an eigenvector, so that its largest entry is positive.

    The sign of an eigenvector is arbitrary, but labels depend on it. If several entries
    equal the largest up to rounding, the first of them determines the sign, because
    rounding differs between processors.

    Parameters
    ----------
    axes : ndarray of shape (d, c)
        One axis per column.

    Returns
    -------
    ndarray of shape (d, c)
        The axes with fixed signs.

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
    """Convert the index arrays of a sparse matrix to int32 in place, if they fit.

    scikit-learn's estimators require int32. Dense rows are returned unchanged.
    """
    if hasattr(sample, "indptr") and max(sample.shape[1], sample.nnz) < 2**31:
        sample.indices = sample.indices.astype(np.int32)
        sample.indptr = sample.indptr.astype(np.int32)
    return sample


def column_moments(X: Any, weights: np.ndarray) -> list[Any]:
    """Return the total weight of the rows, and two moments of each column.

    The moments are the weighted mean, and the weighted sum of squared deviations from
    the mean.
    """
    weight = float(weights.sum())
    if not sp.issparse(X):
        # The rounded sum of a column must not depend on the position of the column, as
        # it would in a matrix product with the weights.
        of_rows = weights[:, None]
        mean = (of_rows * X).sum(axis=0) / (weight or 1.0)
        return [weight, mean, (of_rows * np.square(X - mean)).sum(axis=0)]
    mean = np.asarray(weights @ X).ravel() / (weight or 1.0)
    n_columns = mean.size
    value_weights = np.repeat(weights, np.diff(X.indptr))
    deviations = X.data - mean[X.indices]
    squares = np.bincount(X.indices, value_weights * np.square(deviations), n_columns)
    # Each zero that is not stored deviates from the mean by `mean`. In columns without
    # such zeros, the difference of the weights could be a rounding error instead of 0.
    n_values = np.bincount(X.indices, minlength=n_columns)
    zeros_weight = weight - np.bincount(X.indices, value_weights, n_columns)
    zeros_weight[n_values >= X.shape[0]] = 0.0
    return [weight, mean, squares + zeros_weight * mean**2]


def moments(X: Matrix, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean and mean square of each column of dense or CSR rows."""
    if weights is None:
        weights = np.ones(X.shape[0])
    sums = np.zeros(X.shape[1])
    square_sums = np.zeros(X.shape[1])
    start = 0
    for rows in row_blocks(X):
        stop = start + rows.shape[0]
        row_weights = weights[start:stop]
        if sp.issparse(rows):
            squares = rows.power(2, np.float64)
        else:
            squares = np.square(rows, dtype=np.float64)
        sums = sums + row_weights @ rows
        square_sums = square_sums + row_weights @ squares
        start = stop
    weight = weights.sum()
    return np.asarray(sums).ravel() / weight, np.asarray(square_sums).ravel() / weight


def check_places(n_places: int, n_clusters: int, size: str = "sample_size") -> None:
    """Raise InputError if there are more clusters than distinct rows in the sample.

    ``size`` is the name of the parameter that enlarges the sample, for the message.
    """
    if n_places < n_clusters:
        raise InputError(
            f"the sample has {n_places} rows that differ, "
            f"fewer than n_clusters={n_clusters}; "
            f"give n_clusters={n_places} or fewer, or a larger {size} if more rows "
            "of the data differ."
        )


def check_clusters(
    n_clusters: int, sample: Matrix, n_samples: float, size: str = "sample_size"
) -> None:
    """Raise InputError if there are more clusters than rows in the data or the sample.

    ``size`` is the name of the parameter that enlarges the sample, for the message.
    """
    if n_clusters > n_samples:
        raise InputError(
            f"n_clusters={n_clusters} is more than the {n_samples:g} rows; "
            f"give n_clusters={int(n_samples)} or fewer."
        )
    if n_clusters > sample.shape[0]:
        raise InputError(
            f"{size}={sample.shape[0]} is smaller than n_clusters={n_clusters}; "
            "give more rows."
        )

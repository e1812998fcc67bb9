"""Checks and the canonical form of compressed sparse rows, the same for memory and Zarr."""

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples._base import CSRBlock, as_block

_REMEDY = "write the matrix again (scipy.sparse's check_format names what is wrong)."


def check_indptr(indptr: np.ndarray, n_samples: int, n_data: int, n_indices: int, name: str) -> None:
    """Refuse row pointers that do not describe ``n_samples`` rows of the stored values."""
    check_indptr_length(len(indptr), n_samples, n_data, n_indices, name)
    check_indptr_ends(int(indptr[0]), int(indptr[-1]), n_data, name)
    check_indptr_rises(indptr[:-1], indptr[1:], n_data, name, 0)


def check_indptr_length(length: int, n_samples: int, n_data: int, n_indices: int, name: str) -> None:
    """Refuse arrays of a sparse matrix whose lengths do not agree."""
    if length != n_samples + 1:
        raise InputError(
            f"{name}: indptr has length {length} where {n_samples} rows need {n_samples + 1}: {_REMEDY}"
        )
    if n_data != n_indices:
        raise InputError(f"{name}: data has length {n_data} but indices has length {n_indices}: {_REMEDY}")


def check_indptr_ends(first: int, last: int, n_data: int, name: str) -> None:
    """Refuse row pointers that do not span the stored values."""
    if first != 0:
        raise InputError(f"{name}: indptr starts at {first} where it must rise from 0: {_REMEDY}")
    if last != n_data:
        raise InputError(f"{name}: indptr ends at {last} but data has length {n_data}: {_REMEDY}")


def check_indptr_rises(
    starts: np.ndarray, stops: np.ndarray, n_data: int, name: str, rows: int | np.ndarray
) -> None:
    """Refuse rows that end before they start or beyond the stored values.

    ``rows`` is the number of the first row, or the number of each.
    """
    wrong = stops < starts
    if wrong.any():
        row = int(np.argmax(wrong))
        row = int(rows[row]) if isinstance(rows, np.ndarray) else rows + row
        raise InputError(f"{name}: indptr falls at row {row} where it must rise from 0: {_REMEDY}")
    wrong = (starts < 0) | (stops > n_data)
    if wrong.any():
        row = int(np.argmax(wrong))
        value = starts[row] if starts[row] < 0 else stops[row]
        row = int(rows[row]) if isinstance(rows, np.ndarray) else rows + row
        raise InputError(
            f"{name}: indptr at row {row} points to {value}, outside the {n_data} stored values: {_REMEDY}"
        )


def check_index_dtype(dtype: np.dtype, part: str, name: str) -> None:
    """Refuse indices that are not integers."""
    if np.dtype(dtype).kind not in "iu":
        raise InputError(
            f"{name}: {part} has dtype {dtype} where integers are needed: write the matrix again."
        )


def csr_block(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    n_features: int,
    name: str,
    rows: int | np.ndarray,
) -> CSRBlock:
    """Rows in canonical form: columns rise in each row, duplicates summed, indices in range.

    Parameters
    ----------
    data, indices : ndarray of shape (nnz,)
    indptr : ndarray of shape (n_rows + 1,), int64
        Rebased: ``indptr[0] == 0``.
    n_features : int
    name : str
        For messages.
    rows : int or ndarray
        Number of the first row, or of each row, for messages.

    Returns
    -------
    CSRBlock
    """
    data = as_block(data)
    if len(indices) == 0:
        return CSRBlock(data, indices.astype(_index_dtype(n_features)), indptr, n_features)
    if indices.min() < 0 or indices.max() >= n_features:
        where = int(np.argmax((indices < 0) | (indices >= n_features)))
        row = int(np.searchsorted(indptr, where, side="right")) - 1
        row = int(rows[row]) if isinstance(rows, np.ndarray) else rows + row
        raise InputError(
            f"{name}: column index {indices[where]} in row {row} is outside 0..{n_features - 1}: "
            "write the matrix again with the right shape or indices."
        )
    indices = np.ascontiguousarray(indices, dtype=_index_dtype(n_features))
    if _is_canonical(indices, indptr):
        return CSRBlock(data, indices, indptr, n_features)
    return _canonical(data, indices, indptr, n_features)


def _index_dtype(n_features: int) -> type:
    return np.int32 if n_features < 2**31 else np.int64


def _is_canonical(indices: np.ndarray, indptr: np.ndarray) -> bool:
    rises = indices[1:] > indices[:-1]
    if rises.all():
        return True
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    return bool(rises.all())


def _canonical(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n_features: int) -> CSRBlock:
    # Values of one row and column are added in the order in which they are stored, so the
    # sum does not depend on the other rows of the block.
    row_of = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((indices, row_of))
    row_of, indices, data = row_of[order], indices[order], data[order]
    first = np.ones(len(indices), dtype=bool)
    first[1:] = (row_of[1:] != row_of[:-1]) | (indices[1:] != indices[:-1])
    starts = np.flatnonzero(first)
    with np.errstate(over="ignore", invalid="ignore"):
        summed = np.add.reduceat(data, starts)
    counts = np.bincount(row_of[starts], minlength=len(indptr) - 1)
    return CSRBlock(
        summed, indices[starts], np.concatenate(([0], np.cumsum(counts))).astype(np.int64), n_features
    )

"""The memory that a sample, its kernel columns and the vectors of its model take, for the plan of a fit."""

from typing import Any

WIDE_COLUMNS = 10_000  # beyond it basis vectors of sparse rows stay sparse: dense ones would fill the memory
LINEAR_PLANES = 80  # cutting planes of a linear method that are held at once, each with what generated it
SPARSE_WORK = 2**26  # bytes of copies of CSR rows, measured on 2,000 rows of 1,000 to 300,000 columns
AXES = 60  # principal axes of the sample, while they are sought


def sample_bytes(rows: Any, needs: Any) -> float:
    """Bytes of a sample, its kernel columns, its basis and a larger sample.

    Parameters
    ----------
    rows : RowShape
        The shape of the rows.
    needs : FitNeeds
        What the method holds.

    Returns
    -------
    float
        Bytes.
    """
    size, kernel_bytes = min(needs.sample_size, rows.n_samples), needs.n_landmarks * 4
    if rows.is_sparse and needs.stays_sparse:
        # As it is read, put together, in float64, and while it is copied.
        held = SPARSE_WORK + 4 * size * rows.row_bytes
    else:
        dense_rows = size if needs.dense_rows is None else min(needs.dense_rows, size)
        held = dense_rows * rows.n_features * (rows.itemsize + 8)
    # A copy of the sample's kernel columns holds float32 values and as many float64 coordinates.
    columns = size * needs.sample_copies * 3 * kernel_bytes
    # CSR rows are held once more while they are put together.
    parts = min(needs.held_rows, rows.n_samples) * rows.row_bytes * (1 + rows.is_sparse)
    larger = 2 * needs.larger_rows * (kernel_bytes or rows.row_bytes)
    return float(held + columns + parts + _basis_bytes(rows, needs) + larger + needs.sample_bytes)


def _basis_bytes(rows: Any, needs: Any) -> float:
    """Bytes of the basis vectors and their kernel matrix, or of the cutting planes of a linear method."""
    p, d = needs.n_landmarks, rows.n_features
    if p == 0:
        return 3.0 * 8 * LINEAR_PLANES * d
    gram = 16.0 * p**2
    if not (rows.is_sparse and needs.stays_sparse):
        return gram + 24.0 * p * d
    a_row = max(rows.row_bytes - 8, 0) / (rows.itemsize + 4)  # values
    wide = d > WIDE_COLUMNS
    held, axes = (min(d, p * a_row), 8 * AXES * d) if wide else (d, 0)
    # Each candidate has the vectors once as they are and once transposed, in float64.
    return float(gram + axes + 24 * p * held + needs.sample_copies * (16 * p * held + 4 * d * wide))

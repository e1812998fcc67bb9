"""The leading principal axes of a sample, along which rows are compared."""

from dataclasses import dataclass

import numpy as np

from mmcnb.graph.nodes import Each, Matrix, finite, of_row_blocks
from mmcnb.samples.matrix import (
    WIDE_COLUMNS,
    CSRBlock,
    as_matrix,
    row_blocks,
    to_dense,
    with_fixed_signs,
)

# Rows with more columns are projected on this number of axes, because distances over
# many columns consist mostly of noise.
LEADING_AXES = 50
# Up to this number of columns, an eigendecomposition of the covariance matrix costs
# little more than subspace iteration.
COVARIANCE_COLUMNS = 1000
SPARE_AXES = 10  # additional axes that subspace iteration computes and then discards
POWER_STEPS = 6  # number of steps of subspace iteration


@dataclass(frozen=True)
class Axes:
    """Map that centres rows and, with many columns, projects them on leading axes.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        Mean of the columns.
    axes : ndarray of shape (d, c) or None, default=None
        Principal axes, one per column. If None, rows are centred but not projected.
    """

    mean: np.ndarray
    axes: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        """Number of columns of the rows."""
        return self.mean.shape[0]

    @property
    def n_axes(self) -> int:
        """Number of columns of the mapped rows."""
        return self.n_features if self.axes is None else self.axes.shape[1]

    @finite
    def __call__(self, rows: Matrix | CSRBlock) -> np.ndarray:
        """Return the coordinates of rows on the axes.

        The result is a C-ordered array with the dtype of the rows.
        """
        matrix = as_matrix(rows)
        mean = self.mean.astype(matrix.dtype, copy=False)
        if self.axes is None:
            return np.ascontiguousarray(to_dense(matrix) - mean)
        axes = self.axes.astype(matrix.dtype, copy=False)
        if hasattr(matrix, "toarray"):
            scores = matrix @ axes - mean @ axes
        else:
            scores = (matrix - mean) @ axes
        # Round to 24 bits by Veltkamp's splitting, because the last bits of BLAS
        # results differ between processors.
        scaled = scores * np.float64(2**29 + 1)
        return np.ascontiguousarray(scaled - (scaled - scores), matrix.dtype)

    @finite
    def beyond(self, rows: Matrix | CSRBlock, points: np.ndarray) -> np.ndarray:
        """Return the distance from each row to the subspace of the axes, as float64.

        ``points`` are the coordinates of the rows, as returned by calling this object.
        """
        matrix = as_matrix(rows)
        mean = self.mean
        if self.axes is None:
            return np.zeros(matrix.shape[0])
        if hasattr(matrix, "toarray"):
            # |x - m|² = |x|² - 2 x·m + |m|², without a dense copy of CSR rows.
            norms = matrix.astype(np.float64).power(2).sum(axis=1)
            products = matrix @ mean
            squares = norms - 2 * products + mean @ mean
        else:
            centred = matrix - mean.astype(matrix.dtype)
            squares = np.square(centred, dtype=np.float64).sum(axis=1)
        within = np.square(points, dtype=np.float64).sum(axis=1)
        outside = squares - within
        return np.sqrt(np.maximum(outside, 0.0))


def leading_axes(
    sample: Matrix,
    random_state: np.random.RandomState,
    each: Each = map,
    n_axes: int = LEADING_AXES,
) -> Axes:
    """Return the mean and the leading principal axes of a dense or CSR sample.

    If the sample has at most ``n_axes`` rows or columns, its rows are centred but not
    projected. The sample is not copied. ``each`` maps a function over the blocks of
    rows, possibly in several threads.
    """
    # Ignore overflows here, because `Axes` raises InputError for them.
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.asarray(sample.mean(axis=0, dtype=np.float64)).ravel()
    m, d = sample.shape
    if min(m, d) <= n_axes:
        return Axes(mean)
    if d <= COVARIANCE_COLUMNS:
        vectors = _axes_of_covariance(sample, mean, each, n_axes)
    else:
        vectors = _axes_by_iteration(sample, mean, random_state, n_axes)
    axes = with_fixed_signs(vectors)
    return Axes(mean, np.ascontiguousarray(axes))


def _axes_of_covariance(
    sample: Matrix, mean: np.ndarray, each: Each, n_axes: int
) -> np.ndarray:
    """Return the leading eigenvectors of the covariance matrix."""
    from scipy.linalg import eigh

    d = sample.shape[1]
    scatter = np.zeros((d, d))
    for part in of_row_blocks(sample, lambda rows: _scatter(rows, mean), each):
        scatter += part
    wanted = [d - n_axes, d - 1]
    _, vectors = eigh(scatter, overwrite_a=True, subset_by_index=wanted)
    return vectors[:, ::-1]


@finite
def _scatter(rows: Matrix, mean: np.ndarray) -> np.ndarray:
    """Return the scatter matrix of a block of rows, computed in the dtype of the rows.

    Each centred column is first divided by its largest absolute value, so that columns
    of small values keep their precision beside columns of large values.
    """
    centred = to_dense(rows) - mean.astype(rows.dtype, copy=False)
    scales = np.abs(centred).max(axis=0)
    scales[scales == 0] = 1
    centred /= scales
    return (centred.T @ centred) * np.multiply.outer(scales, scales, dtype=np.float64)


def _axes_by_iteration(
    sample: Matrix, mean: np.ndarray, random_state: np.random.RandomState, n_axes: int
) -> np.ndarray:
    """Compute leading eigenvectors of the covariance matrix by subspace iteration."""
    from scipy.linalg import eigh

    d = sample.shape[1]
    axes = random_state.standard_normal((d, n_axes + SPARE_AXES))
    columns = np.arange(d)
    if hasattr(sample, "indices") and d > WIDE_COLUMNS:
        used = np.unique(sample.indices)  # axes are 0 in all other columns
        if used.size > axes.shape[1]:
            columns = used
            sample = sample[:, used]
            mean = mean[used]
            axes = axes[used]
    for _ in range(POWER_STEPS):
        axes, _ = np.linalg.qr(_scatter_times(sample, mean, axes))
    _, vectors = eigh(axes.T @ _scatter_times(sample, mean, axes))
    leading = np.zeros((d, n_axes))
    leading[columns] = axes @ vectors[:, ::-1][:, :n_axes]
    return leading


def _scatter_times(sample: Matrix, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Multiply the scatter matrix of a sample by ``axes``."""
    total = np.zeros_like(axes)
    for rows in row_blocks(sample):
        scores = rows @ axes - mean @ axes
        total += rows.T @ scores - np.outer(mean, scores.sum(axis=0))
    return total

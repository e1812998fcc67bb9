"""The first pass over the rows: a uniform sample of them, and the moments of the columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.engine._run import Engine
from mmcnb.samples import CSRBlock, Samples


def as_matrix(rows: Any) -> Any:
    """A block as NumPy or SciPy knows it."""
    if not isinstance(rows, CSRBlock):
        return rows
    import scipy.sparse as sp

    return sp.csr_array(rows[:3], shape=(rows.indptr.shape[0] - 1, rows.n_features))


@dataclass(frozen=True)
class _SurveyPass:
    """The chosen rows of each block, and weighted sums of the columns and their squares."""

    rows: np.ndarray
    weights: np.ndarray | None
    moments: bool

    def start(self) -> list[Any]:
        return [[], 0.0, 0.0, 0.0]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        matrix = as_matrix(rows)
        first, last = np.searchsorted(self.rows, (start, stop))
        chosen = matrix[self.rows[first:last] - start]
        if not self.moments:
            return [chosen, 0.0, 0.0, 0.0]
        weights = np.ones(stop - start) if self.weights is None else self.weights[start:stop]
        square = (
            matrix.multiply(matrix) if isinstance(rows, CSRBlock) else np.square(matrix, dtype=np.float64)
        )
        return [chosen, weights @ matrix, weights @ square, weights.sum()]

    def combine(self, total: list[Any], partial: list[Any]) -> list[Any]:
        total[0].append(partial[0])
        return [total[0], *(a + b for a, b in zip(total[1:], partial[1:], strict=True))]


@dataclass(frozen=True)
class Survey:
    """What the first pass found.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        The rows asked for.
    mean, deviation : ndarray of shape (d,) or None
        Mean and standard deviation of the columns over all rows, where asked for.
    """

    sample: Any
    mean: np.ndarray | None = None
    deviation: np.ndarray | None = None


def survey(
    engine: Engine,
    samples: Samples,
    rows: np.ndarray,
    weights: np.ndarray | None = None,
    moments: bool = False,
) -> Survey:
    """Gather some rows, and the moments of the columns, in one pass.

    Parameters
    ----------
    engine : Engine
        Runs the pass.
    samples : Samples
        All rows.
    rows : ndarray of shape (m,), int64
        Strictly increasing row numbers.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights of the moments.
    moments : bool, default=False
        Whether the moments are wanted.

    Returns
    -------
    Survey
        The rows and the moments.
    """
    if samples.path is None and not moments:
        return Survey(as_matrix(samples.gather(rows)))
    parts, total, squares, weight = engine.run(_SurveyPass(rows, weights, moments), samples, "sample")
    if samples.is_sparse:
        import scipy.sparse as sp

        sample = sp.vstack(parts, format="csr")
    else:
        sample = np.concatenate(parts)
    if not moments:
        return Survey(sample)
    mean = np.asarray(total).ravel() / weight
    deviation = np.sqrt(np.maximum(np.asarray(squares).ravel() / weight - mean**2, 0))
    return Survey(sample, mean, deviation)

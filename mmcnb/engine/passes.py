"""Passes over the rows: gather some rows, compute moments of the columns, combine several passes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.random import sample_without_replacement

from mmcnb.engine.run import Engine, Pass
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import CSRBlock, Samples
from mmcnb.samples.derived import Scaling
from mmcnb.samples.matrix import Weights, as_matrix, column_moments, stack

SAMPLE_ROWS = 2000  # of the sample by default: `python -m benchmarks peers` and `rls`


@dataclass(frozen=True)
class WeightedPass:
    """Base of passes with sample weights.

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights; None weights all rows equally.
    """

    weights: Weights

    def weights_of(self, start: int, stop: int) -> np.ndarray:
        """Weights of the rows of a block."""
        return (
            np.ones(stop - start) if self.weights is None else self.weights[start:stop]
        )


@dataclass(frozen=True)
class SumPass(WeightedPass):
    """A pass whose totals are lists of sums, added entry by entry."""

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Sums of both."""
        return [a + b for a, b in zip(total, other, strict=True)]


@dataclass(frozen=True)
class CollectingPass:
    """A pass whose totals are lists with one entry per block, in the order of the rows."""

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """The entries of both."""
        return total + other


@dataclass(frozen=True)
class GatherPass(CollectingPass):
    """Gather some rows, given by strictly increasing numbers."""

    rows: np.ndarray

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """The rows of one block."""
        first, last = np.searchsorted(self.rows, (start, stop))
        return [as_matrix(rows)[self.rows[first:last] - start]]


@dataclass(frozen=True)
class _MomentsPass(SumPass):
    """The weight, and means of the columns and sums of their squares about the means."""

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        return column_moments(as_matrix(rows), self.weights_of(start, stop))

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        # Chan, Golub & LeVeque (1979): sums about 0 would lose all digits of columns
        # far from it.
        share = other[0] / (total[0] + other[0] or 1.0)
        step = other[1] - total[1]
        between = total[0] * share * step**2
        return [
            total[0] + other[0],
            total[1] + share * step,
            total[2] + other[2] + between,
        ]


@dataclass(frozen=True)
class CombinedPass:
    """Several passes in one sweep.

    Parameters
    ----------
    passes : tuple of Pass
        The passes; the total is the list of their totals.
    """

    passes: tuple[Pass, ...]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Totals of one block."""
        return [pass_.block(rows, start, stop) for pass_ in self.passes]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Totals of both."""
        return [
            pass_.combine(a, b)
            for pass_, a, b in zip(self.passes, total, other, strict=True)
        ]


def draw_sample(
    engine: Engine,
    samples: Samples,
    rows: np.ndarray,
    weights: Weights = None,
    moments: bool = False,
) -> tuple[Any, Scaling | None]:
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
        Whether to compute the moments.

    Returns
    -------
    sample : ndarray or csr_array of shape (m, d)
        The rows.
    scaling : Scaling or None
        Mean and standard deviation of the columns over all rows, where requested.
    """
    if not moments:
        if not samples.is_reopenable:
            return as_matrix(samples.gather(rows)), None
        return stack(engine.run(GatherPass(rows), samples, "sample")), None
    both = CombinedPass((GatherPass(rows), _MomentsPass(weights)))
    parts, sums = engine.run(both, samples, "sample")
    return stack(parts), scaling_of(*sums)


def scaling_of(weight: float, mean: np.ndarray, squares: np.ndarray) -> Scaling:
    """The scaling by the mean and the standard deviation of columns, from `column_moments`."""
    return Scaling(mean, np.sqrt(squares / weight))


def first_rows(labels: np.ndarray, n_clusters: int, start: int = 0) -> np.ndarray:
    """First row of each cluster among rows from ``start`` on; the largest int64 for an empty cluster.

    Labels of -1 are of none.
    """
    first = np.full(n_clusters + 1, np.iinfo(np.int64).max)
    present, position = np.unique(labels, return_index=True)
    first[present] = start + position
    return first[:-1]


def row_sum(rows: Any, weights: np.ndarray) -> list[Any]:
    """Weighted sum of the rows of a block, dense or CSR, in float64; and the sum of the weights."""
    if isinstance(rows, CSRBlock):
        return [weights @ as_matrix(rows), float(weights.sum())]
    sums, _ = kernels.cluster_row_sums(
        rows, np.zeros(weights.shape[0], np.int64), 1, weights
    )
    return [sums[0], float(weights.sum())]


@dataclass(frozen=True)
class RowSumPass(SumPass):
    """Weighted sum of the features, and the weight."""

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sum of one block."""
        return row_sum(rows, self.weights_of(start, stop))


def sample_rows(
    n_samples: int, size: int, weights: Weights, random_state: Any
) -> np.ndarray:
    """Uniform row numbers in rising order, of rows with a positive weight."""
    n = n_samples if weights is None else int(np.count_nonzero(weights))
    if size >= n:
        chosen = np.arange(n)
    else:
        chosen = np.sort(sample_without_replacement(n, size, random_state=random_state))
    return (
        chosen.astype(np.int64) if weights is None else np.flatnonzero(weights)[chosen]
    )

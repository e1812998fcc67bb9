"""Passes over the rows that gather rows, compute moments, or combine other passes."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.random import sample_without_replacement

from mmcnb.engine.run import Engine, Pass
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import CSRBlock, Samples
from mmcnb.samples.derived import Scaling
from mmcnb.samples.matrix import Weights, as_matrix, column_moments, stack

# Default size of a sample, chosen by `python -m benchmarks peers` and `rls`.
SAMPLE_ROWS = 2000
Block: TypeAlias = np.ndarray | CSRBlock
Matrix: TypeAlias = np.ndarray | csr_array
# Sums over the rows: numbers or arrays. Checkpoints record lists and plain tuples, so
# the totals of passes must not be named tuples.
Sums: TypeAlias = list[Any]


@dataclass(frozen=True)
class WeightedPass:
    """Base class of passes with sample weights.

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights; None weights all rows equally.
    """

    weights: Weights

    def weights_of(self, start: int, stop: int) -> np.ndarray:
        """Return the weights of the rows of a block."""
        if self.weights is None:
            return np.ones(stop - start)
        return self.weights[start:stop]


@dataclass(frozen=True)
class SumPass(WeightedPass):
    """A pass whose totals are lists of sums, added entry by entry."""

    def combine(self, total: Sums, other: Sums) -> Sums:
        """Add the sums of two ranges of rows."""
        return [a + b for a, b in zip(total, other, strict=True)]


@dataclass(frozen=True)
class CollectingPass:
    """A pass whose totals are lists with one entry per block, in row order."""

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Join the entries of two ranges of rows."""
        return total + other


@dataclass(frozen=True)
class GatherPass(CollectingPass):
    """A pass that gathers one or more rows by strictly increasing numbers."""

    rows: np.ndarray

    def block(self, rows: Block, start: int, stop: int) -> list[Matrix]:
        """Return a list with the requested rows of one block; [] if it has none."""
        first, last = np.searchsorted(self.rows, (start, stop))
        # Ten billion rows have millions of blocks, more than a sample has rows. Empty
        # arrays for most of them would take memory, and time to join them.
        if first == last:
            return []
        return [as_matrix(rows)[self.rows[first:last] - start]]


@dataclass(frozen=True)
class _MomentsPass(SumPass):
    """The total weight, and mean and sum of squares about the mean of each column."""

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        return column_moments(as_matrix(rows), self.weights_of(start, stop))

    def combine(self, total: Sums, other: Sums) -> Sums:
        # Chan, Golub & LeVeque (1979). Sums of squares about 0 would lose all digits if
        # the mean of a column is far from 0.
        weight, mean, squares = total
        other_weight, other_mean, other_squares = other
        both = weight + other_weight
        share = other_weight / (both or 1.0)
        step = other_mean - mean
        between = weight * share * step**2
        return [both, mean + share * step, squares + other_squares + between]


@dataclass(frozen=True)
class CombinedPass:
    """Several passes in one sweep.

    Parameters
    ----------
    passes : tuple of Pass
        The passes; the total is the list of their totals.
    """

    passes: tuple[Pass, ...]

    def block(self, rows: Block, start: int, stop: int) -> list[Any]:
        """Return the totals of one block."""
        return [pass_.block(rows, start, stop) for pass_ in self.passes]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Combine the totals of two ranges of rows."""
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
) -> tuple[Matrix, Scaling | None]:
    """Gather rows and, if requested, compute the moments of the columns, in one pass.

    Parameters
    ----------
    engine : Engine
        Engine that runs the pass.
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
        Mean and standard deviation of each column over all rows; None if not requested.
    """
    if not moments:
        if not samples.is_reopenable:
            return as_matrix(samples.gather(rows)), None
        return stack(engine.run(GatherPass(rows), samples, "sample")), None
    both = CombinedPass((GatherPass(rows), _MomentsPass(weights)))
    parts, moments_of_columns = engine.run(both, samples, "sample")
    return stack(parts), scaling_of(moments_of_columns)


def scaling_of(moments: Sums) -> Scaling:
    """Return the scaling by mean and standard deviation, from `column_moments`."""
    weight, mean, squares = moments
    return Scaling(mean, np.sqrt(squares / weight))


def first_rows(labels: np.ndarray, n_clusters: int, start: int = 0) -> np.ndarray:
    """Return the first row of each cluster among the rows from ``start`` on.

    For an empty cluster, the result is the largest int64. Rows with label -1 do not
    belong to a cluster.
    """
    # The label -1 indexes the additional last entry, which is dropped.
    first = np.full(n_clusters + 1, np.iinfo(np.int64).max)
    present, position = np.unique(labels, return_index=True)
    first[present] = start + position
    return first[:-1]


def row_sum(rows: Block, weights: np.ndarray) -> Sums:
    """Return the weighted sum of the rows of a block in float64, and the weight."""
    if isinstance(rows, CSRBlock):
        return [weights @ as_matrix(rows), float(weights.sum())]
    sums, _ = kernels.cluster_row_sums(
        rows, np.zeros(weights.shape[0], np.int64), 1, weights
    )
    return [sums[0], float(weights.sum())]


@dataclass(frozen=True)
class RowSumPass(SumPass):
    """Weighted sum of the features, and the total weight."""

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        """Return the sums of one block."""
        return row_sum(rows, self.weights_of(start, stop))


def sample_rows(
    n_samples: int,
    size: int,
    weights: Weights,
    random_state: int | np.random.RandomState,
) -> np.ndarray:
    """Draw rows with a positive weight uniformly; return increasing row numbers."""
    n = n_samples if weights is None else int(np.count_nonzero(weights))
    if size >= n:
        drawn = np.arange(n)
    else:
        drawn = np.sort(sample_without_replacement(n, size, random_state=random_state))
    if weights is None:
        return drawn.astype(np.int64)
    return np.flatnonzero(weights)[drawn]

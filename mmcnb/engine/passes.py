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

# Default number of rows of the sample, chosen with `python -m benchmarks peers` and
# `python -m benchmarks rls`.
SAMPLE_ROWS = 2000
Block: TypeAlias = np.ndarray | CSRBlock
Matrix: TypeAlias = np.ndarray | csr_array
# Sums over rows, which are numbers or arrays. Checkpoints record named tuples as plain
# tuples, so the totals of passes must be lists or plain tuples.
Sums: TypeAlias = list[Any]


@dataclass(frozen=True)
class WeightedPass:
    """Base class of passes with sample weights.

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights. If None, all rows have weight 1.
    """

    weights: Weights

    def weights_of(self, start: int, stop: int) -> np.ndarray:
        """Return the weights of the rows of a block."""
        if self.weights is None:
            return np.ones(stop - start)
        return self.weights[start:stop]


@dataclass(frozen=True)
class SumPass(WeightedPass):
    """A pass whose totals are lists of sums, which are added element by element."""

    def combine(self, total: Sums, other: Sums) -> Sums:
        """Add the sums for two adjacent ranges of rows."""
        return [a + b for a, b in zip(total, other, strict=True)]


@dataclass(frozen=True)
class CollectingPass:
    """A pass whose totals are lists with one entry per block, in row order."""

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Concatenate the lists for two adjacent ranges of rows."""
        return total + other


@dataclass(frozen=True)
class GatherPass(CollectingPass):
    """A pass that gathers rows by their numbers.

    Parameters
    ----------
    rows : ndarray of shape (m,), int64
        Strictly increasing numbers of the rows to gather, with m of at least 1.
    """

    rows: np.ndarray

    def block(self, rows: Block, start: int, stop: int) -> list[Matrix]:
        """Return the requested rows of one block as a list of at most one matrix.

        The list is empty if the block contains no requested rows.
        """
        first, last = np.searchsorted(self.rows, (start, stop))
        # Ten billion rows have millions of blocks, more than the sample has rows. Empty
        # arrays for most blocks would take memory, and time to concatenate them.
        if first == last:
            return []
        return [as_matrix(rows)[self.rows[first:last] - start]]


@dataclass(frozen=True)
class _MomentsPass(SumPass):
    """A pass that computes the total weight and, per column, the moments.

    The moments are the weighted mean, and the weighted sum of squared deviations from
    the mean.
    """

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        return column_moments(as_matrix(rows), self.weights_of(start, stop))

    def combine(self, total: Sums, other: Sums) -> Sums:
        # Update of Chan, Golub & LeVeque (1979). Sums of squares about 0 would lose all
        # significant digits if the mean of a column is far from 0.
        weight, mean, squares = total
        other_weight, other_mean, other_squares = other
        both = weight + other_weight
        share = other_weight / (both or 1.0)
        step = other_mean - mean
        between = weight * share * step**2
        return [both, mean + share * step, squares + other_squares + between]


@dataclass(frozen=True)
class CombinedPass:
    """A pass that runs several passes while the rows are read once.

    Its total is the list of the totals of these passes.

    Parameters
    ----------
    passes : tuple of Pass
        The passes to run.
    """

    passes: tuple[Pass, ...]

    def block(self, rows: Block, start: int, stop: int) -> list[Any]:
        """Return the total of one block for each pass."""
        return [pass_.block(rows, start, stop) for pass_ in self.passes]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Combine the totals of two ranges of rows for each pass."""
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
        Strictly increasing numbers of the rows to gather.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights for the moments. If None, all rows have weight 1.
    moments : bool, default=False
        Whether to compute the moments.

    Returns
    -------
    sample : ndarray or csr_array of shape (m, d)
        The gathered rows.
    scaling : Scaling or None
        Mean and standard deviation of each column over all rows, or None if ``moments``
        is False.
    """
    if not moments:
        if not samples.is_reopenable:
            return as_matrix(samples.gather(rows)), None
        return stack(engine.run(GatherPass(rows), samples, "sample")), None
    both = CombinedPass((GatherPass(rows), _MomentsPass(weights)))
    parts, moments_of_columns = engine.run(both, samples, "sample")
    return stack(parts), scaling_of(moments_of_columns)


def scaling_of(moments: Sums) -> Scaling:
    """Return the mean and standard deviation of columns, given their moments.

    Parameters
    ----------
    moments : list
        Total weight, means, and sums of squares about the means, in the form that
        `column_moments` returns.
    """
    weight, mean, squares = moments
    return Scaling(mean, np.sqrt(squares / weight))


def first_rows(labels: np.ndarray, n_clusters: int, start: int = 0) -> np.ndarray:
    """Return the number of the first row of each cluster.

    Parameters
    ----------
    labels : ndarray of shape (m,)
        Labels of the consecutive rows that begin with row ``start``. Rows with label -1
        do not belong to a cluster.
    n_clusters : int
        Number of clusters.
    start : int, default=0
        Number of the row to which the first label belongs.

    Returns
    -------
    ndarray of shape (n_clusters,), int64
        Number of the first row of each cluster, or the largest int64 if a cluster has
        no rows.
    """
    # The label -1 indexes an additional last entry, which is dropped.
    first = np.full(n_clusters + 1, np.iinfo(np.int64).max)
    present, position = np.unique(labels, return_index=True)
    first[present] = start + position
    return first[:-1]


def row_sum(rows: Block, weights: np.ndarray) -> Sums:
    """Return the weighted sum of the rows of a block, and their total weight."""
    if isinstance(rows, CSRBlock):
        return [weights @ as_matrix(rows), float(weights.sum())]
    sums, _ = kernels.cluster_row_sums(
        rows, np.zeros(weights.shape[0], np.int64), 1, weights
    )
    return [sums[0], float(weights.sum())]


@dataclass(frozen=True)
class RowSumPass(SumPass):
    """A pass for the weighted sum of the rows and their total weight."""

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        """Return the weighted sum of the rows of one block, and their total weight."""
        return row_sum(rows, self.weights_of(start, stop))


def sample_rows(
    n_samples: int,
    size: int,
    weights: Weights,
    random_state: int | np.random.RandomState,
) -> np.ndarray:
    """Draw row numbers at random, and return them in increasing order.

    Rows are drawn uniformly without replacement from the rows with a positive weight.
    If at most ``size`` rows have a positive weight, all their numbers are returned.
    """
    n = n_samples if weights is None else int(np.count_nonzero(weights))
    if size >= n:
        drawn = np.arange(n)
    else:
        drawn = np.sort(sample_without_replacement(n, size, random_state=random_state))
    if weights is None:
        return drawn.astype(np.int64)
    return np.flatnonzero(weights)[drawn]

"""Passes that look at the rows once: some rows by number, the moments of the columns, several at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.engine._run import Engine, Pass
from mmcnb.samples import CSRBlock, Samples


def as_matrix(rows: Any) -> Any:
    """A block as NumPy or SciPy knows it."""
    if not isinstance(rows, CSRBlock):
        return rows
    import scipy.sparse as sp

    return sp.csr_array(rows[:3], shape=(rows.indptr.shape[0] - 1, rows.n_features))


def stack(parts: list[Any]) -> Any:
    """Matrices one below the other."""
    if hasattr(parts[0], "indptr"):
        import scipy.sparse as sp

        return sp.vstack(parts, format="csr")
    return np.concatenate(parts)


@dataclass(frozen=True)
class GatherPass:
    """Some rows, given by strictly increasing numbers."""

    rows: np.ndarray

    def start(self) -> list[Any]:
        """No rows."""
        return []

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """The rows of one block."""
        first, last = np.searchsorted(self.rows, (start, stop))
        return [as_matrix(rows)[self.rows[first:last] - start]]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """The rows of both."""
        return total + other


@dataclass(frozen=True)
class _MomentsPass:
    """Weighted sums of the columns and of their squares, and the weight."""

    weights: np.ndarray | None

    def start(self) -> list[Any]:
        return [0.0, 0.0, 0.0]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        matrix = as_matrix(rows)
        weights = np.ones(stop - start) if self.weights is None else self.weights[start:stop]
        square = (
            matrix.multiply(matrix) if isinstance(rows, CSRBlock) else np.square(matrix, dtype=np.float64)
        )
        return [weights @ matrix, weights @ square, weights.sum()]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        return [a + b for a, b in zip(total, other, strict=True)]


@dataclass(frozen=True)
class Together:
    """Several passes in one sweep.

    Parameters
    ----------
    passes : tuple of Pass
        The passes; the total is the list of their totals.
    """

    passes: tuple[Pass, ...]

    def start(self) -> list[Any]:
        """Totals of no rows."""
        return [pass_.start() for pass_ in self.passes]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Totals of one block."""
        return [pass_.block(rows, start, stop) for pass_ in self.passes]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Totals of both."""
        return [pass_.combine(a, b) for pass_, a, b in zip(self.passes, total, other, strict=True)]


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
    if not moments:
        if not samples.travels:
            return Survey(as_matrix(samples.gather(rows)))
        return Survey(stack(engine.run(GatherPass(rows), samples, "sample")))
    both = Together((GatherPass(rows), _MomentsPass(weights)))
    parts, (total, squares, weight) = engine.run(both, samples, "sample")
    mean = np.asarray(total).ravel() / weight
    deviation = np.sqrt(np.maximum(np.asarray(squares).ravel() / weight - mean**2, 0))
    return Survey(stack(parts), mean, deviation)

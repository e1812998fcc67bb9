"""Basis vectors of a mean in the space of a Gaussian kernel (Wu & Zhang, Alg. 4), in linear storage.

Ψ = 1/n Σ z_i φ(x_i) becomes Σ β_j φ(b_j) with few b_j. Each is a fixed point on the
residual of those before. All sums over rows are passes over blocks: one read a step,
and nothing but z has the size of the rows.
"""

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mmcnb._config import generator
from mmcnb._constraints import Interval
from mmcnb._docstrings import fill_docstrings
from mmcnb.engine.checkpoint import (
    Checkpoint,
    CheckpointEngine,
    environment,
    fingerprint,
)
from mmcnb.engine.passes import SumPass, row_sum
from mmcnb.engine.run import Engine
from mmcnb.engine.session import open_engine
from mmcnb.errors import InputError
from mmcnb.features.kernel import Kernel
from mmcnb.samples import BLOCK_ROWS, CSRBlock, Samples, open_samples
from mmcnb.samples.arrays import plain_values
from mmcnb.samples.matrix import as_matrix, to_dense

# of a fixed point; another start if the denominator of (47) vanishes
MOST_STEPS = 50
MOST_STARTS = 4
AVERAGED_ROWS = 5  # whose mean is the first start
VANISHED = 1e-12


class BasisEstimate(NamedTuple):
    """The basis vectors of a mean.

    Attributes
    ----------
    basis : ndarray of shape (n_basis, n_features), float64
        The vectors b_j.
    beta : ndarray of shape (n_basis,), float64
        Their coefficients.
    mse : float or None
        |Ψ - Σ β_j φ(b_j)|², eq. (43); None if it was not asked for.
    n_iter : int
        Steps of all fixed points: each reads the rows once.
    """

    basis: np.ndarray
    beta: np.ndarray
    mse: float | None
    n_iter: int


@dataclass(frozen=True)
class FixedPointPass(SumPass):
    """Sums of z_i K(x_i, b) x_i and of z_i K(x_i, b), eq. (47); the weights are z.

    Parameters
    ----------
    kernel : Kernel
        A Gaussian kernel.
    b : ndarray of shape (1, d)
        The point.
    """

    kernel: Kernel
    b: np.ndarray

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        values = self.kernel(_precise(rows), self.b)[:, 0]
        return row_sum(rows, self.weights_of(start, stop) * values)


@dataclass(frozen=True)
class ProjectionPass(SumPass):
    """K(b, x) z for a basis; the weights are z.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    basis : ndarray of shape (p, d)
        The basis.
    """

    kernel: Kernel
    basis: np.ndarray

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        return [self.weights_of(start, stop) @ self.kernel(_precise(rows), self.basis)]


@fill_docstrings
def estimate_basis(
    X: Any,
    coefficients: ArrayLike,
    *,
    gamma: float,
    n_basis: int = 1,
    delta: float = 0.01,
    tol: float | None = None,
    random_state: Any = None,
    engine: Any = None,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    element: str | None = None,
) -> BasisEstimate:
    """Estimate the basis vectors of Ψ = 1/n Σ z_i φ(x_i) under a Gaussian kernel, in linear storage.

    Rows are streamed: a fixed point takes about ten reads. Results do not depend on
    where the rows lie, on chunks or on threads.

    Parameters
    ----------
    X : {rows}
        The rows x_i.
    coefficients : array-like of shape (n_samples,)
        z: such as y of a cutting plane's rows, and 0 elsewhere.
    gamma : float
        1/(2 sigma²) of the kernel exp(-gamma |x - b|²).
    n_basis : int, default=1
        Most basis vectors, N.
    delta : float, default=0.01
        A fixed point ends after a step of at most delta sigma² in squared distance.
    tol : float or None, default=None
        No vector follows one after which eps_MSE (43) is at most this. It takes the
        kernel between all pairs of rows, so that time grows with n_samples². None takes
        ``n_basis`` vectors.
    random_state : int, RandomState or None, default=None
        Draws the rows whose mean is a start.
    engine : None, str or dask.distributed.Client, default=None
        Where passes run, as in the estimators.
    n_jobs : int or None, default=None
        Number of threads.
    checkpoint : path or None, default=None
        Folder that records passes; with the same arguments an interrupted call goes on
        there.
    {element}

    Returns
    -------
    BasisEstimate
        Basis vectors, coefficients, eps_MSE if ``tol`` is given, and the number of
        steps.

    Raises
    ------
    InputError
        If the coefficients are not one finite number a row or all 0, or there are more
        vectors than rows.

    References
    ----------
    J. Wu and X.-L. Zhang, Sparse kernel maximum margin clustering, Alg. 4 and eq. (43)
    to (49).

    Examples
    --------
    >>> import numpy as np
    >>> import mmcnb
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) + [3.0, 0.0]
    >>> found = mmcnb.estimate_basis(X, np.ones(500), gamma=0.1, random_state=0)
    >>> found.basis.round(0) + 0.0, found.beta.round(1)
    (array([[3., 0.]]), array([0.8]))
    """
    samples = open_samples(X, element)
    z = plain_values(coefficients, "coefficients").astype(np.float64)
    Interval(0.0, open_low=True).check("gamma", gamma)
    Interval(0.0, open_low=True).check("delta", delta)
    Interval(0.0, optional=True).check("tol", tol)
    Interval(1, samples.n_samples, integer=True).check("n_basis", n_basis)
    if z.shape != (samples.n_samples,):
        fault = f"coefficients has the shape {z.shape} for {samples.n_samples} rows"
        raise InputError(f"{fault}; give one number a row.")
    if not np.isfinite(z).all() or not z.any():
        raise InputError(
            "coefficients has values that are not finite, or zeros alone; give finite ones."
        )
    state = generator(random_state)
    record: Any = nullcontext()
    if checkpoint is not None:
        seed = fingerprint(state.get_state())
        given = {
            "gamma": gamma,
            "n_basis": n_basis,
            "delta": delta,
            "tol": tol,
            "random_state": seed,
        }
        rows = {
            "the rows": {"digest": samples.digest},
            "the coefficients": {"digest": fingerprint(z)},
        }
        record = Checkpoint(checkpoint, given | rows | environment())
    with open_engine(engine, n_jobs, show_progress=None) as runs, record as kept:
        passes = runs if kept is None else CheckpointEngine(runs, kept)
        return estimated(
            passes, samples, z, Kernel("rbf", float(gamma)), state, n_basis, delta, tol
        )


def estimated(
    engine: Engine,
    samples: Samples,
    z: np.ndarray,
    kernel: Kernel,
    random_state: np.random.RandomState,
    n_basis: int = 1,
    delta: float = 0.01,
    tol: float | None = None,
) -> BasisEstimate:
    """`estimate_basis` of opened samples, by an engine."""
    n = samples.n_samples
    n_iter = 0
    mse = None
    basis = np.empty((0, samples.n_features))
    beta = np.empty(0)
    whole = None if tol is None else _squared_norm(engine, samples, z, kernel)

    def sums(b: np.ndarray) -> tuple[np.ndarray, float]:
        """The two sums of (46): of the rows, less those of the basis so far."""
        total, weight = engine.run(
            FixedPointPass(z, kernel, b[None]), samples, "basis vector"
        )
        of_basis = n * beta * kernel(basis, b[None])[:, 0]
        return np.asarray(total).ravel() - of_basis @ basis, float(
            weight - of_basis.sum()
        )

    def mean_of(count: int) -> np.ndarray:
        rows = np.unique(random_state.randint(n, size=count))
        return to_dense(as_matrix(samples.gather(rows))).mean(axis=0, dtype=np.float64)

    while len(basis) < n_basis and (mse is None or tol is None or mse > tol):
        b, steps = _fixed_point(sums, mean_of, delta / (2 * kernel.gamma), VANISHED * n)
        basis = np.vstack([basis, b])
        n_iter = n_iter + steps
        products = (
            engine.run(ProjectionPass(z, kernel, basis), samples, "coefficients")[0] / n
        )
        between = kernel(basis, basis)
        beta = np.linalg.pinv(between, hermitian=True) @ products  # (49)
        mse = (
            None
            if whole is None
            else max(0.0, whole - 2 * beta @ products + beta @ between @ beta)
        )
    return BasisEstimate(basis, beta, mse, n_iter)


def _fixed_point(
    sums: Any, mean_of: Any, least_step: float, vanished: float
) -> tuple[np.ndarray, int]:
    """The point where one Gaussian bump is most like the residual, and the number of steps.

    Signs in z are mixed, so that the denominator can vanish: then there is another
    start. Steps are capped, and the best point of all is taken.
    """
    steps = 0
    highest = -1.0
    for start in range(MOST_STARTS):
        b = mean_of(1 if start else AVERAGED_ROWS)
        for _ in range(MOST_STEPS):
            total, weight = sums(b)
            steps += 1
            if abs(weight) > highest:
                best = b
                highest = abs(weight)
            if abs(weight) < vanished:
                break
            moved = float(((total / weight - b) ** 2).sum())
            b = total / weight
            if moved <= least_step:
                return best, steps
    return best, steps


def _squared_norm(
    engine: Engine, samples: Samples, z: np.ndarray, kernel: Kernel
) -> float:
    """|Ψ|², from the kernel between all pairs of rows."""
    total = 0.0
    for start in range(0, samples.n_samples, BLOCK_ROWS):
        part = slice(start, min(start + BLOCK_ROWS, samples.n_samples))
        rows = to_dense(as_matrix(samples.block(part.start, part.stop))).astype(
            np.float64
        )
        total += (
            z[part]
            @ engine.run(ProjectionPass(z, kernel, rows), samples, "squared norm")[0]
        )
    return float(total) / samples.n_samples**2


def _precise(rows: Any) -> Any:
    return rows if isinstance(rows, CSRBlock) else rows.astype(np.float64)

"""Estimate basis vectors of a mean in the feature space of a Gaussian kernel.

The method is Alg. 4 of Wu & Zhang. Ψ = 1/n Σ z_i φ(x_i) is approximated by Σ β_j φ(b_j)
with few vectors b_j. Each b_j is the result of a fixed-point iteration on the residual
Ψ - Σ β_i φ(b_i) of the previous vectors b_i. All sums over rows are computed block by
block, and each step of a fixed-point iteration is one pass over the data. Only z has
one entry per row, so memory is linear in the number of rows.
"""

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mmcnb._config import generator
from mmcnb._constraints import Interval
from mmcnb._docstrings import fill_docstrings
from mmcnb.engine.checkpoint import Checkpoint, CheckpointEngine, environment
from mmcnb.engine.entries import fingerprint
from mmcnb.engine.passes import SumPass, Sums, row_sum
from mmcnb.engine.plan import FitNeeds, FitPlan, RowShape, plan_passes
from mmcnb.engine.run import Engine
from mmcnb.engine.session import open_engine
from mmcnb.errors import InputError
from mmcnb.features.kernel import Kernel
from mmcnb.samples import BLOCK_ROWS, CSRBlock, Samples, open_samples
from mmcnb.samples.arrays import plain_values
from mmcnb.samples.matrix import Block, as_matrix, to_dense

if TYPE_CHECKING:
    from distributed import Client

MOST_STEPS = 50  # maximum number of steps of a fixed-point iteration
LIKELY_STEPS = 11  # typical number of steps, which the plan assumes
# Compiled routines and their compile times in seconds, as in `FitNeeds`.
ROUTINES = {"rbf_kernel_block_into": 3.5}
# Maximum number of starting points. The iteration restarts if the denominator of (47)
# vanishes.
MOST_STARTS = 4
AVERAGED_ROWS = 5  # the first starting point is the mean of this many rows
VANISHED = 1e-12  # a denominator below this value times n is treated as 0


class BasisEstimate(NamedTuple):
    """The result of `estimate_basis`.

    Attributes
    ----------
    basis : ndarray of shape (n_basis, n_features), float64
        The basis vectors b_j.
    beta : ndarray of shape (n_basis,), float64
        The coefficients β_j of the basis vectors.
    mse : float or None
        The error |Ψ - Σ β_j φ(b_j)|², eq. (43); None if ``tol`` was None.
    n_iter : int
        Total number of steps of all fixed-point iterations. Each step is one pass over
        the rows.
    """

    basis: np.ndarray
    beta: np.ndarray
    mse: float | None
    n_iter: int


@dataclass(frozen=True)
class RowCoefficients:
    """Coefficients z of rows, computed in float64 block by block.

    Parameters
    ----------
    factors : tuple of ndarray of shape (n,)
        Arrays whose element-wise product is z. The first array can have any numeric
        dtype.
    """

    factors: tuple[np.ndarray, ...]

    def __getitem__(self, rows: slice) -> np.ndarray:
        first, *others = (factor[rows] for factor in self.factors)
        for factor in others:
            first = first * factor
        return first.astype(np.float64)


@dataclass(frozen=True)
class FixedPointPass(SumPass):
    """Pass that sums z_i K(x_i, b) x_i and z_i K(x_i, b), eq. (47); the weights are z.

    Parameters
    ----------
    kernel : Kernel
        A Gaussian kernel.
    b : ndarray of shape (1, d)
        The current point of the iteration.
    """

    kernel: Kernel
    b: np.ndarray

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        """Return the sums over the rows of one block."""
        values = self.kernel(_precise(rows), self.b)[:, 0]
        return row_sum(rows, self.weights_of(start, stop) * values)


@dataclass(frozen=True)
class ProjectionPass(SumPass):
    """Pass that sums z_i K(x_i, b) for each basis vector b; the weights are z.

    Parameters
    ----------
    kernel : Kernel
        The kernel function K.
    basis : ndarray of shape (p, d)
        The basis vectors.
    """

    kernel: Kernel
    basis: np.ndarray

    def block(self, rows: Block, start: int, stop: int) -> Sums:
        """Return the sums over the rows of one block."""
        values = self.kernel(_precise(rows), self.basis)
        return [self.weights_of(start, stop) @ values]


@fill_docstrings
def estimate_basis(  # noqa: PLR0913
    X: Any,
    coefficients: ArrayLike,
    *,
    gamma: float,
    n_basis: int = 1,
    delta: float = 0.01,
    tol: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    engine: "str | Client | None" = None,
    n_jobs: int | None = None,
    memory_limit: str | int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    element: str | None = None,
) -> BasisEstimate:
    """Estimate basis vectors of the mean Ψ = 1/n Σ z_i φ(x_i) for a Gaussian kernel.

    Ψ is approximated by Σ β_j φ(b_j) with at most ``n_basis`` vectors b_j. Rows are
    streamed, and memory is linear in their number. Each basis vector is the result of a
    fixed-point iteration, which takes about ten passes over the rows. The results do
    not depend on how the rows are stored, on the chunk size, or on the number of
    threads.

    Parameters
    ----------
    X : {rows}
        The rows x_i.
    coefficients : array-like of shape (n_samples,)
        Coefficients z_i of the rows. For the basis vector of a cutting plane, these are
        the labels y_i of its rows, and 0 for all other rows.
    gamma : float
        Parameter gamma = 1/(2 sigma²) of the kernel exp(-gamma |x - b|²).
    n_basis : int, default=1
        Maximum number of basis vectors, the N of the paper.
    delta : float, default=0.01
        Tolerance of a fixed-point iteration, which ends when the squared length of a
        step is at most delta sigma².
    tol : float or None, default=None
        Stop adding basis vectors when eps_MSE, eq. (43), is at most ``tol``. This needs
        the kernel between all pairs of rows, so the time grows with the square of
        n_samples. None always computes ``n_basis`` vectors.
    random_state : int, RandomState or None, default=None
        Seed for drawing the rows from which the iterations start.
    engine : None, str or dask.distributed.Client, default=None
        Engine that runs the passes over the rows, as in the estimators.
    n_jobs : int or None, default=None
        Number of threads, as in the estimators.
    memory_limit : str, int or None, default=None
        Limit on the resident memory of the process, including the coefficients, in
        bytes or as text such as ``"512MiB"``. None uses the setting of `mmcnb.config`
        or, without one, half of the free memory. If the blocks of all threads do not
        fit, fewer threads run.
    checkpoint : path or None, default=None
        Folder to which the results of the passes are written. After an interruption,
        calling the function again with the same arguments resumes the computation.
    {element}

    Returns
    -------
    BasisEstimate
        The basis vectors, their coefficients, eps_MSE if ``tol`` was passed, and the
        number of steps.

    Raises
    ------
    InputError
        If ``coefficients`` does not have one finite number per row, if all coefficients
        are 0, if ``n_basis`` is larger than the number of rows, or if the memory limit
        is too small.

    See Also
    --------
    basis_plan : Estimate the passes over the data and the peak memory of this function.

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
    z = plain_values(coefficients, "coefficients")
    if z.dtype.kind not in "biuf":
        z = z.astype(np.float64)
    Interval(0.0, open_low=True).check("gamma", gamma)
    Interval(0.0, open_low=True).check("delta", delta)
    Interval(0.0, optional=True).check("tol", tol)
    Interval(1, samples.n_samples, integer=True).check("n_basis", n_basis)
    if z.shape != (samples.n_samples,):
        raise InputError(
            f"coefficients has the shape {z.shape} for {samples.n_samples} rows; "
            "pass one number per row."
        )
    if not np.isfinite(z).all() or not z.any():
        raise InputError(
            "coefficients has values that are not finite, or only zeros; "
            "pass finite values."
        )
    state = generator(random_state)
    record: Checkpoint | nullcontext[None] = nullcontext()
    if checkpoint is not None:
        arguments = {
            "gamma": gamma,
            "n_basis": n_basis,
            "delta": delta,
            "tol": tol,
            "random_state": fingerprint(state.get_state()),
            "the rows": {"digest": samples.digest},
            "the coefficients": {"digest": fingerprint(z)},
        }
        record = Checkpoint(checkpoint, arguments | environment())
    rows = RowShape.of(samples, n_jobs)
    needs = _needs(rows, n_basis, tol, z.nbytes)
    plan = plan_passes(rows, needs, memory_limit, n_jobs)
    plan.compile_ahead()
    with (
        open_engine(engine, plan.threads, show_progress=None) as opened,
        record as journal,
    ):
        recorded = opened if journal is None else CheckpointEngine(opened, journal)
        formed = RowCoefficients((z,))
        mean = KernelMean(recorded, samples, formed, Kernel("rbf", float(gamma)))
        return mean.estimate(state, n_basis, delta, tol)


@fill_docstrings
def basis_plan(
    X: Any,
    *,
    n_basis: int = 1,
    tol: float | None = None,
    memory_limit: str | int | None = None,
    n_jobs: int | None = None,
    element: str | None = None,
) -> FitPlan:
    """Estimate the passes and the peak memory of `estimate_basis`, without running it.

    The plan assumes that the coefficient of a row takes eight bytes.

    Parameters
    ----------
    X : {rows}
        The rows, or a `RowShape` if the rows do not exist yet.
    n_basis : int, default=1
        Maximum number of basis vectors.
    tol : float or None, default=None
        Tolerance of eps_MSE, as in `estimate_basis`.
    memory_limit : str, int or None, default=None
        Limit on the resident memory, as in `estimate_basis`.
    n_jobs : int or None, default=None
        Number of threads, as in `estimate_basis`.
    {element}

    Returns
    -------
    FitPlan
        The estimated memory, passes over the data, and time.

    Raises
    ------
    MemoryLimitError
        If the memory limit is too small. The message gives the smallest limit that
        works.

    Examples
    --------
    >>> import numpy as np
    >>> import mmcnb
    >>> plan = mmcnb.basis_plan(np.zeros((500, 2)), memory_limit="1GiB")
    >>> plan.peak < 2**30
    True
    """
    rows = X
    if not isinstance(X, RowShape):
        rows = RowShape.of(open_samples(X, element), n_jobs)
    needs = _needs(rows, n_basis, tol, 8 * rows.n_samples)
    return plan_passes(rows, needs, memory_limit, n_jobs)


def _needs(
    rows: RowShape, n_basis: int, tol: float | None, coefficient_bytes: float
) -> FitNeeds:
    """Return the memory and work that `estimate_basis` needs."""
    compared = n_basis if tol is None else max(n_basis, BLOCK_ROWS)
    # A block in float64, its kernel values, and products of the same size.
    values = BLOCK_ROWS * (rows.n_features + 2 * compared)
    # One byte per row is the mask that `isfinite` returns for the coefficients.
    return FitNeeds(
        sample_bytes=coefficient_bytes + rows.n_samples + 16.0 * compared**2,
        thread_bytes=8.0 * values,
        reads=0,
        sweeps=n_basis * (MOST_STARTS * MOST_STEPS + 1),
        likely_sweeps=n_basis * LIKELY_STEPS,
        routines=ROUTINES,
    )


@dataclass(frozen=True)
class KernelMean:
    """The kernel mean Ψ = 1/n Σ z_i φ(x_i), evaluated by passes over the rows x_i.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    samples : Samples
        The rows x_i.
    z : RowCoefficients, ndarray of shape (n,) or None
        Coefficients of the rows; None sets all of them to 1.
    kernel : Kernel
        A Gaussian kernel.
    """

    engine: Engine
    samples: Samples
    z: Any
    kernel: Kernel

    def estimate(
        self,
        random_state: np.random.RandomState,
        n_basis: int = 1,
        delta: float = 0.01,
        tol: float | None = None,
    ) -> BasisEstimate:
        """Estimate basis vectors that approximate Ψ.

        The parameters are described in `estimate_basis`.
        """
        n = self.samples.n_samples
        n_iter = 0
        mse = None
        basis = np.empty((0, self.samples.n_features))
        beta = np.empty(0)
        if tol is not None:
            squared_norm = self._squared_norm()

        def sums(b: np.ndarray) -> tuple[np.ndarray, float]:
            """Return the sums of eq. (46) over the rows minus those over the basis."""
            of_rows = FixedPointPass(self.z, self.kernel, b[None])
            total, weight = self.engine.run(of_rows, self.samples, "basis vector")
            similarity = self.kernel(basis, b[None])[:, 0]
            of_basis = n * beta * similarity
            rest = np.asarray(total).ravel() - of_basis @ basis
            return rest, float(weight - of_basis.sum())

        def start(count: int) -> np.ndarray:
            rows = np.unique(random_state.randint(n, size=count))
            drawn = to_dense(as_matrix(self.samples.gather(rows)))
            return drawn.mean(axis=0, dtype=np.float64)

        least_step = delta / (2 * self.kernel.gamma)
        for _ in range(n_basis):
            b, steps = _fixed_point(sums, start, least_step, VANISHED * n)
            n_iter += steps
            basis = np.vstack([basis, b])
            products = self._products(basis, "coefficients") / n
            gram = self.kernel(basis, basis)
            beta = np.linalg.pinv(gram, hermitian=True) @ products  # (49)
            if tol is not None:
                residual = squared_norm - 2 * beta @ products + beta @ gram @ beta
                mse = max(0.0, residual)  # (43)
                if mse <= tol:
                    break
        return BasisEstimate(basis, beta, mse, n_iter)

    def _products(self, basis: np.ndarray, stage: str) -> np.ndarray:
        """Return n <Ψ, φ(b)> for each basis vector b."""
        projection = ProjectionPass(self.z, self.kernel, basis)
        return self.engine.run(projection, self.samples, stage)[0]

    def _squared_norm(self) -> float:
        """Return |Ψ|², computed from the kernel values of all pairs of rows."""
        total = 0.0
        n = self.samples.n_samples
        for start in range(0, n, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, n)
            rows = to_dense(as_matrix(self.samples.block(start, stop)))
            products = self._products(rows.astype(np.float64), "squared norm")
            total += self.z[start:stop] @ products
        return float(total) / n**2


def _fixed_point(
    sums: Callable[[np.ndarray], tuple[np.ndarray, float]],
    start: Callable[[int], np.ndarray],
    least_step: float,
    vanished: float,
) -> tuple[np.ndarray, int]:
    """Return the point b with the largest |<r, φ(b)>| of all steps, and their number.

    Here r is the residual of Ψ, and n <r, φ(b)> is the denominator of (47). If z has
    positive and negative entries, the denominator can vanish; the iteration then
    restarts from a random row. There are at most ``MOST_STARTS`` starting points, with
    at most ``MOST_STEPS`` steps each.
    """
    steps = 0
    highest = -1.0
    for attempt in range(MOST_STARTS):
        b = start(1 if attempt else AVERAGED_ROWS)
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


def _precise(rows: Block) -> Block:
    return rows if isinstance(rows, CSRBlock) else rows.astype(np.float64)

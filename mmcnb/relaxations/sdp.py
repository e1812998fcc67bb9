"""Maximum margin clustering as an SDP, by a path of centres in a few variables a row.

Labels y enter the margin by M = y y' alone. Relaxed to M positive semidefinite with ones on its diagonal,
the widest margin through the mean of the rows, K their centred kernel matrix, is a convex problem:

    min over M  max over α   e'α - 1/2 α'(K∘M)α      s.t.  0 <= α_i <= u_i,  diag M = 1,  s'M s <= balance²

With multipliers μ, ν of the box the inner maximum is the least δ for which [K∘M, e+μ-ν; ., δ-2u'ν] is
positive semidefinite, over two: the form that is handed to general solvers, with n²/2 variables. Maximum and
minimum change places, though, and the elliptope has a dual with n variables z and one t for the balance:

    max   e'α - 1/2 e'z - 1/2 balance² t      s.t.  S = diag z + t s s' - diag α K diag α  >= 0,   t >= 0

The region is convex (S is a Schur complement), -log det S is its barrier, and its centres are found by
Newton's method on 2n + 1 numbers, a step of the order of n³; M is a multiple of the inverse of S.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import piqp
from scipy.linalg import cho_factor, cho_solve, lapack

from mmcnb.engine.run import single_threaded
from mmcnb.engine.session import Record, ignore
from mmcnb.features.rules import balanced_threshold, signs
from mmcnb.hinge.qp import TOLERANCES, PlaneQPError

TOLERANCE = 1e-6  # gap between primal and dual, as a share of the optimum
MOST_STEPS = 2000  # of Newton's method; what ends takes some hundreds
CLOSE, CENTRED = 1.0, 1e-6  # squared Newton decrement on the way, and at the end
FASTEST, SLOWEST = 10.0, 1.5  # factors by which the path may be followed


@dataclass(frozen=True)
class LabelMatrix:
    """The optimum of the relaxation.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        M: positive definite, with ones on its diagonal as far as the tolerance.
    multipliers : ndarray of shape (n,)
        α, one a row.
    value : float
        Value of the dual: no labels in balance have a smaller objective.
    gap : float
        How far the optimum can lie above ``value``, at the centre.
    steps : int
        Newton steps.
    converged : bool
        Whether the gap is within the tolerance.
    """

    matrix: np.ndarray
    multipliers: np.ndarray
    value: float
    gap: float
    steps: int
    converged: bool


def solve_label_matrix(
    gram: np.ndarray,
    bounds: np.ndarray,
    shares: np.ndarray,
    balance: float,
    record: Record = ignore,
) -> LabelMatrix:
    """Solve the relaxation.

    For M of rank one s'M s <= balance² is abs(s'y) <= balance, the papers' constraint on labels; for others
    it implies their abs(M s) <= balance in every row, and so bounds the objective at least as closely.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Centred kernel matrix.
    bounds : ndarray of shape (n,)
        Upper bounds u of the multipliers, above 0: C times the weight of the row.
    shares : ndarray of shape (n,)
        Share of each row in the weight, above 0.
    balance : float
        l/n: bound of abs(s'y).
    record : callable, default=ignore
        Takes a row after each centre: Newton steps so far, value of the dual and gap.

    Returns
    -------
    LabelMatrix
        M, multipliers, value and gap; ``converged`` is False where rounding errors ended the path early.

    References
    ----------
    L. Xu, J. Neufeld, B. Larson and D. Schuurmans, Maximum margin clustering, NIPS 2004, eq. (8).

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.relaxations.sdp import solve_label_matrix
    >>> found = solve_label_matrix(np.array([[1.0, -1], [-1, 1]]), np.ones(2), np.full(2, 0.5), 0.0)
    >>> found.matrix.round(3), round(found.value, 3)
    (array([[ 1., -1.],
           [-1.,  1.]]), 0.5)
    """
    with single_threaded("blas"):  # the same bits on any machine
        return _follow(_Barrier(gram, bounds, shares, balance), record)


def leading_labels(matrix: np.ndarray, shares: np.ndarray, balance: float) -> tuple[np.ndarray, float]:
    """Signs of the leading eigenvector of M, in balance, and the share of the largest eigenvalue."""
    root = np.sqrt(shares)  # a weight of 2 is the row given twice, in the eigenvectors too
    values, vectors = np.linalg.eigh(root[:, None] * matrix * root)
    leading = vectors[:, -1] / root
    return signs(leading - balanced_threshold(leading, shares, balance)), float(values[-1] / values.sum())


def solve_svm(gram: np.ndarray, y: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
    """The support vector machine without offset: what the inner maximum is for given labels.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Centred kernel matrix.
    y : ndarray of shape (n,)
        Labels, -1 or +1.
    bounds : ndarray of shape (n,)
        Upper bounds of the multipliers, above 0.

    Returns
    -------
    multipliers : ndarray of shape (n,)
        α; the normal vector is Σ α_i y_i φ_i.
    value : float
        max e'α - 1/2 α'(K∘yy')α = min 1/2 |w|² + Σ u_i max(0, 1 - y_i w·φ_i).

    Raises
    ------
    PlaneQPError
        If no tolerance is reached.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.relaxations.sdp import solve_svm
    >>> alpha, value = solve_svm(np.array([[1.0, -1], [-1, 1]]), np.array([1, -1]), np.ones(2))
    >>> round(float(alpha.sum()), 6), round(value, 6)
    (1.0, 0.5)
    """
    size, scaled = float(bounds.max()), y * bounds
    matrix = scaled[:, None] * gram * scaled / size
    zeros, ones = np.zeros(y.shape[0]), np.ones(y.shape[0])
    for tolerance in TOLERANCES:
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = tolerance
        solver.setup(np.asfortranarray(matrix), -bounds / size, x_l=zeros, x_u=ones)
        if solver.solve() == piqp.PIQP_SOLVED:
            alpha = bounds * np.clip(solver.result.x, 0.0, 1.0)
            return alpha, float(alpha.sum() - 0.5 * (alpha * y) @ gram @ (alpha * y))
    raise PlaneQPError("the support vector machine of the labels has no solution; lower C.")


@dataclass(frozen=True)
class _Point:
    """A point inside, a = α/u; P is the inverse of S, and height the logarithms of the barriers."""

    z: np.ndarray
    a: np.ndarray
    t: float
    inverse: np.ndarray
    height: float


class _Barrier:
    """The dual, its barriers and their derivatives, in the variables (z, a, t) with a = α/u."""

    def __init__(self, gram: np.ndarray, bounds: np.ndarray, shares: np.ndarray, balance: float) -> None:
        n = bounds.shape[0]
        self.n, self.bounds = n, bounds
        self.gram = bounds[:, None] * gram * bounds
        # In exact balance t is infinite: S has to be positive on what is orthogonal to the shares only.
        self.exact = balance <= 0
        self.basis = np.linalg.qr(np.c_[shares, np.eye(n)[:, 1:]])[0][:, 1:] if self.exact else None
        self.s = shares
        self.gain = (
            np.r_[-np.ones(n), 2 * bounds] if self.exact else np.r_[-np.ones(n), 2 * bounds, -(balance**2)]
        )

    def start(self) -> tuple[_Point, float]:
        """A point inside, and about the value it has."""
        n, total = self.n, float(self.bounds.sum())
        widest = max(float(np.linalg.eigvalsh(self.gram)[-1]), np.finfo(float).tiny)
        a = min(0.5, 3 * total / (n * widest))
        z = np.full(n, 1.1 * a * a * widest + 3 * a * total / n)
        point = self.point(z, np.full(n, a), 0.0 if self.exact else a * total / n / -self.gain[-1])
        assert point is not None
        return point, a * total

    def point(self, z: np.ndarray, a: np.ndarray, t: float) -> _Point | None:
        """The point of these variables, or None where it lies outside."""
        if a.min() <= 0 or a.max() >= 1 or (t <= 0 and not self.exact):
            return None
        S = np.outer(t * self.s, self.s) - a[:, None] * self.gram * a
        S[np.diag_indices(self.n)] += z
        found = _inverse(S if self.basis is None else self.basis.T @ S @ self.basis)
        if found is None:
            return None
        inverse, height = found
        if self.basis is not None:
            inverse = self.basis @ inverse @ self.basis.T
        height += np.log(a).sum() + np.log1p(-a).sum() + (0.0 if self.exact else np.log(t))
        return _Point(z, a, t, inverse, float(height))

    def moved(self, point: _Point, direction: np.ndarray, length: float) -> _Point | None:
        """The point at some length along a direction, or None outside."""
        n, step = self.n, length * direction
        return self.point(point.z + step[:n], point.a + step[n : 2 * n], point.t + step[2 * n :].sum())

    def value(self, point: _Point) -> float:
        """Twice the value of the dual."""
        variables = np.r_[point.z, point.a] if self.exact else np.r_[point.z, point.a, point.t]
        return float(self.gain @ variables)

    def derivatives(self, point: _Point) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Gradient of the barriers, and what solves with their negated Hessian."""
        n, a, P = self.n, point.a, point.inverse
        B = a[:, None] * self.gram
        PB = P @ B
        size = 2 * n + (not self.exact)
        gradient, hessian = np.empty(size), np.empty((size, size))
        gradient[:n] = np.diag(P)
        gradient[n : 2 * n] = 1 / a - 1 / (1 - a) - 2 * np.diag(PB)
        hessian[:n, :n] = P * P
        hessian[:n, n : 2 * n] = -2 * P * PB
        hessian[n : 2 * n, :n] = hessian[:n, n : 2 * n].T
        hessian[n : 2 * n, n : 2 * n] = 2 * (PB * PB.T + P * (B.T @ PB + self.gram))
        hessian[range(n, 2 * n), range(n, 2 * n)] += 1 / a**2 + 1 / (1 - a) ** 2
        if not self.exact:
            Ps = P @ self.s
            gradient[-1] = self.s @ Ps + 1 / point.t
            hessian[-1, :-1] = hessian[:-1, -1] = np.r_[Ps * Ps, -2 * Ps * (PB.T @ self.s)]
            hessian[-1, -1] = (self.s @ Ps) ** 2 + 1 / point.t**2
        return gradient, _solver(hessian)


def _follow(barrier: _Barrier, record: Record) -> LabelMatrix:
    """Centres for a growing weight of the value, from each to the next along the tangent."""
    point, size = barrier.start()
    weight, factor, steps, converged = barrier.n / size, SLOWEST, 0, False
    barriers = 3 * barrier.n + (not barrier.exact)  # over the weight, the gap at a centre
    while True:
        last = barriers / weight <= TOLERANCE * abs(barrier.value(point))
        point, taken, centred = _centre(barrier, point, weight, CENTRED if last else CLOSE)
        steps += taken
        value, gap = barrier.value(point), barriers / weight
        record({"stage": "sample", "steps": steps, "objective": value / 2, "gap": gap / 2})
        converged = gap <= TOLERANCE * abs(value)
        if converged or not centred or steps >= MOST_STEPS:
            break
        factor = float(np.clip(factor * (1.6 if taken < 3 else 1.0 if taken < 6 else 0.7), SLOWEST, FASTEST))
        point, weight = _along_tangent(barrier, point, weight, factor), weight * factor
        steps += 1
    matrix = point.inverse / weight
    return LabelMatrix(matrix, point.a * barrier.bounds, value / 2, gap / 2, steps, converged)


def _centre(barrier: _Barrier, point: _Point, weight: float, close: float) -> tuple[_Point, int, bool]:
    """Newton's method to the maximum of weight * value + barriers; its steps, and whether it came close."""
    before = np.inf
    for taken in range(MOST_STEPS):
        gradient, solve = barrier.derivatives(point)
        gradient += weight * barrier.gain
        direction = solve(gradient)
        decrement = float(gradient @ direction)
        if decrement < close or before / 2 < decrement < 1e-2:  # rounding ends the descent
            return point, taken, True
        before = decrement
        found, length = None, 1.0 if decrement < 1 else 4.0
        merit = weight * barrier.value(point) + point.height
        while length > 1e-10:
            found = barrier.moved(point, direction, length)
            if found and weight * barrier.value(found) + found.height >= merit + 0.1 * length * decrement:
                break
            found, length = None, 0.6 * length
        if found is None:
            return point, taken, decrement < CLOSE
        point = found
    return point, MOST_STEPS, False


def _along_tangent(barrier: _Barrier, point: _Point, weight: float, factor: float) -> _Point:
    """Towards the centre of a weight a factor larger: near the end the path is straight in 1/weight."""
    direction = barrier.derivatives(point)[1](barrier.gain)
    length = weight * (1 - 1 / factor)
    for _ in range(10):
        found = barrier.moved(point, direction, length)
        if found is not None:
            merits = [factor * weight * barrier.value(one) + one.height for one in (found, point)]
            return found if merits[0] > merits[1] else point
        length *= 0.7
    return point


def _inverse(matrix: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Inverse and logarithm of the determinant, or None where the matrix is not positive definite."""
    factor, failed = lapack.dpotrf(matrix, lower=1, clean=1)
    if failed:
        return None
    logarithm = 2 * float(np.log(np.diag(factor)).sum())
    inverse, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    return None if failed else (np.tril(inverse) + np.tril(inverse, -1).T, logarithm)


def _solver(matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """What solves with a positive definite matrix; its diagonal is raised where rounding asks."""
    scale = 1 / np.sqrt(np.diag(matrix))
    matrix *= scale[:, None] * scale
    for raised in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        matrix[np.diag_indices_from(matrix)] = 1.0 + raised
        try:
            factor = cho_factor(matrix)
            break
        except np.linalg.LinAlgError:
            continue
    return lambda right: scale * cho_solve(factor, scale * right)

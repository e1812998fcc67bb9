"""Maximum margin clustering as a semidefinite program (SDP): Xu, Neufeld, Larson and Schuurmans, NIPS 2004.

Labels y enter the margin by M = y y' alone. With M relaxed to be positive semidefinite with ones on its
diagonal the widest margin through the mean of the rows is a convex problem, and bounds all objectives from
below:

    min over M  max over α   e'α - 1/2 α'(K∘M)α      s.t.  0 <= α_i <= u_i,  diag M = 1,  s'M s <= balance²

Its dual has 2n + 1 variables. M is a multiple of the inverse of S at the centres of its barriers:

    max   e'α - 1/2 e'z - 1/2 balance² t      s.t.  S = diag z + t s s' - diag α K diag α  >= 0,   t >= 0
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack
from threadpoolctl import threadpool_limits

from benchmarks.baselines.svm import Problem, balanced_threshold, centred_problem, signs


@dataclass
class SDPMMC:
    """MMC as an SDP: the support vector machine of the signs of the leading eigenvector of M.

    Parameters
    ----------
    C, gamma, kernel, balance, scale
        As in `IterativeSVR`; the machine has no offset in centred features.

    Examples
    --------
    >>> from benchmarks.baselines import SDPMMC
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(60, centers=2, random_state=0, cluster_std=0.5)
    >>> model = SDPMMC().fit(X)
    >>> bool((model.labels_ == (y != y[0])).all()), model.relaxed_ <= model.objective_
    (True, True)
    """

    C: float = 1.0
    gamma: float | str = "auto"
    kernel: str = "rbf"
    balance: float = 0.4
    scale: str | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None) -> Self:
        """Find the clusters of a few hundred rows; the time grows with their fourth power."""
        problem = centred_problem(self, X, sample_weight)
        with threadpool_limits(1, "blas"):
            found = solve_label_matrix(problem)
            root = np.sqrt(problem.shares)  # a weight of 2 is the row given twice, in the eigenvectors too
            leading = np.linalg.eigh(root[:, None] * found.matrix * root)[1][:, -1] / root
            signed = signs(leading - balanced_threshold(leading, problem.shares, problem.balance))
            alpha, _ = problem.svm(signed)
        self.labels_, self.objective_ = problem.result(signed, alpha)
        self.relaxed_, self.converged_ = found.value, found.converged
        return self


class LabelMatrix(NamedTuple):
    """M, the dual value (no labels in balance have a smaller objective), and whether the gap is closed."""

    matrix: np.ndarray
    value: float
    converged: bool


def solve_label_matrix(problem: Problem) -> LabelMatrix:
    """Solve the relaxation by centres for a growing weight of the dual value, to a gap of 1e-6 of it."""
    n, dual = len(problem.bounds), _Dual(problem)
    x, value = dual.start()
    weight = n / value
    while True:
        gap = (3 * n + 1) / weight  # at a centre: the number of barriers over the weight
        x, centred = dual.centre(x, weight, 1e-6 if gap <= 1e-6 * abs(dual.gain @ x) else 1.0)
        converged = bool(gap <= 1e-6 * abs(dual.gain @ x))
        if converged or not centred:
            return LabelMatrix(dual.inverse(x) / weight, float(dual.gain @ x) / 2, converged)
        weight *= 4


class _Dual:
    """Twice the dual in x = (z, a, t), with a = α/u and bounded from above by its gain, and its barriers."""

    def __init__(self, problem: Problem) -> None:
        self.n, self.s, u = len(problem.bounds), problem.shares, problem.bounds
        self.gram = u[:, None] * problem.gram * u
        # At a balance of 0 the best t is infinite; a larger one gives a lower bound too.
        self.gain = np.r_[-np.ones(self.n), 2 * u, -(max(problem.balance, 1e-4) ** 2)]
        self.total = float(u.sum())

    def start(self) -> tuple[np.ndarray, float]:
        """A point inside, and about the value it has."""
        n, total = self.n, self.total
        widest = max(float(np.linalg.eigvalsh(self.gram)[-1]), np.finfo(float).tiny)
        a = min(0.5, 3 * total / (n * widest))
        z = 1.1 * a * a * widest + 3 * a * total / n
        return np.r_[np.full(n, z), np.full(n, a), a * total / n / -self.gain[-1]], a * total

    def factor(self, x: np.ndarray) -> np.ndarray | None:
        """The Cholesky factor of S, or None outside the constraints."""
        z, a, t = x[: self.n], x[self.n : -1], x[-1]
        if min(a.min(), 1 - a.max(), t) <= 0:
            return None
        S = t * np.outer(self.s, self.s) - a[:, None] * self.gram * a + np.diag(z)
        factor, failed = lapack.dpotrf(S, lower=1, clean=1)
        return None if failed else factor

    def merit(self, x: np.ndarray, weight: float) -> float:
        """The weighted value plus the logarithms of all that must stay positive; -inf outside."""
        factor, a = self.factor(x), x[self.n : -1]
        if factor is None:
            return -np.inf
        logarithms = 2 * np.log(np.diag(factor)).sum() + np.log(a).sum() + np.log1p(-a).sum() + np.log(x[-1])
        return float(weight * (self.gain @ x) + logarithms)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        """The inverse of S."""
        return cho_solve((self.factor(x), True), np.eye(self.n))

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of the barriers, and their negated Hessian."""
        n, a, P, s = self.n, x[self.n : -1], self.inverse(x), self.s
        B = a[:, None] * self.gram
        PB, Ps = P @ B, P @ s
        gradient = np.r_[np.diag(P), 1 / a - 1 / (1 - a) - 2 * np.diag(PB), s @ Ps + 1 / x[-1]]
        hessian = np.empty((2 * n + 1, 2 * n + 1))
        hessian[:n, :n] = P * P
        hessian[:n, n:-1] = -2 * P * PB
        hessian[n:-1, :n] = hessian[:n, n:-1].T
        hessian[n:-1, n:-1] = 2 * (PB * PB.T + P * (B.T @ PB + self.gram)) + np.diag(a**-2 + (1 - a) ** -2)
        hessian[-1, :-1] = hessian[:-1, -1] = np.r_[Ps * Ps, -2 * Ps * (PB.T @ s)]
        hessian[-1, -1] = (s @ Ps) ** 2 + x[-1] ** -2
        return gradient, hessian

    def centre(self, x: np.ndarray, weight: float, close: float) -> tuple[np.ndarray, bool]:
        """Newton's method to the largest merit, and whether it came close."""
        before = np.inf
        while True:
            gradient, hessian = self.derivatives(x)
            gradient += weight * self.gain
            direction = solve_scaled(hessian, gradient)
            decrement = float(gradient @ direction)
            if decrement < close or before / 2 < decrement < 1e-2:  # rounding ends the ascent
                return x, True
            before, merit, length = decrement, self.merit(x, weight), 1.0
            while self.merit(x + length * direction, weight) < merit + 0.1 * length * decrement:
                length *= 0.6
                if length < 1e-10:
                    return x, decrement < 1
            x = x + length * direction


def solve_scaled(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve with a positive definite matrix, whose diagonal is raised if rounding asks for it."""
    scale = 1 / np.sqrt(np.diag(matrix))
    matrix *= scale[:, None] * scale
    for raised in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        matrix[np.diag_indices_from(matrix)] = 1.0 + raised
        try:
            return scale * cho_solve(cho_factor(matrix), scale * right)
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("the Newton system is not positive definite.")

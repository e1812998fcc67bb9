"""Maximum margin clustering as a semidefinite program (SDP): Xu, Neufeld, Larson and Schuurmans, NIPS 2004.

Labels y enter the margin by M = y y' alone. With M relaxed to be positive semidefinite
with ones on its diagonal the widest margin through the mean of the rows is a convex
problem, and bounds all objectives from below:

    min over M  max over α   e'α - 1/2 α'(K∘M)α      s.t.  0 <= α_i <= u_i,  diag M = 1,  s'M s <= balance²

Its dual has 2n + 1 variables. M is a multiple of the inverse of S at the centres of its
barriers:

    max   e'α - 1/2 e'z - 1/2 balance² t      s.t.  S = diag z + t s s' - diag α K diag α  >= 0,   t >= 0

The program as printed, eq. (3.8) of Zhu's thesis, also asks that equality of labels is
transitive (L1), and that of three rows two have one label (L2). Both say v'M v >= 1 for
vectors v of three entries -1 or +1, as v'y is odd. In the dual each takes τ v v' from S
and adds τ/2, with τ >= 0. Of these 2n(n - 1)(n - 2)/3 constraints those that M violates
most are added in rounds.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack
from threadpoolctl import threadpool_limits

from benchmarks.baselines.svm import Problem, balanced_threshold, centred_problem, signs
from mmcnb import InputError

MOST_ROWS = 60  # with constraints on triples, of which there are then 136,880
VIOLATED = 1e-3  # v'M v of an added constraint is below 1 by more than this
ADDED = 3  # constraints a row and round, at most
TRIPLE_SIGNS = np.array(
    [[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]]
)  # -v asks for the same as v


@dataclass
class SDPMMC:
    """MMC as an SDP: the support vector machine of the signs of the leading eigenvector of M.

    Parameters
    ----------
    C, gamma, kernel, balance, scale
        As in `IterativeSVR`; the machine has no offset in centred features.
    triples : bool, default=False
        Whether M also meets the constraints L1 and L2 on triples of rows; of at most
        60, which take minutes.

    Notes
    -----
    Differs from the paper: THESIS-3, THESIS-4; see docs/differences.

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
    triples: bool = False

    def fit(
        self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None
    ) -> Self:
        """Find the clusters of a few hundred rows; the time grows with their fourth power."""
        if self.triples and X.shape[0] > MOST_ROWS:
            raise InputError(
                f"triples=True takes at most {MOST_ROWS} rows, not {X.shape[0]:,}; give fewer."
            )
        problem = centred_problem(self, X, sample_weight)
        with threadpool_limits(1, "blas"):
            found = (
                solve_with_triples(problem)
                if self.triples
                else solve_label_matrix(problem)
            )
            root = np.sqrt(
                problem.shares
            )  # a weight of 2 is the row given twice, in the eigenvectors too
            leading = (
                np.linalg.eigh(root[:, None] * found.matrix * root)[1][:, -1] / root
            )
            signed = signs(
                leading - balanced_threshold(leading, problem.shares, problem.balance)
            )
            alpha, _ = problem.svm(signed)
        self.labels_, self.objective_ = problem.result(signed, alpha)
        self.relaxed_ = found.value
        self.converged_ = found.converged
        return self


class LabelMatrix(NamedTuple):
    """M, the dual value (no labels in balance have a smaller objective), and whether the gap is closed."""

    matrix: np.ndarray
    value: float
    converged: bool


def solve_label_matrix(
    problem: Problem, triples: np.ndarray | None = None
) -> LabelMatrix:
    """Solve the relaxation by centres for a growing weight of the dual value, to a gap of 1e-6 of it.

    Parameters
    ----------
    problem : Problem
        Margins through the mean of the rows.
    triples : ndarray of shape (constraints, n) or None, default=None
        Vectors v for which v'M v is at least 1.
    """
    dual = _Dual(
        problem, np.empty((0, len(problem.bounds))) if triples is None else triples
    )
    x, value = dual.start()
    weight = dual.n / value
    while True:
        gap = (
            len(x) + dual.n
        ) / weight  # at a centre: the number of barriers over the weight
        x, centred = dual.centre(
            x, weight, 1e-6 if gap <= 1e-6 * abs(dual.gain @ x) else 1.0
        )
        converged = bool(gap <= 1e-6 * abs(dual.gain @ x))
        if converged or not centred:
            return LabelMatrix(
                dual.inverse(x) / weight, float(dual.gain @ x) / 2, converged
            )
        weight *= 4


def solve_with_triples(problem: Problem, rise: float = 1e-2) -> LabelMatrix:
    """Solve the relaxation with L1 and L2, of which M's most violated constraints are added in rounds.

    The value of each round is a lower bound, with the constraints of the round and so
    with all.

    Parameters
    ----------
    problem : Problem
        Margins through the mean of the rows.
    rise : float, default=1e-2
        The rounds end when the value rises by no more than this share; at 0, when M
        violates none.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.baselines.sdp import solve_label_matrix, solve_with_triples
    >>> from benchmarks.baselines.svm import Problem
    >>> X = np.array([[-1.0, 0.5], [0.0, -1.0], [1.0, 0.5]])
    >>> problem = Problem(X @ X.T, np.ones(3), np.full(3, 1 / 3), 0.4)
    >>> bool(solve_with_triples(problem).value > solve_label_matrix(problem).value)
    True
    """
    n = len(problem.bounds)
    triples = np.array(list(combinations(range(n), 3)), np.int64).reshape(-1, 3)
    added = np.empty((0, n))
    before = -np.inf
    while True:
        found = solve_label_matrix(problem, added)
        violated = violated_triples(found.matrix, triples)[: ADDED * n]
        if len(violated) == 0 or (rise and found.value <= (1 + rise) * before):
            return found
        added = np.r_[added, violated]
        before = found.value


def violated_triples(matrix: np.ndarray, triples: np.ndarray) -> np.ndarray:
    """The vectors v of three entries -1 or +1 with v'M v below 1, the least first.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        M.
    triples : ndarray of shape (triples, 3)
        Rows i < j < k.

    Returns
    -------
    ndarray of shape (constraints, n)
        Three entries of each are not 0.
    """
    blocks = matrix[triples[:, :, None], triples[:, None, :]]
    forms = np.einsum("si,tij,sj->ts", TRIPLE_SIGNS, blocks, TRIPLE_SIGNS)
    where, which = np.nonzero(forms < 1 - VIOLATED)
    order = np.argsort(forms[where, which], kind="stable")
    vectors = np.zeros((len(order), len(matrix)))
    np.put_along_axis(
        vectors, triples[where[order]], TRIPLE_SIGNS[which[order]], axis=1
    )
    return vectors


class _Dual:
    """Twice the dual in x = (z, a, t, τ), with a = α/u and bounded from above by its gain, and its barriers.

    S = diag z - B + Σ_r sign_r t_r v_r v_r': the first v is s, the others are triples,
    whose sign is -1.
    """

    def __init__(self, problem: Problem, triples: np.ndarray) -> None:
        self.n = len(problem.bounds)
        u = problem.bounds
        self.gram = u[:, None] * problem.gram * u
        self.vectors = np.r_[problem.shares[None], triples].T
        self.signs = np.r_[1.0, -np.ones(len(triples))]
        # At a balance of 0 the best t is infinite; a larger one gives a lower bound
        # too.
        bounds = np.r_[-(max(problem.balance, 1e-4) ** 2), np.ones(len(triples))]
        self.gain = np.r_[-np.ones(self.n), 2 * u, bounds]
        self.total = float(u.sum())

    def start(self) -> tuple[np.ndarray, float]:
        """A point inside, and about the value it has."""
        n = self.n
        total = self.total
        widest = max(float(np.linalg.eigvalsh(self.gram)[-1]), np.finfo(float).tiny)
        a = min(0.5, 3 * total / (n * widest))
        z = 1.1 * a * a * widest + 3 * a * total / n
        triples = self.vectors[:, 1:]
        # Together the triples take less from S than 3 a total/n.
        tau = (
            a
            * total
            / n
            / max(1.0, float(np.abs(triples).sum(axis=1).max(initial=0.0)))
        )
        t = np.r_[a * total / n / -self.gain[2 * n], np.full(triples.shape[1], tau)]
        return np.r_[np.full(n, z), np.full(n, a), t], a * total

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """z, a, and t with τ."""
        return x[: self.n], x[self.n : 2 * self.n], x[2 * self.n :]

    def factor(self, x: np.ndarray) -> np.ndarray | None:
        """The Cholesky factor of S, or None outside the constraints."""
        z, a, t = self.split(x)
        if min(a.min(), 1 - a.max(), t.min()) <= 0:
            return None
        S = (
            (self.vectors * (self.signs * t)) @ self.vectors.T
            - a[:, None] * self.gram * a
            + np.diag(z)
        )
        factor, failed = lapack.dpotrf(S, lower=1, clean=1)
        return None if failed else factor

    def merit(self, x: np.ndarray, weight: float) -> float:
        """The weighted value plus the logarithms of all that must stay positive; -inf outside."""
        factor, (_, a, t) = self.factor(x), self.split(x)
        if factor is None:
            return -np.inf
        logarithms = (
            2 * np.log(np.diag(factor)).sum()
            + np.log(a).sum()
            + np.log1p(-a).sum()
            + np.log(t).sum()
        )
        return float(weight * (self.gain @ x) + logarithms)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        """The inverse of S."""
        return cho_solve((self.factor(x), True), np.eye(self.n))

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of the barriers, and their negated Hessian."""
        n, (_, a, t), P = self.n, self.split(x), self.inverse(x)
        B = a[:, None] * self.gram
        V = self.vectors
        signs = self.signs
        PB = P @ B
        PV = P @ V
        VPV = V.T @ PV
        gradient = np.r_[
            np.diag(P),
            1 / a - 1 / (1 - a) - 2 * np.diag(PB),
            signs * np.diag(VPV) + 1 / t,
        ]
        hessian = np.empty((len(x), len(x)))
        hessian[:n, :n] = P * P
        hessian[:n, n : 2 * n] = -2 * P * PB
        hessian[n : 2 * n, :n] = hessian[:n, n : 2 * n].T
        hessian[n : 2 * n, n : 2 * n] = 2 * (PB * PB.T + P * (B.T @ PB + self.gram))
        hessian[n : 2 * n, n : 2 * n] += np.diag(a**-2 + (1 - a) ** -2)
        hessian[: 2 * n, 2 * n :] = signs * np.r_[PV * PV, -2 * PV * (PB.T @ V)]
        hessian[2 * n :, : 2 * n] = hessian[: 2 * n, 2 * n :].T
        hessian[2 * n :, 2 * n :] = np.outer(signs, signs) * VPV**2 + np.diag(t**-2)
        return gradient, hessian

    def centre(
        self, x: np.ndarray, weight: float, close: float
    ) -> tuple[np.ndarray, bool]:
        """Newton's method to the largest merit, and whether it came close."""
        before = np.inf
        while True:
            gradient, hessian = self.derivatives(x)
            gradient += weight * self.gain
            direction = solve_scaled(hessian, gradient)
            decrement = float(gradient @ direction)
            if (
                decrement < close or before / 2 < decrement < 1e-2
            ):  # rounding ends the ascent
                return x, True
            before = decrement
            merit = self.merit(x, weight)
            length = 1.0
            while (
                self.merit(x + length * direction, weight)
                < merit + 0.1 * length * decrement
            ):
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

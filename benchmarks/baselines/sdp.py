"""Maximum margin clustering as a semidefinite program (SDP).

The program is that of Xu, Neufeld, Larson and Schuurmans, NIPS 2004. The margin depends
on the labels y only through M = y y'. If M is relaxed to a positive semidefinite matrix
with ones on its diagonal, finding the widest margin through the mean of the rows is a
convex problem, whose value is a lower bound of all objectives:

    min over M  max over α   e'α - 1/2 α'(K∘M)α
    s.t.  0 <= α_i <= u_i,  diag M = 1,  s'M s <= balance²

The dual has 2n + 1 variables. On its central path, M is a multiple of the inverse of S:

    max   e'α - 1/2 e'z - 1/2 balance² t
    s.t.  S = diag z + t s s' - diag α K diag α  >= 0,   t >= 0

The program as printed in eq. (3.8) of Zhu's thesis also requires that equality of
labels is transitive (L1), and that two of any three rows have the same label (L2). Both
are v'M v >= 1 for vectors v with three entries -1 or +1, because v'y is odd. In the
dual, each constraint subtracts τ v v' from S and adds τ/2, with τ >= 0. There are 2n(n
- 1)(n - 2)/3 of them; the constraints that M violates most are added in rounds.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack
from threadpoolctl import threadpool_limits

from benchmarks.baselines.svm import Problem, balanced_threshold, centred_problem, signs
from mmcnb import InputError

MOST_ROWS = 60  # with constraints on triples, of which 60 rows have 136,880
VIOLATED = 1e-3  # v'M v of an added constraint is below 1 by more than this
ADDED = 3  # largest number of constraints per row and round
# v and -v are the same constraint.
TRIPLE_SIGNS = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]])


@dataclass
class SDPMMC:
    """MMC as an SDP: a machine trained on the signs of the leading eigenvector of M.

    Parameters
    ----------
    C, gamma, kernel, balance, scale
        As in `IterativeSVR`; the machine has no offset in centred features.
    triples : bool, default=False
        Whether M also satisfies the constraints L1 and L2 on triples of rows. This is
        limited to 60 rows, which take minutes.

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
        """Cluster a few hundred rows; the time grows with the fourth power of their number."""
        if self.triples and X.shape[0] > MOST_ROWS:
            raise InputError(
                f"triples=True accepts at most {MOST_ROWS} rows, but X has "
                f"{X.shape[0]:,}; pass fewer rows."
            )
        problem = centred_problem(self, X, sample_weight)
        solve = solve_with_triples if self.triples else solve_label_matrix
        with threadpool_limits(1, "blas"):
            relaxed = solve(problem)
            y = _rounded(problem, relaxed.matrix)
            alpha, _ = problem.svm(y)
        self.labels_, self.objective_ = problem.result(y, alpha)
        self.relaxed_ = relaxed.value
        self.converged_ = relaxed.converged
        return self


def _rounded(problem: Problem, matrix: np.ndarray) -> np.ndarray:
    """Return the balanced labels to which the leading eigenvector of M is rounded."""
    # A weight of 2 counts as two equal rows, also in the eigenvectors.
    root = np.sqrt(problem.shares)
    _, vectors = np.linalg.eigh(root[:, None] * matrix * root)
    leading = vectors[:, -1] / root
    return signs(leading - balanced_threshold(leading, problem.shares, problem.balance))


class LabelMatrix(NamedTuple):
    """M, the dual value, and whether the duality gap is closed.

    The objective of every balanced labelling is at least the dual value.
    """

    matrix: np.ndarray
    value: float
    converged: bool


def solve_label_matrix(
    problem: Problem, triples: np.ndarray | None = None
) -> LabelMatrix:
    """Solve the relaxation by following its central path.

    The weight of the dual value grows until the relative duality gap is 1e-6.

    Parameters
    ----------
    problem : Problem
        Margins through the mean of the rows.
    triples : ndarray of shape (constraints, n) or None, default=None
        Vectors v for which v'M v is at least 1.
    """
    if triples is None:
        triples = np.empty((0, len(problem.bounds)))
    dual = _Dual(problem, triples)
    x, value = dual.start()
    weight = dual.n / value
    while True:
        # On the central path, the gap is the number of barriers divided by the weight.
        gap = (len(x) + dual.n) / weight
        is_last = gap <= 1e-6 * abs(dual.gain @ x)
        x, centred = dual.centre(x, weight, 1e-6 if is_last else 1.0)
        value = dual.gain @ x
        converged = bool(gap <= 1e-6 * abs(value))
        if converged or not centred:
            return LabelMatrix(dual.inverse(x) / weight, float(value) / 2, converged)
        weight *= 4


def solve_with_triples(problem: Problem, rise: float = 1e-2) -> LabelMatrix:
    """Solve the relaxation with L1 and L2, adding the most violated constraints in rounds.

    The value of each round is a lower bound, because the round has only some of the
    constraints.

    Parameters
    ----------
    problem : Problem
        Margins through the mean of the rows.
    rise : float, default=1e-2
        The rounds end when the value rises by at most this fraction, or when M violates
        no constraint.

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
    every_triple = list(combinations(range(n), 3))
    triples = np.array(every_triple, np.int64).reshape(-1, 3)
    constraints = np.empty((0, n))
    value_before = -np.inf
    while True:
        relaxed = solve_label_matrix(problem, constraints)
        violated = violated_triples(relaxed.matrix, triples)[: ADDED * n]
        if len(violated) == 0:
            return relaxed
        if rise and relaxed.value <= (1 + rise) * value_before:
            return relaxed
        constraints = np.r_[constraints, violated]
        value_before = relaxed.value


def violated_triples(matrix: np.ndarray, triples: np.ndarray) -> np.ndarray:
    """Return the vectors v with three entries -1 or +1 for which v'M v < 1, the smallest first.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        M.
    triples : ndarray of shape (triples, 3)
        Rows i < j < k.

    Returns
    -------
    ndarray of shape (constraints, n)
        The vectors v, each with three entries that are not 0.
    """
    blocks = matrix[triples[:, :, None], triples[:, None, :]]
    forms = np.einsum("si,tij,sj->ts", TRIPLE_SIGNS, blocks, TRIPLE_SIGNS)
    triple, sign = np.nonzero(forms < 1 - VIOLATED)
    order = np.argsort(forms[triple, sign], kind="stable")
    rows = triples[triple[order]]
    vectors = np.zeros((len(order), len(matrix)))
    np.put_along_axis(vectors, rows, TRIPLE_SIGNS[sign[order]], axis=1)
    return vectors


class _Point(NamedTuple):
    """The components of x: z, a, and t with τ."""

    z: np.ndarray
    a: np.ndarray
    t: np.ndarray


class _Dual:
    """Twice the dual in x = (z, a, t, τ), with its bounds and barriers.

    a = α/u, and S = diag z - B + Σ_r sign_r t_r v_r v_r'. The first v is s; the others
    are triples and have the sign -1.
    """

    def __init__(self, problem: Problem, triples: np.ndarray) -> None:
        u = problem.bounds
        n_triples = len(triples)
        self.n = len(u)
        self.gram = u[:, None] * problem.gram * u
        self.vectors = np.r_[problem.shares[None], triples].T
        self.signs = np.r_[1.0, -np.ones(n_triples)]
        # With a balance of 0, the best t is infinite. A larger balance also gives a
        # lower bound.
        balance = max(problem.balance, 1e-4)
        gain_of_t = np.r_[-(balance**2), np.ones(n_triples)]
        self.gain = np.r_[-np.ones(self.n), 2 * u, gain_of_t]
        self.total = float(u.sum())

    def start(self) -> tuple[np.ndarray, float]:
        """Return an interior point, and the approximate value there."""
        n = self.n
        tiny = np.finfo(float).tiny
        widest = max(float(np.linalg.eigvalsh(self.gram)[-1]), tiny)
        a = min(0.5, 3 * self.total / (n * widest))
        z = 1.1 * a * a * widest + 3 * a * self.total / n
        share = a * self.total / n
        triples = self.vectors[:, 1:]
        # The triples together subtract less from S than 3 a total/n.
        sums = np.abs(triples).sum(axis=1)
        tau = share / max(1.0, float(sums.max(initial=0.0)))
        t = share / -self.gain[2 * n]
        taus = np.full(triples.shape[1], tau)
        x = np.r_[np.full(n, z), np.full(n, a), t, taus]
        return x, a * self.total

    def split(self, x: np.ndarray) -> _Point:
        """Return the components of x."""
        n = self.n
        return _Point(z=x[:n], a=x[n : 2 * n], t=x[2 * n :])

    def factor(self, x: np.ndarray) -> np.ndarray | None:
        """Return the Cholesky factor of S, or None outside the constraints."""
        z, a, t = self.split(x)
        if min(a.min(), 1 - a.max(), t.min()) <= 0:
            return None
        balance_and_triples = (self.vectors * (self.signs * t)) @ self.vectors.T
        B = a[:, None] * self.gram * a
        S = balance_and_triples - B + np.diag(z)
        factor, failed = lapack.dpotrf(S, lower=1, clean=1)
        return None if failed else factor

    def merit(self, x: np.ndarray, weight: float) -> float:
        """Return the weighted value plus the logarithmic barriers; -inf outside the constraints."""
        factor = self.factor(x)
        if factor is None:
            return -np.inf
        _, a, t = self.split(x)
        logarithms = (
            2 * np.log(np.diag(factor)).sum()
            + np.log(a).sum()
            + np.log1p(-a).sum()
            + np.log(t).sum()
        )
        return float(weight * (self.gain @ x) + logarithms)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        """Return the inverse of S."""
        return cho_solve((self.factor(x), True), np.eye(self.n))

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient of the barriers, and their negated Hessian."""
        n = self.n
        _, a, t = self.split(x)
        P = self.inverse(x)
        B = a[:, None] * self.gram
        V = self.vectors
        signs = self.signs
        PB = P @ B
        PV = P @ V
        VPV = V.T @ PV

        of_z = np.diag(P)
        of_a = 1 / a - 1 / (1 - a) - 2 * np.diag(PB)
        of_t = signs * np.diag(VPV) + 1 / t
        gradient = np.r_[of_z, of_a, of_t]

        in_z = slice(0, n)
        in_a = slice(n, 2 * n)
        in_za = slice(0, 2 * n)
        in_t = slice(2 * n, None)
        hessian = np.empty((len(x), len(x)))
        hessian[in_z, in_z] = P * P
        hessian[in_z, in_a] = -2 * P * PB
        hessian[in_a, in_z] = hessian[in_z, in_a].T
        hessian[in_a, in_a] = 2 * (PB * PB.T + P * (B.T @ PB + self.gram))
        hessian[in_a, in_a] += np.diag(a**-2 + (1 - a) ** -2)
        hessian[in_za, in_t] = signs * np.r_[PV * PV, -2 * PV * (PB.T @ V)]
        hessian[in_t, in_za] = hessian[in_za, in_t].T
        hessian[in_t, in_t] = np.outer(signs, signs) * VPV**2 + np.diag(t**-2)
        return gradient, hessian

    def centre(
        self, x: np.ndarray, weight: float, close: float
    ) -> tuple[np.ndarray, bool]:
        """Maximise the merit by Newton's method; also return whether it converged."""
        decrement_before = np.inf
        while True:
            gradient, hessian = self.derivatives(x)
            gradient += weight * self.gain
            direction = solve_scaled(hessian, gradient)
            decrement = float(gradient @ direction)
            rounding_ends_it = decrement_before / 2 < decrement < 1e-2
            if decrement < close or rounding_ends_it:
                return x, True
            decrement_before = decrement
            merit = self.merit(x, weight)
            length = 1.0
            while True:
                moved = x + length * direction
                wanted = merit + 0.1 * length * decrement
                if not self.merit(moved, weight) < wanted:
                    break
                length *= 0.6
                if length < 1e-10:
                    return x, decrement < 1
            x = moved


def solve_scaled(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve with a positive definite matrix; raise its diagonal if rounding requires it."""
    scale = 1 / np.sqrt(np.diag(matrix))
    matrix *= scale[:, None] * scale
    for raised in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        matrix[np.diag_indices_from(matrix)] = 1.0 + raised
        try:
            return scale * cho_solve(cho_factor(matrix), scale * right)
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("the Newton system is not positive definite.")

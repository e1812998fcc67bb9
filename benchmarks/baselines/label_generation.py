"""Maximum margin clustering by generated labels (LG-MMC): a cutting plane over labellings.

Li, Tsang, Kwok and Zhou (AISTATS 2009) mix all labellings in balance so that the SVM
has the least objective:

    max over α   e'α - 1/2 max over y  α'(K∘yy')α      s.t.  0 <= α_i <= u_i,   abs(s'y) <= balance

Each labelling alone is a mixture, so the optimum is a lower bound of all objectives.
The labellings are generated, from one on: the next has the largest quadratic form at
the α of those so far. It is searched for from the best labels along the axes of the
features, as in the paper, then by steps that maximise the linear form of the last
labels, then by flips and swaps.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from threadpoolctl import threadpool_limits

from benchmarks.baselines.svm import Problem, balanced_threshold, centred_problem, signs

LEADING_AXES = 50  # that labels start from
NEW_LABELLINGS = 5  # a round: fewer take more rounds, and a round takes the same time


@dataclass
class LabelGenerationMMC:
    """LG-MMC: the support vector machine of the best of all labellings that were generated.

    Parameters
    ----------
    C, gamma, kernel, balance, scale
        As in `IterativeSVR`; the machine has no offset in centred features.
    tol : float, default=1e-2
        The rounds end when the next labels lower the objective by at most this share of
        it.
    max_iter : int, default=100
        Most rounds.

    Notes
    -----
    Differs from the paper: SKMMC-23; see docs/differences.

    Examples
    --------
    >>> from benchmarks.baselines import LabelGenerationMMC
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(100, factor=0.4, noise=0.05, random_state=0)
    >>> model = LabelGenerationMMC().fit(X)
    >>> bool((model.labels_ == (y != y[0])).all()), model.bound_ <= model.objective_
    (True, True)
    """

    C: float = 1.0
    gamma: float | str = "auto"
    kernel: str = "rbf"
    balance: float = 0.4
    tol: float = 0.01
    max_iter: int = 100
    scale: str | None = None

    def fit(
        self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None
    ) -> Self:
        """Find the clusters of up to about a thousand rows; the time grows with the cube of the rows."""
        problem = centred_problem(self, X, sample_weight)
        with threadpool_limits(1, "blas"):
            labels, mixture, self.bound_, self.n_iter_ = generate_labels(
                problem, self.tol, self.max_iter
            )
            tried = [_rounded(problem, labels, mixture), *labels]
            machines = [problem.svm(one) for one in tried]
        best = int(np.argmin([value for _, value in machines]))
        self.labels_, self.objective_ = problem.result(tried[best], machines[best][0])
        self.relaxed_ = mixture.value
        self.converged_ = (
            mixture.value + mixture.gap - self.bound_ <= self.tol * mixture.value
        )
        return self


def generate_labels(
    problem: Problem, tol: float, max_iter: int
) -> tuple[np.ndarray, "Mixture", float, int]:
    """Labellings of shape (t, n), their mixture, a lower bound as far as the search sees, and the rounds."""
    search = LabelSearch(problem)
    labels = search.best(problem.bounds, search.axes)[0][:1]
    bound = -np.inf
    for number in range(1, max_iter + 1):
        mixture = mix_labels(problem, labels, 1e-2 * tol)
        alpha = mixture.multipliers
        found, forms = search.best(alpha, np.c_[search.axes, labels.T])
        values = alpha.sum() - 0.5 * forms
        bound = max(bound, min(float(values[0]), mixture.value))
        new = found[mixture.value - values > 1e-10 * abs(mixture.value)][
            :NEW_LABELLINGS
        ]
        if (
            mixture.value + mixture.gap - bound <= tol * mixture.value
            or len(new) == 0
            or number == max_iter
        ):
            break
        labels = np.r_[labels, new]
    return labels, mixture, bound, number


def _rounded(problem: Problem, labels: np.ndarray, mixture: "Mixture") -> np.ndarray:
    """The labels that a mixture rounds to: signs of Σ_i α_i v_i K(x_i, x), v its leading eigenvector."""
    root = np.sqrt(
        problem.shares
    )  # a weight of 2 is the row given twice, in the eigenvectors too
    _, _, vectors = np.linalg.svd(
        np.sqrt(mixture.weights)[:, None] * labels * root, full_matrices=False
    )
    f = problem.gram @ (mixture.multipliers * vectors[0] / root)
    return signs(f - balanced_threshold(f, problem.shares, problem.balance))


class Mixture(NamedTuple):
    """Weights of labellings, the multipliers of the machine that they train, its objective and the gap."""

    weights: np.ndarray
    multipliers: np.ndarray
    value: float
    gap: float


def mix_labels(
    problem: Problem, labels: np.ndarray, tolerance: float = 1e-8
) -> Mixture:
    """Weigh labellings so that the machine under their mixture has the least objective.

    min η - e'α  s.t.  1/2 α'(K∘y_t y_t')α <= η for all t, by Mehrotra's predictor and corrector in a = α/u,
    the multipliers of its two bounds, the weights of the labellings, their slack, and η.
    """
    bounds = problem.bounds
    total = problem.bounds.sum()
    y = np.ascontiguousarray(labels.T, np.float64)
    gain = bounds / total
    matrix = bounds[:, None] * problem.gram * gain
    point = _start(matrix, y, gain)
    best = None
    for _ in range(100):
        a, _, _, mu, _, _ = point
        slopes = y * (matrix @ (a[:, None] * y))
        forms = 0.5 * a @ slopes
        weights = mu / mu.sum()
        value = float(gain @ a - forms.max())
        gap = max(
            0.0,
            float(forms @ weights + np.maximum(0, gain - slopes @ weights).sum())
            - value,
        )
        if best is None or gap * total < best.gap:
            best = Mixture(weights, a * bounds, value * total, gap * total)
        if gap <= tolerance * (value + gap):
            break
        try:
            with np.errstate(divide="raise", invalid="raise", over="raise"):
                point = _step(matrix, y, gain, point, slopes, forms)
        except (
            FloatingPointError,
            np.linalg.LinAlgError,
        ):  # it was as close as numbers allow
            break
    assert best is not None
    return best


def _start(matrix: np.ndarray, y: np.ndarray, gain: np.ndarray) -> list[Any]:
    (n, t), least = y.shape, float(gain.mean())
    whole = 0.5 * np.ones(n) @ (y * (matrix @ y))
    share = min(0.5, 1 / max(2 * float(whole.max()), 1.0))
    eta = 1.5 * share**2 * float(whole.max()) + least
    low = np.full(n, least)
    return [np.full(n, share), low, low, np.full(t, 1 / t), eta - share**2 * whole, eta]


def _step(
    matrix: Any, y: Any, gain: Any, point: list[Any], slopes: Any, forms: Any
) -> list[Any]:
    """The predictor's direction, then the corrector's, with one factorisation."""
    (a, low, high, mu, slack, eta), t = point, len(forms)
    hessian = matrix * ((y * mu) @ y.T)
    hessian[np.diag_indices_from(hessian)] += low / a + high / (1 - a)
    factor = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, slopes, check_finite=False)
    border = np.ones(
        (t + 1, t + 1)
    )  # of the labellings, and of the sum of their weights
    border[:t, :t] = slopes.T @ solved + np.diag(slack / mu)
    border[t, t] = 0.0
    descent = gain - slopes @ mu + low - high

    def direction(of_low: Any, of_high: Any, of_mu: Any, bend: Any) -> list[Any]:
        """The step that changes the products a·low, (1 - a)·high and mu·slack by these amounts."""
        right = cho_solve(
            factor, descent + of_low / a - of_high / (1 - a), check_finite=False
        )
        missed = eta - forms - slack - bend
        found = np.linalg.solve(
            border, np.r_[of_mu / mu - missed + slopes.T @ right, 1 - mu.sum()]
        )
        d_mu = found[:t]
        d_eta = float(found[t])
        d_a = right - solved @ d_mu
        d_slack = missed + d_eta - slopes.T @ d_a
        return [
            d_a,
            (of_low - low * d_a) / a,
            (of_high + high * d_a) / (1 - a),
            d_mu,
            d_slack,
            d_eta,
        ]

    first = direction(-a * low, -(1 - a) * high, -mu * slack, 0.0)
    before, after = (_products(one) for one in (point, _moved(point, first, 1.0)))
    aim = before / (2 * len(a) + t) * min(1.0, max(after, 0.0) / before) ** 3
    d_a, d_low, d_high, d_mu, d_slack, _ = first
    bend = (
        0.5 * d_a @ (y * (matrix @ (d_a[:, None] * y)))
    )  # curvature of the constraints along the step
    second = direction(
        aim - a * low - d_a * d_low,
        aim - (1 - a) * high + d_a * d_high,
        aim - mu * slack - d_mu * d_slack,
        bend,
    )
    return _moved(point, second, 0.99)


def _moved(point: list[Any], step: list[Any], reach: float) -> list[Any]:
    """The point after a step, which is shortened to this share of the way to the nearest bound."""
    ratios = [
        step[0] / (1 - point[0]),
        *(-d / x for x, d in zip(point[:5], step[:5], strict=True)),
    ]
    length = min(1.0, reach / max(1e-9, *(float(ratio.max()) for ratio in ratios)))
    return [x + length * d for x, d in zip(point, step, strict=True)]


def _products(point: list[Any]) -> float:
    """Sum of the products that vanish at the optimum."""
    a, low, high, mu, slack, _ = point
    return float(a @ low + (1 - a) @ high + mu @ slack)


class LabelSearch:
    """Labels in balance with a large quadratic form y'Qy, Q = diag α K diag α."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        n = len(problem.shares)
        root = np.sqrt(problem.shares)
        weighted = root[:, None] * problem.gram * root
        values, vectors = eigh(
            weighted, subset_by_index=[max(0, n - LEADING_AXES), n - 1]
        )
        self.axes = (vectors * np.sqrt(np.maximum(values, 0.0)) / root[:, None])[
            :, ::-1
        ]

    def best(
        self, alpha: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Labellings that the starts lead to, each once, and their forms, the largest first."""
        shares = self.problem.shares
        balance = self.problem.balance
        y = balanced_labels_of(alpha[:, None] * starts, shares, balance)
        slopes, forms = self._forms(alpha, y)
        while True:
            after = balanced_labels_of(slopes, shares, balance)
            their_slopes, their_forms = self._forms(alpha, after)
            larger = their_forms > forms * (1 + 1e-12)
            if not larger.any():
                break
            y = np.where(larger, after, y)
            slopes = np.where(larger, their_slopes, slopes)
            forms = np.where(larger, their_forms, forms)
        y = np.c_[self._flipped(alpha, y[:, forms.argmax()]), y]
        forms = self._forms(alpha, y)[1]
        y *= np.where(y[0] == y[0, 0], 1.0, -1.0)  # -y is the same labelling
        order = np.argsort(-forms, kind="stable")
        _, once = np.unique(y[:, order], axis=1, return_index=True)
        kept = order[np.sort(once)]
        return y[:, kept].T, forms[kept]

    def _forms(self, alpha: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Qy and y'Qy of each column."""
        slopes = alpha[:, None] * (self.problem.gram @ (alpha[:, None] * y))
        return slopes, np.einsum("it,it->t", y, slopes)

    def _flipped(self, alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The steepest single flips, and swaps of two rows, while there are any in balance."""
        Q = alpha[:, None] * self.problem.gram * alpha
        s = self.problem.shares
        y = y.copy()
        own = np.diag(Q)
        f = Q @ y
        reach = max(self.problem.balance, abs(float(s @ y))) + 1e-12
        least = 1e-9 * max(float(own.sum()), np.finfo(float).tiny)
        while True:
            gains = 4 * (own - y * f)
            sums = s @ y - 2 * s * y
            alone = np.where(np.abs(sums) <= reach, gains, -np.inf)
            up = np.flatnonzero(y > 0)
            down = np.flatnonzero(y < 0)
            pairs = gains[up][:, None] + gains[down] - 8 * Q[np.ix_(up, down)]
            pairs[np.abs(sums[up][:, None] + 2 * s[down]) > reach] = -np.inf
            most = pairs.max(initial=-np.inf)
            if max(alone.max(), most) <= least:
                return y
            one, other = (
                divmod(int(pairs.argmax()), len(down)) if most > alone.max() else (0, 0)
            )
            rows = [up[one], down[other]] if most > alone.max() else [alone.argmax()]
            f -= 2 * Q[:, rows] @ y[rows]
            y[rows] *= -1


def balanced_labels_of(
    linear: np.ndarray, shares: np.ndarray, balance: float
) -> np.ndarray:
    """Labels in balance with the largest linear form, for each column of coefficients.

    They are signs, but for the smallest coefficients. abs(s'y) can exceed the balance
    if single rows weigh more.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.baselines.label_generation import balanced_labels_of
    >>> balanced_labels_of(np.array([[1.0], [2.0], [3.0], [-4.0]]), np.full(4, 0.25), 0.0).ravel()
    array([-1.,  1.,  1., -1.])
    """
    least = (1 - balance) / 2 - 1e-12
    order = np.argsort(linear / shares[:, None], axis=0, kind="stable")
    below = np.cumsum(shares[order], axis=0)
    fewest = 1 + (below < least).sum(axis=0)
    most = (below <= 1 - least).sum(axis=0)
    count = np.minimum(np.maximum((linear < 0).sum(axis=0), fewest), most)
    y = np.empty(linear.shape)
    np.put_along_axis(
        y, order, np.where(np.arange(len(linear))[:, None] < count, -1.0, 1.0), axis=0
    )
    return y

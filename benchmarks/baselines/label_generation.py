"""Maximum margin clustering by generated labels (LG-MMC).

Li, Tsang, Kwok and Zhou (AISTATS 2009) mix all balanced labellings so that the SVM has
the smallest objective:

    max over α   e'α - 1/2 max over y  α'(K∘yy')α
    s.t.  0 <= α_i <= u_i,   abs(s'y) <= balance

A single labelling is also a mixture, so the optimum is a lower bound of the objective
of every labelling. The labellings are generated one after another: the next labelling
has the largest quadratic form at the α of the labellings so far. The search for it
starts from the best labels along the axes of the features, as in the paper, continues
by steps that maximise the linear form of the last labels, and ends with flips and
swaps.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from threadpoolctl import threadpool_limits

from benchmarks.baselines.svm import Problem, balanced_threshold, centred_problem, signs

LEADING_AXES = 50  # number of axes from which labels start
# Number of labellings that a round adds. With fewer labellings, more rounds are needed,
# and a round takes the same time.
NEW_LABELLINGS = 5


@dataclass
class LabelGenerationMMC:
    """LG-MMC: the support vector machine of the best labelling that was generated.

    Parameters
    ----------
    C, gamma, kernel, balance, scale
        As in `IterativeSVR`; the machine has no offset in centred features.
    tol : float, default=1e-2
        The rounds end when the next labels lower the objective by at most this
        fraction.
    max_iter : int, default=100
        Largest number of rounds.

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
        """Cluster up to about a thousand rows; the time grows with the cube of their number."""
        problem = centred_problem(self, X, sample_weight)
        with threadpool_limits(1, "blas"):
            generated = generate_labels(problem, self.tol, self.max_iter)
            labels = generated.labels
            mixture = generated.mixture
            candidates = [_rounded(problem, labels, mixture), *labels]
            machines = [problem.svm(candidate) for candidate in candidates]
        best = int(np.argmin([value for _, value in machines]))
        alpha, _ = machines[best]
        self.labels_, self.objective_ = problem.result(candidates[best], alpha)
        self.bound_ = generated.bound
        self.n_iter_ = generated.n_iter
        self.relaxed_ = mixture.value
        gap = mixture.value + mixture.gap - self.bound_
        self.converged_ = gap <= self.tol * mixture.value
        return self


class Mixture(NamedTuple):
    """A mixture of labellings; multipliers, objective and gap of its machine."""

    weights: np.ndarray
    multipliers: np.ndarray
    value: float
    gap: float


class GeneratedLabels(NamedTuple):
    """Generated labellings, and a bound of how far they are from the best labelling.

    Parameters
    ----------
    labels : ndarray of shape (t, n)
        The labellings.
    mixture : Mixture
        The mixture of the labellings.
    bound : float
        A lower bound of the objectives of all labellings, if the search has found the
        largest form.
    n_iter : int
        Number of rounds.
    """

    labels: np.ndarray
    mixture: Mixture
    bound: float
    n_iter: int


def generate_labels(problem: Problem, tol: float, max_iter: int) -> GeneratedLabels:
    """Add labellings to a mixture in rounds, until they no longer lower its objective."""
    search = LabelSearch(problem)
    labels, _ = search.best(problem.bounds, search.axes)
    labels = labels[:1]
    bound = -np.inf
    for n_iter in range(1, max_iter + 1):
        mixture = mix_labels(problem, labels, 1e-2 * tol)
        alpha = mixture.multipliers
        candidates, forms = search.best(alpha, np.c_[search.axes, labels.T])
        values = alpha.sum() - 0.5 * forms
        bound = max(bound, min(float(values[0]), mixture.value))
        is_violated = mixture.value - values > 1e-10 * abs(mixture.value)
        new = candidates[is_violated][:NEW_LABELLINGS]
        converged = mixture.value + mixture.gap - bound <= tol * mixture.value
        if converged or len(new) == 0 or n_iter == max_iter:
            break
        labels = np.r_[labels, new]
    return GeneratedLabels(labels, mixture, bound, n_iter)


def _rounded(problem: Problem, labels: np.ndarray, mixture: Mixture) -> np.ndarray:
    """Return the labels to which a mixture is rounded.

    The labels are the signs of Σ_i α_i v_i K(x_i, x), where v is the leading
    eigenvector of the mixture.
    """
    # A weight of 2 counts as two equal rows, also in the eigenvectors.
    root = np.sqrt(problem.shares)
    weighted = np.sqrt(mixture.weights)[:, None] * labels * root
    _, _, vectors = np.linalg.svd(weighted, full_matrices=False)
    f = problem.gram @ (mixture.multipliers * vectors[0] / root)
    return signs(f - balanced_threshold(f, problem.shares, problem.balance))


class _Point(NamedTuple):
    """A point of the interior point method, or a step.

    Parameters
    ----------
    a : ndarray of shape (n,)
        α/u.
    low, high : ndarray of shape (n,)
        Multipliers of a >= 0 and of a <= 1.
    mu : ndarray of shape (t,)
        Weights of the labellings.
    slack : ndarray of shape (t,)
        Slack of the constraint of each labelling.
    eta : float
        η, the bound of the quadratic forms of the labellings.
    """

    a: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mu: np.ndarray
    slack: np.ndarray
    eta: float


def mix_labels(
    problem: Problem, labels: np.ndarray, tolerance: float = 1e-8
) -> Mixture:
    """Find weights of labellings with which their machine has the smallest objective.

    min η - e'α  s.t.  1/2 α'(K∘y_t y_t')α <= η for all t, by Mehrotra's predictor and
    corrector.
    """
    bounds = problem.bounds
    total = problem.bounds.sum()
    y = np.ascontiguousarray(labels.T, np.float64)
    gain = bounds / total
    matrix = bounds[:, None] * problem.gram * gain
    point = _start(matrix, y, gain)
    best = None
    for _ in range(100):
        a = point.a
        slopes = y * (matrix @ (a[:, None] * y))
        forms = 0.5 * a @ slopes
        weights = point.mu / point.mu.sum()
        value = float(gain @ a - forms.max())
        losses = np.maximum(0, gain - slopes @ weights)
        gap = max(0.0, float(forms @ weights + losses.sum()) - value)
        if best is None or gap * total < best.gap:
            best = Mixture(
                weights=weights,
                multipliers=a * bounds,
                value=value * total,
                gap=gap * total,
            )
        if gap <= tolerance * (value + gap):
            break
        try:
            with np.errstate(divide="raise", invalid="raise", over="raise"):
                point = _step(matrix, y, gain, point, slopes, forms)
        except (FloatingPointError, np.linalg.LinAlgError):
            break  # the limit of floating-point precision was reached
    assert best is not None
    return best


def _start(matrix: np.ndarray, y: np.ndarray, gain: np.ndarray) -> _Point:
    """Return a point inside all bounds."""
    n, t = y.shape
    least = float(gain.mean())
    whole = 0.5 * np.ones(n) @ (y * (matrix @ y))
    largest = float(whole.max())
    share = min(0.5, 1 / max(2 * largest, 1.0))
    eta = 1.5 * share**2 * largest + least
    multipliers = np.full(n, least)
    return _Point(
        a=np.full(n, share),
        low=multipliers,
        high=multipliers,
        mu=np.full(t, 1 / t),
        slack=eta - share**2 * whole,
        eta=eta,
    )


def _step(
    matrix: np.ndarray,
    y: np.ndarray,
    gain: np.ndarray,
    point: _Point,
    slopes: np.ndarray,
    forms: np.ndarray,
) -> _Point:
    """Move along the predictor's, then the corrector's direction, with one factorisation."""
    a, low, high, mu, slack, eta = point
    t = len(forms)
    hessian = matrix * ((y * mu) @ y.T)
    hessian[np.diag_indices_from(hessian)] += low / a + high / (1 - a)
    factor = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, slopes, check_finite=False)
    # Rows of the border: the labellings, and the sum of their weights.
    border = np.ones((t + 1, t + 1))
    border[:t, :t] = slopes.T @ solved + np.diag(slack / mu)
    border[t, t] = 0.0
    descent = gain - slopes @ mu + low - high

    def direction(
        of_low: np.ndarray, of_high: np.ndarray, of_mu: np.ndarray, bend: Any
    ) -> _Point:
        """Return the step that changes a·low, (1 - a)·high and mu·slack by given amounts."""
        ascent = descent + of_low / a - of_high / (1 - a)
        right = cho_solve(factor, ascent, check_finite=False)
        missed = eta - forms - slack - bend
        of_labellings = of_mu / mu - missed + slopes.T @ right
        solution = np.linalg.solve(border, np.r_[of_labellings, 1 - mu.sum()])
        d_mu = solution[:t]
        d_eta = float(solution[t])
        d_a = right - solved @ d_mu
        return _Point(
            a=d_a,
            low=(of_low - low * d_a) / a,
            high=(of_high + high * d_a) / (1 - a),
            mu=d_mu,
            slack=missed + d_eta - slopes.T @ d_a,
            eta=d_eta,
        )

    first = direction(-a * low, -(1 - a) * high, -mu * slack, 0.0)
    before = _products(point)
    after = _products(_moved(point, first, 1.0))
    aim = before / (2 * len(a) + t) * min(1.0, max(after, 0.0) / before) ** 3
    # Curvature of the constraints along the step.
    bend = 0.5 * first.a @ (y * (matrix @ (first.a[:, None] * y)))
    second = direction(
        aim - a * low - first.a * first.low,
        aim - (1 - a) * high + first.a * first.high,
        aim - mu * slack - first.mu * first.slack,
        bend,
    )
    return _moved(point, second, 0.99)


def _moved(point: _Point, step: _Point, reach: float) -> _Point:
    """Return the point after a step that goes at most a given fraction of the way to a bound."""
    nearest = max(1e-9, float((step.a / (1 - point.a)).max()))
    for x, d in zip(point[:5], step[:5], strict=True):
        nearest = max(nearest, float((-d / x).max()))
    length = min(1.0, reach / nearest)
    return _Point(
        a=point.a + length * step.a,
        low=point.low + length * step.low,
        high=point.high + length * step.high,
        mu=point.mu + length * step.mu,
        slack=point.slack + length * step.slack,
        eta=point.eta + length * step.eta,
    )


def _products(point: _Point) -> float:
    """Return the sum of the products that vanish at the optimum."""
    a, low, high, mu, slack, _ = point
    return float(a @ low + (1 - a) @ high + mu @ slack)


class LabelSearch:
    """Search for balanced labels with a large quadratic form y'Qy, where Q = diag α K diag α."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        n = len(problem.shares)
        root = np.sqrt(problem.shares)
        weighted = root[:, None] * problem.gram * root
        leading = [max(0, n - LEADING_AXES), n - 1]
        values, vectors = eigh(weighted, subset_by_index=leading)
        axes = vectors * np.sqrt(np.maximum(values, 0.0)) / root[:, None]
        self.axes = axes[:, ::-1]  # largest first

    def best(
        self, alpha: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct labellings to which the starts lead, and their forms.

        The labelling with the largest form comes first.
        """
        shares = self.problem.shares
        balance = self.problem.balance
        y = balanced_labels_of(alpha[:, None] * starts, shares, balance)
        slopes, forms = self._forms(alpha, y)
        while True:
            after = balanced_labels_of(slopes, shares, balance)
            slopes_after, forms_after = self._forms(alpha, after)
            is_larger = forms_after > forms * (1 + 1e-12)
            if not is_larger.any():
                break
            y = np.where(is_larger, after, y)
            slopes = np.where(is_larger, slopes_after, slopes)
            forms = np.where(is_larger, forms_after, forms)
        y = np.c_[self._flipped(alpha, y[:, forms.argmax()]), y]
        _, forms = self._forms(alpha, y)
        y *= np.where(y[0] == y[0, 0], 1.0, -1.0)  # -y and y are the same labelling
        order = np.argsort(-forms, kind="stable")
        _, first = np.unique(y[:, order], axis=1, return_index=True)
        distinct = order[np.sort(first)]
        return y[:, distinct].T, forms[distinct]

    def _forms(self, alpha: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Qy and y'Qy of each column."""
        slopes = alpha[:, None] * (self.problem.gram @ (alpha[:, None] * y))
        return slopes, np.einsum("it,it->t", y, slopes)

    def _flipped(self, alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Make the steepest flips, and swaps of two rows, as long as one keeps the balance."""
        Q = alpha[:, None] * self.problem.gram * alpha
        s = self.problem.shares
        y = y.copy()
        diagonal = np.diag(Q)
        f = Q @ y
        reach = max(self.problem.balance, abs(float(s @ y))) + 1e-12
        least = 1e-9 * max(float(diagonal.sum()), np.finfo(float).tiny)
        while True:
            # For the flip of each row: the gain in y'Qy, and s'y afterwards.
            gains = 4 * (diagonal - y * f)
            sums = s @ y - 2 * s * y
            flip_gains = np.where(np.abs(sums) <= reach, gains, -np.inf)
            best_flip = flip_gains.max()

            # For each swap of a row above 0 and a row below 0.
            up = np.flatnonzero(y > 0)
            down = np.flatnonzero(y < 0)
            both = gains[up][:, None] + gains[down]
            swap_gains = both - 8 * Q[np.ix_(up, down)]
            swap_sums = sums[up][:, None] + 2 * s[down]
            swap_gains[np.abs(swap_sums) > reach] = -np.inf
            best_swap = swap_gains.max(initial=-np.inf)

            if max(best_flip, best_swap) <= least:
                return y
            if best_swap > best_flip:
                i, j = divmod(int(swap_gains.argmax()), len(down))
                rows = [up[i], down[j]]
            else:
                rows = [flip_gains.argmax()]
            f -= 2 * Q[:, rows] @ y[rows]
            y[rows] *= -1


def balanced_labels_of(
    linear: np.ndarray, shares: np.ndarray, balance: float
) -> np.ndarray:
    """Return balanced labels with the largest linear form, for each column.

    The labels are the signs of the coefficients, except for the smallest coefficients.
    abs(s'y) can exceed the balance if a single row weighs more than the balance.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.baselines.label_generation import balanced_labels_of
    >>> linear = np.array([[1.0], [2.0], [3.0], [-4.0]])
    >>> balanced_labels_of(linear, np.full(4, 0.25), 0.0).ravel()
    array([-1.,  1.,  1., -1.])
    """
    least = (1 - balance) / 2 - 1e-12
    order = np.argsort(linear / shares[:, None], axis=0, kind="stable")
    below = np.cumsum(shares[order], axis=0)
    fewest = 1 + (below < least).sum(axis=0)
    most = (below <= 1 - least).sum(axis=0)
    n_negative = (linear < 0).sum(axis=0)
    n_negative = np.minimum(np.maximum(n_negative, fewest), most)
    ranks = np.arange(len(linear))[:, None]
    sorted_labels = np.where(ranks < n_negative, -1.0, 1.0)
    y = np.empty(linear.shape)
    np.put_along_axis(y, order, sorted_labels, axis=0)
    return y

"""Maximum margin clustering by generated labels (LG-MMC): a cutting plane over labellings.

Li, Tsang, Kwok and Zhou (AISTATS 2009) seek a mixture of all labellings in balance under which the SVM has
the least objective. Each labelling alone is a mixture, so the optimum is a lower bound of all objectives:

    max over α   e'α - 1/2 max over y in B  α'(K∘yy')α      s.t.  0 <= α_i <= u_i,   B: abs(s'y) <= balance

Semidefinite matrices with ones on their diagonal hold all mixtures, and more: this bound is the tighter one.

Mixing some labellings with weights μ, which are non-negative and sum to 1, is multiple kernel learning with a
kernel K∘yy' for each of them. Minimum over μ and maximum over α change places, as the value is linear in μ:

    min  η - e'α      s.t.  1/2 α'(K∘y_t y_t')α <= η for all t,   0 <= α <= u

The multipliers of the labellings are μ. A primal-dual interior point method solves it: a step factorises
Σ_t μ_t K∘y_t y_t' plus a diagonal, which takes about the cube of the rows, whatever the number of labellings.

The labellings are generated, from one on. Where α is the SVM of those so far, the next has the largest
quadratic form. Finding it is hard; the paper takes the best labels along one axis of the features. The search
here starts from them. Steps that maximise the linear form of the last labels, then single flips and swaps, do
not lower the quadratic form. So a fit ends when the search finds nothing more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from mmcnb.engine.run import single_threaded
from mmcnb.engine.session import Record, ignore
from mmcnb.features.rules import balanced_threshold, signs

MOST_STEPS = 100  # of the interior point method; most ends take about a dozen
TO_THE_EDGE = 0.99  # how far of the way to the nearest bound a step goes
AXES = 50  # leading axes of the features that labels start from
NEW = 5  # labellings a round: fewer take more rounds, and a round takes the same time
ROUNDING = 1e-10  # what labels have to win to be told from those of the mixture
SHARP = 1e-2  # gap of a mixture, as a share of the tolerance

# -- the mixture -------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelMixture:
    """Labellings, their weights and the SVM that they train together.

    Parameters
    ----------
    labels : ndarray of shape (t, n)
        Labellings, -1 or +1.
    weights : ndarray of shape (t,)
        μ: non-negative, of sum 1.
    multipliers : ndarray of shape (n,)
        α, one a row.
    value : float
        e'α less the largest quadratic form: at most the optimum.
    gap : float
        How far the optimum can lie above ``value``, by the primal form at μ.
    """

    labels: np.ndarray
    weights: np.ndarray
    multipliers: np.ndarray
    value: float
    gap: float


def mix_labels(
    gram: np.ndarray, labels: np.ndarray, bounds: np.ndarray, tolerance: float = 1e-8
) -> LabelMixture:
    """Weigh labellings so that the SVM under their mixture has the least objective.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Centred kernel matrix.
    labels : ndarray of shape (t, n)
        Labellings, -1 or +1.
    bounds : ndarray of shape (n,)
        Upper bounds u of the multipliers: C times the weight of the row.
    tolerance : float, default=1e-8
        Gap at which the problem is solved, as a share of the optimum.

    Returns
    -------
    LabelMixture
        The best that was seen; ``gap`` is above the tolerance where rounding errors ended the steps early.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.relaxations.label_generation import mix_labels
    >>> gram = np.array([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]])
    >>> found = mix_labels(gram, np.array([[1, 1, -1], [1, -1, 1], [-1, 1, 1]]), np.full(3, 9.0))
    >>> found.weights.round(3), round(found.value, 4)
    (array([0.333, 0.333, 0.333]), 0.5625)
    """
    problem = _MixtureProblem(gram, labels, bounds)
    point, best = problem.start(), None
    for _ in range(MOST_STEPS):
        forms = problem.forms(point.a)
        found = problem.mixture(point, *forms)
        best = found if best is None or found.gap < best.gap else best
        if found.gap <= tolerance * (found.value + found.gap):
            break
        try:
            with np.errstate(divide="raise", invalid="raise", over="raise"):
                point = _step(problem, point, *forms)
        except (FloatingPointError, np.linalg.LinAlgError):  # it was as close as numbers allow
            break
    assert best is not None
    return best


class _Point(NamedTuple):
    """Multipliers a = α/u, those of their bounds, μ, the slack of the labellings, and η."""

    a: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mu: np.ndarray
    slack: np.ndarray
    eta: float

    def moved(self, step: "_Point", length: float) -> "_Point":
        parts: Any = zip(self, step, strict=True)
        return _Point(*(one + length * other for one, other in parts))

    def steps_to_edge(self, step: "_Point") -> float:
        """How often the step fits in before a bound is reached."""
        ratios = [-step.a / self.a, step.a / (1 - self.a), -step.low / self.low, -step.high / self.high]
        ratios += [-step.mu / self.mu, -step.slack / self.slack]
        return 1 / max(1e-9, *(float(ratio.max()) for ratio in ratios))

    def products(self) -> float:
        """Sum of the products that vanish at the optimum."""
        return float(self.a @ self.low + (1 - self.a) @ self.high + self.mu @ self.slack)


class _MixtureProblem:
    """The problem in a = α/u and in units of Σ u, the sum of all losses at w = 0."""

    def __init__(self, gram: np.ndarray, labels: np.ndarray, bounds: np.ndarray) -> None:
        self.labels, self.bounds = labels, bounds
        self.total = float(bounds.sum())
        self.gain = bounds / self.total
        self.matrix = bounds[:, None] * gram * self.gain
        self.y = np.ascontiguousarray(labels.T, np.float64)

    def forms(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradients (n, t) and values (t,) of the quadratic forms."""
        slopes = self.y * (self.matrix @ (a[:, None] * self.y))
        return slopes, 0.5 * a @ slopes

    def start(self) -> _Point:
        n, t = self.y.shape
        ones, size = np.ones(n), 2 * float(self.forms(np.ones(n))[1].max())
        a = ones * min(0.5, 1 / max(size, 1.0))
        values, least = self.forms(a)[1], float(self.gain.mean())
        eta = 1.5 * float(values.max()) + least
        return _Point(a, least * ones, least * ones, np.full(t, 1 / t), eta - values, eta)

    def mixture(self, point: _Point, slopes: np.ndarray, values: np.ndarray) -> LabelMixture:
        """The point as a mixture, its gap by Σ u_i max(0, 1 - f_i) at the weights."""
        weights = point.mu / point.mu.sum()
        value = float(self.gain @ point.a - values.max())
        primal = float(values @ weights + np.maximum(0, self.gain - slopes @ weights).sum())
        gap = max(0.0, primal - value)
        alpha = point.a * self.bounds
        return LabelMixture(self.labels, weights, alpha, value * self.total, gap * self.total)


def _step(problem: _MixtureProblem, point: _Point, slopes: np.ndarray, values: np.ndarray) -> _Point:
    """Mehrotra's predictor and corrector, with one factorisation."""
    solve = _newton(problem, point, slopes, values)
    a, low, high, mu, slack, _ = point
    count = 2 * a.shape[0] + mu.shape[0]
    predicted = solve(-a * low, -(1 - a) * high, -mu * slack, 0.0)
    reached = point.moved(predicted, min(1.0, point.steps_to_edge(predicted)))
    before, after = point.products(), reached.products()
    aim = before / count * min(1.0, max(after, 0.0) / before) ** 3
    bend = problem.forms(predicted.a)[1]  # what the linear form of the constraints left out
    step = solve(
        aim - a * low - predicted.a * predicted.low,
        aim - (1 - a) * high + predicted.a * predicted.high,
        aim - mu * slack - predicted.mu * predicted.slack,
        bend,
    )
    return point.moved(step, min(1.0, TO_THE_EDGE * point.steps_to_edge(step)))


def _newton(
    problem: _MixtureProblem, point: _Point, slopes: np.ndarray, values: np.ndarray
) -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray | float], _Point]:
    """What solves the linear system of a step for given changes of the products."""
    a, low, high, mu, slack, eta = point
    t = mu.shape[0]
    hessian = problem.matrix * ((problem.y * mu) @ problem.y.T)
    hessian[np.diag_indices_from(hessian)] += low / a + high / (1 - a)
    factor = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
    solved_slopes = cho_solve(factor, slopes, check_finite=False)
    border = np.ones((t + 1, t + 1))  # of the labellings, and of the sum of their weights
    border[:t, :t] = slopes.T @ solved_slopes
    border[range(t), range(t)] += slack / mu
    border[t, t] = 0.0
    descent = problem.gain - slopes @ mu + low - high

    def solve(of_low: np.ndarray, of_high: np.ndarray, of_mu: np.ndarray, bend: np.ndarray | float) -> _Point:
        right = cho_solve(factor, descent + of_low / a - of_high / (1 - a), check_finite=False)
        missed = eta - values - slack - bend
        found = np.linalg.solve(border, np.r_[of_mu / mu - missed + slopes.T @ right, 1 - mu.sum()])
        d_mu, d_eta = found[:t], float(found[t])
        d_a = right - solved_slopes @ d_mu
        d_slack = missed + d_eta - slopes.T @ d_a
        return _Point(d_a, (of_low - low * d_a) / a, (of_high + high * d_a) / (1 - a), d_mu, d_slack, d_eta)

    return solve


# -- generating labellings ---------------------------------------------------------------------


@dataclass(frozen=True)
class GeneratedLabels:
    """Labellings that were generated, and the mixture of them.

    Parameters
    ----------
    mixture : LabelMixture
        The last one; its value is at most ``mixture.gap`` below the optimum over its labellings.
    bound : float
        e'α less half the largest quadratic form found, the best of all rounds: what more labellings can
        lower the value to, as far as the search sees.
    rounds : int
        How many mixtures were trained.
    converged : bool
        Whether value and bound are within the tolerance; otherwise the rounds, or rounding errors, ended it.
    """

    mixture: LabelMixture
    bound: float
    rounds: int
    converged: bool


def generate_labels(
    gram: np.ndarray,
    bounds: np.ndarray,
    shares: np.ndarray,
    balance: float,
    tolerance: float = 1e-2,
    max_rounds: int = 100,
    record: Record = ignore,
) -> GeneratedLabels:
    """Generate labellings and mix them, until none that the search finds lowers the objective by much.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Centred kernel matrix.
    bounds : ndarray of shape (n,)
        Upper bounds u of the multipliers: C times the weight of the row.
    shares : ndarray of shape (n,)
        Share s of each row in the weight, above 0.
    balance : float
        l/n: bound of abs(s'y).
    tolerance : float, default=1e-2
        By how much, as a share of the objective, the next labels may at best lower it at the end.
    max_rounds : int, default=100
        Rounds at most.
    record : callable, default=ignore
        Takes a row a round: the objective of the mixture, the bound and the number of labellings.

    Returns
    -------
    GeneratedLabels
        The mixture and the bound; the objective never rises from round to round.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.relaxations.label_generation import generate_labels
    >>> found = generate_labels(np.array([[1.0, -1], [-1, 1]]), np.ones(2), np.full(2, 0.5), 0.0)
    >>> found.mixture.labels, round(found.mixture.value, 3), found.converged
    (array([[-1,  1]], dtype=int8), 0.5, True)
    """
    with single_threaded("blas"):  # the same bits on any machine
        search = LabelSearch(gram, shares, balance)
        labels, bound, number = search.best(bounds, search.axes)[0][:1], -np.inf, 0
        while True:
            mixture = mix_labels(gram, labels, bounds, SHARP * tolerance)
            alpha, number = mixture.multipliers, number + 1
            found, forms = search.best(alpha, np.c_[search.axes, labels.T])
            values = alpha.sum() - 0.5 * forms
            bound = max(bound, min(float(values[0]), mixture.value))
            row = {"stage": "sample", "round": number - 1, "objective": mixture.value, "bound": bound}
            record(row | {"labellings": labels.shape[0]})
            new = found[mixture.value - values > ROUNDING * abs(mixture.value)][:NEW]
            converged = mixture.value + mixture.gap - bound <= tolerance * mixture.value
            if converged or new.shape[0] == 0 or number >= max_rounds:
                return GeneratedLabels(mixture, bound, number, converged)
            labels = np.r_[labels, new]


class LabelSearch:
    """Labels in balance with a large quadratic form y'Qy, Q = diag α K diag α."""

    def __init__(self, gram: np.ndarray, shares: np.ndarray, balance: float) -> None:
        n, root = shares.shape[0], np.sqrt(shares)
        self.gram, self.shares, self.balance = gram, shares, balance
        weighted = root[:, None] * gram * root  # the axes do not tell a weight of 2 from a row given twice
        values, vectors = eigh(weighted, subset_by_index=[max(0, n - AXES), n - 1])
        self.axes = (vectors * np.sqrt(np.maximum(values, 0.0)) / root[:, None])[:, ::-1]

    def best(self, alpha: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Labellings that the starts lead to, each once, and their forms, the largest first."""
        y = balanced_labels_of(alpha[:, None] * starts, self.shares, self.balance)
        slopes, forms = self._forms(alpha, y)
        while True:
            after = balanced_labels_of(slopes, self.shares, self.balance)
            their_slopes, their_forms = self._forms(alpha, after)
            larger = their_forms > forms * (1 + 1e-12)
            if not larger.any():
                break
            y, slopes = np.where(larger, after, y), np.where(larger, their_slopes, slopes)
            forms = np.where(larger, their_forms, forms)
        top = forms.argmax()
        first, largest = self._flipped(alpha, y[:, top])
        y, forms = np.c_[first, y], np.r_[max(largest, forms[top]), forms]
        y *= np.where(y[0] == y[0, 0], 1.0, -1.0)  # -y is the same labelling
        order = np.argsort(-forms, kind="stable")
        _, once = np.unique(y[:, order], axis=1, return_index=True)
        kept = order[np.sort(once)]
        return y[:, kept].T.astype(np.int8), forms[kept]

    def _forms(self, alpha: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Qy and y'Qy of each column."""
        slopes = alpha[:, None] * (self.gram @ (alpha[:, None] * y))
        return slopes, np.einsum("it,it->t", y, slopes)

    def _flipped(self, alpha: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
        """The steepest single flips, and swaps of two rows, while there are any in balance."""
        Q, s, y = alpha[:, None] * self.gram * alpha, self.shares, y.copy()
        own, f, reach = np.diag(Q), Q @ y, max(self.balance, abs(float(s @ y))) + 1e-12
        least = 1e-9 * max(float(own.sum()), np.finfo(float).tiny)
        while True:
            gains, sums = 4 * (own - y * f), s @ y - 2 * s * y
            alone = np.where(np.abs(sums) <= reach, gains, -np.inf)
            up, down = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
            pairs = gains[up][:, None] + gains[down] - 8 * Q[np.ix_(up, down)]
            pairs[np.abs(sums[up][:, None] + 2 * s[down]) > reach] = -np.inf
            if max(alone.max(), pairs.max(initial=-np.inf)) <= least:
                return y, float(y @ f)
            if alone.max() >= pairs.max(initial=-np.inf):
                rows = [alone.argmax()]
            else:
                one, other = divmod(int(pairs.argmax()), len(down))
                rows = [up[one], down[other]]
            for row in rows:
                f -= 2 * y[row] * Q[:, row]
                y[row] = -y[row]


def mixture_labels(
    mixture: LabelMixture, gram: np.ndarray, shares: np.ndarray, balance: float
) -> tuple[np.ndarray, float]:
    """The labels that a mixture rounds to, in balance, and the share of its largest eigenvalue."""
    root = np.sqrt(shares)  # a weight of 2 is the row given twice, in the eigenvectors too
    labels = np.sqrt(mixture.weights)[:, None] * mixture.labels
    _, sizes, vectors = np.linalg.svd(labels * root, full_matrices=False)
    f = gram @ (mixture.multipliers * vectors[0] / root)
    return signs(f - balanced_threshold(f, shares, balance)), float(sizes[0] ** 2 / (sizes**2).sum())


def balanced_labels_of(linear: np.ndarray, shares: np.ndarray, balance: float) -> np.ndarray:
    """Labels in balance with the largest linear form: signs after sorting, as few as can be overruled.

    A linear form is a column of coefficients, and each column gets labels -1.0 or 1.0. abs(s'y) can exceed
    the balance where single rows weigh more.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.relaxations.label_generation import balanced_labels_of
    >>> balanced_labels_of(np.array([[1.0], [2.0], [3.0], [-4.0]]), np.full(4, 0.25), 0.0).ravel()
    array([-1.,  1.,  1., -1.])
    """
    least = (1 - balance) / 2 - 1e-12
    order = np.argsort(linear / shares[:, None], axis=0, kind="stable")
    below = np.cumsum(shares[order], axis=0)
    fewest, most = 1 + (below < least).sum(axis=0), (below <= 1 - least).sum(axis=0)
    count = np.minimum(np.maximum((linear < 0).sum(axis=0), fewest), most)
    y = np.empty(linear.shape)
    np.put_along_axis(y, order, np.where(np.arange(len(linear))[:, None] < count, -1.0, 1.0), axis=0)
    return y

"""The support vector machine under a mixture of labellings: multiple kernels, one for each of them.

A labelling y makes of the centred kernel matrix K the matrix K∘yy'. Li, Tsang, Kwok and Zhou mix them with
weights μ, which are non-negative and sum to 1, and train one machine; u bounds its multipliers:

    min over μ  max over α   e'α - 1/2 Σ_t μ_t α'(K∘y_t y_t')α      s.t.  0 <= α_i <= u_i

Minimum and maximum change places, as the value is linear in μ, and the inner minimum is the largest of the
quadratic forms: a convex programme in α and one number more,

    min  η - e'α      s.t.  1/2 α'(K∘y_t y_t')α <= η for all t,   0 <= α <= u

whose multipliers of the labellings are μ. A primal-dual interior point method solves it: a step factorises
Σ_t μ_t K∘y_t y_t' plus a diagonal, so that it takes about the cube of the rows and hardly feels the labels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

MOST_STEPS = 100  # most ends take about a dozen
TO_THE_EDGE = 0.99  # how far of the way to the nearest bound a step goes


@dataclass(frozen=True)
class LabelMixture:
    """Labellings, their weights and the machine that they train together.

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
    """Weigh labellings so that the machine under their mixture has the least objective.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Centred kernel matrix.
    labels : ndarray of shape (t, n)
        Labellings, -1 or +1.
    bounds : ndarray of shape (n,)
        Upper bounds u of the multipliers, above 0: C times the weight of the row.
    tolerance : float, default=1e-8
        Gap at which the programme is solved, as a share of the optimum.

    Returns
    -------
    LabelMixture
        The best that was seen; ``gap`` is above the tolerance where rounding errors ended the steps early.

    References
    ----------
    Y.-F. Li, I. W. Tsang, J. T. Kwok and Z.-H. Zhou, Tighter and convex maximum margin clustering,
    AISTATS 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.relaxations.label_mixture import mix_labels
    >>> gram = np.array([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]])
    >>> found = mix_labels(gram, np.array([[1, 1, -1], [1, -1, 1], [-1, 1, 1]]), np.full(3, 9.0))
    >>> found.weights.round(3), round(found.value, 4)
    (array([0.333, 0.333, 0.333]), 0.5625)
    """
    programme = _Programme(gram, labels, bounds)
    point, best = programme.start(), None
    for _ in range(MOST_STEPS):
        forms = programme.forms(point.a)
        found = programme.mixture(point, *forms)
        best = found if best is None or found.gap < best.gap else best
        if found.gap <= tolerance * (found.value + found.gap):
            break
        try:
            with np.errstate(divide="raise", invalid="raise", over="raise"):
                point = _step(programme, point, *forms)
        except (FloatingPointError, np.linalg.LinAlgError):  # it was as close as numbers allow
            break
    assert best is not None
    return best


@dataclass(frozen=True)
class _Point:
    """Multipliers a = α/u, those of their bounds, μ, the slack of the labellings, and η."""

    a: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mu: np.ndarray
    slack: np.ndarray
    eta: float

    def moved(self, step: "_Point", length: float) -> "_Point":
        return _Point(*(one + length * other for one, other in zip(_parts(self), _parts(step), strict=True)))

    def room(self, step: "_Point") -> float:
        """How often the step fits in before a bound is reached."""
        ratios = [-step.a / self.a, step.a / (1 - self.a), -step.low / self.low, -step.high / self.high]
        ratios += [-step.mu / self.mu, -step.slack / self.slack]
        return 1 / max(1e-9, *(float(ratio.max()) for ratio in ratios))

    def products(self) -> float:
        """Sum of the products that vanish at the optimum."""
        return float(self.a @ self.low + (1 - self.a) @ self.high + self.mu @ self.slack)


def _parts(point: _Point) -> tuple[Any, ...]:
    return point.a, point.low, point.high, point.mu, point.slack, point.eta


class _Programme:
    """The programme in a = α/u and in units of Σ u, the sum of all losses at w = 0."""

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


def _step(programme: _Programme, point: _Point, slopes: np.ndarray, values: np.ndarray) -> _Point:
    """Mehrotra's predictor and corrector, with one factorisation."""
    solve = _newton(programme, point, slopes, values)
    a, low, high, mu, slack, _ = _parts(point)
    count = 2 * a.shape[0] + mu.shape[0]
    predicted = solve(-a * low, -(1 - a) * high, -mu * slack, 0.0)
    before, after = point.products(), point.moved(predicted, min(1.0, point.room(predicted))).products()
    aim = before / count * min(1.0, max(after, 0.0) / before) ** 3
    bend = programme.forms(predicted.a)[1]  # what the linear form of the constraints left out
    step = solve(
        aim - a * low - predicted.a * predicted.low,
        aim - (1 - a) * high + predicted.a * predicted.high,
        aim - mu * slack - predicted.mu * predicted.slack,
        bend,
    )
    return point.moved(step, min(1.0, TO_THE_EDGE * point.room(step)))


def _newton(
    programme: _Programme, point: _Point, slopes: np.ndarray, values: np.ndarray
) -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray | float], _Point]:
    """What solves the linear system of a step for given changes of the products."""
    a, low, high, mu, slack, eta = _parts(point)
    t = mu.shape[0]
    hessian = programme.matrix * ((programme.y * mu) @ programme.y.T)
    hessian[np.diag_indices_from(hessian)] += low / a + high / (1 - a)
    factor = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
    solved_slopes = cho_solve(factor, slopes, check_finite=False)
    border = np.ones((t + 1, t + 1))  # of the labellings, and of the sum of their weights
    border[:t, :t] = slopes.T @ solved_slopes
    border[range(t), range(t)] += slack / mu
    border[t, t] = 0.0
    descent = programme.gain - slopes @ mu + low - high

    def solve(of_low: np.ndarray, of_high: np.ndarray, of_mu: np.ndarray, bend: np.ndarray | float) -> _Point:
        right = cho_solve(factor, descent + of_low / a - of_high / (1 - a), check_finite=False)
        missed = eta - values - slack - bend
        found = np.linalg.solve(border, np.r_[of_mu / mu - missed + slopes.T @ right, 1 - mu.sum()])
        d_mu, d_eta = found[:t], float(found[t])
        d_a = right - solved_slopes @ d_mu
        d_slack = missed + d_eta - slopes.T @ d_a
        return _Point(d_a, (of_low - low * d_a) / a, (of_high + high * d_a) / (1 - a), d_mu, d_slack, d_eta)

    return solve

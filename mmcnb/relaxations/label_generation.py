"""Maximum margin clustering by generated labels (LG-MMC): a cutting plane over labellings.

Of all labellings in balance a mixture is sought under which the machine has the least objective; each of
them alone is a mixture, so that the optimum bounds the objective of every one from below:

    max over α   e'α - 1/2 max over y in B  α'(K∘yy')α      s.t.  0 <= α_i <= u_i,   B: abs(s'y) <= balance

Semidefinite matrices with ones on their diagonal hold all mixtures, and more: this bound is the tighter one.
The labellings are generated, from one on. Where α is the machine of those so far, the next has the largest
quadratic form. That is a hard problem: Li, Tsang, Kwok and Zhou take the best labels along one axis of the
features. They are where we start from; steps that maximise the linear form of the last labels, then single
flips and swaps, do not lower the quadratic form. So a fit ends when the search finds nothing more.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from mmcnb.relaxations.label_mixture import LabelMixture, mix_labels

AXES = 50  # leading axes of the features that labels start from
NEW = 5  # labellings a round: fewer take more rounds, and a round takes the same time
ROUNDING = 1e-10  # what labels have to win to be told from those of the mixture
SHARP = 1e-2  # gap of a mixture, as a share of the tolerance


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
    record: Callable[[int, float, float, int], None] | None = None,
) -> GeneratedLabels:
    """Generate labellings and mix them, until none that the search finds lowers the objective by much.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Centred kernel matrix.
    bounds : ndarray of shape (n,)
        Upper bounds u of the multipliers, above 0: C times the weight of the row.
    shares : ndarray of shape (n,)
        Share s of each row in the weight, above 0.
    balance : float
        l/n: bound of abs(s'y).
    tolerance : float, default=1e-2
        By how much, as a share of the objective, the next labels may at best lower it at the end.
    max_rounds : int, default=100
        Rounds at most.
    record : callable or None, default=None
        Told the round, the objective of the mixture, the bound and the number of labellings.

    Returns
    -------
    GeneratedLabels
        The mixture and the bound; the objective never rises from round to round.

    References
    ----------
    Y.-F. Li, I. W. Tsang, J. T. Kwok and Z.-H. Zhou, Tighter and convex maximum margin clustering,
    AISTATS 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.relaxations.label_generation import generate_labels
    >>> found = generate_labels(np.array([[1.0, -1], [-1, 1]]), np.ones(2), np.full(2, 0.5), 0.0)
    >>> found.mixture.labels, round(found.mixture.value, 3), found.converged
    (array([[-1,  1]], dtype=int8), 0.5, True)
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):  # the same bits on any machine
        search = _Search(gram, shares, balance)
        labels, bound, number = search.best(bounds, search.axes)[0][:1], -np.inf, 0
        while True:
            mixture = mix_labels(gram, labels, bounds, SHARP * tolerance)
            alpha, number = mixture.multipliers, number + 1
            found, forms = search.best(alpha, np.c_[search.axes, labels.T])
            values = alpha.sum() - 0.5 * forms
            bound = max(bound, min(float(values[0]), mixture.value))
            if record is not None:
                record(number - 1, mixture.value, bound, labels.shape[0])
            new = found[mixture.value - values > ROUNDING * abs(mixture.value)][:NEW]
            converged = mixture.value + mixture.gap - bound <= tolerance * mixture.value
            if converged or new.shape[0] == 0 or number >= max_rounds:
                return GeneratedLabels(mixture, bound, number, converged)
            labels = np.r_[labels, new]


class _Search:
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


def balanced_labels_of(linear: np.ndarray, shares: np.ndarray, balance: float) -> np.ndarray:
    """Labels in balance with the largest linear form: signs after sorting, as few as can be overruled.

    Parameters
    ----------
    linear : ndarray of shape (n, k)
        Coefficients, a linear form a column.
    shares : ndarray of shape (n,)
        Share s of each row in the weight, above 0.
    balance : float
        l/n: bound of abs(s'y), as far as rows that cannot be parted allow.

    Returns
    -------
    ndarray of shape (n, k)
        Labels, -1.0 or 1.0.

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

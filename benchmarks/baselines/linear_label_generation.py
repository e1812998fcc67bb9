"""LG-MMC with a linear kernel, for rows whose kernel matrix is too large.

Each labelling y_t has a block of weights v_t, and a mixture μ of labellings has the
score

    f_i = Σ_t √μ_t y_ti v_t·x_i
    min over v, μ   1/2 Σ_t |v_t|² + C/2 Σ_i max(0, 1 - f_i)²

The loss is squared, as in the paper of Li, Tsang, Kwok and Zhou, so that α_i = C max(0,
1 - f_i) are the multipliers. The next labels have a large |Σ_i α_i y_i x_i|; their
search starts from single columns, as in the paper.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import issparse

from benchmarks.baselines.label_generation import balanced_labels_of
from benchmarks.baselines.svm import balanced_threshold, clusters, rows_of, signs

COLUMNS = 20  # number of columns from which labels start
STEPS = 5  # number of steps of the weights of the labellings
CLOSE = 1e-2  # these steps end if no weight changes by more
# Length of these steps. With a length of 1, they are the steps of the multiple kernel
# literature, which converge slowly.
POWER = 3


@dataclass
class LinearLabelGenerationMMC:
    """LG-MMC on columns, where a round costs a few dozen products with the rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the squared loss of a row, for rows scaled to a mean squared distance
        of 1 from the mean.
    balance, scale
        As in `IterativeSVR`; the machine has no offset in centred columns.
    tol : float, default=1e-2
        The rounds end when the next labels lower the objective by at most this
        fraction.
    max_iter : int, default=10
        Largest number of rounds.

    Notes
    -----
    Differs from the paper: SKMMC-23; see docs/differences.

    Examples
    --------
    >>> from benchmarks.baselines import LinearLabelGenerationMMC
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(200, centers=2, random_state=0, cluster_std=0.5)
    >>> model = LinearLabelGenerationMMC().fit(X)
    >>> bool((model.labels_ == (y != y[0])).all()), model.bound_ <= model.objective_
    (True, True)
    """

    C: float = 1.0
    balance: float = 0.4
    tol: float = 0.01
    max_iter: int = 10
    scale: str | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters of dense or CSR rows."""
        columns = CentredColumns(rows_of(X, self.scale))
        no_labels = np.empty((columns.n, 0))
        bound = -np.inf
        first, _ = self._next_labels(columns, np.ones(columns.n), no_labels)
        labels = first[:, None]
        for n_iter in range(1, self.max_iter + 1):
            mixture = mix_columns(columns, labels, self.C)
            alpha = mixture.multipliers
            new, form = self._next_labels(columns, alpha, labels)
            value = alpha.sum() - (form + alpha @ alpha / self.C) / 2
            bound = max(bound, min(value, mixture.value))
            self.n_iter_ = n_iter
            self.converged_ = bool(mixture.value - bound <= self.tol * mixture.value)
            if self.converged_ or (labels == new[:, None]).all(axis=0).any():
                break
            labels = np.c_[labels, new]
        mixed = labels[:, : len(mixture.weights)]
        candidates = [self._rounded(columns, mixed, mixture), *labels.T]
        machines = [mix_columns(columns, y[:, None], self.C) for y in candidates]
        best = int(np.argmin([machine.value for machine in machines]))
        f = candidates[best] * machines[best].scores
        self.labels_ = clusters(f - balanced_threshold(f, columns.shares, self.balance))
        self.objective_ = machines[best].value
        self.relaxed_ = mixture.value
        self.bound_ = float(bound)
        return self

    def _next_labels(
        self, columns: "CentredColumns", alpha: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return balanced labels with a large |Σ α_i y_i x_i|², and this form.

        The search starts from columns and from earlier labels.
        """
        shares = columns.shares
        weights = alpha[:, None]
        starts = np.c_[columns.widest(), labels]
        y = balanced_labels_of(weights * starts, shares, self.balance)
        sums = columns.sums(weights * y)
        forms = np.einsum("dt,dt->t", sums, sums)
        while True:
            best = int(forms.argmax())
            linear = weights * columns.scores(sums[:, [best]])
            after = balanced_labels_of(linear, shares, self.balance)
            sums_after = columns.sums(weights * after)
            form = float((sums_after**2).sum())
            if form <= forms[best] * (1 + 1e-12):
                best_labels = y[:, best]
                return best_labels * best_labels[0], float(forms[best])
            y[:, best] = after[:, 0]
            sums[:, best] = sums_after[:, 0]
            forms[best] = form

    def _rounded(
        self, columns: "CentredColumns", labels: np.ndarray, mixture: "Mixture"
    ) -> np.ndarray:
        """Return labels from the leading vector of a mixture, as `LabelGenerationMMC` does."""
        weighted = np.sqrt(mixture.weights) * labels
        vectors, _, _ = np.linalg.svd(weighted, full_matrices=False)
        coefficients = mixture.multipliers * vectors[:, 0]
        f = columns.scores(columns.sums(coefficients[:, None]))[:, 0]
        return signs(f - balanced_threshold(f, columns.shares, self.balance))


class CentredColumns:
    """Rows minus their mean, divided by their root mean squared length; CSR rows stay CSR."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.n = X.shape[0]
        self.mean = np.asarray(X.mean(axis=0)).ravel()
        if issparse(X):
            squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        else:
            squares = np.einsum("ij,ij->j", X, X) / self.n
        self.variances = np.maximum(squares - self.mean**2, 0)
        self.length = float(np.sqrt(self.variances.sum())) or 1.0
        self.shares = np.full(self.n, 1 / self.n)

    def scores(self, vectors: np.ndarray) -> np.ndarray:
        """Return the products of the rows with the columns of `vectors`."""
        return (self.X @ vectors - self.mean @ vectors) / self.length

    def sums(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the sums of the rows with each column of coefficients."""
        sums = self.X.T @ coefficients
        of_mean = np.outer(self.mean, coefficients.sum(axis=0))
        return (sums - of_mean) / self.length

    def widest(self) -> np.ndarray:
        """Return the columns with the largest variance."""
        chosen = np.argsort(-self.variances, kind="stable")[:COLUMNS]
        columns = self.X[:, chosen]
        if issparse(columns):
            columns = columns.toarray()
        return columns - self.mean[chosen]


class Mixture(NamedTuple):
    """Weights of labellings; multipliers, scores and objective of their machine."""

    weights: np.ndarray
    multipliers: np.ndarray
    scores: np.ndarray
    value: float


def mix_columns(columns: CentredColumns, labels: np.ndarray, C: float) -> Mixture:
    """Train the machine of labellings of shape (n, t), and find their weights.

    For given weights, training the machine is a smooth problem. At the optimal weights,
    |v_t|/√μ_t is equal for all labellings with a positive weight, so a step raises the
    weights of the labellings for which this ratio is larger.
    """
    d = len(columns.mean)
    t = labels.shape[1]
    weights = np.full(t, 1 / t)
    v = np.zeros(d * t)

    def loss_and_slopes(v: np.ndarray) -> tuple[float, np.ndarray]:
        blocks = v.reshape(d, t)
        y = labels * np.sqrt(weights)
        f = np.einsum("it,it->i", y, columns.scores(blocks))
        missing = np.maximum(0, 1 - f)
        slopes = blocks - columns.sums(C * missing[:, None] * y)
        return 0.5 * float(v @ v + C * missing @ missing), slopes.ravel()

    for _ in range(STEPS if t > 1 else 1):
        trained = minimize(
            loss_and_slopes,
            v,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 200, "ftol": 1e-6},
        )
        blocks = trained.x.reshape(d, t)
        trained_weights = weights
        lengths = np.linalg.norm(blocks, axis=0) / np.sqrt(weights)
        products = weights * lengths**POWER
        after = np.maximum(products / products.sum(), 1e-12)
        if np.abs(after - weights).max() < CLOSE:
            break
        v = (blocks * np.sqrt(weights / after)).ravel()
        weights = after
    y = labels * np.sqrt(trained_weights)
    scores = np.einsum("it,it->i", y, columns.scores(blocks))
    return Mixture(
        weights=trained_weights,
        multipliers=C * np.maximum(0, 1 - scores),
        scores=scores,
        value=float(trained.fun),
    )

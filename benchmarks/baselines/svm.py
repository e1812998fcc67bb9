"""Shared parts of the baselines: rows and kernel, balanced labels, and the support vector machine of labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import piqp
from scipy.sparse import issparse
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels
from sklearn.preprocessing import StandardScaler

from mmcnb import InputError

POLYNOMIAL = {"degree": 3, "coef0": 1.0}


def rows_of(X: Any, scale: str | None) -> Any:
    """Return dense or CSR rows as float64.

    "standard" scales the columns, and centres them if the rows are dense.
    """
    X = X.astype(np.float64)
    if scale == "standard":
        return StandardScaler(with_mean=not issparse(X)).fit_transform(X)
    return X


def default_gamma(
    gamma: float | str, kernel: str, X: Any, weights: np.ndarray
) -> float:
    """Return gamma as a number.

    "auto", "median" and "scale" mean the same as in `mmcnb.KernelKMeans`.
    """
    if not isinstance(gamma, str):
        return gamma
    if gamma == "median":
        pairs = np.triu_indices(X.shape[0], 1)
        squared = euclidean_distances(X, squared=True)[pairs]
        return 0.5 / float(np.median(squared))
    squares = X.power(2) if issparse(X) else X**2
    mean = weights @ X / weights.sum()
    mean_square = weights @ squares / weights.sum()
    if gamma == "auto" and kernel == "rbf":
        variance = np.maximum(mean_square - mean**2, 0).sum()
        return 1 / (2 * 0.55**2 * float(2 * variance))
    return 1 / (X.shape[1] * float(mean_square.mean() - mean.mean() ** 2))


def balanced_threshold(f: np.ndarray, shares: np.ndarray, balance: float) -> float:
    """Return the threshold closest to 0 that leaves enough weight on both sides of f.

    Each side has at least (1 - balance)/2 of the weight.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.baselines.svm import balanced_threshold
    >>> balanced_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.25), 0.0)
    2.5
    """
    least = (1 - balance) / 2 - 1e-12
    if least <= shares[f < 0].sum() <= 1 - least:
        return 0.0
    order = np.argsort(f, kind="stable")
    values = f[order]
    gaps = np.flatnonzero(values[1:] > values[:-1])
    if gaps.size == 0:
        return 0.0
    middles = (values[gaps] + values[gaps + 1]) / 2
    below = np.cumsum(shares[order])[gaps]
    smaller_side = np.minimum(below, 1 - below)
    is_fair = smaller_side >= min(least, smaller_side.max())
    thresholds = middles[is_fair]
    return float(thresholds[np.abs(thresholds).argmin()])


def signs(f: np.ndarray) -> np.ndarray:
    """Return decision values as labels -1 or +1."""
    return np.where(f >= 0, 1, -1)


def clusters(f: np.ndarray) -> np.ndarray:
    """Return decision values as clusters; the first row is in cluster 0."""
    return ((f >= 0) != (f[0] >= 0)).astype(np.int32)


@dataclass(frozen=True)
class Problem:
    """The search for a wide margin through the mean of the rows.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Kernel matrix of the features less their weighted mean.
    bounds : ndarray of shape (n,)
        Upper bounds of the multipliers: C times the weight of the row.
    shares : ndarray of shape (n,)
        Share of each row in the total weight.
    balance : float
        l/n: bound of abs(shares·y).
    """

    gram: np.ndarray
    bounds: np.ndarray
    shares: np.ndarray
    balance: float

    def svm(self, y: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the multipliers of the machine of labels y, and its objective.

        Without offset, max e'α - 1/2 α'(K∘yy')α = min 1/2 |w|² + Σ u_i max(0, 1 - y_i
        w·φ_i), for 0 <= α <= u.
        """
        size = self.bounds.max()
        scaled = y * self.bounds
        matrix = np.asfortranarray(scaled[:, None] * self.gram * scaled / size)
        gain = -self.bounds / size
        for tolerance in (1e-10, 1e-8, 1e-6):
            solver = piqp.DenseSolver()
            solver.settings.eps_abs = tolerance
            solver.settings.eps_rel = tolerance
            solver.setup(matrix, gain, x_l=np.zeros(len(y)), x_u=np.ones(len(y)))
            if solver.solve() == piqp.PIQP_SOLVED:
                alpha = self.bounds * np.clip(solver.result.x, 0.0, 1.0)
                norm2 = (alpha * y) @ self.gram @ (alpha * y)
                return alpha, float(alpha.sum() - 0.5 * norm2)
        raise InputError(
            "the support vector machine of the labels has no solution; lower C."
        )

    def result(self, y: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the balanced clusters of a machine, and their objective.

        The objective is 1/2 |w|² + Σ u_i max(0, 1 - abs(f_i)).
        """
        f = self.gram @ (alpha * y)
        norm2 = float(alpha * y @ f)
        f -= balanced_threshold(f, self.shares, self.balance)
        loss = float(self.bounds @ np.maximum(0, 1 - np.abs(f)))
        return clusters(f), 0.5 * norm2 + loss


def centred_problem(model: Any, X: Any, sample_weight: np.ndarray | None) -> Problem:
    """Return the problem with a model's C, gamma, kernel, balance and scale for given rows."""
    X = rows_of(X, model.scale)
    weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    shares = weights / weights.sum()
    gamma = default_gamma(model.gamma, model.kernel, X, weights)
    K = pairwise_kernels(
        X, metric=model.kernel, filter_params=True, gamma=gamma, **POLYNOMIAL
    )
    means = K @ shares
    centred = K - means[:, None] - means + shares @ means
    return Problem(
        gram=(centred + centred.T) / 2,
        bounds=model.C * weights,
        shares=shares,
        balance=model.balance,
    )

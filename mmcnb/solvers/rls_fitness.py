"""The least squares fitness of two-cluster labels on a sample, and the model that labels lead to.

With weights w of mean 1, f of the labels y minimises Σ w_i (y_i - f(x_i))² + λ|f|², in the features of a
kernel that is centred at the weighted mean unless told otherwise; F(y), of which less is better, is the
minimum a row, 1 - y'My/m for a fixed matrix M. Without weights M = R = K (K + λI)^-1, the smoother.
"""

from dataclasses import dataclass

import numpy as np

from mmcnb.solvers.hyperplane import Hyperplane
from mmcnb.solvers.problem import row_shares
from mmcnb.solvers.rls import smoother
from mmcnb.solvers.rls_path import SMALLEST_VARIANCE


@dataclass(frozen=True)
class MatrixFitness:
    """The fitness with all rows as the basis: EvoMMC.

    Parameters
    ----------
    M : ndarray of shape (m, m), float64
        The matrix, symmetric.
    shares : ndarray of shape (m,)
        Share of each row in the weight.
    ridge : float
        λ.
    means : ndarray of shape (m,) or None
        Mean kernel value of each row with all rows, where the kernel was centred.
    """

    M: np.ndarray
    shares: np.ndarray
    ridge: float
    means: np.ndarray | None
    matrix = True

    def value(self, y: np.ndarray) -> float:
        """F of labels -1 and +1, worked out from scratch."""
        return float(1 - y @ (self.M @ y) / y.shape[0])

    def decide(self, y: np.ndarray) -> np.ndarray:
        """f of the rows themselves."""
        return self.M @ y / (self.shares * y.shape[0])

    def hyperplane(self, y: np.ndarray) -> Hyperplane:
        """f on kernel values against all rows."""
        duals = (self.shares * y.shape[0] * y - self.M @ y) / self.ridge
        if self.means is None:
            return Hyperplane(duals, 0.0)
        coef = duals - self.shares * duals.sum()
        return Hyperplane(coef, -float(self.means @ coef))


@dataclass(frozen=True)
class FeatureFitness:
    """The fitness in landmark features: FastEvoMMC.

    Parameters
    ----------
    M : ndarray of shape (m, r), float64
        Z with the matrix ZZ'.
    shares : ndarray of shape (m,)
        Share of each row in the weight.
    axes : ndarray of shape (p, r)
        Z = (features @ axes - centre), times the weights.
    centre : ndarray of shape (r,)
        Mean of the rows, 0 where the kernel was not centred.
    """

    M: np.ndarray
    shares: np.ndarray
    axes: np.ndarray
    centre: np.ndarray
    matrix = False

    def value(self, y: np.ndarray) -> float:
        """F of labels -1 and +1, worked out from scratch."""
        product = y @ self.M
        return float(1 - product @ product / y.shape[0])

    def decide(self, y: np.ndarray) -> np.ndarray:
        """f of the rows themselves."""
        return self.M @ (y @ self.M) / (self.shares * y.shape[0])

    def hyperplane(self, y: np.ndarray) -> Hyperplane:
        """f on kernel values against the landmarks."""
        product = y @ self.M
        return Hyperplane(self.axes @ product, -float(self.centre @ product))


def matrix_fitness(
    K: np.ndarray, alpha: float, weights: np.ndarray | None = None, centre: bool = True
) -> MatrixFitness:
    """The fitness of a kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (m, m), float64
        Kernel matrix, symmetric; it is overwritten.
    alpha : float
        Ridge a row, λ/m.
    weights : ndarray of shape (m,) or None, default=None
        Sample weights, positive.
    centre : bool, default=True
        Whether the kernel is centred.

    Returns
    -------
    MatrixFitness
        M and what the model takes.

    Raises
    ------
    InputError
        Where alpha is not positive, or so small that K + λI is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.solvers import matrix_fitness
    >>> fitness = matrix_fitness(2 * np.eye(2), 0.5)
    >>> round(fitness.value(np.array([1, -1])), 6)
    0.333333
    """
    m, shares = K.shape[0], row_shares(K.shape[0], weights)
    means = shares @ K if centre else None
    if means is not None:
        K -= means
        K -= (means - means @ shares)[:, None]
    if weights is not None:
        roots = np.sqrt(shares * m)
        K *= roots
        K *= roots[:, None]
    M = smoother(K, alpha * m, centre=False)
    if weights is not None:
        M *= roots
        M *= roots[:, None]
    return MatrixFitness(M, shares, alpha * m, means)


def feature_fitness(
    features: np.ndarray,
    metric: np.ndarray,
    alpha: float,
    weights: np.ndarray | None = None,
    centre: bool = True,
) -> FeatureFitness:
    """The fitness in landmark features.

    Parameters
    ----------
    features : ndarray of shape (m, p)
        Kernel values against the landmarks.
    metric : ndarray of shape (p, q)
        W with WW' the inverse of the kernel matrix of the landmarks.
    alpha : float
        Ridge a row, λ/m.
    weights : ndarray of shape (m,) or None, default=None
        Sample weights, positive.
    centre : bool, default=True
        Whether the kernel is centred.

    Returns
    -------
    FeatureFitness
        Z and what the model takes.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.solvers import feature_fitness
    >>> fitness = feature_fitness(2 * np.eye(2), np.eye(2) / np.sqrt(2), 0.5)
    >>> round(fitness.value(np.array([1, -1])), 6)
    0.333333
    """
    m, shares = features.shape[0], row_shares(features.shape[0], weights)
    z = np.asarray(features, np.float64) @ metric
    mean = shares @ z if centre else np.zeros(z.shape[1])
    z -= mean
    variances, axes = np.linalg.eigh((z * shares[:, None]).T @ z)
    kept = variances > SMALLEST_VARIANCE * max(variances[-1], np.finfo(float).tiny)
    axes = axes[:, kept] / np.sqrt(m * (variances[kept] + alpha))  # the ridge is diagonal along them
    M = np.ascontiguousarray((z @ axes) * (shares * m)[:, None])
    return FeatureFitness(M, shares, metric @ axes, mean @ axes)

"""Bandwidth selection for the Gaussian kernel: rules of thumb, and a score.

The score is the leave-one-out error of a ridge regression. It compares bandwidths
without reference labels.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np

from mmcnb.samples.matrix import (
    Matrix,
    Weights,
    equal_rows_error,
    moments,
    range_error,
    row_shares,
)

# Ridge parameters of the leave-one-out score, as fractions of the total variance. They
# were chosen with `python -m benchmarks widths`.
RIDGES = (1e-3, 1e-2)
GAMMA_NAMES = ("auto", "mean", "median", "scale")
# Default sigma of methods that do not compare bandwidths, in units of the root mean
# squared distance between two rows.
DEFAULT_BANDWIDTH = 0.55


def mean_squared_distance(
    X: Matrix, weights: Weights = None, rounding: float = 1e-12
) -> float:
    """Return the mean squared distance between two random rows, gamma0 in the papers.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d)
        Rows.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights. If None, all weights are equal.
    rounding : float, default=1e-12
        All rows are treated as equal if the mean squared distance is at most this
        fraction of the mean squared length of a row.

    Returns
    -------
    float
        The mean squared distance, which is twice the sum of the column variances.

    Raises
    ------
    InputError
        If all rows are equal, or their squares overflow or underflow.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.bandwidth import mean_squared_distance
    >>> mean_squared_distance(np.array([[0.0], [2.0]]))
    2.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean, mean_square = moments(X, weights)
        variance = np.maximum(mean_square - mean**2, 0)
        distance = float(2 * variance.sum())
    precision = np.finfo(X.dtype)
    # Outside this range, squares overflow, or are denormal and lose precision.
    lowest = np.sqrt(np.finfo(float).tiny)
    highest = precision.max * precision.eps
    root = np.sqrt(distance)
    if root and not lowest < root < highest:
        raise range_error("the squares of the values are out of range", X, "multiply")
    if distance <= rounding * float(mean_square.sum()):
        raise equal_rows_error(X)
    return distance


def default_gamma(
    gamma: float | str, kernel: str, X: Matrix, weights: Weights = None
) -> float:
    """Return gamma as a number, computed by a rule of thumb if gamma is a name.

    "mean" is 1/(2 m), where m is the mean squared distance between two rows. "median"
    uses the median squared distance instead. "scale" is 1/(d v), as in scikit-learn,
    where d is the number of columns and v is the variance of all values. For the
    Gaussian kernel, "auto" sets sigma to 0.55 times the root mean squared distance
    between two rows. For all other kernels, "auto" is the same as "scale".

    Raises
    ------
    InputError
        If all rows are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.bandwidth import default_gamma
    >>> round(default_gamma("auto", "rbf", np.array([[0.0], [2.0]])), 6)
    0.826446
    """
    # The linear kernel is evaluated in float32, so smaller differences are rounding
    # errors.
    rounding = 1e-6 if kernel == "linear" else 1e-12
    distance = mean_squared_distance(X, weights, rounding)
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto" and kernel == "rbf":
        return 1 / (2 * DEFAULT_BANDWIDTH**2 * distance)
    if gamma in ("auto", "scale"):
        mean, mean_square = moments(X, weights)
        variance = float(mean_square.mean() - mean.mean() ** 2)
        return 1 / (X.shape[1] * variance)
    if gamma == "median":
        from sklearn.metrics.pairwise import euclidean_distances

        # Half a million distances are enough for a median.
        step = math.ceil(X.shape[0] / 1000)
        rows = X[::step]
        distances = euclidean_distances(rows, squared=True)
        pairs = np.triu_indices(rows.shape[0], 1)
        distance = float(np.median(distances[pairs])) or distance
    return 1 / (2 * distance)


def candidate_gammas(X: Matrix, weights: Weights = None) -> list[float]:
    """Return the values of gamma that ``gamma="auto"`` tries, in decreasing order.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.bandwidth import candidate_gammas
    >>> len(candidate_gammas(np.array([[0.0], [2.0]])))
    7
    """
    distance = mean_squared_distance(X, weights)
    bandwidths = (0.25 * 2 ** (k / 2) for k in range(7))  # in steps of sqrt(2)
    return [1 / (2 * bandwidth**2 * distance) for bandwidth in bandwidths]


def leave_one_out_scores(
    labelings: np.ndarray,
    embeddings: list[np.ndarray],
    weights: Weights = None,
    each: Callable[..., Iterable[np.ndarray]] = map,
) -> np.ndarray:
    """Score each labelling by the leave-one-out error of the best kernel.

    Ridge regression of the labels on the features of each kernel gives exact
    leave-one-out residuals. The score of a labelling is the smallest mean squared
    residual over all kernels and ridge parameters, divided by the variance of the
    labels. A low score means that the data support the labelling, even if it is not the
    partition that the user expects.

    Parameters
    ----------
    labelings : ndarray of shape (k, n)
        The labellings, with labels -1 and +1.
    embeddings : list of ndarray of shape (n, r)
        For each kernel, the coordinates of the rows in its feature space.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights. If None, all weights are equal.
    each : callable, default=map
        Function that applies another function to each embedding, such as `map`, or
        `Engine.each`, which uses threads.

    Returns
    -------
    ndarray of shape (k,)
        Score of each labelling: near 0 if the features predict the labels, and about 1
        for random labels.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.bandwidth import leave_one_out_scores
    >>> x = np.r_[np.zeros(20), np.ones(20)][:, None]
    >>> clean, noise = np.where(x[:, 0] > 0, 1, -1), np.where(np.arange(40) % 2, 1, -1)
    >>> leave_one_out_scores(np.array([clean, noise]), [x]).round(2)
    array([0.  , 1.11])
    """
    y = labelings.astype(np.float64).T
    shares = row_shares(y.shape[0], weights)
    y -= shares @ y
    variance = np.maximum(shares @ y**2, np.finfo(float).tiny)

    def least_residuals(embedding: np.ndarray) -> np.ndarray:
        """Return each labelling's smallest mean squared residual of all ridges."""
        residuals = _leave_one_out_residuals(embedding, y, shares)
        return np.tensordot(shares, residuals**2, 1).min(axis=0)

    least = list(each(least_residuals, embeddings))
    return np.min(least, axis=0) / variance


def _leave_one_out_residuals(
    embedding: np.ndarray, y: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Return the leave-one-out residuals, of shape (n, n_ridges, n_labellings).

    When row i is predicted from all other rows, its residual is
    (y_i - (H y)_i) / (1 - H_ii), where H is the hat matrix of the ridge regression.
    """
    variances, z = _principal_coordinates(embedding, shares)
    products = (z * shares[:, None]).T @ y
    ridges = np.multiply(RIDGES, variances.sum())
    tiny = np.finfo(float).tiny
    # Variance plus ridge, for each axis and each ridge.
    scales = np.maximum(variances, 0)[:, None] + ridges + tiny
    coef = products[:, None] / scales[:, :, None]
    # np.tensordot would round differently if there is only one axis.
    fitted = z @ coef.reshape(z.shape[1], -1)
    fitted = fitted.reshape(-1, len(RIDGES), y.shape[1])
    leverage = shares[:, None] * (1 + z**2 @ (1 / scales))
    left_out = np.maximum(1 - leverage, 1e-9)
    return (y[:, None] - fitted) / left_out[:, :, None]


def _principal_coordinates(
    embedding: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance along each principal axis, and the rows' coordinates."""
    centred = embedding - shares @ embedding
    covariance = (centred * shares[:, None]).T @ centred
    variances, axes = np.linalg.eigh(covariance)
    return variances, centred @ axes

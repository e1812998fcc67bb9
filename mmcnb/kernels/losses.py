"""Sums of losses over the rows of a block, for given decision values and labels."""

import numpy as np

from mmcnb._numba import njit
from mmcnb.kernels._checks import Array, FromZero, Number, Signs, takes

DECISIONS = {
    "f": Array("(rows,)", "float64"),
    "y": Signs("(rows,)", "int8"),
    "weights": FromZero("(rows,)", "float64"),
    "rho": Number(),
}


@njit()
def _loss_sums(f, y, weights, rho, most):
    loss = 0.0
    weight = 0.0
    for i in range(f.shape[0]):
        loss += weights[i] * min(most, max(0.0, rho - y[i] * f[i]))
        weight += weights[i]
    return loss, weight


@njit()
@takes(**DECISIONS)
def hinge_loss_sums(f, y, weights, rho):
    """Sum the hinge loss max(0, rho - y f) of a block of rows.

    The loss is the slack of a row in the margin problem with fixed labels. If y
    contains the signs of f, the loss is max(0, rho - abs(f)), as for unlabelled rows.

    Parameters
    ----------
    f : ndarray of shape (rows,), float64
        Decision values.
    y : ndarray of shape (rows,), int8, -1 or +1
        Labels of the rows.
    weights : ndarray of shape (rows,), float64, at least 0
        Sample weights.
    rho : float
        Threshold of the margin: 1, or the variable of the adaptive form.

    Returns
    -------
    loss : float
        Weighted sum of the losses.
    weight : float
        Sum of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import hinge_loss_sums
    >>> f, y = np.array([0.5, -2.0, -3.0]), np.array([1, -1, 1], np.int8)
    >>> hinge_loss_sums(f, y, np.ones(3), 1.0)
    (4.5, 3.0)
    """
    return _loss_sums(f, y, weights, rho, np.inf)


@njit()
@takes(**DECISIONS, most=Number(least=0))
def ramp_loss_sums(f, y, weights, rho, most):
    """Sum the ramp loss min(most, max(0, rho - y f)) of a block of rows.

    This is a bounded hinge loss: a row far on the wrong side costs at most ``most``.

    Parameters
    ----------
    f : ndarray of shape (rows,), float64
        Decision values.
    y : ndarray of shape (rows,), int8, -1 or +1
        Labels of the rows.
    weights : ndarray of shape (rows,), float64, at least 0
        Sample weights.
    rho : float
        Threshold of the margin.
    most : float, at least 0
        Maximum loss of a row. If it is 2 rho, the loss is point-symmetric about f = 0.

    Returns
    -------
    loss : float
        Weighted sum of the losses.
    weight : float
        Sum of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import ramp_loss_sums
    >>> f, y = np.array([0.5, -2.0, -3.0]), np.array([1, -1, 1], np.int8)
    >>> ramp_loss_sums(f, y, np.ones(3), 1.0, 2.0)
    (2.5, 3.0)
    """
    return _loss_sums(f, y, weights, rho, most)

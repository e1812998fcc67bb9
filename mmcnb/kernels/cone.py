"""Weights of several kernels: one step of a method for the second-order cone program.

Zhao, Kwok and Zhang, *Multiple kernel clustering*, eq. (2.6), minimise Σ_k |v_k|²/(2
β_k) + C ξ over normal vectors v_k and weights β_k >= 0 with |β| <= 1. For fixed
weights, this is the quadratic program of the single kernel Σ β_k G_k, which `plane_qp`
solves. For fixed normal vectors, the optimal weights have a closed form, which
`cone_step` computes. The second-order cone program is convex, so alternating between
these two steps converges to its solution.
"""

import math

import numpy as np

from mmcnb._numba import njit
from mmcnb.kernels._checks import Array, FromZero, takes


@njit()
@takes(
    grams=Array("(kernels, planes, planes)", "float64"),
    multipliers=FromZero("(planes,)", "float64"),
    weights=FromZero("(kernels,)", "float64"),
)
def cone_step(grams, multipliers, weights):
    """Return improved weights of several kernels, given the multipliers of the planes.

    The objective is Zhao, Kwok and Zhang, eq. (2.6). The squared length of a normal
    vector is |v_k|² = β_k² q_k with q_k = λ'G_k λ, and for fixed normal vectors, the
    optimal weights are proportional to |v_k|^(2/3). Alternate this step with `plane_qp`
    on Σ β_k G_k until the gap is small.

    Parameters
    ----------
    grams : ndarray of shape (kernels, planes, planes), float64
        For each kernel, the inner products of the centred planes.
    multipliers : ndarray of shape (planes,), float64, at least 0
        Multipliers λ that solve the quadratic program for the given weights.
    weights : ndarray of shape (kernels,), float64, at least 0
        Current weights β, with Euclidean norm 1. A weight of 0 stays 0.

    Returns
    -------
    weights : ndarray of shape (kernels,), float64
        The new weights, with Euclidean norm 1. All weights are equal if all normal
        vectors are 0.
    gap : float
        Relative gap 1 - β'q/|q|. It bounds the fraction of the objective that is lost
        with the given weights, and is 0 at the solution.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import cone_step
    >>> grams = np.array([[[3.0]], [[4.0]]])
    >>> weights, gap = cone_step(grams, np.array([0.2]), np.array([0.6, 0.8]))
    >>> weights.round(6).tolist(), round(gap, 6)
    ([0.6, 0.8], 0.0)
    """
    n_kernels = weights.shape[0]
    n_planes = multipliers.shape[0]
    better = np.empty(n_kernels)
    q_norm2 = 0.0
    combined = 0.0
    norm2 = 0.0
    for k in range(n_kernels):
        q = 0.0
        for i in range(n_planes):
            for j in range(n_planes):
                q += multipliers[i] * grams[k, i, j] * multipliers[j]
        # Rounding errors can make q negative.
        q = max(0.0, q)
        q_norm2 += q * q
        combined += weights[k] * q
        better[k] = (weights[k] * weights[k] * q) ** (1.0 / 3.0)
        norm2 += better[k] * better[k]
    if not norm2 > 0.0:
        return np.full(n_kernels, 1.0 / math.sqrt(n_kernels)), 0.0
    norm = math.sqrt(norm2)
    for k in range(n_kernels):
        better[k] /= norm
    return better, max(0.0, 1.0 - combined / math.sqrt(q_norm2))

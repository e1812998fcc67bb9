"""Generalised maximum margin clustering (GMMC): a program with one variable per row.

In Valizadegan and Jin (NIPS 2007), the scores z of the rows are the unknowns. The
widest margin without errors minimises z'Qz subject to z_i² >= 1, where Q is the inverse
of the kernel matrix after minimisation over the offset. The Lagrangian dual, with an
upper bound C for the multipliers of rows within the margin, is convex:

    max  Σ γ_i     s.t.  A - diag γ >= 0,  0 <= γ_i <= C,     A = Q + (w/n²) e e'

The last term of A penalises the mean score, which balances the clusters. The scores are
the eigenvector of the smallest eigenvalue of A - diag γ.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.metrics.pairwise import pairwise_kernels

from benchmarks.baselines.sdp import solve_scaled
from benchmarks.baselines.svm import (
    POLYNOMIAL,
    balanced_threshold,
    clusters,
    default_gamma,
    rows_of,
)

LEAST_EIGENVALUE = 1e-6  # of the kernel matrix, as a fraction of the largest
GAP = 1e-4  # tolerance of the optimum, relative to its value


@dataclass
class GeneralisedMMC:
    """GMMC: clusters by the leading scores of its semidefinite program.

    Parameters
    ----------
    C : float, default=1.0
        Upper bound of the multiplier of a row.
    gamma, kernel, balance, scale
        As in `IterativeSVR`; the balance is imposed on the clusters after the program
        is solved.
    weight : float, default=1e4
        The weight w of the squared mean score; with a small weight, all scores are
        equal.

    Notes
    -----
    Differs from the paper: GMMC-1; see docs/differences.

    Examples
    --------
    >>> from benchmarks.baselines import GeneralisedMMC
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(60, centers=2, random_state=0, cluster_std=0.5)
    >>> bool((GeneralisedMMC().fit(X).labels_ == (y != y[0])).all())
    True
    """

    C: float = 1.0
    gamma: float | str = "auto"
    kernel: str = "rbf"
    balance: float = 0.4
    weight: float = 1e4
    scale: str | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster some hundred rows; the time grows with the cube of their number."""
        X = rows_of(X, self.scale)
        n = X.shape[0]
        gamma = default_gamma(self.gamma, self.kernel, X, np.ones(n))
        K = pairwise_kernels(
            X, metric=self.kernel, filter_params=True, gamma=gamma, **POLYNOMIAL
        )
        A = inverse_without_offset(K) + self.weight / n**2
        multipliers = largest_multipliers(A, self.C)
        self.bound_ = float(multipliers.sum())
        _, vectors = np.linalg.eigh(A - np.diag(multipliers))
        f = vectors[:, 0]
        threshold = balanced_threshold(f, np.full(n, 1 / n), self.balance)
        self.labels_ = clusters(f - threshold)
        return self


def inverse_without_offset(K: np.ndarray) -> np.ndarray:
    """Return Q, for which z'Qz is the minimum of (z - b e)'K⁻¹(z - b e) over b."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    inverse = vectors / np.maximum(values, LEAST_EIGENVALUE * values[-1]) @ vectors.T
    sums = inverse.sum(axis=0)
    return inverse - np.outer(sums, sums) / sums.sum()


def largest_multipliers(A: np.ndarray, C: float) -> np.ndarray:
    """Return multipliers with the largest sum, by Newton's method on the central path."""
    n = len(A)
    gamma = np.full(n, 0.5 * min(float(np.linalg.eigvalsh(A)[0]), C))
    weight = n / gamma.sum()
    while True:
        gamma = _centred(A, C, gamma, weight)
        # Each of the 3n barriers adds 1/weight to the gap.
        if 3 * n / weight <= GAP * gamma.sum():
            return gamma
        weight *= 5


def _centred(A: np.ndarray, C: float, gamma: np.ndarray, weight: float) -> np.ndarray:
    """Return the multipliers that maximise the weighted sum plus the barriers."""
    for _ in range(100):
        inverse = cho_solve(cho_factor(A - np.diag(gamma), lower=True), np.eye(len(A)))
        gradient = weight - np.diag(inverse) + 1 / gamma - 1 / (C - gamma)
        hessian = inverse**2
        hessian[np.diag_indices_from(hessian)] += gamma**-2 + (C - gamma) ** -2
        step = solve_scaled(hessian, gradient)
        decrement = float(gradient @ step)
        if decrement < 1e-6:
            break
        length = 1.0
        merit = _merit(A, C, gamma, weight)
        while True:
            moved = gamma + length * step
            wanted = merit + 0.1 * length * decrement
            if not _merit(A, C, moved, weight) < wanted:
                break
            length *= 0.5
            if length < 1e-8:  # stop the ascent if rounding prevents progress
                return gamma
        gamma = moved
    return gamma


def _merit(A: np.ndarray, C: float, gamma: np.ndarray, weight: float) -> float:
    """Return the weighted sum plus the logarithmic barriers; -inf outside the constraints."""
    if min(gamma.min(), (C - gamma).min()) <= 0:
        return -np.inf
    try:
        factor = np.linalg.cholesky(A - np.diag(gamma))
    except np.linalg.LinAlgError:
        return -np.inf
    return float(
        weight * gamma.sum()
        + 2 * np.log(np.diag(factor)).sum()
        + np.log(gamma).sum()
        + np.log(C - gamma).sum()
    )

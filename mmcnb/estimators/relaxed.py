"""What the convex relaxations share: the rows they solve over, and the SVM of the labels they lead to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.engine.plan import FitNeeds
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.errors import InputError
from mmcnb.estimators.parameters import BALANCE, KERNEL, POSITIVE, SCALE, Rule, default_kernel
from mmcnb.features.kernel import Kernel, KernelSamples
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, balanced_threshold, signs
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import dense, row_shares, with_short_indices

RELAXED: Mapping[str, Rule] = {**KERNEL, "C": POSITIVE, "balance": BALANCE, "scale": SCALE}
ONE_CLUSTER = "the machine puts all rows on one side, which parts nothing; give another gamma or C."


@dataclass(frozen=True)
class CentredRows:
    """What a relaxation knows of the rows.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    basis : ndarray of shape (m, d)
        The rows themselves.
    matrix : ndarray of shape (m, m)
        Kernel matrix.
    gram : ndarray of shape (m, m)
        Kernel matrix of the features less their weighted mean.
    bounds : ndarray of shape (m,)
        Upper bounds of the multipliers: C times the weight of the row.
    shares : ndarray of shape (m,)
        Share of each row in the weight.
    """

    kernel: Kernel
    basis: np.ndarray
    matrix: np.ndarray
    gram: np.ndarray
    bounds: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True)
class Rounded:
    """Labels of the rows, and the SVM that they train.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Labels, -1 or +1.
    coef : ndarray of shape (m,)
        Coefficients of the centred rows in the normal vector.
    value : float
        Objective of the labels y.
    converged : bool
        Whether the relaxation was solved.
    report : dict
        What is reported of it.
    warning : str
        What the fit warns of where it was not solved.
    """

    y: np.ndarray
    coef: np.ndarray
    value: float
    converged: bool
    report: dict[str, Any]
    warning: str


def needs_of_all_rows(n: int, most_rows: int, matrices: int, slow: str) -> FitNeeds:
    """What a relaxation over all rows holds.

    Parameters
    ----------
    n : int
        The rows.
    most_rows : int
        Number of rows above which they are refused.
    matrices : int
        Matrices of rows x rows, held at once.
    slow : str
        What grows with which power of the rows.

    Raises
    ------
    InputError
        If there are too many rows.
    """
    if n > most_rows:
        raise InputError(
            f"there are {n:,} rows, and the time of the {slow} of that; "
            f"give at most {most_rows:,}, or use SparseKernelMMC."
        )
    return FitNeeds(n, most_rows, sample_bytes=matrices * 8.0 * n**2, sweeps=1)  # the labels


def centred_rows(estimator: Any, session: FitSession) -> CentredRows:
    """The rows of a fit and their kernel matrix."""
    sample, weights = with_short_indices(session.sample.astype(np.float64)), session.sample_weights
    m, kernel, basis = sample.shape[0], default_kernel(estimator, sample, weights), dense(sample)
    columns = KernelSamples(open_samples(sample), kernel.against(basis), np.dtype(np.float64))
    matrix, shares = columns.block(0, m), row_shares(m, weights)
    means = matrix @ shares
    centred = matrix - means[:, None] - means + shares @ means
    bounds = float(estimator.C) * (np.ones(m) if weights is None else weights)
    return CentredRows(kernel, basis, matrix, (centred + centred.T) / 2, bounds, shares)


def relaxed_result(
    session: FitSession, rows: CentredRows, rounded: Rounded, balance: float, **attributes: Any
) -> FitResult:
    """The SVM on kernel values as they are, its threshold where both clusters are large enough."""
    shares, coef = rows.shares, rounded.coef - rounded.coef.sum() * rows.shares
    rule = Hyperplane(coef, -float(shares @ rows.matrix @ coef))
    moved = balanced_threshold(rule.decide(rows.matrix), shares, balance)
    rule = rule.shifted(moved)
    f = rule.decide(rows.matrix)
    norm2 = float(rounded.coef @ rows.gram @ rounded.coef)
    model = Model(rule, rows.kernel, rows.basis, session.mean, session.deviation, "float64")
    agreement = float(np.mean(signs(f) == rounded.y))
    sizes = sorted([int((f < 0).sum()), int((f >= 0).sum())])
    return FitResult(
        model,
        model.features(session.samples),
        {
            "objective": 0.5 * norm2 + float(rows.bounds @ np.maximum(0, 1 - np.abs(f))),
            "gamma": rows.kernel.gamma,
            "converged": rounded.converged,
            **attributes,
        },
        {
            "sample_sizes": sizes,
            **rounded.report,
            "rounded": rounded.value,
            "agreement": max(agreement, 1 - agreement),
            "threshold_moved": abs(moved),
            "gamma": rows.kernel.gamma,
        },
        warnings=[ONE_CLUSTER] * (sizes[0] == 0) + [rounded.warning] * (not rounded.converged),
    )

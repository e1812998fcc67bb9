"""What the convex relaxations share: the rows they solve over, and the SVM of the labels they lead to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb._constraints import Constraint
from mmcnb.engine.plan import FitNeeds
from mmcnb.engine.sample_weights import loss_of_a_weight
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.errors import InputError
from mmcnb.estimators.parameters import BALANCE, KERNEL, POSITIVE, SCALE, default_kernel
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.nystroem import kernel_values
from mmcnb.features.rules import Hyperplane, balanced_threshold, signs
from mmcnb.samples.matrix import dense, row_shares, with_short_indices

RELAXED: Mapping[str, Constraint] = {**KERNEL, "C": POSITIVE, "balance": BALANCE, "scale": SCALE}
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
    kernel, m = default_kernel(estimator, sample, weights), sample.shape[0]
    basis = dense(sample)
    matrix, shares = kernel_values(sample, kernel, basis, np.float64), row_shares(m, weights)
    means = matrix @ shares
    centred = matrix - means[:, None] - means + shares @ means
    bounds = loss_of_a_weight(estimator, session) * (np.ones(m) if weights is None else weights)
    return CentredRows(kernel, basis, matrix, (centred + centred.T) / 2, bounds, shares)


def relaxed_result(
    session: FitSession,
    rows: CentredRows,
    y: np.ndarray,
    alpha: np.ndarray,
    balance: float,
    report: dict[str, Any],
    warning: str | None,
    **attributes: Any,
) -> FitResult:
    """The SVM of rounded labels, its threshold moved to where both clusters are large enough.

    Parameters
    ----------
    session : FitSession
        The fit.
    rows : CentredRows
        All rows.
    y : ndarray of shape (m,)
        Labels that the relaxation was rounded to, -1 or +1.
    alpha : ndarray of shape (m,)
        Multipliers of the SVM that they train, without offset in centred features.
    balance : float
        l/n.
    report : dict
        What is reported of the relaxation.
    warning : str or None
        What the fit warns of; None where the relaxation was solved.
    **attributes
        Further fitted attributes.
    """
    centred, shares = alpha * y, rows.shares
    coef = centred - centred.sum() * shares
    rule = Hyperplane(coef, -float(shares @ rows.matrix @ coef))
    moved = balanced_threshold(rule.decide(rows.matrix), shares, balance)
    model = Model(rule.shifted(moved), rows.kernel, rows.basis, session.mean, session.deviation, "float64")
    f = model.rule.decide(rows.matrix)
    objective = 0.5 * float(centred @ rows.gram @ centred) + float(rows.bounds @ np.maximum(0, 1 - np.abs(f)))
    agreement, gamma = float(np.mean(signs(f) == y)), rows.kernel.gamma
    sizes = sorted([int((f < 0).sum()), int((f >= 0).sum())])
    report = {"sample_sizes": sizes} | report | {"agreement": max(agreement, 1 - agreement)}
    return FitResult(
        model,
        model.features(session.samples),
        {"objective": objective, "gamma": gamma, "converged": warning is None, **attributes},
        report | {"threshold_moved": abs(moved), "gamma": gamma},
        warnings=[] if sizes[0] else [ONE_CLUSTER],
        unsettled=warning or "",
    )

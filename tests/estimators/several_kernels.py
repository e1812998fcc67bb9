"""Fits of several kernels that take milliseconds, their rows, and kernels that are functions."""

import numpy as np
import pytest

from mmcnb import MultipleKernelClustering
from tests.estimators.conftest import bits, make_blobs

KERNELS = [("rbf", {"gamma": 0.5}), ("rbf", {"gamma": 0.05}), "linear"]
QUICK = {"kernels": KERNELS, "C": 3.5, "n_init": 1, "random_state": 0, "n_jobs": 1}
two_and_three = pytest.mark.parametrize("k", [2, 3])


def fitted(X, k=2, sample_weight=None, **parameters):
    return MultipleKernelClustering(k, **QUICK | parameters).fit(
        X, sample_weight=sample_weight
    )


def three_groups(n, seed=0, dtype=np.float64, d=3):
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0], [0.0, 5.0, 0.0]])[:, :d]
    return (centres[rng.integers(3, size=n)] + rng.standard_normal((n, d))).astype(
        dtype
    )


def groups(k, n, **options):
    return make_blobs(n, **options) if k == 2 else three_groups(n, **options)


def margins(f):
    """|f|, or the largest score less the second."""
    if f.ndim == 1:
        return np.abs(f)
    ordered = np.sort(f, axis=1)
    return ordered[:, -1] - ordered[:, -2]


def everything(model, X):
    """What must be the same to the bit."""
    return *bits(model, X), model.kernel_weights_.tobytes(), model.rho_, model.report_


def one_time(rows, basis):
    return np.exp(-0.5 * ((rows[:, None] - basis[None]) ** 2).sum(axis=2))


def seven_times(rows, basis):
    return 7 * one_time(rows, basis)


def with_constant(rows, basis):
    return one_time(rows, basis) + 3

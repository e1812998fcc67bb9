"""Fits of a few rows against the best of all their labelings."""

import numpy as np
import pytest

import mmcnb
from tests import reference

LEAST = 2


def fit(name, X, C, continuation=True):
    search = {
        "init": "random",
        "n_init": 40,
        "random_state": 0,
        "eta": 1e-5,
        "min_share": 0.0,
    }
    landmarks = {"n_landmarks": 8} if name == "SparseKernelMMC" else {}
    return getattr(mmcnb, name)(
        C=C, gamma=0.5, continuation=continuation, **search, **landmarks
    ).fit(X)


def best_norm2(X, C):
    return reference.best_labeling_norm2(
        reference.rbf_kernel_block(X, X, 0.5), C, LEAST
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "continuation", "left", "C"),
    [
        ("KernelCPMMC", True, 4, 1.5),
        ("KernelCPMMC", False, 5, 3.3),
        ("SparseKernelMMC", True, 5, 1.5),
        ("SparseKernelMMC", False, 4, 3.3),
    ],
)
def test_starts_reach_the_best_of_all_labelings_of_separable_rows(
    name, continuation, left, C
):
    rng = np.random.default_rng(left)
    X = (
        0.3 * rng.standard_normal((8, 2))
        + np.c_[np.repeat([0, 3], [left, 8 - left]), np.zeros(8)]
    )
    model = fit(name, X, C, continuation)
    assert model.report_["w_norm"] ** 2 == pytest.approx(best_norm2(X, C), rel=1e-3)
    np.testing.assert_array_equal(model.labels_, np.repeat([0, 1], [left, 8 - left]))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), [("KernelCPMMC", 0), ("SparseKernelMMC", 1)])
def test_no_fit_claims_more_than_the_best_of_all_labelings(name, seed):
    X = np.random.default_rng(seed).standard_normal((7, 2))
    assert fit(name, X, 2.3).report_["w_norm"] ** 2 <= best_norm2(X, 2.3) * (1 + 1e-3)

import numpy as np
import pytest

import mmcnb
from tests import reference

pytestmark = pytest.mark.slow

GAMMA, LEAST = 0.5, 2


def separable(seed, left=4, right=4):
    rng = np.random.default_rng(seed)
    return np.r_[rng.standard_normal((left, 2)) * 0.3, rng.standard_normal((right, 2)) * 0.3 + [3, 0]]


def estimator(name, C, threshold="adaptive"):
    parameters = {
        "C": C,
        "gamma": GAMMA,
        "init": "random",
        "n_init": 40,
        "random_state": 0,
        "eta": 1e-5,
        "min_share": 0.0,
    }
    if name == "SparseKernelMMC":
        parameters["n_landmarks"] = 8
    return getattr(mmcnb, name)(threshold=threshold, **parameters)


def best_norm2(X, C):
    return reference.best_labeling_norm2(reference.rbf_kernel_block(X, X, GAMMA), C, LEAST)


@pytest.mark.parametrize("name", ["KernelCPMMC", "SparseKernelMMC"])
@pytest.mark.parametrize("continuation", [True, False])
@pytest.mark.parametrize(("left", "right"), [(4, 4), (5, 3)])
@pytest.mark.parametrize("C", [1.5, 3.3])
def test_starts_reach_the_best_of_all_labelings_of_separable_rows(name, continuation, left, right, C):
    X = separable(left, left, right)
    model = estimator(name, C).set_params(continuation=continuation).fit(X)
    assert model.report_["w_norm"] ** 2 == pytest.approx(best_norm2(X, C), rel=1e-3)
    np.testing.assert_array_equal(model.labels_, np.repeat([0, 1], [left, right]))


@pytest.mark.parametrize("name", ["KernelCPMMC", "SparseKernelMMC"])
@pytest.mark.parametrize("seed", range(4))
def test_no_fit_claims_more_than_the_best_of_all_labelings(name, seed):
    X = np.random.default_rng(seed).standard_normal((7, 2))
    model = estimator(name, 2.3).fit(X)
    assert model.report_["w_norm"] ** 2 <= best_norm2(X, 2.3) * (1 + 1e-3)

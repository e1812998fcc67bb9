"""Every estimator passes scikit-learn's checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mmcnb import (
    CPMMC,
    CrammerSingerMMC,
    EvolutionaryMMC,
    KernelCPMMC,
    KernelKMeans,
    MaximumMarginClustering,
    MultipleKernelClustering,
    SparseKernelMMC,
    UnsupervisedRLS,
)
from tests.estimators.every import NAMES

QUICK = [
    CPMMC(),
    UnsupervisedRLS(),
    KernelKMeans(n_clusters=3),
    MaximumMarginClustering(),
]
ALL = [
    *QUICK,
    SparseKernelMMC(),
    CrammerSingerMMC(n_clusters=3, n_init=1),
    KernelCPMMC(),
    EvolutionaryMMC(),
    MultipleKernelClustering(n_init=1),
    MultipleKernelClustering(n_clusters=3, n_init=1),
    MaximumMarginClustering(n_clusters=2),
    MaximumMarginClustering(n_clusters=3),
    MaximumMarginClustering(n_clusters=2, kernel="graph"),
    MaximumMarginClustering(n_clusters=2, metric="cosine"),
    MaximumMarginClustering(noise="auto"),
]
# scikit-learn grants its own KMeans the same two.
DRAWN = (
    "starts are drawn by row, so that a row given twice draws others than a row of weight 2; where there are "
    "none, clusters are numbered by their first row, and the check shuffles the rows"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": DRAWN,
    "check_sample_weight_equivalence_on_sparse_data": DRAWN,
}
LONG = {
    "check_estimators_pickle",
    "check_estimator_sparse_matrix",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


def expected_failures(estimator):
    """None where the number of clusters is found: rows of these checks are one cluster."""
    return {} if getattr(estimator, "n_clusters", 2) is None else EXPECTED_FAILURES


CHECKS = parametrize_with_checks(ALL, expected_failed_checks=expected_failures)


def with_speed(case):
    """A case of the checks, slow where it takes long."""
    case = case if hasattr(case, "values") else pytest.param(*case)
    estimator, check = case.values
    is_long = estimator not in QUICK or check.func.__name__ in LONG
    return pytest.param(
        *case.values, marks=[*case.marks, *[pytest.mark.slow] * is_long]
    )


class FrontDoor(MaximumMarginClustering):
    """The front door without probabilities: checks of sparse rows take what has them for a classifier."""

    predict_proba = property()


CASES = [with_speed(case) for case in CHECKS.args[1]]


@pytest.mark.parametrize(("estimator", "check"), CASES, ids=CHECKS.kwargs["ids"])
def test_scikit_learn_checks(estimator, check):
    of_sparse_rows = check.func.__name__.startswith("check_estimator_sparse")
    if of_sparse_rows and isinstance(estimator, MaximumMarginClustering):
        estimator = FrontDoor(**estimator.get_params())
    check(estimator)


def test_every_estimator_is_checked():
    assert {type(estimator).__name__ for estimator in ALL} == set(NAMES)

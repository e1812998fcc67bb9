import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import mmcnb
from tests.estimators.conftest import ESTIMATORS, make, make_blobs

# scikit-learn grants its own KMeans the same two.
DRAWN = (
    "starts are drawn by row, so that a row given twice draws others than a row of weight 2; where there are "
    "none, clusters are numbered by their first row, and the check shuffles the rows"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": DRAWN,
    "check_sample_weight_equivalence_on_sparse_data": DRAWN,
}


def expected_failures(estimator):
    """None where the number of clusters is found: rows of these checks are one cluster."""
    return {} if getattr(estimator, "n_clusters", 2) is None else EXPECTED_FAILURES


class FrontDoor(mmcnb.MaximumMarginClustering):
    """The front door without probabilities: checks of sparse rows take what has them for a classifier."""

    predict_proba = property()


def checked(estimator, check):
    of_sparse_rows = check.func.__name__.startswith("check_estimator_sparse")
    if of_sparse_rows and isinstance(estimator, mmcnb.MaximumMarginClustering):
        estimator = FrontDoor(**estimator.get_params())
        assert not hasattr(estimator, "predict_proba")
    check(estimator)


@parametrize_with_checks(
    [
        mmcnb.SparseKernelMMC(),
        mmcnb.CPMMC(),
        mmcnb.UnsupervisedRLS(),
        mmcnb.MaximumMarginClustering(),
        mmcnb.MaximumMarginClustering(n_clusters=2),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    checked(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(
    [
        mmcnb.CrammerSingerMMC(n_clusters=3, n_init=1),
        mmcnb.KernelCPMMC(),
        mmcnb.EvolutionaryMMC(),
        mmcnb.MultipleKernelClustering(),
        mmcnb.KernelKMeans(n_clusters=3),
        mmcnb.MaximumMarginClustering(n_clusters=3),
        mmcnb.MaximumMarginClustering(n_clusters=(2, 3)),
        mmcnb.MaximumMarginClustering(n_clusters=2, kernel="graph"),
        mmcnb.MaximumMarginClustering(n_clusters=2, kernel="linear"),
        mmcnb.MaximumMarginClustering(n_clusters=2, metric="cosine"),
        mmcnb.MaximumMarginClustering(noise="auto"),
        mmcnb.MultipleKernelClustering(n_clusters=3, n_init=1),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks_of_others(estimator, check):
    checked(estimator, check)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_clone_has_the_same_parameters_and_is_not_fitted(name):
    model = make(name, C=3.0).fit(make_blobs(60))
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "model_")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fit_predict_is_fit_then_labels(name):
    X = make_blobs(60)
    assert (make(name).fit_predict(X) == make(name).fit(X).labels_).all()

"""Where rounds over all rows end, and how many labels the last one changed."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mmcnb
from mmcnb.errors import InputError

N = 1500
SAMPLE = {"sample_size": 60, "n_init": 1, "random_state": 0}
ON_LANDMARKS = SAMPLE | {"gamma": 0.05, "n_landmarks": 12}
KERNELS = {"kernels": [("rbf", {"gamma": 0.05}), "linear"], "n_landmarks": 12}
ESTIMATORS = {
    "CPMMC": mmcnb.CPMMC(**SAMPLE),
    "SparseKernelMMC": mmcnb.SparseKernelMMC(**ON_LANDMARKS),
    "two kernels": mmcnb.MultipleKernelClustering(2, **SAMPLE, **KERNELS),
    "two kernels, three clusters": mmcnb.MultipleKernelClustering(
        3, **SAMPLE, **KERNELS
    ),
}


def rows(n=N):
    """Three overlapping groups, so that rounds over all rows change some labels."""
    random = np.random.default_rng(0)
    return random.standard_normal((n, 3)) + 1.6 * np.eye(3)[np.arange(n) % 3]


def fitted(name, X=None, sample_weight=None, **parameters):
    model = clone(ESTIMATORS[name]).set_params(**parameters)
    return model.fit(rows() if X is None else X, sample_weight=sample_weight)


def rounds(model):
    """How many rounds went over all rows at the last C."""
    history = model.history_[model.history_["stage"] == "all rows"]
    return int(history["round"].iloc[-1]) + 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_rounds_end_at_the_share_of_tol_and_count_the_labels_that_changed(name):
    before = fitted(name, tol=1.0)
    assert rounds(before) == 1
    compared = 0
    # Of three clusters there are at most five rounds.
    most = 5 if name.endswith("three clusters") else 30
    while before.n_changed_ > 0 and rounds(before) < most:
        # The last round changed more than this.
        after = fitted(name, tol=(before.n_changed_ - 0.5) / N)
        assert rounds(after) > rounds(before)
        if rounds(after) == rounds(before) + 1:
            assert after.n_changed_ == np.sum(after.labels_ != before.labels_)
            compared += 1
        if after.converged_:
            assert after.n_changed_ < before.n_changed_
        before = after
    assert compared > 0
    np.testing.assert_array_equal(before.labels_, fitted(name, tol=0.0).labels_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_label_changes_at_the_end_if_all_rows_are_in_the_sample(name):
    X = rows(150)
    model = fitted(name, X, sample_size=200)
    assert model.converged_
    assert model.n_changed_ == 0
    other = fitted(name, X, sample_size=200, tol=1.0)
    np.testing.assert_array_equal(other.labels_, model.labels_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_changed_labels_count_in_the_unit_of_the_weights(name):
    once = fitted(name, tol=0.2)
    weighted = fitted(name, sample_weight=np.full(N, 3.0), tol=0.2)
    assert isinstance(once.n_changed_, int)
    assert weighted.n_changed_ == 3 * once.n_changed_ > 0


def test_a_lower_tolerance_allows_more_than_five_rounds_after_a_larger_sample():
    random = np.random.default_rng(0)
    X = random.standard_normal((140_000, 5)) + 0.3 * np.eye(5)[np.arange(140_000) % 3]
    X = X.astype(np.float32)
    short, long = (mmcnb.CPMMC(random_state=2, tol=tol).fit(X) for tol in (0.0005, 0.0))
    assert rounds(short) <= 5 < rounds(long)
    assert 0 < short.n_changed_ <= 70
    assert long.n_changed_ == 0
    assert short.converged_
    assert long.converged_


def test_changes_are_not_counted_if_labels_of_a_stream_are_shifted():
    # More rows than are held in memory.
    model = mmcnb.CPMMC(min_share=1.0, **SAMPLE).fit(rows())
    assert model.report_["quantile_steps"] > 0
    assert model.n_changed_ is None


@pytest.mark.slow
def test_the_exact_method_takes_the_tolerance_on_more_rows_than_its_sample():
    X = rows(2100)
    models = [
        mmcnb.KernelCPMMC(gamma=0.05, n_init=1, random_state=0, tol=tol).fit(X)
        for tol in (1.0, 0.0)
    ]
    assert rounds(models[0]) == 1
    assert models[0].n_changed_ > 0
    assert models[1].n_changed_ == 0
    assert models[1].converged_


def test_passes_of_least_squares_count_the_labels_that_changed():
    X = rows()
    two, three = (
        mmcnb.UnsupervisedRLS(3, max_passes=passes, **ON_LANDMARKS).fit(X)
        for passes in (2, 3)
    )
    assert three.n_changed_ == np.sum(two.labels_ != three.labels_)
    one = mmcnb.UnsupervisedRLS(3, max_passes=1, **ON_LANDMARKS).fit(X)
    assert one.n_changed_ is None
    margin = mmcnb.CrammerSingerMMC(3, **ON_LANDMARKS).fit(X)
    passes = margin.history_[margin.history_["stage"] == "least squares"]
    assert margin.n_changed_ == passes["changed"].iloc[-1]


def test_a_fit_that_ends_early_names_both_parameters():
    with pytest.warns(ConvergenceWarning, match=r"max_rounds=1; raise it or tol\.$"):
        model = fitted("CPMMC", max_rounds=1, tol=0.0)
    assert not model.converged_
    assert model.n_changed_ > 0


def test_models_keep_the_tolerance_and_the_count(tmp_path):
    model = fitted("SparseKernelMMC", tol=0.2)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert again.tol == clone(model).tol == 0.2
    assert again.n_changed_ == model.n_changed_ > 0


def test_a_negative_tolerance_is_refused():
    with pytest.raises(InputError, match=r"tol=-0\.1"):
        fitted("CPMMC", tol=-0.1)

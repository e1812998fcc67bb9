"""Every estimator gives rows of any size and order the same clusters, or refuses them in one sentence."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score

import mmcnb
from tests.estimators.every import NAMES, make_any

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")

OF_TWO = ("CPMMC", "EvolutionaryMMC", "KernelCPMMC", "SparseKernelMMC")
LONG = ("MultipleKernelClustering", "EvolutionaryMMC", "CrammerSingerMMC")
QUICK = ("CPMMC", "KernelKMeans", "MaximumMarginClustering")
RNG = np.random.default_rng(0)
ROWS = {
    2: RNG.normal(size=(60, 3)) + 8 * (np.arange(60) % 2)[:, None],
    3: 0.7 * RNG.normal(size=(90, 4)) + 14 * np.eye(3, 4)[np.arange(90) % 3],
}
FORMS = (np.asarray, scipy.sparse.csr_array)
RANGE = (
    "out of range",
    "overflow",
    "underflow",
    "all rows are equal",
    "take a larger alpha",
)
SAME = ("same for all rows", "all rows are equal")


def cases():
    """Each estimator with its own parameters, and with two other settings."""
    for name in NAMES:
        k = 2 if name in OF_TWO else 3
        marks = (
            [pytest.mark.slow, pytest.mark.nightly]
            if name in LONG
            else [pytest.mark.slow]
        )
        yield pytest.param(name, k, {}, marks=[] if name in QUICK else marks, id=name)
        for scale, kernel in ((None, "rbf"), ("standard", "linear")):
            settings = {"scale": scale, "kernel": kernel}
            yield pytest.param(name, k, settings, marks=marks, id=f"{name}-{kernel}")


each = pytest.mark.parametrize(("name", "k", "settings"), list(cases()))


def refusal(model, rows, sample_weight=None):
    """The sentence by which a fit is refused; None of one that is not."""
    try:
        model.fit(rows, sample_weight=sample_weight)
    except mmcnb.InputError as error:
        return str(error)
    return None


def check(name, k, settings, rows, *reasons, groups=None, sample_weight=None):
    """The labels of a fit are the groups, or it is refused for one of the reasons."""
    model = make_any(name, n_clusters=k, **settings)
    sentence = refusal(model, rows, sample_weight)
    if sentence is not None:
        assert "\n" not in sentence
        assert any(reason in sentence for reason in reasons), sentence
        return
    assert np.isfinite(model.objective_)
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    groups = np.arange(len(ROWS[k])) % k if groups is None else groups
    counts = (
        slice(None) if sample_weight is None else sample_weight == sample_weight.max()
    )
    assert adjusted_rand_score(groups[counts], model.labels_[counts]) == 1


@each
def test_a_unit_gives_the_same_clusters_or_one_sentence(name, k, settings):
    is_scaled = (
        settings.get("kernel") != "linear" and name != "MultipleKernelClustering"
    )
    for form in FORMS:
        for unit in (1e-150, 1e-24, 1e38, 1e150):
            check(
                name, k, settings, form(ROWS[k] * unit), *(() if is_scaled else RANGE)
            )
        for unit in (1e-40, 1e-20, 1e19, 3e36):
            check(
                name,
                k,
                settings,
                form((ROWS[k] * unit).astype("f4")),
                *RANGE,
                "kernel 0",
            )
    check(name, k, settings, ROWS[k] * 1e-310, *RANGE)
    check(name, k, settings, np.column_stack([ROWS[k], np.full(len(ROWS[k]), 5e-324)]))


@each
def test_rows_far_from_the_origin_give_the_same_clusters(name, k, settings):
    reasons = SAME if name == "MultipleKernelClustering" else ()
    for shift in (-1e4, 1e6, 1e9, 1e12):
        check(name, k, settings, ROWS[k] + shift, *reasons)
        # columns are not centred
        check(name, k, settings, scipy.sparse.csr_array(ROWS[k] + shift), *SAME)


@each
def test_a_refusal_names_the_column_with_the_largest_values(name, k, settings):
    rows = ROWS[k] * np.where(np.arange(ROWS[k].shape[1]) == 2, 1e200, 1.0)
    for form in FORMS:
        sentence = refusal(make_any(name, n_clusters=k, **settings), form(rows))
        assert sentence is None or "(column 2 has the largest values); " in sentence


@each
def test_the_orders_of_rows_and_columns_count_for_nothing(name, k, settings):
    order = np.random.default_rng(0).permutation(len(ROWS[k]))
    for form in FORMS:
        check(name, k, settings, form(ROWS[k][:, ::-1]))
        check(name, k, settings, form(ROWS[k][order]), groups=order % k)


@each
def test_weights_at_the_ends_of_the_range_count_by_their_proportions(name, k, settings):
    n = len(ROWS[k])
    for weights in (
        np.full(n, 5e-324),
        np.full(n, 1e300),
        np.where(np.arange(n) % 5 == 0, 1e-300, 1e300),
    ):
        check(name, k, settings, ROWS[k], sample_weight=weights)

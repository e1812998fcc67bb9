"""Every estimator gives numbers of any size the same clusters, or refuses them in one sentence."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score

import mmcnb
from tests.estimators.every import NAMES, make_any

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")]

OF_TWO = ("CPMMC", "EvolutionaryMMC", "KernelCPMMC", "SparseKernelMMC")
RNG = np.random.default_rng(0)
X = {
    2: RNG.normal(size=(60, 3)) + 8 * (np.arange(60) % 2)[:, None],
    3: 0.7 * RNG.normal(size=(90, 4)) + 14 * np.eye(3, 4)[np.arange(90) % 3],
}
FORMS = (np.asarray, scipy.sparse.csr_array)
SETTINGS = [
    (
        name,
        {"n_clusters": 2 if name in OF_TWO else 3, "scale": scale} | ({"kernel": kernel} if kernel else {}),
    )
    for name in NAMES
    for scale in (None, "standard")
    for kernel in ("rbf", "linear", None)
    if kernel is None or "kernel" in make_any(name).get_params()
]
SETTINGS += [("MaximumMarginClustering", {"n_clusters": k}) for k in (None, 2, 3)]
LONG = "MultipleKernelClustering", "EvolutionaryMMC", "CrammerSingerMMC"
each = pytest.mark.parametrize(
    ("name", "settings"),
    [pytest.param(*one, marks=[pytest.mark.nightly] if one[0] in LONG else []) for one in SETTINGS],
    ids=str,
)


def rows_and_groups(settings):
    n_clusters = settings["n_clusters"] or 3
    return X[n_clusters], np.arange(X[n_clusters].shape[0]) % n_clusters


def answer(name, settings, rows, sample_weight=None):
    """The labels of a fit, or the sentence of a refusal."""
    try:
        model = make_any(name, **settings).fit(rows, sample_weight=sample_weight)
    except mmcnb.InputError as error:
        return str(error)
    assert np.isfinite(model.objective_)
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    return model.labels_


def same_or_refused(found, groups, *reasons):
    if isinstance(found, str):
        assert "\n" not in found
        assert any(reason in found for reason in reasons), found
    else:
        assert adjusted_rand_score(groups, found) == 1


RANGE = "out of range", "overflow", "underflow", "all rows are equal", "take a larger alpha"


@each
def test_a_unit_gives_the_same_clusters_or_one_sentence(name, settings):
    rows, groups = rows_and_groups(settings)
    for unit in (1e-150, 1e-100, 1e-30, 1e-10, 1.0, 1e10, 1e30, 1e100, 1e150):
        for form in FORMS:
            found = answer(name, settings, form(rows * unit))
            scales = settings.get("kernel") != "linear" or settings.get("scale") == "standard"
            reasons = () if scales and name != "MultipleKernelClustering" else RANGE
            same_or_refused(found, groups, *reasons)


@each
def test_a_unit_of_float32_gives_the_same_clusters_or_one_sentence(name, settings):
    rows, groups = rows_and_groups(settings)
    for unit in (1e-40, 1e-30, 1e-20, 1e15, 1e19, 1e30, 3e36):
        for form in FORMS:
            same_or_refused(
                answer(name, settings, form((rows * unit).astype("f4"))), groups, *RANGE, "kernel 0"
            )


@each
def test_denormal_numbers_give_the_same_clusters_or_one_sentence(name, settings):
    rows, groups = rows_and_groups(settings)
    same_or_refused(answer(name, settings, rows * 1e-310), groups, *RANGE)
    same_or_refused(answer(name, settings, np.column_stack([rows, np.full(len(rows), 5e-324)])), groups)


@each
def test_rows_far_from_the_origin_give_the_same_clusters(name, settings):
    rows, groups = rows_and_groups(settings)
    reasons = ("same for all rows", "all rows are equal") if name == "MultipleKernelClustering" else ()
    for shift in (1e3, 1e6, 1e9, 1e12):
        same_or_refused(answer(name, settings, rows + shift), groups, *reasons)
    for shift in (1e3, 1e6, 1e9, 1e10, 1e12):  # sparse columns are not centred
        sparse = answer(name, settings, scipy.sparse.csr_array(rows + shift))
        same_or_refused(sparse, groups, "same for all rows", "all rows are equal")


@each
def test_a_refusal_names_the_column_with_the_largest_values(name, settings):
    rows = rows_and_groups(settings)[0].copy()
    rows[:, 2] *= 1e200
    for form in FORMS:
        found = answer(name, settings, form(rows))
        if isinstance(found, str):
            assert "(column 2 has the largest values); " in found


@each
def test_the_orders_of_rows_and_columns_count_for_nothing(name, settings):
    rows, groups = rows_and_groups(settings)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        columns, order = rng.permutation(rows.shape[1]), rng.permutation(rows.shape[0])
        for form in FORMS:
            same_or_refused(answer(name, settings, form(rows[:, columns])), groups)
            same_or_refused(answer(name, settings, form(rows[order])), groups[order])


@each
def test_weights_at_the_ends_of_the_range_count_by_their_proportions(name, settings):
    rows, groups = rows_and_groups(settings)
    for weight in (5e-324, 1e-300, 1.0, 1e300):
        same_or_refused(answer(name, settings, rows, np.full(len(rows), weight)), groups)
    light = np.arange(len(rows)) % 5 == 0
    heavy = answer(name, settings, rows, np.where(light, 1e-300, 1e300))
    same_or_refused(heavy[~light], groups[~light])

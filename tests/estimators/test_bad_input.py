"""Input that cannot be used is refused by one sentence that names the place."""

import re

import numpy as np
import pytest
import scipy.sparse
import zarr

import mmcnb
from mmcnb._config import parse_bytes
from mmcnb.errors import InputError, MemoryLimitError
from mmcnb.stores import create_dense_store
from tests.estimators.conftest import ESTIMATORS, make, make_blobs

KERNEL_ONES = ("SparseKernelMMC", "KernelCPMMC")


@pytest.fixture(scope="module")
def X():
    return make_blobs(100)


def refused(fit, match, kind=ValueError, lines=1):
    with pytest.raises(kind, match=match) as error:
        fit()
    if lines == 1:
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ESTIMATORS)
class TestRows:
    def test_one_row(self, name):
        refused(lambda: make(name).fit(np.ones((1, 3))), "1 sample")

    def test_one_stored_row(self, name, tmp_path):
        zarr.create_array(tmp_path / "one.zarr", data=np.ones((1, 3)))
        refused(lambda: make(name).fit(tmp_path / "one.zarr"), r"one\.zarr.*1 sample", InputError)

    def test_no_row(self, name):
        refused(lambda: make(name).fit(np.empty((0, 3))), "0 sample")

    def test_one_dimension(self, name):
        refused(lambda: make(name).fit(np.ones(5)), "X is a 1-D array of shape", InputError)

    def test_one_stored_dimension(self, name, tmp_path):
        zarr.create_array(tmp_path / "flat.zarr", data=np.ones(5))
        refused(lambda: make(name).fit(tmp_path / "flat.zarr"), r"flat\.zarr.*1-D", InputError)

    @pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
    def test_all_rows_equal(self, name, value):
        refused(lambda: make(name).fit(np.full((20, 3), value)), "^all rows are equal", InputError)

    def test_all_rows_equal_csr(self, name):
        refused(lambda: make(name).fit(scipy.sparse.csr_array((20, 3))), "^all rows are equal", InputError)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, name, X, value):
        spoiled = X.copy()
        spoiled[17, 1] = value
        refused(lambda: make(name).fit(spoiled), "NaN|infinity", InputError)
        fitted = make(name).fit(X)
        refused(lambda: fitted.predict(spoiled), "NaN|infinity", lines=9)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite_in_a_store_names_row_and_column(self, name, X, tmp_path, value):
        spoiled = np.tile(X, (60, 1))
        spoiled[4117, 1] = value
        zarr.create_array(tmp_path / "bad.zarr", data=spoiled, chunks=(500, 3))
        parameters = {} if name == "KernelCPMMC" else {"sample_size": 100}
        source = tmp_path / "bad.zarr"
        if name == "KernelCPMMC":
            zarr.create_array(tmp_path / "small.zarr", data=spoiled[4100:4200], chunks=(30, 3))
            source = tmp_path / "small.zarr"
        row = 17 if name == "KernelCPMMC" else 4117
        refused(lambda: make(name, **parameters).fit(source), f"row {row}, column 1 of", InputError)

    def test_not_finite_csr(self, name, X):
        spoiled = scipy.sparse.csr_array(X)
        spoiled.data[5] = np.nan
        refused(lambda: make(name).fit(spoiled), "NaN", lines=9)

    def test_text(self, name):
        refused(lambda: make(name).fit(np.array([["a", "b"], ["c", "d"]])), "X contains text", InputError)

    def test_stored_text(self, name, tmp_path):
        zarr.create_array(
            tmp_path / "text.zarr", data=np.array([["a", "b"], ["c", "d"]], "<U1"), zarr_format=2
        )
        refused(lambda: make(name).fit(tmp_path / "text.zarr"), r"text\.zarr contains text", InputError)

    def test_complex(self, name):
        refused(lambda: make(name).fit(np.ones((5, 2)) * 1j), "X contains complex numbers", InputError)

    def test_stored_complex(self, name, tmp_path):
        zarr.create_array(tmp_path / "c.zarr", data=np.ones((5, 2)) * 1j)
        refused(lambda: make(name).fit(tmp_path / "c.zarr"), r"c\.zarr contains complex numbers", InputError)

    def test_missing_store(self, name, tmp_path):
        refused(lambda: make(name).fit(tmp_path / "nowhere.zarr"), r"nowhere\.zarr", InputError)

    def test_other_columns_than_the_fit(self, name, X, tmp_path):
        model = make(name).fit(X)
        refused(lambda: model.predict(X[:, :2]), "X has 2 features, but .* is expecting 3 features")
        with create_dense_store(tmp_path / "two.zarr", 2, dtype="float64") as writer:
            writer.append(X[:, :2])
        for ask in (model.predict, model.decision_function):
            refused(
                lambda ask=ask: ask(tmp_path / "two.zarr"),
                r"two\.zarr has 2 features, but .* expecting 3",
                InputError,
            )

    def test_refused_predict_writes_nothing(self, name, X, tmp_path):
        model, spoiled = make(name).fit(X), np.tile(X, (60, 1))
        spoiled[5000, 0] = np.nan
        zarr.create_array(tmp_path / "bad.zarr", data=spoiled, chunks=(500, 3))
        refused(lambda: model.predict(tmp_path / "bad.zarr", out=tmp_path / "out.zarr"), "row 5000, column 0")
        assert [path.name for path in tmp_path.iterdir()] == ["bad.zarr"]


OUT_OF_RANGE = [
    ("C", 1.0),
    ("C", 0.5),
    ("C", -1),
    ("C", np.nan),
    ("C", np.inf),
    ("C", "10"),
    ("C", None),
    ("C", True),
    ("balance", -0.1),
    ("balance", 1.0),
    ("balance", np.nan),
    ("min_share", -0.1),
    ("min_share", 1.1),
    ("n_init", 0),
    ("n_init", 2.5),
    ("n_init", -3),
    ("eta", 0.0),
    ("eta", -1),
    ("eta", 1.5),
    ("max_rounds", 0),
    ("init", "best"),
    ("scale", "minmax"),
    ("threshold", "free"),
    ("memory_limit", "much"),
    ("memory_limit", -5),
]
KERNEL_OUT_OF_RANGE = [
    ("gamma", 0.0),
    ("gamma", -1.0),
    ("gamma", np.nan),
    ("gamma", np.inf),
    ("gamma", "wide"),
    ("gamma", None),
    ("kernel", "cosine"),
    ("degree", 0),
    ("degree", 2.5),
    ("coef0", np.nan),
]
SPARSE_OUT_OF_RANGE = [
    ("basis", "all"),
    ("n_landmarks", 0),
    ("n_landmarks", 2.5),
    ("sample_size", 1),
    ("sample_size", 0.5),
]


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [(name, *case) for name in ESTIMATORS for case in OUT_OF_RANGE]
    + [(name, *case) for name in KERNEL_ONES for case in KERNEL_OUT_OF_RANGE]
    + [("SparseKernelMMC", *case) for case in SPARSE_OUT_OF_RANGE],
)
def test_parameters_out_of_range_are_named_with_their_value(X, name, parameter, value):
    sentence = rf"^{parameter}={re.escape(repr(value))} is [^\n]*\.$"
    refused(lambda: make(name, **{parameter: value}).fit(X), sentence, InputError)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("C", "balance"), [(2.0, 0.5), (1.25, 0.2), (1.5, 0.9)])
def test_infeasible_balance_is_refused(X, name, C, balance):
    refused(
        lambda: make(name, C=C, balance=balance).fit(X),
        rf"^balance={balance:g} is infeasible with C={C:g}[:;] [^\n]*raise C\.$",
        InputError,
    )


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("threshold", ["adaptive", "fixed"])
@pytest.mark.parametrize("balance", [0.001, 0.05, 0.3, 0.85])
def test_every_feasible_balance_fits(X, name, threshold, balance):
    model = make(name, balance=balance, threshold=threshold).fit(X)
    assert set(model.labels_.tolist()) == {0, 1}


def least_that_works(name, source, **parameters):
    with pytest.raises(MemoryLimitError) as error:
        make(name, memory_limit="1MiB", **parameters).fit(source)
    assert "\n" not in str(error.value)
    return re.search(r"the least that works is ([\d.]+ [MG]iB)\.$", str(error.value)).group(1)


@pytest.mark.parametrize("name", ["SparseKernelMMC", "CPMMC"])
@pytest.mark.parametrize("stored", [False, True])
def test_too_small_a_limit_names_the_least_that_works_and_it_works(X, name, stored, tmp_path):
    source = X
    if stored:
        zarr.create_array(tmp_path / "a.zarr", data=X)
        source = tmp_path / "a.zarr"
    least = least_that_works(name, source)
    model = make(name, memory_limit=least).fit(source)
    assert set(model.labels_.tolist()) == {0, 1}


def test_exact_method_refuses_a_matrix_that_does_not_fit_with_its_bytes():
    X = np.random.default_rng(0).standard_normal((20_000, 2)).astype(np.float32)
    with pytest.raises(MemoryLimitError, match=r"^[^\n]*20,000 rows[^\n]*SparseKernelMMC[^\n]*\.$") as error:
        mmcnb.KernelCPMMC(memory_limit="1GiB").fit(X)
    assert parse_bytes(re.findall(r"[\d.]+ [MG]iB", str(error.value))[1]) >= 2 * 8 * 20_000**2


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (np.ones(99), "99 entries for 100 rows"),
        (np.ones((100, 1)), "give one weight a row"),
        (np.where(np.arange(100) == 41, -1.0, 1.0), "row 41 is -1"),
        (np.where(np.arange(100) == 42, np.nan, 1.0), "row 42 is nan"),
        (np.where(np.arange(100) == 43, np.inf, 1.0), "row 43 is inf"),
        (np.zeros(100), "above zero"),
        (np.eye(100)[3], "above zero"),
        (0.0, "above zero"),
    ],
)
def test_weights_that_cannot_be_used(X, name, weights, match):
    refused(lambda: make(name).fit(X, sample_weight=weights), match)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_text_weights_are_refused(X, name):
    refused(lambda: make(name).fit(X, sample_weight=["heavy"] * 100), "could not convert|sample_weight")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rows_of_weight_that_are_all_equal(X, name):
    spoiled = X.copy()
    spoiled[:50] = 1.0
    weights = (np.arange(100) < 50).astype(float)
    refused(lambda: make(name).fit(spoiled, sample_weight=weights), "all rows are equal", InputError)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_two_rows_are_two_clusters(name):
    assert make(name).fit(np.array([[0.0, 0.0], [3.0, 1.0]])).labels_.tolist() == [0, 1]


# -- the graph is of the front door ------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["UnsupervisedRLS", "SparseKernelMMC", "CrammerSingerMMC", "KernelCPMMC", "EvolutionaryMMC"]
)
def test_methods_of_kernel_functions_name_that_of_the_graph(X, name):
    refused(
        lambda: getattr(mmcnb, name)(kernel="graph").fit(X),
        "^kernel='graph' is unknown; choose one of 'rbf', 'linear', 'poly'\\.$",
        InputError,
    )


WRONG_TYPES = [
    "a",
    "",
    b"a",
    [],
    [1],
    {},
    object(),
    int,
    1j,
    np.nan,
    np.array([1, 2]),
    np.timedelta64(1, "s"),
]


@pytest.mark.parametrize("name", ["n_jobs", "random_state", "verbose", "n_init", "C", "max_rounds", "gamma"])
@pytest.mark.parametrize("value", WRONG_TYPES, ids=lambda value: type(value).__name__)
def test_values_of_wrong_types_are_one_sentence_that_names_the_parameter(X, name, value):
    refused(lambda: mmcnb.SparseKernelMMC(**{name: value}).fit(X), name, InputError)


@pytest.mark.parametrize("value", [1.5, "a", 0, 10**30, np.float32(2)])
def test_threads_are_a_whole_number_wherever_they_are_given(X, value):
    refused(lambda: mmcnb.CPMMC(n_jobs=value).fit(X), "n_jobs", InputError)
    refused(lambda: mmcnb.config(n_jobs=value), "n_jobs", InputError)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fit", "power"), [(mmcnb.MaximumMarginClustering, 120), (mmcnb.UnsupervisedRLS, 100)]
)
def test_values_near_the_largest_of_float32_are_refused_or_clustered(fit, power):
    rng = np.random.default_rng(0)
    few, many = (np.sign(rng.standard_normal((900, d))).astype(np.float32) for d in (3, 80))
    sentence = (
        r"of the values (overflow|are out of range) \(column \d+ has the largest values\); (divide|multiply)"
    )
    refused(lambda: fit().fit(3e38 * many), sentence, InputError)
    few += rng.uniform(0, 0.1, few.shape).astype(np.float32)
    few[:, 0] += 5 * (np.arange(900) < 300)
    expected = fit(random_state=0).fit(few).labels_
    np.testing.assert_array_equal(fit(random_state=0).fit(np.float32(2.0**power) * few).labels_, expected)


def test_rows_to_label_that_overflow_are_refused():
    X = np.random.default_rng(0).uniform(-1, 1, (300, 3)).astype(np.float32)
    model = mmcnb.MaximumMarginClustering(kernel="graph", random_state=0).fit(np.float32(1e38) * (X + 2))
    refused(
        lambda: model.predict(np.full((5, 3), -3e38, np.float32)),
        r"of the values overflow \(column \d+ has the largest values\); divide",
        InputError,
    )


@pytest.mark.parametrize(("value", "match"), [(1e308, "at most 1e.100"), (1e-308, "at least 1e-100")])
def test_numbers_whose_squares_overflow_are_out_of_range(X, value, match):
    refused(lambda: mmcnb.UnsupervisedRLS(gamma=value).fit(X), f"gamma=.*{match}", InputError)

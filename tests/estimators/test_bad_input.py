"""Input that cannot be used is refused by one sentence that names the place or the parameter."""

import re
from functools import cache

import numpy as np
import pytest
import scipy.sparse
import zarr

import mmcnb
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
    datasets,
)
from mmcnb.errors import InputError, MemoryLimitError
from tests.estimators.conftest import ESTIMATORS, make, make_blobs, make_sparse
from tests.estimators.every import NAMES, make_any
from tests.estimators.several_kernels import one_time

X = make_blobs(100)
TWICE = np.repeat(make_blobs(50), 2, axis=0)


def with_value(value, row=17):
    rows = np.tile(X, (row // 100 + 1, 1))
    rows[row, 1] = value
    return rows


def assert_refused(call, sentence, kind=InputError):
    with pytest.raises(kind, match=sentence) as error:
        call()
    assert re.fullmatch(r"[^\n]*\.", str(error.value))


# -- rows ------------------------------------------------------------------------------

ROWS = {
    "one row": (np.ones((1, 3)), "1 sample"),
    "one dimension": (np.ones(5), "is a 1-D array of shape"),
    "text": (np.array([["a", "b"], ["c", "d"]]), "contains text"),
    "complex": (np.ones((5, 2)) * 1j, "contains complex numbers"),
    "infinity": (with_value(-np.inf), "infinity.* row 17, column 1"),
    "infinity in a later chunk": (
        with_value(np.inf, row=4117),
        "infinity.* row 4117, column 1",
    ),
}


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("case", ROWS)
def test_rows_that_cannot_be_read(case, stored, tmp_path):
    rows, sentence = ROWS[case]
    source = rows
    if stored:
        source = tmp_path / "rows.zarr"
        chunks = (min(500, len(rows)), *rows.shape[1:])
        zarr.create_array(source, data=rows, chunks=chunks, zarr_format=2)
        sentence = f"(?=.*rows.zarr).*{sentence}"
    assert_refused(lambda: CPMMC(sample_size=100).fit(source), sentence, ValueError)


def test_rows_that_are_none_in_memory_or_in_no_store(tmp_path):
    assert_refused(lambda: CPMMC().fit(np.empty((0, 3))), "0 sample", ValueError)
    assert_refused(lambda: CPMMC().fit(tmp_path / "nowhere.zarr"), r"nowhere\.zarr")


@pytest.mark.parametrize(
    "rows",
    [np.full((20, 3), 0.1), np.full((20, 3), 1e6), scipy.sparse.csr_array((20, 3))],
)
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name != "MaximumMarginClustering"]
)
def test_equal_rows_are_refused(name, rows):
    assert_refused(
        lambda: make_any(name, n_clusters=2).fit(rows), "^all rows are equal"
    )


def test_rows_of_weight_that_are_all_equal_are_refused():
    rows = X.copy()
    rows[:50] = 1.0
    weights = (np.arange(100) < 50).astype(float)
    assert_refused(
        lambda: CPMMC().fit(rows, sample_weight=weights), "^all rows are equal"
    )


@pytest.mark.parametrize("name", NAMES)
def test_two_rows_are_two_clusters(name):
    rows = np.array([[0.0, 0.0], [3.0, 1.0]])
    assert make_any(name, n_clusters=2).fit(rows).labels_.tolist() == [0, 1]


def test_rows_to_label_have_the_columns_of_the_fit_and_finite_values(tmp_path):
    model = CPMMC(random_state=0).fit(X)
    zarr.create_array(tmp_path / "two.zarr", data=X[:, :2])
    sentence = "has 2 features, but .* is expecting 3 features"
    for rows in (X[:, :2], tmp_path / "two.zarr"):
        for method in (model.predict, model.decision_function):
            assert_refused(
                lambda method=method, rows=rows: method(rows), sentence, ValueError
            )
    with pytest.raises(ValueError, match="infinity"):
        model.predict(with_value(np.inf))


def test_a_refused_prediction_writes_nothing(tmp_path):
    model = CPMMC(random_state=0).fit(X)
    zarr.create_array(
        tmp_path / "rows.zarr", data=with_value(np.inf, row=5000), chunks=(500, 3)
    )
    assert_refused(
        lambda: model.predict(tmp_path / "rows.zarr", out=tmp_path / "labels.zarr"),
        "row 5000, column 1",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["rows.zarr"]


def test_rows_to_label_that_overflow_are_refused():
    rows = np.random.default_rng(0).uniform(1, 3, (100, 3)).astype(np.float32)
    model = MaximumMarginClustering(kernel="graph", random_state=0).fit(
        np.float32(1e38) * rows
    )
    sentence = r"of the values overflow \(column \d+ has the largest values\); divide"
    assert_refused(lambda: model.predict(np.full((5, 3), -3e38, np.float32)), sentence)


# -- weights ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(99), "99 entries for 100 rows"),
        (np.ones((100, 1)), "pass one weight per row"),
        (np.where(np.arange(100) == 41, -1.0, 1.0), "row 41 is -1"),
        (np.where(np.arange(100) == 42, np.nan, 1.0), "row 42 is nan"),
        (np.where(np.arange(100) == 43, np.inf, 1.0), "row 43 is inf"),
        (np.zeros(100), "above zero"),
        (np.eye(100)[3], "above zero"),
        (0.0, "above zero"),
        (["heavy"] * 100, "could not convert|sample_weight"),
    ],
)
def test_weights_that_cannot_be_used(weights, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        CPMMC().fit(X, sample_weight=weights)
    assert "\n" not in str(error.value)


# -- the values of one parameter -------------------------------------------------------

OUT_OF_RANGE = [
    (SparseKernelMMC, "C", [1.0, np.nan, "10", None, True], "a number above 1"),
    (SparseKernelMMC, "gamma", [0.0, -1.0, np.nan], "a number above 0"),
    (SparseKernelMMC, "gamma", [1e308, np.inf], "a number above 0 and at most 1e+100"),
    (SparseKernelMMC, "gamma", [1e-308], "a number of at least 1e-100"),
    (SparseKernelMMC, "balance", [-0.1, 1.0], "a number of at least 0 and below 1"),
    (
        SparseKernelMMC,
        "min_share",
        [-0.1, 1.1, None],
        "a number of at least 0 and at most 1",
    ),
    (SparseKernelMMC, "n_init", [0, None], "a whole number of at least 1"),
    (
        SparseKernelMMC,
        "n_init",
        [2**31],
        "a whole number of at least 1 and at most 2.14748e+09",
    ),
    (
        SparseKernelMMC,
        "degree",
        [0, 1001],
        "a whole number of at least 1 and at most 1000",
    ),
    (SparseKernelMMC, "sample_size", [1], "a whole number of at least 2"),
    (KernelKMeans, "tol", [-1e-3], "a number of at least 0"),
    (UnsupervisedRLS, "n_landmarks", [1, None], "a whole number of at least 2"),
    (CrammerSingerMMC, "n_clusters", [0, -3], "a whole number of at least 1"),
]
CHOICES = [
    (SparseKernelMMC, "init", "best", "'mixed'"),
    (SparseKernelMMC, "kernel", "graph", "'rbf', 'linear', 'poly'"),
    (SparseKernelMMC, "basis", "all", "'landmarks', 'paper'"),
    (SparseKernelMMC, "scale", "minmax", "None, 'auto', 'standard'"),
    (UnsupervisedRLS, "search", "luck", "'shaking', 'steepest', 'stochastic'"),
    (EvolutionaryMMC, "centre", 1, "True, False"),
]
PARSED = [
    ("memory_limit", ["much", -5]),
    ("n_jobs", [0, 1.5, "a", 10**30, np.float32(2)]),
    ("random_state", [-1, "a"]),
    ("verbose", ["yes"]),
    ("checkpoint", ["", "\0", "a/" * 3000, 3, b"run"]),
]
NO_VALUES = [
    b"a",
    object(),
    1j,
    np.timedelta64(1, "s"),
    np.zeros((3, 3), "M8[s]"),
    int,
    np.nan,
    np.array(1j),
]


@pytest.mark.parametrize(("estimator", "name", "values", "valid"), OUT_OF_RANGE)
def test_a_number_out_of_range_is_named_with_its_range(estimator, name, values, valid):
    for value in values:
        with pytest.raises(InputError) as error:
            estimator(**{name: value}).fit(X)
        assert str(error.value) == f"{name}={value!r} is out of range; give {valid}."


@pytest.mark.parametrize("value", [3.0, 2.5, np.float64(3)])
@pytest.mark.parametrize(
    ("estimator", "name", "least"),
    [(CrammerSingerMMC, "n_clusters", 1), (SparseKernelMMC, "sample_size", 2)],
)
def test_a_float_is_not_an_integer_even_if_it_is_whole(estimator, name, least, value):
    with pytest.raises(InputError) as error:
        estimator(**{name: value}).fit(X)
    assert (
        str(error.value)
        == f"{name}={value!r} is not an integer; give an integer of at least {least}."
    )


@pytest.mark.parametrize(("estimator", "name", "value", "valid"), CHOICES)
def test_an_unknown_choice_is_named_with_those_there_are(estimator, name, value, valid):
    sentence = rf"^{name}={value!r} is unknown; choose one of [^\n]*{valid}[^\n]*\.$"
    assert_refused(lambda: estimator(**{name: value}).fit(X), sentence)


@pytest.mark.parametrize("value", ["wide", None])
def test_what_is_neither_a_number_nor_a_name_is_told_both(value):
    sentence = (
        rf"^gamma={value!r} is unknown; give a positive number or one of 'auto', "
    )
    assert_refused(lambda: SparseKernelMMC(gamma=value).fit(X), sentence)


@pytest.mark.parametrize(("name", "values"), PARSED)
def test_what_a_parameter_does_not_understand_is_named(name, values):
    for value in values:
        assert_refused(lambda value=value: CPMMC(**{name: value}).fit(X), f"^{name}")


def takes(call, name, value):
    """Whether a value is taken, or refused by no sentence on its parameter."""
    try:
        call(**{name: value})
    except InputError as error:
        return not re.fullmatch(rf"[^\n]*{name}[^\n]*\.", str(error))
    return True


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_of_every_estimator_has_a_constraint(name):
    estimator = getattr(mmcnb, name)
    for parameter in estimator().get_params(deep=False):
        for value in NO_VALUES:
            assert not takes(
                lambda **given: estimator(**given).fit(X), parameter, value
            ), (parameter, value)


@cache
def front_door():
    return MaximumMarginClustering(2, random_state=0).fit(X)


BLOCK = {
    "kind": "blobs",
    "start": 0,
    "stop": 5,
    "n_features": 3,
    "random_state": 0,
    "n_clusters": 2,
}
FUNCTIONS = {
    "labels_at": (
        lambda n_clusters: front_door().labels_at(X, n_clusters),
        "n_clusters",
    ),
    "predict": (lambda layer: front_door().predict(X, layer=layer), "layer"),
    "make_block": (
        lambda **given: datasets.make_block(**BLOCK | given),
        " ".join(BLOCK),
    ),
    "partition_score": (
        lambda **given: mmcnb.partition_score(X, np.repeat([0, 1], 50), **given),
        "sample_weight metric n_nodes random_state",
    ),
    "config": (mmcnb.config, "memory_limit n_jobs engine"),
    "warmup": (mmcnb.warmup, "estimator"),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_option_of_a_function_has_a_constraint(function):
    call, options = FUNCTIONS[function]
    for option in options.split():
        for value in NO_VALUES:
            assert not takes(call, option, value), (option, value)


@pytest.mark.parametrize(
    "value",
    [np.eye(3), np.arange(10**4), "a\nb", ["x" * 500], {"a": np.eye(2)}],
    ids=range(5),
)
def test_a_value_is_shown_on_one_line_that_can_be_read(value):
    with pytest.raises(
        InputError, match=r"^C=[^\n]{1,120} is out of range; give a number above 1\.$"
    ):
        CPMMC(C=value).fit(X)


# -- parameters that do not fit one another, or the rows -------------------------------

ODD = [
    (
        SparseKernelMMC(basis="paper", kernel="linear"),
        "basis='paper' needs kernel='rbf', not 'linear'",
    ),
    (
        SparseKernelMMC(basis="paper", n_landmarks=9),
        "basis='paper' does not use landmarks",
    ),
    (SparseKernelMMC(landmarks=np.ones(3)), r"landmarks .*shape \(3,\)"),
    (SparseKernelMMC(landmarks=np.eye(4)), "4 columns, but the rows have 3"),
    (
        SparseKernelMMC(landmarks=[[0.0, np.nan, 1.0], [0.0, 0.0, 1.0]]),
        "row 0, column 1",
    ),
    (UnsupervisedRLS(landmarks="k-means"), "landmarks is a str: pass an array"),
    (
        UnsupervisedRLS(101),
        "n_clusters=101 is more than the 100 rows; pass n_clusters=100 or fewer",
    ),
    (
        UnsupervisedRLS(51),
        "the sample has 50 rows that differ, fewer than n_clusters=51",
    ),
    (UnsupervisedRLS(9, sample_size=5), "sample_size=5 is smaller than n_clusters=9; "),
    (UnsupervisedRLS(9, n_landmarks=5), "n_landmarks=5 is smaller than n_clusters=9; "),
    (UnsupervisedRLS(alpha=1e-30), "; take a larger alpha|or take a larger alpha"),
    (
        UnsupervisedRLS(cluster_sizes=[0.7, 0.7]),
        "cluster_sizes must sum to 1, not to 1.4; ",
    ),
    (
        UnsupervisedRLS(cluster_sizes=[1.5, -0.5]),
        "cluster_sizes must be positive, and -0.5 is not; ",
    ),
    (UnsupervisedRLS(cluster_sizes=["a", "b"]), "cluster_sizes contains text"),
    (
        CrammerSingerMMC(3, cluster_sizes=[0.5, 0.5]),
        "one share for each of the 3 clusters, not 2",
    ),
    (EvolutionaryMMC(alpha=1e-22), "take a larger alpha"),
]


@pytest.mark.parametrize(("estimator", "sentence"), ODD)
def test_parameters_that_do_not_fit_the_rows_or_one_another(estimator, sentence):
    assert_refused(lambda: estimator.set_params(random_state=0).fit(TWICE), sentence)


def test_clusters_that_need_more_rows_than_there_are():
    sentence = "^3 clusters of these sizes need more than 3 rows; give "
    assert_refused(
        lambda: UnsupervisedRLS(3, cluster_sizes=[0.9, 0.05, 0.05]).fit(X[:3]), sentence
    )


def nan(rows, basis):
    return np.full((rows.shape[0], basis.shape[0]), np.nan)


def zero(rows, basis):
    return np.zeros((rows.shape[0], basis.shape[0]))


NO_NUMBERS = r"columns\[0\] is not a list of columns"
NO_COLUMN = r"columns\[0\] selects none of the"
KERNELS = [
    ([], "kernels is empty"),
    (None, "kernels=None is not a list"),
    ("rbf", "kernels='rbf' is unknown"),
    (["cosine"], r"kernels\[0\]='cosine' is unknown"),
    (["linear", 3], r"kernels\[1\]=3 is not a kernel"),
    ([np.eye(60)], r"kernels\[0\] is an array, which is not a kernel"),
    (["linear", nan], "kernel nan returned nan"),
    (["linear", "rbf", "linear"], "kernel linear equals kernel linear up to"),
    (["linear", zero], "kernel zero is the same for all rows"),
]
COLUMNS = [
    ([[0], [1]], "one entry for each of the 1 kernels"),
    ([[0, 3]], rf"{NO_NUMBERS} \(index 3 "),
    ([[]], NO_COLUMN),
    ([[True, False]], NO_NUMBERS),
    ([[[0], [1, 2]]], NO_NUMBERS),
]
SEVERAL = [
    ({"kernels": "auto", "columns": [[0]]}, "columns cannot be combined"),
    ({"n_clusters": 3, "balance": 0.1}, "balance and init apply to two clusters only"),
    ({"basis": "exact", "n_landmarks": 9}, "leave n_landmarks at None"),
    (
        {"kernels": [one_time], "checkpoint": "run"},
        "a checkpoint cannot identify kernels",
    ),
    *(({"kernels": kernels}, sentence) for kernels, sentence in KERNELS),
    *(
        ({"kernels": ["rbf"], "columns": columns}, sentence)
        for columns, sentence in COLUMNS
    ),
]


@pytest.mark.parametrize(("parameters", "sentence"), SEVERAL)
def test_kernels_and_columns_that_cannot_be(
    parameters, sentence, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert_refused(
        lambda: MultipleKernelClustering(random_state=0, **parameters).fit(X), sentence
    )
    assert list(tmp_path.iterdir()) == []


def test_kernels_that_tell_no_row_apart_are_named():
    with_constant = np.c_[np.ones(100), X]
    for kernel in ("rbf", ("rbf", {"gamma": 1.0})):
        several = MultipleKernelClustering(
            kernels=[kernel, "linear"], columns=[[0], None]
        )
        assert_refused(
            lambda several=several: several.fit(with_constant),
            r"(kernels\[0\]|kernel rbf)",
        )
    linear = MultipleKernelClustering(kernels=["linear"], random_state=0)
    far = "^kernel linear is the same for all rows.*scale='standard'"
    assert_refused(lambda: linear.fit(X + 1e5), far)
    assert linear.set_params(scale="standard").fit(X + 1e5).labels_.max() == 1
    one_landmark = MultipleKernelClustering(
        kernels=["linear"], n_landmarks=1, random_state=0
    )
    almost_all_alike = np.eye(100)[:, :1]
    assert_refused(
        lambda: one_landmark.fit(almost_all_alike),
        "^kernel 0 has the same values .* 1 landmarks",
    )
    of_dense_rows = MultipleKernelClustering(kernels=[one_time, "linear"])
    assert_refused(
        lambda: of_dense_rows.fit(make_sparse(60)),
        "^kernel one_time failed on sparse rows",
    )


@pytest.mark.parametrize(("C", "balance"), [(2.0, 0.5), (1.25, 0.2), (1.5, 0.9)])
def test_a_balance_without_a_solution_is_refused(C, balance):
    sentence = rf"^balance={balance:g} is infeasible with C={C:g}; pass a balance of at most [\d.]+, or raise C"
    assert_refused(lambda: CPMMC(C=C, balance=balance).fit(X), sentence)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("balance", "threshold"), [(0.001, "adaptive"), (0.85, "adaptive"), (0.3, "fixed")]
)
def test_every_balance_with_a_solution_fits(name, balance, threshold):
    model = make(name, balance=balance, threshold=threshold).fit(X)
    assert set(model.labels_.tolist()) == {0, 1}


# -- memory ----------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [False, True])
def test_too_small_a_limit_names_the_least_that_works_and_it_works(stored, tmp_path):
    source = X
    if stored:
        source = tmp_path / "rows.zarr"
        zarr.create_array(source, data=X)
    with pytest.raises(MemoryLimitError, match=r"^[^\n]*\.$") as error:
        make("SparseKernelMMC", memory_limit="1MiB").fit(source)
    least = re.search(
        r"the least that works is ([\d.]+ [MG]iB)\.$", str(error.value)
    ).group(1)
    assert set(
        make("SparseKernelMMC", memory_limit=least).fit(source).labels_.tolist()
    ) == {0, 1}


MATRICES = [
    (
        UnsupervisedRLS(2, n_init=1),
        "a smaller sample_size needs less",
        {"sample_size": 500},
    ),
    (EvolutionaryMMC(n_init=1), "a smaller sample_size", {"sample_size": 500}),
    (
        EvolutionaryMMC(n_init=1),
        r"n_landmarks=\d+ needs no matrix",
        {"n_landmarks": 50},
    ),
    (
        MultipleKernelClustering(basis="exact"),
        "basis='landmarks' needs no matrix",
        {"basis": "landmarks"},
    ),
]


@pytest.mark.parametrize(("estimator", "words", "remedy"), MATRICES)
def test_a_matrix_that_does_not_fit_is_refused_with_a_remedy_that_works(
    estimator, words, remedy
):
    rows = make_blobs(8000, d=2, dtype=np.float32)
    estimator.set_params(memory_limit="1GiB", random_state=0)
    if estimator.sample_size is None and not isinstance(
        estimator, MultipleKernelClustering
    ):
        estimator.set_params(sample_size=8000)
    assert_refused(
        lambda: estimator.fit(rows), rf"8,000 rows .*{words}", MemoryLimitError
    )
    assert set(estimator.set_params(**remedy).fit(rows).labels_.tolist()) == {0, 1}


def test_the_exact_method_names_the_bytes_of_its_matrix_and_the_method_that_needs_none():
    rows = np.zeros((20_000, 2), np.float32)
    sentence = r"20,000 rows.* \d{5} MiB; SparseKernelMMC needs no matrix"
    assert_refused(
        lambda: KernelCPMMC(memory_limit="1GiB").fit(rows), sentence, MemoryLimitError
    )

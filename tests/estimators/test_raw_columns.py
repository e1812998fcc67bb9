"""Raw tables at the front door: scale="auto" is one answer wherever rows live, and says what it did."""

import json
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.datasets import make_shape
from mmcnb.features.model import read_model, write_model
from mmcnb.plotting import ClusterDisplay, ClusterMapDisplay
from tests.estimators.every import NAMES, make_any

N_CLUSTERS = 3


def numbers(n=300, seed=0):
    """Three clusters in two columns of a long tail and one of a deviation of its own; and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % N_CLUSTERS)
    centres = np.array([[0, 0, 0], [3, 1, 6], [0, 4, 6]])[y]
    income, visits, age = (centres + 0.4 * rng.normal(size=(n, 3))).T
    return np.c_[2000 * np.exp(income / 1.5), 3 * np.exp(visits / 1.5), 40 + age], y


def raw(n=300, seed=0):
    """The same beside a flag and a column of three values that tell nothing."""
    X, y = numbers(n, seed)
    rng = np.random.default_rng(seed + 1)
    return np.c_[X, rng.integers(0, 2, n), rng.integers(1, 4, n)], y


def frame(n=300, seed=0):
    """A frame with a flag and a text."""
    X, y = numbers(n, seed)
    rng = np.random.default_rng(seed + 1)
    table = pd.DataFrame(X, columns=["income", "visits", "age"])
    table["member"] = rng.random(n) < 0.4
    table["plan"] = rng.choice(["basic", "plus", "top"], n)
    return table, y


def front_door(n_clusters=N_CLUSTERS, **parameters):
    return mmcnb.MaximumMarginClustering(n_clusters, random_state=0, **parameters)


@pytest.fixture(scope="module")
def fitted():
    """A model of raw columns."""
    return front_door().fit(raw()[0])


def treatments(model):
    return {row["name"]: row["treatment"] for row in model.report_["columns"]}


# -- one answer ------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [raw, frame])
def test_a_raw_table_is_clustered_by_all_of_its_columns(rows):
    X, y = rows()
    model = front_door().fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert adjusted_rand_score(y, front_door(scale=None).fit(X).labels_) < 0.5
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_the_report_says_what_was_done_to_each_column():
    table, _ = frame()
    model = front_door().fit(table.assign(customer_id=np.arange(300)))
    assert model.report_["scaling"] == (
        "Columns were scaled because their kinds differ: 3 numbers to standard deviation 1 ('income', 'visits' "
        "by the logarithm), 'member' to steps, texts ('plan') to steps; scale=None leaves them unscaled."
    )
    assert list(treatments(model).items()) == [
        ("income", "logarithm"),
        ("visits", "logarithm"),
        ("age", "deviation"),
        ("member", "step"),
        ("plan", "category"),
        ("customer_id", "left out"),
    ]
    json.dumps(model.report_["columns"])


@pytest.mark.parametrize("rows", [raw, numbers], ids=["kinds", "units"])
@pytest.mark.parametrize("seed", range(2))
def test_a_weight_is_a_repetition(rows, seed):
    X, _ = rows(120, seed)
    counts = np.random.default_rng(seed).integers(0, 4, 120)
    weighted = front_door().fit(X, sample_weight=counts.astype(np.float64))
    repeated = front_door().fit(np.repeat(X, counts, axis=0))
    for name in ("scaling", "columns"):
        assert repeated.report_[name] == weighted.report_[name]
    assert (
        adjusted_rand_score(np.repeat(weighted.labels_, counts), repeated.labels_) == 1
    )
    assert repeated.report_["trust"]["columns"] == weighted.report_["trust"]["columns"]


def test_the_unit_the_origin_and_the_order_of_columns_change_no_label(fitted):
    X, _ = raw()
    scaled = front_door().fit(X * 2.0 ** np.array([-20, 7, -3, 12, 5]))
    assert (scaled.labels_.tobytes(), scaled.objective_) == (
        fitted.labels_.tobytes(),
        fitted.objective_,
    )
    shifted = X + np.array([0, 0, -64, 1000, 1000])  # those without a logarithm
    np.testing.assert_array_equal(front_door().fit(shifted).labels_, fitted.labels_)
    np.testing.assert_array_equal(
        front_door().fit(X[:, [4, 2, 0, 3, 1]]).labels_, fitted.labels_
    )


# -- wishes ----------------------------------------------------------------------------

WISHES = {
    "auto": "auto",
    "wishes": {0: "log", 2: "standard", 3: None, 4: 0.5},
}


def scaled_rows(model, rows):
    """Return scaled rows whose columns are in the order in which they were given."""
    scaled = model.scaled(rows).block(0, rows.n_samples)
    if model.column_order is None:
        return scaled
    in_order = np.empty_like(scaled)
    in_order[:, model.column_order] = scaled
    return in_order


@pytest.mark.slow
@pytest.mark.parametrize("scale", WISHES)
@pytest.mark.parametrize("name", NAMES)
def test_every_clusterer_scales_raw_columns_alike(name, scale):
    X, _ = raw(90)
    model = make_any(name, n_clusters=3, n_init=1, scale=WISHES[scale]).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    expected = front_door(scale=WISHES[scale]).fit(X)
    rows = mmcnb.open_samples(X)
    scaled, as_expected = (scaled_rows(one.model_, rows) for one in (model, expected))
    np.testing.assert_array_equal(scaled, as_expected)
    for part in ("scaling", "columns"):
        assert model.report_[part] == expected.report_[part]


def test_wishes_are_by_name_in_a_frame():
    table, _ = frame()
    model = front_door(scale={"income": "standard", "plan": 1.0, "member": None}).fit(
        table
    )
    assert treatments(model) == {
        "income": "deviation",
        "visits": "logarithm",
        "age": "deviation",
        "member": "as it is",
        "plan": "category",
    }
    np.testing.assert_array_equal(model.labels_, model.predict(table))
    with pytest.raises(
        mmcnb.InputError, match=r"^scale names 'aeg', but the columns are 'income', "
    ):
        front_door(scale={"aeg": "log"}).fit(table)


def test_one_cluster_and_any_number_are_found_in_raw_columns():
    one = front_door(None).fit(
        np.random.default_rng(0).lognormal(size=(300, 3)) * [1, 100, 1e4]
    )
    assert (one.candidate_, one.labels_.tolist()) == ("one cluster", [0] * 300)
    X, y = raw()
    model = front_door(None).fit(X)
    assert (model.n_clusters_, adjusted_rand_score(y, model.labels_)) == (3, 1)


def test_directions_are_of_columns_as_they_are_unless_wishes_say_more():
    X, _ = raw()
    plain = front_door(metric="cosine").fit(X)
    assert (
        plain.report_["scaling"] == "Columns were not scaled: directions alone count."
    )
    wished = front_door(metric="cosine", scale={0: "log"}).fit(X)
    assert wished.report_["columns"][0]["treatment"] == "logarithm"
    np.testing.assert_array_equal(wished.labels_, wished.predict(X))


@pytest.mark.parametrize(
    ("name", "stays"),
    [("three-densities", True), ("dense-beside-sparse", True), ("two-moons", False)],
)
def test_a_map_in_metres_stays_a_map_if_its_clusters_separate_far_better(name, stays):
    X, y = make_shape(name, 300, random_state=0)
    X = X * [5000, 300]
    model, plain, standard = (
        front_door(y.max() + 1, kernel="graph", scale=scale).fit(X)
        for scale in ("auto", None, "standard")
    )
    expected = plain if stays else standard
    assert adjusted_rand_score(expected.labels_, model.labels_) == 1
    assert set(treatments(model).values()) == {"as it is" if stays else "deviation"}
    assert (
        model.report_["scaling"].startswith(
            "The columns separate better without scaling (J "
        )
        == stays
    )
    np.testing.assert_array_equal(model.labels_, model.predict(X))


# -- files -----------------------------------------------------------------------------


def test_a_file_keeps_the_scaling_to_the_bit(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = mmcnb.load(tmp_path / "model")
    X, _ = raw(200, seed=5)
    for rows in (X, -X):
        assert (
            loaded.predict_proba(rows).tobytes() == fitted.predict_proba(rows).tobytes()
        )
    for name in ("scaling", "columns"):
        assert loaded.report_[name] == fitted.report_[name]
    assert loaded.scale == "auto"


def test_wishes_by_number_and_constant_columns_work_again_after_a_file(tmp_path):
    X = np.c_[numbers()[0], np.ones(300)]
    for name, scale in (
        ("wishes", {np.int64(0): "log", 2: np.float32(0.5)}),
        ("standard", "standard"),
    ):
        model = front_door(scale=scale).fit(X)
        model.save(tmp_path / name)
        loaded = mmcnb.load(tmp_path / name)
        np.testing.assert_array_equal(loaded.predict(X), model.labels_)
        np.testing.assert_array_equal(loaded.fit(X).labels_, model.labels_)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("units", lambda a: -a, "units are negative"),
        (
            "units",
            lambda a: a[1:],
            r"units has shape \(4,\), but \(5,\) was expected",
        ),
        (
            "units",
            lambda a: a * np.inf,
            "units has values that are not finite, or whose squares overflow",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_file_with_units_that_cannot_be_is_refused(
    fitted, tmp_path, name, change, sentence
):
    fitted.save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    write_model(tmp_path / "odd", header, {**arrays, name: change(arrays[name])})
    with pytest.raises(mmcnb.InputError, match=f"{sentence}; fit again"):
        mmcnb.load(tmp_path / "odd")


# -- columns that make the clusters ----------------------------------------------------


def flags(n_flags, n=400):
    """A frame of noise and flags; the flags are so far apart that they make the clusters."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(5, 1, size=(n, 2)), columns=["height", "weight"])
    for k in range(n_flags):
        table[f"flag {k}"] = 8.0 * rng.integers(0, 2, n)
    return table


@pytest.mark.parametrize(("n_flags", "n_clusters"), [(1, 2), (2, 4)])
def test_flags_that_make_the_clusters_are_named_and_trust_is_low(n_flags, n_clusters):
    with pytest.warns(
        mmcnb.ClusterWarning, match="the clusters are the values of 'flag 0'"
    ):
        model = front_door(n_clusters, scale=None).fit(flags(n_flags))
    trust = model.report_["trust"]
    assert trust["level"] == "low"
    assert sorted(trust["columns"]) == [f"flag {k}" for k in range(n_flags)]
    assert "(100% of their information)" in trust["reason"]
    assert any(trust["reason"] in sentence for sentence in model.report_["warnings"])


def test_a_text_that_makes_the_clusters_is_one_column():
    texts = np.random.default_rng(1).choice(["basic", "plus", "top"], 400)
    model = front_door(scale={"plan": 9.0}).fit(flags(0).assign(plan=texts))
    assert adjusted_rand_score(texts, model.labels_) == 1
    assert model.report_["trust"]["columns"] == ["plan"]
    assert model.report_["trust"]["level"] == "low"


# -- what a fit warns of ---------------------------------------------------------------


@pytest.mark.parametrize(("mark", "scale"), [(-777, "auto"), (5555, None)])
def test_a_fit_warns_of_marks_of_missing_values(mark, scale):
    table, _ = frame()
    table.loc[:5, "age"] = mark
    sentence = (
        rf"'age' has the value {mark} in 6 of 300 rows looked at, and .* in all others"
    )
    with pytest.warns(mmcnb.ClusterWarning, match=sentence):
        model = front_door(scale=scale).fit(table)
    assert sum("--na-values" in one for one in model.report_["warnings"]) == 1


def machine(n=2000):
    """Three states of a machine with three columns, and the state of each row."""
    random = np.random.default_rng(3)
    y = np.arange(n) % 3
    centres = np.array([[20, 1.0, 300], [60, 2.2, 900], [90, 5.6, 1500]])
    rows = centres[y] + random.normal(size=(n, 3)) * [2, 0.2, 20]
    return rows, y


@pytest.mark.parametrize(("number", "n_nodes"), [(None, None), (3, 800)])
def test_a_rare_mark_is_warned_of_and_trust_is_not_high(number, n_nodes, tmp_path):
    rows, y = machine()
    parameters = {} if n_nodes is None else {"n_nodes": n_nodes}
    clean = front_door(number, **parameters).fit(rows)
    assert clean.report_["trust"]["level"] == "high"
    rows[7:2000:180, 0] = -7777  # 0.6 % of the rows
    table = pd.DataFrame(rows, columns=["heat", "pressure", "turns"])
    with pytest.warns(mmcnb.ClusterWarning, match=r"'heat' has the value -7777 in "):
        model = front_door(number, **parameters).fit(table)
    assert model.report_["trust"]["level"] != "high"
    assert "'heat' has the value -7777" in model.report_["trust"]["reason"]
    with pytest.warns(mmcnb.ClusterWarning, match=r"column 0 has the value -7777 in "):
        front_door(number, **parameters).fit(rows)
    # the remedies that the sentences name, and a known mark
    table.to_csv(tmp_path / "rows.csv", index=False)
    for repaired in (
        table.replace(-7777, float("nan")),
        table.replace(-7777, -9999),
        mmcnb.read_table(table, na_values=[-7777]),
        mmcnb.read_table(rows, na_values=[-7777]),
        mmcnb.read_table(tmp_path / "rows.csv", na_values=["-7777"]),
    ):
        model = front_door(number, **parameters).fit(repaired)
        assert "has the value" not in str(model.report_["warnings"])
        assert adjusted_rand_score(y, model.labels_) > 0.95


@pytest.mark.parametrize("scale", ["auto", None])
def test_columns_of_one_value_are_warned_of_by_name(scale):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"size": rng.normal(9 * (np.arange(60) % 2)), "unit": "kg", "year": 2024.0}
    )
    with pytest.warns(
        mmcnb.ClusterWarning, match=r"'unit', 'year' have only one value"
    ):
        model = front_door(2, scale=scale).fit(table)
    alone = front_door(2, scale=scale).fit(table[["size"]])
    np.testing.assert_array_equal(model.labels_, alone.labels_)


# -- frames ----------------------------------------------------------------------------


def test_displays_draw_other_rows_by_the_columns_of_the_fit():
    table, _ = frame()
    model = front_door().fit(table)
    some = table[table["plan"] == "top"]
    display = ClusterDisplay.from_estimator(model, some, features=(0, 3))
    np.testing.assert_allclose(display.points[:, 0], some["income"], rtol=1e-6)
    np.testing.assert_array_equal(display.labels, model.predict(some))
    assert len(ClusterMapDisplay.from_estimator(model, some).points) == len(some)
    plt.close("all")


@pytest.mark.slow
def test_a_frame_of_numbers_is_not_copied_whole():
    """In a process of its own, as Arrow's memory is not Python's."""
    code = (
        "import numpy as np, pandas as pd, pyarrow, mmcnb;"
        "rows = np.random.default_rng(0).normal(size=(10**5, 20));"
        "samples = mmcnb.open_samples(pd.DataFrame(rows, copy=False));"
        "assert np.shares_memory(samples.block(0, 9), rows);"
        "print(pyarrow.default_memory_pool().max_memory() / rows.nbytes)"
    )
    share = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert float(share) < 0.2

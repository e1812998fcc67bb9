"""Raw tables at the front door: scale="auto" is one answer wherever rows live, and says what it did."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import mmcnb
from mmcnb.datasets import make_shape
from mmcnb.features.model import FORMAT, read_model, write_model
from mmcnb.samples import BLOCK_ROWS
from mmcnb.stores import create_dense_store
from tests.estimators.conftest import bits

MODELS = Path(__file__).parents[1] / "data" / "models" / "0.2.0"
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


# -- one answer -----------------------------------------------------------------------------------


def test_a_raw_table_is_clustered_by_all_of_its_columns():
    for X, y in (raw(), frame()):
        model = front_door().fit(X)
        assert adjusted_rand_score(y, model.labels_) > 0.9
        assert adjusted_rand_score(y, front_door(scale=None).fit(X).labels_) < 0.5
        assert np.array_equal(model.labels_, model.predict(X))
        assert model.model_.scaling.units.any()


def test_the_report_says_what_was_done_to_each_column():
    table, _ = frame()
    report = front_door().fit(table.assign(customer_id=np.arange(300))).report_
    assert report["scaling"] == (
        "Columns were scaled, as their kinds differ: 3 numbers to deviation 1 ('income', 'visits' by the "
        "logarithm), 'member' to steps, texts ('plan') to steps; scale=None takes them as they are."
    )
    assert [(row["name"], row["treatment"]) for row in report["columns"]] == [
        ("income", "logarithm"),
        ("visits", "logarithm"),
        ("age", "deviation"),
        ("member", "step"),
        ("plan", "category"),
        ("customer_id", "left out"),
    ]
    json.dumps(report["columns"])


def stores(X, folder):
    """The rows in memory, and in Zarr in chunks of two sizes."""
    found = {"memory": X}
    for chunk_rows in (777, BLOCK_ROWS):
        path = folder / f"{chunk_rows}.zarr"
        with create_dense_store(path, X.shape[1], dtype=X.dtype.name, chunk_rows=chunk_rows) as writer:
            writer.append(X)
        found[chunk_rows] = str(path)
    return found


def answer(model, X):
    return bits(model, X), model.report_["scaling"], model.report_["columns"], model.report_["trust"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_storages_and_threads_give_the_same_bits(tmp_path, dtype):
    X = raw(2 * BLOCK_ROWS + 300)[0].astype(dtype)
    found = {
        (storage, n_jobs): answer(front_door(n_nodes=900, n_jobs=n_jobs).fit(source), X)
        for storage, source in stores(X, tmp_path).items()
        for n_jobs in (1, 2)
    }
    first = found["memory", 1]
    assert "their kinds differ" in first[1]
    assert [key for key, value in found.items() if value != first] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_cluster_gives_the_bits_of_threads(dask_client, tmp_path):
    X = raw(2 * BLOCK_ROWS + 300)[0]
    path = stores(X, tmp_path)[777]
    here, there = (front_door(n_nodes=900, engine=engine).fit(path) for engine in (None, dask_client(2)))
    assert answer(there, X) == answer(here, X)


@pytest.mark.parametrize("rows", [raw, numbers], ids=["kinds", "units"])
def test_a_weight_is_a_repetition(rows):
    for seed in range(5):
        X, _ = rows(120, seed)
        counts = np.random.default_rng(seed).integers(0, 4, 120)
        weighted = front_door().fit(X, sample_weight=counts.astype(np.float64))
        repeated = front_door().fit(np.repeat(X, counts, axis=0))
        assert repeated.report_["scaling"] == weighted.report_["scaling"]
        assert repeated.report_["columns"] == weighted.report_["columns"]
        assert adjusted_rand_score(np.repeat(weighted.labels_, counts), repeated.labels_) == 1
        assert repeated.report_["trust"]["columns"] == weighted.report_["trust"]["columns"]


@pytest.mark.parametrize("column", range(5))
@pytest.mark.parametrize("exponent", [-20, 7])
def test_a_column_in_other_units_changes_no_bit(column, exponent):
    X, _ = raw()
    other = X.copy()
    other[:, column] *= 2.0**exponent
    one, two = front_door().fit(X), front_door().fit(other)
    assert one.model_.scaling is not None
    assert (two.labels_.tobytes(), two.objective_) == (one.labels_.tobytes(), one.objective_)


@pytest.mark.parametrize("column", [2, 3, 4])  # those without a logarithm
@pytest.mark.parametrize("shift", [-64, 1000])
def test_a_column_that_begins_elsewhere_changes_no_label(column, shift):
    X, _ = raw()
    other = X.copy()
    other[:, column] += shift
    np.testing.assert_array_equal(front_door().fit(other).labels_, front_door().fit(X).labels_)


def test_the_order_of_columns_changes_no_label():
    X, _ = raw()
    one, two = (front_door().fit(rows) for rows in (X, X[:, [4, 2, 0, 3, 1]]))
    assert adjusted_rand_score(one.labels_, two.labels_) == 1


# -- every estimator ------------------------------------------------------------------------------

OTHERS = {
    "CPMMC": {},
    "CrammerSingerMMC": {"n_clusters": 3, "n_init": 1, "gamma": 0.5},
    "EvolutionaryMMC": {"gamma": 0.5},
    "KernelCPMMC": {"gamma": 0.5},
    "KernelKMeans": {"n_clusters": 3, "gamma": 0.5},
    "MaximumMarginClustering": {"n_clusters": 3},
    "MultipleKernelClustering": {"n_init": 1},
    "SparseKernelMMC": {"gamma": 0.5, "n_init": 1},
    "UnsupervisedRLS": {"n_clusters": 3},
}
WISHES = {
    "auto": "auto",
    "wishes": {0: "log", 2: "standard", 3: None, 4: 0.5},
}


@pytest.mark.slow
@pytest.mark.parametrize("scale", WISHES)
@pytest.mark.parametrize("name", OTHERS)
def test_every_clusterer_scales_raw_columns_alike(name, scale, tmp_path):
    X, _ = raw(90)
    model = getattr(mmcnb, name)(**OTHERS[name], scale=WISHES[scale], random_state=0).fit(X)
    assert np.array_equal(model.labels_, model.predict(X))
    expected = front_door(scale=WISHES[scale]).fit(X)
    for array in ("mean", "deviation", "units"):
        one, other = (getattr(fitted.model_.scaling, array) for fitted in (model, expected))
        np.testing.assert_array_equal(one, other)
    assert model.report_["scaling"] == expected.report_["scaling"]
    assert model.report_["columns"] == expected.report_["columns"]
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()


def test_all_estimators_are_here():
    assert set(OTHERS) == {name for name in mmcnb.__all__ if hasattr(getattr(mmcnb, name), "scale")}


def test_wishes_are_by_name_in_a_frame():
    table, _ = frame()
    model = front_door(scale={"income": "standard", "plan": 1.0, "member": None}).fit(table)
    assert {row["name"]: row["treatment"] for row in model.report_["columns"]} == {
        "income": "deviation",
        "visits": "logarithm",
        "age": "deviation",
        "member": "as it is",
        "plan": "category",
    }
    assert np.array_equal(model.labels_, model.predict(table))


@pytest.mark.parametrize(
    ("scale", "sentence"),
    [
        ({"aeg": "log"}, r"scale names 'aeg', and the columns are 'income', .*; name one of these\.$"),
        (
            {"plan": "log"},
            r"scale asks for the logarithm of 'plan', which has text or values below 0; give 'standard'\.$",
        ),
        ({"age": "sqrt"}, r"scale\['age'\]='sqrt' is unknown; choose one of 'log', 'standard', None\.$"),
        ({"age": -1}, r"scale\['age'\]=-1 is out of range; give a number above 0\.$"),
        ("minmax", "scale='minmax' is unknown; choose one of None, 'auto', 'standard'"),
    ],
)
def test_wishes_that_cannot_be_are_refused_in_one_sentence(scale, sentence):
    with pytest.raises(mmcnb.InputError, match=f"^{sentence}"):
        front_door(scale=scale).fit(frame()[0])


def test_one_cluster_and_any_number_are_found_in_raw_columns():
    rng = np.random.default_rng(0)
    for X in (rng.standard_normal((300, 4)) * [1, 10, 1e3, 1e4], rng.lognormal(size=(300, 3))):
        one = front_door(None).fit(X)
        assert (one.candidate_, one.labels_.tolist()) == ("one cluster", [0] * 300)
    X, y = raw()
    model = front_door(None).fit(X)
    assert (model.n_clusters_, adjusted_rand_score(y, model.labels_)) == (3, 1)


def test_directions_are_of_columns_as_they_are_unless_wishes_say_more():
    X, _ = raw()
    plain = front_door(metric="cosine").fit(X)
    assert plain.report_["scaling"] == "Columns were taken as they are: directions alone count."
    assert plain.model_.scaling is None
    wished = front_door(metric="cosine", scale={0: "log"}).fit(X)
    assert wished.model_.scaling is not None
    assert np.array_equal(wished.labels_, wished.predict(X))


# -- rule 7: coordinates in one unit --------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("factors", [(300, 5000), (5000, 300)])
@pytest.mark.parametrize(
    "name", ["bead-chains", "dense-beside-sparse", "three-densities", "two-moons", "three-bars"]
)
def test_columns_stay_as_they_are_if_these_separate_far_better(name, factors):
    X, y = make_shape(name, random_state=0)
    X, k = X * factors, len(set(y.tolist()))
    model, plain, standard = (
        front_door(k, kernel="graph", scale=s).fit(X) for s in ("auto", None, "standard")
    )
    is_better = plain.objective_ - standard.objective_ > 1.5
    assert abs(plain.objective_ - standard.objective_ - 1.5) > 0.05  # so that rounding decides nothing
    assert (model.model_.scaling is None) == is_better
    expected = plain if is_better else standard
    assert adjusted_rand_score(expected.labels_, model.labels_) == 1
    assert {row["treatment"] for row in model.report_["columns"]} == {
        "as it is" if is_better else "deviation"
    }
    if is_better:
        assert model.report_["scaling"].startswith(
            f"As they are, the columns separate better (J {plain.objective_:.1f} against "
            f"{standard.objective_:.1f}), so they were not scaled"
        )
    assert np.array_equal(model.labels_, model.predict(X))


def test_a_long_map_in_metres_stays_a_map():
    X, y = make_shape("three-densities", random_state=0)
    model = front_door().fit(X * [5000, 300])
    assert model.report_["scaling"].startswith("As they are, the columns separate better (J ")
    assert model.model_.scaling is None
    assert adjusted_rand_score(y, model.labels_) > 0.9


# -- files ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    model = front_door().fit(raw()[0])
    model.save(path)
    return model, path


def test_a_file_keeps_the_scaling_to_the_bit(saved):
    model, path = saved
    again, X = mmcnb.load(path), raw(200, seed=5)[0]
    for name, array in vars(model.model_.scaling).items():
        assert getattr(again.model_.scaling, name).tobytes() == array.tobytes()
    for rows in (X, -X):
        assert again.predict_proba(rows).tobytes() == model.predict_proba(rows).tobytes()
    assert again.report_["scaling"] == model.report_["scaling"]
    assert again.report_["columns"] == model.report_["columns"]
    assert again.scale == "auto"


def test_wishes_by_number_work_again_after_a_file(tmp_path):
    X, _ = raw()
    model = front_door(scale={np.int64(0): "log", 3: np.float32(0.5)}).fit(X)
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert again.fit(X).report_["columns"] == model.report_["columns"]


def test_a_constant_column_that_was_standardised_is_read_again(tmp_path):
    X = np.c_[numbers()[0], np.ones(300)]
    model = front_door(scale="standard").fit(X)
    model.save(tmp_path / "model")
    assert np.array_equal(mmcnb.load(tmp_path / "model").predict(X), model.labels_)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("units", lambda a: -a, "units are negative"),
        ("units", lambda a: a[1:], r"units has shape \(4,\), and \(5,\) would fit the rest"),
        ("units", lambda a: a * np.inf, "units holds numbers that are not finite, or whose squares overflow"),
        ("deviation", lambda a: -a, "deviation is negative"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_file_with_units_that_cannot_be_is_refused(saved, tmp_path, name, value, sentence):
    header, arrays = read_model(saved[1])
    write_model(tmp_path / "odd", header, {**arrays, name: value(arrays[name])})
    with pytest.raises(mmcnb.InputError, match=f"{sentence}; fit again"):
        mmcnb.load(tmp_path / "odd")


def test_a_model_from_before_has_its_scale():
    header, arrays = read_model(MODELS / "SparseKernelMMC.model")
    assert header["format"] == FORMAT
    assert "encoding" not in header["model"]
    model, X = mmcnb.load(MODELS / "SparseKernelMMC.model"), raw(50)[0][:, :3]
    assert model.scale == "standard"
    scaling = model.model_.scaling
    assert scaling.mean.tobytes() == arrays["mean"].tobytes()
    assert scaling.deviation.tobytes() == arrays["deviation"].tobytes()
    assert scaling.units is None
    expected = (X - arrays["mean"]) / arrays["deviation"]
    samples = mmcnb.open_samples(X)
    np.testing.assert_allclose(model.model_.scaled(samples).block(0, 50), expected, rtol=1e-12)


# -- columns that make the clusters ---------------------------------------------------------------


def flags(n_flags, n=400, gap=8.0, seed=0):
    """A frame of noise and flags; the flags are so far apart that they make the clusters."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(5, 1, size=(n, 2)), columns=["height", "weight"])
    for k in range(n_flags):
        table[f"flag {k}"] = gap * rng.integers(0, 2, n)
    return table


@pytest.mark.parametrize(("n_flags", "n_clusters"), [(1, 2), (2, 4)])
def test_flags_that_make_the_clusters_are_named_and_trust_is_low(n_flags, n_clusters):
    table = flags(n_flags)
    with pytest.warns(mmcnb.ClusterWarning, match="the clusters are the values of 'flag 0'"):
        model = front_door(n_clusters, scale=None).fit(table)
    trust = model.report_["trust"]
    assert trust["level"] == "low"
    assert sorted(trust["columns"]) == [f"flag {k}" for k in range(n_flags)]
    assert "(100% of their information)" in trust["reason"]
    assert any(trust["reason"] in sentence for sentence in model.report_["warnings"])


def test_a_text_that_makes_the_clusters_is_one_column():
    table = flags(0)
    texts = np.random.default_rng(1).choice(["basic", "plus", "top"], 400)
    model = front_door(scale={"plan": 9.0}).fit(table.assign(plan=texts))
    assert adjusted_rand_score(texts, model.labels_) == 1
    assert model.report_["trust"]["columns"] == ["plan"]
    assert model.report_["trust"]["level"] == "low"


def test_a_flag_that_other_columns_agree_with_is_not_named():
    table = flags(1)
    table["height"] += table["flag 0"]
    model = front_door(2, scale=None).fit(table)
    assert adjusted_rand_score(table["flag 0"], model.labels_) == 1
    assert model.report_["trust"]["columns"] == []
    assert model.report_["trust"]["level"] != "low"


def test_the_trust_in_flags_counts_weights_as_repetitions():
    table = flags(1, 200)
    counts = np.random.default_rng(2).integers(1, 4, 200)
    one = front_door(2, scale=None).fit(table, sample_weight=counts)
    other = front_door(2, scale=None).fit(table.loc[np.repeat(table.index, counts)])
    assert one.report_["trust"]["columns"] == ["flag 0"]
    assert one.report_["trust"]["reason"] == other.report_["trust"]["reason"]


@pytest.mark.parametrize(
    ("spread", "seed", "n_clusters"), [(2.5, 1, None), (2.5, 1, 3), (1.0, 2, 3), (1.0, 3, None)]
)
def test_a_flag_beside_blobs_does_not_pass_for_clusters(spread, seed, n_clusters):
    X, y = make_blobs(600, 4, centers=3, random_state=seed, cluster_std=spread)
    flag = np.random.default_rng(seed).random(600) < 0.3
    standard = StandardScaler().fit_transform(np.c_[X, flag])
    model = front_door(n_clusters).fit(standard)
    truths = y, 2 * y + flag  # the blobs, or each parted by the flag
    is_right = max(adjusted_rand_score(truth, model.labels_) for truth in truths) > 0.9
    assert is_right or model.report_["trust"]["level"] != "high"
    assert adjusted_rand_score(flag, model.labels_) < 0.5 or model.report_["trust"]["level"] == "low"


# -- sentinels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [-999, 9999])
@pytest.mark.parametrize("scale", ["auto", None])
def test_a_fit_warns_of_marks_of_missing_values(mark, scale):
    table, _ = frame()
    table.loc[:5, "age"] = mark
    sentence = rf"'age' has the value {mark} in 6 of 300 rows looked at, and .* in all others"
    with pytest.warns(mmcnb.ClusterWarning, match=sentence):
        model = front_door(scale=scale).fit(table)
    assert sum("--na-values" in one for one in model.report_["warnings"]) == 1


def test_a_fit_is_silent_about_seldom_marks_and_zeros():
    table, _ = frame(1000)
    table.loc[:4, "age"] = -999  # 0.5 %
    table.loc[:300, "visits"] = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = front_door().fit(table)
    assert [one for one in caught if "na-values" in str(one.message)] == []
    assert [one for one in model.report_["warnings"] if "na-values" in one] == []


def test_displays_draw_other_rows_by_the_columns_of_the_fit():
    plt = pytest.importorskip("matplotlib.pyplot")
    from mmcnb.plotting import ClusterDisplay, ClusterMapDisplay

    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    frame = pd.DataFrame(
        {"size": rng.normal(9 * y, 1), "kind": np.where(y, "a", "b"), "n": rng.normal(size=120)}
    )
    model = mmcnb.SparseKernelMMC(gamma="median", scale="auto", random_state=0).fit(frame)
    some = frame[frame["kind"] == "a"]
    display = ClusterDisplay.from_estimator(model, some, features=(0, 3))
    np.testing.assert_allclose(display.points[:, 0], some["size"], rtol=1e-6)
    np.testing.assert_array_equal(display.labels, model.predict(some))
    assert ClusterMapDisplay.from_estimator(model, some).points.shape == (60, 2)
    plt.close("all")


@pytest.mark.parametrize("scale", ["auto", None])
def test_columns_of_one_value_are_warned_of_by_name(scale):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(9 * (np.arange(60) % 2)), "unit": "kg", "year": 2024.0})
    with pytest.warns(mmcnb.ClusterWarning, match=r"'unit', 'year' has one value"):
        model = mmcnb.MaximumMarginClustering(2, scale=scale, random_state=0).fit(frame)
    alone = mmcnb.MaximumMarginClustering(2, scale=scale, random_state=0).fit(frame[["size"]])
    np.testing.assert_array_equal(model.labels_, alone.labels_)


def test_a_frame_of_numbers_is_not_copied_whole():
    """In a process of its own, as Arrow's memory is not Python's."""
    code = (
        "import numpy as np, pandas as pd, pyarrow, mmcnb;"
        "rows = np.random.default_rng(0).normal(size=(10**5, 20));"
        "samples = mmcnb.open_samples(pd.DataFrame(rows, copy=False));"
        "assert np.shares_memory(samples.block(0, 9), rows);"
        "print(pyarrow.default_memory_pool().max_memory() / rows.nbytes)"
    )
    share = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(share) < 0.2

"""The study of the graph kernel: its sets, its draws, and the figures that its goals are on."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.halves import CONFIRMATION, TUNING, half_of
from benchmarks.methods import FRONT_DOOR, GRAPH, LEAST_SQUARES
from benchmarks.protocol import LABEL_FREE, MNIST_PAIRS, Data
from benchmarks.run import Options, Run
from benchmarks.studies import _graph_stores, graph
from benchmarks.studies._sets import OURS, SETS, n_clusters_of, over_halves, over_sets, rows_of_set, shapes_of
from mmcnb.synthetic import SHAPES, make_block

SCALES = {"full": {}, "quick": {"quick": True}, "smoke": {"quick": True, "smoke": True, "rows": 200}}


def runs_of(section, path, scale="full"):
    frame = graph.SECTIONS[section].grid(Options(path, **SCALES[scale]))
    return [Run(**row) for row in frame.to_dict("records")]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("section", graph.SECTIONS)
def test_a_section_asks_for_no_run_twice_and_without_classes(section, scale, tmp_path):
    runs = runs_of(section, tmp_path, scale)
    assert len({run.identity for run in runs}) == len(runs) > 0
    assert {run.protocol for run in runs} == {LABEL_FREE}
    once = scale != "full" or section in ("stores", "growth")
    assert {run.seed for run in runs} == ({0} if once else set(range(3)))


@pytest.mark.parametrize(
    "section", [name for name in graph.SECTIONS if name != "growth"]
)  # its rows are made
def test_quick_runs_and_the_choice_of_a_filter_leave_the_confirmation_half_alone(section, tmp_path):
    halves = {scale: {half_of(run.dataset) for run in runs_of(section, tmp_path, scale)} for scale in SCALES}
    assert halves["quick"] == halves["smoke"] == {TUNING}
    one_half = section in ("floors", "filters", "rows", "stores")  # MNIST is of the tuning half
    assert halves["full"] == ({TUNING} if one_half else {TUNING, CONFIRMATION})


def test_all_sets_and_all_shapes_are_asked_for(tmp_path):
    assert {run.dataset for run in runs_of("sets", tmp_path)} == {*SETS, graph.EXTENDED}
    assert {run.dataset for run in runs_of("shapes", tmp_path)} == set(SHAPES)
    assert {run.method for run in runs_of("sets", tmp_path)} == set(OURS)
    assert {*graph.LEAST_ARI, *MNIST_PAIRS} <= set(SETS)
    assert set(graph.MOST_ERROR) == set(MNIST_PAIRS)
    assert {n_clusters_of(name) for name in ("adult", "mnist-3v8", "two-rings")} == {2}
    assert [n_clusters_of(name) for name in ("waveform", "segment", "usps")] == [3, 7, 10]


def test_a_shape_is_made_anew_for_each_seed(tmp_path):
    ((name, rows), *_) = shapes_of(Options(tmp_path, rows=50))
    first, again, other = (rows_of_set(name, rows, seed).X for seed in (0, 0, 1))
    assert len(first) == 50
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("even", [True, False])
def test_draws_of_even_and_of_uneven_sizes_hold_as_many_rows_and_follow_the_seed(even):
    data = Data("four", np.arange(240)[:, None], np.repeat([3, 5, 7, 9], (80, 60, 52, 48)))
    draws = [graph.draw_of_sizes(data, even, seed) for seed in (0, 0, 1)]
    sizes = [np.unique(one.y, return_counts=True)[1].tolist() for one in draws]
    assert all(sorted(one) == ([30] * 4 if even else [12, 24, 36, 48]) for one in sizes)
    np.testing.assert_array_equal(draws[0].X, draws[1].X)
    assert not np.array_equal(draws[0].X, draws[2].X)
    for one in draws:
        np.testing.assert_array_equal(one.y, data.y[one.X[:, 0]])
        assert np.unique(one.X).size == len(one.X)


@pytest.fixture
def made_up_digits(monkeypatch):
    """Ten blobs in the place of the digits."""
    X, y = make_block("blobs", 0, 350, 4, n_clusters=10, random_state=0)
    monkeypatch.setattr(graph, "load_once", lambda name, rows: Data(name, X, y))


@pytest.mark.usefixtures("made_up_digits")
def test_rows_that_were_left_out_are_measured_beside_those_of_the_fit():
    found = graph.compute_rows(Run("mnist", GRAPH, 0, settings={"rows": None}))
    assert found["n"] == 300
    assert found["new_above_fitted"] == pytest.approx(found["new_ari"] - found["ari"])
    assert found["new_ari"] > 0.8


@pytest.mark.usefixtures("made_up_digits")
def test_a_floor_is_the_least_share_of_a_cluster():
    for floor in (0.1, 1.0):
        run = Run("mnist", GRAPH, 0, {"sizes": graph.UNEVEN, "min_share": floor}, settings={"rows": None})
        assert graph.compute_floors(run)["ari"] == graph.compute_uneven(run, min_share=floor)["ari"]


def test_a_filter_is_that_of_the_graph_kernel():
    seen = {
        one: graph.compute(Run("unequal-moons", GRAPH, 0, {"filter": one}, settings={"rows": 300}))["ari"]
        for one in graph.FILTERS
    }
    default = graph.compute(Run("unequal-moons", GRAPH, 0, settings={"rows": 300}))["ari"]
    assert seen["root"] == default
    assert len(set(seen.values())) > 1


# Tables and goals


def frame_of(rows, **more):
    frame = pd.DataFrame(rows, columns=["dataset", "method", "seed", "ari", "balanced_error"])
    return frame.assign(n=9, d=2, seconds=1.0, peak_mib=1.0, status="ok", **more)


def test_a_table_has_the_mean_the_worst_and_the_half():
    rows = [("breast", GRAPH, 0, 0.5, 0.1), ("breast", GRAPH, 1, 0.7, 0.3), ("wdbc", GRAPH, 0, 1.0, np.nan)]
    failed = frame_of([("breast", GRAPH, 2, np.nan, np.nan)]).assign(status="failed")
    table = over_sets(pd.concat([frame_of(rows), failed])).set_index("dataset")
    assert table["half"].to_dict() == {"breast": TUNING, "wdbc": CONFIRMATION}
    breast = table.loc["breast"]
    assert (breast["ari"], breast["worst ari"], breast["runs"]) == (pytest.approx(0.6), 0.5, 2)
    assert (breast["balanced_error"], breast["worst balanced_error"]) == (pytest.approx(0.2), 0.3)
    halves = over_halves(table.reset_index()).set_index("half")
    assert halves["sets"].to_dict() == {TUNING: 1, CONFIRMATION: 1}
    assert halves.loc[TUNING, "worst ari"] == 0.5


def test_goals_are_on_the_default_alone():
    rows = [("optdigits", FRONT_DOOR, 0, 0.96, np.nan), ("optdigits", LEAST_SQUARES, 0, 0.1, np.nan)]
    rows += [("mnist-3v8", FRONT_DOOR, 0, 0.9, 0.021), ("mnist-3v8", LEAST_SQUARES, 0, 0.9, 0.0)]
    goals = graph.tables_of_sets(frame_of(rows)).goals
    assert [(goal.figure, goal.bound, goal.reached) for goal in goals] == [
        (0.96, 0.95, True),
        (2.1, 2, False),
    ]


def test_the_goal_of_shapes_is_on_the_mean_of_all_and_of_each_half():
    rows = [
        ("two-rings", FRONT_DOOR, 0, 1.0, 0.0),
        ("two-rolls", FRONT_DOOR, 0, 0.5, 0.0),
        ("atom", FRONT_DOOR, 0, 0.9, 0.0),
    ]
    goals = {goal.what: goal for goal in graph.tables_of_shapes(frame_of(rows)).goals}
    assert {what: goal.reached for what, goal in goals.items()} == {
        "shapes: mean ARI, all": False,
        "shapes: mean ARI, tuning": True,
        "shapes: mean ARI, confirmation": False,
    }
    assert goals["shapes: mean ARI, all"].figure == pytest.approx(0.8)


def test_uneven_sizes_are_judged_beside_even_ones():
    rows = [("optdigits", FRONT_DOOR, 0, 0.9, np.nan), ("optdigits", LEAST_SQUARES, 0, 0.8, np.nan)]
    even, uneven = frame_of(rows, sizes=graph.EVEN), frame_of(rows, sizes=graph.UNEVEN)
    (goal,) = graph.tables_of_uneven(pd.concat([even, uneven.assign(ari=uneven["ari"] - 0.06)])).goals
    assert (goal.figure, goal.reached) == (pytest.approx(0.06), False)


# Stores


def test_a_store_gives_the_labels_of_the_rows_in_memory_within_its_limit(monkeypatch, tmp_path):
    X, y = make_block("blobs", 0, 300, 4, n_clusters=10, random_state=0)
    monkeypatch.setattr(_graph_stores, "load_once", lambda name, rows: Data(name, X, y))
    runs = runs_of("stores", tmp_path, "smoke")
    assert [run.parameters["memory"] for run in runs] == ["in memory", "512MiB", "1GiB"]
    runs = [run._replace(folder=str(tmp_path)) for run in runs[:2]]
    inside, stored = (_graph_stores.compute_stores(run) for run in runs)
    assert (stored["labels"], stored["ari"], stored["n"]) == (inside["labels"], inside["ari"], 300)
    assert 0 < stored["peak_mib"] <= 512


def stores_frame(rows):
    frame = pd.DataFrame(rows, columns=["memory", "labels", "peak_mib"])
    return frame.assign(
        dataset="mnist", n=9, d=2, seed=0, ari=0.9, seconds=1.0, label_seconds=0.1, status="ok"
    )


def test_other_labels_and_a_peak_above_the_limit_miss_the_goals():
    rows = [("in memory", "a", 700.0), ("512MiB", "a", 513.0), ("1GiB", "b", 513.0)]
    goals = {goal.what: goal for goal in graph.SECTIONS["stores"].tables(stores_frame(rows)).goals}
    assert {what: (goal.figure, goal.reached) for what, goal in goals.items()} == {
        "stores: 512MiB, fits with the labels of rows in memory": (1, True),
        "stores: 1GiB, fits with the labels of rows in memory": (0, False),
        "stores: 512MiB, peak memory": (513, False),
        "stores: 1GiB, peak memory": (513, True),
    }


def test_arcs_grow_tenfold_and_the_largest_number_is_judged(tmp_path):
    sizes = {
        scale: [run.parameters["rows"] for run in runs_of("growth", tmp_path, scale)] for scale in SCALES
    }
    assert sizes == {"full": [10**6, 10**7], "quick": [10**5, 10**6], "smoke": [200]}
    found = {
        "ari": [0.99, 0.9],
        "n": [10, 100],
        "reads": [3, 3],
        "scans": [900.0, 29.0],
        "peak_mib": [9.0, 1025.0],
    }
    frame = pd.DataFrame(found).assign(
        d=2, dataset="arcs", method=FRONT_DOOR, seed=0, seconds=1.0, status="ok"
    )
    frame = frame.assign(rows=frame["n"], label_seconds=1.0, scan_seconds=1.0)
    goals = graph.SECTIONS["growth"].tables(frame).goals
    assert [(goal.figure, goal.reached) for goal in goals] == [
        (3, True),
        (29, True),
        (0.9, False),
        (1025, False),
    ]


def test_a_growing_store_is_measured_beside_a_bare_scan(tmp_path):
    run = Run("arcs", FRONT_DOOR, 0, {"rows": 400}, folder=str(tmp_path))
    found = _graph_stores.compute_growth(run)
    assert (found["n"], found["d"], found["reads"]) == (400, 50, 2)
    assert found["scans"] * found["scan_seconds"] == pytest.approx(found["seconds"] + found["label_seconds"])

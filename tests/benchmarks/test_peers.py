"""Studies of the engine and of peers, the suite of single routines, and what they measure with."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import random

from benchmarks.__main__ import run_study
from benchmarks.journal import Journal
from benchmarks.libraries import AXES, EVOC, GENIE, MIXTURE, PACKAGES, DenseClusterer
from benchmarks.methods import CUT, DENSITY, FRONT_DOOR, KMEANS, estimator
from benchmarks.protocol import LABEL_FREE, SCAN_THREADS, Data, compile_seconds
from benchmarks.run import Options, Run, Section
from benchmarks.studies import engine, peers, routines
from benchmarks.studies._tasks import TASKS, tasks_of
from benchmarks.tables import best
from mmcnb import UnsupervisedRLS
from mmcnb.datasets import make_block

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def blobs(rows=60, columns=3):
    X, y = make_block("blobs", 0, rows, columns, random_state=0)
    return Data("blobs", X, y)


def test_the_best_may_be_the_largest():
    table = pd.DataFrame({"method": ["a", "a", "b"], "width": [1, 2, 1], "ari": [np.nan, 0.25, 0.5]})
    assert best(table, ["method"], "ari", largest=True)["width"].tolist() == [2, 1]


def test_the_first_fit_is_timed_once_for_each_kind_of_rows_and_estimator():
    X = blobs().X
    first = compile_seconds(X, UnsupervisedRLS(2, random_state=0))
    assert first > 0
    assert compile_seconds(X[:30], UnsupervisedRLS(2, random_state=0)) == first
    assert compile_seconds(X, UnsupervisedRLS(3, random_state=0)) != first


def test_slow_peers_of_all_of_mnist_run_for_the_first_seed_alone(tmp_path):
    def seeds(task, method, **options):
        runs = peers.grid(Options(tmp_path, **options))
        return runs.loc[(runs["dataset"] == task) & (runs["method"] == method), "seed"].tolist()

    assert seeds("mnist", "k-means") == [0]
    assert seeds("mnist", "k-means", rows=5000) == seeds("mnist", "UnsupervisedRLS") == [0, 1, 2]
    assert seeds("optdigits", "HDBSCAN") == [0, 1, 2]
    assert not seeds("mnist", "HDBSCAN")


def test_a_task_takes_its_own_rows_at_most(tmp_path):
    def rows(**given):
        return {task.name: rows for task, rows in tasks_of(Options(tmp_path, **given))}

    assert rows()["usps-extended, 60,000"] == TASKS["usps-extended, 60,000"].rows == 60_000
    assert rows(rows=70)["usps-extended, 60,000"] == 70
    assert rows()["optdigits"] is None
    assert rows(quick=True)["mnist"] == 3000


@pytest.mark.parametrize("method", [method for method in peers.METHODS if method != "HDBSCAN"])
def test_every_peer_finds_blobs(method, monkeypatch):
    task, data = TASKS["optdigits"]._replace(name="blobs", n_clusters=2), blobs(200)
    monkeypatch.setattr(peers, "load_task", lambda name, rows: (task, data))
    found = peers.compute(Run("blobs", method, 0, settings={"rows": None}))
    assert (found["n"], found["d"], found["k"]) == (200, 3, 2)
    assert found["ari"] == 1
    assert found["balanced_error"] == found["error"] == 0


def test_routines_and_their_peers_are_timed_in_one_run(tmp_path):
    settings = {"rows": 300, "turns": 1}
    for noise in ("noise", routines.SHARDED):
        found = routines.scan(Run(noise, "predict", 0, settings=settings, folder=str(tmp_path)))
        assert found["n"] == 300
        assert found["scans"] == pytest.approx(found["seconds"] / found["bare_scan_seconds"])
        assert found["bare_scan_threads"] in SCAN_THREADS
    for place in routines.THREADED:
        found = routines.second_thread(Run(place, "predict", 0, settings=settings, folder=str(tmp_path)))
        assert found["n"] == 300
        assert found["second_thread"] == pytest.approx(found["one_thread_seconds"] / found["seconds"])
    chunks = routines.chunks(Run("counts, in a store", "predict", 0, settings=settings, folder=str(tmp_path)))
    assert chunks["n"] == settings["rows"]
    assert -1 < chunks["predict_check"] < 10
    for routine, method in ((routines.search, "neighbours"), (routines.fits, routines.LEAST_SQUARES)):
        found = routine(Run("made", method, 0, settings=settings))
        assert found["n"] == 300
        assert found["second_thread"] > 0.1
    product = routines.product(Run("noise", "predict", 0, settings=settings))
    assert product["of_bare_rate"] == pytest.approx(product["bare_product_seconds"] / product["seconds"])


def test_kernel_values_of_the_routine_are_those_of_scikit_learn(monkeypatch):
    from sklearn.metrics.pairwise import rbf_kernel

    X = random(50, 20, 0.3, "csr", np.float32, np.random.default_rng(0))
    monkeypatch.setattr("benchmarks.run.load_once", lambda name, rows: Data(name, X, np.zeros(50)))
    seen = []
    monkeypatch.setattr(
        routines,
        "turns",
        lambda methods, repeats: seen.extend(methods["ours"]()) or dict.fromkeys(methods, 1.0),
    )
    routines.csr(Run("a9a", "kernel blocks", 0, settings={"turns": 1}))
    np.testing.assert_allclose(np.concatenate(seen), rbf_kernel(X, gamma=1 / 20), atol=1e-6)


def test_goals_of_routines_are_means_over_the_runs():
    frame = pd.DataFrame({"of_bare_rate": [0.6, 0.9], "status": "ok"})
    frame = frame.assign(part="", protocol="", parameters="", reason="", digest="")
    (goal,) = routines.SECTIONS["product"].tables(frame).goals
    assert (goal.figure, goal.bound, goal.reached) == (pytest.approx(75), 70, True)


# Tables and goals


@pytest.mark.parametrize(("labels", "equal"), [("aaa", 100), ("aab", 200 / 3)])
def test_workers_are_judged_by_the_labels_of_threads(labels, equal):
    frame = pd.DataFrame({"workers": [0, 1, 2], "labels_digest": list(labels), "seconds": 1.0, "seed": 0})
    frame = frame.assign(
        part="dask", protocol=LABEL_FREE, reason="", digest="x", status="ok", parameters="{}"
    )
    result = engine.dask_tables(frame)
    assert result.goals[0].figure == pytest.approx(equal)
    assert result.tables["engine-dask"]["of threads"].tolist() == [1, 1, 1]


def test_a_failed_run_does_not_spoil_the_table_of_peers(tmp_path):
    ari = {"k-means": 0.1, "UnsupervisedRLS": 0.2}
    runs = pd.DataFrame([Run("mnist-3v8", method, 0) for method in (*ari, "spectral, extended")])
    shared = {"error": 0.5, "balanced_error": 0.5, "seconds": 2.0, "n": 9, "d": 2}
    digits = Section(lambda options: runs, lambda run: shared | {"ari": ari[run.method]}, peers.tables)
    options = Options(tmp_path)
    with Journal("peers", options, "of today") as journal:
        result = run_study(SimpleNamespace(SECTIONS={"digits": digits}), options, journal)
    assert result.tables["peers"]["method"].tolist() == ["k-means", "UnsupervisedRLS"]
    assert [goal.reached for goal in result.goals] == [False, True]


# Other libraries


@pytest.fixture
def all_installed(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda module: module)


@pytest.mark.usefixtures("all_installed")
@pytest.mark.parametrize("grid", [peers.grid_of_sets, peers.grid_of_shapes])
def test_all_peers_that_are_installed_take_turns(grid, tmp_path):
    frame = grid(Options(tmp_path, seeds=2))
    identities = [Run(**row).identity for row in frame.to_dict("records")]
    assert len(set(identities)) == len(identities)
    asked = peers.ON_SETS if grid is peers.grid_of_sets else peers.ON_SHAPES
    assert set(frame["method"]) == set(asked)
    for _, turn in frame.groupby("dataset", sort=False):
        first = turn.loc[turn["seed"] == 0, "method"]
        assert first.tolist() == [method for method in asked if method in set(first)]


@pytest.mark.usefixtures("all_installed")
def test_a_peer_runs_no_more_often_than_it_can_differ_and_on_no_more_rows_than_it_can_take(tmp_path):
    sets, shapes = peers.grid_of_sets(Options(tmp_path)), peers.grid_of_shapes(Options(tmp_path))

    def seeds(frame, dataset, method):
        return frame.loc[(frame["dataset"] == dataset) & (frame["method"] == method), "seed"].tolist()

    assert seeds(sets, "optdigits", GENIE) == seeds(sets, "mnist", KMEANS) == [0]
    assert seeds(shapes, "two-rings", GENIE) == seeds(sets, "optdigits", CUT) == [0, 1, 2]
    assert seeds(sets, "mnist", CUT) == seeds(shapes, "two-rings", EVOC) == []


def test_a_peer_that_is_not_installed_is_left_out_with_a_line_that_says_how_to_install_it(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(peers, "find_spec", lambda module: None if module in ("umap", "evoc") else module)
    frame = peers.grid_of_sets(Options(tmp_path))
    missing = {"UMAP, HDBSCAN": "umap-learn", "UMAP, k-means": "umap-learn", EVOC: "evoc"}
    assert set(peers.ON_SETS) - set(frame["method"]) == set(missing)
    assert capsys.readouterr().err.splitlines() == [
        f"benchmarks: {method} is left out: it needs {package}; pip install 'mmcnb[peers]'."
        for method, package in missing.items()
    ]


def test_the_extra_installs_what_peers_need():
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {re.match(r"[\w-]+", one)[0] for one in extras["peers"]}
    assert {package for _, package in PACKAGES.values()} <= named


def made_up(rows):
    frame = pd.DataFrame(rows, columns=["dataset", "method", "ari", "seconds"])
    facts = {"n": 9, "d": 2, "peak_mib": 1.0, "status": "ok", "labelled": 1.0, "clusters": 2}
    return frame.assign(seed=0, balanced_error=0.1, **facts)


def test_the_default_is_judged_by_the_time_of_k_means_and_by_the_shapes_of_two_peers():
    rows = [("mnist", FRONT_DOOR, 0.9, 30.0), ("mnist", KMEANS, 0.4, 100.0)]
    (time,) = peers.tables_of_sets(made_up(rows)).goals
    assert (time.figure, time.bound, time.reached) == (pytest.approx(0.3), 0.25, False)
    rows = [("two-rings", FRONT_DOOR, 1.0, 1.0), ("two-rolls", FRONT_DOOR, 0.5, 1.0)]
    goals = peers.tables_of_shapes(made_up([*rows, ("two-rings", CUT, 0.7, 1.0)])).goals
    assert [(goal.figure, goal.bound, goal.reached) for goal in goals] == [(0.75, 0.7, True)]


def test_noise_is_a_cluster_of_its_own():
    y = np.array([0, 0, 1, 1, 1])
    found = peers.with_noise(y, np.array([0, 0, -1, -1, -1]))
    assert (found["ari"], found["error"], found["labelled"], found["clusters"]) == (1, 0, 0.4, 1)


def test_rows_are_dense_and_of_few_columns_where_a_peer_needs_it():
    seen = []
    X = random(80, AXES + 10, 0.3, "csr", np.float32, np.random.default_rng(0))
    clusterer = DenseClusterer(lambda rows: seen.append(rows) or np.zeros(len(rows)), AXES)
    assert clusterer.fit(X).labels_.shape == (80,)
    clusterer.fit(X[:, :5])
    assert [rows.shape for rows in seen] == [(80, AXES), (80, 5)]
    np.testing.assert_array_equal(seen[1], X[:, :5].toarray())


@pytest.mark.parametrize("method", [MIXTURE, DENSITY, *PACKAGES])
def test_every_library_labels_rows(method):
    pytest.importorskip(
        PACKAGES.get(method, ("sklearn", ""))[0], reason="it is installed by mmcnb[peers] alone"
    )
    data = blobs(120, 5)
    labels = estimator(method, 2, random_state=0).fit(data.X).labels_
    assert labels.shape == (120,)
    assert peers.with_noise(data.y, labels)["labelled"] > 0.5

"""Studies of the engine and of peers, the suite of single routines, and what they measure with."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.__main__ import run_study
from benchmarks.journal import Journal
from benchmarks.protocol import LABEL_FREE, SCAN_THREADS, Data, compile_seconds
from benchmarks.run import Options, Run
from benchmarks.studies import engine, peers, routines
from benchmarks.studies._tasks import TASKS, tasks_of
from benchmarks.tables import best
from mmcnb import UnsupervisedRLS
from mmcnb.synthetic import make_block


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
    found = routines.scan(Run("noise", "predict", 0, settings=settings, folder=str(tmp_path)))
    assert found["n"] == 300
    assert found["scans"] == pytest.approx(found["seconds"] / found["bare_scan_seconds"])
    assert found["bare_scan_threads"] in SCAN_THREADS
    product = routines.product(Run("noise", "predict", 0, settings=settings))
    assert product["of_bare_rate"] == pytest.approx(product["bare_product_seconds"] / product["seconds"])


def test_kernel_values_of_the_routine_are_those_of_scikit_learn(monkeypatch):
    from scipy.sparse import random
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


def test_a_failed_run_does_not_spoil_the_table_of_peers(tmp_path, monkeypatch):
    ari = {"k-means": 0.1, "UnsupervisedRLS": 0.2}
    runs = pd.DataFrame([Run("mnist-3v8", method, 0) for method in (*ari, "spectral, extended")])
    shared = {"error": 0.5, "balanced_error": 0.5, "seconds": 2.0, "n": 9, "d": 2}
    monkeypatch.setattr(peers, "grid", lambda options: runs)
    monkeypatch.setattr(peers, "compute", lambda run: shared | {"ari": ari[run.method]})
    options = Options(tmp_path)
    with Journal("peers", options, "of today") as journal:
        result = run_study(peers, options, journal)
    assert result.tables["peers"]["method"].tolist() == ["k-means", "UnsupervisedRLS"]
    assert [goal.reached for goal in result.goals] == [False, True]

"""The study of least squares clusters: its searches, its data, and how it chooses."""

import os

import numpy as np
import pandas as pd
import pytest

from benchmarks.protocol import LABEL_FREE, PAPER, Data
from benchmarks.published import RLS, figure
from benchmarks.run import Options, Run
from benchmarks.studies import rls
from benchmarks.studies._tasks import TASKS
from mmcnb.datasets import make_block


def wide(**columns):
    given = {"status": "ok", "n": 9, "d": 2, "seconds": 1.0, "peak_mib": 1.0, "parameters": "{}", "seed": 0}
    return pd.DataFrame(given | columns)


@pytest.mark.parametrize(
    "given", [{}, {"quick": True}, {"quick": True, "smoke": True, "rows": 200, "seeds": 1}]
)
@pytest.mark.parametrize("section", rls.SECTIONS)
def test_no_two_runs_are_alike_and_the_tables_have_both_protocols(section, given, tmp_path):
    runs = [Run(**row) for row in rls.SECTIONS[section].grid(Options(tmp_path, **given)).to_dict("records")]
    assert len({run.identity for run in runs}) == len(runs)
    protocols = {"tables": {LABEL_FREE, PAPER}, "steps": {PAPER}}
    assert {run.protocol for run in runs} == protocols.get(section, {LABEL_FREE})


@pytest.mark.parametrize("method", rls.SEARCHES)
def test_a_search_keeps_every_cluster_and_depends_on_the_seed_alone(method):
    X = make_block("blobs", 0, 40, 3, random_state=0)[0].astype(float)
    R = rls.smoother(X @ X.T + np.eye(40), 0.1)
    labels = rls.searched(R, 3, method, 1)[0]
    assert set(labels) == {0, 1, 2}
    np.testing.assert_array_equal(labels, rls.searched(R, 3, method, 1)[0])


def test_the_smoother_is_that_of_the_paper():
    random = np.random.default_rng(0).normal(size=(6, 6))
    K = random @ random.T
    R = rls.smoother(K, 0.5)
    np.testing.assert_allclose(R, K @ np.linalg.inv(K + 0.5 * np.eye(6)), atol=1e-10)
    np.testing.assert_array_equal(R, R.T)


def test_moons_are_found_at_a_point_of_the_grid_and_not_by_k_means():
    mixed, kmeans = (
        rls.compute(Run("moons", method, 0, point, PAPER, settings={"rows": 300}))
        for method, point in ((rls.MIXED, {"width": 0.2, "ridge": 2.0**-4}), ("k-means", {"n_init": 1}))
    )
    assert mixed["ari"] > 0.95 > 0.6 > kmeans["ari"]


def test_arcs_are_written_once_for_the_runs_of_a_store(tmp_path):
    found = [
        rls.compute_large(Run("arcs", method, 0, settings={"rows": 400}, folder=str(tmp_path)))
        for method in (rls.SAMPLE, rls.MINIBATCH)
    ]
    assert found[0]["digest"] == found[1]["digest"]
    assert all(one["n"] == 400 and one["scans"] > 0 and one["ari"] > 0.2 for one in found)


def test_the_default_is_fitted_to_the_arcs_in_a_process_that_is_watched(tmp_path):
    run = Run("arcs", rls.LEAST_SQUARES, 0, settings={"rows": 2000}, folder=str(tmp_path))
    found = rls.compute_large(run)
    assert (found["n"], found["d"]) == (2000, rls.FEATURES)
    assert 50 < found["peak_mib"] < rls.LIMIT
    assert 1 < found["reads"] <= rls.MOST_READS
    assert found["ari"] > 0.5


def test_the_tables_take_the_point_of_largest_mean_and_tell_the_largest_run():
    frame = wide(
        dataset="iris",
        protocol=PAPER,
        method="UMC-RLS",
        parameters=["a", "a", "b", "b"],
        ari=[1.0, 0.5, 0.875, 0.8125],
    )
    row = rls.tables(frame).tables["rls-tables"].iloc[0]
    assert (row["parameters"], row["runs"], row["largest ari"]) == ("b", 2, 0.875)
    assert row["ari"] == pytest.approx(0.84375)
    assert row["published ari"] == figure(RLS, "iris", "UMC-RLS", "ari")


def test_defaults_are_judged_by_ari_and_with_a_bandwidth_by_the_error():
    names = list(TASKS)
    frame = wide(dataset=[names[0], names[-1]], ari=0.9, balanced_error=0.03, objective=1.0, reads=4)
    goals = rls.tables_of_defaults(frame).goals
    assert [goal.reached for goal in goals] == [True, False]
    assert [goal.bound for goal in goals] == [TASKS[names[0]].least, 100 * TASKS[names[-1]].most]


def test_peers_run_where_the_paper_has_their_figures(tmp_path):
    runs = rls.grid(Options(tmp_path))
    runs = runs[runs["protocol"] == PAPER].groupby("dataset")["method"].unique()
    assert set(runs.index) == set(rls.SETS)
    for name in set(rls.SETS) - {"optdigits-tes"}:
        assert "GMM" in runs[name]
        assert ("CPMMC" in runs[name]) == np.isfinite(figure(RLS, name, "CPMMC", "ari"))


@pytest.mark.parametrize("k", [2, 3])
def test_mixtures_and_cpmmc_find_blobs(k, monkeypatch):
    data = Data("blobs", *make_block("blobs", 0, 90, 8, n_clusters=k, random_state=0))
    monkeypatch.setattr(rls, "load_set", lambda name, rows: data)
    monkeypatch.setitem(rls.SETS, "blobs", k)
    rls._distances.cache_clear()
    for method, point in (("GMM", {"axes": None}), ("CPMMC", {"width": 0.4, "ridge": 2.0**-1})):
        seeds = range(1 if method == "GMM" else 4)  # a random start may end elsewhere
        runs = [Run("blobs", method, seed, point, PAPER, settings={"rows": None}) for seed in seeds]
        assert max(rls.compute(run)["ari"] for run in runs) > 0.9
    rls._distances.cache_clear()


@pytest.mark.real_data
@pytest.mark.skipif("MMCNB_DATA_DIR" not in os.environ, reason="MMCNB_DATA_DIR does not name the real data")
@pytest.mark.parametrize(
    ("name", "rows", "shape"),
    [("coil", None, (1440, 1024)), ("coil 5-8", None, (288, 1024)), ("letter", 500, (500, 16))],
)
def test_a_set_has_the_classes_of_the_paper(name, rows, shape):
    data = rls.load_set(name, rows)
    assert (data.name, data.X.shape) == (name, shape)
    assert len(np.unique(data.y)) == rls.SETS[name]

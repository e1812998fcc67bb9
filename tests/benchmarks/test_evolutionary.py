"""The study of evolution: what each method is given, which run counts, and what is published."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.protocol import LABEL_FREE, MNIST_PAIRS, PAPER, Data
from benchmarks.published import EVO, figure
from benchmarks.run import Options, Run
from benchmarks.studies import evolutionary
from mmcnb.datasets import make_block

SCALES = [{}, {"quick": True}, {"quick": True, "smoke": True, "rows": 200, "seeds": 1}]


@pytest.fixture
def blobs(monkeypatch):
    X, y = make_block("blobs", 0, 60, 3, random_state=0)
    monkeypatch.setattr("benchmarks.run.load_once", lambda name, rows: Data("blobs", X, y))


def wide(**columns):
    given = {"status": "ok", "n": 9, "d": 2, "seconds": 1.0, "peak_mib": 1.0, "parameters": "{}", "seed": 0}
    return pd.DataFrame(given | {"mean_error": np.nan, "generations": np.nan} | columns)


@pytest.mark.parametrize("given", SCALES)
@pytest.mark.parametrize("section", evolutionary.SECTIONS)
def test_no_two_runs_are_alike_and_both_protocols_are_there(section, given, tmp_path):
    runs = [
        Run(**row)
        for row in evolutionary.SECTIONS[section].grid(Options(tmp_path, **given)).to_dict("records")
    ]
    assert len({run.identity for run in runs}) == len(runs)
    alone = section in ("growth", "restarts")
    assert {run.protocol for run in runs} == ({PAPER} if alone else {LABEL_FREE, PAPER})


def test_evolution_gets_the_rows_and_runs_that_the_paper_gives_it(tmp_path):
    def given(name, method):
        runs = evolutionary.grid(3 * ([name],), Options(tmp_path, seeds=2))
        runs = runs[(runs["method"] == method) & (runs["protocol"] == PAPER)]
        assert {tuple(point.values()) for point in runs["parameters"]} == {
            (width, ridge) for width in (1, 3, 5) for ridge in (2, 200, 1000)
        }
        assert set(runs["seed"]) == {0, 1}
        return tuple(runs["settings"].iloc[0].values())

    assert given(MNIST_PAIRS[0], "EvoMMC") == (1000, 3, 100)
    assert given(MNIST_PAIRS[0], "FastEvoMMC") == (None, 3, 100)
    assert given("ionosphere", "EvoMMC") == (None, 10, 10)


def test_peers_run_where_the_paper_has_their_figures(tmp_path):
    runs = evolutionary.grid(3 * (evolutionary.SETS,), Options(tmp_path))
    runs = runs[runs["protocol"] == PAPER].groupby("dataset")["method"].unique()
    for name, methods in runs.items():
        assert {"IterSVR", "CPMMC"} <= set(methods)
        for method in ("MMC", "GMMC"):
            assert (method in methods) == np.isfinite(figure(EVO, name, method, "error"))


@pytest.mark.parametrize("method", ["IterSVR", "CPMMC", "MMC", "GMMC"])
def test_peers_find_blobs_at_the_first_point_of_their_grid(method, blobs):
    point = evolutionary.PEER_GRIDS[method][0]
    run = Run("blobs", method, 0, point, PAPER, settings={"rows": None, "runs": 1})
    assert evolutionary.compute(run)["error"] == 0


def test_the_pairs_of_mnist_run_only_if_they_are_asked_for(tmp_path):
    usual = evolutionary.usual_sections(Options(tmp_path))
    assert set(evolutionary.SECTIONS) - set(usual) == {"mnist"}


@pytest.mark.parametrize("method", ["fitness in O(n²)", "SVM as fitness"])
def test_a_slow_fitness_prefers_the_blobs(method):
    X, R, _, alpha = evolutionary._matrices(40)
    y = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
    fitness = evolutionary.SLOW[method](X, R, alpha)
    y = max((y, np.where(X[:, 1] > np.median(X[:, 1]), 1.0, -1.0)), key=lambda one: one @ R @ one)
    worse = y.copy()
    worse[[np.argmax(y), np.argmin(y)]] *= -1
    assert fitness(y) < fitness(worse)


@pytest.mark.parametrize("method", ["k-means", "EvoMMC", "FastEvoMMC"])
def test_of_some_runs_the_one_of_least_error_counts(method, blobs):
    point = {} if method == "k-means" else {"width": 1.0, "ridge": 200.0}

    def computed(seed, count):
        settings = {"rows": None, "runs": count, "rows a landmark": 10}
        return evolutionary.compute(Run("blobs", method, seed, point, PAPER, settings=settings))

    errors = [computed(seed, 1)["error"] for seed in range(8)]
    for seed in (0, 1):  # their runs have other seeds
        found, alone = computed(seed, 4), errors[4 * seed : 4 * seed + 4]
        assert found["error"] == min(alone)
        assert found["mean_error"] == pytest.approx(np.mean(alone))
        assert (found["n"], found["d"]) == (60, 3)
        assert ("generations" in found) == (method != "k-means")


@pytest.mark.parametrize("method", ["EvoMMC", "FastEvoMMC", "mixed shaking"])
def test_methods_by_default_find_blobs(method, blobs):
    assert evolutionary.compute(Run("blobs", method, 0, settings={"rows": None}))["error"] == 0


def test_the_mean_over_the_pairs_is_published_for_all_of_them_alone():
    def mean(names):
        frame = wide(dataset=list(names), protocol=PAPER, method="EvoMMC", error=0.25)
        return evolutionary.tables_of_pairs(frame).tables["evolutionary-pairs"].iloc[0]

    every = mean(evolutionary.PAIRS)
    assert (every["dataset"], every["error"]) == ("optdigits-tes, 45 pairs", 0.25)
    assert every["published error"] == figure(EVO, "optdigits-tes, 45 pairs", "EvoMMC", "error")
    assert np.isnan(mean(evolutionary.PAIRS[:2])["published error"])
    frame = wide(dataset=list(evolutionary.MNIST_ALL), protocol=PAPER, method="k-means", error=0.25)
    table = evolutionary.tables_of_pairs(frame).tables["evolutionary-mnist"]
    assert table["published error"].tolist() == [0.1079]


def test_goals_are_the_published_errors_and_local_search_has_that_of_evolution():
    rows = wide(
        dataset="ionosphere",
        protocol=[PAPER, PAPER, LABEL_FREE, LABEL_FREE],
        method=["EvoMMC", "k-means", "mixed shaking", "EvoMMC"],
        error=0.18,
    )
    goals = evolutionary.published_goals(rows)
    assert [goal.bound for goal in goals] == [17.94, 17.94]
    assert not any(goal.reached for goal in goals)


def test_slopes_are_those_of_a_run_and_of_a_generation():
    n = np.array([100, 200, 400])
    frame = wide(n=n, method="EvoMMC", seconds=n**2.0, generation_seconds=n.astype(float))
    naive = wide(n=n, method="fitness in O(n²)", seconds=np.nan, generation_seconds=n**2.0)
    result = evolutionary.tables_of_growth(pd.concat([frame, naive]))
    slopes = result.tables["evolutionary-slopes"]
    assert slopes[["method", "of"]].to_numpy().tolist() == [
        ["EvoMMC", "seconds"],
        ["EvoMMC", "generation_seconds"],
        ["fitness in O(n²)", "generation_seconds"],
    ]
    np.testing.assert_allclose(slopes["slope"], [2, 1, 2])
    assert [goal.figure for goal in result.goals] == pytest.approx([1])


def test_restarts_take_the_best_point_and_every_number(tmp_path):
    frame = wide(
        dataset="ionosphere",
        protocol=PAPER,
        method="EvoMMC",
        parameters=['{"ridge": 2.0, "width": 1.0}', '{"ridge": 2.0, "width": 3.0}'],
        error=[0.25, 0.125],
    )
    runs = evolutionary.restarts(frame, Options(tmp_path, seeds=2))
    assert {point["width"] for point in runs["parameters"]} == {3.0}
    assert [point["restarts"] for point in runs["parameters"]] == 2 * list(evolutionary.RESTARTS)
    assert runs["seed"].tolist() == [0] * 6 + [1] * 6


def test_the_error_of_some_restarts_is_the_least_of_their_runs(blobs):
    point = {"width": 1.0, "ridge": 200.0}
    settings = {"rows": None, "runs": 1, "rows a landmark": 10}
    alone = [
        evolutionary.compute(Run("blobs", "FastEvoMMC", seed, point, PAPER, settings=settings))["error"]
        for seed in range(4, 8)
    ]
    evolutionary.repeated.cache_clear()
    shared = {"rows": None, "restarts": 4, "rows a landmark": 10}
    for most in (1, 2, 4):
        run = Run("blobs", "FastEvoMMC", 1, {"restarts": most} | point, PAPER, "restarts", shared)
        assert evolutionary.compute_restarts(run)["error"] == min(alone[:most])


def test_restarts_are_shown_as_means_over_the_repeats():
    frame = wide(
        dataset="ionosphere",
        part="restarts",
        method="EvoMMC",
        restarts=[1, 1, 2],
        error=[0.25, 0.75, 0.125],
    )
    table = evolutionary.tables_of_restarts(frame).tables["evolutionary-restarts"]
    assert table[["restarts", "error", "runs"]].to_numpy().tolist() == [[1, 0.5, 2], [2, 0.125, 1]]

"""The study of evolution: what each method is given, which run counts, and what is published."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.protocol import LABEL_FREE, MNIST_PAIRS, PAPER
from benchmarks.published import EVO, figure
from benchmarks.run import Options, Run
from benchmarks.studies import evolutionary

pytestmark = pytest.mark.slow


def wide(**columns):
    given = {
        "status": "ok",
        "n": 9,
        "d": 2,
        "seconds": 1.0,
        "peak_mib": 1.0,
        "parameters": "{}",
        "seed": 0,
    }
    return pd.DataFrame(given | {"mean_error": np.nan, "generations": np.nan} | columns)


@pytest.mark.parametrize(
    ("name", "method", "settings"),
    [
        (MNIST_PAIRS[0], "EvoMMC", (1000, 3, 100)),
        (MNIST_PAIRS[0], "FastEvoMMC", (None, 3, 100)),
        ("ionosphere", "EvoMMC", (None, 10, 10)),
    ],
)
def test_evolution_gets_the_rows_and_runs_that_the_paper_gives_it(
    name, method, settings, tmp_path
):
    runs = evolutionary.grid(3 * ([name],), Options(tmp_path, seeds=2))
    runs = runs[(runs["method"] == method) & (runs["protocol"] == PAPER)]
    points = {tuple(point.values()) for point in runs["parameters"]}
    assert points == {(width, ridge) for width in (1, 3, 5) for ridge in (2, 200, 1000)}
    assert tuple(runs["settings"].iloc[0].values()) == settings


@pytest.mark.parametrize("method", ["k-means", "FastEvoMMC"])
def test_of_some_runs_or_restarts_the_one_of_least_error_counts(method):
    point = {} if method == "k-means" else {"width": 1.0, "ridge": 200.0}

    def computed(seed, count):
        settings = {"rows": 60, "runs": count, "rows a landmark": 10}
        return evolutionary.compute(
            Run("rings", method, seed, point, PAPER, settings=settings)
        )

    # other repeats have other seeds
    alone = [computed(seed, 1)["error"] for seed in range(4, 8)]
    together = computed(1, 4)
    assert together["error"] == min(alone)
    assert together["mean_error"] == pytest.approx(np.mean(alone))
    assert (together["n"], together["d"]) == (60, 2)
    if point:
        for most in (1, 2, 4):
            settings = {"rows": 60, "restarts": 4, "rows a landmark": 10}
            run = Run(
                "rings",
                method,
                1,
                {"restarts": most} | point,
                PAPER,
                "restarts",
                settings,
            )
            assert evolutionary.compute_restarts(run)["error"] == min(alone[:most])


def test_the_mean_over_the_pairs_is_published_for_all_of_them_alone():
    for names, published in (
        (evolutionary.PAIRS, figure(EVO, "optdigits-tes, 45 pairs", "EvoMMC", "error")),
        (evolutionary.PAIRS[:2], np.nan),
    ):
        frame = wide(dataset=list(names), protocol=PAPER, method="EvoMMC", error=0.25)
        row = evolutionary.tables_of_pairs(frame).tables["evolutionary-pairs"].iloc[0]
        assert (row["dataset"], row["error"]) == (
            f"optdigits-tes, {len(names)} pairs",
            0.25,
        )
        np.testing.assert_equal(row["published error"], published)


def test_goals_are_the_published_errors_and_local_search_has_that_of_evolution():
    methods = ["EvoMMC", "k-means", "mixed shaking", "EvoMMC"]
    protocols = [PAPER, PAPER, LABEL_FREE, LABEL_FREE]
    goals = evolutionary.published_goals(
        wide(dataset="ionosphere", protocol=protocols, method=methods, error=0.18)
    )
    assert [(goal.bound, goal.reached) for goal in goals] == [(17.94, False)] * 2

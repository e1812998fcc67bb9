"""The study of choices: what a run records, and tables in which each set weighs the same."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.halves import CONFIRMATION, TUNING
from benchmarks.libraries import GENIE, LEIDEN, OTHER_GINI
from benchmarks.methods import FRONT_DOOR, KMEANS
from benchmarks.protocol import ERROR
from benchmarks.run import Run
from benchmarks.studies import _choice_tables as tables
from benchmarks.studies import choice
from benchmarks.studies._choice_problems import MANY, TWO, problems, rows_of
from mmcnb import partition_score

pytestmark = pytest.mark.slow
PROBLEMS = {one.name: one for one in problems()}


def test_all_problems_of_a_set_are_in_one_half():
    halves = {}
    for one in PROBLEMS.values():
        halves.setdefault(one.whole, set()).add(one.half)
    assert {len(of_set) for of_set in halves.values()} == {1}


def test_a_run_records_the_judge_of_its_labels_and_the_candidates_of_the_default():
    problem = PROBLEMS["two-moons"]
    settings = {"rows": 200, "problem": list(problem)}
    measures = choice.compute(Run(problem.name, FRONT_DOOR, 0, settings=settings))
    data = rows_of(problem, 200, 0)
    assert (measures["n"], measures["k"], measures["ari"]) == (200, 2, 1)
    assert measures["J"] == pytest.approx(partition_score(data.X, data.y).J)
    assert json.loads(measures["candidates"])[measures["candidate"]] == pytest.approx(
        measures["J"]
    )
    assert measures["trust"] in ("low", "medium", "high")


# -- tables ----------------------------------------------------------------------------

ROWS = [
    ("heart", FRONT_DOOR, 0.9, 0.05, "high"),
    ("optdigits 4v5", FRONT_DOOR, 0.2, 0.4, "high"),
    ("optdigits 5v8", FRONT_DOOR, 0.6, 0.1, "low"),
    ("iris", FRONT_DOOR, 0.7, np.nan, "medium"),
    ("optdigits 4v5", KMEANS, 0.3, 0.2, ""),
    ("iris", LEIDEN, 0.69, np.nan, ""),
    ("iris", GENIE, 0.5, np.nan, ""),
    ("iris", next(iter(OTHER_GINI)), 0.71, np.nan, ""),
]


@pytest.fixture(scope="module")
def result():
    frame = pd.DataFrame(ROWS, columns=["dataset", "method", "ari", ERROR, "trust"])
    judged = json.dumps({"margin": 3.0, "communities 10": 2.5})
    frame["k"] = [PROBLEMS[name].n_clusters for name in frame["dataset"]]
    frame = frame.assign(
        J=3.0, seconds=1.0, candidate="margin", candidates=judged, status="ok"
    )
    return tables.tables_of_problems(frame)


def test_each_set_weighs_the_same_and_the_default_is_compared_on_the_problems_of_a_peer(
    result,
):
    kinds = result.tables["choice"].set_index(["kind", "half", "method"])
    two = kinds.loc[TWO, TUNING, FRONT_DOOR]
    assert two["ari"] == pytest.approx((0.9 + (0.2 + 0.6) / 2) / 2)
    assert two[["problems", "above 35 %"]].tolist() == [3, 0.25]
    assert kinds.loc[(TWO, TUNING, KMEANS), "ahead"] == pytest.approx(-0.1)
    assert kinds.loc[(MANY, CONFIRMATION, tables.BEST_GENIE), "ari"] == 0.71
    assert kinds.loc[(tables.MORE, tables.BOTH, LEIDEN), "ari"] == 0.69


def test_losses_name_the_peer_that_is_ahead_and_candidates_how_far_their_J_is_below(
    result,
):
    lost = result.tables["choice-losses"]
    assert lost[["dataset", "peer's method"]].to_numpy().tolist() == [
        ["optdigits 4v5", KMEANS]
    ]
    goals = {goal.what: goal.reached for goal in result.goals}
    assert goals["k > 2, ahead of Leiden, in ARI"] is False
    candidates = result.tables["choice-candidates"].set_index(["kind", "candidate"])
    assert candidates.loc[(TWO, "margin")].tolist() == [3, 1, 0]
    assert candidates.loc[(TWO, "communities 10")].tolist() == [3, 0, 0.5]


def test_ranks_are_of_problems_with_peers_and_of_one_genie(result):
    ranks = result.tables["choice-ranks"].set_index("method")
    assert ranks[tables.ALL].to_dict() == {
        KMEANS: 1.0,
        FRONT_DOOR: 1.5,
        LEIDEN: 2.0,
        GENIE: 3.0,
    }
    assert ranks.loc[FRONT_DOOR, [TWO, MANY]].tolist() == [2.0, 1.0]


def test_trust_is_judged_by_good_and_bad_partitions_of_each_half(result):
    trust = result.tables["choice-trust"].set_index(["half", "trust"])
    assert trust.loc[
        (TUNING, "high"), ["precision", "recall"]
    ].tolist() == pytest.approx([1 / 1.5] * 2)
    assert trust.loc[(TUNING, "low"), ["precision", "recall"]].tolist() == [0, 0]
    assert trust.loc[(CONFIRMATION, "high"), "recall"] == 0

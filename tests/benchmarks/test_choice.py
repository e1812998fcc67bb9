"""The study of choices: its problems, what a run records, and tables in which each set weighs the same."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from benchmarks.before import BEFORE, VARIABLE, EarlierDefault
from benchmarks.halves import CONFIRMATION, TUNING
from benchmarks.libraries import EVOC, GENIE, LEIDEN, OTHER_GINI
from benchmarks.methods import FRONT_DOOR, GRAPH, HINGE, KMEANS, MARGIN, estimator
from benchmarks.protocol import ERROR, Data, NoData
from benchmarks.run import Options, Run
from benchmarks.studies import _choice_costs as costs
from benchmarks.studies import _choice_problems, choice
from benchmarks.studies import _choice_repeats as repeats
from benchmarks.studies import _choice_tables as tables
from benchmarks.studies._choice_problems import KINDS, MANY, SMOKE, TWO, Problem, problems, rows_of
from mmcnb import InputError, MaximumMarginClustering, open_samples, partition_score
from mmcnb.datasets import SHAPES, make_block
from mmcnb.samples.matrix import as_matrix

PROBLEMS = {one.name: one for one in problems()}


def runs_of(section, path, **given):
    return [Run(**row) for row in choice.SECTIONS[section].grid(Options(path, **given)).to_dict("records")]


@pytest.fixture
def all_installed(monkeypatch):
    monkeypatch.setattr("benchmarks.studies.peers.find_spec", lambda module: module)


@pytest.mark.usefixtures("all_installed")
def test_no_run_is_asked_for_twice_and_all_problems_and_methods_are(tmp_path):
    runs = runs_of("problems", tmp_path)
    assert len({run.identity for run in runs}) == len(runs)
    assert {run.dataset for run in runs} == set(PROBLEMS)
    assert {run.method for run in runs} == {FRONT_DOOR, GRAPH, MARGIN, HINGE, *choice.PEERS}
    assert {one.kind for one in PROBLEMS.values()} == set(KINDS)
    assert not [run for run in runs if run.method == EVOC and run.dataset in SHAPES]
    assert {PROBLEMS[run.dataset].n_clusters for run in runs if run.method == HINGE} == {2}
    assert max(PROBLEMS[run.dataset].n_clusters for run in runs if run.method == MARGIN) <= 12


@pytest.mark.usefixtures("all_installed")
def test_at_most_ten_pairs_of_a_set_run_and_three_of_them_with_peers(tmp_path):
    runs = runs_of("problems", tmp_path, quick=True)
    for source in _choice_problems.PAIRED:
        pairs = {run.dataset: set() for run in runs if run.dataset.startswith(f"{source} ")}
        for run in runs:
            if run.dataset in pairs:
                pairs[run.dataset].add(run.method)
        assert len(pairs) == _choice_problems.MOST_PAIRS
        assert sum(KMEANS in methods for methods in pairs.values()) == _choice_problems.PAIRS_WITH_PEERS


@pytest.mark.parametrize("scale", [{"quick": True}, {"quick": True, "smoke": True, "rows": 200}])
def test_quick_runs_take_the_half_for_tuning_and_one_seed(scale, tmp_path):
    runs = runs_of("problems", tmp_path, **scale)
    assert {PROBLEMS[run.dataset].half for run in runs} == {TUNING}
    assert {run.seed for run in runs} == {0}
    assert not scale.get("smoke") or {run.dataset for run in runs} == set(SMOKE)


def test_the_papers_sets_have_five_seeds_and_mnist_more(tmp_path):
    runs = runs_of("papers", tmp_path)
    seeds = {
        name: sum(run.dataset == name and run.method == FRONT_DOOR for run in runs) for name in choice.PAPERS
    }
    assert seeds == choice.PAPERS
    assert {run.dataset for run in runs if run.method == HINGE} == set(choice.PAPERS) - {"mnist"}


def test_rows_are_scaled_and_their_classes_counted_from_0(monkeypatch):
    X, y = make_block("blobs", 0, 300, 4, n_clusters=10, random_state=0)
    monkeypatch.setattr(_choice_problems, "load_once", lambda name, rows: Data(name, 5 * X + 3, y + 1))
    data = rows_of(Problem("letter 3v7", "letter", TWO, (3, 7)), 40, 0)
    assert (data.X.shape, set(data.y)) == ((40, 4), {0, 1})
    np.testing.assert_allclose(data.X.std(axis=0), 1, rtol=1e-4)
    np.testing.assert_allclose(_choice_problems.scaled("mnist", X), X)
    np.testing.assert_allclose(np.linalg.norm(_choice_problems.scaled("cnae9", X), axis=1), 1, rtol=1e-4)
    assert _choice_problems.scaled("mecs", np.hstack([X] * 20)).shape == (300, 50)


@pytest.mark.parametrize("method", [FRONT_DOOR, KMEANS])
def test_a_run_records_the_judge_of_its_labels_and_the_candidates_of_the_default(method):
    problem = PROBLEMS["two-moons"]
    run = Run(problem.name, method, 0, settings={"rows": 200, "problem": list(problem)})
    found, data = choice.compute(run), rows_of(problem, 200, 0)
    assert (found["n"], found["k"]) == (200, 2)
    if method == KMEANS:
        assert "candidates" not in found
        return
    assert found["ari"] == 1
    assert found["J"] == pytest.approx(partition_score(data.X, data.y).J)
    judged = json.loads(found["candidates"])
    assert judged[found["candidate"]] == pytest.approx(found["J"])
    assert found["trust"] in ("low", "medium", "high")


# The default of another checkout

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_default_of_a_folder_gives_its_labels_and_the_seconds_of_its_fit():
    X, _ = make_block("blobs", 0, 900, 3, n_clusters=3, random_state=0)
    found = EarlierDefault(3, 1, ROOT).fit(X)
    np.testing.assert_array_equal(found.labels_, MaximumMarginClustering(3, random_state=1).fit(X).labels_)
    assert 0 < found.seconds_ < 60


def test_a_folder_without_the_library_is_refused(tmp_path):
    with pytest.raises(InputError, match="before: "):
        EarlierDefault(2, 0, tmp_path).fit(np.eye(2))


def test_it_takes_part_on_each_problem_if_the_folder_is_a_checkout(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert BEFORE not in {run.method for run in runs_of("problems", tmp_path, quick=True)}
    assert f"{VARIABLE} names no folder" in capsys.readouterr().err
    monkeypatch.setattr(choice, "commit_before", lambda: "0123abc")
    runs = [run for run in runs_of("problems", tmp_path, quick=True) if run.method == BEFORE]
    assert {run.dataset for run in runs} == {one.name for one in PROBLEMS.values() if one.half == TUNING}
    assert {run.settings["commit"] for run in runs} == {"0123abc"}
    monkeypatch.undo()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(InputError, match="is no checkout"):
        choice.commit_before()


# Costs


def test_the_costs_have_no_run_twice_and_a_smoke_run_needs_no_large_set(tmp_path):
    for scale in ({}, {"quick": True}, {"quick": True, "smoke": True, "rows": 200}):
        runs = runs_of("costs", tmp_path, **scale)
        assert len({run.identity for run in runs}) == len(runs)
        assert {run.method for run in runs} == {costs.CANDIDATES, costs.TEXT, costs.MEMORY, costs.TIME}
    assert {run.dataset for run in runs} == {"blobs", "texts", "rings", "a9a"}


def test_texts_of_a_store_are_those_of_its_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "TEXT_BLOCK", 30)
    costs.write_texts(tmp_path / "texts.zarr", 50)
    rows = csr_array(as_matrix(open_samples(tmp_path / "texts.zarr").block(0, 50)))
    np.testing.assert_allclose(rows.multiply(rows).sum(axis=1), 1, rtol=1e-5)
    assert (rows[30:] != costs.unit_texts(20, 1).X).nnz == 0


def test_the_goals_of_the_costs_are_on_the_choice_the_memory_and_the_ratio():
    rows = [
        {
            "dataset": "mnist",
            "method": costs.CANDIDATES,
            **dict(zip(costs.STAGES, (9.0, 1.25, 0.25), strict=True)),
        },
        {"dataset": "texts", "method": costs.TEXT, "seconds": 2.0, "n": 1000},
        {"dataset": "rings", "method": costs.MEMORY, "peak_mib": 600.0},
        {"dataset": "a9a", "method": costs.TIME, "ratio": 4.0},
    ]
    told = ("n", "d", "seconds", "taken", "left_out", "peak_mib", "ari", "label_seconds", "kmeans_seconds")
    frame = pd.DataFrame([dict.fromkeys(told, 1.0) | row for row in rows]).assign(status="ok")
    result = costs.tables(frame)
    assert [goal.figure for goal in result.goals] == [1.25, 600, 4]
    assert [goal.reached for goal in result.goals] == [True, False, True]
    assert result.tables["choice-costs-texts"]["microseconds a row"].tolist() == [2000]
    assert len(result.tables) == 4


# Tables


def frame_of(rows):
    frame = pd.DataFrame(rows, columns=["dataset", "method", "ari", ERROR, "trust"])
    frame["k"] = [PROBLEMS[name].n_clusters for name in frame["dataset"]]
    judged = {"margin": 3.0, "communities 10": 2.5}
    return frame.assign(
        J=3.0, seconds=1.0, candidate="margin", candidates=json.dumps(judged), seed=0, status="ok"
    )


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


def test_each_set_weighs_the_same_and_the_default_is_compared_on_the_problems_of_a_peer():
    kinds = tables.tables_of_problems(frame_of(ROWS)).tables["choice"].set_index(["kind", "half", "method"])
    two = kinds.loc[TWO, TUNING, FRONT_DOOR]
    assert two["ari"] == pytest.approx((0.9 + (0.2 + 0.6) / 2) / 2)
    assert (two["problems"], two["above 35 %"]) == (3, 0.25)
    assert kinds.loc[(TWO, TUNING, KMEANS), "ahead"] == pytest.approx(-0.1)
    assert kinds.loc[(MANY, CONFIRMATION, tables.BEST_GENIE), "ari"] == 0.71
    pd.testing.assert_series_equal(
        kinds.loc[MANY, tables.BOTH, LEIDEN], kinds.loc[tables.MORE, tables.BOTH, LEIDEN], check_names=False
    )


def test_losses_name_the_peer_that_is_ahead():
    result = tables.tables_of_problems(frame_of(ROWS))
    lost = result.tables["choice-losses"]
    assert lost[["dataset", "peer's method"]].to_numpy().tolist() == [["optdigits 4v5", KMEANS]]
    reached = {goal.what: goal.reached for goal in result.goals}
    assert reached["k > 2, ahead of Leiden, in ARI"] is False
    without = [row for row in ROWS if row[1] == FRONT_DOOR]
    assert not {"choice-losses", "choice-ranks"} & set(tables.tables_of_problems(frame_of(without)).tables)


def test_ranks_are_of_problems_with_peers_and_of_one_genie():
    ranks = tables.tables_of_problems(frame_of(ROWS)).tables["choice-ranks"].set_index("method")
    assert ranks[tables.ALL].to_dict() == {KMEANS: 1.0, FRONT_DOOR: 1.5, LEIDEN: 2.0, GENIE: 3.0}
    assert ranks.loc[FRONT_DOOR, [TWO, MANY]].tolist() == [2.0, 1.0]
    tied = [("iris", FRONT_DOOR, 0.5, np.nan, "low"), ("iris", LEIDEN, 0.5, np.nan, "")]
    assert tables.tables_of_problems(frame_of(tied)).tables["choice-ranks"][MANY].tolist() == [1.5, 1.5]


def test_trust_is_judged_by_good_and_bad_partitions_of_each_half():
    trust = tables.tables_of_problems(frame_of(ROWS)).tables["choice-trust"].set_index(["half", "trust"])
    high, low = trust.loc[TUNING, "high"], trust.loc[TUNING, "low"]
    assert (high["precision"], high["recall"]) == (pytest.approx(1 / 1.5), pytest.approx(1 / 1.5))
    assert (low["precision"], low["recall"]) == (0, 0)
    assert trust.loc[(CONFIRMATION, "high"), "recall"] == 0


def test_candidates_are_counted_and_their_J_is_below_the_largest():
    told = tables.candidates(tables.with_facts(frame_of(ROWS))).set_index(["kind", "candidate"])
    assert told.loc[(TWO, "margin"), ["runs", "taken", "J below the largest"]].tolist() == [3, 1, 0]
    assert told.loc[(TWO, "communities 10"), "J below the largest"] == 0.5


@pytest.mark.usefixtures("all_installed")
def test_the_repeats_have_each_method_on_each_set_once(tmp_path):
    runs = runs_of("repeats", tmp_path, rows=300)
    assert len({run.identity for run in runs}) == len(runs)
    assert {run.method for run in runs} == set(tables.RANKED)
    assert {run.dataset for run in runs} == set(repeats.SETS)
    assert {repeats.PROBLEMS[name].kind for name in repeats.SETS} == set(KINDS)
    assert {run.settings["rows"] for run in runs} == {300}
    assert not [run for run in runs if run.method == EVOC and run.dataset in SHAPES]


@pytest.mark.slow
@pytest.mark.parametrize("method", [KMEANS, FRONT_DOOR])
def test_a_repeat_is_compared_with_the_fit_of_this_process(method):
    run = Run("four-moons", method, 3, settings={"rows": 400, "seeds": 3})
    found = repeats.compute(run)
    data = rows_of(PROBLEMS["four-moons"], 400, 0)
    given = {"n_init": 10} if method == KMEANS else {}
    here = [estimator(method, 4, random_state=seed, **given).fit(data.X).labels_ for seed in (3, 4, 5)]
    assert found["ari"] == pytest.approx(np.mean([adjusted_rand_score(data.y, one) for one in here]))
    assert found["ami"] == pytest.approx(np.mean([adjusted_mutual_info_score(data.y, one) for one in here]))
    pairs = [adjusted_rand_score(here[i], here[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert found["another seed"] == pytest.approx(np.mean(pairs))
    assert found["seeds"] == 3
    assert found["one thread"] == 1
    assert found["labelled"] == 1
    assert found["peak_mib"] > 50
    assert found["seconds"] > 0


def test_long_fits_have_three_seeds(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(repeats, "LONG", 0.0)
    repeats.main(["four-moons", KMEANS, "0", "5", "100", str(tmp_path / "labels.npy")])
    assert json.loads(capsys.readouterr().out)["seeds"] == 3
    assert np.load(tmp_path / "labels.npy").shape == (3, 100)


def test_sets_weigh_the_same_in_the_means_of_the_repeats():
    figures = dict.fromkeys(repeats.MEASURES, 0.5)
    rows = [("wdbc", 0, 0.0), ("wdbc", 1, 0.2), ("mnist", 0, 1.0)]
    frame = pd.DataFrame(
        [{"dataset": name, "method": KMEANS, "seed": seed, "status": "ok"} | figures | {"ari": ari}
         for name, seed, ari in rows]
    )  # fmt: skip
    found = repeats.tables(frame).tables
    assert found["choice-repeats"].loc[0, ["sets", "ari"]].tolist() == [2, pytest.approx(0.55)]
    assert set(found["choice-repeats-sets"]["dataset"]) == {"wdbc", "mnist"}


def test_a_set_that_is_not_here_ends_a_repeat_before_its_fits(monkeypatch):
    def nothing(*given):
        raise NoData("nothing is here.")

    monkeypatch.setattr(repeats, "rows_of", nothing)
    monkeypatch.setattr(repeats, "run_and_watch", lambda *given: pytest.fail("it was fitted"))
    with pytest.raises(NoData):
        repeats.compute(Run(repeats.CLOTHES.name, KMEANS, 0, settings={"rows": 30, "seeds": 2}))

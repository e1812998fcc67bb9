"""The study of choices: its problems, its signs, and the rules that are scored from its record."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from benchmarks.halves import CONFIRMATION, TUNING
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import Data, NoData
from benchmarks.run import Options, Run
from benchmarks.studies import (
    _choice_clusters,
    _choice_confidence,
    _choice_number_rules,
    _choice_rules,
    choice,
)
from benchmarks.studies._choice_problems import (
    DOMAINS,
    GEOMETRY,
    LABELLED,
    Problem,
    packed,
    problems,
    rows_of,
    unpacked,
)
from benchmarks.studies._choice_signs import density_order, signs_of
from mmcnb.estimators import choice as estimator_choice


def runs_of(path, **options):
    return [Run(**row) for row in choice.grid(Options(path, **options)).to_dict("records")]


# -- problems ----------------------------------------------------------------------------------


def test_there_are_problems_of_every_domain_in_both_halves():
    known = problems()
    assert len({one.name for one in known}) == len(known) >= 150
    for domain in DOMAINS:
        assert {one.half for one in known if one.domain == domain} == {TUNING, CONFIRMATION}
    assert max(one.rows for one in known) <= 5000
    assert {len(one.classes) for one in known} >= {2, 3, 5, 10}


def test_quick_runs_take_the_tuning_half_and_full_ones_take_it_first(tmp_path):
    halves = {one.name: one.half for one in problems()}
    assert {halves[run.dataset] for run in runs_of(tmp_path, quick=True)} == {TUNING}
    full = [halves[run.dataset] for run in runs_of(tmp_path)]
    assert full == sorted(full, key=lambda half: half != TUNING)
    assert len(full) == len(problems()) * (3 + len(choice.CANDIDATES))


@pytest.fixture
def three_classes(monkeypatch):
    X, y = make_blobs([300, 300, 300], random_state=0)
    data = Data("three", X, np.array([2, 5, 7])[y])
    monkeypatch.setattr("benchmarks.studies._choice_problems.load_once", lambda name, rows: data)
    rows_of.cache_clear()
    yield data
    rows_of.cache_clear()


@pytest.mark.parametrize(("uneven", "sizes"), [(False, [300, 300]), (True, [150, 300])])
def test_rows_are_of_the_classes_asked_for_and_in_no_order(three_classes, uneven, sizes):
    found = rows_of(Problem("two of three", "three", "pairs", 600, (0, 2), uneven))
    assert sorted(np.bincount(found.y)) == sizes
    assert not (np.diff(found.y) >= 0).all()
    known = {tuple(row): label for row, label in zip(three_classes.X, three_classes.y, strict=True)}
    assert [known[tuple(row)] for row in found.X] == [(2, 7)[label] for label in found.y]


def test_rows_are_as_many_as_asked_for_at_most(three_classes):
    assert len(rows_of(Problem("all", "three", "pairs", 100)).y) == 100
    assert len(rows_of(Problem("all", "three", "pairs", 100), 40).y) == 40


def test_a_class_that_is_not_there_is_no_data(three_classes):
    with pytest.raises(NoData, match="has 3 classes"):
        rows_of(Problem("none", "three", "pairs", 100, (0, 3)))


def test_a_shape_is_a_problem():
    (one,) = (one for one in problems() if one.name == "two-moons")
    assert one.domain == GEOMETRY
    assert rows_of(one, 50).X.shape == (50, 2)


# -- signs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs([100, 100, 100], random_state=1)
    return Data("blobs of signs", X, y)


BETTER = ("knn", "dunn", "valley", "logistic", "trees", "knn standard")
WORSE = ("cut", "loo rbf 0.5", "loo linear", "loo graph", "cut standard")


def test_signs_tell_classes_from_random_labels(blobs):
    true = signs_of(blobs, blobs.y, 0)
    random = signs_of(blobs, np.random.default_rng(0).permutation(blobs.y), 0)
    assert set(true) == set(random)
    assert all(np.isfinite(list(one.values())).all() for one in (true, random))
    for sign in BETTER:
        assert true[sign] > random[sign], sign
    for sign in WORSE:
        assert true[sign] < random[sign], sign
    assert true["balance"] == random["balance"] == pytest.approx(1)
    assert random["cut"] == pytest.approx(1, abs=0.2)
    assert true["smallest"] == pytest.approx(1)


def test_one_cluster_has_no_signs(blobs):
    assert signs_of(blobs, np.zeros(300, int), 0) == {}


def test_signs_do_not_depend_on_the_numbers_of_clusters(blobs):
    one, other = signs_of(blobs, blobs.y, 0), signs_of(blobs, 2 - blobs.y, 0)
    for sign in ("cut", "dunn", "valley", "loo linear", "balance"):
        assert one[sign] == pytest.approx(other[sign], rel=1e-9)


def test_rows_far_from_others_come_last_by_density():
    rng = np.random.default_rng(0)
    data = Data("with an outlier", np.r_[rng.normal(size=(60, 2)), [[50.0, 50.0]]], np.zeros(61, int))
    assert density_order(data)[-1] == 60


# -- runs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["k-means", "graph", "rbf, wide", "rbf, hinge"])
def test_a_run_records_labels_signs_and_stability(method, tmp_path):
    (run,) = (
        run
        for run in runs_of(tmp_path, quick=True, smoke=True, rows=120)
        if (run.dataset, run.method) == ("two-moons", method)
    )
    found = choice.compute(run)
    labels, classes = unpacked(found["labels"]), unpacked(found["classes"])
    assert len(labels) == len(classes) == found["n"] == 120
    assert found["k"] == 2
    if method != "k-means":
        assert found["cut"] >= 0
        assert -1 <= found["halves"] <= 1
        assert found["refits"] <= 1
        assert found["trimmed"] <= 1


@pytest.mark.parametrize("method", [FRONT_DOOR, LABELLED])
def test_a_run_of_the_estimator_records_its_evidence_and_its_trust(method, tmp_path):
    runs = runs_of(tmp_path, quick=True, smoke=True, rows=120)
    (run,) = (run for run in runs if (run.dataset, run.method) == ("two-moons", method))
    found = choice.compute(run)
    assert 0 <= found["relative_cut"] <= 0.15
    assert found["searches"] <= 1
    assert (found["taken"], found["trust"]) == ("graph", "high")
    assert found["gap"] > 1
    assert found["cut"] >= 0


def test_labels_survive_their_text():
    labels = np.random.default_rng(0).integers(0, 10, 3000)
    text = packed(labels)
    assert len(text) < 3000
    np.testing.assert_array_equal(unpacked(text), labels)


# -- rules -------------------------------------------------------------------------------------


def frame():
    labels = {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1]}
    rows = [
        ("two-moons", "a", 0.5, 0.2, 0.9),
        ("two-moons", "b", 0.8, 0.1, 0.7),
        ("two-moons", "c", 0.1, 0.3, 0.1),
        ("two-spirals", "a", 0.9, 0.0, 0.2),
        ("two-spirals", "b", 0.6, 0.4, 0.3),
        ("two-spirals", "k-means", 1.0, np.nan, np.nan),
    ]
    table = pd.DataFrame(rows, columns=["dataset", "method", "ari", "cut", "halves"])
    table["labels"] = [packed(np.array(labels.get(one, [0, 0, 0, 1]))) for one in table["method"]]
    return table.assign(status="ok", seconds=1.0, k=2, balanced_error=(1 - table["ari"]) / 2)


def test_the_best_is_that_of_the_candidates_alone():
    whole = _choice_rules.prepared(frame())
    assert whole.groupby("dataset")["best"].first().to_dict() == {"two-moons": 0.8, "two-spirals": 0.9}
    assert whole["half"].tolist() == [TUNING] * 3 + [CONFIRMATION] * 3


def test_agreement_is_with_all_other_candidates():
    whole = _choice_rules.prepared(frame()).set_index(["dataset", "method"])
    agreement = whole["agreement"]["two-moons"]
    assert agreement["a"] == agreement["b"] == pytest.approx((1 - 0.5) / 2)
    assert agreement["c"] == pytest.approx(-0.5)
    assert np.isnan(whole["agreement"]["two-spirals", "k-means"])


@pytest.mark.parametrize(
    ("rule", "picked"),
    [
        (_choice_rules.always("b"), ["b", "b"]),
        (_choice_rules.smallest("cut"), ["b", "a"]),
        (_choice_rules.smallest("cut", ("a", "c")), ["a", "a"]),
        (_choice_rules.largest("halves"), ["a", "b"]),
        (_choice_rules.largest("agreement"), ["a", "a"]),
    ],
)
def test_a_rule_picks_by_its_sign(rule, picked):
    whole = _choice_rules.prepared(frame())
    found = _choice_rules.loss_of("rule", _choice_rules.each(rule, whole), whole)
    assert found["picked"].tolist() == picked
    ari = frame().set_index(["dataset", "method"])["ari"]
    expected = [ari[name, one] for name, one in zip(("two-moons", "two-spirals"), picked, strict=True)]
    assert found["ari"].tolist() == expected
    assert found["loss"].tolist() == pytest.approx([0.8 - expected[0], 0.9 - expected[1]])


@pytest.mark.parametrize(
    ("cut", "searches", "k", "picked"),
    [
        (0.1, 0.5, 2, "graph, hinge"),
        (0.1, 0.3, 2, "rbf"),
        (0.005, 0.1, 3, "graph"),
        (0.2, 1, 3, "rbf"),
    ],
)
def test_the_bound_of_the_cut_is_the_rule_of_the_estimator(cut, searches, k, picked):
    part = pd.DataFrame({"relative_cut": [cut], "searches": [searches], "k": [k]})
    assert _choice_rules.within(0.15)(part) == picked
    bounds = _choice_rules.LEAST_AGREEMENT, _choice_rules.NO_CUT
    assert bounds == (estimator_choice.LEAST_AGREEMENT, estimator_choice.NO_CUT)


def test_the_summary_has_each_half_each_domain_and_all():
    whole = _choice_rules.prepared(frame())
    picks = _choice_rules.each(_choice_rules.always("b"), whole)
    table = _choice_rules.summary(_choice_rules.loss_of("rule", picks, whole)).set_index(["half", "domain"])
    assert table.loc[(CONFIRMATION, "all"), "loss"] == pytest.approx(0.3)
    assert table.loc[(CONFIRMATION, "all"), "failures"] == 1
    assert table.loc[(TUNING, "shapes"), "loss"] == 0
    assert set(table.index.get_level_values("domain")) == {"all", "shapes"}


def many(seed=0):
    """Problems on which the candidate of the larger sign is the better one."""
    rng = np.random.default_rng(seed)
    names = [one.name for one in problems() if one.domain in ("pairs", GEOMETRY)]
    rows = [(name, method, sign) for name in names for method, sign in zip("abc", rng.random(3), strict=True)]
    table = pd.DataFrame(rows, columns=["dataset", "method", "sign"])
    table["labels"] = packed(np.array([0, 1]))
    return table.assign(status="ok", seconds=1.0, k=2, ari=table["sign"], balanced_error=0.1)


def voters():
    table = frame().assign(classes=packed(np.array([0, 0, 1, 1])), error=0.1)
    return _choice_rules.prepared(table)


def test_peers_are_scored_beside_the_rules():
    whole = _choice_rules.prepared(frame())
    losses = _choice_rules.loss_of("k-means", _choice_rules.RULES["k-means"](whole), whole)
    assert losses["ari"].tolist() == [1.0]
    assert losses["loss"].tolist() == [pytest.approx(0.9 - 1.0)]


def test_a_vote_goes_where_most_of_the_weight_is():
    one, other = np.array([0, 0, 1, 1]), np.array([1, 0, 0, 1])
    for weights, expected in (([2.0, 1.0], one), ([1.0, 2.0], other)):
        np.testing.assert_array_equal(_choice_rules.vote([one, other], np.array(weights)), expected)
    found = _choice_rules.vote([1 - one, one, other], np.array([1.0, 1.2, 1.1]))
    np.testing.assert_array_equal(found, one)


def test_votes_are_scored_as_rules_are():
    losses = _choice_rules.loss_of_votes("vote", lambda part: part["cut"].nsmallest(2).rdiv(1), voters())
    assert losses["ari"].tolist() == [1.0, pytest.approx(losses["ari"].iloc[1])]
    assert losses["loss"].iloc[0] == pytest.approx(0.8 - 1.0)
    assert set(_choice_rules.summary(losses)["rule"]) == {"vote"}


@pytest.mark.parametrize(
    ("cut", "relative_cut", "k", "picked"),
    [
        ({"graph": 0.1, "graph, equal": 0.105}, 0.1, 3, "graph, equal"),
        ({"graph": 0.1, "graph, equal": 0.12}, 0.1, 3, "graph"),
        ({"graph": 0.1, "graph, equal": 0.1}, 0.3, 3, "rbf"),
    ],
)
def test_equal_sizes_are_taken_where_they_cut_hardly_more(cut, relative_cut, k, picked):
    part = pd.DataFrame({"cut": cut, "relative_cut": relative_cut, "searches": 1.0, "k": k})
    assert _choice_rules.within_and(part) == picked
    assert _choice_rules.cut_off(part) == ("rbf" if picked == "rbf" else "graph, cut-off")


def test_the_hardest_problems_of_each_half_come_first():
    whole = _choice_rules.prepared(many())
    chosen = whole[whole["method"] == "a"].assign(method=FRONT_DOOR)
    chosen["trust"] = np.where(chosen["best"] < 0.6, "low", "high")
    table = _choice_rules.hardest(pd.concat([whole, chosen]))
    assert (table["trust"] == np.where(table["best"] < 0.6, "low", "high")).all()
    assert table["half"].value_counts().to_dict() == dict.fromkeys(
        (TUNING, CONFIRMATION), _choice_rules.HARDEST
    )
    for _, part in table.groupby("half"):
        assert part["best"].is_monotonic_increasing


def test_a_learned_rule_finds_the_sign_that_tells():
    whole = _choice_rules.prepared(many())
    picks = _choice_rules.learned(("sign",), ("a", "b", "c"), whole)
    assert _choice_rules.loss_of("rule", picks, whole)["loss"].mean() < 0.02


def test_a_learned_rule_does_not_see_the_confirmation_half():
    whole = _choice_rules.prepared(many())
    confirms = whole["half"] == CONFIRMATION
    turned = whole.assign(ari=whole["ari"].where(~confirms, 1 - whole["ari"]))
    assert _choice_rules.learned(("sign",), ("a", "b", "c"), whole) == _choice_rules.learned(
        ("sign",), ("a", "b", "c"), turned
    )


# -- failures ----------------------------------------------------------------------------------


def trusted():
    """A failure that is told of, one that is not, and fits that are fine, one of them doubted."""
    rows = [
        ("two-moons", 0.5, 0.3, "low"),
        ("two-rings", 0.3, 0.2, "high"),
        ("four-moons", 0.04, 0.0, "high"),
        ("three-bars", 0.1, 0.08, "low"),
        ("three-rings", 0.0, 0.0, "medium"),
    ]
    parts = []
    for name, error, best, level in rows:
        found = {"dataset": name, "k": 2, "half": TUNING, "balanced_error": error, "error": error}
        found |= {"trust": level, "ari": 1 - error} | dict.fromkeys(_choice_rules.FLAG_SIGNS, -error)
        parts.append(found | {"method": FRONT_DOOR})
        parts.append(found | {"method": "graph", "balanced_error": best})
        parts.append(found | {"method": LABELLED, "balanced_error": best, "ari": 1 - best})
    return pd.DataFrame(parts)


def test_failures_are_far_from_the_best_candidate_or_from_the_classes():
    found = _choice_rules.failures(trusted()).set_index("dataset")["failed"]
    assert found[found].index.tolist() == ["two-moons", "two-rings"]


def test_the_table_of_trust_counts_failures_at_each_level():
    (row,) = _choice_rules.by_trust(trusted()).to_dict("records")
    assert (row["problems"], row["failures"]) == (5, 2)
    assert [row[level] for level in ("low", "medium", "high")] == [2, 1, 2]
    assert [row[f"failed at {level}"] for level in ("low", "medium", "high")] == [1, 0, 1]
    assert (row["recall"], row["precision"]) == (0.5, 0.5)


def test_a_sign_that_falls_with_the_error_tells_all_failures():
    table = _choice_rules.flags(trusted()).set_index("sign")["area"]
    assert table["gap"] == 1
    assert table["cut"] == 0


def test_failures_that_a_few_labels_mend_are_counted():
    (row,) = _choice_rules.mended(trusted()).to_dict("records")
    assert (row["problems"], row["failures"], row["mended"]) == (5, 2, 1.0)
    assert row["ari with labels"] > row["ari"]


# -- confidence --------------------------------------------------------------------------------


def test_a_run_compares_confidence_with_what_new_fits_kept(tmp_path):
    grid = choice.SECTIONS["confidence"].grid(Options(tmp_path, quick=True, smoke=True, rows=250))
    (run,) = (Run(**row) for row in grid.to_dict("records") if row["dataset"] == "two-moons")
    found = _choice_confidence.compute(run)
    rows, said, kept = (sum(found[f"{name} {i}"] for i in range(10)) for name in ("rows", "said", "kept"))
    assert rows == 62  # one of four parts
    assert 0 <= kept <= 62
    assert 0 < said <= 62


def test_the_calibration_error_is_zero_where_rows_are_kept_as_said():
    table = {"dataset": ["two-moons", "two-rings"], "status": "ok"}
    for i in range(10):
        table |= {f"rows {i}": [10.0, 0.0], f"said {i}": [float(i), 0.0], f"kept {i}": [float(i), 0.0]}
    table |= {"rows 9": [10.0, 40.0], "said 9": [9.0, 40.0], "kept 9": [9.0, 30.0]}
    rows = _choice_confidence.tables(pd.DataFrame(table)).tables["choice-confidence"]
    whole = rows[rows["domain"] == "all"].set_index("half").loc[TUNING]
    assert whole["problems"] == 2
    assert whole["calibration error"] == pytest.approx(0.125)
    assert whole["mean error of a problem"] == pytest.approx(0.125)


# -- the number of clusters --------------------------------------------------------------------


def test_cases_have_two_to_ten_classes_in_both_halves():
    cases = _choice_clusters.cases()
    assert len({one.name for one in cases}) == len(cases) >= 60
    assert {one.half for one in cases} == {TUNING, CONFIRMATION}
    assert {2, 3, 4, 5, 6, 8, 10} <= {len(one.classes) for one in cases}


@pytest.mark.parametrize("method", [FRONT_DOOR, _choice_clusters.GRAPH])
def test_a_run_records_the_number_or_its_figures(method, tmp_path):
    grid = choice.SECTIONS["clusters"].grid(Options(tmp_path, quick=True, smoke=True, rows=120))
    runs = [Run(**row) for row in grid.to_dict("records")]
    run = [run for run in runs if (run.dataset, run.method) == ("two-moons", method)][-1]
    found = _choice_clusters.compute(run)
    assert found["classes"] == 2
    if method == FRONT_DOOR:
        numbers = json.loads(found["numbers"])
        assert found["taken"] == max(numbers, key=lambda one: one["score"])["n_clusters"]
    else:
        assert 0 <= found["objective"] <= 4
        assert all(np.isfinite(found[sign]) for sign in ("smallest", "gap", "eigenvalue"))


@pytest.mark.parametrize(
    ("rule", "number"),
    [
        (FRONT_DOOR, 4),
        ("elbow of J", 3),
        ("eigengap", 5),
        ("agreement of searches", 2),
        ("weakest valley", 2),
        ("last deep valley", 4),
    ],
)
def test_rules_for_the_number_of_clusters(rule, number):
    signs = pd.DataFrame({"objective": [1.0, 2.0, 2.1, 2.2], "gap": [0.1, 0.3, 0.2, 0.7]})
    signs["agreement"], signs["weakest_valley"] = [1.0, 0.9, 0.96, 0.5], [1.0, 0.1, 0.6, 0.2]
    signs["score"] = [0.1, 0.2, 0.9, 0.3]
    assert _choice_number_rules.NUMBER_RULES[rule](signs.set_axis(range(2, 6))) == number


def test_the_last_deep_valley_is_the_best_where_none_is_deep():
    signs = pd.DataFrame({"weakest_valley": [-0.5, -0.2, -0.9]}).set_axis(range(2, 5))
    assert _choice_number_rules.NUMBER_RULES["last deep valley"](signs) == 3


def test_tables_tell_how_often_the_number_is_found():
    names = [one.name for one in _choice_clusters.cases() if one.domain == GEOMETRY]
    rng, rows = np.random.default_rng(0), []
    for name in names:
        classes, numbers = int(rng.integers(2, 7)), []
        for k in range(2, 9):
            figures = {"objective": min(k, classes) - 1.0, "smallest": 1.0, "gap": 0.0, "eigenvalue": 1.0}
            rows.append({"dataset": name, "method": "graph", "n_clusters": k, "classes": classes} | figures)
            signs = {"agreement": 0.5, "weakest_valley": 0.5, "relative_cut": 0.1, "score": k == classes}
            numbers.append({"n_clusters": k} | signs)
        rows.append({"dataset": name, "method": FRONT_DOOR, "numbers": json.dumps(numbers)})
    frame = pd.DataFrame(rows).assign(status="ok")
    table = _choice_number_rules.tables_of_numbers(frame).tables["choice-clusters"]
    found = table[table["domain"] == "all"].set_index(["half", "rule"])
    for half in (TUNING, CONFIRMATION):
        assert found.loc[(half, "elbow of J"), "exact"] == 1
        assert found.loc[(half, FRONT_DOOR), "exact"] == 1
        assert found.loc[(half, "learned"), "exact"] > 0.8
        assert found.loc[(half, "eigengap"), "exact"] < 0.8

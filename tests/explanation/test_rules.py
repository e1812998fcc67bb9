"""Rules that explain clusters: planted conjunctions are found, in words that apply to the table as it is."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from benchmarks.studies._explain_rules import KINDS, planted_rules
from mmcnb.samples import BLOCK_ROWS
from tests.explanation.conftest import explained


def met(table, conditions):
    """Which rows of a table of numbers and texts meet all conditions, by pandas."""
    is_met = pd.Series(True, table.index)
    for name, operator, value in conditions:
        column = table[name]
        if operator == "is":
            is_met &= column.isna()
        else:
            compare = {">": column.gt, "<=": column.le, "=": column.eq}[operator]
            is_met &= compare(value)
    return is_met.to_numpy()


def assert_counted(rules, table, y):
    """The figures of rules are those of their conditions on the table."""
    for rule in rules.itertuples():
        matches = met(table, rule.conditions)
        inside = (matches & (y == rule.cluster)).sum()
        assert rule.matching == matches.sum()
        assert rule.coverage == inside / (y == rule.cluster).sum()
        assert rule.precision == inside / matches.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_conjunctions_are_found_where_neither_column_tells_alone(kind):
    table = planted_rules(kind, 2, 2000)
    rules = explained(table.X, table.y).rules.set_index("cluster", drop=False)
    for cluster, match in enumerate(table.matches):
        rule = rules.loc[cluster]
        inside = (match & (table.y == cluster)).sum()
        assert {name for name, _, _ in rule["conditions"]} == table.columns
        assert rule["coverage"] == pytest.approx(
            inside / (table.y == cluster).sum(), abs=0.05
        )
        assert rule["precision"] == pytest.approx(inside / match.sum(), abs=0.05)
    assert_counted(rules[rules["rule"] != ""], table.X, table.y)


def test_half_of_a_cluster_is_found_where_each_column_alone_tells_nothing():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (2000, 5)), columns=list("abcde"))
    y = ((X["a"] > 0) == (X["d"] > 0)).to_numpy().astype(int)
    rule = explained(X, y).rules.set_index("cluster").loc[1]
    assert {name for name, _, _ in rule["conditions"]} == {"a", "d"}
    assert rule["precision"] > 0.95
    assert 0.4 < rule["coverage"] < 0.6


@pytest.mark.parametrize("n_noise", [0, 300])
def test_rules_are_searched_on_a_sample_and_counted_on_all_rows(n_noise):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(24_000, 4)), columns=list("abcd"))
    y = ((X["a"] > 0.5) & (X["b"] <= 0.25)).to_numpy().astype(int)
    y[rng.permutation(len(y))[:n_noise]] = -1
    rules = explained(X, y).rules
    assert rules["cluster"].tolist() == [0, 1]
    rule = rules.iloc[1]
    assert {name for name, _, _ in rule["conditions"]} == {"a", "b"}
    assert_counted(rules[rules["rule"] != ""], X, y)


def test_a_rare_cluster_counts_with_its_weight():
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.uniform(size=30_000), "b": rng.uniform(size=30_000)})
    y = ((X["a"] > 0.98) & (X["b"] > 0.5)).to_numpy().astype(int)
    rule = explained(X, y).rules.iloc[1]
    assert rule["coverage"] > 0.9
    assert rule["precision"] > 0.9


def test_numbers_of_a_matrix_have_rules_dense_or_sparse():
    rng = np.random.default_rng(3)
    X = rng.poisson(0.4, (BLOCK_ROWS + 100, 30)).astype(float)
    y = ((X[:, 3] > 0) & (X[:, 8] > 0)).astype(int)
    dense = explained(X, y).rules
    assert dense["rule"][1] in {
        "column 3 > 0 and column 8 > 0",
        "column 8 > 0 and column 3 > 0",
    }
    assert dense.loc[1, ["coverage", "precision"]].tolist() == [1, 1]
    pd.testing.assert_frame_equal(dense, explained(sp.csr_array(X), y).rules)


def kinds_of_columns(n=1200):
    """A table with columns of each kind."""
    rng = np.random.default_rng(4)
    minutes = rng.integers(0, 24 * 60, n)
    days = pd.to_timedelta(rng.integers(0, 1500, n), "D")
    table = pd.DataFrame(
        {
            "payment": rng.choice(["invoice", "card", "cash"], n),
            "active": rng.random(n) < 0.5,
            "age": rng.normal(40, 9, n).round(),
            "joined": pd.Timestamp("2020-01-01") + days,
            "call": pd.to_timedelta(rng.integers(0, 7200, n), "s"),
            "start": [f"{minute // 60:02d}:{minute % 60:02d}" for minute in minutes],
            "distance": [f"{value} km" for value in rng.integers(1, 90, n)],
            "answer": rng.choice(["never", "rarely", "sometimes", "often"], n),
            "grade": rng.integers(0, 2, n),
        }
    )
    table.loc[rng.random(n) < 0.3, "age"] = None
    return table, minutes


@pytest.mark.parametrize(
    ("of_rows", "rule"),
    [
        (lambda t, _: t["payment"] == "card", "payment = card"),
        (lambda t, _: t["active"], "active = true"),
        (lambda t, _: ~t["active"], "active = false"),
        (lambda t, _: t["grade"] == 1, "grade = 1"),
        (lambda t, _: t["age"].isna(), "age is missing"),
        (lambda t, _: t["age"].between(31, 45), "30 < age <= 45"),
        (lambda t, _: t["joined"] > "2023-01-01", "joined > 2023-01-01"),
        (lambda t, _: t["call"] > pd.Timedelta("1h"), "call > 1 h"),
        (lambda t, _: t["call"] <= pd.Timedelta("75min"), "call <= 1 h 15 min"),
        (lambda _, minutes: minutes <= 12 * 60, "start <= 12:00"),
        (
            lambda _, minutes: (minutes > 22 * 60) | (minutes <= 6 * 60),
            "start > 22:00 or <= 06:00",
        ),
        (
            lambda t, _: t["distance"].str.split().str[0].astype(int) > 60,
            "distance > 60 km",
        ),
        (
            lambda t, _: t["answer"].isin(["sometimes", "often"]),
            "answer = sometimes or often",
        ),
    ],
)
def test_conditions_are_in_the_words_and_units_of_the_table(of_rows, rule):
    table, minutes = kinds_of_columns()
    y = np.asarray(of_rows(table, minutes)).astype(int)
    explanation = explained(table, y)
    found = explanation.rules.set_index("cluster").loc[1]
    assert found["rule"] == rule
    assert found["coverage"] > 0.97
    assert found["precision"] > 0.97
    json.dumps(explanation.to_dict())


def test_rules_of_a_file_and_of_its_store_are_those_of_the_frame(tmp_path):
    table, _ = kinds_of_columns()
    table = table.drop(columns=["call", "joined"])
    y = ((table["payment"] == "card") & table["active"]).to_numpy().astype(int)
    expected = explained(table, y).rules
    table.to_csv(tmp_path / "t.csv", index=False)
    pd.testing.assert_frame_equal(
        expected, explained(table, y, tmp_path / "t.csv").rules
    )
    assert "payment = card" in expected["rule"][1]
    assert "active = true" in expected["rule"][1]


def test_random_labels_and_one_cluster_have_no_rule():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1000, 6))
    rules = explained(X, rng.integers(0, 2, 1000)).rules
    assert rules["rule"].tolist() == ["", ""]
    assert rules["sentence"][0] == "Cluster 0: no rule of at most 3 conditions."
    assert rules["matching"].tolist() == [0, 0]
    assert explained(X, np.zeros(1000, int)).rules.empty

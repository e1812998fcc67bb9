"""The tree over the clusters: planted trees are found, and its leaves count all rows."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mmcnb
from tests.explanation.conftest import explained


def met(table, conditions):
    """Which rows of a table meet all conditions of a leaf, by pandas."""
    is_met = pd.Series(True, table.index)
    for name, operator, value in conditions:
        column = table[name]
        if value == "missing":
            is_met &= column.isna() == (operator == "is")
            continue
        operator, _, gaps = operator.partition(" or ")
        compare = {">": column.gt, "<=": column.le, "=": column.eq, "!=": column.ne}
        is_gap = column.isna()
        is_met &= np.where(is_gap, bool(gaps), compare[operator](value))
    return is_met.to_numpy()


def assert_counted(tree, table, y):
    """The leaves share out all rows, and their figures are those of their paths."""
    known = y != -1
    n_named = 0
    covered = np.zeros(len(table), int)
    for leaf in tree.leaves.itertuples():
        matches = met(table, leaf.conditions)
        covered += matches
        of_leaf = y[matches & known]
        assert leaf.rows == matches.sum()
        assert leaf.share == leaf.rows / len(table)
        n_inside = (of_leaf == leaf.cluster).sum()
        assert n_inside == np.unique(of_leaf, return_counts=True)[1].max()
        assert leaf.precision == n_inside / leaf.rows
        n_named += n_inside
    assert (covered == 1).all()
    assert tree.leaves["rows"].sum() == len(table)
    assert tree.accuracy == n_named / known.sum()


def planted(n, n_noise=0, seed=0):
    """A table, and labels by a tree on a number with gaps and a text."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "orders": rng.integers(1, 60, n).astype(float),
            "payment": rng.choice(["invoice", "card", "cash"], n),
            "age": rng.normal(40, 9, n).round(1),
            "spent": rng.normal(100, 20, n),
        }
    )
    is_many = table["orders"] > 30
    y = np.where(is_many, np.where(table["payment"] == "invoice", 1, 0), 2)
    table.loc[is_many & (rng.random(n) < 0.1), "orders"] = None
    y[rng.permutation(n)[:n_noise]] = -1
    return table, y


@pytest.mark.parametrize(("n", "n_noise"), [(3000, 0), (24_000, 500)])
def test_a_planted_tree_is_found_and_counted_on_all_rows(n, n_noise):
    table, y = planted(n, n_noise)
    tree = explained(table, y).tree
    assert_counted(tree, table, y)
    assert set(tree.leaves["cluster"]) == {0, 1, 2}
    assert tree.accuracy > 0.94
    assert "orders > 30 or is missing:\n  payment = invoice → cluster 1 (" in str(tree)
    assert "\n  payment is not invoice → cluster 0 (" in str(tree)
    line = r"^orders <= 30 → cluster 2 \(\d+ % of [\d,]+ rows\)$"
    assert re.search(line, str(tree), re.MULTILINE)
    assert str(tree).endswith(" % of the rows.")


def test_at_most_four_levels_and_a_few_leaves_without_splits_that_say_little():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(size=(4000, 3)), columns=list("abc"))
    y = (X["a"] * 20).astype(int).to_numpy()
    tree = explained(X, y).tree
    assert_counted(tree, X, y)
    assert max(map(len, tree.leaves["conditions"])) <= 4
    y = (X["a"] > 0.5).to_numpy().astype(int)
    y[rng.permutation(4000)[:400]] ^= 1
    tree = explained(X, y).tree
    assert tree.leaves["path"].tolist() == ["a <= 0.5", "a > 0.5"]
    assert_counted(tree, X, y)


def test_gaps_alone_can_tell_clusters_apart():
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.normal(size=2000), "b": rng.normal(size=2000)})
    y = rng.integers(0, 2, 2000)
    X.loc[y == 1, "b"] = None
    X.loc[np.flatnonzero(y == 1)[:5], "b"] = 0.0
    tree = explained(X, y).tree
    assert tree.leaves["path"].tolist() == ["b is not missing", "b is missing"]
    assert tree.leaves["conditions"].tolist() == [
        [("b", "is not", "missing")],
        [("b", "is", "missing")],
    ]
    assert_counted(tree, X, y)


def test_conditions_are_in_the_words_of_the_table():
    rng = np.random.default_rng(3)
    n = 1200
    days = pd.to_timedelta(rng.integers(0, 1500, n), "D")
    table = pd.DataFrame(
        {
            "active": rng.random(n) < 0.5,
            "joined": pd.Timestamp("2020-01-01") + days,
            "distance": [f"{value} km" for value in rng.integers(1, 90, n)],
            "answer": rng.choice(["never", "rarely", "sometimes", "often"], n),
        }
    )
    kilometres = table["distance"].str.split().str[0].astype(int)
    for of_rows, path in (
        (table["active"], ["active = true", "active = false"]),
        (
            table["joined"] > "2023-01-01",
            ["joined <= 2023-01-01", "joined > 2023-01-01"],
        ),
        (kilometres > 60, ["distance <= 60 km", "distance > 60 km"]),
        (
            table["answer"].isin(["sometimes", "often"]),
            ["answer = never or rarely", "answer = sometimes or often"],
        ),
    ):
        explanation = explained(table, of_rows.to_numpy().astype(int))
        assert explanation.tree.leaves["path"].tolist() == path
        assert explanation.tree.accuracy > 0.99
        json.dumps(explanation.to_dict(), allow_nan=False)


def test_a_tree_is_in_the_dict_and_the_notebook_with_names_escaped():
    table, y = planted(600)
    explanation = explained(table.rename(columns={"orders": "<b>"}), y)
    as_dict = json.loads(json.dumps(explanation.to_dict()))["tree"]
    assert as_dict["text"] == str(explanation.tree)
    assert as_dict["accuracy"] == explanation.tree.accuracy
    leaves = explanation.tree.leaves
    assert [leaf["rows"] for leaf in as_dict["leaves"]] == leaves["rows"].tolist()
    page = explanation._repr_html_()
    assert "<pre>&lt;b&gt; " in page
    assert "<b>" not in page


def test_the_page_of_a_fit_shows_the_tree(tmp_path):
    X = pd.DataFrame({"<age>": [20.0, 21, 22, 70, 71, 72]})
    model = mmcnb.CPMMC(random_state=0).fit(X)
    model.write_report(X, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h2>A tree over the clusters</h2>" in page
    assert "&lt;age&gt; &lt;= 50 → cluster 0 (100 % of 3 rows)\n" in page
    assert "<age>" not in page


def test_clusters_that_nothing_tells_apart_and_columns_without_names_have_no_tree():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 60))
    y = rng.integers(0, 2, 600)
    assert explained(X[:, :6], y).tree is None
    assert explained(X[:, :6], np.zeros(600, int)).tree is None
    y = (X[:, 3] > 0).astype(int)
    assert explained(X, y).tree is None
    assert explained(sp.csr_array(X), y).tree is None
    assert explained(X[:, :6], y).tree.leaves["path"].tolist() == [
        "column 3 <= 0",
        "column 3 > 0",
    ]
    names = [f"gene {number}" for number in range(60)]
    tree = explained(pd.DataFrame(X, columns=names), y).tree
    assert tree.leaves["path"].tolist() == ["gene 3 <= 0", "gene 3 > 0"]

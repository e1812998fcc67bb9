"""The page of differences from the papers: whole, true to what it names, and named by what it is about."""

import ast
import csv
import inspect
import re
from pathlib import Path

import pytest

import mmcnb
from benchmarks import baselines, support_cluster_machine
from benchmarks.__main__ import STUDIES

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = ["id", "paper", "place", "the paper", "mmcnb", "why", "shown by", "concerns"]
STUDIES_ALONE = "studies"  # of rows that are about no method


def read_table(name):
    with (ROOT / "docs" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


HEADER, *ROWS = read_table("differences.csv")
DIFFERENCES = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
METHODS = sorted({name for row in DIFFERENCES for name in row["concerns"].split()} - {STUDIES_ALONE})
# What is no method of these papers.
OTHERS = {"MaximumMarginClustering", "GowerMedoids"}
HOMES = (mmcnb, baselines, support_cluster_machine)


def test_the_table_is_whole():
    assert HEADER == COLUMNS
    assert [row for row in ROWS if not all(cell.strip() for cell in row)] == []
    names = [row["id"] for row in DIFFERENCES]
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(r"[A-Z]+-[1-9]\d*", name)] == []


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row["id"])
def test_what_shows_a_difference_is_there(row):
    shown = row["shown by"].strip("`")
    if shown.startswith("benchmarks "):
        assert shown.removeprefix("benchmarks ") in STUDIES
        return
    path, name = shown.split("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("method", METHODS)
def test_a_method_names_its_differences(method):
    shown = next(getattr(home, method) for home in HOMES if hasattr(home, method))
    notes = " ".join(inspect.getdoc(shown).partition("\nNotes\n-----\n")[2].split())
    said = re.search(r"Differs from the paper: ([^;]+); see docs/differences\.", notes)
    expected = [row["id"] for row in DIFFERENCES if method in row["concerns"].split()]
    assert said is not None
    assert said[1].split(", ") == expected


def test_each_method_of_a_paper_is_in_the_table():
    estimators = {name for name in mmcnb.__all__ if hasattr(getattr(mmcnb, name), "fit")}
    peers = {name for home in HOMES[1:] for name in home.__all__ if name[0].isupper()}
    assert (estimators | peers) - set(METHODS) == OTHERS

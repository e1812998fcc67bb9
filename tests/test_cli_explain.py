"""``mmcnb explain``: the sentences of `explain`, from files."""

import json

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.cli import main

ROWS = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a text, and the model and labels of a fit."""
    folder, rng = tmp_path_factory.mktemp("explained"), np.random.default_rng(0)
    y = np.arange(ROWS) % 3
    table = pd.DataFrame({"age": 20.0 + 25 * y + rng.normal(size=ROWS), "plan": np.array(["a", "b", "c"])[y]})
    table.to_csv(folder / "rows.csv", index=False)
    outputs = ["--model", folder / "model", "--labels", folder / "labels.csv"]
    words = ["fit", folder / "rows.csv", "--n-clusters", 3, *outputs, "--random-state", 0]
    assert main([*map(str, words)]) == 0
    return folder


def run(capsys, *words):
    capsys.readouterr()
    code = main([*map(str, ("explain", *words))])
    return code, capsys.readouterr()


def test_it_prints_the_sentences_of_the_method(folder, capsys):
    expected = mmcnb.load(folder / "model").explain(folder / "rows.csv")
    given = folder / "model", folder / "rows.csv"
    for labels in ([], ["--labels", folder / "labels.csv"]):
        code, streams = run(capsys, *given, *labels)
        assert code == 0
        assert streams.out == f"{expected}\n"
    assert "age" in streams.out
    code, streams = run(capsys, *given, "--json")
    assert json.loads(streams.out) == json.loads(json.dumps(expected.to_dict()))


def test_labels_of_other_rows_are_refused_in_a_sentence(folder, tmp_path, capsys):
    pd.DataFrame({"cluster": [0, 1]}).to_csv(tmp_path / "few.csv", index=False)
    code, streams = run(capsys, folder / "model", folder / "rows.csv", "--labels", tmp_path / "few.csv")
    assert code == 2
    assert "few.csv has 2 values" in streams.err
    assert "give one label a row" in streams.err
    assert streams.err.count("\n") == 1


def test_another_table_is_refused_in_a_sentence(folder, tmp_path, capsys):
    pd.DataFrame({"age": [1.0, 2.0], "other": ["a", "b"]}).to_csv(tmp_path / "other.csv", index=False)
    code, streams = run(capsys, folder / "model", tmp_path / "other.csv")
    assert code == 2
    assert "plan" in streams.err
    assert streams.err.count("\n") == 1


def test_names_cannot_reach_the_terminal(tmp_path, capsys):
    names = ["\x1b[31mred", "<b>plan</b>"]
    table = pd.DataFrame(
        {names[0]: np.arange(ROWS) % 2 * 9.0, names[1]: np.where(np.arange(ROWS) % 2, "\x1b]0;", "b")}
    )
    table.to_csv(tmp_path / "rows.csv", index=False)
    fit = [
        "fit",
        tmp_path / "rows.csv",
        "--n-clusters",
        2,
        "--model",
        tmp_path / "model",
        "--random-state",
        0,
    ]
    assert main([*map(str, fit)]) == 0
    code, streams = run(capsys, tmp_path / "model", tmp_path / "rows.csv")
    assert code == 0
    assert "\x1b" not in streams.out
    assert "\\x1b[31mred" in streams.out
    assert "<b>plan</b> mostly \\x1b]0; (100 %, others 0 %)" in streams.out
    assert len(streams.out.splitlines()) == 2

"""``mmcnb fit --like``, and the verdict of ``mmcnb fit --layers``."""

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.cli import main
from tests.estimators.test_like import OLD

pytestmark = pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """A folder with rows and a model of them."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(OLD, columns=list("pqr")).to_csv("old.csv", index=False)
    assert main(["fit", "old.csv", "--model", "a.model", "--random-state", "0"]) == 0
    capsys.readouterr()
    return tmp_path


@pytest.mark.parametrize("more", [[], ["--layers"]])
def test_a_fit_like_a_model_has_its_numbers(folder, capsys, more):
    expected = mmcnb.load("a.model").predict("old.csv")[::-1]
    pd.read_csv("old.csv")[::-1].to_csv("new.csv", index=False)
    words = ["fit", "new.csv", "--like", "a.model", "--model", "c.model", "--labels", "c.csv", *more]
    assert main([*words, "--random-state", "5"]) == 0
    printed = capsys.readouterr().out
    count = np.count_nonzero(expected == 0)
    assert f"0: kept, {count:,} rows before and {count:,} now" in printed
    np.testing.assert_array_equal(pd.read_csv("c.csv")["cluster"], expected)
    np.testing.assert_array_equal(mmcnb.load("c.model").predict("new.csv"), expected)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--like a.model --method cpmmc --model c.model", "--like is of maximum-margin-clustering"),
        ("--like none.model --model c.model", "there is no model at none.model"),
        ("--like a.model --model a.model --overwrite", "overlaps a.model"),
        ("--like old.csv --model c.model", "is no model of mmcnb"),
    ],
)
def test_bad_input_is_refused_and_changes_no_file(folder, capsys, words, sentence):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["fit", "old.csv", *words.split()]) == 2
    assert sentence in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_layers_have_a_verdict(folder, capsys):
    assert main(["fit", "old.csv", "--labels", "l.csv", "--layers", "--random-state", "0"]) == 0
    assert "to fit" in capsys.readouterr().out

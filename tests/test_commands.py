"""The commands that README and docs print are commands."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

import benchmarks.__main__
import mmcnb
from mmcnb.cli import build_parser, main
from mmcnb.stores._label_table import read_values

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(page):
    """The lines that a page shows to be typed, without prompt and comment."""
    blocks = re.findall(r"^```(?:console|sh)\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for line in "".join(blocks).splitlines():
        for command in line.removeprefix("$ ").split("&&"):
            yield shlex.split(command, comments=True)


PRINTED = [
    pytest.param(words, id=f"{page.name}: {' '.join(words)}") for page in PAGES for words in commands(page)
]


def is_ours(words):
    return bool(words) and Path(words[0]).name == "mmcnb"


@pytest.mark.parametrize("words", [one for one in PRINTED if is_ours(one.values[0])])
def test_each_command_of_ours_can_be_read(words):
    assert build_parser().parse_args(words[1:]).verb == words[1]


@pytest.mark.parametrize("words", [one for one in PRINTED if "benchmarks" in one.values[0][:3]])
def test_each_study_that_is_named_is_one(words):
    named = vars(benchmarks.__main__._parser().parse_args(words[words.index("benchmarks") + 1 :]))["study"]
    assert named in (*benchmarks.__main__.STUDIES, "all", "list", "report")


def test_the_commands_of_the_readme_make_labels_of_a_csv(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(300, 4)) + np.repeat(np.eye(4)[:3] * 9, 100, axis=0)
    pd.DataFrame(X, columns=list("abcd")).to_csv("rows.csv", index=False)
    typed = [words[1:] for words in commands(ROOT / "README.md") if is_ours(words) and words[1] != "demo"]
    assert [words[0] for words in typed] == ["fit", "report"]
    for words in typed:
        assert main(words) == 0, capsys.readouterr().err
    (labels,) = (words[words.index("--labels") + 1] for words in typed if "--labels" in words)
    expected = mmcnb.load(tmp_path / "rows.model").predict(tmp_path / "rows.csv")
    np.testing.assert_array_equal(read_values(tmp_path / labels), expected)
    assert adjusted_rand_score(np.arange(300) // 100, expected) == 1
    assert "Cluster 2 (33 %): " in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_sentences_of_the_readme_are_those_of_the_wines():
    (quoted,) = re.findall(
        r"^```text\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    wines = load_wine(as_frame=True).data
    told = str(mmcnb.MaximumMarginClustering(3, random_state=0).fit(wines).explain(wines))
    for line, sentence in zip(quoted.splitlines(), told.splitlines(), strict=True):
        assert sentence.startswith(line.removesuffix("..."))


def test_the_commands_of_the_first_steps_print_what_their_page_says(tmp_path, monkeypatch, capsys):
    page = ROOT / "docs" / "get_started.md"
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)[1], {})
    typed = [words[1:] for words in commands(page) if is_ours(words) and words[1] != "demo"]
    for words in typed:
        assert main(words) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    (printed,) = re.findall(r"^```text\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    # Another processor may move a row or two, so the words are compared.
    assert {line[:16] for line in printed.splitlines()} <= {line[:16] for line in said.splitlines()}
    assert "adjusted rand index" in said

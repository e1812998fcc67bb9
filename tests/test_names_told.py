"""Names of columns, categories, rows and files are text wherever they are told: cut, and obeyed by none."""

import json
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mmcnb.cli import main
from mmcnb.errors import plain

OBEYED = "red\x1b[2J\x07\u202e\u2028name"
LONG = "n" * 5000
NAMES = [OBEYED, LONG, "<script>alert(1)</script>", '=HYPERLINK("http://x")']
MOST = 350  # letters of a word: those of a name that is cut, and some more


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory):
    """A folder to work in: a table, its store, a model and labels, all with names that mean harm."""
    folder = tmp_path_factory.mktemp("names")
    half = np.arange(300) % 2 == 0
    rows = np.random.default_rng(0).normal(size=(300, 4)) + 6 * half[:, None]
    table = pd.DataFrame(rows, columns=NAMES)
    table["kind\x1b[31m"] = np.where(half, "<b>" + "y" * 3000, "=1+1\x1b]0;x\x07")
    table["class"] = np.where(half, "<i>" + "w" * 4000, "=A\x1b[2J")
    table["id"] = [f"=cmd|{row}\x1b[2J{'z' * 3000}" for row in range(300)]
    table.to_csv(folder / "table.csv", index=False)
    table.assign(**{OBEYED: ["o" * 5000, *table[OBEYED][1:]]}).to_csv(
        folder / "bad.csv", index=False
    )
    words = [
        "convert",
        "table.csv",
        "rows.zarr",
        "--label-column",
        "class",
        "--index-column",
        "id",
    ]
    fit = [
        "fit",
        "rows.zarr",
        "--model",
        "model",
        "--labels",
        "labels.csv",
        "--random-state",
        "0",
    ]
    with chdir(folder):
        assert main(words) == main(fit) == 0
        yield


def told(capsys):
    """What was printed, of which no terminal obeys anything."""
    printed = "".join(capsys.readouterr())
    assert all(letter.isprintable() or letter in "\n\t" for letter in printed)
    return printed


@pytest.mark.parametrize(
    "words",
    [
        ["info", "table.csv"],
        ["plan", "rows.zarr"],
        ["verify", "rows.zarr"],
        [
            "fit",
            "table.csv",
            "--model",
            "another.model",
            "--overwrite",
            "--random-state",
            "0",
        ],
        ["explain", "model", "rows.zarr"],
        [
            "score",
            "rows.zarr",
            "labels.csv",
            "--classes",
            "table.csv",
            "--label-column",
            "class",
        ],
    ],
)
def test_a_command_tells_names_cut_and_without_what_a_terminal_obeys(words, capsys):
    assert main(words) == 0
    assert max(map(len, told(capsys).split())) <= MOST
    assert main([*words, "--json"]) == 0
    json.loads(told(capsys))


@pytest.mark.parametrize(
    ("words", "mark"),
    [
        (["convert", "bad.csv", "new.zarr", "--missing", "refuse"], "..."),
        (["convert", "table.csv", "new.zarr", "--columns", OBEYED + "2"], "\\x1b"),
        (["info", "red\x1b.csv"], "\\x1b"),
    ],
)
def test_a_sentence_tells_names_cut_and_without_what_a_terminal_obeys(
    words, mark, capsys
):
    assert main(words) == 2
    sentence = told(capsys)
    assert sentence.count("\n") == 1
    assert max(map(len, sentence.split())) <= MOST
    assert mark in sentence


def test_a_page_tells_names_as_text():
    assert main(["report", "model", "rows.zarr", "--out", "page.html"]) == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert all(letter.isprintable() or letter in "\n\t" for letter in page)
    assert "alert(1)" in page
    assert not any(
        markup in page for markup in ("<script>alert", "<b>y", "<i>w", LONG[:301])
    )


def test_only_long_words_are_cut():
    words = "n" * 299 + " " + "m" * 299
    assert plain(words) == words
    assert plain(f"{'n' * 500}: {'m' * 500}") == f"{'n' * 297}... {'m' * 297}..."

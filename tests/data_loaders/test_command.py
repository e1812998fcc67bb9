"""``python -m data_loaders``, and the stores it writes."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import data_loaders
from data_loaders.__main__ import main
from data_loaders._registry import DATASETS
from mmcnb.samples import open_samples
from mmcnb.stores import open_class_labels, verify_store


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_store_holds_what_load_gives(tiny, data_dir, tmp_path, layout, capsys):
    out = tmp_path / "tiny.zarr"
    assert main(["tiny", "--out", str(out), "--layout", layout]) == 0
    said = capsys.readouterr().out
    assert said == f"{out}: tiny, 3 rows x 4 features, {layout}, float64, classes 0: 1, 1: 1, 2: 1\n"
    X, y = data_loaders.load("tiny", layout=layout)
    samples = open_samples(out)
    assert samples.is_sparse == (layout == "csr")
    block = samples.block(0, 3)
    if layout == "csr":
        for part, whole in ((block.data, X.data), (block.indices, X.indices), (block.indptr, X.indptr)):
            np.testing.assert_array_equal(part, whole)
    else:
        np.testing.assert_array_equal(block, X)
    np.testing.assert_array_equal(open_class_labels(out), y)
    verify_store(out)


def test_json_tells_the_facts(tiny, data_dir, tmp_path, capsys):
    assert main(["tiny", "--out", str(tmp_path / "t.zarr"), "--rows", "2", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["name"] == "tiny"
    assert facts["n_samples"] == 2
    assert facts["n_features"] == 4


def test_synthetic_stores_are_what_load_gives(tmp_path):
    out = tmp_path / "rings.zarr"
    assert main(["rings", "--rows", "5000", "--features", "3", "--random-state", "4", "--out", str(out)]) == 0
    X, y = data_loaders.load("rings", rows=5000, features=3, random_state=4)
    np.testing.assert_array_equal(open_samples(out).block(0, 5000), X)
    np.testing.assert_array_equal(open_class_labels(out), y)


def test_a_store_that_is_there_is_kept_unless_told(tiny, data_dir, tmp_path, capsys):
    out = tmp_path / "tiny.zarr"
    assert main(["tiny", "--out", str(out)]) == 0
    digest = open_samples(out).digest
    assert main(["tiny", "--out", str(out), "--rows", "2"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert open_samples(out).digest == digest
    assert main(["tiny", "--out", str(out), "--rows", "2", "--overwrite"]) == 0
    assert open_samples(out).n_samples == 2


def test_nothing_is_written_where_the_facts_do_not_hold(tiny, data_dir, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(DATASETS, "tiny", replace(tiny, class_counts={0: 1, 1: 2}))
    folder = tmp_path / "out"
    folder.mkdir()
    assert main(["tiny", "--out", str(folder / "tiny.zarr")]) == 2
    assert list(folder.iterdir()) == []
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing", "--out", "x.zarr"], "no data set called 'nothing'; choose one of adult"),
        (["tiny"], "--out is missing; give the store to write, such as --out tiny.zarr"),
        (["tiny", "--out", "x.zarr", "--rows", "9"], "rows is 9"),
        (["tiny", "--out", "x.zarr", "--data-dir", "nowhere"], "nowhere is not a folder"),
        (["rings", "--out", "x.zarr", "--rows", "0"], "rows is 0; give 1 or more"),
        (["list", "--data-dir", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    tiny, data_dir, tmp_path, monkeypatch, capsys, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert sentence in error
    assert not (tmp_path / "x.zarr").exists()


def test_list_shows_every_name(tiny, data_dir, capsys):
    assert main(["list"]) == 0
    table = {row[0]: row for row in map(str.split, capsys.readouterr().out.splitlines()) if row}
    assert table["tiny"][:4] == ["tiny", "3", "4", "yes"]
    assert set(DATASETS) < set(table)
    assert main(["list", "--json"]) == 0
    assert {fact["name"] for fact in json.loads(capsys.readouterr().out)} >= set(DATASETS)


@pytest.mark.slow
def test_the_package_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "data_loaders", "nothing", "--out", "x.zarr"],
        cwd=Path(data_loaders.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: there is no data set called 'nothing'")


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error():
    command = [sys.executable, "-m", "data_loaders", "list"]
    root = Path(data_loaders.__file__).parents[1]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=root, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0

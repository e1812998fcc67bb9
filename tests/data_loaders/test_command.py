"""``python -m mmcnb.datasets``, and the stores it writes."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import data_loaders
from data_loaders.__main__ import main
from mmcnb.samples import open_samples
from mmcnb.stores import open_class_labels, verify_store

ROOT = Path(__file__).parents[2]
NAME = "australian"


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_store_holds_what_load_gives(data_dir, tmp_path, layout, capsys):
    out = tmp_path / "rows.zarr"
    assert main([NAME, "--out", str(out), "--layout", layout]) == 0
    facts = f"690 rows x 14 features, {layout}, float64, classes 0: 383, 1: 307"
    assert capsys.readouterr().out == f"{out}: {NAME}, {facts}\n"
    X, y = data_loaders.load(NAME)
    samples = open_samples(out)
    assert samples.is_sparse == (layout == "csr")
    block = samples.block(0, 690)
    if samples.is_sparse:
        block = csr_array((block.data, block.indices, block.indptr), X.shape).toarray()
    np.testing.assert_array_equal(block, X)
    np.testing.assert_array_equal(open_class_labels(out), y)
    verify_store(out)


def test_made_rows_in_a_store_are_those_of_load(tmp_path, capsys):
    out = tmp_path / "rings.zarr"
    words = [
        "rings",
        "--rows",
        "5000",
        "--features",
        "3",
        "--random-state",
        "4",
        "--out",
        str(out),
        "--json",
    ]
    assert main(words) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["name"], facts["n_samples"], facts["n_features"]) == (
        "rings",
        5000,
        3,
    )
    X, y = data_loaders.load("rings", rows=5000, features=3, random_state=4)
    np.testing.assert_array_equal(open_samples(out).block(0, 5000), X)
    np.testing.assert_array_equal(open_class_labels(out), y)


def test_a_store_is_kept_unless_told_and_damaged_files_write_nothing(
    data_dir, tmp_path, capsys
):
    out = tmp_path / "folder" / "rows.zarr"
    out.parent.mkdir()
    assert main([NAME, "--out", str(out)]) == 0
    digest = open_samples(out).digest
    assert main([NAME, "--out", str(out), "--rows", "2"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert open_samples(out).digest == digest
    assert main([NAME, "--out", str(out), "--rows", "2", "--overwrite"]) == 0
    assert open_samples(out).n_samples == 2
    with (data_dir / "australian/australian.dat").open("a") as file:
        file.write("0 " * 14 + "1\n")
    assert main([NAME, "--out", str(out.parent / "other.zarr")]) == 2
    assert [path.name for path in out.parent.iterdir()] == ["rows.zarr"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["nothing", "--out", "x.zarr"],
            "no data set called 'nothing'; choose one of adult",
        ),
        (
            [NAME],
            "--out is missing; name the store to write, such as --out australian.zarr",
        ),
        ([NAME, "--out", "x.zarr", "--rows", "691"], "rows is 691"),
        ([NAME, "--out", "x.zarr", "--data-dir", "nowhere"], "nowhere is not a folder"),
        (["rings", "--out", "x.zarr", "--rows", "0"], "rows is 0; give 1 or more"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    data_dir, tmp_path, monkeypatch, capsys, words, sentence
):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert sentence in error
    assert not Path("x.zarr").exists()


def test_list_shows_which_sets_are_here(data_dir, capsys):
    assert main(["list"]) == 0
    table = {
        row[0]: row
        for row in map(str.split, capsys.readouterr().out.splitlines())
        if row
    }
    assert table[NAME][:4] == [NAME, "690", "14", "yes"]
    assert table["spambase"][3] == "no"
    assert main(["list", "--json"]) == 0
    assert {fact["name"] for fact in json.loads(capsys.readouterr().out)} <= set(table)


@pytest.mark.slow
def test_a_reader_of_the_list_may_stop_early():
    command = [sys.executable, "-m", "mmcnb.datasets", "list"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0

"""Standard streams that are closed or full, and what a command prints on a terminal."""

import json
import os
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr

import mmcnb
from mmcnb.cli import main
from mmcnb.errors import plain

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="streams are closed as POSIX does it")


@pytest.fixture
def rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(600, 3)) + 6 * (np.arange(600) % 2)[:, None]
    np.save(tmp_path / "rows.npy", X)
    return tmp_path / "rows.npy"


def command(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "mmcnb", *map(str, words)], text=True, check=False, **options
    )


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_closed_streams_change_nothing_about_outputs(rows, closed):
    def close():
        for number in closed:
            os.close(number)

    model = rows.with_name("rows.model")
    words = "fit", rows, "--model", model, "--method", "cpmmc"
    done = command(*words, preexec_fn=close)
    assert done.returncode == 0
    assert np.unique(mmcnb.load(model).predict(rows)).tolist() == [0, 1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_stream_fails_a_command_only_if_it_gives_nothing_else(rows):
    model = rows.with_name("rows.model")
    assert main(["convert", str(rows), str(rows.with_name("rows.zarr"))]) == 0
    with Path("/dev/full").open("w") as full:
        fit = command("fit", rows, "--model", model, "--method", "cpmmc", stdout=full, stderr=subprocess.PIPE)
        info = command("info", rows.with_name("rows.zarr"), stdout=full, stderr=subprocess.PIPE)
        again = command("fit", rows, "--model", model, "--overwrite", "--method", "cpmmc", stderr=full)
    assert [fit.returncode, again.returncode, info.returncode] == [0, 0, 1]
    assert "Traceback" not in fit.stderr + info.stderr
    assert model.exists()


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_fit_in_python_without_standard_error(rows, verbose, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    model = mmcnb.CPMMC(random_state=0, verbose=verbose).fit(rows)
    assert np.bincount(model.labels_).tolist() == [300, 300]


def test_no_name_is_obeyed_by_the_terminal(tmp_path, capfd):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=[EVIL, "b"])
    frame["kind"] = [f"{EVIL}1", "other"] * 30
    frame.to_csv(tmp_path / "table.csv", index=False)
    zarr.create_group(tmp_path / "group.zarr").create_array(EVIL, shape=(3, 2), dtype="f8")
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file.create_dataset(EVIL, data=np.eye(3, 2))
    calls = [
        ["convert", tmp_path / "table.csv", tmp_path / "one.zarr", "--label-column", "kind"],
        ["convert", tmp_path / "table.csv", tmp_path / "two.zarr", "--columns", "none"],
        ["info", tmp_path / "one.zarr"],
        ["info", tmp_path / "group.zarr"],
        ["info", tmp_path / "rows.h5"],
        ["fit", tmp_path / "table.csv", "--model", tmp_path / "model"],
        ["info", f"{tmp_path}/{EVIL}"],
        [EVIL],
    ]
    printed = ""
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(SystemExit):
                main([str(word) for word in call])
        printed += "".join(capfd.readouterr())
    assert not set(printed) & set(EVIL[:1] + "\x07\x9b\u202e")
    assert r"\x1b]0;title\x07\x1b[2J\x9b31m\u202e" in printed


def test_json_gives_names_as_they_are(tmp_path, capsys):
    pd.DataFrame({EVIL: [1.0, 2.0], "b": [3.0, 4.0]}).to_csv(tmp_path / "table.csv", index=False)
    assert main(["convert", str(tmp_path / "table.csv"), str(tmp_path / "one.zarr"), "--json"]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert json.loads(printed)["columns"][0]["name"] == EVIL


@pytest.mark.parametrize("text", ["", "a b\n\tc", "größe 7 %, Σ|z|²", "名前"])
def test_plain_keeps_what_can_be_printed(text):
    assert plain(text) == text

"""Commands that run in this process, in a folder with rows, models and labels."""

import io
import json
import logging
import shutil
import warnings
from contextlib import chdir, redirect_stdout

import numpy as np
import pandas as pd
import pytest

from mmcnb.cli import main
from mmcnb.datasets import write_synthetic

ROWS = 150


def customers(n, n_far=0, seed=0):
    """Three groups by age and plan; the first rows are a fourth one, far from them."""
    random = np.random.default_rng(seed)
    group = np.arange(n) % 3
    table = pd.DataFrame({"age": 20.0 + 25 * group, "spent": np.zeros(n)})
    table.loc[np.arange(n) < n_far, ["age", "spent"]] = [200.0, 50.0]
    table += random.normal(size=table.shape)
    return table.assign(plan=np.array(["basic", "family", "student"])[group])


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A store with classes and a table, and the model and labels of each."""
    folder = tmp_path_factory.mktemp("fitted")
    write_synthetic("blobs", folder / "blobs.zarr", ROWS, 3, 35, n_clusters=3)
    customers(ROWS).to_csv(folder / "customers.csv", index=False)
    customers(60, n_far=10, seed=1).to_csv(folder / "new.csv", index=False)
    with chdir(folder), redirect_stdout(io.StringIO()):
        for name, rows in (("blobs", "blobs.zarr"), ("customers", "customers.csv")):
            outputs = f"--model {name}.model --labels {name}-labels.csv"
            assert main(f"fit {rows} {outputs} --random-state 0".split()) == 0
    return folder


@pytest.fixture
def folder(fitted, tmp_path, monkeypatch):
    """The working folder, with copies of these files."""
    copy = tmp_path / "folder"
    shutil.copytree(fitted, copy)
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def printed(capsys):
    """A function that runs a command and gives what it prints, if it succeeds."""

    def run(command, *words):
        capsys.readouterr()
        assert main([*command.split(), *map(str, words)]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def report_of(printed):
    """A function that runs a command with --json and gives its report."""
    return lambda command, *words: json.loads(printed(command, *words, "--json"))


@pytest.fixture
def refusal_of(capsys):
    """A function that runs a command that must be refused, and gives the one sentence that says why."""

    def run(command, *words):
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                code = main([*command.split(), *map(str, words)])
            except SystemExit as stopped:
                code = stopped.code
        streams = capsys.readouterr()
        assert code == 2
        assert streams.out == ""
        assert streams.err.startswith("mmcnb")
        assert streams.err.count("\n") == 1, streams.err
        return streams.err

    return run


@pytest.fixture
def at_each_read(caplog):
    """A function that has an action happen whenever a fit or an update has read all rows, which it logs."""
    logger = logging.getLogger("mmcnb")
    handler = logging.Handler()
    caplog.set_level(logging.INFO, "mmcnb")

    def install(action):
        handler.emit = lambda record: (
            action() if record.getMessage().startswith("read ") else None
        )
        logger.addHandler(handler)

    yield install
    logger.removeHandler(handler)


def contents(folder):
    """The bytes of all files in a folder, by path."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

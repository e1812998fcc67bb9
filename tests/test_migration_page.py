"""Each new line of the page on the migration runs, and each old one no longer does."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import mmcnb
from mmcnb.cli import main
from mmcnb.stores import create_dense_store

PAGE = (Path(__file__).parent.parent / "docs/migration.md").read_text()
LINES = re.findall(r"^\| `(.+)` \| `(.+)` \|$", PAGE, re.MULTILINE)
SENTENCES = re.findall(r"`([^`]+)`", PAGE.partition("| 0.2 |")[0])
GONE = (AttributeError, ImportError, KeyError, TypeError, mmcnb.InputError, SystemExit)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the commands name."""
    folder = tmp_path_factory.mktemp("migration")
    X, y = make_blobs(200, centers=2, n_features=3, random_state=0)
    with create_dense_store(folder / "rows.zarr", n_features=3) as writer:
        writer.append(X)
    np.savetxt(folder / "rows.csv", X, delimiter=",", header="a,b,c", comments="")
    np.savetxt(folder / "labels.csv", y, fmt="%d", header="cluster", comments="")
    return folder


@pytest.fixture(scope="module")
def said(folder):
    """The names that the lines use."""
    X = np.loadtxt(folder / "rows.csv", delimiter=",", skiprows=1)
    estimators = {name: getattr(mmcnb, name) for name in mmcnb.__all__ if name[0].isupper()}
    return {
        **estimators,
        "mmcnb": mmcnb,
        "X": X,
        "K": X @ X.T,
        "model": mmcnb.MaximumMarginClustering(2, random_state=0).fit(X),
        "means": mmcnb.KernelKMeans(2, random_state=0).fit(X),
        "machine": mmcnb.SparseKernelMMC(random_state=0).fit(X),
    }


@pytest.fixture
def do(folder, said, monkeypatch):
    """Run a line: a command of ours, a name with its module, or an expression."""
    monkeypatch.chdir(folder)

    def run(line):
        if line.startswith("mmcnb "):
            code = main(line.split()[1:])
            if code:
                raise SystemExit(code)
        elif re.fullmatch(r"(mmcnb|benchmarks|sklearn)(\.\w+)+", line):
            module, _, name = line.rpartition(".")
            getattr(importlib.import_module(module), name)
        else:
            eval(line, dict(said))

    return run


def test_there_are_lines_and_sentences():
    assert len(LINES) > 20
    assert PAGE.count("\n|") == len(LINES) + 2
    assert len(PAGE.split()) <= 350


@pytest.mark.parametrize("line", [new for _, new in LINES] + SENTENCES)
def test_a_new_line_runs(line, do):
    do(line.replace("\n", " "))


@pytest.mark.parametrize("line", [old for old, _ in LINES])
def test_an_old_line_is_gone(line, do):
    with pytest.raises(GONE):
        do(line)

"""``mmcnb update``: the model is replaced whole, or stays as it was."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.cli import main
from mmcnb.engine.checkpoint import recorded_passes
from mmcnb.engine.run import Engine
from tests.estimators.test_update import FAR, OLD

pytestmark = pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """A folder with a model of earlier rows, and new rows."""
    monkeypatch.chdir(tmp_path)
    for name, X in (("old", OLD), ("new", FAR)):
        pd.DataFrame(X, columns=list("pqr")).to_csv(f"{name}.csv", index=False)
    assert main(["fit", "old.csv", "--model", "a.model", "--random-state", "0"]) == 0
    capsys.readouterr()
    return tmp_path


def test_the_model_is_replaced_and_the_labels_are_written(folder, capsys):
    expected = mmcnb.load("a.model").update("new.csv")
    assert main(["update", "a.model", "new.csv", "--labels", "new-labels.csv"]) == 0
    assert "change: new, before: 0, after: 20" in capsys.readouterr().out
    np.testing.assert_array_equal(pd.read_csv("new-labels.csv")["cluster"], expected.labels_)
    np.testing.assert_array_equal(mmcnb.load("a.model").predict("new.csv"), expected.labels_)


def test_another_model_leaves_the_first_as_it_was(folder, capsys):
    before = (folder / "a.model").read_bytes()
    assert main(["update", "a.model", "new.csv", "--out", "b.model", "--json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed[printed.index("{") :])["changes"][3]["change"] == "new"
    assert (folder / "a.model").read_bytes() == before
    assert mmcnb.load("b.model").n_clusters_ == 4
    assert main(["update", "a.model", "new.csv", "--out", "b.model"]) == 2
    assert "b.model exists already" in capsys.readouterr().err


def test_an_update_that_is_stopped_goes_on_from_its_checkpoint(folder, monkeypatch, capsys):
    assert main(["convert", "new.csv", "new.zarr"]) == 0
    expected = mmcnb.load("a.model").update("new.zarr")
    words = ["update", "a.model", "new.zarr", "--checkpoint", "run"]

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mmcnb.estimators.update.node_graph", stop)
        assert main(words) == 130
    assert "go on from run" in capsys.readouterr().err
    assert recorded_passes("run") == 2
    read = []
    monkeypatch.setattr("mmcnb.engine.run.ThreadEngine.run", counted(read))
    assert main(words) == 0
    assert read == ["labels"]  # after the search: the first ones and the sample were kept
    np.testing.assert_array_equal(mmcnb.load("a.model").predict("new.zarr"), expected.labels_)
    assert main(words) == 2
    assert "run is of another fit: the model differ" in capsys.readouterr().err


def counted(read):
    """`ThreadEngine.run` that notes what it reads rows for."""

    def run(self, pass_, samples, description=""):
        read.append(description)
        return Engine.run(self, pass_, samples, description)

    return run


@pytest.mark.parametrize("place", ["MaximumMarginClustering.update", "MaximumMarginClustering.save"])
def test_an_update_that_is_stopped_can_be_run_again(folder, monkeypatch, place):
    before, files = (folder / "a.model").read_bytes(), {path.name for path in folder.iterdir()}

    def stop(*_, **__):
        raise KeyboardInterrupt

    words = ["update", "a.model", "new.csv", "--labels", "labels.csv"]
    with monkeypatch.context() as patch:
        patch.setattr(f"mmcnb.{place}", stop)
        assert main(words) == 130
    assert (folder / "a.model").read_bytes() == before
    assert {path.name for path in folder.iterdir()} == files
    assert main(words) == 0
    assert mmcnb.load("a.model").n_clusters_ == 4


KILLED = """
import os, signal
from mmcnb.cli import main
from mmcnb.engine.checkpoint import recorded_passes
from mmcnb.engine.run import Engine
from mmcnb.stores import atomic

place = atomic.AtomicOutput._place

def killed(output):
    if output.target.name == "a.model":
        os.kill(os.getpid(), signal.SIGKILL)
    place(output)

atomic.AtomicOutput._place = killed
main(["update", "a.model", "new.csv", "--labels", "labels.csv"])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_an_update_that_is_killed_at_the_rename_leaves_the_old_model(folder):
    before = (folder / "a.model").read_bytes()
    path = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", KILLED], env=os.environ | {"PYTHONPATH": path}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (folder / "a.model").read_bytes() == before
    assert main(["update", "a.model", "new.csv", "--labels", "labels.csv"]) == 0
    assert mmcnb.load("a.model").n_clusters_ == 4


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("a.model new.csv --labels old.csv", "exists already"),
        ("none.model new.csv", "there is no model at none.model"),
        ("a.model none.csv", "none.csv"),
        ("a.model new.csv --out new.csv --overwrite", "overlaps new.csv"),
        ("other.model new.csv", "takes no new rows"),
    ],
)
def test_bad_input_is_refused_and_changes_no_file(folder, capsys, words, sentence):
    mmcnb.CPMMC(random_state=0).fit(OLD).save("other.model")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["update", *words.split()]) == 2
    assert sentence in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

"""The command with a checkpoint: stopped by any signal, the same command again goes on."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mmcnb
from mmcnb.cli import main
from mmcnb.datasets import write_synthetic
from mmcnb.engine.checkpoint import recorded_passes
from tests.estimators.conftest import make_rings
from tests.estimators.test_checkpoint import write

OPTIONS = (
    "--method sparse-kernel-mmc --set gamma=2 --set sample_size=150 --set n_landmarks=12 --set n_init=1 "
    "--random-state 0"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write(tmp_path_factory.mktemp("rows") / "rings.zarr", make_rings(6000))


def command(store, folder):
    words = [
        "fit",
        store,
        "--model",
        folder / "m",
        "--labels",
        folder / "l.csv",
        "--checkpoint",
    ]
    return [*map(str, words), str(folder / "run"), *OPTIONS.split()]


def test_the_same_command_again_answers_and_rewrites_its_outputs(
    store, tmp_path, capsys
):
    words = command(store, tmp_path)
    model = tmp_path / "m"
    labels = tmp_path / "l.csv"
    assert main(words) == 0
    assert "; 0 passes were resumed from this folder" in capsys.readouterr().out
    passes = recorded_passes(tmp_path / "run")
    assert passes > 0
    first = mmcnb.load(model).objective_, labels.read_bytes()
    model.write_text("worn")
    assert main(words) == 0
    assert f"; {passes} passes were resumed from this folder" in capsys.readouterr().out
    assert (mmcnb.load(model).objective_, labels.read_bytes()) == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.csv", "m", "run"]
    assert main([*words, "--set", "C=3"]) == 2
    assert "C is 10.0 there and 3 here" in capsys.readouterr().err
    assert (mmcnb.load(model).objective_, labels.read_bytes()) == first


@pytest.mark.parametrize(
    ("place", "why"), [("rings.zarr/run", "is inside"), ("m/run", "overlaps")]
)
def test_a_checkpoint_overlaps_nothing(store, tmp_path, capsys, place, why):
    folder = (Path(store).parent if "zarr" in place else tmp_path) / place
    assert (
        main(
            ["fit", store, "--model", str(tmp_path / "m"), "--checkpoint", str(folder)]
        )
        == 2
    )
    assert why in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_command_that_was_stopped_goes_on(tmp_path, name):
    store = tmp_path / "moons.zarr"
    write_synthetic("moons", store, 130_000, 3)
    for folder in ("whole", "stopped"):
        (tmp_path / folder).mkdir()
    assert main(command(store, tmp_path / "whole")) == 0
    folder = tmp_path / "stopped"
    words = command(store, folder)
    passes = folder / "run" / "passes"
    number = getattr(signal, name)
    with subprocess.Popen(
        [sys.executable, "-m", "mmcnb", *words],
        stderr=subprocess.PIPE,
        text=True,
        # In the background of a shell SIGINT is ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as fit:
        while fit.poll() is None and not (passes / "000000").exists():
            time.sleep(0.001)
        fit.send_signal(number)
        error = fit.stderr.read()
    if number == signal.SIGKILL:
        assert fit.returncode == -number
    else:
        assert fit.returncode == 130
        remedy = f"run the same command again to resume from {folder / 'run'}"
        assert error == f"mmcnb: stopped by the user; {remedy}.\n"
        assert [path.name for path in folder.iterdir()] == ["run"]
    kept = {
        path: path.stat().st_mtime_ns for path in passes.iterdir() if not path.suffix
    }
    assert kept
    assert main(words) == 0
    assert all(path.stat().st_mtime_ns == written for path, written in kept.items())
    assert (folder / "l.csv").read_bytes() == (
        tmp_path / "whole" / "l.csv"
    ).read_bytes()
    whole, stopped = (mmcnb.load(tmp_path / one / "m") for one in ("whole", "stopped"))
    X = make_rings(500)
    assert (
        stopped.decision_function(X).tobytes() == whole.decision_function(X).tobytes()
    )

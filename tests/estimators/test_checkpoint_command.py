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
from mmcnb.engine.checkpoint import CheckpointEngine, recorded_passes
from tests.estimators.conftest import make_rings
from tests.estimators.test_checkpoint import assert_same_fit, write

OPTIONS = (
    "--method sparse-kernel-mmc --set gamma=2 --set sample_size=150 --set n_landmarks=12 --set n_init=1 "
    "--random-state 0"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write(tmp_path_factory.mktemp("rows") / "rings.zarr", make_rings(6000))


def command(store, folder):
    words = ["fit", store, "--model", folder / "m", "--labels", folder / "l.zarr", "--checkpoint"]
    return [*map(str, words), str(folder / "run"), *OPTIONS.split()]


def test_the_same_command_again_answers_and_rewrites_its_outputs(store, tmp_path, capsys):
    words = command(store, tmp_path)
    assert main(words) == 0
    assert "; 0 passes were taken from it" in capsys.readouterr().out
    passes = recorded_passes(tmp_path / "run")
    assert passes > 0
    first = mmcnb.load(tmp_path / "m")
    (tmp_path / "m").write_text("worn")
    assert main(words) == 0
    assert f"; {passes} passes were taken from it" in capsys.readouterr().out
    assert_same_fit(mmcnb.load(tmp_path / "m"), first)
    assert mmcnb.load(tmp_path / "m").checkpoint is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.zarr", "m", "run"]
    assert main([*words, "--set", "C=3"]) == 2
    assert "C is 10.0 there and 3 here" in capsys.readouterr().err
    assert_same_fit(mmcnb.load(tmp_path / "m"), first)


@pytest.mark.parametrize("place", ["rings.zarr/run", "m/run"])
def test_a_checkpoint_overlaps_nothing(store, tmp_path, capsys, place):
    folder = Path(store).parent / place if "zarr" in place else tmp_path / place
    assert main(["fit", store, "--model", str(tmp_path / "m"), "--checkpoint", str(folder)]) == 2
    assert "overlaps" in capsys.readouterr().err
    assert not folder.exists()


def test_a_stop_before_and_after_the_checkpoint_is_there(store, tmp_path, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mmcnb.open_samples", stop)
        assert main(command(store, tmp_path)) == 130
    assert "nothing half-written was left behind" in capsys.readouterr().err
    monkeypatch.setattr(CheckpointEngine, "run", stop)
    assert main(command(store, tmp_path)) == 130
    run = tmp_path / "run"
    assert capsys.readouterr().err == (
        f"mmcnb: stopped by the user; run the same command again to go on from {run}.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "moons.zarr"
    write_synthetic("moons", path, 130_000, 3)
    return path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_command_that_was_stopped_goes_on(many_rows, tmp_path, name):
    number = getattr(signal, name)
    words, passes = command(many_rows, tmp_path), tmp_path / "run" / "passes"
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
        run = tmp_path / "run"
        assert error == f"mmcnb: stopped by the user; run the same command again to go on from {run}.\n"
        assert [path.name for path in tmp_path.iterdir()] == ["run"]
    kept = {path: path.stat().st_mtime_ns for path in passes.iterdir() if not path.suffix}
    assert main(words) == 0
    assert kept
    assert all(path.stat().st_mtime_ns == written for path, written in kept.items())

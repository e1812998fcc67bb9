"""mmcnb on systems without POSIX: what Windows lacks is hidden, and the whole way of a table is gone."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mmcnb import _machine
from mmcnb.datasets import make_block
from mmcnb.stores.atomic import AtomicOutput

ROOT = Path(__file__).parent.parent
POSIX_MODULES = {"fcntl", "resource", "termios", "pwd", "grp", "posix"}
PRETEND = "from other_system import pretend; pretend()\n"


def elsewhere(code, *words, folder):
    """Run code in a process that takes itself for one on Windows; what it printed."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *sys.path])
    told = {"PYTHONPATH": path, "PYTHONWARNDEFAULTENCODING": "1", "PYTHONIOENCODING": "cp1252"}
    command = [sys.executable, "-c", PRETEND + code, *map(str, words)]
    done = subprocess.run(command, env=os.environ | told, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what Windows lacks is hidden from Linux alone")


@pytest.fixture
def table(tmp_path):
    X, _ = make_block("blobs", 0, 400, 3, random_state=0)
    path = tmp_path / "table.csv"
    np.savetxt(path, X, delimiter=",", header="a,b,c", comments="")
    return path


@pytest.mark.nightly
@pytest.mark.slow
@LINUX
def test_a_table_becomes_labels_by_the_command_line(table, tmp_path):
    code = """
import json, sys
from mmcnb.cli import main
print([main(words) for words in json.loads(sys.argv[1])])
"""
    method = ["--method", "sparse-kernel-mmc", "--set", "gamma=median", "--random-state", "0"]
    outputs = ["--model", "model", "--labels", "labels.zarr", "--checkpoint", "kept"]
    commands = [
        ["convert", table, "rows.zarr"],
        ["convert", table, "rows.zarr", "--overwrite"],
        ["info", "rows.zarr"],
        ["verify", "rows.zarr"],
        ["plan", "rows.zarr"],
        ["fit", "rows.zarr", *method, *outputs],
        ["fit", "rows.zarr", *method, *outputs],  # a finished checkpoint lets the command replace its outputs
        ["predict", "model", "rows.zarr", "--labels", "again.zarr"],
        ["predict", "model", "rows.zarr", "--labels", "again.zarr", "--overwrite"],
    ]
    printed = elsewhere(code, json.dumps(commands, default=str), folder=tmp_path)
    assert printed.splitlines()[-1] == str([0] * len(commands))
    made = {"table.csv", "rows.zarr", "model", "labels.zarr", "again.zarr", "kept"}
    assert {path.name for path in tmp_path.iterdir()} == made


@pytest.mark.nightly
@pytest.mark.slow
@LINUX
def test_an_estimator_fits_saves_and_loads(table, tmp_path):
    code = """
import sys
import numpy as np
import mmcnb
X = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1)
first = mmcnb.CPMMC(random_state=0, n_jobs=-1, memory_limit="1GiB").fit(X)
first.save("model")
first.save("model")
print((mmcnb.load("model").predict(X) == first.labels_).all(), mmcnb._config.resolve_memory_limit(None) > 0)
"""
    assert elsewhere(code, table, folder=tmp_path).split() == ["True", "True"]
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "model"}


@pytest.mark.slow
@LINUX
def test_the_play_refuses_what_windows_refuses(tmp_path):
    code = """
from pathlib import Path
Path("held").mkdir()
file = Path("held", "notes").open("wb")
for wrong in (
    lambda: Path("held").rename("moved"),
    lambda: Path("held", "notes").unlink(),
    lambda: open("/proc/meminfo"),
    lambda: exec("import fcntl", {"__name__": "mmcnb.some"}),
    lambda: exec("import os; os.sysconf", {"__name__": "mmcnb.some"}),
):
    try:
        wrong()
    except (OSError, ImportError, AttributeError) as error:
        print(type(error).__name__)
"""
    wanted = [
        "PermissionError",
        "PermissionError",
        "FileNotFoundError",
        "ModuleNotFoundError",
        "AttributeError",
    ]
    assert elsewhere(code, folder=tmp_path).split() == wanted


def test_no_module_of_posix_is_imported_unguarded():
    inside = []
    for room in ("mmcnb", "data_loaders", "benchmarks"):
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                named += [node.module] if isinstance(node, ast.ImportFrom) else []
                inside += [path.relative_to(ROOT).as_posix() for name in named if name in POSIX_MODULES]
    assert inside == ["mmcnb/_machine.py"]  # of macOS, after asking which system it is


# The facts of the machine, where the system says less


def test_facts_of_the_machine_are_sound():
    assert 1 <= _machine.cores() <= os.cpu_count()
    assert 0 < _machine.resident_memory() <= _machine.peak_memory()
    assert _machine.available_memory() > 2**20
    assert isinstance(_machine.processor(), str)


def test_a_control_group_limits_the_free_memory(tmp_path, monkeypatch):
    free = _machine.available_memory()
    monkeypatch.setattr(_machine, "GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert _machine.available_memory() == 2_000_000
    (tmp_path / "memory.current").write_text("4000000\n")
    assert _machine.available_memory() == 0
    (tmp_path / "memory.max").write_text("max\n")
    assert _machine.available_memory() > min(free, 2**30) // 2


def test_the_peak_is_told_without_proc(tmp_path, monkeypatch):
    held = bytearray(2**26)
    now = _machine.resident_memory()
    monkeypatch.setattr(_machine, "PROC", tmp_path)
    assert _machine.peak_memory() > now // 2
    assert len(held) == 2**26


# Replacing what is there


def test_a_store_that_cannot_move_into_place_leaves_the_old_one(tmp_path, monkeypatch):
    def folder(path, text):
        path.mkdir()
        (path / "zarr.json").write_text(text)

    folder(tmp_path / "rows.zarr", "old")
    rename = Path.rename

    def refuse(self, target):
        if self.parent.name == "new":
            raise PermissionError(13, "The file is used by another process")
        return rename(self, target)

    output = AtomicOutput(tmp_path / "rows.zarr", overwrite=True)
    monkeypatch.setattr("mmcnb.stores.atomic._renamed", lambda *_: False)
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(ValueError, match="could not be written"), output:
        folder(output.path, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.zarr"]
    assert (tmp_path / "rows.zarr" / "zarr.json").read_text() == "old"

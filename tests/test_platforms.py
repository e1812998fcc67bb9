"""mmcnb on systems without POSIX, whose parts are hidden from it; and what it asks of the system."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mmcnb
from mmcnb.datasets import make_block

ROOT = Path(__file__).parent.parent
PRETEND = "from other_system import pretend; pretend()\n"
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="what other systems lack is hidden from Linux alone"
)


def elsewhere(code, *words, folder):
    """Run code in a process that takes itself for one on Windows; what it printed."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *sys.path])
    settings = {
        "PYTHONPATH": path,
        "PYTHONWARNDEFAULTENCODING": "1",
        "PYTHONIOENCODING": "cp1252",
    }
    command = [sys.executable, "-c", PRETEND + code, *map(str, words)]
    process = subprocess.run(
        command, env=os.environ | settings, cwd=folder, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


COMMANDS = """
import json, sys
from mmcnb.cli import main

print([main(words) for words in json.loads(sys.argv[1])])
"""


@pytest.mark.nightly
@pytest.mark.slow
@linux
def test_a_table_becomes_labels_without_posix(tmp_path):
    X, _ = make_block("blobs", 0, 400, 3, random_state=0)
    rows = [",".join(map(str, row)) for row in X.tolist()]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c", *rows]))
    fit = "fit rows.zarr --method sparse-kernel-mmc --set gamma=median --random-state 0"
    commands = [
        "convert table.csv rows.zarr",
        "convert table.csv rows.zarr --overwrite",
        "info rows.zarr",
        "verify rows.zarr",
        "plan rows.zarr",
        f"{fit} --model model --labels labels.zarr --checkpoint kept",
        # it is finished: outputs are replaced
        f"{fit} --model model --labels labels.zarr --checkpoint kept",
        "predict model rows.zarr --labels again.zarr --jobs -1 --memory-limit 1GiB",
        "predict model rows.zarr --labels again.zarr --overwrite",
    ]
    printed = elsewhere(
        COMMANDS, json.dumps([command.split() for command in commands]), folder=tmp_path
    )
    assert printed.splitlines()[-1] == str([0] * len(commands))
    outputs = {"table.csv", "rows.zarr", "model", "labels.zarr", "again.zarr", "kept"}
    assert {path.name for path in tmp_path.iterdir()} == outputs


REFUSED = """
from pathlib import Path
Path("held").mkdir()
file = Path("held", "notes").open("wb")
for action in (
    lambda: Path("held").rename("moved"),
    lambda: Path("held", "notes").unlink(),
    lambda: open("/proc/meminfo"),
    lambda: exec("import fcntl", {"__name__": "mmcnb.some"}),
    lambda: exec("import os; os.sysconf", {"__name__": "mmcnb.some"}),
):
    try:
        action()
    except (OSError, ImportError, AttributeError) as error:
        print(type(error).__name__)
"""


@pytest.mark.nightly
@pytest.mark.slow
@linux
def test_the_play_refuses_what_windows_refuses(tmp_path):
    errors = [
        "PermissionError",
        "PermissionError",
        "FileNotFoundError",
        "ModuleNotFoundError",
    ]
    assert elsewhere(REFUSED, folder=tmp_path).split() == [*errors, "AttributeError"]


def test_the_memory_of_a_control_group_limits_a_fit(tmp_path, monkeypatch):
    # Internal: only in a container are the limit and the use of memory files that
    # differ from the machine's.
    monkeypatch.setattr("mmcnb._machine.GROUP", tmp_path)
    X, _ = make_block("blobs", 0, 100, 3)
    (tmp_path / "memory.max").write_text("2600000000\n")
    (tmp_path / "memory.current").write_text("600000000\n")
    assert mmcnb.CPMMC().plan(X).memory_limit <= 10**9
    (tmp_path / "memory.current").write_text("3000000000\n")
    least = mmcnb.CPMMC().plan(X).memory_limit
    assert least < 10**9
    (tmp_path / "memory.max").write_text("max\n")
    assert mmcnb.CPMMC().plan(X).memory_limit >= least


# Internal: how much memory a worker of Dask takes anew from the system shows in its
# seconds alone.
FAULTS = """
import resource
import numpy as np
from mmcnb._machine import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(2**22, np.int8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
keep_freed_memory()
faults()
print(before, faults())
"""


@pytest.mark.slow
@linux
def test_a_process_that_dask_started_takes_memory_from_the_system_once():
    environment = {"MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", FAULTS]
    process = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    before, after = map(int, process.stdout.split())
    assert after < before / 10

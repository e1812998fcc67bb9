"""The compile cache, where several processes save into it at once, and where it cannot be written."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
# Internal: routines of the library take seconds to compile; this one is made as they
# are.
MODULE = """
from mmcnb._numba import njit

@njit()
def halved(x):
    return x / 2
"""
# Both processes have read the index before either has written it, if nothing keeps them
# apart.
COMPILE = """
import sys, time
from numba.core.caching import IndexDataCacheFile

write = IndexDataCacheFile._save_index

def slowly(self, overloads):
    time.sleep(1.0)
    write(self, overloads)

IndexDataCacheFile._save_index = slowly
from halves import halved

print("ready", flush=True)
sys.stdin.readline()
print(halved(eval(sys.argv[1])))
"""
LOAD = """
from halves import halved

cache = halved._cache._cache_file
print(halved(3.0), halved(5), len(set(cache._load_index().values())), sum(halved.stats.cache_hits.values()))
"""
FULL_DISK = """
from numba.core.caching import IndexDataCacheFile

def full(self, overloads):
    raise OSError(28, "No space left on device")

IndexDataCacheFile._save_index = full
from halves import halved

print(halved(3.0), halved(5))
"""
# code without a file has no folder beside it
NO_FOLDER = f"{MODULE}\nprint(halved(3.0), halved(5))"


@pytest.fixture
def environment(tmp_path):
    """A process that sees a routine of a module, and a cache of its own."""
    (tmp_path / "halves.py").write_text(MODULE)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    return os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path}


def test_processes_that_save_at_once_do_not_take_each_others_place(environment):
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE, value],
            env=environment,
            text=True,
            **streams,
        )
        for value in ("3.0", "5")
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["1.5\n", "2.5\n"]
    command = [sys.executable, "-c", LOAD]
    printed = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["1.5", "2.5", "2", "2"]


@pytest.mark.parametrize("code", [FULL_DISK, NO_FOLDER], ids=["full disk", "no folder"])
def test_a_cache_that_cannot_be_written_stops_nothing_and_is_told_once(
    code, environment
):
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert process.stdout == "1.5 2.5\n", process.stderr
    assert process.stderr.count("the compile cache cannot be written") == 1
    assert "set NUMBA_CACHE_DIR to a writable folder" in process.stderr
    assert "Traceback" not in process.stderr

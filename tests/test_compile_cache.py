"""The compile cache, where several processes save into it at once."""

import os
import subprocess
import sys

import pytest

MODULE = """
from mmcnb._numba import njit

@njit()
def halved(x):
    return x / 2
"""
# Both processes have read the index before either has written it, if nothing keeps them apart.
COMPILE = """
import sys, time
from numba.core.caching import IndexDataCacheFile

write = IndexDataCacheFile._save_index

def slowly(self, overloads):
    time.sleep(2.0)
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


@pytest.mark.slow
def test_processes_that_save_at_once_do_not_take_each_others_place(tmp_path):
    (tmp_path / "halves.py").write_text(MODULE)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE, value],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for value in ("3.0", "5")
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [process.communicate()[0] for process in processes]
    assert found == ["1.5\n", "2.5\n"]
    command = [sys.executable, "-c", LOAD]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["1.5", "2.5", "2", "2"]


FULL = """
from numba.core.caching import IndexDataCacheFile

def full(self, overloads):
    raise OSError(28, "No space left on device")

IndexDataCacheFile._save_index = full
from halves import halved

print(halved(3.0), halved(5))
"""


def test_a_cache_that_cannot_be_written_any_more_stops_nothing(tmp_path):
    (tmp_path / "halves.py").write_text(MODULE)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", FULL], env=environment, capture_output=True, text=True)
    assert done.stdout == "1.5 2.5\n", done.stderr
    assert done.stderr.count("the compile cache cannot be written") == 1
    assert "Traceback" not in done.stderr

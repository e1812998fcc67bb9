"""What a fit tells of its compilation, from an empty cache and from a full one."""

import json
import logging
import os
import subprocess
import sys

import pytest

from mmcnb import _numba
from mmcnb._compiling import CompileClock

FIRST = """
import json, logging, time
import mmcnb
from mmcnb.engine.plan import RowShape
from mmcnb.datasets import make_block

logging.basicConfig(level=logging.INFO, format="%(message)s")
X, _ = make_block("blobs", 0, 200, 3, random_state=0)
planned = lambda: mmcnb.CPMMC().plan(RowShape(1000, 2)).compile_seconds
found = {"before": planned()}
for name in ("first", "second"):
    started = time.perf_counter()
    model = mmcnb.CPMMC(random_state=0).fit(X)
    wall, history = time.perf_counter() - started, model.history_
    columns = history["seconds"].max(), history["compile_seconds"].max()
    found[name] = [wall, model.report_["compile_seconds"], *columns]
found["after"] = planned()
found["warmup"] = mmcnb.warmup(mmcnb.CPMMC())
print(json.dumps(found))
"""


def run_first(cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout), done.stderr


@pytest.mark.nightly
@pytest.mark.slow
def test_a_fit_tells_its_compilation_apart(tmp_path):
    found, log = run_first(tmp_path)
    wall, compiled, seconds, column = found["first"]
    assert 0 < column <= compiled < wall
    assert seconds + column <= wall
    assert found["second"][1] == found["second"][3] == 0
    assert found["before"] > found["after"] == 0
    assert log.count("compiling (once)") == 1
    again, log = run_first(tmp_path)
    assert again["first"][1] == again["warmup"] == 0
    assert again["before"] == 0
    assert "compiling" not in log


@pytest.mark.nightly
@pytest.mark.slow
def test_a_warm_default_leaves_nothing_for_its_plan_to_count(tmp_path):
    code = (
        "import mmcnb; from mmcnb.engine.plan import RowShape; "
        "mmcnb.warmup(mmcnb.MaximumMarginClustering()); "
        "print(mmcnb.MaximumMarginClustering().plan(RowShape(1000, 2)).compile_seconds); "
        "from mmcnb.datasets import make_shape; X, _ = make_shape('two-rings', 1000, random_state=0); "
        "print(mmcnb.MaximumMarginClustering(random_state=0).fit(X).report_['compile_seconds'])"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert [float(line) for line in done.stdout.split()] == [0.0, 0.0]


def test_the_clock_runs_while_any_thread_compiles(monkeypatch):
    now = iter(range(100))
    monkeypatch.setattr("mmcnb._compiling.time.perf_counter", lambda: next(now))
    clock = CompileClock()
    clock.start()  # at 0
    clock.start()
    clock.stop()
    assert clock.running
    assert clock.seconds == 1
    clock.stop()  # at 2
    assert not clock.running
    assert [clock.seconds, clock.seconds] == [2, 2]


def test_one_line_says_that_the_cache_cannot_be_written(monkeypatch, caplog):
    compiler, _ = _numba.numba.njit, _numba._say_once_that_nothing_is_kept.cache_clear()

    def without_folder(*function, **options):
        if options.pop("cache", False):
            raise RuntimeError("no locator available")
        return compiler(*function, **options)

    monkeypatch.setattr(_numba.numba, "njit", without_folder)
    with caplog.at_level(logging.WARNING, "mmcnb"):
        routines = [_numba.njit()(function) for function in (lambda x: x + 1, lambda x: x + 2)]
    assert [routine(1) for routine in routines] == [2, 3]
    (said,) = (record.message for record in caplog.records)
    assert said.startswith("the compile cache cannot be written")
    assert "NUMBA_CACHE_DIR" in said

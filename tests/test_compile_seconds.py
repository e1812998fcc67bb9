"""What a fit tells of its compilation, from an empty cache and from a full one."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
FITS = """
import json, logging, time
import mmcnb
from mmcnb.engine.plan import RowShape
from mmcnb.datasets import make_block

logging.basicConfig(level=logging.INFO, format="%(message)s")
X, _ = make_block("blobs", 0, 200, 3, random_state=0)
planned = lambda: mmcnb.CPMMC().plan(RowShape(1000, 2)).compile_seconds
report = {"before": planned()}
for name in ("first", "second"):
    started = time.perf_counter()
    model = mmcnb.CPMMC(random_state=0).fit(X)
    wall, history = time.perf_counter() - started, model.history_
    columns = history["seconds"].max(), history["compile_seconds"].max()
    report[name] = [wall, model.report_["compile_seconds"], *columns]
report["after"] = planned()
report["warmup"] = mmcnb.warmup(mmcnb.CPMMC())
print(json.dumps(report))
"""
WARM_DEFAULT = """
import mmcnb
from mmcnb.cli import main
from mmcnb.datasets import make_shape
from mmcnb.engine.plan import RowShape

assert main(["doctor", "--warm"]) == 0
X, _ = make_shape("two-rings", 1000, random_state=0)
print()
print(mmcnb.MaximumMarginClustering().plan(RowShape(1000, 2)).compile_seconds)
print(mmcnb.MaximumMarginClustering(random_state=0).fit(X).report_["compile_seconds"])
"""


def completed(code, cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )


def test_a_fit_tells_its_compilation_apart(tmp_path):
    process = completed(FITS, tmp_path)
    report = json.loads(process.stdout)
    wall, compiled, seconds, column = report["first"]
    assert 0 < column <= compiled < wall
    assert seconds + column <= wall
    assert report["second"][1] == report["second"][3] == 0
    assert report["before"] > report["after"] == 0
    assert process.stderr.count("compiling (once)") == 1
    process = completed(FITS, tmp_path)
    report = json.loads(process.stdout)
    assert report["first"][1] == report["warmup"] == report["before"] == 0
    assert "compiling" not in process.stderr


def test_doctor_leaves_nothing_to_compile_for_a_default_fit(tmp_path):
    assert completed(WARM_DEFAULT, tmp_path).stdout.split()[-2:] == ["0.0", "0.0"]

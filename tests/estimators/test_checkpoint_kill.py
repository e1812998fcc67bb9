"""kill -9 at random moments, then the same fit again: nothing is lost or done twice, and nothing differs.

A helper process imports everything once and forks for each fit; the fork is what gets killed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from mmcnb.datasets import write_synthetic

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a fork is POSIX's")

KERNEL = {"gamma": 2.0, "n_landmarks": 16}
FITS = {
    "moons": ("SparseKernelMMC", "moons", 130_000, KERNEL | {"eta": 1e-4}),
    "larger sample": (
        "SparseKernelMMC",
        "moons",
        140_000,
        KERNEL | {"eta": 3e-3, "scale": "standard", "C": 3.0},
    ),
    "linear": ("CPMMC", "blobs", 130_000, {"eta": 1e-4, "min_share": 1.0}),
    "least squares": (
        "UnsupervisedRLS",
        "rings",
        131_000,  # of more, a larger sample settles the labels, and few passes are left to kill
        {"n_clusters": 5, "n_landmarks": 40, "max_passes": 20, "scale": "standard"},
    ),
}
KILLS = 7  # in each folder: 28 in all

HELPER = """
import hashlib, json, os, sys, warnings
import numpy as np
import mmcnb

warnings.simplefilter("ignore")

def fit(name, store, out, parameters):
    model = getattr(mmcnb, name)(**parameters, n_init=1, sample_size=200, random_state=0).fit(store)
    arrays, history = model.model_.arrays(), model.history_
    bits = b"".join(arrays[key].tobytes() for key in sorted(arrays)) + model.labels_.tobytes()
    done = ["reads", "sweeps", "bytes", "resumed", "seconds", "compile_seconds"]
    del model.report_["compile_seconds"]
    found = {
        "bits": hashlib.sha256(bits).hexdigest(),
        "facts": repr((model.objective_, getattr(model, "rho_", None), model.converged_, model.report_)),
        "told": repr(history.drop(columns=done).to_dict("list")),
        "rounds": history.loc[history["stage"] == "all rows", ["reads", "resumed"]].values.tolist(),
    }
    with open(out, "w") as file:
        json.dump(found, file)

rng = np.random.default_rng(0)
for name in ("SparseKernelMMC", "CPMMC", "UnsupervisedRLS"):
    getattr(mmcnb, name)(n_init=1, n_jobs=1, random_state=0).fit(rng.normal(size=(200, 3)).astype("f4"))
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        fit(**json.loads(line))
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Helper:
    """Runs fits in forks of one process."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HELPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "ready"

    def _line(self):
        return self.process.stdout.readline().strip()

    def start(self, **task):
        """Begin a fit; the number of its process."""
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        return int(self._line())

    def wait(self):
        """Wait for the end of the fit; its status."""
        return int(self._line())


@pytest.fixture(scope="module")
def helper():
    helper = Helper()
    yield helper
    helper.process.communicate(timeout=60)


class Run:
    """A fit with a checkpoint, as often as it is begun."""

    def __init__(self, helper, case, store, folder):
        name, _, _, parameters = FITS[case]
        self.helper, self.folder, self.out = helper, folder, folder.with_suffix(".json")
        parameters = parameters | {"checkpoint": str(folder)}
        self.task = {"name": name, "store": store, "out": str(self.out), "parameters": parameters}

    def entries(self):
        """When each pass was recorded."""
        return {path.name: path.stat().st_mtime_ns for path in (self.folder / "passes").glob("??????")}

    def finish(self):
        self.helper.start(**self.task)
        assert self.helper.wait() == 0
        return json.loads(self.out.read_text())

    def kill(self, wanted, delay):
        """Kill the fit a moment after it has recorded so many passes; whether it was at work still."""
        self.out.unlink(missing_ok=True)
        process = self.helper.start(**self.task)
        deadline = time.monotonic() + 30
        while len(self.entries()) < wanted and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(delay)
        os.kill(process, signal.SIGKILL)
        return os.WIFSIGNALED(self.helper.wait()) and not self.out.exists()


@pytest.mark.slow
@pytest.mark.parametrize("case", FITS)
def test_killed_at_random_moments_and_resumed_it_ends_the_same(case, tmp_path, helper):
    store, draw = str(tmp_path / "rows.zarr"), random.Random(case)
    write_synthetic(FITS[case][1], store, FITS[case][2], 3, random_state=1)
    undisturbed = Run(helper, case, store, tmp_path / "undisturbed")
    whole = undisturbed.finish()
    passes = len(undisturbed.entries())
    killed = []
    run = Run(helper, case, store, tmp_path / "killed")
    for wanted in sorted(draw.randrange(passes * 3 // 4) for _ in range(KILLS)):
        kept = run.entries()
        if run.kill(wanted, draw.uniform(0, 0.01)):
            killed.append(len(run.entries()))
        assert run.entries().items() >= kept.items()
    kept = run.entries()
    resumed = run.finish()
    assert run.entries().items() >= kept.items()  # nothing that was recorded was recorded again
    for part in ("bits", "facts", "told"):
        assert resumed[part] == whole[part]
    assert_finished_rounds_are_not_done_again(resumed["rounds"], len(kept))
    left = sorted(path.relative_to(run.folder).as_posix() for path in run.folder.rglob("*"))
    assert left == ["lock", "passes", *(f"passes/{k:06d}" for k in range(passes)), "run.json"]
    assert len(killed) >= 0.7 * KILLS  # on a busy machine a fit may end before its kill comes
    assert sum(count > 0 for count in killed) >= len(killed) / 2


def assert_finished_rounds_are_not_done_again(rounds, kept):
    """What was kept comes first, and read nothing; each round in it is told to be resumed."""
    resumed = [flag for _, flag in rounds]
    count = sum(resumed)
    assert resumed == [True] * count + [False] * (len(resumed) - count)
    assert all(reads == 0 for reads, _ in rounds[:count])
    assert count <= kept

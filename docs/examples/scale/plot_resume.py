"""
Does a killed fit start again?
==============================

No: with a checkpoint folder, it resumes after the last pass that it completed, and its
result has the same bits as that of a fit that was never stopped. In this example, a
separate process is killed in the middle of its fit.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mmcnb
from mmcnb.datasets import write_synthetic

folder = tempfile.TemporaryDirectory()
rows, run = Path(folder.name) / "rows.zarr", Path(folder.name) / "run"
write_synthetic("rings", rows, 200_000, n_features=16, random_state=0)

script = "import sys, mmcnb; mmcnb.SparseKernelMMC(random_state=0, checkpoint=sys.argv[2]).fit(sys.argv[1])"
process = subprocess.Popen([sys.executable, "-c", script, rows, run])
while process.poll() is None and not (run / "passes" / "000005").exists():
    time.sleep(0.01)
process.kill()
process.wait()
print("exit status of the killed fit:", process.returncode)
recorded = sorted(path.name for path in (run / "passes").iterdir())
print("passes that were recorded:", len(recorded))

# %% Calling the same fit again resumes it. The passes of the first process are read from
# the folder, without reading any row again.

resumed = mmcnb.SparseKernelMMC(random_state=0, checkpoint=run).fit(rows)
whole = mmcnb.SparseKernelMMC(random_state=0).fit(rows)
print("same labels:", np.array_equal(resumed.labels_, whole.labels_))
print("same objective, to the last bit:", resumed.objective_ == whole.objective_)
print(resumed.history_.groupby(["stage", "resumed"]).size())

# %% Each point is a pass over the rows, at the time when its total was recorded. The
# search on the sample does not read the store, so it has no record and runs again,
# which explains the gaps.

passes = sorted((run / "passes").iterdir())
times = np.array([path.stat().st_mtime for path in passes])
colours = ["tab:blue" if path.name in recorded else "tab:orange" for path in passes]
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.scatter(times - times[0], range(len(passes)), c=colours)
ax.set(
    xlabel="seconds since the first record",
    ylabel="pass",
    title="blue: before the kill",
)
plt.show()
folder.cleanup()

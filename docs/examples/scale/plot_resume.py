"""
What is left of a fit that was killed?
======================================

All passes that it had completed. With a checkpoint folder, the same fit takes them from there and ends with the same bits as one that was never
stopped. Here a process of its own is killed in the middle of its fit.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import mmcnb
from mmcnb.synthetic import write_synthetic

folder = tempfile.TemporaryDirectory()
rows, run = Path(folder.name) / "rows.zarr", Path(folder.name) / "run"
write_synthetic(rows, "rings", 200_000, n_features=16, random_state=0)

script = "import sys, mmcnb; mmcnb.SparseKernelMMC(random_state=0, checkpoint=sys.argv[2]).fit(sys.argv[1])"
process = subprocess.Popen([sys.executable, "-c", script, rows, run])
while process.poll() is None and len(list(run.rglob("*"))) < 6:
    time.sleep(0.01)
process.kill()
process.wait()
print("exit status of the killed fit:", process.returncode)
print("files in the checkpoint:", len(list(run.rglob("*"))))

# %%
# The same fit again resumes. Passes with "resumed" came from the folder, and no row was read for them.

resumed = mmcnb.SparseKernelMMC(random_state=0, checkpoint=run).fit(rows)
whole = mmcnb.SparseKernelMMC(random_state=0).fit(rows)
print("sweeps from the folder:", int(resumed.history_["resumed"].sum()), "of", len(resumed.history_))
print("same labels:", np.array_equal(resumed.labels_, whole.labels_))
print("same objective, to the last bit:", resumed.objective_ == whole.objective_)

# %%
# Bars show the sweeps over all rows in order: those that were recorded, and those that remained.

sweeps = resumed.history_["resumed"].to_numpy(dtype=bool)
figure, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
ax.bar(range(len(sweeps)), 1, color=np.where(sweeps, "tab:blue", "tab:orange"), width=1.0)
ax.set(yticks=[], xlabel="row of the history (blue: from the checkpoint)")
plt.show()
folder.cleanup()

"""What the page of the compiled routines says is done by its code."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from scipy.spatial.distance import cdist

PAGE = (Path(__file__).parent.parent / "docs/own_kernels.md").read_text()
SAVE = """
import own
own.np.savez("found.npz", K=own.K, rows=own.rows.toarray(), basis=own.B_sparse, labels=own.labels,
    landmarks=own.landmarks, gamma=own.gamma, versions=len(own.nearest_landmarks.signatures))
"""


@pytest.mark.slow
def test_its_code_runs(tmp_path):
    # A file, because numba keeps no cache for code that has none; a process, because prange starts threads.
    codes = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "own.py").write_text("\n".join(codes))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SAVE], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert f"# {done.stdout.strip()}\n" in PAGE

    own = np.load(tmp_path / "found.npz")
    K = np.exp(-0.5 * cdist(own["rows"], own["basis"], "sqeuclidean"))
    np.testing.assert_allclose(own["K"], K, atol=1e-12)
    rows = zarr.open_array(tmp_path / "rows.zarr")[:]
    values = np.exp(-own["gamma"] * cdist(rows, own["landmarks"], "sqeuclidean"))
    np.testing.assert_array_equal(own["labels"], values.argmax(axis=1))
    np.testing.assert_array_equal(own["labels"][:50], np.arange(50))
    assert own["versions"] == 1

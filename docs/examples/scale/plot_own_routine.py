"""
Can I call the compiled kernels from my own loops?
==================================================

Yes. ``mmcnb.kernels`` checks its arguments; ``mmcnb.kernels.unchecked`` has the same
routines for your own njit code. In this example, a few lines find unusual rows: the
rows with the lowest density under a Gaussian kernel. The matrix of all pairs of rows is
never formed.
"""

import matplotlib.pyplot as plt
import numba
import numpy as np

from mmcnb.datasets import make_shape
from mmcnb.kernels import rbf_kernel_block_into
from mmcnb.kernels.unchecked import rbf_kernel_block_into as rbf_unchecked

# %%
# If the checked function is called with an array of a wrong shape, it raises an error
# instead of returning a wrong number.

try:
    rbf_kernel_block_into(np.zeros((4, 5)), np.zeros((3, 2)), 0.5, np.empty((4, 3)))
except ValueError as refusal:
    print(refusal)

# %% In your own loop, over blocks of 256 rows, each thread fills a small block of
# kernel values.


@numba.njit(parallel=True)
def densities(X, gamma):
    """Return the mean kernel value between each row and all rows."""
    n_rows = X.shape[0]
    density = np.empty(n_rows)
    for block in numba.prange((n_rows + 255) // 256):
        start, stop = 256 * block, min(256 * block + 256, n_rows)
        values = np.empty((stop - start, n_rows))
        rbf_unchecked(X[start:stop], X, gamma, values)
        for row in range(stop - start):
            density[start + row] = values[row].mean()
    return density


X, _ = make_shape("three-rings", random_state=0)
X = np.vstack(
    [
        X,
        np.random.default_rng(0).uniform(
            X.min(axis=0), X.max(axis=0), size=(40, X.shape[1])
        ),
    ]
)
X = np.ascontiguousarray(X, dtype=np.float64)
density = densities(X, 50.0)
print("least densities:", np.sort(density)[:3].round(5))

# %% The forty rows with the lowest density are drawn in red. Most of them belong to the
# rows that were scattered at random over the plane of the rings.

odd = np.argsort(density)[:40]
print("of them scattered:", int((odd >= len(X) - 40).sum()))
figure, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
ax.scatter(*X[:, :2].T, c=np.sqrt(density), cmap="viridis", s=5)
ax.scatter(*X[odd, :2].T, facecolors="none", edgecolors="tab:red", s=40)
ax.set(xticks=[], yticks=[], aspect="equal")
plt.show()

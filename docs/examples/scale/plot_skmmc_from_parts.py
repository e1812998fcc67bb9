"""
Can I build SKMMC from its parts?
=================================

Yes: cutting planes, basis vectors and the quadratic program are public. The loop below
streams a Zarr store and produces the same model as ``SparseKernelMMC(basis="paper")``,
to the last bit.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.utils.random import sample_without_replacement

import mmcnb
from mmcnb import kernels
from mmcnb.samples import BLOCK_ROWS
from mmcnb.stores import create_dense_store

GAMMA, C, ETA = 0.05, 10.0, 1.0
X, _ = make_blobs(
    10_000, 5, centers=[[-2] * 5, [2] * 5], cluster_std=2.0, random_state=0
)
path = f"{tempfile.mkdtemp()}/rows.zarr"
with create_dense_store(path, 5, dtype="float64") as store:
    store.append(X)
samples, n = mmcnb.open_samples(path), len(X)


# %%
# Each function reads blocks of the store and needs only one of them in memory.


def kernel(rows, basis):
    out = np.empty((len(rows), len(basis)))
    kernels.rbf_kernel_block_into(rows, basis, GAMMA, out)
    return out


def sweep(y, basis, coef, offset, rho):
    rows, f, totals = [], [], 0.0
    for start in range(0, n, BLOCK_ROWS):
        K = kernel(samples.block(start, min(start + BLOCK_ROWS, n)), basis)
        signs = y[start : start + BLOCK_ROWS], np.ones(len(K))
        active, _, sums = kernels.most_violated_constraint(K, *signs, coef, offset, rho)
        rows, f = [*rows, active], [*f, kernels.decision_values(K, coef, offset)]
        totals = totals + sums
    return (
        np.concatenate(rows),
        np.where(np.concatenate(f) >= 0, 1, -1).astype(np.int8),
        totals[2] / n,
    )


# %%
# The estimator draws its sample first, and then a seed. The rounds end when no label changes.

draws = np.random.RandomState(0)
sample = samples.gather(
    np.sort(sample_without_replacement(n, 2000, random_state=draws))
)
seed = draws.randint(2**31 - 1)
mean = mmcnb.estimate_basis(path, np.ones(n), gamma=GAMMA, random_state=seed)
low, high = KMeans(2, n_init=1, random_state=seed).fit(sample).cluster_centers_
y, new = (
    None,
    np.where(X @ (high - low) + (low @ low - high @ high) / 2 >= 0, 1, -1).astype(
        np.int8
    ),
)
while y is None or (y != new).any():
    y, active = new, np.ones(n, np.int8)
    basis, A, s, t, slack, rho = mean.basis, np.empty((0, 1)), [], [], np.inf, 0.0
    while not s or slack > max(xi, 0.0) + ETA * rho:  # noqa: F821
        z = active * y * 1.0
        plane = mmcnb.estimate_basis(path, z, gamma=GAMMA, random_state=seed)
        s, t = [*s, active.sum() / n], [*t, z.sum() / n]
        A = np.vstack(
            [np.pad(A, ((0, 0), (0, 1))), np.append(np.zeros(A.shape[1]), plane.beta)]
        )
        A[-1, 0] -= t[-1] * mean.beta[0]
        basis = np.vstack([basis, plane.basis])
        gram = A @ kernel(basis, basis) @ A.T
        given = (gram + gram.T) / 2, np.array(s), np.array(t), C, 0.0, True
        multipliers, rho, xi, beta, _ = kernels.plane_qp(*given)
        coef = multipliers @ A
        offset = beta - float(kernel(basis, mean.basis) @ mean.beta @ coef)
        active, new, slack = sweep(y, basis, coef, offset, rho)

# %%
# The estimator gives the same model.

model = mmcnb.SparseKernelMMC(
    C=C,
    gamma=GAMMA,
    basis="paper",
    continuation=False,
    eta=ETA,
    init="k-means",
    n_init=1,
    random_state=0,
).fit(path)
print(
    np.array_equal(model.model_.basis, basis),
    np.array_equal(abs(model.model_.rule.coef), abs(coef)),
)
plt.scatter(*X[::10, :2].T, c=new[::10], s=4)
plt.scatter(*basis[:, :2].T, c="black", marker="x")
plt.title("Two clusters, and the basis vectors of the planes")
plt.show()

"""
Which steps of the papers can I import?
=======================================

You can import all steps that take time: landmarks, kernel values, constraints, the
quadratic program, and the sums for a basis vector. This example clusters two moons by
SKMMC on landmarks, one small step after another.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from mmcnb import kernels
from mmcnb.datasets import make_shape

X, truth = make_shape("two-moons", 2000, random_state=0)
X, n, GAMMA, ETA = np.ascontiguousarray(X, np.float64), len(X), 2.0, 0.01
ones = np.ones(n)

# %% k-means++ draws landmarks. The Nyström map gives each row features whose inner
# products approximate the kernel.


def kernel(rows, basis):
    values = np.empty((len(rows), len(basis)))
    kernels.rbf_kernel_block_into(rows, basis, GAMMA, values)
    return values


uniforms = np.random.default_rng(0).random(60)
landmarks = X[kernels.kmeans_plusplus_rows(X, ones, uniforms)]
gram = kernel(landmarks, landmarks)
F = kernel(X, landmarks) @ kernels.nystroem_map(gram, 1e-9)
print("largest error of the map:", abs(F @ F.T - kernel(X, X)).max().round(4))

# %% A round of CCCP keeps the labels fixed. It adds the most violated constraint and
# solves the quadratic program over all constraints, until the violation is within the
# tolerance.


def cccp_round(y, C):
    y, mean, planes, s, t, xi, rho, slack = (
        y.astype(np.int8),
        F.mean(axis=0),
        [],
        [],
        [],
        0.0,
        0.0,
        np.inf,
    )
    active, row_sum = np.ones(n), F.T @ y
    while slack > max(xi, 0.0) + ETA * rho:
        s, t = [*s, active.mean()], [*t, (active * y).mean()]
        planes = [*planes, row_sum / n - t[-1] * mean]
        A = np.array(planes)
        given = A @ A.T, np.array(s), np.array(t), C, 0.0, True
        multipliers, rho, xi, beta, _ = kernels.plane_qp(*given)
        w = multipliers @ A
        offset = float(beta - w @ mean)
        active, row_sum, sums = kernels.most_violated_constraint(
            F, y, ones, w, offset, rho
        )
        slack = sums[2] / n
    f = kernels.decision_values(F, w, offset)
    return np.where(f >= 0, 1, -1), f


# %%
# At C = 2, the labels no longer change after a few rounds.

y, old = np.where(X[:, 1] > X[:, 1].mean(), 1, -1), np.zeros(n)
while (y != old).mean() > 0.001:
    old, (y, f) = y, cccp_round(y, 2.0)
print("adjusted Rand index:", round(adjusted_rand_score(truth, y), 2))

# %% With more than two clusters, the most violated constraint has another form. One
# step towards a basis vector of a cluster's mean uses the sums of eq. (47).

labels, scores = (
    (y > 0).astype(np.int64),
    np.ascontiguousarray(np.stack([-f, f], axis=1)),
)
print(
    "in the constraint:",
    kernels.most_violated_runner_ups(F, scores, labels, ones, 1.0)[2][0],
)
total, weight = kernels.basis_fixed_point_sums(X, y.astype(float), X[0], GAMMA)
plt.scatter(*X.T, c=f, s=4, cmap="coolwarm")
plt.scatter(*landmarks.T, c="black", marker="x", s=15)
plt.scatter(*(total / weight), c="black", marker="*", s=90)
plt.title("Decision values, landmarks, a step to a basis vector")
plt.show()

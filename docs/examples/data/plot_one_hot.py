"""
Can it cluster one-hot columns without making them dense?
=========================================================

Yes: SciPy CSR rows stay sparse, and the compiled routines read them without conversion.
If MMCNB_DATA_DIR names a folder with the UCI adult data, the rows are a sample of these
data, in which 14 questions about each person are 123 columns. Otherwise, the example
generates rows of the same form.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import mmcnb
from mmcnb.metrics import balanced_clustering_error


def made_answers(n_rows, n_questions=14, n_answers=8):
    """Generate one-hot columns for two groups that differ in how often they give each answer."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, n_rows)
    habits = random.dirichlet(np.full(n_answers, 0.5), size=(2, n_questions))
    given = (random.random((n_rows, n_questions, 1)) > habits.cumsum(axis=2)[y]).sum(
        axis=2
    )
    columns = (
        given.clip(max=n_answers - 1) + n_answers * np.arange(n_questions)
    ).ravel()
    starts = np.arange(0, columns.size + 1, n_questions)
    return sp.csr_array(
        (np.ones(columns.size), columns, starts),
        shape=(n_rows, n_answers * n_questions),
    ), y


if os.environ.get("MMCNB_DATA_DIR"):
    from mmcnb.datasets import load

    X, y = load("adult", rows=10_000)
else:
    X, y = made_answers(10_000)
print(
    f"{X.shape[0]:,} x {X.shape[1]}, {X.nnz / np.prod(X.shape):.0%} of the values not zero"
)

# %% :class:`mmcnb.CPMMC` is linear and needs neither a kernel nor a basis, so the time
# of a pass is proportional to the number of non-zero entries.

model = mmcnb.CPMMC(random_state=0).fit(X)
print("sizes:", np.bincount(model.labels_))
print(
    f"balanced error against the known classes: {balanced_clustering_error(y, model.labels_):.1%}"
)
print(model.plan(X))

# %%
# The weights of the model show which columns separate the groups.

weights = model.coef_.ravel()
order = np.argsort(-np.abs(weights))[:16]
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.bar([str(column) for column in order], weights[order])
ax.set(xlabel="column", ylabel="weight", title="columns with the largest weights")
plt.show()

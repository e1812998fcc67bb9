"""Rows with two clusters or three, and fits of every estimator that take milliseconds."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import mmcnb
from mmcnb.engine.plan import plan_fit

ESTIMATORS = ("SparseKernelMMC", "KernelCPMMC", "CPMMC")

STREAMED = {"sample_size": 200, "n_init": 1}  # so that many rows stream by
ON_LANDMARKS = STREAMED | {"gamma": 0.3, "n_landmarks": 8}
TWO_KERNELS = STREAMED | {
    "kernels": [("rbf", {"gamma": 0.3}), "linear"],
    "n_landmarks": 8,
    "max_rounds": 3,
}
# Every estimator under its name, and then those of its settings that go other ways
# through the rows.
VARIANTS = {
    "SparseKernelMMC": mmcnb.SparseKernelMMC(**ON_LANDMARKS),
    "CPMMC": mmcnb.CPMMC(**STREAMED),
    "KernelCPMMC": mmcnb.KernelCPMMC(gamma=0.3, n_init=1),
    "CrammerSingerMMC": mmcnb.CrammerSingerMMC(3, **ON_LANDMARKS),
    "UnsupervisedRLS": mmcnb.UnsupervisedRLS(3, **ON_LANDMARKS),
    "EvolutionaryMMC": mmcnb.EvolutionaryMMC(sample_size=80, n_init=2),
    "MultipleKernelClustering": mmcnb.MultipleKernelClustering(**TWO_KERNELS),
    "KernelKMeans": mmcnb.KernelKMeans(3, **ON_LANDMARKS),
    "MaximumMarginClustering": mmcnb.MaximumMarginClustering(n_nodes=200),
    "scaled columns": mmcnb.SparseKernelMMC(
        scale="standard", threshold="fixed", **ON_LANDMARKS
    ),
    "threshold by quantiles": mmcnb.CPMMC(
        scale="standard", min_share=1.0, max_rounds=3, **STREAMED
    ),
    "sizes that are asked for": mmcnb.UnsupervisedRLS(
        3, cluster_sizes=[0.5, 0.3, 0.2], **ON_LANDMARKS
    ),
    "several kernels, three": mmcnb.MultipleKernelClustering(3, **TWO_KERNELS),
    "evolution on landmarks": mmcnb.EvolutionaryMMC(
        sample_size=80, n_init=2, n_landmarks=10
    ),
    "three, on the graph": mmcnb.MaximumMarginClustering(
        3, n_nodes=200, kernel="graph", metric="cosine"
    ),
}
OF_THIS_PROCESS = ["seconds", "compile_seconds", "reads", "sweeps", "bytes", "resumed"]


def rows_of(name, n, dtype=np.float64):
    """Rows in three groups, with equal rows and zeros; few for the method that holds all kernel values."""
    rng = np.random.default_rng(1)
    n = 300 if name == "KernelCPMMC" else n
    X = rng.standard_normal((n, 3)) * 1.3
    X[:, :2] += np.array([[6, 1], [1, -4], [-4, 4]])[
        rng.choice(3, n, p=[0.5, 0.3, 0.2])
    ]
    X[::7] = X[0]
    X[np.abs(X) < 0.5] = 0
    return X.astype(dtype)


def variant(name, **parameters):
    """One of the variants, with a fixed seed."""
    return clone(VARIANTS[name]).set_params(**{"random_state": 0} | parameters)


def fitted(name, X, sample_weight=None, **parameters):
    return variant(name, **parameters).fit(X, sample_weight=sample_weight)


def make_blobs(n, d=3, gap=5.0, seed=0, dtype=np.float64):
    """Two round groups with a few rows between them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 0] += np.where(rng.random(n) < 0.6, gap / 2, -gap / 2)
    return X.astype(dtype)


def make_rings(n, d=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = np.where(rng.random(n) < 0.5, 1.0, 0.4)
    noise = rng.standard_normal((n, d)) * 0.05
    noise[:, :2] += np.c_[np.cos(angle), np.sin(angle)] * radius[:, None]
    return noise.astype(dtype)


def make_sparse(n, d=30, seed=0, dtype=np.float64):
    """Two topics: rows that mostly use the first or the second half of the columns."""
    rng = np.random.default_rng(seed)
    topic = rng.random(n) < 0.55
    likely = np.where((np.arange(d) < d // 2)[None, :] == topic[:, None], 0.5, 0.03)
    return scipy.sparse.csr_array(
        ((rng.random((n, d)) < likely) * (0.5 + rng.random((n, d)))).astype(dtype)
    )


def make(name, **parameters):
    """An estimator with a fixed width, so that small fits take milliseconds."""
    if name != "CPMMC":
        parameters = {"gamma": 0.5} | parameters
    return getattr(mmcnb, name)(**({"random_state": 0} | parameters))


def bits(model, X):
    """Labels and decision values, to the bit."""
    return (
        model.labels_.tobytes(),
        model.decision_function(X).tobytes(),
        model.objective_,
    )


def facts(model, X):
    """All that a fit tells, to the bit, but for what tells of the process that ran and of the store."""
    labels, decision_values, objective = bits(model, X)
    report = {
        name: value for name, value in model.report_.items() if name != "warnings"
    }
    return {
        "labels": labels,
        "decision values": decision_values,
        "objective": objective,
        "report": re.sub(r"'\w*seconds': [\d.e-]+", "", repr(report)),
        "history": model.history_.drop(columns=OF_THIS_PROCESS).to_csv(),
    }


def differing(one, other):
    """The names of the facts in which two fits differ."""
    return [name for name in one if one[name] != other[name]]


def same_clusters(one, other):
    """Whether two labelings are the same up to numbering."""
    return np.array_equal(one, other) or np.array_equal(one, 1 - np.asarray(other))


@pytest.fixture
def keep_columns_in(monkeypatch):
    """A function that makes every plan keep its kernel columns in one place."""

    def keep(store):
        def plan(*args, **options):
            return replace(plan_fit(*args, **options), store=store)

        # Internal: a plan leaves memory only for kernel columns of more than 1 GiB.
        monkeypatch.setattr("mmcnb.estimators.base.plan_fit", plan)

    return keep

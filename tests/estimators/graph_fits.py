"""Rows, fits and facts that the tests of the graph kernel share."""

import numpy as np

import mmcnb

QUICK = {"n_init": 2, "sample_size": 200, "random_state": 0}


def blobs(n=600, k=3, d=3, gap=4.0, seed=0, dtype=np.float64):
    """Groups that touch, so that where a row belongs is not always plain."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return (gap * rng.standard_normal((k, d))[y] + rng.standard_normal((n, d))).astype(dtype), y


def graph_rls(n_clusters=3, kernel="graph", **parameters):
    return mmcnb.UnsupervisedRLS(n_clusters, kernel=kernel, **QUICK | parameters)


def nodes(n_nodes, **settings):
    return mmcnb.GraphKernel(n_nodes=n_nodes, **settings)


def facts(model, probe):
    """What must be the same to the bit."""
    rows = model.history_[["stage", "start", "round", "objective", "changed"]].to_numpy(dtype=str)
    arrays = {name: array.tobytes() for name, array in model.model_.arrays().items()}
    values = model.decision_function(probe).tobytes(), model.transform(probe[:50]).tobytes()
    return model.labels_.tobytes(), arrays, values, model.objective_, model.report_, rows.tolist()

"""Outliers added to sets: AUC of our score beside those of HDBSCAN and LocalOutlierFactor."""

import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.methods import DENSITY, FRONT_DOOR
from benchmarks.protocol import facts, fit
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._choice_problems import TEXT, Problem, rows_of
from benchmarks.studies._choice_tables import BOTH, with_facts
from benchmarks.studies._number_made import far_clumps, uniform_rows
from benchmarks.studies._number_sets import sets_of
from benchmarks.tables import Result

FACTOR = "LocalOutlierFactor"
UNIFORM = "uniform"
CLUMPS = "clumps"
MADE = {UNIFORM: uniform_rows, CLUMPS: far_clumps}
SHARE = 0.02
MOST_ROWS = 5000
NEIGHBOURS = 20
# texts as words are left out: outliers in a box of thousands of words are trivial
EMBEDDED = "-embedded"


def ours(X: np.ndarray, seed: int) -> np.ndarray:
    """The score of a fit that finds its own number of clusters."""
    model: Any = mmcnb.MaximumMarginClustering(n_clusters=None, random_state=seed)
    return np.asarray(fit(model, X).score_outliers(X))


def of_density(X: np.ndarray, seed: int) -> np.ndarray:
    """GLOSH by scikit-learn's HDBSCAN at its defaults; it draws nothing."""
    from sklearn.cluster import HDBSCAN
    from sklearn.cluster._hdbscan._tree import (
        _condense_tree,
    )  # scikit-learn has no public one

    model = HDBSCAN(copy=True).fit(X.astype(np.float64))
    return glosh(
        _condense_tree(model._single_linkage_tree_, model.min_cluster_size), len(X)
    )


def glosh(tree: np.ndarray, n: int) -> np.ndarray:
    """How much sooner rows leave their cluster than the last row within it.

    Parameters
    ----------
    tree : structured array with the fields "parent", "child" and "value"
        A condensed tree, parents first: children from n on are clusters, and values are
        densities at which children leave.
    n : int
        Number of rows.

    References
    ----------
    R. Campello et al., Hierarchical density estimates for data clustering,
    visualization, and outlier detection, eq. (8).

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_outliers import glosh
    >>> edges = [(3, 0, 1.0), (3, 1, 2.0), (3, 2, 4.0)]
    >>> glosh(np.array(edges, [("parent", int), ("child", int), ("value", float)]), 3)
    array([0.75, 0.5 , 0.  ])
    """
    values = np.where(np.isfinite(tree["value"]), tree["value"], 0.0)
    last = np.zeros(int(max(tree["parent"].max(), tree["child"].max())) + 1)
    np.maximum.at(last, tree["parent"], values)
    is_cluster = tree["child"] >= n
    scores = np.zeros(n)
    for parent, child in zip(
        tree["parent"][is_cluster][::-1], tree["child"][is_cluster][::-1], strict=True
    ):
        last[parent] = max(last[parent], last[child])
    rows = tree["child"][~is_cluster]
    left = np.maximum(last[tree["parent"][~is_cluster]], 1e-300)
    scores[rows] = 1 - values[~is_cluster] / left
    return np.where(
        np.isin(np.arange(n), rows[~np.isfinite(tree["value"][~is_cluster])]),
        0.0,
        scores,
    )


def local_factor(X: np.ndarray, seed: int) -> np.ndarray:
    """The local outlier factor; it draws nothing."""
    from sklearn.neighbors import LocalOutlierFactor

    model = LocalOutlierFactor(n_neighbors=min(NEIGHBOURS, len(X) - 1)).fit(X)
    return -np.asarray(model.negative_outlier_factor_)


SCORES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    FRONT_DOOR: ours,
    DENSITY: of_density,
    FACTOR: local_factor,
}


@frame_of_runs
def grid(options: Options) -> Runs:
    """All scores on each set with both kinds of outliers."""
    rows = min(options.rows or MOST_ROWS, MOST_ROWS)
    methods = list(SCORES)
    dense = [
        one
        for one in sets_of(options)
        if one.kind != TEXT or one.name.endswith(EMBEDDED)
    ]
    for problem, seed, kind, method in product(
        dense, options.repeats(1), MADE, methods
    ):
        settings = {"rows": rows, "problem": list(problem)}
        yield Run(
            problem.name, method, seed, parameters={"outliers": kind}, settings=settings
        )


def compute(run: Run) -> dict[str, Any]:
    """AUC of one score, on all columns."""
    from sklearn.metrics import roc_auc_score

    name, source, kind, classes, with_peers = run.settings["problem"]
    data = rows_of(
        Problem(name, source, kind, tuple(classes), with_peers),
        run.settings["rows"],
        run.seed,
    )
    dense = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    X, is_outlier = with_outliers(
        np.asarray(dense, np.float64), run.parameters["outliers"], run.seed
    )
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = SCORES[run.method](X, run.seed)
    seconds = {"seconds": time.perf_counter() - started}
    return facts(X) | seconds | {"auc": float(roc_auc_score(is_outlier, scores))}


def with_outliers(X: np.ndarray, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with 2 % outliers after them, and which they are.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_outliers import with_outliers
    >>> X, is_outlier = with_outliers(np.eye(100), "uniform", 0)
    >>> X.shape, int(is_outlier.sum())
    ((102, 100), 2)
    """
    count = max(1, round(SHARE * len(X)))
    made = MADE[kind](np.random.default_rng(seed), X, count)
    return np.vstack([X, made]).astype(np.float32), np.repeat(
        [False, True], [len(X), count]
    )


def tables(frame: pd.DataFrame) -> Result:
    """Mean AUC by kind of outliers, kind of set and half, a column a method; each set weighs the same."""
    frame = with_facts(frame[frame["status"] == OK])
    frame = pd.concat([frame, frame.assign(kind="all")])
    frame = pd.concat([frame, frame.assign(half=BOTH)])
    keys = ["outliers", "kind", "half"]
    sets = (
        frame.groupby([*keys, "set", "method"], sort=False)["auc"]
        .mean()
        .unstack("method")
    )
    means = sets.groupby(keys, sort=False).mean()
    means.insert(0, "sets", sets.groupby(keys, sort=False).size())
    return Result(
        {"number-outliers": means.reset_index().sort_values(keys, kind="stable")}
    )

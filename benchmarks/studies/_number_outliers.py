"""Part ``outliers`` of ``number``: AUC of our outlier score and of two peers, for added outliers."""

import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

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
# Texts as words are left out, because outliers in a box of thousands of words are
# trivial.
EMBEDDED = "-embedded"


def ours(X: np.ndarray, seed: int) -> np.ndarray:
    """Return the outlier scores of a fit that finds the number of clusters."""
    model: Any = mmcnb.MaximumMarginClustering(n_clusters=None, random_state=seed)
    return np.asarray(fit(model, X).score_outliers(X))


def of_density(X: np.ndarray, seed: int) -> np.ndarray:
    """Return GLOSH from scikit-learn's HDBSCAN with its defaults, which is deterministic."""
    from sklearn.cluster import HDBSCAN

    # scikit-learn has no public function for the condensed tree.
    from sklearn.cluster._hdbscan._tree import _condense_tree

    model = HDBSCAN(copy=True).fit(X.astype(np.float64))
    tree = _condense_tree(model._single_linkage_tree_, model.min_cluster_size)
    return glosh(tree, len(X))


def glosh(tree: np.ndarray, n: int) -> np.ndarray:
    """Return how much sooner rows leave their cluster than the last row of the cluster.

    Parameters
    ----------
    tree : structured array with the fields "parent", "child" and "value"
        A condensed tree, with parents before their children. Children numbered from n
        on are clusters, and values are the densities at which children leave.
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
    is_finite = np.isfinite(tree["value"])
    densities = np.where(is_finite, tree["value"], 0.0)
    n_nodes = int(max(tree["parent"].max(), tree["child"].max())) + 1
    last = np.zeros(n_nodes)  # the largest density in a cluster and its descendants
    np.maximum.at(last, tree["parent"], densities)
    is_row = tree["child"] < n
    edges = tree[~is_row]
    for parent, child in zip(edges["parent"][::-1], edges["child"][::-1], strict=True):
        last[parent] = max(last[parent], last[child])
    rows = tree["child"][is_row]
    last_of_row = np.maximum(last[tree["parent"][is_row]], 1e-300)
    scores = np.zeros(n)
    scores[rows] = 1 - densities[is_row] / last_of_row
    # Duplicates, which never leave their cluster.
    scores[rows[~is_finite[is_row]]] = 0.0
    return scores


def local_factor(X: np.ndarray, seed: int) -> np.ndarray:
    """Return the local outlier factor, which is deterministic."""
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
    """Yield all scores on each data set with both kinds of outliers."""
    rows = min(options.rows or MOST_ROWS, MOST_ROWS)
    for problem in sets_of(options):
        if problem.kind == TEXT and not problem.name.endswith(EMBEDDED):
            continue
        settings = {"rows": rows, "problem": list(problem)}
        for seed, kind, method in product(options.repeats(1), MADE, SCORES):
            yield Run(
                problem.name,
                method,
                seed,
                parameters={"outliers": kind},
                settings=settings,
            )


def compute(run: Run) -> dict[str, Any]:
    """Return the AUC of one score, computed on all columns."""
    from sklearn.metrics import roc_auc_score

    problem = Problem(*run.settings["problem"])
    data = rows_of(
        problem._replace(classes=tuple(problem.classes)),
        run.settings["rows"],
        run.seed,
    )
    dense = data.X.toarray() if issparse(data.X) else data.X
    X, is_outlier = with_outliers(
        np.asarray(dense, np.float64), run.parameters["outliers"], run.seed
    )
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = SCORES[run.method](X, run.seed)
    seconds = time.perf_counter() - started
    auc = float(roc_auc_score(is_outlier, scores))
    return facts(X) | {"seconds": seconds, "auc": auc}


def with_outliers(X: np.ndarray, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows followed by 2 % outliers, and a mask of the outliers.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_outliers import with_outliers
    >>> X, is_outlier = with_outliers(np.eye(100), "uniform", 0)
    >>> X.shape, int(is_outlier.sum())
    ((102, 100), 2)
    """
    count = max(1, round(SHARE * len(X)))
    outliers = MADE[kind](np.random.default_rng(seed), X, count)
    is_outlier = np.repeat([False, True], [len(X), count])
    return np.vstack([X, outliers]).astype(np.float32), is_outlier


def tables(frame: pd.DataFrame) -> Result:
    """Return the mean AUC by kind of outliers, kind of data set and half.

    Each method has a column, and each data set has the same weight.
    """
    frame = with_facts(frame[frame["status"] == OK])
    frame = pd.concat([frame, frame.assign(kind="all")])
    frame = pd.concat([frame, frame.assign(half=BOTH)])
    keys = ["outliers", "kind", "half"]
    sets = frame.groupby([*keys, "set", "method"], sort=False)["auc"].mean()
    groups = sets.unstack("method").groupby(keys, sort=False)
    means = groups.mean()
    means.insert(0, "sets", groups.size())
    table = means.reset_index().sort_values(keys, kind="stable")
    return Result({"number-outliers": table})

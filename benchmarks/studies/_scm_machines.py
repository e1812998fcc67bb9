"""Support cluster machines and their peers: construction, training and measures.

``python -m benchmarks.studies._scm_machines TRAIN TEST FIT`` trains a machine on a
store and prints JSON.
"""

import json
import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from mmcnb import SupportClusterMachine
from mmcnb.samples import open_samples
from mmcnb.stores import open_class_labels

SCM = "SCM"
SCM_BOTH = "SCM, both classes clustered"
SVC = "SVC"
UNDER = "SVC, under-sample"
WEIGHTED = "SVC, weighted under-sample"
SAMPLE = "SVC, 10,000 random rows"
NYSTROEM = "Nystroem + SGD"
LINEAR = "LinearSVC"
OURS = (SCM, SCM_BOTH)
SAMPLE_ROWS = 10_000
COMPONENTS = 300
CACHE_MIB = 200
# Rows of the warm-up, and rows that it takes of each class.
WARM_UP_ROWS = 2**14
WARM_UP_SIDE = 100


class Fit(NamedTuple):
    """A fit, which can be written as JSON.

    Parameters
    ----------
    method : str
        One of the names of this module.
    seed : int
        Seed of the estimator and of the sample.
    C : float, default=1.0
        Weight of the loss.
    rare_weight : float or None, default=None
        Factor of C for rare rows; None gives both classes the same total weight.
    gamma : float or None, default=None
        Parameter of the kernel; None for the default of SCM.
    rows : int, default=0
        Number of rows of an under-sample.
    """

    method: str
    seed: int
    C: float = 1.0
    rare_weight: float | None = None
    gamma: float | None = None
    rows: int = 0


def machine(fit: Fit) -> Any:
    """Return the unfitted estimator.

    For a weighted under-sample, the weights belong to its rows and not to the classes.
    """
    from sklearn import svm
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    weight: Any = "balanced" if fit.rare_weight is None else {1: fit.rare_weight}
    given = {"random_state": fit.seed, "class_weight": weight}
    if fit.method in OURS:
        gamma = fit.gamma or "auto"
        clustered = "both" if fit.method == SCM_BOTH else "negatives"
        return SupportClusterMachine(gamma=gamma, C=fit.C, clustered=clustered, **given)
    if fit.method == NYSTROEM:
        features = Nystroem(
            gamma=fit.gamma, n_components=COMPONENTS, random_state=fit.seed
        )
        return make_pipeline(features, SGDClassifier(**given))
    if fit.method == LINEAR:
        return svm.LinearSVC(C=fit.C, **given)
    weight = weight if fit.method == SVC else None
    return svm.SVC(gamma=fit.gamma, C=fit.C, cache_size=CACHE_MIB, class_weight=weight)


def some_rows(fit: Fit, y: np.ndarray) -> np.ndarray:
    """Return the rows on which a method is trained, in order.

    These are all rows, a random sample, or all rare rows and a sample of the common
    rows.
    """
    order = np.random.RandomState(fit.seed).permutation(y.size)
    if fit.method == SAMPLE:
        return np.sort(order[:SAMPLE_ROWS])
    if fit.method in (UNDER, WEIGHTED):
        rare = np.flatnonzero(y)
        n_common = max(1, fit.rows - rare.size)
        common = order[y[order] == 0][:n_common]
        return np.sort(np.concatenate([rare, common]))
    return np.arange(y.size)


def row_weights(fit: Fit, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return weights with which the rows of an under-sample represent all rows.

    The weights of the classes are included.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._scm_machines import WEIGHTED, Fit, row_weights
    >>> fit = Fit(WEIGHTED, 0, rare_weight=3.0)
    >>> row_weights(fit, np.array([1, 0, 0, 0, 0]), np.array([0, 1, 2]))
    array([3., 2., 2.])
    """
    n_rare = np.count_nonzero(y)
    n_common = y.size - n_rare
    rare = fit.rare_weight
    common = 1.0
    if not rare:
        rare = y.size / (2 * n_rare)
        common = y.size / (2 * n_common)
    n_taken = np.count_nonzero(y[rows] == 0)
    return np.where(y[rows] == 1, rare, common * n_common / n_taken)


def trained_rows(model: Any) -> int:
    """Return the rows on which the last machine of a fit was trained."""
    last = model.history_.iloc[-1]
    rare = last["positives"]
    if model.clustered == "both":
        most = model.n_clusters
        if most is None:
            most = int(np.clip(2 * rare, 100, 1000))
        rare = min(rare, most)
    return int(last["representatives"] + last["settled"] + rare)


def train(
    fit: Fit, X: Any, y: np.ndarray, store: str | None = None
) -> tuple[Any, dict[str, Any]]:
    """Train a method on its rows, or on a store of all rows.

    Returns
    -------
    model : estimator
        Fitted.
    measures : dict
        Seconds of the fit, support vectors, number of training rows and, for SCM, gamma
        and rounds.
    """
    model = machine(fit)
    rows = some_rows(fit, y)
    weights = {}
    if fit.method == WEIGHTED:
        weights["sample_weight"] = row_weights(fit, y, rows)
    started = time.perf_counter()
    if store is not None:
        model.fit(store, None, **weights)
    elif rows.size == y.size:
        model.fit(X, y, **weights)
    else:
        model.fit(X[rows], y[rows], **weights)
    measures: dict[str, Any] = {
        "seconds": time.perf_counter() - started,
        "rows_trained_on": rows.size,
    }
    if fit.method in OURS:
        measures["rows_trained_on"] = trained_rows(model)
        measures["found_gamma"] = model.gamma_
        measures["rounds"] = len(model.history_)
        measures["end"] = model.report_["ends"][0]
        measures["support_vectors"] = model.report_["support_vectors"]
    elif hasattr(model, "support_"):
        measures["support_vectors"] = model.support_.size
    return model, measures


def measures(y: np.ndarray, f: np.ndarray) -> dict[str, float]:
    """Return measures of decision values, which are above 0 for class 1.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._scm_machines import measures
    >>> measures(np.array([0, 0, 1]), np.array([-1.0, 0.5, 2.0]))
    {'balanced_accuracy': 0.75, 'roc_auc': 1.0, 'average_precision': 1.0}
    """
    from sklearn.metrics import (
        average_precision_score,
        balanced_accuracy_score,
        roc_auc_score,
    )

    return {
        "balanced_accuracy": float(balanced_accuracy_score(y, f > 0)),
        "roc_auc": float(roc_auc_score(y, f)),
        "average_precision": float(average_precision_score(y, f)),
    }


def read(path: str, rows: int | None = None) -> tuple[Any, np.ndarray]:
    """Return the first rows of a store, or all, and their classes."""
    samples = open_samples(path)
    n = min(rows or samples.n_samples, samples.n_samples)
    X = samples.block(0, n)
    if not isinstance(X, np.ndarray):
        indices = X.indices.astype(np.int32)
        indptr = X.indptr.astype(np.int32)
        X = csr_matrix((X.data, indices, indptr), (n, samples.n_features))
    return X, np.asarray(open_class_labels(path))[:n]


def main(train_path: str, test_path: str, words: str) -> dict[str, Any]:
    """Fit one method to a store, and measure it on another store.

    Only SCM reads the store block by block.
    """
    fit = Fit(*json.loads(words))
    is_ours = fit.method in OURS
    quieten()
    X, y = read(train_path, WARM_UP_ROWS if is_ours else None)
    sides = [np.flatnonzero(y == side)[:WARM_UP_SIDE] for side in (0, 1)]
    few = np.sort(np.concatenate(sides))
    started = time.perf_counter()
    machine(fit).fit(X[few], y[few])  # imports and compiles
    compiled = time.perf_counter() - started
    store = None
    if is_ours:
        X = None  # only the store has the rows
        y = np.asarray(open_class_labels(train_path))
        store = train_path
    model, measured = train(fit, X, y, store)
    measured["compile_seconds"] = compiled
    del X
    X, y = read(test_path)
    return measured | measures(y, model.decision_function(X))


def quieten() -> None:
    """Silence the warnings of peers; the tables show why they warn."""
    for message in (".*converge.*", "n_components > n_samples"):
        warnings.filterwarnings("ignore", message=message)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:]), default=lambda value: value.tolist()))

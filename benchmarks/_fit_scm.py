"""``python -m benchmarks._fit_scm TRAIN TEST METHOD SEED [GAMMA ROWS]``: fit and measure; prints JSON."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import mmcnb
from mmcnb.samples import open_class_labels, open_samples

SCM, SCM_BALANCED, SCM_BOTH = "SCM", "SCM, balanced", "SCM, both classes clustered"
SVC, SVC_PLAIN = "SVC, balanced", "SVC"
UNDER, UNDER_BALANCED = "SVC, under-sample", "SVC, balanced, under-sample"
SAMPLE = "SVC, 10,000 random rows"
NYSTROEM, LINEAR = "Nystroem + SGD, balanced", "LinearSVC, balanced"
OURS = (SCM, SCM_BALANCED, SCM_BOTH)
SAMPLE_ROWS = 10_000
COMPONENTS = 300
CACHE_MIB = 200
WARM_UP_ROWS, WARM_UP_SIDE = 2**14, 100  # read, and taken of each class


def estimators(seed: int, gamma: float | None) -> dict[str, Callable[[], Any]]:
    """How each method is made; the machines of scikit-learn take the width that SCM has found."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC as Machine
    from sklearn.svm import LinearSVC

    def scm(**parameters: Any) -> Any:
        return mmcnb.SupportClusterMachine(random_state=seed, **parameters)

    def svc(class_weight: str | None = None) -> Any:
        return Machine(gamma=gamma, class_weight=class_weight, cache_size=CACHE_MIB)

    def nystroem() -> Any:
        features = Nystroem(gamma=gamma, n_components=COMPONENTS, random_state=seed)
        return make_pipeline(features, SGDClassifier(class_weight="balanced", random_state=seed))

    return {
        SCM: scm,
        SCM_BALANCED: lambda: scm(class_weight="balanced"),
        SCM_BOTH: lambda: scm(representatives="both"),
        SVC: lambda: svc("balanced"),
        SVC_PLAIN: svc,
        UNDER: svc,
        UNDER_BALANCED: lambda: svc("balanced"),
        SAMPLE: svc,
        NYSTROEM: nystroem,
        LINEAR: lambda: LinearSVC(class_weight="balanced", random_state=seed),
    }


def read(path: str, rows: int | None = None) -> tuple[Any, np.ndarray]:
    """The first rows of a store, or all, and their classes."""
    samples = open_samples(path)
    n = min(rows or samples.n_samples, samples.n_samples)
    X = samples.block(0, n)
    if not isinstance(X, np.ndarray):
        X = csr_matrix(
            (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), (n, samples.n_features)
        )
    return X, np.asarray(open_class_labels(path))[:n]


def some_rows(method: str, y: np.ndarray, seed: int, n_rows: int) -> np.ndarray:
    """The rows a method is trained on, in order: all, a random sample, or all rare rows and a sample."""
    order = np.random.RandomState(seed).permutation(y.size)
    if method == SAMPLE:
        return np.sort(order[:SAMPLE_ROWS])
    if method in (UNDER, UNDER_BALANCED):
        rare, common = np.flatnonzero(y), order[y[order] == 0]
        return np.sort(np.concatenate([rare, common[: max(1, n_rows - rare.size)]]))
    return np.arange(y.size)


def trained_rows(model: Any) -> int:
    """Rows that the last machine of a support cluster machine was trained on."""
    last = model.history_.iloc[-1]
    rare = last["positives"]
    if model.representatives == "both":
        clusters = 2 * rare if model.n_clusters is None else model.n_clusters
        rare = min(rare, int(np.clip(clusters, 100, 1000)) if model.n_clusters is None else clusters)
    return int(last["representatives"] + last["settled"] + rare)


def fitted(method: str, train: str, make: Callable[[], Any], rows: np.ndarray) -> tuple[Any, float]:
    """The model and the seconds of its fit; SCM reads the store, the others have their rows in memory."""
    X, y = read(train, WARM_UP_ROWS if method in OURS else None)
    few = np.sort(np.concatenate([np.flatnonzero(y == side)[:WARM_UP_SIDE] for side in (0, 1)]))
    make().fit(X[few], y[few])  # imports and compiles
    if method in OURS:
        del X
    given = (train, None) if method in OURS else (X, y) if rows.size == y.size else (X[rows], y[rows])
    started = time.perf_counter()
    model = make().fit(*given)
    return model, time.perf_counter() - started


def support_vectors(model: Any) -> int | None:
    """How many support vectors a model has; None where it has none."""
    if isinstance(model, mmcnb.SupportClusterMachine):
        return int(model.report_["support_vectors"])
    return int(model.support_.size) if hasattr(model, "support_") else None


def measures(y: np.ndarray, f: np.ndarray) -> dict[str, float]:
    """What is told of decision values, of which those above 0 are for class 1."""
    from sklearn.metrics import average_precision_score, balanced_accuracy_score, roc_auc_score

    return {
        "balanced accuracy": float(balanced_accuracy_score(y, f > 0)),
        "ROC AUC": float(roc_auc_score(y, f)),
        "average precision": float(average_precision_score(y, f)),
    }


def main(train: str, test: str, method: str, seed: str, gamma: str = "", n_rows: str = "0") -> None:
    """Fit one method to a store, measure it on another, and print what was found.

    Parameters
    ----------
    train, test : str
        Zarr stores with classes, 1 the rare one.
    method : str
        What `estimators` calls it.
    seed, gamma, n_rows : str
        Seed, width of the kernel, rows of the under-sample; the last two are not for SCM.
    """
    for message in (".*converge.*", "n_components > n_samples"):
        warnings.filterwarnings("ignore", message=message)
    rows = some_rows(method, np.asarray(open_class_labels(train)), int(seed), int(n_rows))
    make = estimators(int(seed), float(gamma) if gamma else None)[method]
    model, seconds = fitted(method, train, make, rows)
    X, y = read(test)
    report: dict[str, Any] = {**measures(y, model.decision_function(X)), "seconds": seconds}
    report |= {"support vectors": support_vectors(model), "rows trained on": rows.size}
    if method in OURS:
        report |= {"rows trained on": trained_rows(model), "gamma": model.gamma_}
        report |= {"rounds": len(model.history_), "end": model.report_["ends"][0]}
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])

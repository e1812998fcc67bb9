"""Part ``noise-cluster`` of ``number``: a small wide cluster is kept, and scattered rows are labelled as noise."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.methods import DENSITY, FRONT_DOOR
from benchmarks.protocol import Data, facts, timed
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._number_made import NOISE, blobs, uniform_rows
from benchmarks.tables import Result, goals_of

WIDE_SET = "wide cluster"
BLOBS_SET = "blobs"
ROWS = 8000
BLOB_ROWS = 3000
COLUMNS = 5
SHARES = (0.45, 0.32, 0.20, 0.03)
WIDE = 3  # class of the wide cluster
WIDTHS = (2.0, 2.5, 3.0, 4.0)
APART = 9.0  # distance of the other centres, in standard deviations
WIDTHS_APART = 6.0
SCATTERED = (0.0, 0.02)
ENOUGH = 0.9  # share of the rows of the wide cluster that must be kept
# Clusters, columns, and shares of scattered rows of blobs.
BLOBS = ((3, 2), (4, 5), (5, 10))
BLOBS_SCATTERED = (0.02, 0.1)
LEAST = 8.0  # distance between two blobs, in standard deviations
DEVIATIONS = 2.5  # threshold above the median of all outlier scores
ONE = "{}, one threshold"


def wide_cluster(rows: int, width: float, scattered: float, seed: int) -> Data:
    """Draw four Gaussian clusters, the smallest of which is wide, and scattered rows.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_noise_cluster import wide_cluster
    >>> y = wide_cluster(1000, 3.0, 0.02, 0).y
    >>> np.unique(y, return_counts=True)[1].tolist()
    [20, 441, 313, 196, 30]
    """
    random = np.random.default_rng([rows, round(10 * width), seed])
    n_scattered = round(scattered * rows)
    n_clustered = rows - n_scattered
    ends = np.rint(np.cumsum(SHARES) * n_clustered)
    y = np.digitize(np.arange(n_clustered), ends)
    centres = APART * np.eye(4, COLUMNS, k=-1)
    centres[WIDE] = np.eye(COLUMNS)[-1] * WIDTHS_APART * width
    spreads = np.ones(4)
    spreads[WIDE] = width
    X = centres[y] + spreads[y][:, None] * random.standard_normal((len(y), COLUMNS))
    X = np.vstack([X, uniform_rows(random, X, n_scattered)])
    y = np.append(y, np.full(n_scattered, NOISE))
    order = random.permutation(rows)
    return Data(WIDE_SET, X[order], y[order])


def scattered_blobs(
    rows: int, n_clusters: int, columns: int, scattered: float, seed: int
) -> Data:
    """Draw separate blobs, and replace the last rows by scattered rows."""
    data = blobs(rows, n_clusters, columns, LEAST, LEAST / 2, seed)
    n_scattered = round(scattered * rows)
    random = np.random.default_rng([rows, seed])
    X = data.X.copy()
    X[rows - n_scattered :] = uniform_rows(random, X, n_scattered)
    y = data.y.copy()
    y[rows - n_scattered :] = NOISE
    return Data(BLOBS_SET, X, y)


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield wide clusters and blobs, with the number of clusters given and not given."""
    seeds = options.repeats(10, 3)
    settings = {"rows": options.sized(ROWS, ROWS)}
    for seed, width, scattered, method in product(seeds, WIDTHS, SCATTERED, METHODS):
        for k in _numbers(method, 4):
            parameters = {"width": width, "scattered": scattered, "k": k}
            yield Run(WIDE_SET, method, seed, parameters=parameters, settings=settings)
    settings = {"rows": options.sized(BLOB_ROWS, BLOB_ROWS)}
    for seed, (count, columns), scattered, method in product(
        seeds, BLOBS, BLOBS_SCATTERED, METHODS
    ):
        for k in _numbers(method, count):
            parameters = {"blobs": count, "columns": columns, "scattered": scattered}
            parameters |= {"k": k}
            yield Run(BLOBS_SET, method, seed, parameters=parameters, settings=settings)


def _numbers(method: str, k: int) -> tuple[int, ...]:
    """Return 0, for no given number, and the number that a method may be given."""
    return (0,) if method == DENSITY else (0, k)


def compute(run: Run) -> dict[str, Any]:
    """Return how much of the wide cluster is kept, and how well noise is found."""
    parameters = run.parameters
    rows = run.settings["rows"]
    scattered = parameters["scattered"]
    if run.dataset == WIDE_SET:
        data = wide_cluster(rows, parameters["width"], scattered, run.seed)
    else:
        count = parameters["blobs"]
        columns = parameters["columns"]
        data = scattered_blobs(rows, count, columns, scattered, run.seed)
    measures = facts(data.X)
    measures |= METHODS[run.method](data, parameters["k"] or None, run.seed)
    labels = measures.pop("labels")
    measures["clusters"] = len(np.unique(labels[labels >= 0]))
    measures |= _figures(data.y, labels)
    if "by one threshold" in measures:
        others = _figures(data.y, measures.pop("by one threshold"))
        measures |= {ONE.format(name): value for name, value in others.items()}
    return measures


def _figures(y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return precision, recall and F1 of noise, and the share of class 3 that is kept."""
    figures = of_noise(y == NOISE, labels == NOISE)
    if (y == WIDE).any():
        figures["kept"] = share_kept(y == WIDE, labels)
    return figures


def share_kept(is_wide: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of the rows of a class that are in the cluster with most of them.

    The share is 0 if most rows of this cluster belong to other classes.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_noise_cluster import share_kept
    >>> is_wide = np.array([False, False, False, True, True])
    >>> share_kept(is_wide, np.array([0, 0, 0, 1, -1]))
    0.5
    >>> share_kept(is_wide, np.array([0, 0, 0, 0, 0]))
    0.0
    """
    clusters = labels[is_wide]
    counts = np.bincount(clusters[clusters >= 0], minlength=1)
    largest = counts.argmax()
    if 2 * counts[largest] <= np.count_nonzero(labels == largest):
        return 0.0
    return float(counts[largest] / clusters.size)


def of_noise(is_scattered: np.ndarray, is_noise: np.ndarray) -> dict[str, float]:
    """Return precision, recall and F1 of noise, and the share of the other rows labelled as noise."""
    both = np.count_nonzero(is_scattered & is_noise)
    precision = both / max(int(is_noise.sum()), 1)
    recall = both / max(int(is_scattered.sum()), 1)
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(precision + recall, 1e-9),
        "others": float(np.mean(is_noise[~is_scattered])),
    }


# -- methods ---------------------------------------------------------------------------


def ours(data: Data, k: int | None, seed: int) -> dict[str, Any]:
    """Label noise as the default does, and by one threshold for all outlier scores."""
    model: Any = mmcnb.MaximumMarginClustering(k, noise="auto", random_state=seed)
    measures = timed(model, data.X)
    report = model.report_
    scores = model.outlier_score_
    middle = np.median(scores)
    deviation = 1.4826 * np.median(np.abs(scores - middle))
    is_noise = scores > middle + DEVIATIONS * deviation
    clusters = model.predict_proba(data.X).argmax(axis=1)
    return measures | {
        "labels": model.labels_,
        "by one threshold": np.where(is_noise, NOISE, clusters),
        "dropped": len(report["dropped"]),
        "empty": int(min(report["sizes"]) == 0),
        "high trust": float(report["trust"]["level"] == "high"),
    }


def by_density(data: Data, k: int | None, seed: int) -> dict[str, Any]:
    """Label by scikit-learn's HDBSCAN with its defaults, which is deterministic."""
    from sklearn.cluster import HDBSCAN

    model = HDBSCAN(copy=True)
    measures = timed(model, data.X)
    labels: np.ndarray = model.labels_
    return measures | {"labels": np.maximum(labels, NOISE)}


METHODS: dict[str, Callable[[Data, int | None, int], dict[str, Any]]] = {
    FRONT_DOOR: ours,
    DENSITY: by_density,
}


# -- tables ----------------------------------------------------------------------------


def tables(frame: pd.DataFrame) -> Result:
    """Return means over seeds: how much of the wide cluster is kept, and the noise of blobs."""
    frame = frame[frame["status"] == OK]
    of_frame: dict[str, pd.DataFrame] = {}
    figures = ["kept", "clusters", "precision", "recall", "f1", "others"]
    figures += ["dropped", "empty", "high trust"]
    figures += [ONE.format(name) for name in ("kept", "precision", "recall", "f1")]
    keys = {
        WIDE_SET: ["scattered", "k", "method", "width"],
        BLOBS_SET: ["blobs", "columns", "scattered", "k", "method"],
    }
    for dataset, names in keys.items():
        part = frame[frame["dataset"] == dataset]
        part = part.reindex(columns=[*names, *figures])
        of_frame[dataset] = part.groupby(names, sort=False)[figures].mean()
    wide = of_frame[WIDE_SET]
    kept = wide["kept"].xs((0.0, FRONT_DOOR), level=["scattered", "method"])
    names = [f"width {width:g}, k {k or 'unknown'}" for k, width in kept.index]
    kept.index = pd.Index(names)
    goals = goals_of(kept, ENOUGH, "{}: share of the wide cluster kept", at_least=True)
    blobs_table = of_frame[BLOBS_SET].drop(columns=["kept", ONE.format("kept")])
    result = {
        "number-noise-cluster": wide.reset_index(),
        "number-noise-rows": blobs_table.reset_index(),
    }
    return Result(result, goals)

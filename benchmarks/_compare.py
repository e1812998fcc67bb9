"""k-means, the default fit and fits over a grid of widths on one data set, turn by turn in the same run."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._common import Data, say
from mmcnb.estimators import ClusterWarning
from mmcnb.metrics import balanced_clustering_error

WIDTHS = (
    0.25,
    0.35,
    0.5,
    0.71,
    1.0,
    1.41,
    2.0,
    4.0,
)  # sigma in units of the root mean squared pairwise distance
FIXED_WIDTH = 0.5
WARM_UP_ROWS = 400
OURS, PEER, AUTO = "mmcnb", "k-means", "gamma=auto"


def mean_squared_distance(X: Any) -> float:
    """Mean squared distance between two rows of an array or CSR matrix, the papers' gamma0.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks._compare import mean_squared_distance
    >>> mean_squared_distance(np.array([[0.0], [2.0]]))
    2.0
    """
    values = X.data if hasattr(X, "indptr") else X.ravel()
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    return float(2 * (np.einsum("i,i->", values, values, dtype=np.float64) / X.shape[0] - mean @ mean))


def gamma_of(width: float, gamma0: float) -> float:
    """gamma = 1/(2 sigma²) for sigma = width · sqrt(gamma0)."""
    return 1 / (2 * width**2 * gamma0)


def fit(estimator: Any, X: Any) -> Any:
    """Fit without the warnings about what was found: the tables say it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        return estimator.fit(X)


def warm_up(X: Any) -> float:
    """Seconds of a first fit of a few rows of the same type and layout, which compiles every kernel."""
    rows = X[:WARM_UP_ROWS] if X.shape[0] > WARM_UP_ROWS else X
    started = time.perf_counter()
    # Fewer rows in the sample than in all, so that the passes over all rows are compiled as well.
    fit(mmcnb.SparseKernelMMC(sample_size=max(2, rows.shape[0] // 2), random_state=0), rows)
    return time.perf_counter() - started


def measure(data: Data, method: str, parameters: str, estimator: Any) -> dict[str, Any]:
    """Fit once, and return the row of the tidy table.

    Parameters
    ----------
    data : Data
        The rows.
    method, parameters : str
        Names for the table.
    estimator : estimator
        Not yet fitted; its ``random_state`` is the seed.

    Returns
    -------
    dict
        dataset, n, d, method, parameters, seed, error, seconds, gamma.
    """
    started = time.perf_counter()
    fit(estimator, data.X)
    seconds = time.perf_counter() - started
    return {
        "dataset": data.name,
        "n": len(data.y),
        "d": estimator.n_features_in_,
        "method": method,
        "parameters": parameters,
        "seed": estimator.random_state,
        "error": balanced_clustering_error(data.y, estimator.labels_),
        "seconds": seconds,
        "gamma": getattr(estimator, "gamma_", np.nan),
        **_counts(estimator),
    }


def _counts(estimator: Any) -> dict[str, int]:
    """Reads of the rows, and sweeps over kept kernel columns."""
    history = getattr(estimator, "history_", None)
    return {} if history is None else {name: int(history[name].iloc[-1]) for name in ("reads", "sweeps")}


def measure_peer(data: Data, seed: int) -> dict[str, Any]:
    """k-means with ten starts, on all cores and on one: the faster of the two.

    Its threads wait for each other, so where other work takes a core it can be several times slower on all.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    rows = []
    for threads in (None, 1):
        with threadpool_limits(threads):
            rows.append(measure(data, PEER, "n_init=10", KMeans(2, n_init=10, random_state=seed)))
    return min(rows, key=lambda row: row["seconds"])


def compare(
    data: Data,
    seeds: Iterable[int],
    widths: Sequence[float] = WIDTHS,
    gamma0: float | None = None,
    peer_seeds: int | None = None,
) -> pd.DataFrame:
    """k-means, the default and each width, in turn for each seed.

    Parameters
    ----------
    data : Data
        The rows.
    seeds : iterable of int
        One repeat each.
    widths : sequence of float, default=WIDTHS
        Relative widths of the kernel.
    gamma0 : float or None, default=None
        Mean squared distance; None computes it, which takes rows in memory.
    peer_seeds : int or None, default=None
        k-means runs for seeds below this; None for all.

    Returns
    -------
    DataFrame
        One row a fit.
    """
    gamma0 = mean_squared_distance(data.X) if gamma0 is None else gamma0
    rows = []
    for seed in seeds:
        say(f"{data.name}, {len(data.y):,} rows, seed {seed}")
        if peer_seeds is None or seed < peer_seeds:
            rows.append(measure_peer(data, seed))
        rows.append(measure(data, OURS, AUTO, mmcnb.SparseKernelMMC(random_state=seed)))
        for width in widths:
            estimator = mmcnb.SparseKernelMMC(gamma=gamma_of(width, gamma0), random_state=seed)
            rows.append(measure(data, OURS, f"width={width:g}", estimator))
    return pd.DataFrame(rows)


def medians(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each data set, method and parameters: medians over the seeds."""
    keys = ["dataset", "n", "d", "method", "parameters"]
    return frame.groupby(keys, sort=False)[["error", "seconds"]].median().reset_index()


def summarise(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a data set: errors of k-means, the default, the fixed and the best width, and time ratios.

    The best width is chosen with the known classes, by the median error over the seeds. Ratios are
    of medians of the seconds, to k-means in the same frame; NaN where it is not there.
    """
    return pd.DataFrame([_summary(part) for _, part in frame.groupby("dataset", sort=False)])


def _summary(frame: pd.DataFrame) -> dict[str, Any]:
    table = medians(frame).set_index("parameters")
    widths = table[table.index.str.startswith("width=")]
    best = widths["error"].idxmin()
    peer = table[table["method"] == PEER]
    fixed = f"width={FIXED_WIDTH:g}"
    peer_error, peer_seconds = (
        (peer["error"].iloc[0], peer["seconds"].iloc[0]) if len(peer) else (np.nan, np.nan)
    )
    return {
        "dataset": frame["dataset"].iloc[0],
        "n": frame["n"].iloc[0],
        "d": frame["d"].iloc[0],
        "k-means error": peer_error,
        "default error": table.loc[AUTO, "error"],
        "default worst error": frame.loc[frame["parameters"] == AUTO, "error"].max(),
        f"width {FIXED_WIDTH:g} error": table.loc[fixed, "error"] if fixed in table.index else np.nan,
        "best error": table.loc[best, "error"],
        "best width": float(best.removeprefix("width=")),
        "k-means seconds": peer_seconds,
        "given gamma / k-means": table.loc[best, "seconds"] / peer_seconds,
        "auto / k-means": table.loc[AUTO, "seconds"] / peer_seconds,
    }

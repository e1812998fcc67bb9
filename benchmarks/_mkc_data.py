"""Data sets of the MKC paper and of the thesis around it, and how both measured."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks._cells import load_once
from benchmarks._common import Data, Options

K1, K2, K3, MKC = "K1 linear", "K2 polynomial", "K3 Gaussian", "MKC"
KMEANS, CUT, SVR = "k-means", "normalised cut", "IterSVR"
METHODS = (K1, K2, K3, MKC, KMEANS, CUT, SVR)
OURS = (K1, K2, K3, MKC)


class Rows(NamedTuple):
    """Where the rows of a data set come from.

    Parameters
    ----------
    dataset : str
        What `data_loaders.load` calls it.
    classes : tuple of int, default=()
        Classes that are kept; none are all.
    most : int or None, default=None
        Rows that are drawn; None is all.
    skip : int, default=0
        Rows that an earlier draw takes.
    n_clusters : int, default=2
        k.
    """

    dataset: str
    classes: tuple[int, ...] = ()
    most: int | None = None
    skip: int = 0
    n_clusters: int = 2


MNIST, MNIST_SAMPLE = "mnist01234", "mnist01234, a sample"
DIGITS = Rows("mnist", (0, 1, 2, 3, 4), n_clusters=5)
# The paper's names. Its ionosphere is 354 x 64 and its MNIST 28,911 x 196; the files have 351 x 34 and
# 35,735 x 784. The thesis's digits1v7 of 776 rows are the 1s and 7s of the training part of optdigits.
TABLE2 = {
    "digits1v7": Rows("optdigits-tes", (1, 7)),
    "digits2v7": Rows("optdigits-tes", (2, 7)),
    "ionosphere": Rows("ionosphere"),
    "ringnorm": Rows("ringnorm", most=1000),
    "digits0689": Rows("optdigits-tes", (0, 6, 8, 9), n_clusters=4),
    "digits1279": Rows("optdigits-tes", (1, 2, 7, 9), n_clusters=4),
}
THESIS_ONLY = {"digits1v7-tra": Rows("optdigits-tra", (1, 7))}
SETS = TABLE2 | THESIS_ONLY | {"ringnorm-rest": Rows("ringnorm", skip=1000)}
SETS |= {MNIST: DIGITS, MNIST_SAMPLE: DIGITS._replace(most=1000)}
# A model of the first labels the second.
TABLE3 = {MNIST_SAMPLE: MNIST, "digits1v7-tra": "digits1v7", "ringnorm": "ringnorm-rest"}


def rows_of_set(name: str, options: Options, most: int | None = None) -> int | None:
    """How many rows of one of `SETS` to draw at most; None for all."""
    bounds = [bound for bound in (SETS[name].most, options.rows, most) if bound is not None]
    return min(bounds, default=None)


@lru_cache(maxsize=2)
def load_set(name: str, rows: int | None = None) -> Data:
    """A data set of the paper, columns as in the file (pixels of MNIST divided by 255); two are kept.

    Parameters
    ----------
    name : str
        One of `SETS`.
    rows : int or None, default=None
        At most so many rows.

    Returns
    -------
    Data
        Fewer rows are a draw with a fixed seed, in the order of the file.

    Raises
    ------
    NoData
        If it cannot be had.
    """
    given = SETS[name]
    _, X, y = load_once(given.dataset)
    kept = np.flatnonzero(np.isin(y, given.classes)) if given.classes else np.arange(len(y))
    bounds = [bound for bound in (given.most, rows) if bound is not None]
    drawn = np.random.RandomState(0).permutation(kept)[given.skip :]
    kept = np.sort(drawn[: min([len(drawn), *bounds])])
    return Data(name, X[kept], y[kept])


def majority_accuracy(y_true: Any, labels: Any) -> float:
    """Share of rows in the largest class of their cluster, as published: each cluster takes its majority.

    Examples
    --------
    >>> from benchmarks._mkc_data import majority_accuracy
    >>> majority_accuracy(["a", "a", "a", "b"], [0, 0, 1, 1])
    0.75
    """
    from sklearn.metrics.cluster import contingency_matrix

    counts = contingency_matrix(y_true, labels)
    return float(counts.max(axis=0).sum() / counts.sum())


def scores(y_true: Any, labels: Any) -> dict[str, float]:
    """Accuracy as published, Rand index, adjusted Rand index."""
    from sklearn.metrics import adjusted_rand_score, rand_score

    return {
        "accuracy": majority_accuracy(y_true, labels),
        "rand": float(rand_score(y_true, labels)),
        "ari": float(adjusted_rand_score(y_true, labels)),
    }


def distance_range(X: Any) -> float:
    """sigma0, largest less smallest distance between two rows; of at most 2,000 rows drawn with a seed.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks._mkc_data import distance_range
    >>> distance_range(np.array([[0.0], [1.0], [4.0]]))
    3.0
    """
    from scipy.spatial.distance import pdist

    rows = np.random.RandomState(0).permutation(len(X))[:2000]
    return float(np.ptp(pdist(np.asarray(X[rows], np.float64))))


@lru_cache(maxsize=2)
def sigma0_of(name: str, rows: int | None) -> float:
    """`distance_range` of a data set; the last two are kept."""
    return distance_range(load_set(name, rows).X)

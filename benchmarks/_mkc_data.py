"""Data sets of the MKC paper and of the thesis around it, what both published, and how both measured."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import data_loaders
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


MNIST = "mnist01234"
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
SETS |= {MNIST: Rows("mnist", (0, 1, 2, 3, 4), n_clusters=5)}

NAN = float("nan")
# Table 2: accuracy in per cent and Rand index, in the order of METHODS; "-" is NaN.
PUBLISHED: dict[str, tuple[tuple[float, float], ...]] = {
    "digits1v7": (
        (100.00, 1.000),
        (95.52, 0.915),
        (95.24, 0.910),
        (100.00, 1.000),
        (99.45, 0.995),
        (55.00, 0.504),
        (99.45, 0.995),
    ),
    "digits2v7": (
        (100.00, 1.000),
        (97.47, 0.951),
        (99.16, 0.989),
        (100.00, 1.000),
        (96.91, 0.940),
        (66.00, 0.550),
        (100.00, 1.000),
    ),
    "ionosphere": (
        (72.36, 0.599),
        (62.51, 0.531),
        (86.52, 0.767),
        (91.01, 0.839),
        (68.00, 0.564),
        (75.00, 0.626),
        (67.70, 0.562),
    ),
    "ringnorm": (
        (76.70, 0.642),
        (58.10, 0.513),
        (98.40, 0.969),
        (99.00, 0.980),
        (76.00, 0.635),
        (77.70, 0.653),
        (80.70, 0.831),
    ),
    "digits0689": (
        (96.63, 0.968),
        (94.11, 0.946),
        (84.57, 0.887),
        (97.77, 0.978),
        (42.33, 0.696),
        (93.13, 0.939),
        (NAN, NAN),
    ),
    "digits1279": (
        (94.01, 0.943),
        (90.11, 0.911),
        (90.39, 0.914),
        (94.43, 0.948),
        (40.42, 0.681),
        (90.11, 0.909),
        (NAN, NAN),
    ),
    MNIST: (
        (89.98, 0.901),
        (87.34, 0.882),
        (90.12, 0.907),
        (91.55, 0.922),
        (67.63, 0.898),
        (NAN, NAN),
        (NAN, NAN),
    ),
}
# The thesis's Tab. 5-3: accuracy in per cent, with IterSVM in the place of IterSVR.
THESIS: dict[str, tuple[float, ...]] = {
    "digits1v7-tra": (99.61, 99.61, 97.62, 99.74, 99.23, 50.26, 99.36),
    "ionosphere": (77.78, 81.48, 78.06, 87.46, 71.23, 72.60, 63.84),
    "ringnorm": (74.50, 96.90, 98.70, 96.50, 75.55, 92.27, 79.11),
}


class Learnt(NamedTuple):
    """A model of some rows that labels others, and what was published of it.

    Parameters
    ----------
    others : str
        The rows to label, one of `SETS`.
    most : int or None, default=None
        Rows to learn from; None is all.
    accuracy, rand : float, default=NaN
        Table 3, on the others.
    thesis : float, default=NaN
        The accuracy in Tab. 5-4, on the others.
    """

    others: str
    most: int | None = None
    accuracy: float = NAN
    rand: float = NAN
    thesis: float = NAN


# The thesis's figure on the training part of "ringnorm" is that of ionosphere in Tab. 5-3.
TABLE3 = {
    MNIST: Learnt(MNIST, 1000, 91.68, 0.920),
    "digits1v7-tra": Learnt("digits1v7", thesis=98.92),
    "ringnorm": Learnt("ringnorm-rest", thesis=87.19),
}


def load_set(name: str, options: Options, most: int | None = None) -> Data:
    """A data set of the paper, columns as in the file (pixels of MNIST divided by 255).

    Parameters
    ----------
    name : str
        One of `SETS`.
    options : Options
        Bound of the rows.
    most : int or None, default=None
        Another bound.

    Returns
    -------
    Data
        Fewer rows are a draw with a fixed seed, in the order of the file.
    """
    rows = SETS[name]
    X, y = data_loaders.load(rows.dataset)
    kept = np.flatnonzero(np.isin(y, rows.classes)) if rows.classes else np.arange(len(y))
    bounds = [bound for bound in (rows.most, options.rows, most) if bound is not None]
    drawn = np.random.RandomState(0).permutation(kept)[rows.skip :]
    kept = np.sort(drawn[: min([len(drawn), *bounds])])
    return Data(name, X[kept], y[kept])


def published(name: str, method: str) -> dict[str, float]:
    """The figures that were published for a method on a data set; NaN where there is none.

    Examples
    --------
    >>> from benchmarks._mkc_data import MKC, published
    >>> published("ringnorm", MKC)
    {'published accuracy': 99.0, 'thesis accuracy': 96.5, 'published rand': 0.98}
    """
    place = METHODS.index(method)
    accuracy, rand = PUBLISHED.get(name, ((NAN, NAN),) * len(METHODS))[place]
    thesis = THESIS.get(name, (NAN,) * len(METHODS))[place]
    return {"published accuracy": accuracy, "thesis accuracy": thesis, "published rand": rand}


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
    """Accuracy in per cent as published, Rand index, adjusted Rand index."""
    from sklearn.metrics import adjusted_rand_score, rand_score

    return {
        "accuracy": 100 * majority_accuracy(y_true, labels),
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

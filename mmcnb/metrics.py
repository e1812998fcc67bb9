"""How well clusters match known classes or separate the rows."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mmcnb import _agreement
from mmcnb.errors import InputError

__all__ = [
    "adjusted_rand_index",
    "balanced_clustering_error",
    "clustering_accuracy",
    "matched_confusion",
]

COUNTED_ROWS = 2**20  # at once


def balanced_clustering_error(y_true: ArrayLike, labels: ArrayLike) -> float:
    """Mean of the error rates of the classes, under the matching of clusters to classes that is best.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Known classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each row; the numbers themselves mean nothing.

    Returns
    -------
    float
        Between 0 and 1. A class without a cluster of its own counts as wholly wrong,
        and so do the rows in clusters that are matched to no class.

    Raises
    ------
    InputError
        If the two are empty, not one-dimensional, or of different lengths.

    Notes
    -----
    For two classes and two clusters this is eq. (31) of the SKMMC paper, ``(Err+ +
    Err-) / 2``, for the better of the two matchings. The matching maximises the sum of
    the classes' rates of agreement.

    Examples
    --------
    >>> from mmcnb.metrics import balanced_clustering_error
    >>> balanced_clustering_error([0, 0, 0, 0, 1, 1], [1, 1, 1, 0, 0, 0])
    0.125
    """
    counts = _contingency(y_true, labels).toarray()
    rates = counts / counts.sum(axis=1, keepdims=True)
    return float(1.0 - _best_matching_sum(rates) / len(rates))


def clustering_accuracy(y_true: ArrayLike, labels: ArrayLike) -> float:
    """Share of rows that agree with their class, under the matching of clusters to classes that is best.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Known classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each row; the numbers themselves mean nothing.

    Returns
    -------
    float
        Between 0 and 1; each cluster is matched to at most one class, and each class to
        at most one cluster.

    Raises
    ------
    InputError
        If the two are empty, not one-dimensional, or of different lengths.

    Examples
    --------
    >>> from mmcnb.metrics import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 1])
    0.75
    """
    counts = _contingency(y_true, labels).toarray()
    return float(_best_matching_sum(counts) / counts.sum())


def adjusted_rand_index(y_true: ArrayLike, labels: ArrayLike) -> float:
    """Agreement of all pairs of rows, adjusted for chance: as scikit-learn's, for any number of rows.

    Beside the labels it takes the memory of a block of rows and a table of counts;
    scikit-learn's takes about 200 bytes a row.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Known classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each row; the numbers themselves mean nothing.

    Returns
    -------
    float
        1 if the clusters are the classes, and about 0 at random.

    Raises
    ------
    InputError
        If the two are empty, not one-dimensional, or of different lengths.

    References
    ----------
    L. Hubert and P. Arabie, Comparing partitions, eq. (5).

    Examples
    --------
    >>> from mmcnb.metrics import adjusted_rand_index
    >>> adjusted_rand_index(["a", "a", "b", "b"], [1, 1, 0, 0])
    1.0
    """
    return _agreement.adjusted_rand_index(_contingency(y_true, labels))


def matched_confusion(y_true: ArrayLike, labels: ArrayLike) -> Any:
    """Rows of each class in each cluster, each class beside the cluster that is matched to it.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Known classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each row; the numbers themselves mean nothing.

    Returns
    -------
    DataFrame of shape (n_classes, n_clusters)
        Counts, with the classes as its index and the clusters as its columns. The
        matching is that of `clustering_accuracy`: matched clusters are in the order of
        their classes, and the others follow.

    Raises
    ------
    InputError
        If the two are empty, not one-dimensional, or of different lengths.

    Examples
    --------
    >>> from mmcnb.metrics import matched_confusion
    >>> matched_confusion(["a", "a", "b", "b"], [1, 1, 0, 1])
    cluster  1  0
    class
    a        2  0
    b        1  1
    """
    import pandas as pd
    from scipy.optimize import linear_sum_assignment

    counts = _contingency(y_true, labels).toarray()
    _, matched = linear_sum_assignment(counts, maximize=True)
    order = [*matched, *np.setdiff1d(np.arange(counts.shape[1]), matched)]
    classes = pd.Index(np.unique(_one_dimensional(y_true, "y_true")), name="class")
    clusters = pd.Index(
        np.unique(_one_dimensional(labels, "labels"))[order], name="cluster"
    )
    return pd.DataFrame(counts[:, order], index=classes, columns=clusters)


def _contingency(y_true: ArrayLike, labels: ArrayLike) -> Any:
    """Count rows by class (axis 0) and cluster (axis 1), block by block."""
    from scipy.sparse import coo_array, csr_array

    y_true = _one_dimensional(y_true, "y_true")
    labels = _one_dimensional(labels, "labels")
    if len(y_true) != len(labels):
        fault = f"y_true has {len(y_true)} rows and labels has {len(labels)}"
        raise InputError(f"{fault}; give one of each a row.")
    try:
        classes = np.unique(y_true)
        clusters = np.unique(labels)
    except TypeError as error:  # of values without an order
        raise InputError(
            "y_true or labels mixes texts and numbers; give classes of one type."
        ) from error
    counts = csr_array((classes.size, clusters.size), dtype=np.int64)
    for start in range(0, len(y_true), COUNTED_ROWS):
        block = slice(start, start + COUNTED_ROWS)
        places = (
            np.searchsorted(classes, y_true[block]),
            np.searchsorted(clusters, labels[block]),
        )
        counts += coo_array(
            (np.ones(len(places[0]), np.int64), places), counts.shape
        ).tocsr()
    return counts


def _best_matching_sum(table: np.ndarray) -> float:
    from scipy.optimize import linear_sum_assignment

    return table[linear_sum_assignment(table, maximize=True)].sum()


def _one_dimensional(values: ArrayLike, name: str) -> np.ndarray:
    from mmcnb.samples.arrays import plain_values

    values = plain_values(values, name, text=True)
    values = values.astype(np.float64) if values.dtype == np.float16 else values
    if values.ndim != 1 or len(values) == 0:
        raise InputError(
            f"{name} has shape {values.shape}; give one value a row, and at least one row."
        )
    return values

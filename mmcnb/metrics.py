"""Metrics that compare clusters with known classes."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mmcnb import _agreement
from mmcnb.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array

__all__ = [
    "adjusted_rand_index",
    "balanced_clustering_error",
    "clustering_accuracy",
    "matched_confusion",
]

COUNTED_ROWS = 2**20  # number of rows counted at a time, to limit temporary memory


def balanced_clustering_error(y_true: ArrayLike, labels: ArrayLike) -> float:
    """Compute the mean error rate of the classes for the best matching of clusters.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Known classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each row. The cluster numbers are arbitrary.

    Returns
    -------
    float
        Mean error rate, between 0 (perfect) and 1. A class that is not matched to a
        cluster has an error rate of 1. Rows in clusters that are not matched to a class
        count as errors.

    Raises
    ------
    InputError
        If ``y_true`` or ``labels`` is empty or not one-dimensional, or if their lengths
        differ.

    Notes
    -----
    For two classes and two clusters, this is eq. (31) of the SKMMC paper, ``(Err+ +
    Err-) / 2``, for the better of the two matchings. In general, the best matching
    maximises the sum, over all classes, of the fraction of rows of the class that are
    in the matched cluster.

    Examples
    --------
    >>> from mmcnb.metrics import balanced_clustering_error
    >>> balanced_clustering_error([0, 0, 0, 0, 1, 1], [1, 1, 1, 0, 0, 0])
    0.125
    """
    counts = _contingency(y_true, labels).counts.toarray()
    rates = counts / counts.sum(axis=1, keepdims=True)
    return float(1.0 - _best_matching_sum(rates) / len(rates))


def clustering_accuracy(y_true: ArrayLike, labels: ArrayLike) -> float:
    """Compute the fraction of rows in the cluster that is matched to their class.

    The matching between clusters and classes is the one that maximises this fraction.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Known classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each row. The cluster numbers are arbitrary.

    Returns
    -------
    float
        Accuracy, between 0 and 1 (perfect). Each cluster is matched to at most one
        class, and each class to at most one cluster.

    Raises
    ------
    InputError
        If ``y_true`` or ``labels`` is empty or not one-dimensional, or if their lengths
        differ.

    Examples
    --------
    >>> from mmcnb.metrics import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 1])
    0.75
    """
    counts = _contingency(y_true, labels).counts.toarray()
    return float(_best_matching_sum(counts) / counts.sum())


def adjusted_rand_index(y_true: ArrayLike, labels: ArrayLike) -> float:
    """Compute the adjusted Rand index of known classes and clusters.

    The value equals the result of `sklearn.metrics.adjusted_rand_score`. In addition to
    the labels, this function needs memory only for a block of rows and the contingency
    table, whereas scikit-learn's function needs about 200 bytes per row.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Known classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each row. The cluster numbers are arbitrary.

    Returns
    -------
    float
        Adjusted Rand index: 1 if the clusters equal the classes, and about 0 on average
        for random labels. It can be negative.

    Raises
    ------
    InputError
        If ``y_true`` or ``labels`` is empty or not one-dimensional, or if their lengths
        differ.

    References
    ----------
    L. Hubert and P. Arabie, Comparing partitions, eq. (5).

    Examples
    --------
    >>> from mmcnb.metrics import adjusted_rand_index
    >>> adjusted_rand_index(["a", "a", "b", "b"], [1, 1, 0, 0])
    1.0
    """
    return _agreement.adjusted_rand_index(_contingency(y_true, labels).counts)


def matched_confusion(y_true: ArrayLike, labels: ArrayLike) -> "pd.DataFrame":
    """Return the confusion matrix of classes and clusters, ordered by best matching.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Known classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each row. The cluster numbers are arbitrary.

    Returns
    -------
    DataFrame of shape (n_classes, n_clusters)
        Number of rows of each class in each cluster. The index contains the classes,
        and the columns are the clusters. Clusters and classes are matched as in
        `clustering_accuracy`. Matched clusters are in the order of their classes, and
        unmatched clusters follow.

    Raises
    ------
    InputError
        If ``y_true`` or ``labels`` is empty or not one-dimensional, or if their lengths
        differ.

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

    table = _contingency(y_true, labels)
    counts = table.counts.toarray()
    _, matched = linear_sum_assignment(counts, maximize=True)
    n_clusters = table.clusters.size
    unmatched = np.setdiff1d(np.arange(n_clusters), matched)
    order = np.concatenate([matched, unmatched])
    return pd.DataFrame(
        counts[:, order],
        index=pd.Index(table.classes, name="class"),
        columns=pd.Index(table.clusters[order], name="cluster"),
    )


class _Contingency(NamedTuple):
    """Contingency table: number of rows by class (axis 0) and cluster (axis 1)."""

    counts: "csr_array"
    classes: np.ndarray
    clusters: np.ndarray


def _contingency(y_true: ArrayLike, labels: ArrayLike) -> _Contingency:
    """Return the contingency table, computed block by block."""
    from scipy.sparse import coo_array, csr_array

    y_true = _one_dimensional(y_true, "y_true")
    labels = _one_dimensional(labels, "labels")
    if len(y_true) != len(labels):
        raise InputError(
            f"y_true has {len(y_true)} rows and labels has {len(labels)}; "
            "give one value of each per row."
        )
    try:
        classes = np.unique(y_true)
        clusters = np.unique(labels)
    # np.unique sorts the values, which fails for a mixture of strings and numbers.
    except TypeError as error:
        raise InputError(
            "y_true or labels mixes strings and numbers; give values of one type."
        ) from error
    counts = csr_array((classes.size, clusters.size), dtype=np.int64)
    for start in range(0, len(y_true), COUNTED_ROWS):
        block = slice(start, start + COUNTED_ROWS)
        rows = np.searchsorted(classes, y_true[block])
        columns = np.searchsorted(clusters, labels[block])
        ones = np.ones(rows.size, np.int64)
        counts += coo_array((ones, (rows, columns)), counts.shape).tocsr()
    return _Contingency(counts, classes, clusters)


def _best_matching_sum(table: np.ndarray) -> float:
    from scipy.optimize import linear_sum_assignment

    return table[linear_sum_assignment(table, maximize=True)].sum()


def _one_dimensional(values: ArrayLike, name: str) -> np.ndarray:
    from mmcnb.samples.arrays import plain_values

    array = plain_values(values, name, text=True)
    if array.ndim != 1 or len(array) == 0:
        raise InputError(
            f"{name} has shape {array.shape}; "
            "give one value per row, and at least one row."
        )
    return array.astype(np.float64) if array.dtype == np.float16 else array

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
    "sampled_silhouette",
]


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
        Between 0 and 1. A class without a cluster of its own counts as wholly wrong, and so do the rows in
        clusters that are matched to no class.

    Raises
    ------
    InputError
        If the two are empty, not one-dimensional, or of different lengths.

    Notes
    -----
    For two classes and two clusters this is eq. (31) of the SKMMC paper, ``(Err+ + Err-) / 2``, for the
    better of the two matchings. The matching maximises the sum of the classes' rates of agreement.

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
        Between 0 and 1; each cluster is matched to at most one class, and each class to at most one cluster.

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

    Beside the labels it takes the memory of a block of rows and a table of counts; scikit-learn's takes about
    200 bytes a row.

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
        Counts, with the classes as its index and the clusters as its columns. The matching is that of
        `clustering_accuracy`: matched clusters are in the order of their classes, and the others follow.

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
    clusters = pd.Index(np.unique(_one_dimensional(labels, "labels"))[order], name="cluster")
    return pd.DataFrame(counts[:, order], index=classes, columns=clusters)


def sampled_silhouette(
    X: Any,
    labels: ArrayLike,
    *,
    sample_size: int | None = 5000,
    scale: str | None = None,
    random_state: Any = None,
) -> float:
    """Mean silhouette of a random sample of rows, for data of any size.

    The silhouette of a row is (b - a) / max(a, b): a is its mean distance to the sampled rows of its own
    cluster, and b the least mean distance to those of another. Distances are Euclidean, so clusters of
    other shapes than balls have a low silhouette, however clear they are.

    Parameters
    ----------
    X : array, sparse matrix, dask array, Zarr array or group, path or Samples
        The rows, of shape (n_samples, n_features); the sampled ones alone are read.
    labels : array-like of shape (n_samples,)
        Cluster of each row.
    sample_size : int or None, default=5000
        Rows of the sample, drawn without replacement; None is all rows. Time grows with its square.
    scale : {None, "standard"}, default=None
        "standard" divides columns by their deviation in the sample, for fits that scale theirs.
    random_state : int, RandomState or None, default=None
        Seed of the sample.

    Returns
    -------
    float
        Between -1 and 1, the higher the better: scikit-learn's ``silhouette_score`` of these rows. Memory is
        that of the sampled rows and 64 MiB for distances.

    Raises
    ------
    InputError
        If labels and rows differ in number, or the sample has fewer than two clusters, or as many as rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.metrics import sampled_silhouette
    >>> X = np.repeat([[0.0], [9.0]], 50, axis=0)
    >>> sampled_silhouette(X, np.repeat([0, 1], 50), sample_size=20, random_state=0)
    1.0
    """
    from sklearn import config_context
    from sklearn.metrics import silhouette_score

    from mmcnb._config import generator
    from mmcnb._constraints import Choice, Interval
    from mmcnb.engine.passes import sample_rows
    from mmcnb.samples import open_samples
    from mmcnb.samples.derived import standardized
    from mmcnb.samples.matrix import as_matrix

    samples = open_samples(X)
    labels, n = _one_dimensional(labels, "labels"), samples.n_samples
    if len(labels) != n:
        raise InputError(f"labels has {len(labels)} rows and X has {n}; give one label a row.")
    Interval(2, integer=True, optional=True).check("sample_size", sample_size)
    Choice((None, "standard")).check("scale", scale)
    rows = sample_rows(n, sample_size or n, None, generator(random_state))
    taken = labels[rows]
    n_clusters = len(np.unique(taken))
    if not 2 <= n_clusters < len(rows):
        found = f"the {len(rows)} sampled rows have {n_clusters}"
        raise InputError(f"a silhouette needs 2 clusters or more, of some rows each; {found}.")
    with config_context(working_memory=64):
        return float(silhouette_score(standardized(as_matrix(samples.gather(rows)), scale), taken))


def _contingency(y_true: ArrayLike, labels: ArrayLike) -> Any:
    """Count rows by class (axis 0) and cluster (axis 1)."""
    y_true, labels = _one_dimensional(y_true, "y_true"), _one_dimensional(labels, "labels")
    if len(y_true) != len(labels):
        fault = f"y_true has {len(y_true)} rows and labels has {len(labels)}"
        raise InputError(f"{fault}; give one of each a row.")
    try:
        return _agreement.contingency(y_true, labels)
    except TypeError as error:  # of values without an order
        raise InputError("y_true or labels mixes texts and numbers; give classes of one type.") from error


def _best_matching_sum(table: np.ndarray) -> float:
    from scipy.optimize import linear_sum_assignment

    return table[linear_sum_assignment(table, maximize=True)].sum()


def _one_dimensional(values: ArrayLike, name: str) -> np.ndarray:
    from mmcnb.samples._arrays import plain_values

    values = plain_values(values, name, text=True)
    values = values.astype(np.float64) if values.dtype == np.float16 else values
    if values.ndim != 1 or len(values) == 0:
        raise InputError(f"{name} has shape {values.shape}; give one value a row, and at least one row.")
    return values

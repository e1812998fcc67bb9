"""Starting labels of a sample: coin flips, principal components, k-means and least squares."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mmcnb.features.nystroem import MANY_COLUMNS, PrincipalFeatures, principal_directions, principal_features
from mmcnb.features.rules import GivenLabels, Labels, coin_flip
from mmcnb.least_squares.objective import floor_bounds
from mmcnb.least_squares.partition import PartitionConfig, local_search, random_labels, regularization_path

INITS = ("mixed", "random", "k-means")
LEADING = 50  # components for least squares of sparse or many columns, and for k-means of any
SEARCHED_ROWS = 1000  # of the local search, whose matrix has so many rows and columns
SEARCH_RIDGE = 1e-3  # per row, of the local search
HALVES = np.full(2, 0.5)  # proportions of a coin flip


class Start(NamedTuple):
    """Labels to start from.

    Parameters
    ----------
    labels : Labels
        Labels -1 or +1.
    warm : bool, default=False
        Whether they come from least squares: then the path skips the first C, where all starts meet.
    """

    labels: Labels
    warm: bool = False


def starting_labels(
    init: str | GivenLabels,
    n_init: int,
    z: Any,
    random_state: np.random.RandomState,
    weights: np.ndarray | None = None,
    partitions: Sequence[GivenLabels] = (),
) -> Iterator[Start]:
    """Starting labels of a sample.

    Parameters
    ----------
    init : {"mixed", "random", "k-means"} or GivenLabels
        Labels are the one start. "mixed" is a coin flip, the signs of the first kernel principal component,
        the given partitions, the signs of two further components, k-means, and then coin flips.
    n_init : int
        Number of starts.
    z : ndarray or csr_array of shape (n, r)
        The sample in feature space.
    random_state : RandomState
        Source of randomness.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.
    partitions : sequence of GivenLabels, default=()
        Partitions found before, such as those of `least_squares_labels`.

    Yields
    ------
    Start
        Labels -1 or +1, and whether they are one of the given partitions.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.starts import starting_labels
    >>> len(list(starting_labels("mixed", 2, np.arange(8.0)[:, None], np.random.RandomState(0))))
    2
    """
    kinds: list[Any] = ["coin"] * n_init
    if isinstance(init, GivenLabels):
        kinds = [init]
    elif init == "mixed":
        kinds = ["coin", 0, *partitions, 1, 2, "k-means", *kinds][:n_init]
    elif init == "k-means":
        kinds = ["k-means"] * n_init
    directions = principal_directions(z, 3, weights) if 0 in kinds else np.empty((z.shape[0], 0))
    for kind in kinds:
        if isinstance(kind, GivenLabels):
            yield Start(kind, warm=True)
        elif kind == "k-means":
            yield Start(_kmeans_labels(z, random_state, weights))
        elif kind == "coin" or kind >= directions.shape[1]:
            yield Start(coin_flip(z.shape[0], random_state))
        else:
            yield Start(_signed(directions[:, kind] >= 0, random_state))


def least_squares_labels(
    z: Any, random_state: np.random.RandomState, weights: np.ndarray | None = None, least: float = 0.05
) -> tuple[GivenLabels, GivenLabels]:
    """Two partitions of a sample by least squares: the end of a regularisation path, and a local search.

    Parameters
    ----------
    z : ndarray or csr_array of shape (n, r)
        The sample in feature space.
    random_state : RandomState
        Source of randomness.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.
    least : float, default=0.05
        Least share of a cluster.

    Returns
    -------
    pair of GivenLabels
        Labels -1 or +1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.starts import least_squares_labels
    >>> z = np.r_[np.zeros((5, 1)), np.full((5, 1), 9.0)] + np.arange(10.0)[:, None] / 99
    >>> [abs(labels.y[:5].sum()) for labels in least_squares_labels(z, np.random.RandomState(0))]
    [np.int64(5), np.int64(5)]
    """
    features = principal_features(_dense(z, weights), weights)
    flip = random_labels(z.shape[0], HALVES, random_state)
    if (features.z == features.z[:1]).all():  # all rows are equal under the kernel
        return _signed(flip, random_state), _signed(flip, random_state)
    total_variance = max(1.0, features.variances.sum())  # ridges assume kernel values of at most 1
    features = replace(
        features, z=features.z / np.sqrt(total_variance), variances=features.variances / total_variance
    )
    path = regularization_path(features, flip, 2, floor_bounds(features.total, 2, 2 * least)).labels
    searched = _local_search_labels(features, least, random_state)
    return _signed(path, random_state), _signed(searched, random_state)


def _dense(z: Any, weights: np.ndarray | None) -> np.ndarray:
    """The features, or their leading components where columns are sparse or many."""
    narrow = isinstance(z, np.ndarray) and z.shape[1] <= MANY_COLUMNS
    return z if narrow else principal_directions(z, LEADING, weights)


def _local_search_labels(
    features: PrincipalFeatures, least: float, random_state: np.random.RandomState
) -> np.ndarray:
    """Cluster some rows by local search (the paper's "shaking"), and all by the nearer of the two means."""
    rows, weights = features.z.shape[0], features.weights
    weighted = (weights != weights[0]).any()
    chosen = random_state.choice(rows, min(SEARCHED_ROWS, rows), weighted, weights / weights.sum())
    ridged = features.z * np.sqrt(features.scales(SEARCH_RIDGE))
    points = ridged[chosen] - ridged[chosen].mean(axis=0)
    config = PartitionConfig(2, n_init=1, min_share=2 * least)
    leading = features.z[chosen, :LEADING]
    partition = local_search(points @ points.T, config, random_state, leading)[0]
    first, second = (ridged[chosen[partition.labels == cluster]].mean(axis=0) for cluster in (0, 1))
    return ridged @ (second - first) >= (second + first) @ (second - first) / 2


def _signed(labels: np.ndarray, random_state: np.random.RandomState) -> GivenLabels:
    """Labels 0 and 1 as -1 and +1; a coin flip where there is only one."""
    labels = np.asarray(labels, np.int8)
    if labels.min() == labels.max():
        return coin_flip(labels.shape[0], random_state)
    return GivenLabels(2 * labels - 1)


def _kmeans_labels(z: Any, random_state: np.random.RandomState, weights: np.ndarray | None) -> GivenLabels:
    from scipy.sparse import csr_matrix, issparse
    from sklearn.cluster import KMeans

    if issparse(z):  # scikit-learn accepts 32-bit indices alone
        z = csr_matrix((z.data, z.indices.astype(np.int32), z.indptr.astype(np.int32)), shape=z.shape)
    model = KMeans(2, n_init=1, random_state=random_state.randint(2**31 - 1)).fit(z, sample_weight=weights)
    return GivenLabels(np.where(model.labels_ == 1, 1, -1).astype(np.int8))

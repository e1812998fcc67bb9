"""Starting labels for the search on a sample."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmcnb.features import nystroem
from mmcnb.features.rules import GivenLabels, coin_flip
from mmcnb.least_squares.objective import floor_bounds
from mmcnb.least_squares.partition import (
    PartitionConfig,
    local_search,
    random_labels,
    regularization_path,
)
from mmcnb.samples.matrix import Matrix, Weights, with_short_indices

INITS = ("mixed", "random", "k-means")
# Number of principal components for k-means, and for least squares if the features are
# sparse or have many columns.
LEADING = 50
# Maximum number of rows in a local search, which needs a square matrix of this size.
SEARCHED_ROWS = 1000
SEARCH_RIDGE = 1e-3  # ridge per row in the local search
HALVES = np.full(2, 0.5)  # cluster proportions of random labels


class Start(NamedTuple):
    """Starting labels -1 and +1, and where the start enters the path of C.

    A warm start begins with one of the given partitions. It skips the first values of
    C, at which the labels of different starts become equal. A late start enters the
    path at the last C.
    """

    labels: GivenLabels
    is_warm: bool = False
    is_late: bool = False


def starting_labels(
    init: str,
    n_init: int,
    z: Matrix,
    random_state: np.random.RandomState,
    weights: Weights = None,
    partitions: Sequence[GivenLabels] = (),
) -> Iterator[Start]:
    """Yield the starting labels of a sample.

    Parameters
    ----------
    init : {"mixed", "random", "k-means"}
        Kind of starting labels. "mixed" yields, in this order, random labels, the signs
        of the first kernel principal component, the given partitions, the signs of the
        next two components, k-means labels, and further random labels.
    n_init : int
        Number of starts.
    z : ndarray or csr_array of shape (n, r)
        Coordinates of the sample in feature space.
    random_state : RandomState
        Source of randomness.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights; if None, all weights are 1.
    partitions : sequence of GivenLabels, default=()
        Known partitions, for example from `least_squares_labels`. They are used only by
        "mixed".

    Yields
    ------
    Start
        The labels, and where the start enters the path of C.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.starts import starting_labels
    >>> z = np.arange(8.0)[:, None]
    >>> len(list(starting_labels("mixed", 2, z, np.random.RandomState(0))))
    2
    """
    # A kind is the index of a component, a partition, or the name of a random start.
    kinds: list[int | GivenLabels | str]
    kinds = ["k-means" if init == "k-means" else "coin"] * n_init
    if init == "mixed":
        kinds = ["coin", 0, *partitions, 1, 2, "k-means", *kinds][:n_init]
    directions = np.empty((z.shape[0], 0))
    if 0 in kinds:
        directions = nystroem.principal_directions(z, 3, weights)
    for kind in kinds:
        if isinstance(kind, GivenLabels):
            yield Start(kind, is_warm=True)
        elif kind == "k-means":
            yield Start(_kmeans_labels(z, random_state, weights))
        elif isinstance(kind, int) and kind < directions.shape[1]:
            yield Start(_signed(directions[:, kind] >= 0, random_state))
        else:
            yield Start(coin_flip(z.shape[0], random_state))


def least_squares_labels(
    z: Matrix,
    random_state: np.random.RandomState,
    weights: Weights = None,
    least: float = 0.05,
    n_searches: int = 0,
) -> list[GivenLabels]:
    """Partition a sample by least squares, with a regularisation path and local search.

    Parameters
    ----------
    z : ndarray or csr_array of shape (n, r)
        Coordinates of the sample in feature space.
    random_state : RandomState
        Source of randomness.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights; if None, all weights are 1.
    least : float, default=0.05
        Minimum share of the total weight in the smaller cluster.
    n_searches : int, default=0
        Number of additional local searches, each on a new random sample of the rows.

    Returns
    -------
    list of GivenLabels
        Labels -1 or +1: the partition at the end of the regularisation path, followed
        by the result of each local search.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.starts import least_squares_labels
    >>> z = np.repeat([[0.0], [9.0]], 5, axis=0) + np.arange(10.0)[:, None] / 99
    >>> pair = least_squares_labels(z, np.random.RandomState(0))
    >>> [abs(labels.y[:5].sum()) for labels in pair]
    [np.int64(5), np.int64(5)]
    """
    # If the features are sparse or have many columns, use the leading principal
    # components.
    coordinates = z
    if not isinstance(z, np.ndarray) or z.shape[1] > nystroem.MANY_COLUMNS:
        coordinates = nystroem.principal_directions(z, LEADING, weights)
    features = nystroem.principal_features(coordinates, weights)
    flip = random_labels(z.shape[0], HALVES, random_state)
    all_equal = (features.z == features.z[0]).all()  # under the kernel
    if all_equal:
        return [_signed(flip, random_state), _signed(flip, random_state)]
    # The ridges were chosen for kernel values of at most 1, so scale the total variance
    # to at most 1.
    total_variance = max(1.0, features.variances.sum())
    scaled = replace(
        features,
        z=features.z / np.sqrt(total_variance),
        variances=features.variances / total_variance,
    )
    bounds = floor_bounds(scaled.total, 2, 2 * least)
    end_of_path = regularization_path(scaled, flip, bounds)
    searched = _local_search_labels(scaled, least, random_state)
    partitions = [_signed(end_of_path, random_state), _signed(searched, random_state)]
    for _ in range(n_searches):
        labels = _local_search_labels(scaled, least, random_state)
        partitions.append(_signed(labels, random_state))
    return partitions


def _local_search_labels(
    features: nystroem.PrincipalFeatures,
    least: float,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """Cluster at most 1,000 rows by local search; assign all rows to the nearer mean.

    Pahikkala et al. call this local search "shaking".
    """
    n_rows = features.z.shape[0]
    weights = features.weights
    chosen = random_state.choice(
        n_rows,
        size=min(SEARCHED_ROWS, n_rows),
        replace=(weights != weights[0]).any(),
        p=weights / weights.sum(),
    )
    ridged = features.z * np.sqrt(features.scales(SEARCH_RIDGE))
    searched = ridged[chosen]
    points = searched - searched.mean(axis=0)
    config = PartitionConfig(2, n_init=1, min_share=2 * least)
    R = points @ points.T
    kmeans_points = features.z[chosen, :LEADING]
    best = local_search(R, config, random_state, kmeans_points)[0]
    mean_0 = searched[best.labels == 0].mean(axis=0)
    mean_1 = searched[best.labels == 1].mean(axis=0)
    step = mean_1 - mean_0
    halfway = (mean_1 + mean_0) @ step / 2
    return ridged @ step >= halfway


def _signed(labels: np.ndarray, random_state: np.random.RandomState) -> GivenLabels:
    """Convert labels 0 and 1 to -1 and +1; if only one occurs, draw random labels."""
    labels = np.asarray(labels, np.int8)
    if labels.min() == labels.max():
        return coin_flip(labels.shape[0], random_state)
    return GivenLabels(2 * labels - 1)


def _kmeans_labels(
    z: Matrix, random_state: np.random.RandomState, weights: Weights
) -> GivenLabels:
    from sklearn.cluster import KMeans

    model = KMeans(2, n_init=1, random_state=random_state.randint(2**31 - 1))
    model.fit(with_short_indices(z), sample_weight=weights)
    return GivenLabels(np.where(model.labels_ == 1, 1, -1).astype(np.int8))

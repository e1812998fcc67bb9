"""Valleys of density: how much farther apart rows lie at the boundary of clusters than elsewhere."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.engine.run import Engine
from mmcnb.features.nodes import distinct_rows, leading_axes, nearest_of_all, search_all, without_own

NEIGHBOURS = 10  # of each row, and at most a third of all
BOUNDARY_SHARE = 0.3  # of its neighbours that lie in other clusters, from which a row is at the boundary
FEWEST = 3  # rows between two clusters, below which they do not touch
APART = 3.0  # the valley of clusters that do not touch


@dataclass(frozen=True)
class Surroundings:
    """The nearest rows of each distinct row of a sample, and how sparse it is there.

    Parameters
    ----------
    neighbours : ndarray of shape (p, r), int64
        Nearest other rows.
    sparseness : ndarray of shape (p,)
        Logarithm of the distance to the last of them, less its mean, in standard deviations.
    weights : ndarray of shape (p,)
        Shortest such distance over that of each row, at most 1. More rows reach over a boundary where rows
        are sparse; with these weights each stretch of it counts the same.
    node_of : ndarray of shape (m,), int64
        Distinct row of each row of the sample.
    """

    neighbours: np.ndarray
    sparseness: np.ndarray
    weights: np.ndarray
    node_of: np.ndarray

    def labels_of_nodes(self, labels: np.ndarray) -> np.ndarray:
        """Labels of the distinct rows, from those of all rows."""
        of_nodes = np.empty(self.neighbours.shape[0], np.int64)
        of_nodes[self.node_of] = labels
        return of_nodes


def surroundings(
    rows: Any, random_state: np.random.RandomState, engine: Engine | None = None
) -> Surroundings:
    """Find the nearest rows of each distinct row.

    Parameters
    ----------
    rows : ndarray or CSR of shape (m, d)
        A sample; of many columns the leading principal axes count.
    random_state : RandomState
        Source of randomness.
    engine : Engine or None, default=None
        Its threads share the rows.

    Returns
    -------
    Surroundings
        The nearest rows, and the sparseness.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.valley import surroundings
    >>> rows = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> surroundings(rows, np.random.RandomState(0)).sparseness.argmax()
    np.int64(3)
    """
    nodes, node_of = distinct_rows(rows, leading_axes(rows, random_state, engine), engine)
    p = nodes.shape[0]
    if p == 1:  # it has no neighbour but itself
        return Surroundings(np.zeros((1, 1), np.int64), np.zeros(1), np.ones(1), node_of)
    count = min(NEIGHBOURS, max(1, (p - 1) // 3))
    numbers, distances = without_own(*nearest_of_all(search_all(nodes), count + 1, engine))
    spread = np.log(np.maximum(distances[:, -1], np.finfo(float).tiny))
    deviation = spread.std() or 1.0
    weights = np.exp(spread.min() - spread)
    return Surroundings(numbers, (spread - spread.mean()) / deviation, weights, node_of)


def boundary_valley(around: Surroundings, labels: np.ndarray) -> float:
    """Mean sparseness of the rows at the boundary of clusters.

    Parameters
    ----------
    around : Surroundings
        Of a sample.
    labels : ndarray of shape (m,), int
        Clusters of its rows.

    Returns
    -------
    float
        About 0 where a boundary runs anywhere, and below where it runs through the middle of a group. The
        larger, the deeper the valley between the clusters; 3 where they do not touch.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.valley import boundary_valley, surroundings
    >>> rows = np.random.RandomState(0).normal(size=(600, 2))
    >>> around = surroundings(rows, np.random.RandomState(0))
    >>> boundary_valley(around, rows[:, 0] > 0) < 0
    True
    """
    of_nodes = around.labels_of_nodes(labels)
    across = of_nodes[around.neighbours] != of_nodes[:, None]
    there = across.mean(axis=1) >= BOUNDARY_SHARE
    return (
        float(np.average(around.sparseness[there], weights=around.weights[there])) if there.any() else APART
    )


def weakest_valley(around: Surroundings, labels: np.ndarray) -> tuple[float, tuple[int, int] | None]:
    """The shallowest valley between two clusters that touch.

    Parameters
    ----------
    around : Surroundings
        Of a sample.
    labels : ndarray of shape (m,), int
        Clusters of its rows.

    Returns
    -------
    valley : float
        Mean sparseness of the rows between the two, as `boundary_valley` has it; 3 where none touch.
    clusters : pair of int or None
        The two clusters; None where none touch.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.valley import surroundings, weakest_valley
    >>> rows = np.r_[np.random.RandomState(0).normal(size=(200, 2)), np.full((1, 2), 99.0)]
    >>> around = surroundings(rows, np.random.RandomState(0))
    >>> weakest_valley(around, (rows[:, 0] > 0) + (rows[:, 0] > 9) * 1)[1]
    (0, 1)
    """
    of_nodes = around.labels_of_nodes(labels)
    k, (p, r) = int(of_nodes.max()) + 1, around.neighbours.shape
    places = np.repeat(np.arange(p), r) * k + of_nodes[around.neighbours].ravel()
    shares = np.bincount(places, minlength=p * k).reshape(p, k) / r
    shares[np.arange(p), of_nodes] = 0.0
    node, other = np.nonzero(shares >= BOUNDARY_SHARE)
    pair = np.minimum(of_nodes[node], other) * k + np.maximum(of_nodes[node], other)
    touching, weights = np.flatnonzero(np.bincount(pair) >= FEWEST), around.weights[node]
    if not touching.size:
        return APART, None
    sums = np.bincount(pair, weights * around.sparseness[node])
    means = sums[touching] / np.bincount(pair, weights)[touching]
    weakest = int(touching[means.argmin()])
    return float(means.min()), (weakest // k, weakest % k)

"""Compare rows with a surrogate: a single cloud with the same correlations.

At large scales, an elongated cloud has a lower dimension than at the scale of nearest
neighbours. Therefore, its partitions have a smaller loss than the formula for data
without structure predicts, even though it has no clusters. This also holds for a
surrogate of the rows. If the rows have clusters, their partitions have an even smaller
loss than the partitions of the surrogate.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mmcnb.choice.inner_splits import LEAST_GROUP
from mmcnb.choice.structure import Structure, find_structure
from mmcnb.graph.axes import leading_axes
from mmcnb.graph.neighbours import MOST_AXES, node_graph
from mmcnb.graph.nodes import Matrix

SURROGATE_NODES = 5000
# For few nodes, results are averaged over several surrogates: at most MOST_SURROGATES,
# with at most this many nodes in total.
NODES_OF_SURROGATES = 2000
MOST_SURROGATES = 5
SCORE_WEIGHT = 2.0  # weight of the score relative to the weight of the evidence
# A node that represents more than this share of the rows, and more than 8 rows, may be
# a cluster of its own.
HEAP = 0.05
# Axes along which the deviation is smaller than this fraction of the largest deviation
# are left out.
LEAST_DEVIATION = 3e-5
# Chosen on clouds, Gaussian groups and data sets. `python -m benchmarks number --part
# families` prints the numbers of clusters found.
LEAST_EXCESS = 1.0
# Rows scaled to length 1 need a larger excess, because the scaling also shortens the
# cloud of the surrogate.
LEAST_EXCESS_OF_DIRECTIONS = 2.0


class Excess(NamedTuple):
    """How much more structure the rows have than their surrogates.

    Attributes
    ----------
    z : float
        The largest evidence z of any partition of the rows.
    surrogate_z : float
        The largest evidence z of any partition of a surrogate, averaged over all
        surrogates.
    score : float
        The largest score of any partition of the rows, minus the largest score of any
        partition of a surrogate, averaged over all surrogates.
    needed : float
        Threshold of `value` above which the rows have more structure than one cloud.
    """

    z: float
    surrogate_z: float
    score: float
    needed: float

    @property
    def value(self) -> float:
        """Excess evidence over the surrogates, plus twice the excess score."""
        return self.z - self.surrogate_z + SCORE_WEIGHT * self.score

    @property
    def is_clear(self) -> bool:
        """Whether the rows have more structure than simulated rows in one cloud."""
        return self.value > self.needed


def excess_over_surrogate(
    structure: Structure, seed: int, each: Callable = map
) -> Excess | None:
    """Compare the structure of rows with the structure of surrogates.

    Parameters
    ----------
    structure : Structure
        Partitions of the nodes of the rows.
    seed : int
        Random seed of the surrogates, and of a draw of 5,000 nodes if there are more.
    each : callable, default=map
        Replacement for the built-in ``map``, possibly with several threads.

    Returns
    -------
    Excess or None
        None if only distances between nodes are known, or if a node represents enough
        equal rows to be a cluster. Otherwise, the weights of nodes are ignored, because
        unequal weights are not structure.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.structure import find_structure
    >>> from mmcnb.choice.surrogate import excess_over_surrogate
    >>> from mmcnb.graph.neighbours import node_graph
    >>> random = np.random.RandomState(0)
    >>> cloud = random.normal(size=(1000, 10)) / np.arange(1, 11)
    >>> structure = find_structure(node_graph(cloud, None, random))
    >>> excess_over_surrogate(structure, seed=0).is_clear
    False
    >>> cloud[::2] += 1
    >>> structure = find_structure(node_graph(cloud, None, random))
    >>> excess_over_surrogate(structure, seed=0).is_clear
    True
    """
    graph = structure.graph
    nodes = graph.search.nodes
    counts = graph.counts
    if nodes is None or counts.max() > max(LEAST_GROUP, HEAP * counts.sum()):
        return None
    random_state = np.random.RandomState(seed)
    drawn = np.arange(graph.n_nodes)
    if graph.n_nodes > SURROGATE_NODES:
        order = random_state.permutation(graph.n_nodes)
        drawn = np.sort(order[:SURROGATE_NODES])
    drawn_nodes = nodes[drawn]
    points = _points(drawn_nodes, graph.is_unit, random_state, each)
    compared = structure
    is_whole = drawn.size == graph.n_nodes and np.ptp(counts) == 0
    if points is not drawn_nodes or not is_whole:
        compared = _structure(points, random_state, each)
    clouds = [
        _structure(_cloud(points, graph.is_unit, random_state), random_state, each)
        for _ in range(_n_surrogates(len(points)))
    ]
    score = np.mean([_largest(cloud, "score") for cloud in clouds])
    return Excess(
        z=_largest(compared, "z"),
        surrogate_z=float(np.mean([_largest(cloud, "z") for cloud in clouds])),
        score=_largest(compared, "score") - float(score),
        needed=LEAST_EXCESS_OF_DIRECTIONS if graph.is_unit else LEAST_EXCESS,
    )


def _n_surrogates(n_nodes: int) -> int:
    """Return the number of surrogates, which is larger for fewer nodes."""
    return int(np.clip(NODES_OF_SURROGATES // n_nodes, 1, MOST_SURROGATES))


def _cloud(
    points: np.ndarray, is_unit: bool, random_state: np.random.RandomState
) -> np.ndarray:
    """Return simulated rows in one cloud around the mean of the points.

    If ``is_unit``, the rows are scaled to length 1.
    """
    mean = points.mean(axis=0, dtype=np.float64)
    cloud = mean + surrogate(points, random_state)
    if is_unit:
        return _of_length_1(cloud)
    return cloud


def _points(
    nodes: Matrix, is_unit: bool, random_state: np.random.RandomState, each: Callable
) -> np.ndarray:
    """Return the nodes as dense rows; project sparse or wide rows on leading axes.

    The projection reduces the cost of the singular value decomposition in `surrogate`.
    If ``is_unit``, projected rows are scaled to length 1 again.
    """
    if not hasattr(nodes, "indptr") and nodes.shape[1] <= MOST_AXES:
        return nodes
    axes = leading_axes(nodes, random_state, each)
    points = axes(nodes)
    if not is_unit or axes.axes is None:
        return points
    return _of_length_1(points + axes.mean @ axes.axes)


def _of_length_1(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def surrogate(points: np.ndarray, random_state: np.random.RandomState) -> np.ndarray:
    """Draw one cloud with as many points as given, and with the same covariance.

    The points are whitened, each whitened point is rotated to a random direction, and
    the whitening is undone. Heavy tails are preserved, because rotations do not change
    the lengths of whitened points.

    Parameters
    ----------
    points : ndarray of shape (p, c)
        Points whose covariance the cloud reproduces.
    random_state : RandomState
        Generator of the random directions.

    Returns
    -------
    ndarray of shape (p, c), float64
        The cloud, whose mean is near 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.surrogate import surrogate
    >>> random = np.random.RandomState(0)
    >>> points = random.normal(size=(4000, 3)) * [5, 2, 1]
    >>> surrogate(points, random).std(axis=0).round()
    array([5., 2., 1.])
    """
    centred = points - points.mean(axis=0, dtype=np.float64)
    whitened, lengths_of_axes, axes = np.linalg.svd(centred, full_matrices=False)
    varies = lengths_of_axes > LEAST_DEVIATION * lengths_of_axes[0]
    lengths = np.linalg.norm(whitened[:, varies], axis=1)
    directions = random_state.standard_normal((len(points), np.count_nonzero(varies)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    along_axes = lengths[:, None] * directions * lengths_of_axes[varies]
    return np.asarray(along_axes @ axes[varies])


def _structure(
    points: np.ndarray, random_state: np.random.RandomState, each: Callable
) -> Structure:
    return find_structure(node_graph(points, None, random_state, each), each=each)


def _largest(structure: Structure, figure: str) -> float:
    """Return the largest value of an attribute ("z" or "score") of any partition."""
    values = [getattr(partition, figure) for partition in structure.partitions]
    return float(max(values, default=0.0))

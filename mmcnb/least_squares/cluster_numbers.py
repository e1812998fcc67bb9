"""The number of clusters, chosen on the graph of a sample without labels."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.run import Engine
from mmcnb.errors import InputError
from mmcnb.features.graph import GraphKernel
from mmcnb.features.nystroem import principal_features
from mmcnb.features.valley import surroundings, weakest_valley
from mmcnb.least_squares.graph_partition import (
    COORDINATES,
    GraphSample,
    graph_least_share,
    graph_sample,
    mean_agreement,
    partition_graph,
)
from mmcnb.least_squares.normalized_cut import relative_cut
from mmcnb.least_squares.partition import DEFAULT_ALPHA, PartitionConfig

# Chosen on the tuning half of `python -m benchmarks choice --part clusters`, which prints the result.
VALLEY_WEIGHT, DEEPEST, SHALLOWEST = 0.3, 1.5, -1.0
STARTS = 4  # of the local search, for each number
LEAST_ROWS = 5  # a cluster, of the distinct rows of the sample


@dataclass(frozen=True)
class TriedNumber:
    """A number of clusters, and the signs of its best partition.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    relative_cut : float
        Normalised cut, as a share of that of random labels.
    agreement : float
        Mean adjusted Rand index between the best partition and the others that the search found.
    weakest_valley : float
        The shallowest valley between two of its clusters.

    Examples
    --------
    >>> from mmcnb.least_squares.cluster_numbers import TriedNumber
    >>> TriedNumber(3, 0.01, 0.9, 9.0).score
    1.35
    """

    n_clusters: int
    relative_cut: float
    agreement: float
    weakest_valley: float

    @property
    def score(self) -> float:
        """Agreement plus 0.3 times the weakest valley, within -1 and 1.5; the largest wins."""
        return self.agreement + VALLEY_WEIGHT * min(max(self.weakest_valley, SHALLOWEST), DEEPEST)

    def to_dict(self) -> dict[str, Any]:
        """The signs and the score."""
        return {**asdict(self), "score": self.score}


def try_numbers(
    engine: Engine,
    sample: Any,
    weights: np.ndarray | None,
    most: int,
    least: int,
    random_state: np.random.RandomState,
) -> list[TriedNumber]:
    """Partition a sample into each number of clusters on one graph.

    Parameters
    ----------
    engine : Engine
        Its threads share the starts.
    sample : ndarray or CSR of shape (m, d)
        The rows; 2,000 of them are taken.
    weights : ndarray of shape (m,) or None
        Their weights, of mean 1.
    most, least : int
        Numbers of clusters to try; fewer where there are few distinct rows.
    random_state : RandomState
        Source of randomness.

    Returns
    -------
    list of TriedNumber
        By rising number.

    Raises
    ------
    InputError
        If fewer than three rows differ.
    """
    rows = np.sort(random_state.permutation(sample.shape[0])[:SAMPLE_ROWS])
    sample, weights = sample[rows], None if weights is None else weights[rows]
    around = surroundings(sample, random_state, engine)
    p = around.neighbours.shape[0]
    if p < 3:
        raise InputError(f"n_clusters=None needs 3 rows that differ, and there are {p}; give n_clusters.")
    last = max(least, min(most, p // LEAST_ROWS))
    whole = graph_sample(sample, weights, GraphKernel(), last, random_state, engine)

    def tried(k: int) -> TriedNumber:
        part = leading_coordinates(whole, k, weights)
        sizes = None, 0.0, graph_least_share(k, p)
        config = PartitionConfig(k, DEFAULT_ALPHA, "shaking", "mixed", STARTS, *sizes)
        found = partition_graph(engine, part, config, random_state, sample.shape[0])
        labels = found[0].labels
        weakest, _ = weakest_valley(around, labels)
        return TriedNumber(k, relative_cut(whole.graph, labels, k), mean_agreement(found), weakest)

    return [tried(k) for k in range(least, last + 1)]


def leading_coordinates(sample: GraphSample, n_clusters: int, weights: np.ndarray | None) -> GraphSample:
    """The sample in as many coordinates as fewer clusters take."""
    q = COORDINATES * n_clusters
    values = np.ascontiguousarray(sample.values[:, :q])
    coordinates = np.ascontiguousarray(sample.graph.map.coordinates[:, :q])
    graph = replace(sample.graph, map=replace(sample.graph.map, coordinates=coordinates))
    return GraphSample(graph, values, principal_features(values, weights))


def best_number(tried: Sequence[TriedNumber]) -> int:
    """The number with the largest score; of equal ones the smaller.

    Examples
    --------
    >>> from mmcnb.least_squares.cluster_numbers import TriedNumber, best_number
    >>> best_number([TriedNumber(2, 0.1, 0.5, 0.5), TriedNumber(3, 0.1, 0.9, 0.5)])
    3
    """
    return max(tried, key=lambda one: one.score).n_clusters

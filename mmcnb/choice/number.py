"""Choose the number of clusters by the expected agreement with the true partition."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mmcnb.choice.inner_splits import split
from mmcnb.choice.judge import ROUNDING_DIGITS, cluster_weights
from mmcnb.choice.known import KnownRows
from mmcnb.choice.persistence import (
    FEWEST_NODES,
    LOW_DIMENSION,
    joined_persistence,
    joined_without_valley,
    least_of_any_cut,
    split_at_valleys,
)
from mmcnb.choice.structure import (
    ScoredPartition,
    Structure,
    agreement,
    find_structure,
)
from mmcnb.choice.surrogate import excess_over_surrogate
from mmcnb.graph.merge_tree import by_first
from mmcnb.graph.neighbours import NodeGraph
from mmcnb.samples.matrix import check_clusters, check_places

# Thresholds of the evidence z for a partition (`no_structure.significance`). Two or
# more clusters need evidence above GATE. In few dimensions, it also matters how far the
# logarithm of the density falls between the clusters. If it falls by more than
# CLEAR_FALL, evidence above FAINT suffices. If it hardly falls, evidence above GATE
# does not suffice.
GATE = 2.5
FAINT = 1.0
CLEAR_FALL = 1.0
# Rows are compared with simulated single clouds only if the evidence is at most this,
# because a single cloud never reaches it.
SURE = 12.0
SHARPNESS = 8.0  # factor of the scores in the log probabilities of the partitions
LEAST_PROBABILITY = 1e-6  # less likely partitions are ignored in expected agreements
MOST_LAYERS = 5
LEAST_LAYER_GAIN = 0.01  # least gain in expected agreement with the closest layer
# With these kernels, the partition with the widest margin is the only candidate.
MARGIN_KERNELS = ("rbf", "linear")
# Up to this number of clusters, the partition with the widest margin is a candidate in
# addition to the partitions of the graph. For more clusters, its J was not the largest
# on any of 41 shapes and data sets.
MOST_MARGIN_CLUSTERS = 2


@dataclass(frozen=True)
class Request:
    """User options of a search: number and sizes of clusters, and known labels.

    Parameters
    ----------
    n_clusters : int or None, default=None
        The requested number of clusters. If None, the number is chosen from the range.
    least, most : int and float, default=1 and inf
        The range of the number of clusters, including both ends.
    min_cluster_size : float, default=0.0
        Minimum number of rows in a cluster. A value below 1 is a share of all rows.
    known : KnownRows or None, default=None
        Known labels of rows of the sample; None if no labels are known.
    uses_graph : bool, default=True
        Whether partitions of the graph are candidates.
    most_margin_clusters : float, default=0
        Largest number of clusters for which the partition with the widest margin is a
        candidate.
    margin_kernel : {"rbf", "linear"}, default="rbf"
        Kernel function of the partition with the widest margin.
    earlier : ndarray of shape (p,), int64, or None, default=None
        Clusters of the nodes in an earlier fit, including small clusters. They are
        replaced only if the partition with the chosen number of clusters is clearly
        better. No other candidates are tried. If None, there is no earlier fit.
    keeps_earlier : bool, default=False
        Whether the earlier clusters are kept in any case.
    """

    n_clusters: int | None = None
    least: int = 1
    most: float = np.inf
    min_cluster_size: float = 0.0
    known: KnownRows | None = None
    uses_graph: bool = True
    most_margin_clusters: float = 0
    margin_kernel: str = "rbf"
    earlier: np.ndarray | None = None
    keeps_earlier: bool = False

    @classmethod
    def of(
        cls,
        n_clusters: int | str | tuple[int, int] | None,
        min_cluster_size: float | None,
        kernel: str,
        metric: str,
    ) -> Self:
        """Make a request from the parameters of the default estimator."""
        uses_graph = kernel not in MARGIN_KERNELS
        most_margin_clusters: float = 0
        if not uses_graph:
            most_margin_clusters = np.inf
        elif kernel == "auto" and metric != "precomputed":
            most_margin_clusters = MOST_MARGIN_CLUSTERS
        request = cls(
            min_cluster_size=float(min_cluster_size or 0.0),
            uses_graph=uses_graph,
            most_margin_clusters=most_margin_clusters,
            margin_kernel="rbf" if uses_graph else kernel,
        )
        if n_clusters is None or isinstance(n_clusters, str):
            return request
        if isinstance(n_clusters, tuple | list):
            least, most = n_clusters
            return replace(request, least=int(least), most=int(most))
        k = int(n_clusters)
        return replace(request, n_clusters=k, least=k, most=k)

    @property
    def likely_clusters(self) -> int:
        """Upper end of the range of the number of clusters, or 2 if it is infinite."""
        return int(self.most) if self.most < np.inf else 2

    @property
    def seeks_small(self) -> bool:
        """Whether to search for small clusters.

        This requires that neither the number nor the sizes of clusters are limited, and
        that partitions of the graph are candidates.
        """
        is_open = (self.least, self.most) == (1, np.inf)
        return is_open and self.min_cluster_size == 0 and self.uses_graph

    def least_weight(self, n_samples: float, graph: NodeGraph) -> float:
        """Return ``min_cluster_size`` in the unit of the node weights of the graph."""
        share = self.min_cluster_size
        if share >= 1:
            share /= n_samples
        return share * float(graph.sizes.sum())


@dataclass(frozen=True)
class ChosenNumber:
    """A number of clusters, and the reason why it was chosen.

    Parameters
    ----------
    n_clusters : int
        The number of clusters; 1 if the data have no cluster structure.
    labels : ndarray of shape (p,), int64
        The partition with this number of clusters.
    reason : str, default=""
        One sentence for the report; empty if the user requested this number.
    next_best : int or None, default=None
        The second best number of clusters; None if no other number was considered.
    agreement : float, default=1.0
        Expected agreement of the partition with the true partition, from 0 to 1.
    by_density : bool, default=False
        Whether clusters were split or joined because of the density along boundaries.
        If so, ``labels`` is one of the candidates.
    """

    n_clusters: int
    labels: np.ndarray
    reason: str = ""
    next_best: int | None = None
    agreement: float = 1.0
    by_density: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the entry for the report."""
        return {
            "n_clusters": self.n_clusters,
            "reason": self.reason,
            "next_best": self.next_best,
            "agreement": self.agreement,
        }


def requested_number(structure: Structure, n_clusters: int) -> ChosenNumber:
    """Return the requested number of clusters, with the tree cut that yields it."""
    return ChosenNumber(n_clusters, structure.tree.labels(n_clusters))


@dataclass(frozen=True)
class NumberedStructure:
    """The number of clusters of a graph, and the structure from which it was chosen."""

    number: ChosenNumber
    structure: Structure


def choose_number(
    graph: NodeGraph,
    request: Request,
    n_samples: float,
    each: Callable = map,
    seed: int = 0,
) -> NumberedStructure:
    """Return the requested number of clusters, or choose it within the range.

    Parameters
    ----------
    graph : NodeGraph
        Neighbour graph of the nodes.
    request : Request
        The number of clusters or its range, minimum cluster size, and known labels.
    n_samples : float
        Number of rows that the nodes represent.
    each : callable, default=map
        Replacement for the built-in ``map``, possibly with several threads.
    seed : int, default=0
        Random seed of the simulated data without clusters.

    Returns
    -------
    NumberedStructure

    Raises
    ------
    InputError
        If there are fewer nodes than the least number of clusters.
    """
    least = request.least
    check_clusters(least, graph.node_of, n_samples, "n_nodes")
    check_places(graph.n_nodes, least, "n_nodes")
    if request.n_clusters is not None:
        structure = find_structure(graph, least, each)
        return NumberedStructure(requested_number(structure, least), structure)
    if request.known is not None:
        least = max(least, request.known.least_clusters)
    structure = find_structure(graph, each=each)
    number = best_number(structure, least, max(least, request.most))
    if least < 2 <= number.n_clusters:
        number = _unless_one_cloud(structure, number, seed, each)
    if number.n_clusters < least:  # the tree may have too few pieces
        structure = find_structure(graph, least, each)
        number = replace(requested_number(structure, least), reason=number.reason)
    number = _of_least_size(graph, number, request, n_samples)
    return NumberedStructure(number, structure)


def _of_least_size(
    graph: NodeGraph, number: ChosenNumber, request: Request, n_samples: float
) -> ChosenNumber:
    """Merge clusters smaller than ``min_cluster_size`` into others.

    The reason for the number of clusters is updated.
    """
    least = request.least_weight(n_samples, graph)
    labels = without_small(graph, number.labels, least)
    n_found = number.n_clusters
    n_clusters = int(labels.max()) + 1
    if n_clusters == n_found:
        return replace(number, labels=labels)
    asked = f"min_cluster_size={request.min_cluster_size:g}"
    sizes = np.bincount(number.labels, graph.sizes) / graph.sizes.sum() * n_samples
    if n_clusters > 1:
        reason = (
            f"{n_clusters} clusters: {n_found} were found, and clusters smaller than "
            f"{asked} were joined to others."
        )
    elif sizes.max() < least / graph.sizes.sum() * n_samples:
        reason = (
            f"one cluster: {asked} is larger than each of the {n_found} clusters that "
            f"were found (the largest has about {sizes.max():,.0f} rows), so they were "
            "joined; give a smaller size."
        )
    else:
        reason = (
            f"one cluster: {n_found} were found, and {asked} is larger than all but "
            "one of them, so they were joined; give a smaller size."
        )
    return replace(number, n_clusters=n_clusters, labels=labels, reason=reason)


def best_number(
    structure: Structure, least: int = 1, most: float = np.inf
) -> ChosenNumber:
    """Choose the partition that is expected to agree most with the true partition.

    The probability that a partition is the true partition depends on its score and its
    persistence. Clusters that consist of two or more groups are split afterwards. In
    few dimensions, clusters are then split and joined according to the density along
    their boundaries.

    Parameters
    ----------
    structure : Structure
        Partitions of the nodes at many resolutions.
    least, most : int and float, default=1 and inf
        Range of the number of clusters. If ``least`` is 2 or more, at least two
        clusters are returned, however weak the evidence.

    Returns
    -------
    ChosenNumber
    """
    strongest = max((partition.z for partition in structure.partitions), default=0.0)
    is_low = is_low_dimensional(structure)
    least_evidence = FAINT if is_low else GATE
    if least < 2 and strongest <= least_evidence:
        return _one_cluster(structure, _no_evidence(strongest))
    eligible = [
        place
        for place, partition in enumerate(structure.partitions)
        if least <= partition.n_clusters <= most
    ]
    if not eligible:
        k = int(min(max(least, 2), structure.tree.n_pieces, most))
        reason = "no partition has a number of clusters in the range."
        return replace(requested_number(structure, k), reason=reason)
    number = _likeliest(structure, eligible, most)
    if not is_low:
        return number
    if least < 2:
        number = _unless_one_piece(structure, number, strongest)
        if number.n_clusters == 1:
            return number
    return _by_density(structure, number, max(least, 2), most)


def _unless_one_piece(
    structure: Structure, number: ChosenNumber, strongest: float
) -> ChosenNumber:
    """Return one cluster if the density hardly falls between the clusters.

    Otherwise, return ``number``.
    """
    graph = structure.graph
    fall = least_of_any_cut(graph, structure.d, number.labels)
    if strongest <= GATE:
        if fall > CLEAR_FALL:
            return number
        return _one_cluster(structure, _no_evidence(strongest))
    needed = joined_persistence(graph.n_nodes)
    if fall > needed:
        return number
    reason = (
        f"one cluster: {number.n_clusters} pieces were found, but the density hardly "
        f"falls between them (its logarithm falls by {max(fall, 0):.2f}; a fall of "
        f"more than {needed:.2f} is needed)."
    )
    return _one_cluster(structure, reason)


def _unless_one_cloud(
    structure: Structure, number: ChosenNumber, seed: int, each: Callable
) -> ChosenNumber:
    """Return one cluster if simulated single clouds have equally clear partitions.

    Otherwise, return ``number``. The clouds have the correlations of the rows.
    """
    strongest = max(partition.z for partition in structure.partitions)
    if is_low_dimensional(structure) or strongest > SURE:
        return number
    excess = excess_over_surrogate(structure, seed, each)
    if excess is None or excess.is_clear:
        return number
    reason = (
        "one cluster: simulated rows in one cloud with the same correlations have "
        f"partitions that are as clear (evidence {excess.surrogate_z:.1f}; your rows "
        f"have {excess.z:.1f})."
    )
    return _one_cluster(structure, reason)


def is_low_dimensional(structure: Structure) -> bool:
    """Return whether densities are reliable: dimension below 3.2, 500 nodes or more."""
    is_low = structure.d < LOW_DIMENSION
    return is_low and structure.graph.n_nodes >= FEWEST_NODES


def _no_evidence(strongest: float) -> str:
    return (
        "one cluster: no partition is clearer than in rows without structure "
        f"(evidence at most {strongest:.1f}; more than {GATE} is needed)."
    )


def _one_cluster(structure: Structure, reason: str) -> ChosenNumber:
    return ChosenNumber(1, np.zeros(structure.graph.n_nodes, np.int64), reason)


def _likeliest(structure: Structure, places: list[int], most: float) -> ChosenNumber:
    """Choose the partition with the largest expected agreement, and split it at gaps.

    The agreement is with the true partition. ``places`` are the indices of the
    partitions to choose from.
    """
    expected = _expected_agreements(structure, places)
    eligible = [structure.partitions[place] for place in places]
    # If agreements are equal up to rounding, the first partition is chosen.
    ranks = np.round(expected, ROUNDING_DIGITS)
    best = int(np.argmax(ranks))
    whole = eligible[best]
    labels = split(structure.groups, whole.labels, structure.graph.counts)
    if labels.max() >= most:
        labels = whole.labels
    k = int(labels.max()) + 1
    is_other = [
        partition.n_clusters not in (k, whole.n_clusters) for partition in eligible
    ]
    others = np.flatnonzero(is_other)
    following = int(others[ranks[others].argmax()]) if others.size else None
    reason = (
        f"{k} clusters: their expected agreement with the true partition is "
        f"{expected[best]:.2f}"
    )
    if k > whole.n_clusters:
        reason += f", after {whole.n_clusters} were split at gaps inside them"
    next_best = None
    if following is not None:
        next_best = eligible[following].n_clusters
        reason += f"; the next best number is {next_best} ({expected[following]:.2f})"
    return ChosenNumber(k, labels, f"{reason}.", next_best, float(expected[best]))


def _by_density(
    structure: Structure, number: ChosenNumber, least: int, most: float
) -> ChosenNumber:
    """Split clusters at density valleys, and join clusters that no valley separates."""
    graph = structure.graph
    d = structure.d
    pieces = split_at_valleys(graph, d, number.labels)
    if pieces.max() >= most:
        pieces = number.labels
    labels = joined_without_valley(graph, d, pieces, least)
    n_pieces = int(pieces.max()) + 1
    k = int(labels.max()) + 1
    if number.n_clusters == n_pieces == k:
        return number
    changes = []
    if n_pieces > number.n_clusters:
        changes.append(
            f"{number.n_clusters} were split into {n_pieces}, because the density "
            "falls and rises again inside them"
        )
    if k < n_pieces:
        changes.append(
            f"{n_pieces} pieces were joined into {k}, because the density does not "
            "fall between them"
        )
    next_best = number.next_best
    if number.n_clusters != k:
        next_best = number.n_clusters
    return ChosenNumber(
        n_clusters=k,
        labels=labels,
        reason=f"{k} clusters: {', and '.join(changes)}.",
        next_best=next_best,
        by_density=True,
    )


def _expected_agreements(structure: Structure, places: list[int]) -> list[float]:
    """Return the expected agreement of each partition with the true partition.

    The expected agreement is the sum of the agreements with all partitions whose
    probability exceeds 1e-6, weighted by these probabilities.
    """
    probabilities = structure.probabilities(SHARPNESS)
    likely = np.flatnonzero(probabilities > LEAST_PROBABILITY).tolist()
    return [
        sum(
            probabilities[other] * structure.pair_agreement(place, other)
            for other in likely
        )
        for place in places
    ]


def without_small(graph: NodeGraph, labels: np.ndarray, least: float) -> np.ndarray:
    """Merge each cluster lighter than ``least`` into another cluster.

    The lightest cluster is merged first, into the cluster with the strongest link to
    it.
    """
    weights = np.bincount(labels, graph.sizes)
    while weights.min() < least and weights.size > 1:
        smallest = int(weights.argmin())
        table = cluster_weights(graph, labels, weights.size)
        link = table[smallest] / table.sum(axis=1)
        link[smallest] = -1.0
        merged = np.where(labels == smallest, link.argmax(), labels)
        labels = by_first(merged)
        weights = np.bincount(labels, graph.sizes)
    return labels


# -- layers ----------------------------------------------------------------------------


def layers(
    structure: Structure, labels: np.ndarray, least_gain: float = LEAST_LAYER_GAIN
) -> list[ScoredPartition]:
    """Choose layers: the chosen partition, and tree cuts that complement it best.

    Cuts are added greedily. Each step adds the cut that most increases the expected
    agreement between the true partition and the layer closest to it.

    Parameters
    ----------
    structure : Structure
        Partitions of the nodes at many resolutions.
    labels : ndarray of shape (p,), int64
        The chosen partition.
    least_gain : float, default=0.01
        A cut is added only if it raises the expected agreement with the closest layer
        by at least this much.

    Returns
    -------
    list of ScoredPartition
        At most five layers. The first layer has the given labels. The other layers are
        in ascending order of their numbers of clusters.
    """
    taken = structure.scored(labels)
    result = [taken]
    reached = structure.agreements(labels)
    cuts = _other_cuts(structure, taken.n_clusters)
    if not cuts:
        return result
    agreements = {k: structure.agreements_of_partition(cuts[k]) for k in cuts}
    probabilities = structure.probabilities(1.0)

    def expected_with(k: int) -> float:
        """Return the rounded expected agreement with the cut into k clusters added."""
        gained = np.maximum(reached, agreements[k])
        return round(float(probabilities @ gained), ROUNDING_DIGITS)

    while cuts and len(result) < MOST_LAYERS:
        k = max(cuts, key=expected_with)
        cut = structure.partitions[cuts.pop(k)]
        gained = np.maximum(reached, agreements[k])
        if probabilities @ gained < probabilities @ reached + least_gain:
            break
        result.append(cut)
        reached = gained
    others = sorted(result[1:], key=lambda layer: layer.n_clusters)
    return [taken, *others]


def _other_cuts(structure: Structure, n_clusters: int) -> dict[int, int]:
    """Return the indices of the partitions that are tree cuts, by number of clusters.

    The cut into ``n_clusters``, the chosen number, is left out. If this number is 1,
    the result is empty.
    """
    cuts: dict[int, int] = {}
    if n_clusters == 1:
        return cuts
    for place, partition in enumerate(structure.partitions):
        k = partition.n_clusters
        if k != n_clusters and np.array_equal(
            structure.tree.labels(k), partition.labels
        ):
            cuts[k] = place
    return cuts


def layer_rows(
    structure: Structure, labels: np.ndarray, sizes: np.ndarray
) -> list[dict[str, Any]]:
    """Return one report entry for each layer; ``sizes`` holds the rows per node."""
    rows = []
    for layer in layers(structure, labels):
        smallest = np.bincount(layer.labels, sizes).min()
        row = {
            "n_clusters": layer.n_clusters,
            "persistence": layer.persistence,
            "J": layer.J,
            "smallest": round(float(smallest)),
            "agreement": agreement(layer.labels, labels, structure.graph.counts),
            "taken": layer.labels is labels,
        }
        rows.append(row)
    return rows

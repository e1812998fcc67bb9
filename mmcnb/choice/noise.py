"""Noise: rows far out in their own cluster, and clusters of scattered rows."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from mmcnb.choice.judge import judge, weighted_quantile
from mmcnb.choice.number import Request
from mmcnb.choice.search import Choice, Nodes
from mmcnb.graph.merge_tree import by_first
from mmcnb.graph.neighbours import N_NEIGHBORS, NodeGraph
from mmcnb.graph.vote import EVERY_ROW

# Of uniform rows in 26 sets, precision and recall are .58 and .73 at 2.75 deviations,
# .62 and .72 at 3; one threshold for all rows has .53 and .74.
DEVIATIONS = 3.0
# Distances to the tenth neighbour that differ by 1 % are equal, as on a grid.
LEAST_DEVIATION = 0.01
MAD_FACTOR = 1.4826  # the standard deviation of normal values over their MAD
# A cluster of n nodes has a sparse part if the medians of the two parts differ by
# 1.5 + 12 / sqrt(n) of their summed deviations, and both parts are large. One group,
# normal, uniform or with heavy tails, reaches this in fewer than 1 of 100 draws.
CLEAR_PARTS = 1.5
CLEAR_PARTS_OF_FEW = 12.0
LEAST_DENSE = 0.2
LEAST_SPARSE = 0.15
FEWEST_NODES = 30
# Of scattered rows at least 20 % border on other clusters, of groups that stand apart
# at most 15 %; at the border scattered rows are as dense as elsewhere.
LEAST_BORDER = 0.18
BORDER_FALL = 0.5  # deviations


class UsualDistance(NamedTuple):
    """The usual logarithm of the distance to the tenth neighbour.

    Attributes
    ----------
    middle : float
        Median.
    deviation : float
        Robust deviation.
    """

    middle: float
    deviation: float


class Scattered(NamedTuple):
    """A cluster that is no denser than the space around it.

    Attributes
    ----------
    cluster : int
        Its number.
    log_ratio : float
        By how much its usual distance to the tenth neighbour exceeds that of others.
    border : float
        Share of its rows that have neighbours in other clusters.
    """

    cluster: int
    log_ratio: float
    border: float

    @property
    def reason(self) -> str:
        """Why it is no cluster."""
        return (
            f"its rows are {np.exp(self.log_ratio):.1f} times as far from their tenth "
            f"neighbours as other rows, {self.border:.0%} of them border on other "
            "clusters, and there they are as dense as elsewhere"
        )


class Noise(NamedTuple):
    """What is noise among the nodes.

    Attributes
    ----------
    choice : Choice
        The clusters that are left. A node of a dropped cluster has the label of the
        cluster that it is linked to.
    thresholds : ndarray of shape (p,)
        The log d₁₀ above which rows nearest to each node are noise; `EVERY_ROW` in
        dropped clusters.
    dropped : list of dict
        For each dropped cluster its "share" of the rows, about, and the "reason".
    """

    choice: Choice
    thresholds: np.ndarray
    dropped: list[dict[str, Any]]


def find_noise(
    nodes: Nodes,
    choice: Choice,
    request: Request,
    logs: np.ndarray,
    noise: float | str,
) -> Noise:
    """Drop clusters of scattered rows, and find the rows far out in each other one.

    Known labels keep all clusters, and so does a support vector machine that was asked
    for.

    Parameters
    ----------
    nodes : Nodes
        The nodes.
    choice : Choice
        Their clusters.
    request : Request
        What was asked of the clusters.
    logs : ndarray of shape (p,)
        Logarithm of the distance to the tenth neighbour of each node.
    noise : "auto" or float
        With a number, about this share of the rows is noise.

    Returns
    -------
    Noise
    """
    graph = nodes.graph
    dropped: list[_Dropped] = []
    if request.uses_graph and request.known is None:
        dropped = _dropped_clusters(nodes, choice.best.labels, logs, noise)
    is_scattered = np.isin(choice.best.labels, [one.cluster for one in dropped])
    if dropped:
        choice = _without(nodes, choice, is_scattered, dropped)
    labels = choice.best.labels
    thresholds = noise_thresholds(logs, labels, graph.counts, noise, is_scattered)
    weights = np.where(is_scattered, 0.0, graph.counts)
    n_noise = np.bincount(labels, weights * (logs > thresholds))
    n_mostly = np.count_nonzero(2 * n_noise > np.bincount(labels, weights))
    if n_mostly > 0:
        doubt = f"most rows of {n_mostly} clusters are noise"
        if n_mostly == 1:
            doubt = "most rows of a cluster are noise"
        choice = replace(choice, trust=choice.trust.with_doubt(doubt))
    return Noise(choice, thresholds, [one.to_dict() for one in dropped])


def noise_thresholds(
    logs: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    noise: float | str,
    is_scattered: np.ndarray | None = None,
) -> np.ndarray:
    """Return the log d₁₀ above which rows nearest to each node are noise.

    A row is compared with its own cluster: with the median and the robust deviation of
    its rows, or of those in its denser part, if it has a denser and a sparse part. The
    densest row of a cluster is never noise.

    Parameters
    ----------
    logs : ndarray of shape (p,)
        Logarithm of the distance to the tenth neighbour of each node.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    counts : ndarray of shape (p,)
        Number of rows of each node.
    noise : "auto" or float
        "auto" is 3 deviations above the median. With a number the threshold is the same
        in deviations for all clusters, and about this share of the rows is noise.
    is_scattered : ndarray of shape (p,), bool, or None, default=None
        Nodes around which all rows are noise.

    Returns
    -------
    ndarray of shape (p,)

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.noise import noise_thresholds
    >>> logs = np.array([0.0, 0.1, 0.2, 0.9, 5.0, 5.1, 5.2])
    >>> labels = np.array([0, 0, 0, 0, 1, 1, 1])
    >>> logs > noise_thresholds(logs, labels, np.ones(7), "auto")
    array([False, False, False,  True, False, False, False])
    """
    if is_scattered is None:
        is_scattered = np.zeros(logs.size, bool)
    n_clusters = int(labels.max()) + 1
    middles = np.zeros(n_clusters)
    deviations = np.ones(n_clusters)
    lowest = np.zeros(n_clusters)
    for cluster in range(n_clusters):
        inside = (labels == cluster) & ~is_scattered
        usual = _usual_distance(*_denser_part(logs[inside], counts[inside]))
        middles[cluster] = usual.middle
        deviations[cluster] = max(usual.deviation, LEAST_DEVIATION)
        lowest[cluster] = logs[inside].min()
    cut = DEVIATIONS
    if not isinstance(noise, str):
        standardized = (logs - middles[labels]) / deviations[labels]
        standardized[is_scattered] = np.inf
        cut = _cut_of_share(standardized, counts, noise)
    thresholds = np.maximum(middles + cut * deviations, lowest + LEAST_DEVIATION)
    return np.where(is_scattered, EVERY_ROW, thresholds[labels])


def _usual_distance(logs: np.ndarray, counts: np.ndarray) -> UsualDistance:
    middle = _median(logs, counts)
    return UsualDistance(middle, MAD_FACTOR * _median(np.abs(logs - middle), counts))


def _median(values: np.ndarray, counts: np.ndarray) -> float:
    order = np.argsort(values, kind="stable")
    return weighted_quantile(values[order], counts[order], 0.5)


class _Part(NamedTuple):
    logs: np.ndarray
    counts: np.ndarray


def _denser_part(logs: np.ndarray, counts: np.ndarray) -> _Part:
    """Return the denser part of a cluster, or all of it if it is not two parts.

    Many scattered rows in a cluster would move its median. The parts are those between
    which the variance is largest (Otsu).
    """
    whole = _Part(logs, counts)
    if logs.size < FEWEST_NODES:
        return whole
    order = np.argsort(logs, kind="stable")
    logs = logs[order]
    counts = counts[order]
    weight = np.cumsum(counts)
    total = np.cumsum(counts * logs)
    rest = weight[-1] - weight[:-1]
    gap = (total[-1] - total[:-1]) / rest - total[:-1] / weight[:-1]
    n_dense = int(np.argmax(weight[:-1] * rest * gap**2)) + 1
    share = weight[n_dense - 1] / weight[-1]
    if share < LEAST_DENSE or 1 - share < LEAST_SPARSE:
        return whole
    dense = _usual_distance(logs[:n_dense], counts[:n_dense])
    sparse = _usual_distance(logs[n_dense:], counts[n_dense:])
    clear = CLEAR_PARTS + CLEAR_PARTS_OF_FEW / logs.size**0.5
    least = clear * (dense.deviation + sparse.deviation)
    if sparse.middle - dense.middle <= least:
        return whole
    return _Part(logs[:n_dense], counts[:n_dense])


def _cut_of_share(values: np.ndarray, counts: np.ndarray, share: float) -> float:
    """Return a number that about a share of the rows exceeds, and never more of them.

    It lies between two values, so that rounding does not decide.
    """
    order = np.argsort(-values, kind="stable")
    n_above = int((np.cumsum(counts[order]) <= share * counts.sum()).sum())
    first_below = values[order[min(n_above, order.size - 1)]]
    if n_above == 0:
        return float(first_below + 1.0)
    last_above = min(values[order[n_above - 1]], first_below + 1.0)
    return float((first_below + last_above) / 2)


# -- clusters of scattered rows --------------------------------------------------------


def scattered_clusters(
    graph: NodeGraph, logs: np.ndarray, labels: np.ndarray, small: np.ndarray
) -> list[Scattered]:
    """Find clusters that are no denser than the space around them.

    Such a cluster is far sparser than others, and its density does not fall towards
    them: many of its rows have neighbours in other clusters, and these rows are as
    dense as the rest. A group, however wide, stands apart or is sparser at its border.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    logs : ndarray of shape (p,)
        Logarithm of the distance to the tenth neighbour of each node.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    small : ndarray of shape (p,), int64
        Not 0 for nodes of small clusters that were found as dense groups, and are none.

    Returns
    -------
    list of Scattered
        The sparsest first.
    """
    counts = graph.counts
    near = graph.numbers[:, :N_NEIGHBORS]
    scattered = []
    for cluster in range(int(labels.max()) + 1):
        inside = labels == cluster
        if inside.all() or small[inside].any():
            continue
        others = _usual_distance(logs[~inside], counts[~inside])
        own = _usual_distance(logs[inside], counts[inside])
        log_ratio = own.middle - others.middle
        if log_ratio <= DEVIATIONS * others.deviation:
            continue
        is_border = (labels[near[inside]] != cluster).any(axis=1)
        border = counts[inside] @ is_border / counts[inside].sum()
        if border < LEAST_BORDER:
            continue
        at_border = _median(logs[inside][is_border], counts[inside][is_border])
        if at_border - own.middle <= BORDER_FALL * own.deviation:
            scattered.append(Scattered(cluster, log_ratio, border))
    return sorted(scattered, key=lambda cluster: -cluster.log_ratio)


class _Dropped(NamedTuple):
    cluster: int
    share: float
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return a row of the report."""
        return {"share": self.share, "reason": self.reason}


def _dropped_clusters(
    nodes: Nodes, labels: np.ndarray, logs: np.ndarray, noise: float | str
) -> list[_Dropped]:
    """Return the clusters of scattered rows; all of them, or as many as are noise."""
    shares = np.bincount(labels, nodes.rows_of_node) / nodes.rows_of_node.sum()
    left = 1.0 if isinstance(noise, str) else noise
    dropped = []
    for scattered in scattered_clusters(nodes.graph, logs, labels, nodes.small):
        share = float(shares[scattered.cluster])
        if share <= left:
            left -= share
            dropped.append(_Dropped(scattered.cluster, share, scattered.reason))
    return dropped


def _without(
    nodes: Nodes, choice: Choice, is_scattered: np.ndarray, dropped: list[_Dropped]
) -> Choice:
    """Return a choice without its scattered nodes, and say what was dropped."""
    graph = nodes.graph
    labels = by_first(_joined(graph, choice.best.labels, is_scattered))
    score = judge(graph, labels)
    best = replace(choice.best, labels=labels, score=score, model=None)
    share = sum(one.share for one in dropped)
    doubt = f"a cluster of scattered rows ({share:.1%}) was dropped"
    if len(dropped) > 1:
        doubt = f"{len(dropped)} clusters of scattered rows ({share:.1%}) were dropped"
    number = replace(choice.number, n_clusters=best.n_clusters)
    if number.reason:
        reason = f"{best.n_clusters} clusters, because {doubt}; before, {number.reason}"
        number = replace(number, reason=reason)
    trust = choice.trust.with_doubt(doubt)
    if best.n_clusters == 1:
        trust = trust._replace(level="low")
    return replace(choice, best=best, number=number, trust=trust)


def _joined(
    graph: NodeGraph, labels: np.ndarray, is_scattered: np.ndarray
) -> np.ndarray:
    """Give scattered nodes the cluster to which they are linked most, step by step."""
    labels = np.where(is_scattered, -1, labels)
    weights, _ = graph.edges()
    # The graph has one component, so that each step reaches further nodes.
    while (labels < 0).any():
        missing = np.flatnonzero(labels < 0)
        links = weights[missing].tocoo()
        clusters = labels[links.col]
        is_known = clusters >= 0
        pairs = (links.row[is_known], clusters[is_known])
        shape = missing.size, int(labels.max()) + 1
        votes = csr_array((links.data[is_known], pairs), shape)
        is_reached = np.diff(votes.indptr) > 0
        largest: np.ndarray = votes.argmax(axis=1)
        labels[missing[is_reached]] = largest[is_reached]
    return labels

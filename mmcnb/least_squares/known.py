"""What is known of some rows: labels, and pairs that belong together or apart. It picks among partitions."""

from dataclasses import dataclass, replace

import numpy as np

from mmcnb.least_squares.all_rows import MappedSample
from mmcnb.least_squares.graph_partition import GraphSample, settled_labels
from mmcnb.least_squares.normalized_cut import cut_score
from mmcnb.least_squares.objective import Partition
from mmcnb.least_squares.partition import PartitionConfig

FROM_LABELS = -1  # number of the start from known labels
STEPS = 6  # of labels, from the known ones
CHANCE = 0.05  # of the labels: `python -m benchmarks choice`, with 1 % of them
SPREAD = 0.99  # beta of label spreading: how far labels reach on a graph


@dataclass(frozen=True)
class KnownRows:
    """Labels of some rows, and pairs of rows that belong to one cluster or to two.

    Parameters
    ----------
    rows : ndarray of shape (r,), int64
        Numbers of the rows, rising; among all rows, or among those of a sample.
    labels : ndarray of shape (r,), int64
        Label of each of them, from 0; -1 where it is not known.
    pairs : ndarray of shape (q, 2), int64
        Places in ``rows``.
    together : ndarray of shape (q,), bool
        Whether the two of a pair belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.known import KnownRows
    >>> rows, labels = np.array([0, 2]), np.array([1, 0])
    >>> known = KnownRows(rows, labels, np.empty((0, 2), np.int64), np.empty(0, bool))
    >>> known.broken(np.array([0, 0, 1])), known.broken(np.array([0, 0, 0]))
    (0.0, 0.5)
    """

    rows: np.ndarray
    labels: np.ndarray
    pairs: np.ndarray
    together: np.ndarray

    def among(self, rows: np.ndarray) -> "KnownRows":
        """The same, its rows numbered by their places among some, which hold all of them."""
        return replace(self, rows=np.searchsorted(rows, self.rows))

    def broken(self, labels: np.ndarray) -> float:
        """Share of the labels and pairs that a partition breaks.

        Parameters
        ----------
        labels : ndarray of shape (m,), int64
            Clusters of all rows among which these are numbered; in any order.

        Returns
        -------
        float
            0 where all hold. A label holds where its row lies in the cluster matched with its class.
        """
        found = labels[self.rows]
        apart = found[self.pairs[:, 0]] != found[self.pairs[:, 1]]
        named = self.labels >= 0
        wrong = _mismatched(self.labels[named], found[named]) + int((apart == self.together).sum())
        return float(wrong / self.count)

    @property
    def count(self) -> int:
        """Labels and pairs."""
        return int(np.count_nonzero(self.labels >= 0) + self.together.size)

    @property
    def tolerance(self) -> float:
        """What may be chance between two broken shares: one label, and a twentieth of all."""
        return 1 / self.count + CHANCE

    @property
    def least_clusters(self) -> int:
        """The fewest clusters, at least two, that there are labels for."""
        return max(2, int(self.labels.max()) + 1)

    def start(self, n_clusters: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Rows with labels, and these; None where no row of some cluster has one."""
        named = self.labels >= 0
        labels = self.labels[named]
        return (self.rows[named], labels) if np.unique(labels).size == n_clusters else None


def _mismatched(labels: np.ndarray, found: np.ndarray) -> int:
    """Rows outside the cluster that is matched with their label, under the best matching."""
    from scipy.optimize import linear_sum_assignment

    if not labels.size:
        return 0
    k = int(max(labels.max(), found.max())) + 1
    counts = np.bincount(labels * k + found, minlength=k * k).reshape(k, k)
    return int(labels.size - counts[linear_sum_assignment(counts, maximize=True)].sum())


def ranked_by_known(
    known: KnownRows | None, sample: MappedSample, config: PartitionConfig, found: list[Partition]
) -> list[Partition]:
    """Partitions that break least of what is known, as they were, and then all others.

    Shares that differ by chance alone count as equal. One partition more starts from known labels; it comes
    last of those that do as well, because it was made from them.

    Parameters
    ----------
    known : KnownRows or None
        Rows of the sample; None leaves the partitions as they are.
    sample : MappedSample
        The sample.
    config : PartitionConfig
        Number of clusters, ridge and sizes.
    found : list of Partition
        Partitions of the sample, the best first.

    Returns
    -------
    list of Partition
        The best first.
    """
    if known is None:
        return found
    broken = [known.broken(one.labels) for one in found]
    labels = _from_labels(known, sample, config)
    if labels is not None:
        found = [*found, Partition(labels, _score(sample, labels, config), FROM_LABELS)]
        broken.append(_held_out(known, sample, config, labels))
    bound = min(broken) + known.tolerance
    order = sorted(range(len(found)), key=lambda i: broken[i] > bound)  # a stable sort
    return [found[i] for i in order]


def _score(sample: MappedSample, labels: np.ndarray, config: PartitionConfig) -> float:
    """The objective of the search on such a sample."""
    if isinstance(sample, GraphSample):
        return cut_score(sample.graph.weights, sample.graph.node_labels(labels), config.n_clusters)
    return sample.features.objective(labels, config.n_clusters, config.alpha)


def _from_labels(known: KnownRows, sample: MappedSample, config: PartitionConfig) -> np.ndarray | None:
    """Labels of a sample from the known ones; None where some cluster has none."""
    start = known.start(config.n_clusters)
    if start is None:
        return None
    rows, labels = start
    if isinstance(sample, GraphSample):
        rows, labels = np.arange(sample.values.shape[0]), _spread(sample, rows, labels)
    return settled_labels(sample, sample.ridge_map(config.alpha), config, rows, labels, STEPS)


def _held_out(known: KnownRows, sample: MappedSample, config: PartitionConfig, labels: np.ndarray) -> float:
    """The share that a start from labels breaks: of the labels of each half, from those of the other."""
    classes = [np.flatnonzero(known.labels == one) for one in range(config.n_clusters)]
    named = np.concatenate(classes)
    of_labels = _mismatched(known.labels[named], labels[known.rows[named]])
    wrong = known.broken(labels) * known.count - of_labels  # of pairs
    for first in (0, 1):
        half = np.concatenate([places[first::2] for places in classes])
        others = known.labels.copy()
        others[half] = -1
        found = _from_labels(replace(known, labels=others), sample, config)
        if found is None:
            wrong += half.size
        else:
            wrong += _mismatched(known.labels[half], found[known.rows[half]])
    return float(wrong / known.count)


def compared(one: tuple[KnownRows, list[Partition]], other: tuple[KnownRows, list[Partition]]) -> int:
    """Which of two searches breaks less, apart from chance: 1 is the first, -1 the second, 0 neither.

    Each has what is known of its own sample.
    """
    first, second = (
        min(known.broken(part.labels) for part in searched(parts)) for known, parts in (one, other)
    )
    return 0 if abs(first - second) <= one[0].tolerance else int(np.sign(second - first))


def searched(found: list[Partition]) -> list[Partition]:
    """Partitions that were found without labels, the best first."""
    return sorted((one for one in found if one.start != FROM_LABELS), key=lambda one: -one.objective)


def _spread(sample: GraphSample, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Labels of all rows of a graph, from those of some: the class with the nearest mean.

    Coordinates weigh as in label spreading, by 1/(1 - beta mu): what tells groups apart counts most, however
    few the labels are.
    """
    values, k = sample.values, int(labels.max()) + 1
    scales = np.sqrt(np.maximum((values**2).mean(axis=0), np.finfo(float).tiny))
    z = values / scales / np.sqrt(1 - SPREAD * sample.graph.eigenvalues)
    means = np.stack([z[rows[labels == one]].mean(axis=0) for one in range(k)])
    return np.asarray((z @ means.T - (means**2).sum(axis=1) / 2).argmax(axis=1), np.int64)

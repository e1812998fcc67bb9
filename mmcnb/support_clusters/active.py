"""The active rows of a support cluster machine: their sides, classes and weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mmcnb.engine.passes import CollectingPass, draw_sample
from mmcnb.engine.run import Engine
from mmcnb.features.kernel import FeatureMap, KernelSamples
from mmcnb.features.labelling import Decides
from mmcnb.samples import GROUP_ROWS, Samples, open_samples
from mmcnb.samples.matrix import Block, CSRBlock, as_csr_block, as_matrix


class Part(NamedTuple):
    """A part of the training set of an SVM.

    Attributes
    ----------
    numbers : ndarray of shape (m,), int64
        Indices of the rows among all rows of the fit.
    rows : ndarray or csr_array of shape (m, d)
        Features of the rows.
    y : ndarray of shape (m,), int8
        Side of each row, -1 or +1.
    weights : ndarray of shape (m,)
        Weight of each row.
    """

    numbers: np.ndarray
    rows: Any
    y: np.ndarray
    weights: np.ndarray


@dataclass
class ActiveSet:
    """The active rows of a support cluster machine, which have not been dropped.

    Parameters
    ----------
    samples : Samples
        All n rows of the fit, including dropped rows. After active rows have been
        cached, ``samples`` contains only the cached rows.
    numbers : ndarray of shape (n,), int64, or None
        Index of each row of ``samples`` among all rows of the fit; None if ``samples``
        contains all rows.
    y : ndarray of shape (n,), int8
        Side of each row, -1 or +1, and 0 for rows that were dropped.
    codes : ndarray of shape (n,), of integers
        Zero-based index of each row's class.
    class_weights : ndarray of shape (n_classes,)
        Weight of a row of each class.
    """

    samples: Samples
    numbers: np.ndarray | None
    y: np.ndarray
    codes: np.ndarray
    class_weights: np.ndarray

    def weights_of(self, rows: Any) -> np.ndarray:
        """Return the weight of each of the given rows."""
        return np.asarray(self.class_weights[self.codes[rows]])

    def part(self, engine: Engine, rows: np.ndarray, weights: np.ndarray) -> Part:
        """Return the given active rows as a part of a training set, sorted by index."""
        order = np.argsort(rows)
        rising = rows[order]
        gathered, _ = draw_sample(engine, self.samples, rising)
        return Part(
            numbers=rising if self.numbers is None else self.numbers[rising],
            rows=gathered,
            y=self.y[rising],
            weights=weights[order],
        )

    def cached(self, engine: Engine, most_rows: int) -> "ActiveSet":
        """Return the set with its active rows in memory if they are few enough.

        If there are more than ``most_rows``, return the set itself.
        """
        if np.count_nonzero(self.y) > most_rows:
            return self
        rows = np.flatnonzero(self.y)
        sample, _ = draw_sample(engine, self.samples, rows)
        return ActiveSet(
            samples=open_samples(sample),
            numbers=rows if self.numbers is None else self.numbers[rows],
            y=self.y[rows],
            codes=self.codes[rows],
            class_weights=self.class_weights,
        )


@dataclass(frozen=True)
class MaskedPass(CollectingPass):
    """Pass that evaluates a rule only for the rows that a mask selects.

    Parameters
    ----------
    mask : ndarray of shape (n,), bool
        True for the rows for which values are computed.
    features : FeatureMap
        Maps rows to the features of the rule.
    feature_dtype : numpy type
        Data type of the features.
    rule : Decides
        Rule that computes the values.
    dtype : numpy type
        Data type of the values.
    """

    mask: np.ndarray
    features: FeatureMap
    feature_dtype: Any
    rule: Decides
    dtype: Any

    def block(self, rows: Block, start: int, stop: int) -> list[np.ndarray]:
        """Return the values of one block, with 0 for rows outside the mask."""
        values = np.zeros(stop - start, self.dtype)
        chosen = np.flatnonzero(self.mask[start:stop])
        if chosen.size == 0:
            return [values]
        some = rows
        if chosen.size < values.size:
            some = as_matrix(rows)[chosen]
            if isinstance(rows, CSRBlock):
                some = as_csr_block(some)
        features = self.features.block(some, self.feature_dtype)
        values[chosen] = self.rule.decide(features)
        return [values]


def decide_masked(
    engine: Engine, rule: Decides, rows: Samples, mask: np.ndarray, dtype: Any
) -> np.ndarray:
    """Return the value of a rule for each row that a mask selects, and 0 for the rest.

    Parameters
    ----------
    engine : Engine
        Runs the pass.
    rule : Decides
        Rule that computes the values.
    rows : KernelSamples
        All rows, mapped to the features of the rule.
    mask : ndarray of shape (n,), bool
        True for the rows for which values are computed.
    dtype : numpy type
        Data type of the values.

    Returns
    -------
    ndarray of shape (n,)
        The values; 0 for rows that the mask does not select.
    """
    assert isinstance(rows, KernelSamples)
    masked = MaskedPass(mask, rows.basis_map, rows.dtype, rule, dtype)
    values = np.empty(rows.n_samples, dtype)
    start = 0
    for blocks in engine.stream(masked, rows.base, "rows in features"):
        for block in blocks:
            values[start : start + len(block)] = block
            start += len(block)
    return values


def rows_by_group(mask: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the indices of the rows that a mask selects, in groups.

    The indices of all rows at once would take eight bytes per row.
    """
    for start in range(0, mask.size, GROUP_ROWS):
        yield start + np.flatnonzero(mask[start : start + GROUP_ROWS])


def take_by_group(values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return ``values[numbers]``, computed in groups of indices to save memory.

    NumPy would convert all indices at once to eight bytes each.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.support_clusters.active import take_by_group
    >>> take_by_group(np.array([-1, 1], np.int8), np.array([1, 0], np.uint8))
    array([ 1, -1], dtype=int8)
    """
    taken = np.empty(numbers.size, values.dtype)
    for start in range(0, numbers.size, GROUP_ROWS):
        rows = slice(start, start + GROUP_ROWS)
        taken[rows] = values[numbers[rows]]
    return taken


def nth_rows(mask: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return the indices of some of the rows that a mask selects.

    ``ranks`` contains the zero-based positions of these rows among the selected rows,
    in increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.support_clusters.active import nth_rows
    >>> nth_rows(np.array([True, False, True, True]), np.array([0, 2]))
    array([0, 3])
    """
    chosen = []
    n_before = 0
    for rows in rows_by_group(mask):
        first, last = np.searchsorted(ranks, (n_before, n_before + rows.size))
        chosen.append(rows[ranks[first:last] - n_before])
        n_before += rows.size
    return np.concatenate(chosen)


def drawn_rows(mask: np.ndarray, n_drawn: int, random_state: Any) -> np.ndarray:
    """Draw rows without replacement among the rows that a mask selects.

    Return their indices in increasing order.
    """
    n_rows = np.count_nonzero(mask)
    # This gives the same order as `permutation`, with half of the memory.
    dtype = np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64
    order = np.arange(n_rows, dtype=dtype)
    random_state.shuffle(order)
    return nth_rows(mask, np.sort(order[:n_drawn]))


class Members(NamedTuple):
    """One row drawn from each cluster, and the weights of the clusters.

    Attributes
    ----------
    rows : ndarray of shape (k,), int64
        Indices of the drawn rows.
    sizes : ndarray of shape (k,)
        Total weight of each cluster.
    """

    rows: np.ndarray
    sizes: np.ndarray


def drawn_members(
    active: ActiveSet,
    mask: np.ndarray,
    labels: np.ndarray,
    n_clusters: int,
    random_state: Any,
) -> Members:
    """Draw one row of each cluster, with probability proportional to the row's weight.

    A sum over the drawn rows, each with the weight of its cluster, is then an unbiased
    estimate of the weighted sum over all rows.

    Parameters
    ----------
    active : ActiveSet
        The active rows, with their weights.
    mask : ndarray of shape (n,), bool
        True for the rows that belong to the clusters.
    labels : ndarray of shape (n,), of integers
        Cluster of each row that the mask selects.
    n_clusters : int
        Number of clusters, some of which may be empty.
    random_state : RandomState
        Random number generator; one number is drawn per row.

    Returns
    -------
    Members
        Drawn rows and weights of the nonempty clusters, in the order of the cluster
        numbers.
    """
    best = np.full(n_clusters, np.inf)
    members = np.full(n_clusters, -1)
    sizes = np.zeros(n_clusters)
    for rows in rows_by_group(mask):
        weights = active.weights_of(rows)
        clusters = labels[rows]
        np.add.at(sizes, clusters, weights)
        # Draw exponential arrival times with rates equal to the weights. The
        # probability that a row arrives first in its cluster is then proportional to
        # its weight.
        arrivals = random_state.exponential(size=rows.size) / weights
        order = np.lexsort((arrivals, clusters))
        first = order[np.flatnonzero(np.diff(clusters[order], prepend=-1))]
        is_earlier = arrivals[first] < best[clusters[first]]
        first = first[is_earlier]
        best[clusters[first]] = arrivals[first]
        members[clusters[first]] = rows[first]
    is_used = members >= 0
    return Members(members[is_used], sizes[is_used])

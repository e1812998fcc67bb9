"""The clusters to explain: their labels, and a sample of the rows of each."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mmcnb._config import LIBRARIES, resolve_memory_limit
from mmcnb.engine.passes import sample_rows
from mmcnb.engine.plan import FitNeeds, RowShape, plan_passes
from mmcnb.engine.run import TASK_BYTES
from mmcnb.errors import worded
from mmcnb.features.rules import Rule
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS, Samples
from mmcnb.samples.matrix import Matrix


def agree(labels: np.ndarray | None, rule: Rule, features: Samples) -> bool:
    """Return whether a rule gives the first and the last rows the labels of a fit."""
    n = features.n_samples
    if labels is None or labels.size != n:
        return False
    ends = np.unique(np.r_[:BLOCK_ROWS, n - BLOCK_ROWS : n].clip(0, n - 1))
    return np.array_equal(rule.label(features.gather(ends)), labels[ends])


class Groups(NamedTuple):
    """Rows by cluster.

    Attributes
    ----------
    clusters : ndarray of shape (k,)
        The labels that occur, in order.
    counts : ndarray of shape (k,), int64
        Rows of each.
    codes : ndarray of shape (n,), int8 or wider
        Place of the label of each row among them.
    """

    clusters: np.ndarray
    counts: np.ndarray
    codes: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Places of the clusters, without noise."""
        return np.flatnonzero(self.clusters != -1)


class Sample(NamedTuple):
    """Some rows.

    Attributes
    ----------
    X : ndarray or csr_array of shape (m, d)
        The rows, not scaled.
    values : ndarray or csr_array of shape (m, d)
        The same with NaN in place of the gaps that are filled.
    rows : ndarray of shape (m,), int64
        Their numbers.
    codes : ndarray of shape (m,), int8 or wider
        Place of the cluster of each.
    weights : ndarray of shape (m,), float64
        How many rows of its cluster each stands for.
    """

    X: Matrix
    values: Matrix
    rows: np.ndarray
    codes: np.ndarray
    weights: np.ndarray

    @property
    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Index of the cluster of each row in arrays of shape (m, k)."""
        return np.arange(self.codes.size), self.codes


def grouped(labels: np.ndarray) -> Groups:
    """Group rows by their labels.

    Raises
    ------
    InputError
        Some are numbers and some are names.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.groups import grouped
    >>> grouped(np.array([3, -1, 3])).codes
    array([1, 0, 1], dtype=int8)
    """
    with worded("labels has numbers and names", "give either of them", TypeError):
        sizes = pd.Series(labels, copy=False).value_counts().sort_index()
    clusters = sizes.index.infer_objects().to_numpy()
    # A byte a row, of which each Dask worker gets that of its own rows.
    dtype = np.min_scalar_type(-len(clusters))
    codes = []
    for start in range(0, len(labels), GROUP_ROWS):
        group = labels[start : start + GROUP_ROWS]
        codes.append(np.searchsorted(clusters, group).astype(dtype))
    if clusters.dtype.kind in "iufb":
        clusters = clusters.astype(np.int64)
    return Groups(clusters, sizes.to_numpy(), np.concatenate(codes))


def plan_explanation(
    rows: RowShape,
    k: int,
    memory_limit: str | int | None = None,
    n_jobs: int | None = None,
    n_landmarks: int = 0,
) -> tuple[int, int]:
    """Plan the rows of a sample of k clusters, and the threads of the pass.

    The sample has 20,000 rows, or as many as the limit leaves beside float64 means.
    Landmarks count if the rows are labelled first.

    Raises
    ------
    MemoryLimitError
        The limit is too small for these means, a row of each cluster and one thread;
        the message names the least that works.

    Examples
    --------
    >>> from mmcnb.engine.plan import RowShape
    >>> from mmcnb.explanation.groups import plan_explanation
    >>> plan_explanation(RowShape(10**7, 50), 5, "1GiB", n_jobs=8)
    (20000, 8)
    >>> plan_explanation(RowShape(10**7, 20_000), 5, "3GiB", n_jobs=8)
    (2955, 2)
    """
    d = rows.n_features
    size = rows.row_bytes
    # Means are those of all rows, of others and of blocks that wait. A row is gathered,
    # scaled and mapped.
    means = 8.0 * k * d * (8 + 3 * TASK_BYTES / BLOCK_ROWS / size)
    row = 12 * size + 32 * k
    # While blocks are read, the rows gathered have a sixth of what they take later.
    read = replace(
        rows,
        row_bytes=1.2 * size,
        chunk_bytes=1.2 * rows.chunk_bytes,
        edge_bytes=1.2 * rows.edge_bytes,
    )
    needs = FitNeeds(n_landmarks, sample_bytes=means + k * row)
    threads = plan_passes(read, needs, memory_limit, n_jobs).threads
    always = LIBRARIES + rows.held_bytes + needs.sample_bytes
    spare = resolve_memory_limit(memory_limit) - always
    return min(20_000, rows.n_samples, k + int(spare / row)), threads


def sizes_of_samples(counts: np.ndarray, most: int) -> np.ndarray:
    """Divide rows of a sample evenly among clusters, and take all rows of small ones.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.groups import sizes_of_samples
    >>> sizes_of_samples(np.array([900, 20, 80]), 100)
    array([40, 20, 40])
    """
    sizes = np.zeros_like(counts)
    for done, k in enumerate(np.argsort(counts, kind="stable")):
        share = (most - sizes.sum()) // (len(counts) - done)
        sizes[k] = min(counts[k], max(1, share))
    return sizes


def draw_rows(groups: Groups, sizes: np.ndarray) -> np.ndarray:
    """Draw numbers of rows at random from each cluster, in rising order."""
    random = np.random.RandomState(0)
    rows = []
    for k, size in enumerate(sizes.tolist()):
        ranks = sample_rows(int(groups.counts[k]), size, None, random)
        n_before = 0
        for start in range(0, len(groups.codes), GROUP_ROWS):
            codes = groups.codes[start : start + GROUP_ROWS]
            members = np.flatnonzero(codes == k)
            n_after = n_before + members.size
            first, last = np.searchsorted(ranks, (n_before, n_after))
            drawn = members[ranks[first:last] - n_before]
            rows.append(start + drawn)
            n_before = n_after
    return np.sort(np.concatenate(rows))

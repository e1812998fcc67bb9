"""Group rows by cluster, and draw a sample of rows from each cluster."""

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
    """Return whether a decision rule predicts the labels of the first and last rows.

    The first and the last `BLOCK_ROWS` rows are checked.
    """
    n = features.n_samples
    if labels is None or labels.size != n:
        return False
    ends = np.unique(np.r_[:BLOCK_ROWS, n - BLOCK_ROWS : n].clip(0, n - 1))
    return np.array_equal(rule.label(features.gather(ends)), labels[ends])


class Groups(NamedTuple):
    """Rows grouped by cluster.

    Attributes
    ----------
    clusters : ndarray of shape (k,)
        Distinct labels, in ascending order.
    counts : ndarray of shape (k,), int64
        Number of rows in each cluster.
    codes : ndarray of shape (n,), int8 or wider
        For each row, the index of its label in ``clusters``.
    """

    clusters: np.ndarray
    counts: np.ndarray
    codes: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Indices in ``clusters`` of the clusters other than noise."""
        return np.flatnonzero(self.clusters != -1)


class Sample(NamedTuple):
    """A sample of the rows.

    Attributes
    ----------
    X : ndarray or csr_array of shape (m, d)
        Sampled rows, before scaling.
    values : ndarray or csr_array of shape (m, d)
        Sampled rows, in which missing values are NaN instead of filled.
    rows : ndarray of shape (m,), int64
        Row numbers of the sampled rows in the data.
    codes : ndarray of shape (m,), int8 or wider
        For each sampled row, the index of its cluster.
    weights : ndarray of shape (m,), float64
        Number of rows of its cluster that each sampled row represents.
    """

    X: Matrix
    values: Matrix
    rows: np.ndarray
    codes: np.ndarray
    weights: np.ndarray

    @property
    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """Index of the entry of each row's own cluster in an array of shape (m, k)."""
        return np.arange(self.codes.size), self.codes


def grouped(labels: np.ndarray) -> Groups:
    """Group rows by their labels.

    Raises
    ------
    InputError
        If some labels are numbers and other labels are names.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.groups import grouped
    >>> grouped(np.array([3, -1, 3])).codes
    array([1, 0, 1], dtype=int8)
    """
    with worded(
        "labels has numbers and names", "give either numbers or names", TypeError
    ):
        sizes = pd.Series(labels, copy=False).value_counts().sort_index()
    clusters = sizes.index.infer_objects().to_numpy()
    # With the smallest dtype, codes usually need one byte per row. If they are int8, a
    # Dask task receives only the codes of its own rows.
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
    """Plan the size of the sample and the number of threads of an explanation.

    The sample has 20,000 rows, or fewer if there are fewer rows or if the memory limit
    is too small for the sample and the means of the columns.

    Parameters
    ----------
    rows : RowShape
        Number, size and storage of the rows.
    k : int
        Number of clusters.
    memory_limit, n_jobs
        See `plan_fit`.
    n_landmarks : int, default=0
        Number of kernel columns that are computed to label the rows first; 0 if labels
        are known.

    Returns
    -------
    size : int
        Number of rows of the sample.
    threads : int
        Number of threads.

    Raises
    ------
    MemoryLimitError
        If the limit is too small for the means, one row of each cluster and one thread.
        The message names the smallest limit that works.

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
    # Memory is needed for the means of clusters, for the means of the rows outside each
    # cluster, and for the sums of blocks that are not yet added. Each row of the sample
    # is gathered, scaled and mapped.
    means = 8.0 * k * d * (8 + 3 * TASK_BYTES / BLOCK_ROWS / size)
    row = 12 * size + 32 * k
    # The factor 1.2 accounts for the gathered rows, which already need a sixth of their
    # final memory while blocks are read.
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
    """Return how many of ``most`` sampled rows each cluster gets.

    The rows are divided evenly among the clusters, but all rows of small clusters are
    included. Each cluster gets at least one row.

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
    """Draw ``sizes[k]`` rows of each cluster k at random, and return their numbers.

    The row numbers are sorted.
    """
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

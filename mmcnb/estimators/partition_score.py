"""The score J of `MaximumMarginClustering`, for partitions from any source."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mmcnb._config import generator
from mmcnb._constraints import Choice, Interval
from mmcnb._docstrings import fill_docstrings
from mmcnb.choice.judge import judge
from mmcnb.columns.treatment import treat
from mmcnb.engine.passes import sample_rows, scaling_of
from mmcnb.engine.sample_weights import read_weights
from mmcnb.errors import GapsError, InputError
from mmcnb.estimators.given_rows import open_with_filled_gaps
from mmcnb.estimators.parameters import Scale
from mmcnb.features.directions import unit_rows
from mmcnb.graph.neighbours import N_NODES, axes_of, node_graph
from mmcnb.samples.arrays import plain_values
from mmcnb.samples.derived import scaled_matrix
from mmcnb.samples.matrix import as_matrix, column_moments
from mmcnb.tables.array_table import open_array
from mmcnb.tables.options import OF_FITS


class PartitionScore(NamedTuple):
    """The score of a partition.

    Attributes
    ----------
    J : float
        ``4 * information + gap``; larger is better.
    information : float
        Mutual information of the labels at the two ends of an edge of the neighbour
        graph, divided by log k for k clusters.
    gap : float
        Logarithm of the ratio of a short to a long distance: the 5 % quantile of the
        distances between neighbours in different clusters, divided by the 75 % quantile
        of the distances between neighbours in the same cluster.
    left_out : float
        Share of the rows with the label -1, which the score ignores.
    """

    J: float
    information: float
    gap: float
    left_out: float


@fill_docstrings
def partition_score(  # noqa: PLR0913
    X: object,
    labels: ArrayLike,
    *,
    sample_weight: object = None,
    metric: str = "euclidean",
    scale: Any = "auto",
    n_nodes: int = N_NODES,
    random_state: int | np.random.RandomState | None = None,
    element: str | None = None,
) -> PartitionScore:
    """Score a partition as `MaximumMarginClustering` scores its candidates.

    Scores can be compared between partitions of the same rows into the same number of
    clusters.

    Parameters
    ----------
    X : {rows}
        The rows; only a sample of ``n_nodes`` rows is read.
    labels : array-like of shape (n_samples,)
        Cluster of each row, as numbers or text; -1 marks rows that are in no cluster.
    sample_weight : {weights}
        Weight of each row. A row of weight 2 counts as two equal rows.
    metric : {"euclidean", "cosine"}, default="euclidean"
        How rows are compared. "cosine" divides each row by its Euclidean norm.
    scale : {"auto", "standard", None} or dict, default="auto"
        Scaling of the columns, as in `MaximumMarginClustering`; None uses the columns
        as they are.
    n_nodes : int, default=20000
        Number of rows in the sample. If X has fewer rows, all are used.
    random_state : int, RandomState or None, default=None
        Seed of the sample.
    {element}

    Returns
    -------
    PartitionScore
        J, its two terms, and the share of the rows with the label -1.

    Raises
    ------
    InputError
        If X and ``labels`` have different lengths, or if the sample has fewer than two
        clusters.

    Examples
    --------
    >>> import numpy as np
    >>> import mmcnb
    >>> near = np.random.default_rng(0).normal(size=(50, 2))
    >>> X = np.r_[near, np.full((50, 2), 9.0)]
    >>> halves = np.repeat([0, 1], 50)
    >>> stripes = np.tile([0, 1], 50)
    >>> mmcnb.partition_score(X, halves).J > mmcnb.partition_score(X, stripes).J
    True
    """
    samples = open_with_filled_gaps(X, element)
    partition = plain_values(labels, "labels", text=True)
    n = samples.n_samples
    Choice(("euclidean", "cosine")).check("metric", metric)
    Scale().check("scale", scale)
    Interval(2, integer=True).check("n_nodes", n_nodes)
    if partition.shape != (n,):
        raise InputError(
            f"labels has shape {partition.shape}, but X has {n} rows; "
            "pass one label per row."
        )
    weights = _row_weights(sample_weight, n)
    is_counted = np.ones(n, bool)
    if partition.dtype.kind in "iufb":
        is_counted = partition != -1
    state = generator(random_state)
    rows = sample_rows(n, int(n_nodes), weights * is_counted, state)
    clusters, numbers = np.unique(partition[rows], return_inverse=True)
    if clusters.size < 2:
        raise InputError(
            f"labels has {clusters.size} cluster(s) in the sample; "
            "pass labels of two or more clusters."
        )
    try:
        sample = as_matrix(samples.gather(rows))
    except GapsError:
        sample = as_matrix(open_array(samples, options=OF_FITS).gather(rows))
    moments = None
    if scale == "standard":
        moments = scaling_of(column_moments(sample, weights[rows]))
    row_weights = None if sample_weight is None else weights[rows]
    treatment = treat(
        scale,
        sample,
        moments,
        row_weights,
        samples.sources,
        kept="directions alone count" if metric == "cosine" else "",
        is_part=rows.size < n,
        orders=samples.orders,
    )
    sample = scaled_matrix(sample, treatment.scaling)
    if metric == "cosine":
        sample = unit_rows(sample)
    graph = node_graph(sample, row_weights, state, n_axes=axes_of(clusters.size))
    left_out = 1 - weights[is_counted].sum() / weights.sum()
    score = judge(graph, graph.of_nodes(numbers.ravel()))
    return PartitionScore(*score, left_out=float(left_out))


def _row_weights(sample_weight: object, n_samples: int) -> np.ndarray:
    """Return the sample weights, or ones if no weights or equal weights were passed."""
    if sample_weight is not None:
        weights, _ = read_weights(sample_weight, n_samples)
        if weights is not None:
            return weights
    return np.ones(n_samples)

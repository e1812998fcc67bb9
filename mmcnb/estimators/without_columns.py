"""Search the sample again, without the columns that alone determine the clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.choice.number import Request
from mmcnb.choice.search import Nodes, search
from mmcnb.choice.structure import agreement
from mmcnb.choice.trust import Without
from mmcnb.columns.kinds import ColumnName, SampleColumns
from mmcnb.columns.order import order_of_columns
from mmcnb.columns.treatment import centred, treat
from mmcnb.engine.session import FitSession
from mmcnb.errors import EqualRowsError, InputError
from mmcnb.estimators.sampled_nodes import COMPARED_ROWS, numbered_nodes
from mmcnb.features.directions import unit_rows
from mmcnb.samples.derived import scaled_matrix
from mmcnb.samples.matrix import take_columns


def clusters_without(
    session: FitSession,
    request: Request,
    metric: str,
    scale: str | Mapping[Any, Any] | None,
    seed: int,
    names: Sequence[ColumnName],
    labels: np.ndarray,
) -> Without | None:
    """Search for clusters without some columns, on some rows of the sample.

    Up to 5,000 rows are drawn, or 20 rows for each likely cluster if this is more.

    Parameters
    ----------
    session : FitSession
        Session of the fit, which contains the sample.
    request : Request
        What the user requested, such as a range for the number of clusters.
    metric : {"euclidean", "cosine"}
        How rows are compared.
    scale : {None, "standard", "auto"} or dict
        Scaling of the columns. "auto" is decided again without the left-out columns.
    seed : int
        Seed of the rows and of the search.
    names : sequence of str or int
        Names or numbers of the columns to leave out.
    labels : ndarray of shape (m,), int64
        The selected cluster of each row of the sample.

    Returns
    -------
    Without or None
        Number of clusters that this search finds, and their agreement with ``labels``.
        None if no columns are left, or if the remaining columns have fewer distinct
        rows than the requested number of clusters.
    """
    columns = session.treatment.columns
    assert columns is not None
    is_kept = np.array([name not in names for name in columns.names])
    if not is_kept.any():
        return None
    others = is_kept.repeat(columns.widths)
    n_rows = max(COMPARED_ROWS, 20 * request.likely_clusters)
    order = np.random.RandomState(seed).permutation(len(columns.rows))
    rows = np.sort(order[:n_rows])
    part = session.of_rows(rows)
    in_order = others
    if session.column_order is not None:
        in_order = others[session.column_order]
    if metric == "cosine":
        sample = unit_rows(part.sample[:, in_order])
    elif scale == "auto":
        sample = _scaled_again(columns, rows, others)
    else:
        sample = part.sample[:, in_order]
    part = replace(part, sample=sample)
    request = replace(request, known=None, uses_graph=True)
    try:
        nodes = _nodes(part, request, metric, seed)
        choice = search(nodes, request, seed, each=session.engine.each)
    except EqualRowsError:
        return Without(1, 0.0)
    except InputError:
        return None
    found = choice.best.labels[nodes.graph.node_of]
    counts = None
    if part.sample_weights is not None:
        counts = _whole(part.sample_weights)
    index = max(0.0, agreement(labels[rows], found, counts))
    return Without(choice.best.n_clusters, float(index))


def _whole(weights: np.ndarray) -> np.ndarray:
    """Return the weights divided by the smallest weight and rounded to integers.

    If the weights differ by more than a factor of 2**31, they are divided by a larger
    number, and the smallest results become 1.
    """
    unit = max(weights.min(), weights.max() / 2**31)
    return np.rint(weights / unit).clip(1)


def _scaled_again(
    columns: SampleColumns, rows: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """Scale a part of the sample as if the table had only the columns ``others``.

    ``rows`` selects the rows of this part.
    """
    sources = columns.sources
    if sources is not None:
        sources = [sources[k] for k in np.flatnonzero(others).tolist()]
    sample = columns.rows[rows][:, others]
    weights = columns.weights[rows]
    treatment = treat("auto", sample, None, weights, sources, orders=columns.orders)
    scaled = scaled_matrix(sample, centred(treatment).scaling)
    return take_columns(scaled, order_of_columns(sample))


def _nodes(session: FitSession, request: Request, metric: str, seed: int) -> Nodes:
    """Build the nodes of the sample, without a search for small clusters."""
    n_samples = session.samples.n_samples
    numbered = numbered_nodes(session, request, metric, seed)
    graph = numbered.structure.graph
    return Nodes(
        sample=session.sample,
        sample_weights=session.sample_weights,
        n_samples=n_samples,
        rows_of_node=graph.sizes * (n_samples / graph.sizes.sum()),
        structure=numbered.structure,
        number=numbered.number,
        small=np.zeros(graph.n_nodes, np.int64),
    )

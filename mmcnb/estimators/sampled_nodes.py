"""The first stages of the default fit: nodes, number of clusters, widest margin."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmcnb.choice.candidates import Proposal, graph_proposals, judge_candidates
from mmcnb.choice.number import (
    MOST_MARGIN_CLUSTERS,
    NumberedStructure,
    Request,
    choose_number,
)
from mmcnb.choice.search import Nodes
from mmcnb.choice.small import far_row_groups, tubes_inwards, with_own, with_valleys
from mmcnb.choice.structure import MANY
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitSession
from mmcnb.errors import InputError
from mmcnb.features.directions import unit_rows
from mmcnb.features.far_rows import FAR_SHARE, far_rows, rows_in_tubes
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.needs import bytes_of_rows, node_row_seconds
from mmcnb.features.rules import Shares
from mmcnb.graph.axes import LEADING_AXES
from mmcnb.graph.inverted_file import InvertedFileIndex
from mmcnb.graph.neighbours import NodeGraph, axes_of, node_graph
from mmcnb.graph.precomputed import given_graph
from mmcnb.hinge.landmarks import margin_needs, margin_on_sample
from mmcnb.hinge.needs import HELD_ROWS
from mmcnb.hinge.sample_search import draw_rows
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import stack, take_columns

# Memory and time per node, including its neighbours, edges and communities; the time is
# for one core.
NODE_BYTES = 3750.0
NODE_SECONDS = 5e-5
# Bytes per node in each additional thread, which computes another candidate. On adult
# a9a, two threads raise the peak by 50 to 70 MiB.
THREAD_NODE_BYTES = 3000.0
# Factor by which NODE_BYTES grows if the number of clusters is chosen, which compares
# partitions at several resolutions.
RESOLUTIONS_FACTOR = 1.4
# Seconds of compilation, including the routines of the candidates.
GRAPH_ROUTINES = {"nearest_nodes_into": 18.0}
COMPARED_ROWS = 5000  # rows on which scaled and unscaled columns are compared
# Unscaled columns are used if their J is larger by at least this much (chosen by
# `python -m benchmarks columns`).
SCALING_GAIN = 1.5


def as_directions(session: FitSession) -> FitSession:
    """Return a session with the rows of its sample scaled to length 1."""
    if session.samples.n_features == 1:
        raise InputError(
            "metric='cosine' needs at least 2 columns, but n_features=1; "
            "pass metric='euclidean'."
        )
    return replace(session, sample=unit_rows(session.sample))


def with_best_scale(
    session: FitSession, request: Request, metric: str, seed: int
) -> FitSession:
    """Undo the scaling of the columns if J is much larger for unscaled columns.

    Scaled and unscaled columns are compared only if units are the only reason for the
    scaling. Columns with different ranges may still have the same unit, such as
    coordinates in metres. The comparison uses up to 5,000 rows of the sample, or 20
    rows for each likely cluster if this is more.
    """
    treatment = session.treatment
    columns = treatment.columns
    if columns is None or not (request.uses_graph and treatment.only_units):
        return session
    rows_as_they_are = take_columns(columns.rows, session.column_order)
    unscaled = replace(session, sample=rows_as_they_are, scaling=None)
    n_rows = max(COMPARED_ROWS, 20 * request.likely_clusters)
    order = np.random.RandomState(seed).permutation(len(columns.rows))
    rows = np.sort(order[:n_rows])
    graph = _graph(unscaled.of_rows(rows), request.likely_clusters, metric)
    scaled_graph = _graph(session.of_rows(rows), request.likely_clusters, metric)
    each = session.engine.each
    n_samples = session.samples.n_samples
    number = choose_number(graph, request, n_samples, each, seed).number
    k = number.n_clusters
    if k == 1:
        return session

    def largest_J(graph: NodeGraph) -> float:
        proposals = graph_proposals(graph, k, seed)
        candidates = judge_candidates(graph, k, proposals, each).candidates
        return max(candidate.score.J for candidate in candidates)

    J = largest_J(graph)
    J_scaled = largest_J(scaled_graph)
    if J_scaled + SCALING_GAIN > J:
        return session
    return replace(unscaled, treatment=treatment.left_out(J, J_scaled))


def sampled_nodes(
    session: FitSession, request: Request, metric: str, seed: int
) -> Nodes:
    """Return the nodes of a sample, with their graph and the number of clusters.

    Rows of clusters that are too small to be found in the sample are added to the
    nodes.

    Parameters
    ----------
    session : FitSession
        Session of the fit, which contains the sample.
    request : Request
        What the user requested, such as a range for the number of clusters.
    metric : {"euclidean", "cosine", "precomputed"}
        How rows are compared.
    seed : int
        Seed of the search for small clusters.

    Returns
    -------
    Nodes

    Raises
    ------
    EqualRowsError
        If all rows are equal.
    InputError
        If there are fewer distinct rows than clusters.
    """
    each = session.engine.each
    n_samples = session.samples.n_samples

    def number_of(graph: NodeGraph) -> NumberedStructure:
        return choose_number(graph, request, n_samples, each, seed)

    n_clusters = request.likely_clusters
    numbered = number_of(_graph(session, n_clusters, metric))
    found = numbered.number.n_clusters
    has_axes = metric != "precomputed" and session.sample.shape[1] > LEADING_AXES
    if has_axes and found > max(MANY, n_clusters):
        n_clusters = found  # rows are compared on more axes if there are more clusters
        numbered = number_of(_graph(session, n_clusters, metric))
    drawn = _with_far_rows(session, request, numbered, metric, seed)
    session = drawn.session
    small = np.zeros(numbered.structure.graph.n_nodes, np.int64)
    if drawn.small.any():
        graph = _graph(session, n_clusters, metric)
        small = graph.of_nodes(drawn.small)
        numbered = number_of(graph)
    sizes = numbered.structure.graph.sizes
    rows_of_node = sizes * (n_samples / sizes.sum())
    if small.any():
        rows_of_node = with_own(rows_of_node, small)
    return Nodes(
        sample=session.sample,
        sample_weights=session.sample_weights,
        n_samples=n_samples,
        rows_of_node=rows_of_node,
        structure=numbered.structure,
        number=numbered.number,
        small=small,
        columns=session.treatment.columns,
        doubts=[*session.treatment.doubts, *session.samples.doubts],
    )


def numbered_nodes(
    session: FitSession, request: Request, metric: str, seed: int
) -> NumberedStructure:
    """Return the number of clusters found in the graph of a sample.

    The result includes the structure of the graph, from which the number was chosen.
    """
    graph = _graph(session, request.likely_clusters, metric)
    n_samples = session.samples.n_samples
    return choose_number(graph, request, n_samples, session.engine.each, seed)


def _graph(session: FitSession, n_clusters: int, metric: str) -> NodeGraph:
    """Build the neighbour graph of the sample, or read it if distances were given."""
    if metric == "precomputed":
        return given_graph(session.sample, session.sample_weights)
    return node_graph(
        session.sample,
        session.sample_weights,
        session.random_state,
        session.engine.each,
        axes_of(n_clusters),
    )


class _DrawnTwice(NamedTuple):
    """A session with far rows added to its sample, and the small clusters of the rows.

    For each row of the sample, ``small`` contains the number of its small cluster,
    starting from 1, or 0 if the row is not in a small cluster.
    """

    session: FitSession
    small: np.ndarray


def _with_far_rows(
    session: FitSession,
    request: Request,
    numbered: NumberedStructure,
    metric: str,
    seed: int,
) -> _DrawnTwice:
    """Search for small clusters among the rows that are far from all nodes.

    A group of far rows is a small cluster if the density of the rows has a valley
    between the group and the clusters that were found without the far rows.
    """
    graph = numbered.structure.graph
    m = session.sample.shape[0]
    nothing = _DrawnTwice(session, np.zeros(m, np.int64))
    is_sought = request.seeks_small and session.has_more_rows
    if not (is_sought and isinstance(graph.search, InvertedFileIndex)):
        return nothing
    rows = voting_model(session, 1, metric).scaled(session.samples)
    far, weights = far_rows(session.engine, rows, session.weights, graph)
    sample = stack([session.sample, far])
    groups = far_row_groups(sample, graph, seed, session.engine.each)
    if not groups.small.any():
        return nothing
    labels = numbered.number.labels[graph.node_of]
    tubes = tubes_inwards(groups.axes(sample), groups.small, labels)
    profiles = rows_in_tubes(session.engine, rows, session.weights, groups.axes, tubes)
    small = with_valleys(groups.small, tubes, profiles)
    if not small.any():
        return nothing
    kept = np.flatnonzero((small > 0) | (np.arange(small.size) < m))
    if weights is not None and session.sample_weights is not None:
        weights = np.append(session.sample_weights, weights)[kept]
    session = replace(session, sample=sample[kept], sample_weights=weights)
    return _DrawnTwice(session, small[kept])


def voting_model(session: FitSession, n_clusters: int, metric: str) -> Model:
    """Return a model in which nodes vote for the label of a row.

    Its nodes are added later.
    """
    return Model(
        rule=Shares(np.arange(float(n_clusters)), np.zeros(n_clusters)),
        scaling=session.scaling,
        column_order=session.column_order,
        feature_dtype="float64",
        is_unit=metric == "cosine",
    )


def widest_margin(
    session: FitSession,
    kernel: str,
    nodes: Nodes,
    n_clusters: int,
    seed: int,
    like: Model | None = None,
) -> Proposal:
    """Propose the clusters with the widest margin, and the model that labels rows.

    If ``like`` is an earlier model with a kernel, its bandwidth is used. One row of
    each node represents all rows of the node, with their total weight. Equal rows share
    a node, so a row of weight 2 has the same effect as two equal rows.
    """
    graph = nodes.graph
    first = np.sort(np.unique(graph.node_of, return_index=True)[1])
    weights = graph.sizes[graph.node_of[first]]
    is_weighted = np.ptp(weights) > 0
    rows, weights = draw_rows(
        nodes.sample[first],
        weights / weights.mean() if is_weighted else None,
        HELD_ROWS,
        session.random_state,
    )
    gamma: float | str = "auto"
    if like is not None and isinstance(like.kernel, Kernel):
        gamma = like.kernel.gamma
    model = margin_on_sample(
        rows, weights, n_clusters, kernel, seed, session.record, gamma
    )
    features = model.features(open_samples(nodes.sample))
    labels = model.rule.label(features.block(0, features.n_samples))
    model = replace(model, scaling=session.scaling, column_order=session.column_order)
    return Proposal(graph.of_nodes(labels.astype(np.int64)), model)


def search_needs(
    rows: RowShape, request: Request, metric: str, n_nodes: int
) -> FitNeeds:
    """Return the memory and work of the nodes and of the largest candidate.

    The largest candidate is the partition with the widest margin, if it is searched.
    """
    needs = _node_needs(rows, request, metric, n_nodes)
    p = needs.sample_size
    needs = replace(needs, row_seconds=node_row_seconds(rows, p))
    if (request.n_clusters or 2) > request.most_margin_clusters:
        return needs
    k = MOST_MARGIN_CLUSTERS if request.uses_graph else request.likely_clusters
    margin = margin_needs(rows, k, request.margin_kernel, p)
    return replace(
        needs,
        work_bytes=margin.sample_bytes + margin.work_bytes + margin.larger_bytes,
        search_seconds=needs.search_seconds + margin.search_seconds,
        routines=needs.routines | margin.routines,
    )


def _node_needs(
    rows: RowShape, request: Request, metric: str, n_nodes: int
) -> FitNeeds:
    """Return the memory and work of the nodes, their graph and its candidates."""
    most = rows.n_samples if metric == "precomputed" else n_nodes
    p = min(most, rows.n_samples)
    draws_twice = p < rows.n_samples and request.seeks_small
    drawn = p
    copies = 3.0  # the sample as read, scaled, and with sorted columns
    reads = 2
    if draws_twice:
        drawn = int((1 + FAR_SHARE) * p)
        copies = 5.0
        reads = 5
    if rows.n_features > LEADING_AXES:  # nodes are stored as coordinates on the axes
        copies += 1.5
    node_bytes = NODE_BYTES
    if request.n_clusters is None:
        node_bytes *= RESOLUTIONS_FACTOR
    k = request.likely_clusters
    n_pieces = min(p, max(900, 4.5 * k))
    held = node_bytes * drawn + copies * bytes_of_rows(rows, drawn)
    held += 16.0 * n_pieces**2  # matrix of the links between pieces
    if metric == "cosine":  # memory for the layout, and for nodes with all columns
        held *= 2
    return FitNeeds(
        n_landmarks=k,
        sample_size=p,
        sample_bytes=held,
        search_thread_bytes=THREAD_NODE_BYTES * drawn,
        sweeps=0,
        likely_sweeps=0,
        reads=reads,
        search_seconds=NODE_SECONDS * drawn,
        routines=GRAPH_ROUTINES,
    )

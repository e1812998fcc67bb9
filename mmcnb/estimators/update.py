"""New rows in a fitted model, whose nodes stand for the earlier rows."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mmcnb.choice.match import changes, matched
from mmcnb.choice.noise import noise_thresholds
from mmcnb.choice.number import choose_number
from mmcnb.choice.search import Choice, Nodes, search
from mmcnb.choice.small import far_groups
from mmcnb.engine.checkpoint import CheckpointEngine
from mmcnb.engine.passes import CombinedPass, draw_sample, sample_rows
from mmcnb.engine.run import Engine, Traffic
from mmcnb.engine.session import Report, whole_numbers
from mmcnb.errors import InputError
from mmcnb.estimators.parameters import open_checkpoint
from mmcnb.features.labelling import DecisionPass, LabelsPass
from mmcnb.features.model import Model
from mmcnb.features.of_nodes import OutlierScores
from mmcnb.features.rules import Shares
from mmcnb.graph.neighbours import NodeGraph, node_graph
from mmcnb.graph.vote import EVERY_ROW, Vote, log_distances, vote
from mmcnb.samples import Samples
from mmcnb.samples.matrix import stack

if TYPE_CHECKING:
    from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering

    Seed = int | np.random.RandomState | None

# Few new rows have a tenth of the nodes, of less weight each, so that groups of them
# are seen.
LEAST_NEW_SHARE = 0.1


def updated(estimator: MaximumMarginClustering, samples: Samples) -> dict[str, Any]:
    """Return the fitted attributes after new rows.

    Parameters
    ----------
    estimator : MaximumMarginClustering
        Fitted, with nodes; it stays as it is.
    samples : Samples
        The new rows.

    Returns
    -------
    dict
        Attributes by name. The model is among them if more of the rows are far from its
        nodes than by chance.

    Raises
    ------
    InputError
        More rows are far than by chance, and a support vector machine was asked for, or
        no row is near enough to match its clusters with those of the vote.
    """
    identity = {"the model": list(estimator.model_.arrays().values())}
    with (
        estimator._engine_of(samples) as engine,
        open_checkpoint(estimator, samples, None, 1.0, identity) as checkpoint,
    ):
        engine.traffic = Traffic(samples)
        seed = estimator.random_state
        if checkpoint is not None:
            engine = CheckpointEngine(engine, checkpoint)
            seed = checkpoint.seed if seed is None else seed
        return _attributes(estimator, engine, samples, seed)


def _attributes(
    estimator: MaximumMarginClustering, engine: Engine, samples: Samples, seed: Seed
) -> dict[str, Any]:
    """Label the new rows, after a new search if too many of them are far."""
    report = estimator.report_
    attributes: dict[str, Any] = {}
    common = np.diag(np.array(report["sizes"], np.float64))
    rows = _labelled(engine, estimator.model_, samples)
    is_far = rows.outlier_scores > _nodes_of(estimator.model_).bound
    if not _is_usual(is_far):
        is_near = ~is_far & (rows.labels >= 0)
        voting = copy(estimator)
        voting.model_ = _voting_model(estimator, engine, samples, rows.labels, is_near)
        attributes, common = _search(voting, engine, samples, is_far, seed)
        rows = _labelled(engine, attributes["model_"], samples)
    count = len(common)
    n_noise, *new_rows = np.bincount(rows.labels + 1, minlength=count + 1).tolist()
    before = [*report["sizes"], *[0] * (count - len(report["sizes"]))]
    earlier_rows = common.sum(axis=0)
    after = whole_numbers((earlier_rows + new_rows).tolist())
    new_report = report | attributes.get("report_", {})
    new_report |= {"sizes": after, "changes": changes(common, before, after)}
    if "noise" in report:
        new_report["noise"] = report["noise"] + n_noise
        attributes["outlier_score_"] = rows.outlier_scores
    return attributes | {"labels_": rows.labels, "report_": Report(new_report)}


def _nodes_of(model: Model) -> Vote:
    """Return the nodes of a model, which has some."""
    assert model.graph is not None
    return model.graph


class _LabelledRows(NamedTuple):
    labels: np.ndarray
    outlier_scores: np.ndarray


def _labelled(engine: Engine, model: Model, samples: Samples) -> _LabelledRows:
    """Label rows and score how far out they are, in one pass."""
    features, rule = model.labelling(samples, of_nodes=True)
    both: Any = CombinedPass((LabelsPass(rule), DecisionPass(OutlierScores())))
    labels, scores = engine.run(both, features, "labels")
    return _LabelledRows(np.concatenate(labels), np.concatenate(scores))


def _voting_model(
    estimator: MaximumMarginClustering,
    engine: Engine,
    samples: Samples,
    labels: np.ndarray,
    is_near: np.ndarray,
) -> Model:
    """Let the nodes vote in place of a support vector machine of two clusters.

    The rows near the nodes tell which cluster of the vote is which of the machine.
    """
    model = estimator.model_
    if isinstance(model.rule, Shares):
        return model
    if estimator.kernel != "auto" or not is_near.any():
        n_far = np.count_nonzero(~is_near)
        raise InputError(
            f"{n_far:,} rows are far from those of the fit, and a model of "
            f"kernel={estimator.kernel_!r} takes in none; fit with kernel='graph', or "
            "all rows with fit(X, like=model)."
        )
    rule = Shares(np.arange(2.0), np.zeros(2))
    model = replace(model, rule=rule, kernel=None, basis=None, feature_dtype="float64")
    sweep = LabelsPass(rule)
    voted = np.concatenate(engine.run(sweep, model.features(samples), "labels"))
    is_same = np.mean((voted == labels)[is_near]) >= 0.5
    return model if is_same else replace(model, rule=rule.ordered([1, 0]))


def _is_usual(is_far: np.ndarray) -> bool:
    """Return whether no more rows are far than by chance, if 1 % are in the fit."""
    n_usual = 0.02 * is_far.size + 0.3 * is_far.size**0.5
    return bool(np.count_nonzero(is_far) <= n_usual)


class _NewSearch(NamedTuple):
    """Fitted attributes, and the common weight of earlier and new clusters."""

    attributes: dict[str, Any]
    common: np.ndarray


def _search(
    estimator: MaximumMarginClustering,
    engine: Engine,
    samples: Samples,
    is_far: np.ndarray,
    seed: Seed,
) -> _NewSearch:
    """Search the clusters of earlier nodes and new rows; they keep earlier numbers."""
    model = estimator.model_
    earlier = _nodes_of(model)
    report = estimator.report_
    before = np.array(report["sizes"], np.float64)
    n = before.sum() + report.get("noise", 0) + samples.n_samples
    number_of_node = np.argsort(model.rule.coef)[earlier.labels]
    joined = _joined_nodes(
        estimator, engine, samples, number_of_node, is_far, n, check_random_state(seed)
    )
    nodes, choice = _chosen(estimator, joined, n, engine)
    labels = choice.best.labels
    common = _common_weight(joined, labels, before)
    number_of_cluster = matched(common)
    count = max(before.size, int(number_of_cluster.max()) + 1)
    labels = number_of_cluster[labels]
    if report.get("dropped"):
        doubt = "clusters of scattered rows were dropped before"
        choice = replace(choice, trust=choice.trust.with_doubt(doubt))
    n_clusters = before.size, count
    limits = _outlier_limits(
        earlier, number_of_node, joined, labels, n_clusters, estimator.noise
    )
    tree = nodes.structure.tree
    graph = vote(joined.graph, labels, count, tree, limits.offsets)
    graph = replace(graph, thresholds=limits.thresholds, bound=earlier.bound)
    rule = Shares(np.arange(float(count)), np.zeros(count))
    attributes = {
        "objective_": choice.best.score.J,
        "n_clusters_": choice.best.n_clusters,
        "candidate_": choice.best.name,
        "kernel_": "graph",
        "model_": replace(model, rule=rule, graph=graph),
        "report_": choice.report(nodes),
    }
    table = np.zeros((count, count))
    table[: before.size, number_of_cluster] = common
    # Of a small cluster perhaps no node was drawn.
    unseen = np.where(common.any(axis=1), 0.0, before)
    table[: before.size, : before.size] += np.diag(unseen)
    return _NewSearch(attributes, table)


class _OutlierLimits(NamedTuple):
    """What outlier scores subtract near each node, and which scores are noise."""

    offsets: np.ndarray
    thresholds: np.ndarray | None


def _outlier_limits(
    earlier: Vote,
    number_of_node: np.ndarray,
    joined: _JoinedNodes,
    labels: np.ndarray,
    n_clusters: tuple[int, int],
    noise: float | str | None,
) -> _OutlierLimits:
    """Keep offsets and thresholds of earlier clusters, and find those of new ones.

    Rows near earlier nodes of scattered rows remain noise, unless they are in a new
    cluster.
    """
    logs = joined.log_distances
    n_before, count = n_clusters  # earlier ones, and with the new ones
    offsets = np.zeros(count)
    thresholds = np.zeros(count)
    is_cluster = ~_is_scattered(earlier)
    offsets[number_of_node[is_cluster]] = earlier.offsets[is_cluster]
    if earlier.thresholds is not None:
        thresholds[number_of_node[is_cluster]] = earlier.thresholds[is_cluster]
    for number in range(n_before, count):
        inside = labels == number
        counts = joined.graph.counts[inside]
        one = np.zeros(counts.size, np.int64)
        offsets[number] = np.median(logs[inside])
        limits = noise_thresholds(logs[inside], one, counts, noise or "auto")
        thresholds[number] = limits[0] - offsets[number]
    if earlier.thresholds is None:
        return _OutlierLimits(offsets[labels], None)
    remains = joined.is_scattered & (labels < n_before)
    of_nodes = np.where(remains, EVERY_ROW, thresholds[labels])
    return _OutlierLimits(offsets[labels], of_nodes)


def _is_scattered(nodes: Vote) -> np.ndarray:
    """Return which nodes are of dropped clusters, around which all rows are noise."""
    if nodes.thresholds is None:
        return np.zeros(nodes.sizes.size, bool)
    return nodes.thresholds <= EVERY_ROW


@dataclass(frozen=True)
class _JoinedNodes:
    """A graph of earlier nodes and of new rows.

    Parameters
    ----------
    graph : NodeGraph
        The graph.
    earlier : ndarray of shape (p,), int64
        Cluster of each node in the model.
    weights : ndarray of shape (p,)
        Weight of the earlier rows of each node; 0 for a new row.
    is_far : ndarray of shape (p,), bool
        Whether it is a new row far from the earlier nodes.
    is_scattered : ndarray of shape (p,), bool
        Whether it is an earlier node of a dropped cluster.
    log_distances : ndarray of shape (p,)
        Logarithm of the distance to the tenth neighbour.
    """

    graph: NodeGraph
    earlier: np.ndarray
    weights: np.ndarray
    is_far: np.ndarray
    is_scattered: np.ndarray
    log_distances: np.ndarray


def _joined_nodes(
    estimator: MaximumMarginClustering,
    engine: Engine,
    samples: Samples,
    number_of_node: np.ndarray,
    is_far: np.ndarray,
    n: float,
    random_state: np.random.RandomState,
) -> _JoinedNodes:
    """Draw new rows and earlier nodes, and join them to a graph for n rows in all."""
    model = estimator.model_
    nodes = _nodes_of(model)
    m = samples.n_samples
    share = np.clip(m / n, LEAST_NEW_SHARE, 1 - LEAST_NEW_SHARE)
    n_new = int(np.ceil(estimator.n_nodes * share))
    new = sample_rows(m, n_new, None, random_state)
    n_old = max(1, estimator.n_nodes - new.size)
    old = sample_rows(number_of_node.size, n_old, None, random_state)
    sample = draw_sample(engine, model.scaled(samples), new)[0]
    points = nodes.axes(sample)
    earlier_points = nodes.search.nodes[old]
    earlier_weights = nodes.sizes[old]
    new_weight = earlier_weights.sum() * m / ((n - m) * new.size)
    weights = np.append(earlier_weights, np.full(new.size, new_weight))
    graph = node_graph(
        stack([earlier_points, points.astype(nodes.search.nodes.dtype)]),
        weights,
        random_state,
        engine.each,
        axes=nodes.axes,
    )
    first = graph.of_nodes(np.arange(weights.size))
    is_old = first < old.size
    new_numbers = model.rule.label(nodes.block(sample, np.float64))
    numbers = np.append(number_of_node[old], new_numbers)
    distances_beyond = nodes.axes.beyond(sample, points)
    usual = np.full(old.size, np.median(distances_beyond))
    distances_beyond = np.append(usual, distances_beyond)[first]
    is_scattered = np.append(_is_scattered(nodes)[old], np.zeros(new.size, bool))
    return _JoinedNodes(
        graph=graph,
        earlier=numbers[first],
        weights=np.where(is_old, weights[first], 0.0),
        is_far=np.append(np.zeros(old.size, bool), is_far[new])[first],
        is_scattered=is_scattered[first],
        log_distances=log_distances(graph.distances, distances_beyond),
    )


class _ChosenClusters(NamedTuple):
    nodes: Nodes
    choice: Choice


def _chosen(
    estimator: MaximumMarginClustering, joined: _JoinedNodes, n: float, engine: Engine
) -> _ChosenClusters:
    """Choose between the earlier clusters of the nodes and those of a new search.

    If nothing is asked of the clusters, groups of far rows are clusters of their own in
    both. If few far rows are in no group, the earlier clusters stay.
    """
    request = estimator._request
    graph = joined.graph
    numbered = choose_number(graph, request, n, engine.each)
    groups = np.zeros(graph.n_nodes, np.int64)
    if request.seeks_small:
        groups = far_groups(numbered.structure.groups, joined.is_far)
    in_no_group = (joined.weights == 0) & (groups == 0)
    nodes = Nodes(
        sample=None,
        sample_weights=None,
        n_samples=n,
        rows_of_node=graph.sizes * (n / graph.sizes.sum()),
        structure=numbered.structure,
        number=numbered.number,
        small=groups,
    )
    request = replace(
        request,
        earlier=joined.earlier,
        keeps_earlier=_is_usual(joined.is_far[in_no_group]),
    )
    return _ChosenClusters(nodes, search(nodes, request, seed=0))


def _common_weight(
    joined: _JoinedNodes, labels: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """Return the common rows of earlier clusters and new ones, of shape (a, b)."""
    bins: Any = np.arange(before.size + 1), np.arange(int(labels.max()) + 2)
    common = np.histogram2d(joined.earlier, labels, bins, weights=joined.weights)[0]
    of_earlier = common.sum(axis=1, keepdims=True)
    least = np.finfo(float).tiny ** 0.5
    return np.asarray(common * (before[:, None] / np.maximum(of_earlier, least)))

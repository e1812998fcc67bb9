"""The last stage of the default fit: label all rows by the clusters of the nodes."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mmcnb.choice.noise import find_noise
from mmcnb.choice.number import ChosenNumber, Request
from mmcnb.choice.search import Choice, Nodes
from mmcnb.choice.trust import Trust
from mmcnb.columns.gap_clusters import gaps_of_clusters
from mmcnb.columns.gaps import filled_rows
from mmcnb.engine.session import FitResult, FitSession, whole_numbers
from mmcnb.estimators.sampled_nodes import voting_model
from mmcnb.features.labelling import label_once, without_noise
from mmcnb.features.model import Model
from mmcnb.features.rules import Scores, Shares
from mmcnb.graph.vote import (
    EVERY_ROW,
    Vote,
    log_distances,
    noise_threshold,
    outlier_offsets,
    vote,
)
from mmcnb.samples import open_samples
from mmcnb.samples.one_hot import widen

USUAL_SHARE = 0.01  # share of the rows of the fit with outlier scores above the bound


def label_all(
    session: FitSession,
    nodes: Nodes,
    choice: Choice,
    request: Request,
    metric: str,
    noise: str | float | None,
) -> FitResult:
    """Label all rows in one pass, by the chosen model or the vote of the nodes.

    Parameters
    ----------
    session : FitSession
        The fit.
    nodes : Nodes
        The nodes of the fit.
    choice : Choice
        The chosen clusters of the nodes, and a model if a support vector machine found
        these clusters.
    request : Request
        What the user requested, such as a range for the number of clusters.
    metric : {"euclidean", "cosine", "precomputed"}
        How rows are compared.
    noise : None, "auto" or float
        Which rows get the label -1; see `MaximumMarginClustering`.

    Returns
    -------
    FitResult
    """
    voting = _voting_nodes(session, nodes, choice, request, noise)
    choice = voting.choice
    best = choice.best
    model = best.model or voting_model(session, best.n_clusters, metric)
    model = replace(model, graph=voting.vote, is_unit=metric == "cosine")
    features = model.features(session.samples)
    # Clusters are numbered by their first rows. If the first nodes are in the order of
    # the first rows, which is likely, labels need not be renumbered.
    _, first = np.unique(best.labels[nodes.graph.node_of], return_index=True)
    likely_order = first.argsort().tolist()
    rule = model.rule.ordered(likely_order)
    rule, clusters = label_once(session, rule, features)
    session.record({"stage": "labels"})
    kernel = getattr(model.kernel, "name", "linear")
    if isinstance(rule, Shares):
        kernel = "graph"
    warnings = []
    if choice.trust.level == "low":
        reason = choice.trust.reason.removeprefix("one cluster: ")
        warnings.append(f"the data may have no clusters: {reason}")
    result = FitResult(
        model=replace(model, rule=rule),
        features=features,
        attributes={
            "objective": best.score.J,
            "n_clusters": best.n_clusters,
            "candidate": best.name,
            "kernel": kernel,
        },
        report={"sizes": whole_numbers(clusters.sizes.tolist())},
        warnings=warnings,
        kept_labels=clusters.labels,
    )
    if noise is not None:
        result = without_noise(session, result)
    report = result.report | voting.report | choice.report(nodes)
    report |= session.treatment.report(session.samples.encoding)
    result = replace(result, report=report | {"left_out": choice.left_out})
    return _with_gaps(session, result)


def _with_gaps(session: FitSession, result: FitResult) -> FitResult:
    """Report missing values by cluster, and set the trust to low if necessary.

    The trust is low if missing values, rather than values, explain the clusters.
    """
    encoding = session.samples.encoding
    sampled = session.samples.sampled_rows
    if encoding is None or sampled is None or not np.isnan(sampled).any():
        return result
    n_categories = encoding.n_categories
    filled = filled_rows(sampled, encoding)
    features = result.model.features(open_samples(widen(filled, n_categories)))
    labels = result.model.rule.label(features.block(0, features.n_samples))
    gaps = gaps_of_clusters(
        rows=sampled,
        is_text=np.array([n_values is not None for n_values in n_categories]),
        names=[column.block or column.name for column in encoding.features],
        labels=labels.astype(np.int64),
    )
    report = result.report | {"gaps": gaps.entries}
    warnings = result.warnings
    if gaps.names:
        reason = f"{gaps.sentence}."
        report["trust"] = report["trust"] | {"level": "low", "reason": reason}
        warnings = [f"the data may have no clusters: {reason}"]
    return replace(result, report=report, warnings=warnings)


class _VotingNodes(NamedTuple):
    """The nodes that vote on labels, the choice of clusters, and report entries.

    The choice has no clusters that were dropped as noise.
    """

    vote: Vote
    choice: Choice
    report: dict[str, Any]


def _voting_nodes(
    session: FitSession,
    nodes: Nodes,
    choice: Choice,
    request: Request,
    noise: str | float | None,
) -> _VotingNodes:
    """Return the nodes with clusters, outlier offsets and noise thresholds."""
    graph = nodes.graph
    distances_beyond = graph.beyond(nodes.sample, session.engine.each)
    logs = log_distances(graph.distances, distances_beyond)
    offsets = outlier_offsets(logs, choice.best.labels, nodes.small > 0)
    thresholds = None
    report = {}
    if noise is not None:
        noisy = find_noise(nodes, choice, request, logs, noise)
        choice = noisy.choice
        is_scattered = noisy.thresholds <= EVERY_ROW
        thresholds = noisy.thresholds - offsets
        thresholds[is_scattered] = EVERY_ROW
        report["dropped"] = noisy.dropped
    best = choice.best
    tree = nodes.structure.tree
    voting = vote(graph, best.labels, best.n_clusters, tree, offsets)
    bound = noise_threshold(logs - offsets, graph.sizes, USUAL_SHARE)
    voting = replace(voting, bound=bound, thresholds=thresholds)
    return _VotingNodes(voting, choice, report)


def one_cluster_of_equal_rows(session: FitSession) -> FitResult:
    """Return the result of a fit to equal rows: one cluster, with low trust."""
    reason = "one cluster: all rows are equal, or differ by less than rounding."
    rule = Scores(np.zeros((session.sample.shape[1], 1)), np.zeros(1))
    model = Model(rule, scaling=session.scaling)
    features = model.features(session.samples)
    _, clusters = label_once(session, rule, features)
    session.record({"stage": "labels"})
    return FitResult(
        model=model,
        features=features,
        attributes={
            "objective": 0.0,
            "n_clusters": 1,
            "candidate": "one cluster",
            "kernel": "linear",
        },
        report={
            "sizes": whole_numbers(clusters.sizes.tolist()),
            "candidates": [],
            "trust": Trust("low", reason).to_dict(),
            "left_out": {},
            "number": ChosenNumber(1, np.zeros(1, np.int64), reason).to_dict(),
            "layers": [],
        },
        kept_labels=clusters.labels,
    )

"""New rows in a fitted model, whose nodes stand for the earlier rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mmcnb.choice.match import changes, matched
from mmcnb.choice.newcomers import are_among_new, new_groups, renumbered
from mmcnb.choice.number import MARGIN_KERNELS, Request, choose_number
from mmcnb.choice.search import AS_BEFORE, Choice, Nodes, search
from mmcnb.engine.checkpoint import CheckpointEngine
from mmcnb.engine.fit_report import Report
from mmcnb.engine.passes import CombinedPass
from mmcnb.engine.run import Engine, Traffic
from mmcnb.engine.session import whole_numbers
from mmcnb.errors import InputError, numbered_columns
from mmcnb.estimators.joined_nodes import (
    JoinedNodes,
    NewRows,
    draw_new,
    join_nodes,
    nodes_of,
)
from mmcnb.estimators.parameters import open_checkpoint
from mmcnb.features.labelling import DecisionPass, LabelsPass
from mmcnb.features.model import Model
from mmcnb.features.of_nodes import OutlierScores
from mmcnb.features.rules import Shares
from mmcnb.samples import Samples

if TYPE_CHECKING:
    from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering

KEPT_SHARE = 0.99  # of the rows of a cluster that has not changed
# Rows are clearly far if their outlier scores exceed the bound by so much. The axes
# follow the noise of few rows in many columns, so that other rows of the same kind
# exceed the bound by a little.
CLEARLY = 0.2
REMEDY = "fit all rows with fit(X, like=model)"
OUTSIDE = (
    "they are labelled by their nearest nodes, and outlier_score_ says how far they "
    f"are; {REMEDY}"
)


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
        Attributes by name. The model is among them if new rows have become nodes. The
        warnings are in the report.

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
        with numbered_columns(estimator.model_.column_order):
            return _attributes(estimator, engine, samples, check_random_state(seed))


def _attributes(
    estimator: MaximumMarginClustering,
    engine: Engine,
    samples: Samples,
    random_state: np.random.RandomState,
) -> dict[str, Any]:
    """Label the new rows, after a new search if the nodes do not explain them."""
    before = np.array(estimator.report_["sizes"], np.float64)
    rows = _labelled(engine, estimator.model_, samples)
    result = _Result(np.diag(before))
    batch = _Batch(
        samples=samples,
        labels=rows.labels,
        scores=rows.outlier_scores,
        bound=nodes_of(estimator.model_).bound,
        n=before.sum() + estimator.report_.get("noise", 0) + samples.n_samples,
    )
    new = draw_new(estimator, engine, samples, batch.n, random_state)
    if not _are_explained(estimator, new, batch.is_far, random_state):
        result = _searched(estimator, engine, batch, new, random_state)
    if "model_" in result.attributes:
        rows = _labelled(engine, result.attributes["model_"], samples)
    return {
        **result.attributes,
        "labels_": rows.labels,
        "outlier_score_": rows.outlier_scores,
        "report_": _report(estimator, batch, result, rows.labels),
    }


def _report(
    estimator: MaximumMarginClustering,
    batch: _Batch,
    result: _Result,
    labels: np.ndarray,
) -> Report:
    """Count the labels of the new rows, and say what is doubtful."""
    report = estimator.report_
    common = result.common
    count = len(common)
    n_earlier = len(report["sizes"])
    n_noise, *new_rows = np.bincount(labels + 1, minlength=count + 1).tolist()
    before = [*report["sizes"], *[0] * (count - n_earlier)]
    after = whole_numbers((common.sum(axis=0) + new_rows).tolist())
    new_report = {**report, **result.report}
    warnings = list(result.warnings)
    is_outside = batch.is_clearly_far & (0 <= labels) & (labels < n_earlier)
    if not _is_usual(is_outside) and not warnings:
        fault = _far_sentence(is_outside)
        warnings.append(f"{fault}: {OUTSIDE}.")
        new_report["trust"] = _doubted(new_report["trust"], fault)
    n_in_new = sum(new_rows[n_earlier:])
    if 2 * n_in_new > labels.size:
        warnings.append(
            f"{n_in_new:,} of {labels.size:,} new rows are in new clusters; if all "
            f"rows have moved, {REMEDY}."
        )
    new_report |= {
        "sizes": after,
        "changes": changes(common, before, after),
        "warnings": warnings,
    }
    if "noise" in report:
        new_report["noise"] = report["noise"] + n_noise
    return Report(new_report)


def _far_sentence(is_far: np.ndarray) -> str:
    """Say how many new rows are far from all clusters."""
    n_far = np.count_nonzero(is_far)
    return f"{n_far:,} of {is_far.size:,} new rows are far from all clusters"


def _doubted(trust: dict[str, Any], reason: str) -> dict[str, Any]:
    """Return a trust that is not high, for some reason."""
    if trust["level"] == "low":
        return trust
    return trust | {"level": "medium", "reason": f"{reason}."}


@dataclass(frozen=True)
class _Batch:
    """The new rows as the earlier model sees them.

    Parameters
    ----------
    samples : Samples
        The m rows.
    labels : ndarray of shape (m,), int32
        Their labels.
    scores : ndarray of shape (m,), float32
        Their outlier scores.
    bound : float
        The outlier score that one in a hundred rows of the fit exceeds.
    n : float
        Number of earlier and new rows.
    """

    samples: Samples
    labels: np.ndarray
    scores: np.ndarray
    bound: float
    n: float

    @property
    def is_far(self) -> np.ndarray:
        """Which rows are farther than nearly all rows of the fit."""
        return self.scores > self.bound

    @property
    def is_clearly_far(self) -> np.ndarray:
        """Which rows are far even if the nodes are few in many columns."""
        return self.scores > self.bound + CLEARLY


class _Result(NamedTuple):
    """What a search changes.

    Attributes
    ----------
    common : ndarray of shape (k, k)
        The common weight of earlier and new clusters, by their numbers.
    attributes : dict, default={}
        Fitted attributes.
    report : dict, default={}
        Entries of the report.
    warnings : sequence of str, default=()
        Sentences.
    """

    common: np.ndarray
    attributes: Mapping[str, Any] = MappingProxyType({})
    report: Mapping[str, Any] = MappingProxyType({})
    warnings: Sequence[str] = ()


class _LabelledRows(NamedTuple):
    labels: np.ndarray
    outlier_scores: np.ndarray


def _labelled(engine: Engine, model: Model, samples: Samples) -> _LabelledRows:
    """Label rows and score how far out they are, in one pass."""
    features, rule = model.labelling(samples, of_nodes=True)
    both: Any = CombinedPass((LabelsPass(rule), DecisionPass(OutlierScores())))
    labels, scores = engine.run(both, features, "labels")
    return _LabelledRows(np.concatenate(labels), np.concatenate(scores))


def _is_usual(is_far: np.ndarray) -> bool:
    """Return whether no more rows are far than by chance, if 1 % are in the fit."""
    n_usual = 0.02 * is_far.size + 0.3 * is_far.size**0.5
    return bool(np.count_nonzero(is_far) <= n_usual)


def _are_explained(
    estimator: MaximumMarginClustering,
    new: NewRows,
    is_far: np.ndarray,
    random_state: np.random.RandomState,
) -> bool:
    """Return whether new rows lie among the nodes as earlier ones do.

    With heavy tails or noise few rows of a new cluster are far, but they are nearer to
    each other than to the nodes.
    """
    if not _is_usual(is_far):
        return False
    if estimator.kernel in MARGIN_KERNELS:  # takes in no rows
        return True
    order = random_state.permutation(new.rows.size)
    nodes = nodes_of(estimator.model_).search
    return _is_usual(are_among_new(new.points[order], nodes))


def _voting_model(
    estimator: MaximumMarginClustering, engine: Engine, batch: _Batch
) -> Model:
    """Let the nodes vote in place of a support vector machine of two clusters.

    The rows near the nodes tell which cluster of the vote is which of the machine.
    """
    model = estimator.model_
    if isinstance(model.rule, Shares):
        return model
    is_near = ~batch.is_far & (batch.labels >= 0)
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
    features = model.features(batch.samples)
    voted = np.concatenate(engine.run(sweep, features, "labels"))
    is_same = np.mean((voted == batch.labels)[is_near]) >= 0.5
    return model if is_same else replace(model, rule=rule.ordered([1, 0]))


def _searched(
    estimator: MaximumMarginClustering,
    engine: Engine,
    batch: _Batch,
    new: NewRows,
    random_state: np.random.RandomState,
) -> _Result:
    """Search the clusters of earlier nodes and new rows; they keep earlier numbers."""
    voting = copy(estimator)
    voting.model_ = _voting_model(estimator, engine, batch)
    report = estimator.report_
    before = np.array(report["sizes"], np.float64)
    joined = join_nodes(voting, new, batch.is_far, batch.n, random_state, engine.each)
    chosen = _chosen(estimator, joined, batch.n, engine)
    is_as_before = chosen.choice.best.name == AS_BEFORE
    if is_as_before and not chosen.has_room:
        return _without_room(voting, engine, batch, joined, chosen)
    if is_as_before and not chosen.groups.any() and _is_usual(batch.is_far):
        return _Result(np.diag(before))
    return _numbered(voting, joined, chosen)


class _Chosen(NamedTuple):
    """The clusters chosen for earlier nodes and new rows.

    Attributes
    ----------
    nodes : Nodes
        The nodes.
    choice : Choice
        The earlier clusters, or new ones.
    groups : ndarray of shape (p,), int64
        Group of each new node that no earlier cluster explains, from 1 on; otherwise 0.
    has_room : bool
        Whether these groups can be clusters.
    """

    nodes: Nodes
    choice: Choice
    groups: np.ndarray
    has_room: bool


def _chosen(
    estimator: MaximumMarginClustering,
    joined: JoinedNodes,
    n: float,
    engine: Engine,
) -> _Chosen:
    """Choose between the earlier clusters of the nodes and those of a new search.

    Groups of new rows that no earlier cluster explains are clusters of their own in
    both, if the range of the number has room for them; otherwise the earlier clusters
    take them in. If few far rows are in no group, the earlier clusters stay.
    """
    request = estimator._request
    graph = joined.graph
    numbered = choose_number(graph, request, n, engine.each)
    found = numbered
    if request.least > 1 or request.most < np.inf:
        found = choose_number(graph, Request(), n, engine.each)
    groups = new_groups(found, joined.is_new, joined.is_far)
    sizes = np.bincount(groups, graph.sizes)
    is_large = sizes >= request.least_weight(n, graph)
    groups = renumbered(groups, 1 + np.flatnonzero(is_large[1:]))
    has_room = estimator.n_clusters_ + int(groups.max()) <= request.most
    nodes = Nodes(
        sample=None,
        sample_weights=None,
        n_samples=n,
        rows_of_node=graph.sizes * (n / graph.sizes.sum()),
        structure=numbered.structure,
        number=numbered.number,
        small=groups if has_room else np.zeros_like(groups),
    )
    far_in_no_group = (joined.is_far & (groups == 0))[joined.is_new]
    labels = joined.with_groups(groups) if has_room else joined.with_nearest(groups)
    request = replace(
        request,
        earlier=labels,
        keeps_earlier=has_room and _is_usual(far_in_no_group),
    )
    return _Chosen(nodes, search(nodes, request, seed=0), groups, has_room)


def _without_room(
    estimator: MaximumMarginClustering,
    engine: Engine,
    batch: _Batch,
    joined: JoinedNodes,
    chosen: _Chosen,
) -> _Result:
    """Keep the model, and count the rows for which it has no room."""
    model = estimator.model_
    report = estimator.report_
    before = np.array(report["sizes"], np.float64)
    labels = joined.with_groups(chosen.groups, before.size)
    count = int(labels.max()) + 1
    tree = chosen.nodes.structure.tree
    with_groups = joined.model(model, labels, count, tree, estimator.noise)
    graph = replace(nodes_of(with_groups), thresholds=None)
    rows = _labelled(engine, replace(with_groups, graph=graph), batch.samples)
    fault = _far_sentence(rows.labels >= before.size)
    number = f"n_clusters={estimator.n_clusters!r}"
    return _Result(
        np.diag(before),
        report={"trust": _doubted(report["trust"], fault)},
        warnings=[f"{fault}, and {number} has no room for a new one: {OUTSIDE}."],
    )


def _numbered(
    estimator: MaximumMarginClustering, joined: JoinedNodes, chosen: _Chosen
) -> _Result:
    """Return the fitted attributes, with the earlier numbers for matching clusters."""
    report = estimator.report_
    before = np.array(report["sizes"], np.float64)
    nodes = chosen.nodes
    choice = chosen.choice
    if report.get("dropped"):
        doubt = "clusters of scattered rows were dropped before"
        choice = replace(choice, trust=choice.trust.with_doubt(doubt))
    best = choice.best
    common = joined.common_weight(best.labels, before.size)
    number_of_cluster = matched(common)
    count = max(before.size, int(number_of_cluster.max()) + 1)
    labels = number_of_cluster[best.labels]
    tree = nodes.structure.tree
    model = joined.model(estimator.model_, labels, count, tree, estimator.noise)
    attributes = {
        "objective_": best.score.J,
        "n_clusters_": best.n_clusters,
        "candidate_": best.name,
        "kernel_": "graph",
        "model_": model,
    }
    table = np.zeros((count, count))
    earlier = np.arange(before.size)
    table[: before.size, number_of_cluster] = common
    # Of a small cluster perhaps no node was drawn.
    table[earlier, earlier] += ~common.any(axis=1)
    shares = table[earlier] / table[earlier].sum(axis=1, keepdims=True)
    table[earlier] = shares * before[:, None]
    return _Result(table, attributes, choice.report(nodes), _changed(choice, table))


def _changed(choice: Choice, common: np.ndarray) -> list[str]:
    """Say which clusters have lost rows to others, and why."""
    is_changed = np.diag(common) < KEPT_SHARE * common.sum(axis=1)
    if not is_changed.any():
        return []
    numbers = ", ".join(map(str, np.flatnonzero(is_changed)))
    before = max(other.score.J for other in choice.others)
    return [
        f"rows of clusters {numbers} have other numbers now, because a new search "
        f"found clearly better clusters (J {choice.best.score.J:.2f}, before "
        f"{before:.2f}); report_['changes'] lists them."
    ]

"""Update a fitted model with new rows, without reading the earlier rows again."""

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

KEPT_SHARE = 0.99  # a cluster counts as unchanged if it keeps this share of its rows
# Rows are clearly far if their outlier scores exceed the bound by more than this. If
# the fit had few rows with many columns, its axes fit the noise of these rows, so that
# new rows with the same distribution slightly exceed the bound.
CLEARLY = 0.2
REMEDY = "fit all rows with fit(X, like=model)"
OUTSIDE = (
    "they are labelled by their nearest nodes, and outlier_score_ says how far they "
    f"are; {REMEDY}"
)


def updated(estimator: MaximumMarginClustering, samples: Samples) -> dict[str, Any]:
    """Return the fitted attributes after an update with new rows.

    Parameters
    ----------
    estimator : MaximumMarginClustering
        The fitted estimator, with a model that has nodes. It is not changed.
    samples : Samples
        The new rows.

    Returns
    -------
    dict
        Attributes by name. They include ``model_`` only if new rows have become nodes.
        ``report_`` contains the warnings.

    Raises
    ------
    InputError
        If the new rows are not distributed like the earlier rows, the model is a
        support vector machine, and either ``kernel`` requests the machine or no new row
        is near enough to the nodes to match its clusters with the clusters of the vote.
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
    """Label the new rows, and return the fitted attributes.

    If the new rows are not distributed like the earlier rows, the nodes and the new
    rows are clustered first.
    """
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
    """Return the report with updated sizes, changes, trust and warnings."""
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
            f"{n_in_new:,} of {labels.size:,} new rows are in new clusters; if the "
            f"data have drifted, {REMEDY}."
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
    """Return a clause that states how many new rows are far from all clusters."""
    n_far = np.count_nonzero(is_far)
    return f"{n_far:,} of {is_far.size:,} new rows are far from all clusters"


def _doubted(trust: dict[str, Any], reason: str) -> dict[str, Any]:
    """Return the trust with the level "medium" and a reason for this.

    If its level is "low", the trust is returned unchanged.
    """
    if trust["level"] == "low":
        return trust
    return trust | {"level": "medium", "reason": f"{reason}."}


@dataclass(frozen=True)
class _Batch:
    """The new rows, labelled and scored by the earlier model.

    Parameters
    ----------
    samples : Samples
        The m new rows.
    labels : ndarray of shape (m,), int32
        Labels of these rows.
    scores : ndarray of shape (m,), float32
        Outlier scores of these rows.
    bound : float
        Outlier score that 1 % of the rows of the fit exceed.
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
        """Mask of the rows whose outlier scores exceed ``bound``.

        Of the rows of the fit, 1 % have outlier scores above ``bound``.
        """
        return self.scores > self.bound

    @property
    def is_clearly_far(self) -> np.ndarray:
        """Mask of the rows whose outlier scores are clearly above ``bound``.

        They exceed ``bound`` by more than `CLEARLY`.
        """
        return self.scores > self.bound + CLEARLY


class _Result(NamedTuple):
    """The changes that a new search makes to the fitted estimator.

    Attributes
    ----------
    common : ndarray of shape (k, k)
        Contingency table: weight of the rows for each pair of an earlier and a new
        cluster number.
    attributes : dict, default={}
        Fitted attributes to set.
    report : dict, default={}
        Entries of the report to set.
    warnings : sequence of str, default=()
        Sentences of the warnings to issue.
    """

    common: np.ndarray
    attributes: Mapping[str, Any] = MappingProxyType({})
    report: Mapping[str, Any] = MappingProxyType({})
    warnings: Sequence[str] = ()


class _LabelledRows(NamedTuple):
    labels: np.ndarray
    outlier_scores: np.ndarray


def _labelled(engine: Engine, model: Model, samples: Samples) -> _LabelledRows:
    """Return the labels and the outlier scores of rows, computed in one pass."""
    features, rule = model.labelling(samples, of_nodes=True)
    both: Any = CombinedPass((LabelsPass(rule), DecisionPass(OutlierScores())))
    labels, scores = engine.run(both, features, "labels")
    return _LabelledRows(np.concatenate(labels), np.concatenate(scores))


def _is_usual(is_far: np.ndarray) -> bool:
    """Return whether the number of far rows may be due to chance."""
    # 1 % of the rows of the fit are far. Twice this share is allowed, plus three
    # standard deviations of a binomial count: 3 sqrt(0.01 m).
    n_usual = 0.02 * is_far.size + 0.3 * is_far.size**0.5
    return bool(np.count_nonzero(is_far) <= n_usual)


def _are_explained(
    estimator: MaximumMarginClustering,
    new: NewRows,
    is_far: np.ndarray,
    random_state: np.random.RandomState,
) -> bool:
    """Return whether the new rows are distributed like the earlier rows.

    Counting far rows is not enough, because few rows of a new cluster are far if the
    data have heavy tails or noise. Therefore, the test also counts rows that are nearer
    to each other than to the nodes.
    """
    if not _is_usual(is_far):
        return False
    if estimator.kernel in MARGIN_KERNELS:  # these models cannot be updated
        return True
    order = random_state.permutation(new.rows.size)
    nodes = nodes_of(estimator.model_).search
    return _is_usual(are_among_new(new.points[order], nodes))


def _voting_model(
    estimator: MaximumMarginClustering, engine: Engine, batch: _Batch
) -> Model:
    """Return a model in which the nodes vote instead of a support vector machine.

    The labels of the rows near the nodes determine which cluster of the vote
    corresponds to which of the two clusters of the support vector machine.
    """
    model = estimator.model_
    if isinstance(model.rule, Shares):
        return model
    is_near = ~batch.is_far & (batch.labels >= 0)
    if estimator.kernel != "auto" or not is_near.any():
        n_far = np.count_nonzero(~is_near)
        raise InputError(
            f"{n_far:,} rows are far from the rows of the fit, and a model with "
            f"kernel={estimator.kernel_!r} cannot be updated with them; fit with "
            "kernel='graph', or fit all rows with fit(X, like=model)."
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
    """Cluster the earlier nodes and the new rows together.

    Each cluster that matches an earlier cluster keeps the number of that cluster.
    """
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
        Earlier nodes and new rows.
    choice : Choice
        The chosen clusters: the earlier clusters, or the result of a new search.
    groups : ndarray of shape (p,), int64
        Number of the group of each new node that does not belong to any earlier
        cluster, starting from 1; 0 for all other nodes.
    has_room : bool
        Whether the range of ``n_clusters`` allows these groups as new clusters.
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
    """Choose between the earlier clusters of the nodes and the result of a new search.

    In both cases, groups of new rows that do not belong to any earlier cluster become
    new clusters if the range of ``n_clusters`` allows this; otherwise, they are merged
    into the earlier clusters. The earlier clusters are kept without a comparison if the
    range allows the groups and chance explains the number of far rows outside the
    groups.
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
    """Return a result that keeps the model, because no new cluster is allowed.

    It warns about the rows that are far from all clusters.
    """
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
        warnings=[f"{fault}, and {number} allows no new cluster: {OUTSIDE}."],
    )


def _numbered(
    estimator: MaximumMarginClustering, joined: JoinedNodes, chosen: _Chosen
) -> _Result:
    """Return a result with a new model.

    Clusters that match earlier clusters keep the numbers of these clusters.
    """
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
    # The random choice of nodes may have left out all nodes of a small cluster. Such a
    # cluster counts as unchanged.
    table[earlier, earlier] += ~common.any(axis=1)
    shares = table[earlier] / table[earlier].sum(axis=1, keepdims=True)
    table[earlier] = shares * before[:, None]
    return _Result(table, attributes, choice.report(nodes), _changed(choice, table))


def _changed(choice: Choice, common: np.ndarray) -> list[str]:
    """Return a warning if an earlier cluster lost more than 1 % of its rows.

    The warning is the only element of a list, which is empty without a warning.
    """
    is_changed = np.diag(common) < KEPT_SHARE * common.sum(axis=1)
    if not is_changed.any():
        return []
    numbers = ", ".join(map(str, np.flatnonzero(is_changed)))
    before = max(other.score.J for other in choice.others)
    return [
        f"some rows of clusters {numbers} are now in other clusters, because a new "
        f"search found clearly better clusters (J {choice.best.score.J:.2f}, before "
        f"{before:.2f}); report_['changes'] lists the changes."
    ]

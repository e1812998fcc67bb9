"""New rows in a fitted model: its nodes stand for earlier rows, and clusters keep their numbers."""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mmcnb.choice.candidates import Candidate
from mmcnb.choice.judge import judge
from mmcnb.choice.match import changes, matched
from mmcnb.choice.number import Number, Structure, layer_rows
from mmcnb.choice.pick import LEAST_GAIN, doubts, trust
from mmcnb.choice.small import far_groups, set_apart
from mmcnb.engine.passes import CombinedPass, draw_sample, sample_rows
from mmcnb.engine.session import Report, whole_numbers
from mmcnb.errors import InputError
from mmcnb.features.of_nodes import OutlierScores
from mmcnb.features.rules import DecisionPass, LabelsPass, Shares
from mmcnb.graph.communities import by_first
from mmcnb.graph.neighbours import node_graph
from mmcnb.graph.vote import log_distances, vote
from mmcnb.samples import Samples
from mmcnb.samples.matrix import stack


def updated(estimator: Any, engine: Any, samples: Samples, seed: Any) -> dict[str, Any]:
    """The fitted attributes after new rows.

    Parameters
    ----------
    estimator : MaximumMarginClustering
        Fitted, with nodes; it stays as it is.
    engine : Engine
        Runs the passes.
    samples : Samples
        The new rows.
    seed : int, RandomState or None
        Draws rows.

    Returns
    -------
    dict
        Attributes by name. The model is among them if more of the rows are far from its
        nodes than by chance.

    Raises
    ------
    InputError
        More of them are far, and a support vector machine was asked for, or no row
        tells its numbers.
    """
    model = estimator.model_
    report = estimator.report_
    found = dict[str, Any]()
    table = np.diag(np.array(report["sizes"], np.float64))
    labels, scores = _labelled(engine, model, samples)
    if not _is_usual(is_far := scores > model.graph.bound):
        voting = copy(estimator)
        is_near = ~is_far & (labels >= 0)
        voting.model_ = _voting(estimator, engine, samples, labels, is_near)
        voting.random_state = seed
        found, table = _searched(voting, engine, samples, is_far)
        labels, scores = _labelled(engine, found["model_"], samples)
    noise, *counts = np.bincount(labels + 1, minlength=len(table) + 1).tolist()
    after = whole_numbers((table.sum(axis=0) + counts).tolist())
    before = [*report["sizes"], *[0] * (len(table) - len(report["sizes"]))]
    told = {"sizes": after, "changes": changes(table, before, after)}
    if "noise" in report:
        told["noise"] = report["noise"] + noise
        found["outlier_score_"] = scores
    return found | {
        "labels_": labels,
        "report_": Report(report | found.get("report_", {}) | told),
    }


def _labelled(
    engine: Any, model: Any, samples: Samples
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and outlier scores of rows, in one pass."""
    features, rule = model.labelling(samples, of_nodes=True)
    both: Any = CombinedPass((LabelsPass(rule), DecisionPass(OutlierScores())))
    labels, scores = map(np.concatenate, engine.run(both, features, "labels"))
    return labels, scores


def _voting(
    estimator: Any,
    engine: Any,
    samples: Samples,
    labels: np.ndarray,
    is_near: np.ndarray,
) -> Any:
    """The model, with the vote of its nodes in place of a machine; near rows tell the numbers of both."""
    model = estimator.model_
    if isinstance(model.rule, Shares):
        return model
    if estimator.kernel != "auto" or not is_near.any():
        why = f"{np.count_nonzero(~is_near):,} rows are far from those of the fit, and a model of "
        why += f"kernel={estimator.kernel_!r} takes in none"
        raise InputError(
            f"{why}; fit with kernel='graph', or all rows with fit(X, like=model)."
        )
    rule = Shares(np.arange(2.0), np.zeros(2))  # a machine of two clusters
    model = replace(model, rule=rule, kernel=None, basis=None, feature_dtype="float64")
    voted = np.concatenate(
        engine.run(LabelsPass(rule), model.features(samples), "labels")
    )
    is_same = np.mean((voted == labels)[is_near]) >= 0.5
    return model if is_same else replace(model, rule=rule.ordered([1, 0]))


def _is_usual(is_far: np.ndarray) -> bool:
    """Whether no more rows are far than by chance, if 1 % of those of the fit are."""
    return bool(np.count_nonzero(is_far) <= 0.02 * is_far.size + 0.3 * is_far.size**0.5)


def _searched(
    estimator: Any, engine: Any, samples: Samples, is_far: np.ndarray
) -> tuple[Any, np.ndarray]:
    """The fitted attributes after a new search, and the rows that earlier clusters and new ones share."""
    model = estimator.model_
    before = np.array(estimator.report_["sizes"], np.float64)
    n = before.sum() + estimator.report_.get("noise", 0) + samples.n_samples
    number = np.argsort(model.rule.coef)[model.graph.labels]
    graph, earlier, weights, is_far, logs = _joined(
        estimator, engine, samples, number, is_far, n
    )
    taken, seen = estimator._number(graph, n, engine.each)
    best, *others = _ranked(
        estimator, seen, taken, earlier, is_far, is_new=weights == 0
    )
    k = int(best.labels.max()) + 1
    bins: Any = np.arange(before.size + 1), np.arange(k + 1)
    common = np.histogram2d(earlier, best.labels, bins, weights=weights)[0]
    common *= before[:, None] / np.maximum(
        common.sum(axis=1, keepdims=True), np.finfo(float).tiny ** 0.5
    )
    numbers = matched(common)
    count = max(before.size, int(numbers.max()) + 1)
    labels = numbers[best.labels]
    table = np.zeros((count, count))
    offsets = np.zeros(count)
    table[: before.size, numbers] = common
    offsets[number] = model.graph.offsets
    # Of a small cluster perhaps no node was drawn.
    table[: before.size, : before.size] += np.diag(
        np.where(common.any(axis=1), 0.0, before)
    )
    for one in range(before.size, count):
        offsets[one] = np.median(logs[labels == one])
    nodes = vote(graph, labels, count, seen.tree, offsets[labels])
    nodes = replace(nodes, threshold=model.graph.threshold, bound=model.graph.bound)
    new = replace(
        model, rule=Shares(np.arange(float(count)), np.zeros(count)), graph=nodes
    )
    reason = taken.reason and f"{k} clusters, {best.name}; a search: {taken.reason}"
    taken = replace(taken, n_clusters=k, reason=reason)
    sizes = graph.sizes * (n / graph.sizes.sum())
    told: dict[str, Any] = {
        "candidates": [one.to_dict(sizes) for one in (best, *others)]
    }
    told["trust"] = trust(best, others, None, doubts(seen, best.labels, taken))
    told["number"] = taken.to_dict() if reason else None
    told["layers"] = layer_rows(seen, best.labels, sizes)
    values = {
        "objective_": best.score.J,
        "n_clusters_": k,
        "candidate_": best.name,
        "kernel_": "graph",
    }
    return values | {"model_": new, "report_": told}, table


def _joined(
    estimator: Any,
    engine: Any,
    samples: Samples,
    number: np.ndarray,
    is_far: np.ndarray,
    n: float,
) -> tuple[Any, ...]:
    """A graph of earlier nodes, with their numbers, and new rows, which stand for n rows in all.

    Then, of each of its nodes: the number in the model, the weight of earlier rows,
    whether it is a new row that is far, and the logarithm of the distance to its tenth
    neighbour.
    """
    model = estimator.model_
    nodes = estimator.model_.graph
    m = samples.n_samples
    # Few new rows have a tenth of the nodes, of less weight each, so that groups of
    # them are seen.
    random = check_random_state(estimator.random_state)
    share = np.clip(m / n, 0.1, 0.9)
    new = sample_rows(m, int(np.ceil(estimator.n_nodes * share)), None, random)
    old = sample_rows(number.size, max(1, estimator.n_nodes - new.size), None, random)
    sample = draw_sample(engine, model.scaled(samples), new)[0]
    sizes = nodes.sizes[old]
    points = nodes.axes(sample)
    beyond = nodes.axes.beyond(sample, points)
    weights = np.append(
        sizes, np.full(new.size, sizes.sum() * m / ((n - m) * new.size))
    )
    both = stack([nodes.search.nodes[old], points.astype(nodes.search.nodes.dtype)])
    graph = node_graph(both, weights, random, engine.each, axes=nodes.axes)
    first = graph.of_nodes(np.arange(weights.size))
    numbers = np.append(number[old], model.rule.label(nodes.block(sample, np.float64)))[
        first
    ]
    is_far = np.append(np.zeros(old.size, bool), is_far[new])[first]
    beyond = np.append(np.full(old.size, np.median(beyond)), beyond)[first]
    weights = np.where(first < old.size, weights[first], 0.0)
    return graph, numbers, weights, is_far, log_distances(graph.distances, beyond)


def _ranked(
    estimator: Any,
    seen: Structure,
    number: Number,
    earlier: Any,
    is_far: Any,
    is_new: Any,
) -> list[Candidate]:
    """The earlier partition and that of a new search, the one that is taken first.

    If nothing is asked of the clusters, groups of far rows are clusters of their own in
    both. If few far rows are in no group, or the search finds one cluster among the
    others, the earlier partition stays.
    """
    own = far_groups(seen.groups, is_far) if estimator._seeks_small else 0 * earlier

    def candidate(name: str, labels: np.ndarray) -> Candidate:
        labels = by_first(labels)
        return set_apart(
            seen.graph, Candidate(name, labels, judge(seen.graph, labels)), own
        )

    kept = candidate("as before", earlier)
    if np.unique(number.labels[own == 0]).size < 2 or _is_usual(
        is_far[is_new & (own == 0)]
    ):
        return [kept]
    found = candidate("resolutions", number.labels)
    is_kept = kept.labels.max() > 0 and kept.score.J >= found.score.J - LEAST_GAIN
    return [kept, found] if is_kept else [found, kept]

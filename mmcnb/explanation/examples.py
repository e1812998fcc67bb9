"""Rows that show what a cluster is: typical ones, those at its edge, and those far out."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from mmcnb.engine.passes import GatherPass
from mmcnb.engine.run import Engine
from mmcnb.explanation.groups import Groups, Sample
from mmcnb.features.labelling import DecisionPass
from mmcnb.features.model import Model
from mmcnb.features.rules import clusters_of
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import as_matrix


class SeenRows(NamedTuple):
    """Rows of a sample, as the model compares them.

    Attributes
    ----------
    distances : ndarray of shape (m, k)
        To the means of the clusters.
    margins : ndarray of shape (m, k)
        Score of the cluster of a row minus that of each other one; infinite where
        either is noise.
    far : ndarray of shape (m,)
        Outlier scores; NaN if the model has no nodes.
    """

    distances: np.ndarray
    margins: np.ndarray
    far: np.ndarray


def seen_rows(engine: Engine, model: Model, sample: Sample, groups: Groups) -> SeenRows:
    """Rows as a model compares them.

    Scores are its decision values if it gives most of the rows these labels. Otherwise
    they are distances to the means of the clusters, with a minus sign.
    """
    labels = groups.clusters[sample.codes]
    rows = open_samples(sample.X)
    X = as_matrix(model.scaled(rows).block(0, labels.size))
    inside = np.equal.outer(np.arange(groups.clusters.size), sample.codes)
    distances = euclidean_distances(X, inside / inside.sum(axis=1, keepdims=True) @ X)
    features, rule = model.labelling(rows, of_nodes=True)
    if model.graph is None:
        values = np.concatenate(engine.run(DecisionPass(rule), features))
        far = np.full(labels.size, np.nan)
    else:  # a search for nodes gives all columns
        columns = np.concatenate(
            engine.run(GatherPass(np.arange(labels.size)), features)
        )
        values = rule.decide(columns)
        far = columns[:, -2]
    scores = -distances
    known = groups.known
    is_known = labels != -1
    own = np.arange(labels.size), sample.codes
    n_same = np.count_nonzero(clusters_of(values)[is_known] == labels[is_known])
    values = np.column_stack([-values, values]) / 2 if values.ndim == 1 else values
    if n_same > 0.9 * is_known.sum() and groups.clusters.max() < values.shape[1]:
        scores[:, known] = values[:, groups.clusters[known]]
    margins = scores[own][:, None] - scores
    margins[own] = margins[:, groups.clusters == -1] = margins[~is_known] = np.inf
    distances[~is_known] = np.inf
    return SeenRows(distances, margins, far)


def nearest_cluster(
    seen: SeenRows, sample: Sample, groups: Groups, k: int
) -> tuple[Any, float]:
    """The other cluster with the largest mean score of the rows of one, and the margin to it.

    Of clusters with equal scores it is the one whose mean is nearest.
    """
    distances, margins = (
        values[sample.codes == k].mean(axis=0)
        for values in (seen.distances, seen.margins)
    )
    nearest = np.lexsort((distances, margins))[0]
    return (
        (groups.clusters[nearest], margins[nearest])
        if margins[nearest] < np.inf
        else (None, np.nan)
    )


def row_table(
    seen: SeenRows, sample: Sample, groups: Groups, index: Any, most: int = 3
) -> Any:
    """Examples of each cluster, with numbers and names of the rows."""
    import pandas as pd

    own = np.arange(sample.codes.size), sample.codes
    kinds = {
        "typical": seen.distances[own],
        "edge": seen.margins.min(axis=1),
        "far": -seen.far,
    }
    found = []
    for k, cluster in enumerate(groups.clusters):
        members = np.flatnonzero(sample.codes == k)
        for kind, scores in kinds.items():
            best = members[np.argsort(scores[members], kind="stable")][:most]
            found += [
                (cluster, kind, sample.rows[j], scores[j])
                for j in best
                if np.isfinite(scores[j])
            ]
    frame = pd.DataFrame(found, columns=["cluster", "kind", "row", "score"])
    frame.loc[frame["kind"] == "far", "score"] *= -1
    read = (
        index
        if callable(index)
        else lambda start, stop: [None] if index is None else index[start:stop]
    )
    frame.insert(
        3,
        "name",
        pd.Series([read(row, row + 1)[0] for row in frame["row"]], dtype=object),
    )
    return frame

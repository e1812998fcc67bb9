"""Select example rows of each cluster: typical rows, edge rows, and far rows."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics.pairwise import euclidean_distances

from mmcnb.engine.passes import GatherPass
from mmcnb.engine.run import Engine
from mmcnb.explanation.groups import Groups, Sample
from mmcnb.features.labelling import DecisionPass
from mmcnb.features.model import Model
from mmcnb.features.rules import clusters_of
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.matrix import as_matrix
from mmcnb.samples.row_index import RowIndex

MOST_ROWS = 3  # maximum number of examples of each kind in each cluster


class ComparedRows(NamedTuple):
    """Distances, margins and outlier scores of the rows of a sample.

    Attributes
    ----------
    distances : ndarray of shape (m, k)
        Distance of each row to the mean of each cluster; infinite for noise rows.
    margins : ndarray of shape (m, k)
        Score of the row for its own cluster minus its score for each other cluster. The
        margin is infinite for the row's own cluster, for noise rows, and for the
        column of noise.
    far : ndarray of shape (m,)
        Outlier score of each row, or NaN if the model has no nodes.
    """

    distances: np.ndarray
    margins: np.ndarray
    far: np.ndarray


def compare_rows(
    engine: Engine, model: Model, sample: Sample, groups: Groups
) -> ComparedRows:
    """Compare the rows of a sample with the clusters.

    If the labels that the model predicts agree with ``groups`` for more than 90 % of
    the rows except noise, the score of a row for a cluster is the decision value of the
    model. Otherwise, the user has passed other labels, and the score is the negative
    distance to the mean of the cluster.
    """
    labels = groups.clusters[sample.codes]
    is_noise = labels == -1
    rows = open_samples(sample.X)
    distances = _distances_to_means(model.scaled(rows), sample, groups)
    values, far = _model_values(engine, model, rows)
    is_same = clusters_of(values) == labels
    n_same = np.count_nonzero(is_same & ~is_noise)
    if values.ndim == 1:
        values = np.column_stack([-values, values]) / 2
    scores = -distances
    known = groups.known
    is_of_model = n_same > 0.9 * (~is_noise).sum()
    if is_of_model and groups.clusters.max() < values.shape[1]:
        scores[:, known] = values[:, groups.clusters[known]]
    score = scores[sample.cells]
    margins = score[:, None] - scores
    margins[sample.cells] = np.inf
    margins[:, groups.clusters == -1] = np.inf
    margins[is_noise] = np.inf
    distances[is_noise] = np.inf
    return ComparedRows(distances, margins, far)


def _distances_to_means(rows: Samples, sample: Sample, groups: Groups) -> np.ndarray:
    """Return the distances from each row to the mean of each cluster's sampled rows."""
    X = as_matrix(rows.block(0, rows.n_samples))
    inside = np.equal.outer(np.arange(groups.clusters.size), sample.codes)
    means = inside / inside.sum(axis=1, keepdims=True) @ X
    return euclidean_distances(X, means)


def _model_values(
    engine: Engine, model: Model, rows: Samples
) -> tuple[np.ndarray, np.ndarray]:
    """Return the decision values and the outlier scores of rows."""
    features, rule = model.labelling(rows, of_nodes=True)
    if model.graph is None:
        values = np.concatenate(engine.run(DecisionPass(rule), features))
        return values, np.full(rows.n_samples, np.nan)
    # A single search for the nearest nodes yields both the decision values and the
    # outlier scores.
    gathered = engine.run(GatherPass(np.arange(rows.n_samples)), features)
    columns = np.concatenate(gathered)
    return rule.decide(columns), columns[:, -2]


def nearest_cluster(
    compared: ComparedRows, sample: Sample, groups: Groups, k: int
) -> tuple[object, float]:
    """Return the cluster nearest to cluster k, and the mean margin to this cluster.

    The nearest cluster is the one with the smallest mean margin over the rows of
    cluster k. Ties are broken by the mean distance of these rows to the mean of the
    other cluster. If there is no other cluster, the result is (None, nan).
    """
    members = sample.codes == k
    distances = compared.distances[members].mean(axis=0)
    margins = compared.margins[members].mean(axis=0)
    nearest = np.lexsort((distances, margins))[0]
    if not margins[nearest] < np.inf:
        return None, np.nan
    return groups.clusters[nearest], margins[nearest]


def row_table(
    compared: ComparedRows, sample: Sample, groups: Groups, index: RowIndex
) -> pd.DataFrame:
    """Return the table `Explanation.rows`, with example rows of each cluster.

    A row is listed as an edge row only if another row of its cluster has a larger
    margin.
    """
    kinds = {
        "typical": compared.distances[sample.cells],
        "edge": compared.margins.min(axis=1),
        "far": -compared.far,
    }
    examples = []
    for k, cluster in enumerate(groups.clusters):
        members = np.flatnonzero(sample.codes == k)
        for kind, scores in kinds.items():
            shown = members
            if kind == "edge":
                shown = members[scores[members] < scores[members].max()]
            order = np.argsort(scores[shown], kind="stable")
            for j in shown[order[:MOST_ROWS]]:
                if np.isfinite(scores[j]):
                    examples.append((cluster, kind, sample.rows[j], scores[j]))
    frame = pd.DataFrame(examples, columns=["cluster", "kind", "row", "score"])
    frame.loc[frame["kind"] == "far", "score"] *= -1
    names = [index.name_of(row) for row in frame["row"]]
    frame.insert(3, "name", pd.Series(names, dtype=object))
    return frame

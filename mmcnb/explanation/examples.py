"""Rows that show what a cluster is: typical ones, those at its edge, and those far out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from mmcnb.engine.passes import CollectingPass
from mmcnb.engine.run import Engine
from mmcnb.explanation.groups import Groups, Sample
from mmcnb.explanation.summary import MomentsPass
from mmcnb.features.model import Model
from mmcnb.features.of_nodes import NodeRule
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import as_matrix


@dataclass(frozen=True)
class DistancesPass(CollectingPass):
    """Distances of rows to some centres."""

    centres: np.ndarray

    def block(self, rows: Any, start: int, stop: int) -> list[np.ndarray]:
        """Distances of one block, of shape (rows, k)."""
        return [euclidean_distances(as_matrix(rows), self.centres)]


@dataclass(frozen=True)
class SeenPass(CollectingPass):
    """Scores of each cluster, labels and outlier scores of rows, as a model sees them."""

    rule: Any

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Those of one block; outlier scores need nodes."""
        values, labels = self.rule.decide(rows), self.rule.label(rows)
        values = np.column_stack([-values, values]) / 2 if values.ndim == 1 else values
        far = rows[:, -2] if isinstance(self.rule, NodeRule) else np.full(len(labels), np.nan)
        return [(values, labels, far)]


class SeenRows(NamedTuple):
    """Rows of a sample, as the model compares them.

    Attributes
    ----------
    codes : ndarray of shape (m,)
        Place of the cluster of each row.
    distances : ndarray of shape (m, k)
        To the means of the clusters.
    between : ndarray of shape (k, k)
        From mean to mean.
    scores : ndarray of shape (m, k)
        The larger one is, the more a row belongs to that cluster.
    far : ndarray of shape (m,)
        Outlier scores; NaN if the model has no nodes.
    """

    codes: np.ndarray
    distances: np.ndarray
    between: np.ndarray
    scores: np.ndarray
    far: np.ndarray


def seen_rows(engine: Engine, model: Model, sample: Sample, groups: Groups) -> SeenRows:
    """Rows as a model compares them.

    Scores are its decision values if it gives most of the rows these labels. Otherwise they are distances
    to the means of the clusters, with a minus sign.
    """
    clusters, rows = groups.clusters, open_samples(sample.X)
    scaled = model.scaled(rows)
    centres = engine.run(MomentsPass(sample.codes, clusters.size), scaled).means
    distances = np.concatenate(engine.run(DistancesPass(centres), scaled))
    features, rule = model.labelling(rows, of_nodes=model.graph is not None)
    values, labels, far = map(np.concatenate, zip(*engine.run(SeenPass(rule), features), strict=True))
    scores = -distances
    if np.mean(labels == clusters[sample.codes]) > 0.9:
        own = clusters[groups.known]
        scores[:, groups.known] = values[:, own]
    return SeenRows(sample.codes, distances, euclidean_distances(centres), scores, far)


def nearest_clusters(seen: SeenRows, groups: Groups) -> Any:
    """For each cluster the other one with the largest mean score of its rows, and the margin to it.

    Of clusters with equal scores it is the one whose mean is nearest.
    """
    import pandas as pd

    found = pd.DataFrame({"nearest": [None] * groups.clusters.size, "margin": np.nan}, dtype=object)
    for k in groups.known if groups.known.size > 1 else ():
        means, others = seen.scores[seen.codes == k].mean(axis=0), groups.known[groups.known != k]
        nearest = others[np.lexsort((seen.between[k, others], -means[others]))[0]]
        found.loc[k] = groups.clusters[nearest], means[k] - means[nearest]
    return found.convert_dtypes().astype({"margin": float})


def examples(seen: SeenRows, groups: Groups, k: int, most: int = 3) -> Iterator[tuple[str, int, float]]:
    """Kind, place and score of typical rows of a cluster, of rows at its edge, and of far rows."""
    own, others = np.flatnonzero(seen.codes == k), groups.known[groups.known != k]
    kinds, is_cluster = {}, k in groups.known
    if is_cluster:
        kinds["typical"] = seen.distances[own, k]
    if is_cluster and others.size:
        kinds["edge"] = seen.scores[own, k] - seen.scores[np.ix_(own, others)].max(axis=1)
    if np.isfinite(seen.far).all():
        kinds["far"] = -seen.far[own]
    for kind, order in kinds.items():
        for place in np.argsort(order, kind="stable")[:most]:
            yield kind, int(own[place]), float(-order[place] if kind == "far" else order[place])


def table_of_rows(seen: SeenRows, sample: Sample, groups: Groups, index: Any) -> Any:
    """Examples of each cluster, with numbers and names of the rows."""
    import pandas as pd

    found = [
        (cluster, kind, row := int(sample.rows[place]), _name(index, row), score)
        for k, cluster in enumerate(groups.clusters)
        for kind, place, score in examples(seen, groups, k)
    ]
    return pd.DataFrame(found, columns=["cluster", "kind", "row", "name", "score"])


def _name(index: Any, row: int) -> Any:
    """The name of a row; None if rows have none."""
    if index is None:
        return None
    return index(row, row + 1)[0] if callable(index) else index[row]

"""Compute decision values, noise, outlier scores and pieces of rows from nodes.

A piece is a leaf of the merge tree; the clusters of each layer are unions of pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from mmcnb.features.kernel import FeatureMap
from mmcnb.features.rules import Hyperplane, Rule, Scores
from mmcnb.graph.vote import Vote
from mmcnb.samples.matrix import Block


@dataclass(frozen=True)
class NodeColumns:
    """Map from rows to decision values and three more columns, block by block.

    The last three columns are the excess of the outlier score over the noise threshold,
    the outlier score, and the index of the piece. Rows with a positive excess are
    noise.

    Parameters
    ----------
    rule : Hyperplane or Scores
        Rule that computes the decision values.
    mapped : FeatureMap or None
        Maps rows to the features of the rule. If None, the columns are the features.
    nodes : Vote
        The nodes, with a merge tree and the offsets of outlier scores.
    dtype : str, default="float64"
        Data type of the features.
    """

    rule: Hyperplane | Scores
    mapped: FeatureMap | None
    nodes: Vote
    dtype: str = "float64"

    @property
    def n_features(self) -> int:
        """Number of columns: the decision values and three more."""
        return np.size(self.rule.offset) + 3

    def block(self, rows: Block, dtype: DTypeLike) -> np.ndarray:
        """Return the decision values and the three additional columns of the rows."""
        nodes = self.nodes
        n_voters = nodes.n_neighbors
        points = nodes.axes(rows)
        # Outlier scores need one more neighbour than the vote.
        n_nearest = min(n_voters + 1, nodes.sizes.size)
        numbers, distances = nodes.search.nearest(points, n_nearest)
        voters = numbers[:, :n_voters], distances[:, :n_voters]
        features: Block = rows
        if self.mapped is nodes:
            features = nodes.shares(points, self.dtype, voters)
        elif self.mapped is not None:
            features = self.mapped.block(rows, self.dtype)
        beyond = nodes.axes.beyond(rows, points)
        scores = nodes.outlier_scores(numbers, distances, beyond)
        excess = nodes.excess(numbers, distances, scores)
        pieces = nodes.pieces(*voters)
        return np.column_stack([self.rule.decide(features), excess, scores, pieces])


@dataclass(frozen=True)
class NodeRule(Rule):
    """Rule that computes labels from the columns of `NodeColumns`; -1 is noise.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, k.
    layer : ndarray of shape (c,) or None, default=None
        Cluster of each of the c pieces in the layer that labels the rows. If None, rows
        are labelled by their decision values.
    layers : sequence of (str, ndarray of shape (c,)), default=()
        Layers that are added to a table as columns. Each entry is the name of the
        column and the cluster of each piece.
    """

    n_clusters: int
    layer: np.ndarray | None = None
    layers: Sequence[tuple[str, np.ndarray]] = ()

    def decide(self, rows: np.ndarray) -> np.ndarray:
        """Return the decision values.

        For two clusters, they may be a one-dimensional array.
        """
        values = rows[:, :-3]
        is_hyperplane = values.shape[1] == 1 and self.n_clusters > 1
        return values[:, 0] if is_hyperplane else values

    def label(self, rows: np.ndarray) -> np.ndarray:
        """Return the cluster of each row, int32."""
        if self.layer is None:
            labels = super().label(rows)
        else:
            labels = self.layer[_pieces(rows)]
        return np.where(rows[:, -3] > 0, -1, labels).astype(np.int32)

    def table(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the cluster and margin of each row, and its cluster in each layer."""
        labels = self.label(rows)
        columns = super().table(rows) | {"cluster": labels}
        if self.layer is not None:
            # Decision values and margins belong to the selected partition, not to this
            # layer.
            del columns["margin"]
        for name, clusters in self.layers:
            of_layer = np.where(labels < 0, -1, clusters[_pieces(rows)])
            columns[name] = of_layer.astype(np.int32)
        return columns


@dataclass(frozen=True)
class OutlierScores:
    """Rule that returns the column of outlier scores of `NodeColumns`."""

    def decide(self, rows: np.ndarray) -> np.ndarray:
        """Return the outlier scores, float32."""
        return rows[:, -2].astype(np.float32)


def _pieces(rows: np.ndarray) -> np.ndarray:
    return rows[:, -1].astype(np.int64)

"""Rows seen from the nodes of a graph: decision values, outlier scores and pieces of the merge tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.features.kernel import FeatureMap
from mmcnb.features.rules import Hyperplane, Scores, clusters_of, margins_of
from mmcnb.graph.vote import Vote


@dataclass(frozen=True)
class NodeColumns:
    """Maps rows to their decision values, outlier score and piece, block by block.

    Parameters
    ----------
    rule : Hyperplane or Scores
        Gives the decision values.
    mapped : FeatureMap or None
        Maps rows to its features; None keeps their columns.
    nodes : Vote
        The nodes, with a tree and the offsets of outlier scores.
    dtype : str, default="float64"
        Type of the features.
    """

    rule: Hyperplane | Scores
    mapped: FeatureMap | None
    nodes: Vote
    dtype: str = "float64"

    @property
    def n_features(self) -> int:
        """Decision values, and two more."""
        return np.size(self.rule.offset) + 2

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """The columns of dense or CSR rows."""
        nodes = self.nodes
        count = self.nodes.n_neighbors
        points = nodes.axes(rows)
        numbers, distances = nodes.search.nearest(
            points, min(count + 1, nodes.sizes.size)
        )
        voters = numbers[:, :count], distances[:, :count]
        if self.mapped is nodes:
            features = nodes.shares(points, self.dtype, voters)
        else:
            features = (
                rows if self.mapped is None else self.mapped.block(rows, self.dtype)
            )
        scores = nodes.outlier_scores(
            numbers, distances, nodes.axes.beyond(rows, points)
        )
        return np.column_stack(
            [self.rule.decide(features), scores, nodes.pieces(*voters)]
        )


@dataclass(frozen=True)
class NodeRule:
    """Labels rows by the columns of `NodeColumns`: -1 is noise.

    Parameters
    ----------
    offset : ndarray of shape (k,)
        Its size is the number of clusters.
    threshold : float, default=inf
        The outlier score above which a row is noise.
    layer : ndarray of shape (c,) or None, default=None
        Cluster of each piece; None labels by the decision values.
    layers : sequence of (str, ndarray of shape (c,)), default=()
        The names of further columns of a table, each with the same.
    """

    offset: np.ndarray
    threshold: float = np.inf
    layer: np.ndarray | None = None
    layers: Sequence[tuple[str, np.ndarray]] = ()

    def decide(self, rows: np.ndarray) -> np.ndarray:
        """Decision values: of two clusters they may be one column."""
        return (
            rows[:, :-2] if rows.shape[1] > 3 or self.offset.size == 1 else rows[:, 0]
        )

    def label(self, rows: np.ndarray) -> np.ndarray:
        """Cluster of each row, int32."""
        labels = (
            clusters_of(self.decide(rows))
            if self.layer is None
            else self.layer[_pieces(rows)]
        )
        return np.where(rows[:, -2] > self.threshold, -1, labels).astype(np.int32)

    def table(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Cluster and margin of each row, and its cluster in each layer."""
        named = {"cluster": self.label(rows)}
        if self.layer is None:
            named["margin"] = margins_of(self.decide(rows))
        is_noise = named["cluster"] < 0
        of_layers = {
            name: np.where(is_noise, -1, of[_pieces(rows)]) for name, of in self.layers
        }
        return named | {
            name: labels.astype(np.int32) for name, labels in of_layers.items()
        }


@dataclass(frozen=True)
class OutlierScores:
    """Decides by the outlier scores in the columns of `NodeColumns`, float32."""

    def decide(self, rows: np.ndarray) -> np.ndarray:
        """The scores."""
        return rows[:, -2].astype(np.float32)


def _pieces(rows: np.ndarray) -> np.ndarray:
    return rows[:, -1].astype(np.int64)

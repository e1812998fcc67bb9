"""Displays in the style of scikit-learn; matplotlib is imported when they are drawn."""

from mmcnb.plotting._cluster_map import ClusterMapDisplay
from mmcnb.plotting._clusters import ClusterDisplay

__all__ = ["ClusterDisplay", "ClusterMapDisplay"]

"""Displays in scikit-learn's manner; matplotlib is imported when something is drawn."""

from mmcnb.plotting._cluster_map import ClusterMapDisplay
from mmcnb.plotting._clusters import ClusterDisplay

__all__ = ["ClusterDisplay", "ClusterMapDisplay"]

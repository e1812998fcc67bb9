"""Displays in the style of scikit-learn, which import matplotlib when drawing."""

from mmcnb.plotting._cluster_map import ClusterMapDisplay
from mmcnb.plotting._clusters import ClusterDisplay

__all__ = ["ClusterDisplay", "ClusterMapDisplay"]

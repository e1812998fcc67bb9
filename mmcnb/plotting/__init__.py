"""Displays in scikit-learn's manner; matplotlib is imported when something is drawn."""

from mmcnb.plotting._cluster_map import ClusterMapDisplay
from mmcnb.plotting._clusters import ClusterDisplay
from mmcnb.plotting._history import HistoryDisplay
from mmcnb.plotting._kernel_weights import KernelWeightsDisplay
from mmcnb.plotting._selection import SelectionDisplay
from mmcnb.plotting._shaking import ShakingDisplay

__all__ = [
    "ClusterDisplay",
    "ClusterMapDisplay",
    "HistoryDisplay",
    "KernelWeightsDisplay",
    "SelectionDisplay",
    "ShakingDisplay",
]

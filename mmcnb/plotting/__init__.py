"""Displays in scikit-learn's manner; matplotlib is imported when something is drawn."""

from mmcnb.plotting._clusters import ClusterDisplay
from mmcnb.plotting._history import HistoryDisplay

__all__ = ["ClusterDisplay", "HistoryDisplay"]

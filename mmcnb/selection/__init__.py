"""Selection without labels: parameters, and evidence for a number of clusters."""

from mmcnb.selection.clusters import select_n_clusters
from mmcnb.selection.parameters import Selection, select_parameters

__all__ = ["Selection", "select_n_clusters", "select_parameters"]

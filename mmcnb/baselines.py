"""The papers' baselines: methods for comparison, on data that fit in memory."""

from mmcnb.estimators.iterative_svr import IterativeSVR
from mmcnb.estimators.label_generation_mmc import LabelGenerationMMC
from mmcnb.estimators.own_basis_mmc import OwnBasisMMC
from mmcnb.estimators.sdp_mmc import SDPMMC
from mmcnb.least_squares.graph_kmeans import GraphClusters, ball_graph, graph_kernel_kmeans

__all__ = [
    "SDPMMC",
    "GraphClusters",
    "IterativeSVR",
    "LabelGenerationMMC",
    "OwnBasisMMC",
    "ball_graph",
    "graph_kernel_kmeans",
]

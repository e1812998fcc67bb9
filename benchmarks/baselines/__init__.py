"""Peers of the papers, on rows in memory: they are compared with mmcnb and are no part of it."""

from benchmarks.baselines.graph_kmeans import ball_graph, graph_kernel_kmeans
from benchmarks.baselines.iterative_svr import IterativeSVR
from benchmarks.baselines.label_generation import LabelGenerationMMC
from benchmarks.baselines.sdp import SDPMMC

__all__ = ["SDPMMC", "IterativeSVR", "LabelGenerationMMC", "ball_graph", "graph_kernel_kmeans"]

"""Baselines of the papers and for mixed tables, in memory, which are not part of mmcnb."""

from benchmarks.baselines.generalised_mmc import GeneralisedMMC
from benchmarks.baselines.gower import GowerMedoids, gower_distances
from benchmarks.baselines.graph_kmeans import ball_graph, graph_kernel_kmeans
from benchmarks.baselines.iterative_svr import IterativeSVR
from benchmarks.baselines.kamila import Kamila
from benchmarks.baselines.label_generation import LabelGenerationMMC
from benchmarks.baselines.linear_label_generation import LinearLabelGenerationMMC
from benchmarks.baselines.sdp import SDPMMC

__all__ = [
    "SDPMMC",
    "GeneralisedMMC",
    "GowerMedoids",
    "IterativeSVR",
    "Kamila",
    "LabelGenerationMMC",
    "LinearLabelGenerationMMC",
    "ball_graph",
    "gower_distances",
    "graph_kernel_kmeans",
]

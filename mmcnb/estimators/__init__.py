"""The scikit-learn faces, one file a method."""

from mmcnb.estimators._base import ClusterWarning
from mmcnb.estimators._persistence import load
from mmcnb.estimators.cpmmc import CPMMC
from mmcnb.estimators.evolutionary_mmc import EvolutionaryMMC
from mmcnb.estimators.iterative_svr import IterativeSVR
from mmcnb.estimators.kernel_cpmmc import KernelCPMMC
from mmcnb.estimators.kernel_kmeans import KernelKMeans
from mmcnb.estimators.label_generation_mmc import LabelGenerationMMC
from mmcnb.estimators.multiple_kernel_clustering import MultipleKernelClustering
from mmcnb.estimators.sdp_mmc import SDPMMC
from mmcnb.estimators.sparse_kernel_mmc import SparseKernelMMC
from mmcnb.estimators.support_cluster_machine import SupportClusterMachine
from mmcnb.estimators.unsupervised_rls import UnsupervisedRLS

__all__ = [
    "CPMMC",
    "SDPMMC",
    "ClusterWarning",
    "EvolutionaryMMC",
    "IterativeSVR",
    "KernelCPMMC",
    "KernelKMeans",
    "LabelGenerationMMC",
    "MultipleKernelClustering",
    "SparseKernelMMC",
    "SupportClusterMachine",
    "UnsupervisedRLS",
    "load",
]

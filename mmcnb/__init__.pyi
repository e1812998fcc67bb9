from mmcnb._config import config as config
from mmcnb.estimators import CPMMC as CPMMC
from mmcnb.estimators import SDPMMC as SDPMMC
from mmcnb.estimators import EvolutionaryMMC as EvolutionaryMMC
from mmcnb.estimators import IterativeSVR as IterativeSVR
from mmcnb.estimators import KernelCPMMC as KernelCPMMC
from mmcnb.estimators import KernelKMeans as KernelKMeans
from mmcnb.estimators import LabelGenerationMMC as LabelGenerationMMC
from mmcnb.estimators import MultipleKernelClustering as MultipleKernelClustering
from mmcnb.estimators import SparseKernelMMC as SparseKernelMMC
from mmcnb.estimators import SupportClusterMachine as SupportClusterMachine
from mmcnb.estimators import UnsupervisedRLS as UnsupervisedRLS
from mmcnb.estimators import load as load
from mmcnb.samples import open_samples as open_samples

__version__: str
__all__ = [
    "CPMMC",
    "SDPMMC",
    "EvolutionaryMMC",
    "IterativeSVR",
    "KernelCPMMC",
    "KernelKMeans",
    "LabelGenerationMMC",
    "MultipleKernelClustering",
    "SparseKernelMMC",
    "SupportClusterMachine",
    "UnsupervisedRLS",
    "__version__",
    "config",
    "load",
    "open_samples",
]

from mmcnb import datasets as datasets
from mmcnb._config import config as config
from mmcnb.errors import ClusterWarning as ClusterWarning
from mmcnb.errors import InputError as InputError
from mmcnb.estimators.annotate import annotate as annotate
from mmcnb.estimators.cpmmc import CPMMC as CPMMC
from mmcnb.estimators.crammer_singer_mmc import CrammerSingerMMC as CrammerSingerMMC
from mmcnb.estimators.evolutionary_mmc import EvolutionaryMMC as EvolutionaryMMC
from mmcnb.estimators.kernel_cpmmc import KernelCPMMC as KernelCPMMC
from mmcnb.estimators.kernel_kmeans import KernelKMeans as KernelKMeans
from mmcnb.estimators.maximum_margin_clustering import (
    MaximumMarginClustering as MaximumMarginClustering,
)
from mmcnb.estimators.multiple_kernel_clustering import (
    MultipleKernelClustering as MultipleKernelClustering,
)
from mmcnb.estimators.partition_score import partition_score as partition_score
from mmcnb.estimators.persistence import load as load
from mmcnb.estimators.sparse_kernel_mmc import SparseKernelMMC as SparseKernelMMC
from mmcnb.estimators.support_cluster_machine import (
    SupportClusterMachine as SupportClusterMachine,
)
from mmcnb.estimators.unsupervised_rls import UnsupervisedRLS as UnsupervisedRLS
from mmcnb.estimators.warmup import warmup as warmup
from mmcnb.features.basis import basis_plan as basis_plan
from mmcnb.features.basis import estimate_basis as estimate_basis
from mmcnb.samples import open_samples as open_samples
from mmcnb.tables.open import read_table as read_table
from mmcnb.tables.plan import table_plan as table_plan

__version__: str
__all__ = [
    "CPMMC",
    "ClusterWarning",
    "CrammerSingerMMC",
    "EvolutionaryMMC",
    "InputError",
    "KernelCPMMC",
    "KernelKMeans",
    "MaximumMarginClustering",
    "MultipleKernelClustering",
    "SparseKernelMMC",
    "SupportClusterMachine",
    "UnsupervisedRLS",
    "__version__",
    "annotate",
    "basis_plan",
    "config",
    "datasets",
    "estimate_basis",
    "load",
    "open_samples",
    "partition_score",
    "read_table",
    "table_plan",
    "warmup",
]

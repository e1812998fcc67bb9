"""Maximum margin clustering for data larger than memory.

Public names are imported when they are first used, so that ``import mmcnb`` is fast.
Type checkers and editors read the names from ``__init__.pyi``.
"""

from importlib import import_module

__version__ = "0.4.0"

_MODULES = {
    "CPMMC": "mmcnb.estimators.cpmmc",
    "CrammerSingerMMC": "mmcnb.estimators.crammer_singer_mmc",
    "EvolutionaryMMC": "mmcnb.estimators.evolutionary_mmc",
    "KernelCPMMC": "mmcnb.estimators.kernel_cpmmc",
    "KernelKMeans": "mmcnb.estimators.kernel_kmeans",
    "MaximumMarginClustering": "mmcnb.estimators.maximum_margin_clustering",
    "MultipleKernelClustering": "mmcnb.estimators.multiple_kernel_clustering",
    "SparseKernelMMC": "mmcnb.estimators.sparse_kernel_mmc",
    "SupportClusterMachine": "mmcnb.estimators.support_cluster_machine",
    "UnsupervisedRLS": "mmcnb.estimators.unsupervised_rls",
    "annotate": "mmcnb.estimators.annotate",
    "basis_plan": "mmcnb.features.basis",
    "estimate_basis": "mmcnb.features.basis",
    "load": "mmcnb.estimators.persistence",
    "open_samples": "mmcnb.samples",
    "partition_score": "mmcnb.estimators.partition_score",
    "read_table": "mmcnb.tables.open",
    "table_plan": "mmcnb.tables.plan",
    "warmup": "mmcnb.estimators.warmup",
    "config": "mmcnb._config",
    "InputError": "mmcnb.errors",
    "ClusterWarning": "mmcnb.errors",
}

__all__ = ["__version__", "datasets", *_MODULES]


def __getattr__(name: str) -> object:
    if name == "datasets":
        return import_module("mmcnb.datasets")
    if name not in _MODULES:
        raise AttributeError(f"module 'mmcnb' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Maximum margin clustering for data larger than memory.

Names load on first use, so that ``import mmcnb`` stays quick; see ``__init__.pyi`` for what each is.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "SparseKernelMMC": "mmcnb.estimators",
    "KernelCPMMC": "mmcnb.estimators",
    "KernelKMeans": "mmcnb.estimators",
    "CPMMC": "mmcnb.estimators",
    "UnsupervisedRLS": "mmcnb.estimators",
    "EvolutionaryMMC": "mmcnb.estimators",
    "IterativeSVR": "mmcnb.estimators",
    "MultipleKernelClustering": "mmcnb.estimators",
    "LabelGenerationMMC": "mmcnb.estimators",
    "SDPMMC": "mmcnb.estimators",
    "SupportClusterMachine": "mmcnb.estimators",
    "load": "mmcnb.estimators",
    "open_samples": "mmcnb.samples",
    "config": "mmcnb._config",
}

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


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'mmcnb' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

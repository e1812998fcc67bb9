"""Runs passes over blocks of rows: threads, read-ahead, memory plan, cache of kernel columns."""

from mmcnb.engine._checkpoint import Checkpoint, CheckpointEngine, check_folder, environment, is_finished
from mmcnb.engine._choose import connected, open_engine, portable
from mmcnb.engine._dask import DaskEngine
from mmcnb.engine._expansion import ExpansionMap
from mmcnb.engine._features import (
    BasisMap,
    CachedSamples,
    DerivedSamples,
    FeatureMap,
    Kernel,
    KernelSamples,
    ScaledSamples,
    cache_features,
)
from mmcnb.engine._journal import fingerprint
from mmcnb.engine._kernel_stack import BlockKernel, KernelStack, kernel_of_facts
from mmcnb.engine._memory import format_bytes, parse_bytes, resolve_memory_limit
from mmcnb.engine._plan import FitPlan, larger_sample, most_sweeps, plan_fit, size_of, square_rows
from mmcnb.engine._run import Engine, Pass, ThreadEngine, Traffic, run
from mmcnb.engine._survey import GatherPass, Survey, Together, as_matrix, stack, survey

__all__ = [
    "BasisMap",
    "BlockKernel",
    "CachedSamples",
    "Checkpoint",
    "CheckpointEngine",
    "DaskEngine",
    "DerivedSamples",
    "Engine",
    "ExpansionMap",
    "FeatureMap",
    "FitPlan",
    "GatherPass",
    "Kernel",
    "KernelSamples",
    "KernelStack",
    "Pass",
    "ScaledSamples",
    "Survey",
    "ThreadEngine",
    "Together",
    "Traffic",
    "as_matrix",
    "cache_features",
    "check_folder",
    "connected",
    "environment",
    "fingerprint",
    "format_bytes",
    "is_finished",
    "kernel_of_facts",
    "larger_sample",
    "most_sweeps",
    "open_engine",
    "parse_bytes",
    "plan_fit",
    "portable",
    "resolve_memory_limit",
    "run",
    "size_of",
    "square_rows",
    "stack",
    "survey",
]

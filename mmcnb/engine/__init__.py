"""Runs passes over blocks of rows: threads, read-ahead, memory plan, cache of kernel columns."""

from mmcnb.engine._features import (
    BasisMap,
    CachedSamples,
    DerivedSamples,
    Kernel,
    KernelSamples,
    ScaledSamples,
    cache_features,
)
from mmcnb.engine._memory import format_bytes, parse_bytes
from mmcnb.engine._plan import FitPlan, most_sweeps, plan_fit
from mmcnb.engine._run import Engine, Pass, ThreadEngine, run
from mmcnb.engine._survey import Survey, as_matrix, survey

__all__ = [
    "BasisMap",
    "CachedSamples",
    "DerivedSamples",
    "Engine",
    "FitPlan",
    "Kernel",
    "KernelSamples",
    "Pass",
    "ScaledSamples",
    "Survey",
    "ThreadEngine",
    "as_matrix",
    "cache_features",
    "format_bytes",
    "most_sweeps",
    "parse_bytes",
    "plan_fit",
    "run",
    "survey",
]

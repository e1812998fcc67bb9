"""Support cluster machines, for rare classes: each round clusters and trains.

They stream rows of any source, as the estimators of mmcnb do, and take its passes,
engines and constraints.
"""

from benchmarks.support_cluster_machine.support_cluster_machine import (
    SupportClusterMachine,
)

__all__ = ["SupportClusterMachine"]

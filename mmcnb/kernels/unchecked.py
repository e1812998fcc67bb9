"""The compiled routines without checks: for njit code, and for arrays checked before.

Those of `mmcnb.kernels` are here with their twins for CSR rows, and a few that only
mmcnb needs. Nothing is checked: an array of a wrong shape or order, or an index out of
range, gives wrong numbers or ends the process. Numba is loaded when the first name is
used.
"""

from importlib import import_module
from typing import Any


def _module_of(**modules: str) -> dict[str, str]:
    return {name: module for module, names in modules.items() for name in names.split()}


# By their names, the modules of those that `mmcnb.kernels` has, and of all.
PUBLIC = _module_of(
    cutting_plane="decision_values most_violated_constraint plane_qp plane_sums",
    evolution="evolve_labels",
    moves="cluster_row_sums shake steepest_moves stochastic_moves",
    neighbours="nearest_nodes_into node_shares_into",
    pairwise="polynomial_kernel_block_into rbf_kernel_block_into",
    runner_up="cluster_scores most_violated_runner_ups",
    sizes="size_multipliers",
)
_MODULE_OF = PUBLIC | _module_of(
    cutting_plane="count_idle decision_values_csr most_violated_constraint_csr plane_sums_csr "
    "sample_subproblem stalls",
    neighbours="calibrated_weights nearest_centres_into",
    pairwise="column_tiles polynomial_kernel_block_csr_into rbf_kernel_block_csr_into squared_norms",
)

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"mmcnb.kernels.{_MODULE_OF[name]}")
    return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

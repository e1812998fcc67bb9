"""Compiled routines that do not check their arguments, and can be called by njit code.

The module contains all routines of `mmcnb.kernels`, their variants for CSR rows, and
routines that are used only inside mmcnb. An array with a wrong shape or memory order,
or an index that is out of range, leads to wrong results or crashes the process. Numba
is imported when a routine is first accessed.
"""

from importlib import import_module
from typing import Any

# For each routine that is also in `mmcnb.kernels`, the module that defines it.
PUBLIC = {
    "basis_fixed_point_sums": "pairwise",
    "centre_kernel_block_into": "landmarks",
    "cluster_row_sums": "moves",
    "cluster_scores": "runner_up",
    "column_tiles": "pairwise",
    "cone_step": "cone",
    "decision_values": "cutting_plane",
    "evolve_labels": "evolution",
    "flip_labels": "evolution",
    "hinge_loss_sums": "losses",
    "kmeans_plusplus_rows": "landmarks",
    "most_violated_constraint": "cutting_plane",
    "most_violated_runner_ups": "runner_up",
    "nearest_nodes_into": "neighbours",
    "node_shares_into": "neighbours",
    "nystroem_map": "landmarks",
    "plane_qp": "cutting_plane",
    "plane_sums": "planes",
    "polynomial_kernel_block_into": "pairwise",
    "ramp_loss_sums": "losses",
    "rbf_kernel_block_into": "pairwise",
    "shake": "moves",
    "size_multipliers": "sizes",
    "squared_norms": "pairwise",
    "steepest_moves": "moves",
    "stochastic_moves": "moves",
}
ROUTINES = PUBLIC | {
    "basis_fixed_point_sums_csr": "pairwise",
    "calibrated_weights": "neighbours",
    "count_idle": "cutting_plane",
    "decision_values_csr": "cutting_plane",
    "fill_gaps": "gaps",
    "most_violated_constraint_csr": "cutting_plane",
    "plane_sums_csr": "planes",
    "polynomial_kernel_block_csr_into": "pairwise",
    "rbf_kernel_block_csr_into": "pairwise",
    "sample_subproblem": "cutting_plane",
    "sample_subproblem_parts": "cutting_plane",
    "stalls": "cutting_plane",
    "three_nearest_into": "neighbours",
}
# Named tuples that routines take or return.
RECORDS = dict.fromkeys(
    ("Limits", "SamplePlanes", "SampleRows", "Sweep"), "cutting_plane"
)

__all__ = sorted(ROUTINES)


def __getattr__(name: str) -> Any:
    module = (ROUTINES | RECORDS).get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"mmcnb.kernels.{module}"), name)
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

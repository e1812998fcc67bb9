"""The compiled routines without checks: for njit code, and for arrays checked before.

Those of `mmcnb.kernels` are here with their twins for CSR rows, and a few that only
mmcnb needs. Nothing is checked: an array of a wrong shape or order, or an index out of
range, gives wrong numbers or ends the process. Numba is loaded when the first name is
used.
"""

from importlib import import_module
from typing import Any

# The module of each routine that `mmcnb.kernels` has.
PUBLIC = {
    "cluster_row_sums": "moves",
    "cluster_scores": "runner_up",
    "decision_values": "cutting_plane",
    "evolve_labels": "evolution",
    "most_violated_constraint": "cutting_plane",
    "most_violated_runner_ups": "runner_up",
    "nearest_nodes_into": "neighbours",
    "node_shares_into": "neighbours",
    "plane_qp": "cutting_plane",
    "plane_sums": "planes",
    "polynomial_kernel_block_into": "pairwise",
    "rbf_kernel_block_into": "pairwise",
    "shake": "moves",
    "size_multipliers": "sizes",
    "steepest_moves": "moves",
    "stochastic_moves": "moves",
}
ROUTINES = PUBLIC | {
    "calibrated_weights": "neighbours",
    "column_tiles": "pairwise",
    "count_idle": "cutting_plane",
    "decision_values_csr": "cutting_plane",
    "fill_gaps": "gaps",
    "most_violated_constraint_csr": "cutting_plane",
    "nearest_centres_into": "neighbours",
    "plane_sums_csr": "planes",
    "polynomial_kernel_block_csr_into": "pairwise",
    "rbf_kernel_block_csr_into": "pairwise",
    "sample_subproblem": "cutting_plane",
    "squared_norms": "pairwise",
    "stalls": "cutting_plane",
}
# Named tuples that routines take and return.
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

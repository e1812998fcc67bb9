"""How long a fit will take beside its sweeps over all rows: rough rates that a plan is made of."""

from collections.abc import Iterable

# CPU seconds of one processor core to compile what fits use: `python -m benchmarks startup` prints their sum.
COMPILE_SECONDS = {
    "size_multipliers": 5.0,
    "refine": 3.5,  # with the other routines of the search for a partition
    "nearest_nodes_into": 3.5,  # with those of a graph
    "rbf_kernel_block_into": 3.5,
    "most_violated_constraint": 4.0,  # with those of the cutting planes
}
GRAPH = ("nearest_nodes_into",)
KERNEL = ("rbf_kernel_block_into",)
PARTITION = ("size_multipliers", "refine")
MARGIN = ("most_violated_constraint",)
DEFAULT = GRAPH + KERNEL + PARTITION + MARGIN


def compile_estimate(routines: Iterable[str]) -> float:
    """Seconds to compile those routines of which neither this process nor the cache has machine code.

    Parameters
    ----------
    routines : iterable of str
        Names out of `COMPILE_SECONDS`; each stands for those that are used with it.

    Returns
    -------
    float
        0 where all are compiled.

    Examples
    --------
    >>> from mmcnb.engine.estimates import compile_estimate
    >>> compile_estimate([])
    0.0
    """
    from mmcnb import kernels
    from mmcnb._numba import is_compiled

    cold = (name for name in routines if not is_compiled(getattr(kernels.unchecked, name)))
    return sum((COMPILE_SECONDS[name] for name in cold), 0.0)

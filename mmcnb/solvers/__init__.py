"""Small dense optimisation: the planes' quadratic programme, the cutting-plane and CCCP loops, continuation."""

from mmcnb.solvers.cccp import Rounds, State, continuation, path_to
from mmcnb.solvers.cutting_plane import Objective, Solution, SweepBudget, cutting_plane
from mmcnb.solvers.plane_qp import PlaneQPError, PlaneSolution, solve_planes
from mmcnb.solvers.planes import BasisPlanes, ExactPlanes, Planes, coin_flip
from mmcnb.solvers.problem import (
    DecisionPass,
    GivenLabels,
    Hyperplane,
    HyperplaneLabels,
    Labels,
    Problem,
    metric_of,
    signs,
)

__all__ = [
    "BasisPlanes",
    "DecisionPass",
    "ExactPlanes",
    "GivenLabels",
    "Hyperplane",
    "HyperplaneLabels",
    "Labels",
    "Objective",
    "PlaneQPError",
    "PlaneSolution",
    "Planes",
    "Problem",
    "Rounds",
    "Solution",
    "State",
    "SweepBudget",
    "continuation",
    "coin_flip",
    "cutting_plane",
    "metric_of",
    "path_to",
    "signs",
    "solve_planes",
]

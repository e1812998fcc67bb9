"""Small dense optimisation: the planes' quadratic programme, cutting planes, CCCP, continuation."""

from mmcnb.solvers.cccp import Rounds, State, continuation, greatest_balance, path_to
from mmcnb.solvers.cutting_plane import Objective, Solution, SweepBudget, cutting_plane
from mmcnb.solvers.growing import GrowingPlanes, OwnPlanes, Rows
from mmcnb.solvers.hyperplane import GivenLabels, Hyperplane, HyperplaneLabels, Labels, signs
from mmcnb.solvers.passes import DecisionPass
from mmcnb.solvers.plane_qp import PlaneQPError, PlaneSolution, solve_planes
from mmcnb.solvers.planes import BasisPlanes, ExactPlanes, Planes, coin_flip
from mmcnb.solvers.problem import Problem, metric_of, row_shares

__all__ = [
    "BasisPlanes",
    "DecisionPass",
    "ExactPlanes",
    "GivenLabels",
    "GrowingPlanes",
    "Hyperplane",
    "HyperplaneLabels",
    "Labels",
    "Objective",
    "OwnPlanes",
    "PlaneQPError",
    "PlaneSolution",
    "Planes",
    "Problem",
    "Rounds",
    "Rows",
    "Solution",
    "State",
    "SweepBudget",
    "coin_flip",
    "continuation",
    "cutting_plane",
    "greatest_balance",
    "metric_of",
    "path_to",
    "row_shares",
    "signs",
    "solve_planes",
]

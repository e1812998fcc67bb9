"""Small dense optimisation: the planes' quadratic programme, cutting planes, CCCP, continuation."""

from mmcnb.solvers.cccp import Rounds, State, continuation, greatest_balance, path_to
from mmcnb.solvers.crammer_singer import ClustersProblem, CrammerSingerPlanes
from mmcnb.solvers.cutting_plane import Objective, Solution, SweepBudget, cutting_plane
from mmcnb.solvers.graph_kmeans import GraphClusters, ball_graph, graph_kernel_kmeans
from mmcnb.solvers.growing import GrowingPlanes, OwnPlanes, Rows
from mmcnb.solvers.hyperplane import (
    GivenLabels,
    Hyperplane,
    HyperplaneLabels,
    Labels,
    Scores,
    ScoresLabels,
    signs,
)
from mmcnb.solvers.kernel_kmeans import (
    Distances,
    Means,
    MeanSumsPass,
    PseudoCentrePass,
    lloyd,
    mini_batches,
    pseudo_centre_pass,
)
from mmcnb.solvers.kernel_planes import KernelClustersPlanes, KernelPlanes
from mmcnb.solvers.label_generation import GeneratedLabels, generate_labels
from mmcnb.solvers.label_mixture import LabelMixture, mix_labels
from mmcnb.solvers.passes import DecisionPass, MarginPass, RowSumPass
from mmcnb.solvers.plane_qp import PlaneQPError, PlaneSolution, solve_planes
from mmcnb.solvers.plane_socp import solve_kernel_planes
from mmcnb.solvers.planes import BasisPlanes, ExactPlanes, Planes, coin_flip
from mmcnb.solvers.problem import Problem, metric_of, row_shares
from mmcnb.solvers.rls import (
    Partition,
    floor_bounds,
    mean_objective,
    one_against_all_objective,
    size_bounds,
    smoother,
    target_shares,
    two_cluster_objective,
)
from mmcnb.solvers.rls_evolution import Evolved, balanced_labels, evolve
from mmcnb.solvers.rls_fitness import FeatureFitness, MatrixFitness, feature_fitness, matrix_fitness
from mmcnb.solvers.rls_path import (
    PrincipalFeatures,
    free_step,
    held_step,
    principal_features,
    ridge_path,
)
from mmcnb.solvers.rls_shaking import (
    best_partition,
    canonical_labels,
    random_labels,
    rls_starts,
    schedule_of,
    search_partition,
)
from mmcnb.solvers.rls_stream import (
    LabelSumsPass,
    RidgeMap,
    mean_objective_of,
    one_against_all_objective_of,
    ridge_map,
)
from mmcnb.solvers.sdp import LabelMatrix, solve_label_matrix, solve_machine

__all__ = [
    "BasisPlanes",
    "ClustersProblem",
    "CrammerSingerPlanes",
    "DecisionPass",
    "Distances",
    "Evolved",
    "ExactPlanes",
    "FeatureFitness",
    "GeneratedLabels",
    "GivenLabels",
    "GraphClusters",
    "GrowingPlanes",
    "Hyperplane",
    "HyperplaneLabels",
    "KernelClustersPlanes",
    "KernelPlanes",
    "LabelMatrix",
    "LabelMixture",
    "LabelSumsPass",
    "Labels",
    "MarginPass",
    "MatrixFitness",
    "MeanSumsPass",
    "Means",
    "Objective",
    "OwnPlanes",
    "Partition",
    "PlaneQPError",
    "PlaneSolution",
    "Planes",
    "PrincipalFeatures",
    "Problem",
    "PseudoCentrePass",
    "RidgeMap",
    "Rounds",
    "RowSumPass",
    "Rows",
    "Scores",
    "ScoresLabels",
    "Solution",
    "State",
    "SweepBudget",
    "balanced_labels",
    "ball_graph",
    "best_partition",
    "canonical_labels",
    "coin_flip",
    "continuation",
    "cutting_plane",
    "evolve",
    "feature_fitness",
    "floor_bounds",
    "free_step",
    "generate_labels",
    "graph_kernel_kmeans",
    "greatest_balance",
    "held_step",
    "lloyd",
    "matrix_fitness",
    "mean_objective",
    "mean_objective_of",
    "metric_of",
    "mini_batches",
    "mix_labels",
    "one_against_all_objective",
    "one_against_all_objective_of",
    "path_to",
    "principal_features",
    "pseudo_centre_pass",
    "random_labels",
    "ridge_map",
    "ridge_path",
    "rls_starts",
    "row_shares",
    "schedule_of",
    "search_partition",
    "signs",
    "size_bounds",
    "smoother",
    "solve_kernel_planes",
    "solve_label_matrix",
    "solve_machine",
    "solve_planes",
    "target_shares",
    "two_cluster_objective",
]

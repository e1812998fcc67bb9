"""Label-free choices on a sample: starts, landmarks, widths and ridges, evidence for a number of clusters."""

from mmcnb.selection.clusters import select_n_clusters
from mmcnb.selection.coarse import (
    CLEAN_SCORE,
    Candidate,
    Search,
    Trial,
    coarse_search,
    exact_candidate,
    growing_candidate,
    landmark_candidate,
    linear_candidate,
    random_solution,
)
from mmcnb.selection.parameters import Selection, select_parameters
from mmcnb.selection.stability import Setting, stable_settings
from mmcnb.selection.starts import (
    INITS,
    choose_landmarks,
    least_squares_labels,
    principal_directions,
    starting_labels,
)
from mmcnb.selection.widths import (
    GAMMA_NAMES,
    candidate_gammas,
    least_squares_gamma,
    leave_one_out_scores,
    mean_squared_distance,
    named_gamma,
)

__all__ = [
    "CLEAN_SCORE",
    "GAMMA_NAMES",
    "INITS",
    "Candidate",
    "Search",
    "Selection",
    "Setting",
    "Trial",
    "candidate_gammas",
    "choose_landmarks",
    "coarse_search",
    "exact_candidate",
    "growing_candidate",
    "landmark_candidate",
    "least_squares_gamma",
    "least_squares_labels",
    "leave_one_out_scores",
    "linear_candidate",
    "mean_squared_distance",
    "named_gamma",
    "principal_directions",
    "random_solution",
    "select_n_clusters",
    "select_parameters",
    "stable_settings",
    "starting_labels",
]

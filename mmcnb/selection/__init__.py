"""Label-free choices on a sample: starts, landmarks, the width of the kernel."""

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
    random_norm2,
)
from mmcnb.selection.starts import INITS, choose_landmarks, principal_directions, starting_labels
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
    "Trial",
    "candidate_gammas",
    "choose_landmarks",
    "coarse_search",
    "exact_candidate",
    "growing_candidate",
    "landmark_candidate",
    "least_squares_gamma",
    "leave_one_out_scores",
    "linear_candidate",
    "mean_squared_distance",
    "named_gamma",
    "principal_directions",
    "random_norm2",
    "starting_labels",
]

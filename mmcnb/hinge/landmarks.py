"""Two clusters on landmarks: vectors chosen from the sample, in whose span the hyperplane lies."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.features.bandwidth import candidate_gammas, mean_squared_distance, named_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.needs import ROUTINES
from mmcnb.features.nystroem import choose_landmarks, scaled_landmarks
from mmcnb.hinge.growing import growing_candidates
from mmcnb.hinge.needs import ROUND_ROUTINES, hinge_needs
from mmcnb.hinge.sample_search import SearchConfig
from mmcnb.hinge.two_clusters import fit_two_clusters
from mmcnb.hinge.working_set import landmark_features
from mmcnb.least_squares.partition import PARTITION_ROUTINES
from mmcnb.samples import open_samples

MOST_LANDMARKS = 200  # by default: `python -m benchmarks basis`


def basis_size(n_landmarks: int | None, rows: int) -> int:
    """Number of landmarks of a sample; by default half of its rows and at most 200."""
    return min(rows, n_landmarks) if n_landmarks else max(2, min(MOST_LANDMARKS, rows // 2))


def candidate_kernels(
    name: str,
    gamma: float | str,
    sample: Any,
    weights: np.ndarray | None,
    degree: int = 3,
    coef0: float = 1.0,
) -> list[Kernel]:
    """The kernels to try on a sample: one, or one for each candidate bandwidth.

    Raises
    ------
    InputError
        If all rows are equal.
    """
    mean_squared_distance(sample, weights)
    if not isinstance(gamma, str):
        gammas = [float(gamma)]
    elif gamma == "auto" and name == "rbf":
        gammas = candidate_gammas(sample, weights)
    else:
        # Other kernels have no bandwidth: "auto" is scikit-learn's "scale".
        gammas = [named_gamma("scale" if gamma == "auto" else gamma, sample, weights)]
    return [Kernel(name, one, int(degree), float(coef0)) for one in gammas]


def needs_of_landmarks(
    rows: RowShape,
    sample_size: int | None,
    n_landmarks: int | None,
    landmarks: Any = None,
    growing: bool = False,
) -> FitNeeds:
    """Bytes and work of a fit on landmarks of a sample."""
    drawn = sample_size or SAMPLE_ROWS
    searched = min(rows.n_samples, drawn)
    size = basis_size(n_landmarks, searched) if landmarks is None else len(landmarks)
    compiled, sparse = not growing and size < searched, landmarks is None and not growing
    needs = hinge_needs(rows, size, drawn, stays_sparse=sparse, compiled=compiled)
    routines = {**ROUTINES, **PARTITION_ROUTINES, **needs.routines, **(ROUND_ROUTINES if compiled else {})}
    return replace(needs, routines=routines)


def fit_on_landmarks(
    session: FitSession,
    config: SearchConfig,
    kernels: list[Kernel],
    n_landmarks: int | None,
    landmarks: Any = None,
    growing: bool = False,
) -> FitResult:
    """Fit to the landmarks of a sample; on a growing basis the landmarks serve the starts alone."""
    rows, weights = session.sample, session.sample_weights
    size = basis_size(n_landmarks, rows.shape[0])
    if landmarks is None:
        basis = choose_landmarks(rows, size, session.random_state, weights, may_be_sparse=not growing)
    else:
        basis = scaled_landmarks(landmarks, rows, session.mean, session.deviation)
    if growing:
        return fit_two_clusters(session, growing_candidates(session, kernels, basis), config)
    whole = landmarks is None and size == rows.shape[0]
    given = session.engine, open_samples(rows), basis, weights, whole
    return fit_two_clusters(session, [partial(landmark_features, one, *given) for one in kernels], config)

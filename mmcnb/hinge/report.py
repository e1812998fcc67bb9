"""The verdict on a fit: sizes, what random labels would have given, and reasons for doubt."""

from typing import Any

import numpy as np

from mmcnb.hinge.cccp import CCCPResult
from mmcnb.hinge.cutting_plane import SubproblemResult
from mmcnb.hinge.sample_search import CLEAN_SCORE, RestartResult, SearchConfig, fit_random_labels

SMALL_SHARE = 0.3
NO_CLUSTERS = "no clusters found: |w| is no larger than random labels give; try another gamma."
DISAGREE = "the judges of the width disagree"
GRAVE = (NO_CLUSTERS, DISAGREE)  # said aloud; the other doubts stand in the report
AGREEMENT = 0.9


def report_of(
    trials: list[RestartResult], state: CCCPResult, search: SearchConfig, share: float, total: float
) -> dict[str, Any]:
    """What a fit says of itself.

    Parameters
    ----------
    trials : list of Trial
        Trials on the sample, the best first.
    state : State
        Where the fit ended.
    search : Search
        What was tried.
    share : float
        Share of the weight in cluster 1.
    total : float
        Weight of all rows.

    Returns
    -------
    dict
        Plain numbers, and ``warnings``: one sentence each.
    """
    trial, norm2 = trials[0], state.solution.quadratic.norm2
    random = fit_random_labels(trial, search)
    found = trial.objective.gain(state.solution) > trial.objective.gain(random)
    sizes = [round(total * (1 - share), 6), round(total * share, 6)]
    refined = 0 if state is trial.state else state.quantile_steps
    return {
        "sizes": [int(size) if float(size).is_integer() else size for size in sizes],
        "clusters_found": bool(found),
        "w_norm": float(norm2**0.5),
        "w_norm_random": float(random.quadratic.norm2**0.5),
        "score": float(trial.score),
        "gamma": trial.gamma,
        "widths": [] if trial.gamma is None else [_width(one) for one in trials],
        "kernel_evaluations": int(trial.planes.evaluations),
        "C": float(state.solution.C),
        "gap": float(state.solution.gap),
        "quantile_steps": trial.state.quantile_steps + refined,
        "warnings": [*([] if found else [NO_CLUSTERS]), *_doubts(trials, share)],
    }


def report_of_clusters(
    sizes: np.ndarray, solution: SubproblemResult, found: bool, random_norm2: float, **facts: Any
) -> dict[str, Any]:
    """What a fit of any number of clusters says of itself.

    Parameters
    ----------
    sizes : ndarray of shape (k,)
        Rows (or weight) of each cluster.
    solution : Solution
        Where the last cutting-plane loop ended.
    found : bool
        Whether it is better than random labels.
    random_norm2 : float
        |W|² that random labels reach on the sample.
    **facts
        What else is told.

    Returns
    -------
    dict
        Plain numbers, and ``warnings``: one sentence each.
    """
    k, empty = sizes.shape[0], int((sizes == 0).sum())
    doubts = [] if found else [NO_CLUSTERS]
    doubts += [f"{empty} of the {k} clusters hold no row; give fewer clusters."] if empty else []
    return {
        "sizes": [int(size) if size.is_integer() else size for size in sizes.tolist()],
        "clusters_found": bool(found),
        "w_norm": float(solution.quadratic.norm2**0.5),
        "w_norm_random": float(random_norm2**0.5),
        "C": float(solution.C),
        "gap": float(solution.gap),
        **facts,
        "warnings": doubts,
    }


def _width(trial: RestartResult) -> dict[str, Any]:
    """What the search over widths found at one: |w|² in units of the spread, and the leave-one-out score."""
    return {"gamma": trial.gamma, "relative_norm": trial.relative_norm2, "score": float(trial.score)}


def _doubts(trials: list[RestartResult], share: float) -> list[str]:
    trial, doubts = trials[0], []
    if trial.score > CLEAN_SCORE:
        doubts.append(
            f"the division is not clean (leave-one-out score {trial.score:.3f}, above {CLEAN_SCORE:g}): "
            "other divisions may be as good."
        )
    for judge, other in (
        ("|w|²", max(trials, key=lambda trial: trial.relative_norm2)),
        ("the leave-one-out score", min(trials, key=lambda trial: trial.score)),
    ):
        agreement = float(np.mean(other.labels == trial.labels))
        agreement = max(agreement, 1 - agreement)
        if agreement < AGREEMENT:
            doubts.append(
                f"{DISAGREE}: {judge} prefers gamma={other.gamma:.4g}, whose labels "
                f"agree on {agreement:.0%} of the sample."
            )
    if min(share, 1 - share) < SMALL_SHARE:
        doubts.append(f"the smaller cluster holds only {min(share, 1 - share):.1%} of the rows.")
    return doubts

"""Two clusters on landmarks from the sample: the hyperplane lies in their span."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.run import ThreadEngine
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.features.bandwidth import candidate_gammas, default_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.needs import ROUTINES
from mmcnb.features.nystroem import choose_landmarks, scaled_landmarks
from mmcnb.features.rules import Hyperplane, Scores
from mmcnb.hinge import multiclass
from mmcnb.hinge.needs import (
    HELD_ROWS,
    MARGIN_ROUTINES,
    ROUND_ROUTINES,
    hinge_needs,
    needs_of_search,
)
from mmcnb.hinge.sample_search import SearchConfig, landmark_features, search_config
from mmcnb.hinge.two_clusters import Refine, fit_two_clusters, refine_on_all_rows
from mmcnb.least_squares.partition import PARTITION_ROUTINES, PartitionConfig
from mmcnb.least_squares.search import SearchSettings
from mmcnb.samples import open_samples

MOST_LANDMARKS = 200  # by default: `python -m benchmarks basis`
N_INIT = (
    8  # starts of least squares, from which more than two clusters of a sample come
)


def basis_size(n_landmarks: int | None, rows: int) -> int:
    """Number of landmarks of a sample; by default half of its rows and at most 200."""
    return (
        min(rows, n_landmarks)
        if n_landmarks
        else max(2, min(MOST_LANDMARKS, rows // 2))
    )


def candidate_kernels(
    session: FitSession,
    name: str,
    gamma: float | str = "auto",
    degree: int = 3,
    coef0: float = 1.0,
) -> list[Kernel]:
    """The kernels to try on the sample of a fit: one, or one for each candidate bandwidth.

    Raises
    ------
    InputError
        If all rows are equal.
    """
    try_all = (
        isinstance(gamma, str) and gamma == "auto" and name == "rbf"
    )  # others have no bandwidth
    given = session.sample, session.sample_weights
    gammas = (
        candidate_gammas(*given) if try_all else [default_gamma(gamma, name, *given)]
    )
    return [Kernel(name, one, int(degree), float(coef0)) for one in gammas]


def needs_of_landmarks(
    rows: RowShape, drawn: int, n_landmarks: int | None, landmarks: Any = None
) -> FitNeeds:
    """Bytes and work of a fit on landmarks of a sample of so many rows."""
    searched = min(rows.n_samples, drawn)
    size = basis_size(n_landmarks, searched) if landmarks is None else len(landmarks)
    compiled = size < searched
    needs = hinge_needs(
        rows, size, drawn, stays_sparse=landmarks is None, compiled=compiled
    )
    routines = {
        **ROUTINES,
        **PARTITION_ROUTINES,
        **needs.routines,
        **(ROUND_ROUTINES if compiled else {}),
    }
    return replace(needs, routines=routines)


def fit_on_landmarks(
    session: FitSession,
    config: SearchConfig,
    kernels: list[Kernel],
    n_landmarks: int | None,
    landmarks: Any = None,
    refine: Refine = refine_on_all_rows,
) -> FitResult:
    """Fit to the landmarks of a sample, and refine the best start on all rows."""
    rows = session.sample
    weights = session.sample_weights
    size = basis_size(n_landmarks, rows.shape[0])
    if landmarks is None:
        basis = choose_landmarks(
            rows, size, session.random_state, weights, may_be_sparse=True
        )
    else:
        basis = scaled_landmarks(landmarks, rows, session.scaling)
    given = (
        session.engine,
        open_samples(rows),
        basis,
        weights,
        landmarks is None and size == rows.shape[0],
    )
    candidates = [partial(landmark_features, one, *given) for one in kernels]
    return fit_two_clusters(session, candidates, config, refine)


# -- the widest margin of a sample: a candidate beside those of the neighbour graph ----


def margin_on_sample(
    session: FitSession, n_clusters: int, kernel: str, seed: int
) -> Model:
    """The widest margin between clusters of the sample of a fit, in one thread.

    Two clusters are those of `SparseKernelMMC`, with every second bandwidth, and more
    those of `CrammerSingerMMC`, with their defaults.

    Parameters
    ----------
    session : FitSession
        The fit.
    n_clusters : int
        At least two.
    kernel : {"rbf", "linear"}
        The kernel.
    seed : int
        Seed of the fit.

    Returns
    -------
    Model
        For all rows; a decision value is a margin, in units of the margin of the fit.
    """
    with ThreadEngine(1) as engine:
        alone = _of_sample(session, engine, n_clusters, kernel, seed)
        if n_clusters == 2:
            kernels = candidate_kernels(alone, kernel)[::2]  # in steps of 2
            result = fit_on_landmarks(alone, search_config(alone), kernels, None)
        else:
            config = search_config(alone, max_rounds=multiclass.ROUNDS)
            result = multiclass.fit_on_landmarks(
                alone, _settings(n_clusters, kernel), config
            )
    return replace(result.model, rule=_in_margins(result), scaling=session.scaling)


def _settings(n_clusters: int, kernel: str) -> SearchSettings:
    return SearchSettings(
        PartitionConfig(n_clusters, n_init=N_INIT, cluster_sizes="equal"), kernel
    )


def margin_needs(
    rows: RowShape, n_clusters: int, kernel: str, n_rows: int | None = None
) -> FitNeeds:
    """Bytes and work of the fit to a sample: some rows in memory, or so many."""
    rows = replace(rows, n_samples=n_rows or rows.n_samples, is_reopenable=False)
    if n_clusters == 2:
        needs = needs_of_landmarks(rows, SAMPLE_ROWS, None)
    else:
        needs = needs_of_search(rows, _settings(n_clusters, kernel))
    # The rounds of so few rows are compiled: no sweep over blocks.
    called = needs.routines.keys() - MARGIN_ROUTINES.keys()
    return replace(
        needs, routines={name: needs.routines[name] for name in sorted(called)}
    )


def _of_sample(
    session: FitSession, engine: ThreadEngine, n_clusters: int, kernel: str, seed: int
) -> FitSession:
    """A fit to the sample alone, as if it were all rows."""
    session = session.of_size(HELD_ROWS)  # up to which rounds are compiled
    samples = open_samples(session.sample)
    rows = RowShape.of(samples, 1)
    needs = margin_needs(rows, n_clusters, kernel)
    plan = replace(session.plan, rows=rows, needs=needs, store="memory", threads=1)
    bare = replace(session, known=None, scaling=None, kept_labels=None)
    alone = replace(
        bare, engine=engine, samples=samples, weights=session.sample_weights, plan=plan
    )
    alone = replace(alone, random_state=np.random.RandomState(seed))
    return alone.of_size(min(needs.sample_size, rows.n_samples))


def _in_margins(result: FitResult) -> Scores:
    """The scores of a fit in units of its margin; a hyperplane gives two that differ by its value."""
    rule = result.model.rule
    rho = float(result.attributes["rho"])
    unit = rho if rho > 0 else 1.0
    if isinstance(rule, Hyperplane):
        half = rule.coef / 2
        rule = Scores(
            np.column_stack([-half, half]), np.array([rule.offset, -rule.offset]) / 2
        )
    return Scores(rule.coef / unit, rule.offset / unit)

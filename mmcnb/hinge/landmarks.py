"""Find two clusters with a hyperplane in the span of landmarks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.run import Engine, ThreadEngine
from mmcnb.engine.session import FitResult, FitSession, Record, ignore
from mmcnb.features.bandwidth import candidate_gammas, default_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.needs import ROUTINES
from mmcnb.features.nystroem import choose_landmarks, scaled_landmarks
from mmcnb.features.rules import Hyperplane, Scores
from mmcnb.hinge.multiclass import widest_margin_of_rows
from mmcnb.hinge.needs import (
    MARGIN_ROUTINES,
    ROUND_ROUTINES,
    hinge_needs,
    needs_of_search,
)
from mmcnb.hinge.sample_search import (
    KernelFeatures,
    SearchConfig,
    draw_rows,
    landmark_features,
    search_config,
    search_sample,
)
from mmcnb.hinge.two_clusters import Refine, fit_two_clusters, refine_on_all_rows
from mmcnb.least_squares.partition import PARTITION_ROUTINES, PartitionConfig
from mmcnb.least_squares.search import SearchSettings
from mmcnb.samples import open_samples
from mmcnb.samples.derived import cache_features
from mmcnb.samples.matrix import Matrix, Weights

# Maximum number of landmarks by default, chosen by `python -m benchmarks basis`.
MOST_LANDMARKS = 200
N_INIT = 8  # number of least-squares starts for more than two clusters


def basis_size(n_landmarks: int | None, rows: int) -> int:
    """Return the number of landmarks for a sample with ``rows`` rows.

    ``n_landmarks`` is limited to the number of rows. By default, half of the rows are
    landmarks, but at least 2 and at most 200.
    """
    if n_landmarks:
        return min(rows, n_landmarks)
    return max(2, min(MOST_LANDMARKS, rows // 2))


def candidate_kernels(
    rows: Matrix,
    weights: Weights,
    name: str,
    gamma: float | str = "auto",
    degree: int = 3,
    coef0: float = 1.0,
) -> list[Kernel]:
    """Return the candidate kernels that a search compares on a sample.

    For a Gaussian kernel with ``gamma="auto"``, there is one kernel per candidate
    bandwidth. Otherwise, there is a single kernel.

    Raises
    ------
    InputError
        If all rows are equal.
    """
    # Only the Gaussian kernel has a bandwidth.
    if isinstance(gamma, str) and gamma == "auto" and name == "rbf":
        gammas = candidate_gammas(rows, weights)
    else:
        gammas = [default_gamma(gamma, name, rows, weights)]
    return [Kernel(name, value, int(degree), float(coef0)) for value in gammas]


def needs_of_landmarks(
    rows: RowShape,
    sample_size: int,
    n_landmarks: int | None,
    landmarks: Sequence[object] | np.ndarray | None = None,
) -> FitNeeds:
    """Estimate the memory and work of a fit on landmarks."""
    searched = min(rows.n_samples, sample_size)
    if landmarks is None:
        size = basis_size(n_landmarks, searched)
    else:
        size = len(landmarks)
    compiled = size < searched
    needs = hinge_needs(
        rows, size, sample_size, stays_sparse=landmarks is None, compiled=compiled
    )
    routines = ROUTINES | PARTITION_ROUTINES | needs.routines
    if compiled:
        routines |= ROUND_ROUTINES
    return replace(needs, routines=routines)


def landmark_candidates(
    engine: Engine,
    kernels: Sequence[Kernel],
    rows: Matrix,
    weights: Weights,
    basis: np.ndarray,
    is_whole: bool,
) -> list[Callable[[], KernelFeatures]]:
    """Return, for each kernel, a function that calls `landmark_features`."""
    sample = open_samples(rows)
    return [
        partial(landmark_features, kernel, engine, sample, basis, weights, is_whole)
        for kernel in kernels
    ]


def drawn_candidates(
    engine: Engine,
    kernels: Sequence[Kernel],
    rows: Matrix,
    weights: Weights,
    n_landmarks: int | None,
    random_state: np.random.RandomState,
) -> list[Callable[[], KernelFeatures]]:
    """Choose landmarks from a sample, and return their `landmark_candidates`."""
    size = basis_size(n_landmarks, rows.shape[0])
    basis = choose_landmarks(rows, size, random_state, weights, may_be_sparse=True)
    is_whole = size == rows.shape[0]
    return landmark_candidates(engine, kernels, rows, weights, basis, is_whole)


def fit_on_landmarks(
    session: FitSession,
    config: SearchConfig,
    kernels: list[Kernel],
    n_landmarks: int | None,
    landmarks: Sequence[object] | np.ndarray | None = None,
    refine: Refine = refine_on_all_rows,
) -> FitResult:
    """Fit two clusters on landmarks, and refine the best start on all rows.

    If ``landmarks`` is None, landmarks are chosen from the sample.
    """
    rows = session.sample
    weights = session.sample_weights
    if landmarks is None:
        candidates = drawn_candidates(
            session.engine, kernels, rows, weights, n_landmarks, session.random_state
        )
    else:
        basis = scaled_landmarks(landmarks, rows, session.scaling)
        candidates = landmark_candidates(
            session.engine, kernels, rows, weights, basis, is_whole=False
        )
    return fit_two_clusters(session, candidates, config, refine)


# -- the widest margin for rows in memory: a candidate of the default estimator --------


def margin_on_sample(
    rows: Matrix,
    weights: Weights,
    n_clusters: int,
    kernel: str,
    seed: int,
    record: Record = ignore,
    gamma: float | str = "auto",
) -> Model:
    """Find the clusters with the widest margin among rows in memory, in one thread.

    Two clusters are found as in `SparseKernelMMC`, but only every second bandwidth is
    tried. More clusters are found as in `CrammerSingerMMC` with default parameters.

    Parameters
    ----------
    rows : ndarray or csr_array of shape (m, d)
        At most `HELD_ROWS` rows. If there are more than 2,000 rows, and more than 100
        rows per cluster, the search uses a sample, and its result is refined on all
        rows.
    weights : ndarray of shape (m,) or None
        Sample weights. If None, all weights are 1.
    n_clusters : int
        Number of clusters, at least two.
    kernel : {"rbf", "linear"}
        Name of the kernel.
    seed : int
        Seed of all random choices.
    record : callable, default=ignore
        Function that is called with one dict per sweep.
    gamma : float or "auto", default="auto"
        Gamma of the Gaussian kernel. If "auto", several values are compared.

    Returns
    -------
    Model
        A model without scaling. Its rule has one score per cluster. The scores are
        divided by rho, so that margins are in units of rho.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.hinge.landmarks import margin_on_sample
    >>> rows = np.r_[np.zeros((9, 1)), np.ones((9, 1))] + np.arange(18)[:, None] / 99
    >>> model = margin_on_sample(rows, None, 2, "linear", seed=0)
    >>> model.rule.coef.shape[1]
    2
    """
    random_state = np.random.RandomState(seed)
    with ThreadEngine(1) as engine:
        if n_clusters == 2:
            model, rho = _widest_of_two(
                engine, rows, weights, kernel, random_state, record, gamma
            )
        else:
            settings = replace(_settings(n_clusters, kernel), gamma=gamma)
            model, rho = widest_margin_of_rows(
                engine, rows, weights, settings, random_state, record
            )
    unit = rho if rho > 0 else 1.0
    scores = Scores(model.rule.coef / unit, np.asarray(model.rule.offset / unit))
    return replace(model, rule=scores)


def _widest_of_two(
    engine: Engine,
    rows: Matrix,
    weights: Weights,
    kernel: str,
    random_state: np.random.RandomState,
    record: Record,
    gamma: float | str,
) -> tuple[Model, float]:
    """Search for two clusters on a sample, and refine the best result on all ``rows``.

    Return the model, whose rule has one score per cluster, and rho.
    """
    sample, sample_weights = draw_rows(rows, weights, SAMPLE_ROWS, random_state)
    kernels = candidate_kernels(sample, sample_weights, kernel, gamma)
    kernels = kernels[::2]  # bandwidths that differ by factors of 2
    n_sample = sample.shape[0]
    seed = random_state.randint(2**31 - 1)
    config = search_config(n_sample, seed)
    candidates = drawn_candidates(
        engine, kernels, sample, sample_weights, None, random_state
    )
    best = search_sample(engine, candidates, config, record)[0]
    if n_sample < rows.shape[0]:
        features = best.model(None).features(open_samples(rows))
        features = cache_features(features, "memory")
        best = best.refined_in_memory(features, weights, record, "all rows")
    model = best.model(None)
    scores = _scores_of(model.rule)
    return replace(model, rule=scores), best.state.solution.quadratic.rho


def _scores_of(boundary: Hyperplane | Scores) -> Scores:
    """Convert a decision function f to scores -f/2 and f/2 of the two clusters."""
    half = boundary.coef / 2
    half_offset = boundary.offset / 2
    coef = np.column_stack([-half, half])
    return Scores(coef, np.array([half_offset, -half_offset]))


def _settings(n_clusters: int, kernel: str) -> SearchSettings:
    partition = PartitionConfig(n_clusters, n_init=N_INIT, cluster_sizes="equal")
    return SearchSettings(partition, kernel)


def margin_needs(rows: RowShape, n_clusters: int, kernel: str, n_rows: int) -> FitNeeds:
    """Estimate the memory and work of `margin_on_sample` for ``n_rows`` rows."""
    rows = replace(rows, n_samples=n_rows, is_reopenable=False)
    if n_clusters == 2:
        needs = needs_of_landmarks(rows, SAMPLE_ROWS, None)
    else:
        needs = needs_of_search(rows, _settings(n_clusters, kernel))
    # With at most `HELD_ROWS` rows, the compiled loop is used, so the routines for
    # sweeps over blocks are not needed.
    names = sorted(needs.routines.keys() - MARGIN_ROUTINES.keys())
    return replace(needs, routines={name: needs.routines[name] for name in names})

"""Cluster a sample by least squares, and label all rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitResult, FitSession, Record, whole_numbers
from mmcnb.errors import InputError
from mmcnb.features import nystroem
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.kernel import Kernel, kernel_matrix
from mmcnb.features.model import Model
from mmcnb.features.needs import landmark_needs
from mmcnb.least_squares import all_rows, partition
from mmcnb.least_squares.all_rows import LabelledRows, LabelSteps, LandmarkSample, Stage
from mmcnb.least_squares.objective import Partition
from mmcnb.least_squares.partition import PartitionConfig, Refine
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.matrix import Weights, check_clusters, check_places

LANDMARKS = 300  # default number of landmarks, chosen by `python -m benchmarks rls`


def landmark_sample(
    sample: np.ndarray | csr_array,
    weights: Weights,
    kernel: Kernel,
    n_landmarks: int,
    n_clusters: int,
    random_state: np.random.RandomState,
    basis: np.ndarray | None = None,
) -> LandmarkSample:
    """Map a sample to landmark features, using ``basis`` or newly chosen landmarks.

    Raises
    ------
    InputError
        If there are fewer distinct rows or landmarks than clusters.
    """
    if basis is not None:
        n_landmarks = len(basis)
    if n_landmarks < n_clusters:
        raise InputError(
            f"n_landmarks={n_landmarks} is smaller than n_clusters={n_clusters}; "
            "give more landmarks."
        )
    if basis is None:
        basis = nystroem.choose_landmarks(
            sample, n_landmarks, random_state, weights, may_be_sparse=True
        )
        check_places(basis.shape[0], n_clusters)
    values, normalization = nystroem.landmark_values(sample, kernel, basis)
    return LandmarkSample(
        kernel=kernel,
        basis=basis,
        values=values,
        normalization=normalization,
        features=nystroem.principal_features(values @ normalization, weights),
    )


@dataclass(frozen=True)
class SearchSettings:
    """Settings of the search for clusters in a sample.

    Parameters
    ----------
    partition : PartitionConfig
        Number of clusters, ridge, local search and sizes.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    gamma : float or str, default="auto"
        Gamma of the kernel function: a number or the name of a rule of thumb.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant term of the polynomial kernel.
    n_landmarks : int, default=300
        Maximum number of landmarks to choose from the sample.
    landmarks : ndarray of shape (p, d) or None, default=None
        Landmarks, in the same units as the rows. If None, landmarks are chosen from the
        sample.
    sample_size : int or None, default=None
        Number of rows in the search. If None, it depends on the number of clusters; see
        `rows_of_sample`.
    """

    partition: PartitionConfig
    kernel: str = "rbf"
    gamma: float | str = "auto"
    degree: int = 3
    coef0: float = 1.0
    n_landmarks: int = LANDMARKS
    landmarks: Sequence[Any] | np.ndarray | None = None
    sample_size: int | None = None

    def searched_rows(self, n_samples: int) -> int:
        """Return the number of rows that the search uses."""
        default = all_rows.rows_of_sample(self.partition.n_clusters)
        return min(self.sample_size or default, n_samples)


def search_needs(
    rows: RowShape, settings: SearchSettings, max_passes: int = 3
) -> FitNeeds:
    """Return the memory and work of a fit whose sample is used only in the search."""
    landmarks = settings.landmarks
    searched = settings.searched_rows(rows.n_samples)
    n_landmarks = min(searched, settings.n_landmarks)
    needs = landmark_needs(
        rows,
        n_landmarks if landmarks is None else len(landmarks),
        searched,
        candidates=2,
        stays_sparse=landmarks is None,
    )
    n_clusters = settings.partition.n_clusters
    return replace(
        needs,
        search_seconds=partition.partition_seconds(searched, n_clusters),
        routines=needs.routines | partition.PARTITION_ROUTINES,
        work_bytes=needs.work_bytes + all_rows.matrix_bytes(searched),
        sweeps=max_passes,
        likely_sweeps=max_passes - 1,  # the last pass also yields the labels
    )


def search(
    engine: Engine,
    rows: np.ndarray | csr_array,
    weights: Weights,
    settings: SearchSettings,
    random_state: np.random.RandomState,
    record: Record,
    refine: Callable[[LandmarkSample], Refine] | None = None,
) -> tuple[LandmarkSample, list[Partition]]:
    """Map a sample to landmark features, and partition its rows into clusters.

    Parameters
    ----------
    engine : Engine
        The starts run in the threads of this engine.
    rows : ndarray or csr_array of shape (m, d)
        Rows of the sample.
    weights : ndarray of shape (m,) or None
        Sample weights. If None, all weights are equal.
    settings : SearchSettings
        Settings of the search. Landmarks must be scaled like the sample.
    random_state : RandomState
        Random number generator.
    record : callable
        Called with the dicts that ``refine`` records.
    refine : callable or None, default=None
        Function that receives the sample in landmark features, and returns the argument
        ``refine`` of `partition_sample`.

    Returns
    -------
    sample : LandmarkSample
        The sample in landmark features.
    partitions : list of Partition
        Partitions of the sample, best first.

    Raises
    ------
    InputError
        If there are fewer distinct rows or landmarks than clusters.
    """
    config = settings.partition
    weights = all_rows.relative_weights(weights)
    gamma = default_gamma(settings.gamma, settings.kernel, rows, weights)
    kernel = Kernel(settings.kernel, gamma, settings.degree, settings.coef0)
    basis = None
    if settings.landmarks is not None:
        basis = np.asarray(settings.landmarks)

    def smoother() -> np.ndarray | None:
        if weights is not None:
            return None
        return config.smoother(kernel_matrix(rows, kernel))

    map_sample = partial(
        landmark_sample,
        rows,
        weights,
        kernel,
        min(rows.shape[0], settings.n_landmarks),
        config.n_clusters,
        random_state,
        basis,
    )
    parts: list[Callable[[], Any]] = [smoother, map_sample]
    R, sample = engine.each(lambda make: make(), parts)
    refine_labels = None
    if refine is not None:
        refine_labels = refine(sample)
    partitions = partition.partition_sample(
        engine, R, sample.features, config, random_state, refine_labels, record
    )
    return sample, partitions


def fit_least_squares(
    session: FitSession, settings: SearchSettings, max_passes: int = 3
) -> FitResult:
    """Cluster a sample, then label all rows and update the model in several passes.

    Parameters
    ----------
    session : FitSession
        The session of the fit. If its sample has more rows than the search uses, label
        steps run on the whole sample before the passes over all rows.
    settings : SearchSettings
        Settings of the search.
    max_passes : int, default=3
        Maximum number of passes over all rows.

    Returns
    -------
    FitResult
        The model, fitted attributes, report and warnings of the fit.
    """
    config = settings.partition
    n = session.samples.n_samples
    searched = session.of_size(settings.searched_rows(n))
    check_clusters(config.n_clusters, searched.sample, n)
    sample, partitions = search(
        session.engine,
        searched.sample,
        searched.sample_weights,
        _with_scaled_landmarks(settings, searched),
        session.random_state,
        session.record,
    )
    best = partitions[0]
    for candidate in partitions:
        session.record(
            {
                "stage": "sample",
                "start": candidate.start,
                "objective": candidate.objective,
            }
        )
    model = sample.model(session.scaling, config.alpha)
    rows = session.cached(model.features(session.samples))
    larger = None
    if searched is not session:
        larger = _larger_stage(session, model)
    steps = LabelSteps(session.engine, session.record, config, sample)
    labelled = steps.all_rows(
        best.labels,
        Stage("all rows", rows, session.weights),
        max_passes,
        session.kept_labels,
        larger,
    )
    return _result(sample, model, rows, labelled, config, best)


def _result(
    sample: LandmarkSample,
    model: Model,
    rows: Samples,
    labelled: LabelledRows,
    config: PartitionConfig,
    best: Partition,
) -> FitResult:
    """Combine the model, attributes, report and warnings of a fit in its result."""
    gamma = sample.kernel.gamma
    return FitResult(
        replace(model, rule=labelled.rule),
        rows,
        attributes={
            "objective": labelled.mean_objective,
            "gamma": gamma,
            "alpha": config.alpha,
            "converged": labelled.settled,
            "n_changed": labelled.n_changed,
        },
        report={
            "sizes": whole_numbers(labelled.sizes.tolist()),
            "one_against_all_objective": labelled.one_against_all_objective,
            "sample_objective": float(best.objective),
            "gamma": gamma,
        },
        warnings=_warnings(labelled.sizes, config),
        kept_labels=labelled.kept,
    )


def _with_scaled_landmarks(
    settings: SearchSettings, searched: FitSession
) -> SearchSettings:
    """Return settings with the user's landmarks scaled like the sample."""
    if settings.landmarks is None:
        return settings
    landmarks = nystroem.scaled_landmarks(
        settings.landmarks, searched.sample, searched.scaling
    )
    return replace(settings, landmarks=landmarks)


def _larger_stage(session: FitSession, model: Model) -> Stage:
    """Return a stage with all rows of the sample, which are already scaled."""
    unscaled = replace(model, scaling=None)
    features = unscaled.features(open_samples(session.sample))
    return Stage("larger sample", features, session.sample_weights)


def _warnings(sizes: np.ndarray, config: PartitionConfig) -> list[str]:
    """Return a list with one warning if clusters are empty, otherwise an empty list."""
    empty = int((sizes == 0).sum())
    if empty == 0:
        return []
    remedy = "give fewer clusters, or other cluster_sizes"
    if config.sizes_are_free:
        remedy = "lower min_share"
    return [f"{empty} of the {config.n_clusters} clusters contain no rows; {remedy}."]

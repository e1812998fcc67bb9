"""Clusters of a sample by least squares, and the labels of all rows that follow from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession, whole_numbers
from mmcnb.errors import InputError
from mmcnb.features import nystroem
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.kernel import Kernel, kernel_matrix
from mmcnb.features.needs import landmark_needs
from mmcnb.least_squares import all_rows, partition
from mmcnb.least_squares.all_rows import LandmarkSample
from mmcnb.least_squares.objective import Partition
from mmcnb.least_squares.partition import PartitionConfig, Refine
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import Weights, check_clusters, check_places

LANDMARKS = 300  # basis vectors by default, measured by `python -m benchmarks rls`


def landmark_sample(
    sample: Any,
    weights: Weights,
    kernel: Kernel,
    n_landmarks: int,
    n_clusters: int,
    random_state: np.random.RandomState,
    given: np.ndarray | None = None,
) -> LandmarkSample:
    """Choose landmarks of a sample, or take those given, and map it.

    Raises
    ------
    InputError
        If fewer of its rows differ, or fewer landmarks are wanted, than there are
        clusters.
    """
    n_landmarks = n_landmarks if given is None else len(given)
    if n_landmarks < n_clusters:
        fault = f"n_landmarks={n_landmarks} is smaller than n_clusters={n_clusters}"
        raise InputError(f"{fault}; give more landmarks.")
    if given is None:
        given = nystroem.choose_landmarks(
            sample, n_landmarks, random_state, weights, may_be_sparse=True
        )
        check_places(given.shape[0], n_clusters)
    values, normalization = nystroem.landmark_values(sample, kernel, given)
    features = nystroem.principal_features(values @ normalization, weights)
    return LandmarkSample(kernel, given, values, normalization, features)


@dataclass(frozen=True)
class SearchSettings:
    """How a sample is clustered.

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
        Constant of the polynomial kernel.
    n_landmarks : int, default=300
        Basis vectors.
    landmarks : ndarray of shape (p, d) or None, default=None
        Basis vectors in the units of the rows, in place of ``n_landmarks`` from the
        sample.
    sample_size : int or None, default=None
        Rows that are searched; None is the default for the number of clusters.
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
        """Rows of the sample that is searched."""
        return min(
            self.sample_size or all_rows.rows_of_sample(self.partition.n_clusters),
            n_samples,
        )


def search_needs(
    rows: RowShape, settings: SearchSettings, max_passes: int = 3
) -> FitNeeds:
    """Bytes and work of a fit that draws the rows that it searches, and no more."""
    k = settings.partition.n_clusters
    own = settings.landmarks
    searched = settings.searched_rows(rows.n_samples)
    n_landmarks = min(searched, settings.n_landmarks) if own is None else len(own)
    needs = landmark_needs(
        rows, n_landmarks, searched, candidates=2, stays_sparse=own is None
    )
    routines = {**needs.routines, **partition.PARTITION_ROUTINES}
    needs = replace(
        needs,
        search_seconds=partition.partition_seconds(searched, k),
        routines=routines,
    )
    work = needs.work_bytes + all_rows.matrix_bytes(searched)
    likely = max_passes - 1  # the last pass labels, too
    return replace(needs, work_bytes=work, sweeps=max_passes, likely_sweeps=likely)


def search(
    session: FitSession,
    settings: SearchSettings,
    refine: Callable[[LandmarkSample], Refine] | None = None,
) -> tuple[LandmarkSample, list[Partition]]:
    """Cluster the sample of a fit, in landmark features.

    Parameters
    ----------
    session : FitSession
        The fit.
    settings : SearchSettings
        How the sample is clustered.
    refine : callable or None, default=None
        Takes the sample in landmark features, and gives the ``refine`` of
        `partition_sample`.

    Returns
    -------
    sample : LandmarkSample
        The sample in its features.
    found : list of Partition
        Its partitions, the best first.

    Raises
    ------
    InputError
        If there are fewer rows, distinct rows or landmarks than clusters.
    """
    config = settings.partition
    rows = session.sample
    random_state = session.random_state
    weights = all_rows.relative_weights(session.sample_weights)
    check_clusters(config.n_clusters, rows, session.samples.n_samples)
    gamma = default_gamma(settings.gamma, settings.kernel, rows, weights)
    kernel = Kernel(settings.kernel, gamma, settings.degree, settings.coef0)
    own = settings.landmarks
    if own is not None:
        own = nystroem.scaled_landmarks(own, rows, session.scaling)
    size = min(rows.shape[0], settings.n_landmarks)

    def smoother() -> np.ndarray | None:
        return (
            None
            if weights is not None
            else config.smoother(kernel_matrix(rows, kernel), overwrite=True)
        )

    landmarks = partial(
        landmark_sample,
        rows,
        weights,
        kernel,
        size,
        config.n_clusters,
        random_state,
        own,
    )
    R, sample = session.engine.each(lambda make: make(), [smoother, landmarks])
    given = session.engine, R, sample.features, config, random_state
    tried = None if refine is None else refine(sample)
    return sample, partition.partition_sample(*given, tried, session.record)


def fit_least_squares(
    session: FitSession, settings: SearchSettings, max_passes: int = 3
) -> FitResult:
    """Cluster a sample, label all rows by its clusters, and renew the model pass by pass.

    Parameters
    ----------
    session : FitSession
        The fit. If its sample has more rows than are clustered, label steps on it come
        first.
    settings : SearchSettings
        How the sample is clustered.
    max_passes : int, default=3
        Passes over all rows.

    Returns
    -------
    FitResult
        The fit by least squares.
    """
    sample, found = search(
        session.of_size(settings.searched_rows(session.samples.n_samples)), settings
    )
    config = settings.partition
    best = found[0]
    for one in found:
        session.record(
            {"stage": "sample", "start": one.start, "objective": one.objective}
        )
    model = sample.model(session, config.alpha)
    rows = session.cached(model.features(session.samples))
    larger = None
    if session.sample.shape[0] > sample.values.shape[0]:
        larger = replace(model, scaling=None).features(open_samples(session.sample))
    given = session, config, sample, rows, best.labels, max_passes
    labelled = all_rows.label_all_rows(*given, session.kept_labels, larger)
    gamma = sample.kernel.gamma
    sizes = whole_numbers(labelled.sizes.tolist())
    attributes = {
        "objective": labelled.mean_objective,
        "gamma": gamma,
        "alpha": config.alpha,
    }
    attributes |= {"converged": labelled.settled}
    report = {
        "sizes": sizes,
        "one_against_all_objective": labelled.one_against_all_objective,
    }
    report |= {"sample_objective": float(best.objective), "gamma": gamma}
    empty = int((labelled.sizes == 0).sum())
    remedy = (
        "lower min_share"
        if config.sizes_are_free
        else "give fewer clusters, or other cluster_sizes"
    )
    warnings = (
        [f"{empty} of the {config.n_clusters} clusters contain no row; {remedy}."]
        if empty
        else []
    )
    model = replace(model, rule=labelled.rule)
    kept_labels = labelled.kept
    return FitResult(
        model, rows, attributes, report, warnings=warnings, kept_labels=kept_labels
    )

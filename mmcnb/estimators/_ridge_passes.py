"""k clusters from a sample to all rows: landmark features, and passes of least squares."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb._errors import InputError, MemoryLimitError
from mmcnb.engine import Kernel, format_bytes, resolve_memory_limit, square_rows
from mmcnb.estimators._model import Model
from mmcnb.estimators._streamed import Work
from mmcnb.samples import Samples
from mmcnb.selection import choose_landmarks
from mmcnb.selection.divide import Division, held_scores, landmark_values
from mmcnb.solvers import (
    LabelSumsPass,
    PrincipalFeatures,
    Scores,
    mean_objective_of,
    principal_features,
    ridge_map,
)

SAMPLE_ROWS, ROWS_A_CLUSTER = 2000, 100
MATRICES = 3  # of the size of the sample squared: kernel, smoother, and what the solver copies
SETTLED_SHARE = 0.01  # passes over all rows end where fewer labels change


def rows_of_sample(n_clusters: int) -> int:
    """Rows of the sample that so many clusters are found on."""
    return max(SAMPLE_ROWS, ROWS_A_CLUSTER * n_clusters)


def matrix_bytes(rows: int) -> float:
    """What the division of a sample holds beside its columns."""
    return MATRICES * 8.0 * rows**2


def check_matrices(rows: int, n_clusters: int, memory_limit: str | int | None) -> None:
    """Refuse a sample whose kernel matrix does not fit, where a smaller one would."""
    held, limit = matrix_bytes(rows), resolve_memory_limit(memory_limit)
    fits = square_rows(limit, MATRICES)
    if held > limit and fits >= n_clusters:
        raise MemoryLimitError(
            f"the kernel matrix of a sample of {rows:,} rows takes {format_bytes(8 * rows**2)}, and "
            f"{MATRICES} such are held, of {format_bytes(limit)} allowed; give sample_size={fits} or "
            "raise memory_limit."
        )


def check_clusters(n_clusters: int, sample: Any, n_samples: int) -> None:
    """Refuse more clusters than rows."""
    if n_clusters > n_samples:
        raise InputError(
            f"n_clusters={n_clusters} is more than the {n_samples} rows there are; give fewer clusters."
        )
    if n_clusters > sample.shape[0]:
        raise InputError(
            f"sample_size={sample.shape[0]} is smaller than n_clusters={n_clusters}; give more rows."
        )


def check_places(n_places: int, n_clusters: int) -> None:
    """Refuse more clusters than rows that differ."""
    if n_places < n_clusters:
        raise InputError(
            f"the sample has {n_places} rows that differ, fewer than n_clusters={n_clusters}; "
            "give fewer clusters, or a larger sample_size."
        )


def relative_weights(weights: np.ndarray | None) -> np.ndarray | None:
    """Weights of mean 1, so that they count as rows do; None where all are equal."""
    if weights is None or weights.min() == weights.max():
        return None
    return weights * (weights.shape[0] / weights.sum())


@dataclass(frozen=True)
class LandmarkSample:
    """A sample in landmark features.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    basis : ndarray of shape (p, d)
        The landmarks.
    values : ndarray of shape (m, p), float64
        Kernel values of the rows against the landmarks.
    metric : ndarray of shape (p, r)
        M with MM' the inverse of the kernel matrix of the landmarks.
    features : PrincipalFeatures
        The rows of ``values @ metric`` along their principal axes, with their weights.
    """

    kernel: Kernel
    basis: np.ndarray
    values: np.ndarray
    metric: np.ndarray
    features: PrincipalFeatures

    def model(self, work: Work, alpha: float) -> Model:
        """The model of these landmarks, still without a rule."""
        mapped = ridge_map(self.features, self.metric, alpha)
        empty = Scores(np.empty((0, 0)), np.empty(0))
        return Model(empty, self.kernel, self.basis, work.found.mean, work.found.deviation, ridge=mapped)


def landmark_sample(
    sample: Any,
    weights: np.ndarray | None,
    kernel: Kernel,
    n_landmarks: int,
    n_clusters: int,
    random_state: np.random.RandomState,
) -> LandmarkSample:
    """Choose landmarks of a sample and map it.

    Raises
    ------
    InputError
        If fewer of its rows differ, or fewer landmarks are wanted, than there are clusters.
    """
    if n_landmarks < n_clusters:
        raise InputError(
            f"n_landmarks={n_landmarks} is smaller than n_clusters={n_clusters}; give more landmarks."
        )
    basis = choose_landmarks(sample, n_landmarks, random_state, weights)
    check_places(basis.shape[0], n_clusters)
    values, metric = landmark_values(sample, kernel, basis)
    return LandmarkSample(kernel, basis, values, metric, principal_features(values @ metric, weights))


class RidgePasses:
    """Passes over all rows, from the labels of the sample."""

    def __init__(self, work: Work, wanted: Division, sample: LandmarkSample, model: Model) -> None:
        assert model.ridge is not None
        self.work, self.wanted, self.mapped = work, wanted, model.ridge
        self.features, self.values = sample.features, sample.values
        self.multipliers = np.zeros(wanted.n_clusters)
        self.settled = False

    def run(self, rows: Samples, labels: np.ndarray, passes: int) -> None:
        """Label and renew; the last pass renews nothing, so that the rule and its sums belong together.

        Clusters are numbered by the first row that falls in each from the first pass on: where scores are
        equal but for rounding, a later change of their order could change labels.
        """
        k, weights = self.wanted.n_clusters, self.features.weights
        row_sums, sizes = kernels.cluster_row_sums(self.values, labels, k, weights)
        self.bounds = self.wanted.bounds_by_size(sizes)
        rule = self._rule(self.mapped.means(row_sums, sizes), sizes)
        before = None
        for number in range(passes):
            sweep = LabelSumsPass(rule, before, self.work.weights)
            row_sums, sizes, changed, first = self.work.engine.run(sweep, rows, "all rows")
            order = np.argsort(first, kind="stable")
            rule, row_sums, sizes = rule.ordered(order), row_sums[order], sizes[order]
            self.multipliers = self.multipliers[order]
            self.bounds = self.bounds[0][order], self.bounds[1][order]
            means, total = self.mapped.means(row_sums, sizes), float(sizes.sum())
            self.settled = before is not None and changed <= SETTLED_SHARE * total
            self.rule, self.means, self.sizes = rule, means, sizes
            facts = {"objective": mean_objective_of(means, sizes), "changed": changed}
            self.work.record({"stage": "all rows", "round": number} | facts)
            if self.settled:
                return
            before, rule = rule, self._rule(means, sizes)

    def _rule(self, means: np.ndarray, sizes: np.ndarray) -> Scores:
        """The scores, less the multipliers that keep the sizes of the sample within their bounds."""
        sample = self.values, self.features.weights, self.multipliers
        rule, self.multipliers = held_scores(self.mapped, means, sizes, self.wanted, self.bounds, *sample)
        return rule

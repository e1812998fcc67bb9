"""Least squares clustering of all rows: label steps that keep k (p + 1) numbers a pass, nothing of size n.

Landmark features are brought to coordinates z(x) = κ(x) M - c in which the ridge is the identity, so that
R = ZZ'/n and J = Σ n_h |C_h|² / n for the means C_h of the clusters. A step labels each row by its largest
score and sums the features of each cluster; the means, and with them the next scores, follow from the sums.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb import kernels
from mmcnb._config import format_bytes, resolve_memory_limit
from mmcnb.engine.passes import first_rows
from mmcnb.engine.plan import square_rows
from mmcnb.engine.session import FitSession
from mmcnb.errors import InputError, MemoryLimitError
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.nystroem import RidgeMap, check_places, choose_landmarks, landmark_values
from mmcnb.features.principal import PrincipalFeatures, principal_features, ridge_map
from mmcnb.features.rules import Scores
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.samples import Samples


def mean_objective_of(means: np.ndarray, sizes: np.ndarray) -> float:
    """J of clusters by their means and sizes."""
    return float(sizes @ (means**2).sum(axis=1) / sizes.sum())


def one_against_all_objective_of(means: np.ndarray, sizes: np.ndarray) -> float:
    """Q of clusters by their means and sizes: Pahikkala et al., eq. (10), with a centred kernel."""
    k, n = sizes.shape[0], sizes.sum()
    sums = means * sizes[:, None]
    return float(k * n - (4 * (sums**2).sum() - (4 - k) * (sums.sum(axis=0) ** 2).sum()) / n)


@dataclass(frozen=True)
class LabelSumsPass:
    """Label the rows and sum their features by cluster.

    Parameters
    ----------
    rule : Scores
        Labels the rows.
    before : Scores or None
        The rule of the pass before.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """

    rule: Scores
    before: Scores | None
    weights: np.ndarray | None

    def start(self) -> list[Any]:
        """Nothing yet: sums of features, sizes, weight of changed labels, first row of each cluster."""
        return [0.0, 0.0, 0.0, first_rows(np.empty(0, np.int64), self.rule.offset.shape[0])]

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Sums of one block."""
        labels = self.rule.label(rows)
        k = self.rule.offset.shape[0]
        weights = np.ones(stop - start) if self.weights is None else self.weights[start:stop]
        sums, sizes = kernels.cluster_row_sums(rows, labels, k, weights)
        changed = weights if self.before is None else weights[self.before.label(rows) != labels]
        return [sums, sizes, float(changed.sum()), first_rows(labels, k, start)]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Sums of both."""
        added = [a + b for a, b in zip(total[:3], other[:3], strict=True)]
        return [*added, np.minimum(total[3], other[3])]


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
    normalization: np.ndarray
    features: PrincipalFeatures

    def model(self, session: FitSession, alpha: float) -> Model:
        """The model of these landmarks, still without a rule."""
        mapped = ridge_map(self.features, self.normalization, alpha)
        empty = Scores(np.empty((0, 0)), np.empty(0))
        return Model(empty, self.kernel, self.basis, session.mean, session.deviation, ridge=mapped)


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
    values, normalization = landmark_values(sample, kernel, basis)
    return LandmarkSample(
        kernel, basis, values, normalization, principal_features(values @ normalization, weights)
    )


class LeastSquaresPasses:
    """Passes over all rows, from the labels of the sample."""

    def __init__(
        self, session: FitSession, config: PartitionConfig, sample: LandmarkSample, model: Model
    ) -> None:
        assert model.ridge is not None
        self.session, self.config, self.mapped = session, config, model.ridge
        self.features, self.values = sample.features, sample.values
        self.multipliers = np.zeros(config.n_clusters)
        self.settled = False

    def run(self, rows: Samples, labels: np.ndarray, passes: int) -> None:
        """Label and renew; the last pass renews nothing, so that the rule and its sums belong together.

        Clusters are numbered by the first row that falls in each from the first pass on: where scores are
        equal but for rounding, a later change of their order could change labels.
        """
        k, weights = self.config.n_clusters, self.features.weights
        row_sums, sizes = kernels.cluster_row_sums(self.values, labels, k, weights)
        self.bounds = self.config.bounds_by_size(sizes)
        rule = self._rule(self.mapped.means(row_sums, sizes), sizes)
        before = None
        for number in range(passes):
            sweep = LabelSumsPass(rule, before, self.session.weights)
            row_sums, sizes, changed, first = self.session.engine.run(sweep, rows, "all rows")
            order = np.argsort(first, kind="stable")
            rule, row_sums, sizes = rule.ordered(order), row_sums[order], sizes[order]
            self.multipliers = self.multipliers[order]
            self.bounds = self.bounds[0][order], self.bounds[1][order]
            means, total = self.mapped.means(row_sums, sizes), float(sizes.sum())
            self.settled = before is not None and changed <= SETTLED_SHARE * total
            self.rule, self.means, self.sizes = rule, means, sizes
            facts = {"objective": mean_objective_of(means, sizes), "changed": changed}
            self.session.record({"stage": "all rows", "round": number} | facts)
            if self.settled:
                return
            before, rule = rule, self._rule(means, sizes)

    def _rule(self, means: np.ndarray, sizes: np.ndarray) -> Scores:
        """The scores, less the multipliers that keep the sizes of the sample within their bounds."""
        sample = self.values, self.features.weights, self.multipliers
        rule, self.multipliers = size_constrained_scores(
            self.mapped, means, sizes, self.config, self.bounds, *sample
        )
        return rule


def size_constrained_scores(
    mapped: RidgeMap,
    means: np.ndarray,
    sizes: np.ndarray,
    config: PartitionConfig,
    bounds: tuple[np.ndarray, np.ndarray],
    values: np.ndarray,
    weights: np.ndarray,
    start: np.ndarray | None = None,
) -> tuple[Scores, np.ndarray]:
    """Scores of clusters, less the multipliers that keep the sizes of a sample within their bounds.

    Parameters
    ----------
    mapped : RidgeMap
        Coordinates in which the ridge is the identity.
    means, sizes : ndarray of shape (k, r) and (k,)
        Means of the clusters in these coordinates, and their rows.
    wanted : Division
        Whether sizes are free.
    bounds : pair of ndarray of shape (k,)
        Least and most rows of the sample in each cluster.
    values : ndarray of shape (m, p)
        Landmark features of the sample.
    weights : ndarray of shape (m,)
        Its weights.
    start : ndarray of shape (k,) or None, default=None
        Multipliers to start from.

    Returns
    -------
    Scores
        Labels any row.
    multipliers : ndarray of shape (k,)
        What was taken off.
    """
    # Sums in place of means need sizes that are equal: of others the larger would win the rows between.
    by_sum = not config.sizes_are_free and np.ptp(bounds[0]) == 0
    rule = mapped.scores(means, sizes / sizes.sum() if by_sum else None)
    start = np.zeros(config.n_clusters) if start is None else start
    multipliers = kernels.size_multipliers(rule.decide(values), *bounds, weights, start)
    return rule.shifted(multipliers), multipliers

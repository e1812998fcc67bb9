"""The rounds of a support cluster machine: cluster, train an SVM, drop far rows."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mmcnb.engine.passes import draw_sample
from mmcnb.engine.run import Engine
from mmcnb.engine.session import Record
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from mmcnb.features.kernel import Kernel
from mmcnb.features.labelling import DecisionPass
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, Scores
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.derived import Scaling
from mmcnb.samples.matrix import stack, to_dense, with_short_indices
from mmcnb.support_clusters.expansions import expanded
from mmcnb.support_clusters.pseudo_centres import pseudo_centres

# active rows are cached in memory up to the larger of these
CACHED_ROWS = 65_536
CACHED_VALUES = 2**25
CACHE_MIB = 200  # of kernel columns in scikit-learn's solver
STALLED = 0.2  # share of the negatives; a round that drops less is the last
# Clusters, measured by `python -m benchmarks scm`, section "effects".
LANDMARKS = 50
# of the sample on which clusters start, and of the rows that form those of drawn
# members
ROWS_A_CLUSTER = 2
PASSES = 1  # in which the means of the clusters move


class Part(NamedTuple):
    """Rows to train on: numbers, the rows, their side (-1 or +1), their weights."""

    numbers: np.ndarray
    rows: Any
    y: np.ndarray
    weights: np.ndarray


class SVM(NamedTuple):
    """A trained SVM: numbers of its support vectors, the vectors, coefficients."""

    numbers: np.ndarray
    vectors: np.ndarray
    coef: np.ndarray
    offset: float

    def turned(self, sign: int) -> "SVM":
        """Return the SVM, or with -1 that of the other side."""
        return self._replace(coef=sign * self.coef, offset=sign * self.offset)


def train(kernel: Kernel, C: float, parts: list[Part]) -> SVM:
    """Train the SVM of eq. (6), in which 0 <= alpha_c <= weight_c C."""
    from sklearn.svm import SVC

    numbers, rows, y, weights = (
        stack(list(field)) for field in zip(*parts, strict=True)
    )
    svc = SVC(
        C=C,
        kernel=kernel.name,
        gamma=kernel.gamma,
        degree=kernel.degree,
        coef0=kernel.coef0,
        cache_size=CACHE_MIB,
    )
    svc.fit(with_short_indices(rows), y, sample_weight=weights)
    return SVM(
        numbers=numbers[svc.support_],
        vectors=to_dense(svc.support_vectors_, np.float64),
        coef=to_dense(svc.dual_coef_, np.float64).ravel(),
        offset=float(svc.intercept_[0]),
    )


@dataclass(frozen=True)
class Sides:
    """A byte a row: 1 where abs(f) exceeds the threshold, eq. (11), plus 2 if f < 0."""

    rule: Hyperplane | Scores
    threshold: float

    def decide(self, rows: Any) -> np.ndarray:
        """Return the bytes of a block."""
        f = self.rule.decide(rows)
        is_far = (np.abs(f) > self.threshold).astype(np.int8)
        is_negative = (f < 0).astype(np.int8)
        return is_far + 2 * is_negative


@dataclass
class ActiveSet:
    """The rows that have not been dropped.

    Parameters
    ----------
    samples : Samples
        Rows that include all active ones; only the active rows once these are few.
    numbers : ndarray of shape (n,), int64
        Their numbers among all rows of the fit.
    y : ndarray of shape (n,), int8
        +1, -1, or 0 for rows that were dropped.
    weights : ndarray of shape (n,)
        Weights of the rows.
    """

    samples: Samples
    numbers: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    def part(self, engine: Engine, rows: np.ndarray, weights: np.ndarray) -> Part:
        """Return a part of the training set: some active rows, given in any order."""
        order = np.argsort(rows)
        rising = rows[order]
        gathered, _ = draw_sample(engine, self.samples, rising)
        return Part(
            numbers=self.numbers[rising],
            rows=gathered,
            y=self.y[rising],
            weights=weights[order],
        )

    def cached(self, engine: Engine) -> "ActiveSet":
        """Return the active rows alone, cached in memory, where they are few."""
        rows = np.flatnonzero(self.y)
        if rows.size > max(CACHED_ROWS, CACHED_VALUES // self.samples.n_features):
            return self
        sample, _ = draw_sample(engine, self.samples, rows)
        return ActiveSet(
            samples=open_samples(sample),
            numbers=self.numbers[rows],
            y=self.y[rows],
            weights=self.weights[rows],
        )


@dataclass(frozen=True)
class Shrinking:
    """The rounds of one SVM.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    kernel : Kernel
        The kernel.
    clusterer : callable
        Gives an unfitted `KernelKMeans` with a number of clusters.
    random_state : RandomState
        Draws representatives.
    record : callable
        Takes one dict per round.
    both : bool
        Whether the minority rows are clustered, too.
    n_clusters, level, C, shrink_threshold, stop, max_rounds, representative
        As of `SupportClusterMachine`.
    """

    engine: Engine
    kernel: Kernel
    clusterer: Callable[[int], Any]
    random_state: Any
    record: Record
    n_clusters: int
    level: float
    both: bool
    C: float
    shrink_threshold: float
    stop: str
    max_rounds: int
    representative: str

    def run(
        self, samples: Samples, y: np.ndarray, weights: np.ndarray
    ) -> tuple[SVM, str]:
        """Return the last SVM, and the reason why it is the last."""
        dropped = list[Part]()
        svm = None
        active = ActiveSet(samples, np.arange(y.shape[0]), y, weights)
        for number in range(self.max_rounds):
            started = time.perf_counter()
            svm_before = svm
            active = active.cached(self.engine)
            positive = np.flatnonzero(active.y > 0)
            negative = np.flatnonzero(active.y < 0)
            balanced = (
                self.stop == "balance" and negative.size <= self.level * positive.size
            )
            whole = balanced or negative.size <= self.n_clusters
            labels, majority = self._represent(
                active, -1, own=whole and not (balanced and self.both)
            )
            _, minority = self._represent(active, 1, own=not self.both)
            svm = train(self.kernel, self.C, [minority, majority, *dropped])
            sides = self._sides(active.samples, svm)
            missed = float((sides[positive] >= 2).mean())
            self.record(
                {
                    "round": number,
                    "representatives": majority.y.size,
                    "settled": sum(part.y.size for part in dropped),
                    "negatives": negative.size,
                    "positives": positive.size,
                    "support_vectors": svm.coef.size,
                    "miss_rate": missed,
                    "seconds": time.perf_counter() - started,
                }
            )
            if self.stop == "miss-rate" and missed > self.level:
                return svm_before or svm, "miss-rate"
            if whole:
                return svm, "balance" if balanced else "all negatives"
            outside = sides[negative] % 2 == 1
            if outside.all() or outside.sum() < STALLED * negative.size:
                return svm, "nothing to drop"
            dropped.append(self._drop(active, majority, labels, outside))
            active.y = active.y.copy()
            active.y[negative[outside]] = 0
        assert svm is not None
        return svm, "max_rounds"

    def _sides(self, samples: Samples, svm: SVM) -> np.ndarray:
        expansions, rule = expanded(model_of([svm], self.kernel, None), samples)
        sides_pass = DecisionPass(Sides(rule, self.shrink_threshold))
        blocks = self.engine.run(sides_pass, expansions, "rows near the boundary")
        return np.concatenate(blocks)

    def _represent(
        self, active: ActiveSet, side: int, own: bool
    ) -> tuple[np.ndarray, Part]:
        """Represent the rows of a side by a part, or each by itself if ``own``.

        The representative of each row is its position in the part.
        """
        rows = np.flatnonzero(active.y == side)
        weights = active.weights[rows]
        if own or rows.size <= self.n_clusters:
            return np.arange(rows.size), active.part(self.engine, rows, weights)
        clusters, chosen = self._clusters(active, rows)
        # Rows of a part are in rising order.
        ranks = np.argsort(np.argsort(chosen))
        labels = ranks[clusters]
        sizes = np.bincount(labels, weights, chosen.size)
        return labels, active.part(self.engine, np.sort(chosen), sizes)

    def _clusters(
        self, active: ActiveSet, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cluster of each of some rows, and the row that represents each."""
        weights = np.zeros(active.y.size)
        weights[rows] = active.weights[rows]
        if self.representative == "pseudo-centre":
            clusterer = self._fitted(active.samples, weights)
            if clusterer is None:
                return np.zeros(rows.size, np.int64), rows[:1]
            centres = pseudo_centres(clusterer, active.samples, weights)
            has_rows = centres >= 0
            numbers = np.cumsum(has_rows) - 1
            return numbers[clusterer.labels_[rows]], centres[has_rows]
        # Approximate clusters suffice for drawn members: means of a sample, and one
        # pass that labels.
        n_drawn = min(rows.size, ROWS_A_CLUSTER * self.n_clusters)
        drawn = rows[np.sort(self.random_state.permutation(rows.size)[:n_drawn])]
        sample, _ = draw_sample(self.engine, active.samples, drawn)
        clusterer = self._fitted(open_samples(sample), weights[drawn])
        if clusterer is None:
            labels = np.zeros(rows.size, np.int64)
        else:
            predicted = clusterer.predict(active.samples)[rows]
            _, labels = np.unique(predicted, return_inverse=True)
        return labels, rows[drawn_members(labels, weights[rows], self.random_state)]

    def _fitted(self, samples: Samples, weights: np.ndarray) -> Any:
        """Fit a clusterer with at most ``n_clusters``; None if all rows are equal."""
        n_clusters = self.n_clusters
        while n_clusters > 1:
            try:
                with warnings.catch_warnings():
                    # Clusters without rows do no harm, and few passes are enough here.
                    warnings.simplefilter("ignore", ClusterWarning)
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    clusterer = self.clusterer(n_clusters)
                    return clusterer.fit(samples, sample_weight=weights)
            except MemoryLimitError:
                raise
            except InputError:  # fewer distinct rows than clusters
                n_clusters //= 2
        return None

    def _drop(
        self, active: ActiveSet, majority: Part, labels: np.ndarray, outside: np.ndarray
    ) -> Part:
        """Return representatives of the dropped rows, with their weight alone."""
        rows = np.flatnonzero(active.y < 0)[outside]
        weights = active.weights[rows]
        represented, clusters = np.unique(labels[outside], return_inverse=True)
        sizes = np.bincount(clusters, weights)
        if self.representative == "pseudo-centre":
            return Part(
                numbers=majority.numbers[represented],
                rows=majority.rows[represented],
                y=majority.y[represented],
                weights=sizes,
            )
        members = drawn_members(clusters, weights, self.random_state)
        return active.part(self.engine, rows[members], sizes)


def drawn_members(
    labels: np.ndarray, weights: np.ndarray, random_state: Any
) -> np.ndarray:
    """Draw a member of each cluster with a probability proportional to its weight.

    So a sum over the representatives, each with the weight of its cluster, has the sum
    over all rows as its expected value.

    Parameters
    ----------
    labels : ndarray of shape (n,), int64
        Cluster of each row, 0 to k - 1; no cluster is empty.
    weights : ndarray of shape (n,)
        Positive weights.
    random_state : RandomState
        Draws one number a row.

    Returns
    -------
    ndarray of shape (k,), int64
        Row numbers.
    """
    # Row i arrives first in its cluster with a probability proportional to its weight.
    arrivals = random_state.exponential(size=labels.shape[0]) / weights
    order = np.lexsort((arrivals, labels))
    return order[np.flatnonzero(np.diff(labels[order], prepend=-1))]


def model_of(svms: list[SVM], kernel: Kernel, scaling: Scaling | None) -> Model:
    """Return the model of one SVM, or scores over the support vectors of several."""
    if len(svms) == 1:
        (svm,) = svms
        rule: Hyperplane | Scores = Hyperplane(svm.coef, svm.offset)
        return Model(rule, kernel, svm.vectors, scaling, "float64")
    every_number = np.concatenate([svm.numbers for svm in svms])
    every_vector = np.concatenate([svm.vectors for svm in svms])
    numbers, first = np.unique(every_number, return_index=True)
    basis = np.ascontiguousarray(every_vector[first])
    coef = np.zeros((numbers.size, len(svms)))
    for c, svm in enumerate(svms):
        places = np.searchsorted(numbers, svm.numbers)
        np.add.at(coef[:, c], places, svm.coef)  # a row may represent twice
    rule = Scores(coef, -np.array([svm.offset for svm in svms]))
    return Model(rule, kernel, basis, scaling, "float64")

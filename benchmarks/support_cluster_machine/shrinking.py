"""The rounds of a support cluster machine: cluster, train an SVM, drop rows far from its boundary."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.support_cluster_machine.expansions import expanded
from benchmarks.support_cluster_machine.pseudo_centres import pseudo_centres
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
    """Rows to train on: their numbers, the rows, their side (-1 or +1) and their weights."""

    numbers: np.ndarray
    rows: Any
    y: np.ndarray
    weights: np.ndarray


class SVM(NamedTuple):
    """A trained SVM: row numbers of the support vectors, the vectors, their coefficients, the offset."""

    numbers: np.ndarray
    vectors: np.ndarray
    coef: np.ndarray
    offset: float


def train(kernel: Kernel, C: float, parts: list[Part]) -> SVM:
    """The SVM of eq. (6), in which 0 <= alpha_c <= weight_c C."""
    from sklearn.svm import SVC

    whole = Part(*(stack(list(field)) for field in zip(*parts, strict=True)))
    shared = {
        "kernel": kernel.name,
        "gamma": kernel.gamma,
        "degree": kernel.degree,
        "coef0": kernel.coef0,
    }
    svc = SVC(C=C, cache_size=CACHE_MIB, **shared)
    svc.fit(with_short_indices(whole.rows), whole.y, sample_weight=whole.weights)
    coef = to_dense(svc.dual_coef_, np.float64).ravel()
    vectors = to_dense(svc.support_vectors_, np.float64)
    return SVM(whole.numbers[svc.support_], vectors, coef, float(svc.intercept_[0]))


@dataclass(frozen=True)
class Sides:
    """One byte per row: 1 where abs(f) is above the threshold, eq. (11), plus 2 where f is below 0."""

    rule: Hyperplane | Scores
    threshold: float

    def decide(self, rows: Any) -> np.ndarray:
        """The bytes of a block."""
        f = self.rule.decide(rows)
        return (np.abs(f) > self.threshold).astype(np.int8) + 2 * (f < 0).astype(
            np.int8
        )


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
        """A part of the training set: some active rows, given in any order."""
        order = np.argsort(rows)
        gathered, _ = draw_sample(engine, self.samples, rows[order])
        return Part(
            self.numbers[rows[order]], gathered, self.y[rows[order]], weights[order]
        )

    def cached(self, engine: Engine) -> "ActiveSet":
        """The active rows alone, cached in memory, where they are few."""
        rows = np.flatnonzero(self.y)
        if rows.size > max(CACHED_ROWS, CACHED_VALUES // self.samples.n_features):
            return self
        sample, _ = draw_sample(engine, self.samples, rows)
        return ActiveSet(
            open_samples(sample), self.numbers[rows], self.y[rows], self.weights[rows]
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
        """The last SVM, and the reason why it is the last."""
        dropped = list[Part]()
        svm = None
        active = ActiveSet(samples, np.arange(y.shape[0]), y, weights)
        for number in range(self.max_rounds):
            started = time.perf_counter()
            before = svm
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
                return before or svm, "miss-rate"
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
        sweep = DecisionPass(Sides(rule, self.shrink_threshold))
        return np.concatenate(
            self.engine.run(sweep, expansions, "rows near the boundary")
        )

    def _represent(
        self, active: ActiveSet, side: int, own: bool
    ) -> tuple[np.ndarray, Part]:
        """The representative of each row of a side, as a position in the part, and the part itself."""
        rows = np.flatnonzero(active.y == side)
        weights = active.weights[rows]
        if own or rows.size <= self.n_clusters:
            return np.arange(rows.size), active.part(self.engine, rows, weights)
        labels, chosen = self._clusters(active, rows)
        labels = np.argsort(np.argsort(chosen))[
            labels
        ]  # rows of a part are in rising order
        sizes = np.bincount(labels, weights, chosen.size)
        return labels, active.part(self.engine, np.sort(chosen), sizes)

    def _clusters(
        self, active: ActiveSet, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cluster of each of some rows, and the row that represents each cluster."""
        weights = np.zeros(active.y.size)
        weights[rows] = active.weights[rows]
        if self.representative == "pseudo-centre":
            clusterer = self._fitted(active.samples, weights)
            if clusterer is None:
                return np.zeros(rows.size, np.int64), rows[:1]
            centres = pseudo_centres(clusterer, active.samples, weights)
            full = centres >= 0
            return (np.cumsum(full) - 1)[clusterer.labels_[rows]], centres[full]
        # Approximate clusters suffice for drawn members: means of a sample, and one
        # pass that labels.
        n_drawn = min(rows.size, ROWS_A_CLUSTER * self.n_clusters)
        drawn = rows[np.sort(self.random_state.permutation(rows.size)[:n_drawn])]
        sample, _ = draw_sample(self.engine, active.samples, drawn)
        found = self._fitted(open_samples(sample), weights[drawn])
        labels = (
            np.zeros(rows.size, np.int64)
            if found is None
            else found.predict(active.samples)[rows]
        )
        _, labels = np.unique(labels, return_inverse=True)
        return labels, rows[drawn_members(labels, weights[rows], self.random_state)]

    def _fitted(self, samples: Samples, weights: np.ndarray) -> Any:
        """A fitted clusterer with at most the given number of clusters; None where all rows are equal."""
        n_clusters = self.n_clusters
        while n_clusters > 1:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter(
                        "ignore", ClusterWarning
                    )  # about clusters without rows
                    warnings.simplefilter(
                        "ignore", ConvergenceWarning
                    )  # few passes are enough here
                    return self.clusterer(n_clusters).fit(
                        samples, sample_weight=weights
                    )
            except MemoryLimitError:
                raise
            except InputError:  # fewer distinct rows than clusters
                n_clusters //= 2
        return None

    def _drop(
        self, active: ActiveSet, majority: Part, labels: np.ndarray, outside: np.ndarray
    ) -> Part:
        """Representatives of the dropped rows, with the weight of these rows alone."""
        rows = np.flatnonzero(active.y < 0)[outside]
        weights = active.weights[rows]
        represented, labels = np.unique(labels[outside], return_inverse=True)
        sizes = np.bincount(labels, weights)
        if self.representative == "pseudo-centre":
            numbers, vectors, y, _ = (field[represented] for field in majority)
            return Part(numbers, vectors, y, sizes)
        chosen = rows[drawn_members(labels, weights, self.random_state)]
        return active.part(self.engine, chosen, sizes)


def drawn_members(
    labels: np.ndarray, weights: np.ndarray, random_state: Any
) -> np.ndarray:
    """A member of each cluster, drawn with a probability proportional to its weight.

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
    """One SVM as a hyperplane; several as scores over the union of their support vectors."""
    if len(svms) == 1:
        (svm,) = svms
        return Model(
            Hyperplane(svm.coef, svm.offset), kernel, svm.vectors, scaling, "float64"
        )
    numbers, first = np.unique(
        np.concatenate([one.numbers for one in svms]), return_index=True
    )
    basis = np.concatenate([one.vectors for one in svms])[first]
    coef = np.zeros((numbers.size, len(svms)))
    for c, one in enumerate(svms):
        np.add.at(
            coef[:, c], np.searchsorted(numbers, one.numbers), one.coef
        )  # a row may represent twice
    scores = Scores(coef, -np.array([one.offset for one in svms]))
    return Model(scores, kernel, np.ascontiguousarray(basis), scaling, "float64")

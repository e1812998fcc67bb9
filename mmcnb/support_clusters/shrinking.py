"""The rounds of a support cluster machine: cluster, train an SVM, drop far rows."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mmcnb._fit_warnings import ignored_warnings
from mmcnb.engine.passes import draw_sample
from mmcnb.engine.plan import RowShape
from mmcnb.engine.run import Engine
from mmcnb.engine.session import Record
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, Rule, Scores
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.derived import Scaling
from mmcnb.samples.matrix import stack, to_dense, with_short_indices
from mmcnb.support_clusters.active import (
    ActiveSet,
    Part,
    decide_masked,
    drawn_members,
    drawn_rows,
    rows_by_group,
    take_by_group,
)
from mmcnb.support_clusters.expansions import TILE_ROWS, expanded
from mmcnb.support_clusters.pseudo_centres import pseudo_centres

# Active rows are cached in memory if there are at most CACHED_ROWS rows or at most
# CACHED_VALUES values, and if the memory limit allows it.
CACHED_ROWS = 65_536
CACHED_VALUES = 2**25
CACHE_MIB = 200  # maximum size of the kernel cache of scikit-learn's solver
LEAST_CACHE_MIB = 8
# Bytes per row in a round: class, side, cluster, a mask of the dropped rows, and other
# masks or the order in which rows are drawn.
STATE_BYTES = 8
# If a round would drop less than this share of the negative rows, it is the last round.
STALLED = 0.2
# Settings of the clustering, chosen by `python -m benchmarks scm`, section "effects".
LANDMARKS = 50
# Number of rows per cluster in the sample on which k-means starts, and in the sample
# that is clustered before members are drawn.
ROWS_A_CLUSTER = 2
PASSES = 1  # passes over all rows that update the means of the clusters


class SVM(NamedTuple):
    """A trained SVM.

    Attributes
    ----------
    numbers : ndarray of shape (s,), int64
        Row indices of the support vectors.
    vectors : ndarray of shape (s, d), float64
        The support vectors.
    coef : ndarray of shape (s,), float64
        Dual coefficients of the support vectors.
    offset : float
        Offset of the decision function.
    """

    numbers: np.ndarray
    vectors: np.ndarray
    coef: np.ndarray
    offset: float

    def turned(self, sign: int) -> "SVM":
        """Return the SVM, with its two sides exchanged if ``sign`` is -1."""
        return self._replace(coef=sign * self.coef, offset=sign * self.offset)


def train(kernel: Kernel, C: float, parts: list[Part], cache_mib: float) -> SVM:
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
        cache_size=cache_mib,
    )
    svc.fit(with_short_indices(rows), y, sample_weight=weights)
    return SVM(
        numbers=numbers[svc.support_],
        vectors=to_dense(svc.support_vectors_, np.float64),
        coef=to_dense(svc.dual_coef_, np.float64).ravel(),
        offset=float(svc.intercept_[0]),
    )


class Caches(NamedTuple):
    """Sizes of the caches that the rounds may use.

    Attributes
    ----------
    rows : int
        Maximum number of active rows that are cached.
    solver_mib : float
        Size of the kernel cache of scikit-learn's solver, in MiB.
    """

    rows: int
    solver_mib: float


def caches_within(free_bytes: float, rows: RowShape) -> Caches:
    """Divide free memory between active rows and the kernel cache of the solver.

    Rows need twice their size while they are concatenated.
    """
    most_rows = max(CACHED_ROWS, CACHED_VALUES // rows.n_features)
    fitting = int(free_bytes / 2 / (2 * rows.row_bytes))
    mib = np.clip(free_bytes / 2 / 2**20, LEAST_CACHE_MIB, CACHE_MIB)
    return Caches(min(most_rows, fitting), float(mib))


@dataclass(frozen=True)
class Sides:
    """Rule that returns a code for each row.

    The code is 1 if abs(f) exceeds the threshold of eq. (11), otherwise 0. If f < 0, 2
    is added to the code.
    """

    rule: Hyperplane | Scores
    threshold: float

    def decide(self, rows: Any) -> np.ndarray:
        """Return the codes of the rows of a block, as int8."""
        f = self.rule.decide(rows)
        is_far = (np.abs(f) > self.threshold).astype(np.int8)
        is_negative = (f < 0).astype(np.int8)
        return is_far + 2 * is_negative


@dataclass(frozen=True)
class ClusterNumbers:
    """Rule that returns cluster numbers in a smaller dtype than another rule."""

    rule: Rule
    dtype: Any

    def decide(self, rows: Any) -> np.ndarray:
        """Return the cluster numbers of the rows of a block.

        Scores are computed for one tile of rows at a time.
        """
        labels = np.empty(len(rows), self.dtype)
        for start in range(0, len(rows), TILE_ROWS):
            tile = slice(start, start + TILE_ROWS)
            labels[tile] = self.rule.label(rows[tile])
        return labels


@dataclass(frozen=True)
class Shrinking:
    """The rounds of one SVM.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    kernel : Kernel
        Kernel of the SVM.
    clusterer : callable
        Function that takes a number of clusters and returns an unfitted `KernelKMeans`.
    random_state : RandomState
        Random number generator for drawing representatives.
    record : callable
        Called with one dict per round.
    both : bool
        Whether the minority rows are clustered too.
    caches : Caches
        Sizes of the caches.
    n_clusters, level, C, shrink_threshold, stop, max_rounds, representative
        As in `SupportClusterMachine`.
    """

    engine: Engine
    kernel: Kernel
    clusterer: Callable[[int], Any]
    random_state: Any
    record: Record
    n_clusters: int
    level: float
    both: bool
    caches: Caches
    C: float
    shrink_threshold: float
    stop: str
    max_rounds: int
    representative: str

    @property
    def cluster_type(self) -> Any:
        """Dtype of cluster numbers: uint16 if sufficient, otherwise int32."""
        return np.uint16 if self.n_clusters <= 2**16 else np.int32

    def run(self, active: ActiveSet) -> tuple[SVM, str]:
        """Run the rounds; return the selected SVM, and why the rounds ended."""
        dropped = list[Part]()
        svm = None
        for number in range(self.max_rounds):
            started = time.perf_counter()
            svm_before = svm
            active = active.cached(self.engine, self.caches.rows)
            n_positive = int(np.count_nonzero(active.y > 0))
            n_negative = int(np.count_nonzero(active.y < 0))
            balanced = self.stop == "balance" and n_negative <= self.level * n_positive
            whole = balanced or n_negative <= self.n_clusters
            majority, labels = self._represent(
                active, -1, own=whole and not (balanced and self.both)
            )
            minority, _ = self._represent(active, 1, own=not self.both)
            svm = train(
                self.kernel,
                self.C,
                [minority, majority, *dropped],
                self.caches.solver_mib,
            )
            sides = self._sides(active, svm)
            missed = float((sides[active.y > 0] >= 2).mean())
            self.record(
                {
                    "round": number,
                    "representatives": majority.y.size,
                    "settled": sum(part.y.size for part in dropped),
                    "negatives": n_negative,
                    "positives": n_positive,
                    "support_vectors": svm.coef.size,
                    "miss_rate": missed,
                    "seconds": time.perf_counter() - started,
                }
            )
            if self.stop == "miss-rate" and missed > self.level:
                return svm_before or svm, "miss-rate"
            if whole:
                return svm, "balance" if balanced else "all negatives"
            outside = (active.y < 0) & (sides % 2 == 1)
            n_outside = np.count_nonzero(outside)
            if n_outside == n_negative or n_outside < STALLED * n_negative:
                return svm, "nothing to drop"
            assert labels is not None
            dropped.append(self._drop(active, majority, labels, outside))
            left = np.where(outside, 0, active.y).astype(np.int8)
            active = replace(active, y=left)
        assert svm is not None
        return svm, "max_rounds"

    def _sides(self, active: ActiveSet, svm: SVM) -> np.ndarray:
        model = model_of([svm], self.kernel, None)
        rows, rule = expanded(model, active.samples)
        sides = Sides(rule, self.shrink_threshold)
        return decide_masked(self.engine, sides, rows, active.y != 0, np.int8)

    def _represent(
        self, active: ActiveSet, side: int, own: bool
    ) -> tuple[Part, np.ndarray | None]:
        """Choose representatives of the rows of a side, or all rows if ``own`` is True.

        Returns
        -------
        part : Part
            The representatives.
        labels : ndarray of shape (n,) or None
            For each row of the side, the position of its representative in the part;
            None if each row represents itself.
        """
        mask = active.y == side
        if own or np.count_nonzero(mask) <= self.n_clusters:
            rows = np.flatnonzero(mask)
            return active.part(self.engine, rows, active.weights_of(rows)), None
        if self.representative == "pseudo-centre":
            chosen, labels = self._centres(active, mask)
            sizes = np.zeros(chosen.size)
            for rows in rows_by_group(mask):
                np.add.at(sizes, labels[rows], active.weights_of(rows))
        else:
            labels = self._labels(active, mask)
            chosen, sizes = drawn_members(
                active, mask, labels, self.n_clusters, self.random_state
            )
        # The rows of a part are sorted, so renumber the clusters accordingly.
        ranks = np.argsort(np.argsort(chosen)).astype(labels.dtype)
        part = active.part(self.engine, chosen, sizes)
        return part, take_by_group(ranks, labels)

    def _centres(
        self, active: ActiveSet, mask: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the pseudo-centre of each cluster, and the cluster of each row."""
        weights = np.where(mask, active.weights_of(slice(None)), 0.0)
        clusterer = self._fitted(active.samples, weights)
        if clusterer is None:
            labels = np.zeros(mask.size, self.cluster_type)
            return np.flatnonzero(mask)[:1], labels
        centres = pseudo_centres(clusterer, active.samples, weights)
        has_rows = centres >= 0
        last = np.maximum(np.cumsum(has_rows) - 1, 0)
        numbers = last.astype(self.cluster_type)
        return centres[has_rows], numbers[clusterer.labels_]

    def _labels(self, active: ActiveSet, mask: np.ndarray) -> np.ndarray:
        """Cluster the rows that a mask selects, and number the nonempty clusters.

        Approximate clusters are good enough to draw members. Therefore, the means are
        computed from a sample, and one pass labels all rows.
        """
        n_drawn = min(int(np.count_nonzero(mask)), ROWS_A_CLUSTER * self.n_clusters)
        drawn = drawn_rows(mask, n_drawn, self.random_state)
        sample, _ = draw_sample(self.engine, active.samples, drawn)
        clusterer = self._fitted(open_samples(sample), active.weights_of(drawn))
        if clusterer is None:
            return np.zeros(mask.size, self.cluster_type)
        rows = clusterer.model_.features(active.samples)
        rule = ClusterNumbers(clusterer.model_.rule, self.cluster_type)
        labels = decide_masked(self.engine, rule, rows, mask, self.cluster_type)
        counts = np.zeros(self.n_clusters, np.int64)
        for rows_of_group in rows_by_group(mask):
            counts += np.bincount(labels[rows_of_group], minlength=self.n_clusters)
        numbers = np.maximum(np.cumsum(counts > 0) - 1, 0)
        return take_by_group(numbers.astype(self.cluster_type), labels)

    def _fitted(self, samples: Samples, weights: np.ndarray) -> Any:
        """Fit clusters to rows, or return None if all rows are equal.

        If there are fewer distinct rows than clusters, the number of clusters is halved
        until the fit succeeds.
        """
        n_clusters = self.n_clusters
        while n_clusters > 1:
            try:
                with ignored_warnings(), warnings.catch_warnings():
                    # Empty clusters and means that have not converged are acceptable
                    # here.
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
        """Return representatives of the dropped rows (``outside``).

        Each representative has the total weight of the dropped rows in its cluster.
        """
        n_clusters = majority.y.size
        if self.representative == "pseudo-centre":
            sizes = np.zeros(n_clusters)
            for rows in rows_by_group(outside):
                np.add.at(sizes, labels[rows], active.weights_of(rows))
            represented = np.flatnonzero(sizes)
            return Part(
                numbers=majority.numbers[represented],
                rows=majority.rows[represented],
                y=majority.y[represented],
                weights=sizes[represented],
            )
        members = drawn_members(active, outside, labels, n_clusters, self.random_state)
        return active.part(self.engine, members.rows, members.sizes)


def model_of(svms: list[SVM], kernel: Kernel, scaling: Scaling | None) -> Model:
    """Return the model of one SVM, or a model with the scores of several SVMs."""
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
        # A row can be in several parts of a training set, so add its coefficients.
        np.add.at(coef[:, c], places, svm.coef)
    rule = Scores(coef, -np.array([svm.offset for svm in svms]))
    return Model(rule, kernel, basis, scaling, "float64")

"""The rounds of a support cluster machine: cluster, train, drop what lies far from the boundary."""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mmcnb.engine.passes import draw_sample
from mmcnb.engine.run import Engine
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, Scores
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.matrix import stack, with_short_indices

HELD_ROWS, HELD_VALUES = 65_536, 2**25  # rows in play are held in memory where they are as few as either
CACHE_MIB = 200  # of kernel columns in scikit-learn's solver
STALLED = 0.2  # share of the negatives below which a round that drops no more is the last
LANDMARKS = 50
ROWS_A_CLUSTER = 2  # of the sample on which clusters start, and of all that make them where members are drawn
PASSES = 1  # in which the means of the clusters move


class Part(NamedTuple):
    """Rows to train on: their numbers, the rows, their side (-1 or +1) and their weights."""

    numbers: np.ndarray
    rows: Any
    y: np.ndarray
    weights: np.ndarray


class SVM(NamedTuple):
    """A trained machine: row numbers of the support vectors, the vectors, their coefficients, the offset."""

    numbers: np.ndarray
    vectors: np.ndarray
    coef: np.ndarray
    offset: float


def train(kernel: Kernel, C: float, parts: list[Part]) -> SVM:
    """The machine of eq. (6), in which 0 <= alpha_c <= weight_c C."""
    from sklearn.svm import SVC

    whole = Part(*(stack(list(field)) for field in zip(*parts, strict=True)))
    shared = {"kernel": kernel.name, "gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    machine = SVC(C=C, cache_size=CACHE_MIB, **shared)
    machine.fit(with_short_indices(whole.rows), whole.y, sample_weight=whole.weights)
    coef, vectors = _dense(machine.dual_coef_).ravel(), _dense(machine.support_vectors_)
    return SVM(whole.numbers[machine.support_], vectors, coef, float(machine.intercept_[0]))


def _dense(values: Any) -> np.ndarray:
    dense = values.toarray() if hasattr(values, "toarray") else values
    return np.ascontiguousarray(dense, np.float64)


@dataclass(frozen=True)
class SidesPass:
    """One byte a row: 1 where abs(f) is above the threshold, eq. (11), and 2 more where f is below 0."""

    rule: Hyperplane | Scores
    threshold: float

    def start(self) -> list[np.ndarray]:
        """Nothing yet."""
        return []

    def block(self, rows: Any, start: int, stop: int) -> list[np.ndarray]:
        """The bytes of one block."""
        f = self.rule.decide(rows)
        return [(np.abs(f) > self.threshold).astype(np.int8) + 2 * (f < 0).astype(np.int8)]

    def combine(self, total: list[np.ndarray], other: list[np.ndarray]) -> list[np.ndarray]:
        """The bytes of both."""
        return total + other


@dataclass(frozen=True)
class Rules:
    """How one machine is trained; see `SupportClusterMachine` for the parameters."""

    kernel: Kernel
    C: float
    n_clusters: int
    both: bool
    threshold: float
    stop: str
    level: float
    max_rounds: int
    representative: str


@dataclass
class ActiveSet:
    """The rows that are still in play.

    Parameters
    ----------
    samples : Samples
        Rows, among them all that are in play; they alone once these are few.
    numbers : ndarray of shape (n,), int64
        Their numbers among all rows of the fit.
    y : ndarray of shape (n,), int8
        +1, -1, or 0 for rows that are out of play.
    weights : ndarray of shape (n,)
        Weights of the rows.
    """

    samples: Samples
    numbers: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    def part(self, engine: Engine, rows: np.ndarray, side: int, weights: np.ndarray) -> Part:
        """Some rows, in any order, to train on."""
        order = np.argsort(rows)
        gathered = draw_sample(engine, self.samples, rows[order]).sample
        y = np.full(rows.shape[0], side, np.int8)
        return Part(self.numbers[rows[order]], gathered, y, weights[order])

    def held(self, engine: Engine) -> "ActiveSet":
        """The rows in play alone and in memory, where they are few."""
        rows = np.flatnonzero(self.y)
        if rows.size > max(HELD_ROWS, HELD_VALUES // self.samples.n_features):
            return self
        sample = draw_sample(engine, self.samples, rows).sample
        return ActiveSet(open_samples(sample), self.numbers[rows], self.y[rows], self.weights[rows])


@dataclass(frozen=True)
class Shrinking:
    """The rounds of one machine.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    rules : Rules
        How to train.
    clusterer : callable
        An unfitted `KernelKMeans` of so many clusters.
    random_state : RandomState
        Draws representatives.
    record : callable
        Keeps one dict a round.
    """

    engine: Engine
    rules: Rules
    clusterer: Callable[[int], Any]
    random_state: Any
    record: Callable[[dict[str, Any]], None]

    def run(self, samples: Samples, y: np.ndarray, weights: np.ndarray) -> tuple[SVM, str]:
        """The last machine, and why it is the last."""
        rules, settled = self.rules, list[Part]()
        active = ActiveSet(samples, np.arange(y.shape[0]), y, weights)
        machine: SVM | None = None
        for number in range(rules.max_rounds):
            started, before = time.perf_counter(), machine
            active = active.held(self.engine)
            positive, negative = np.flatnonzero(active.y > 0), np.flatnonzero(active.y < 0)
            balanced = rules.stop == "balance" and negative.size <= rules.level * positive.size
            whole = balanced or negative.size <= rules.n_clusters
            labels, near = self._represent(active, -1, own=whole and not (balanced and rules.both))
            _, rare = self._represent(active, 1, own=not rules.both)
            machine = train(rules.kernel, rules.C, [rare, near, *settled])
            sides = self._sides(active.samples, machine)
            missed = float((sides[positive] >= 2).mean())
            self.record(
                {
                    "round": number,
                    "representatives": near.y.size,
                    "settled": sum(part.y.size for part in settled),
                    "negatives": negative.size,
                    "positives": positive.size,
                    "support_vectors": machine.coef.size,
                    "miss_rate": missed,
                    "seconds": time.perf_counter() - started,
                }
            )
            far = sides[negative] % 2 == 1
            if rules.stop == "miss-rate" and missed > rules.level:
                return before or machine, "miss-rate"
            if whole:
                return machine, "balance" if balanced else "all negatives"
            if far.all() or far.sum() < STALLED * negative.size:
                return machine, "nothing to drop"
            settled.append(self._settle(active, near, labels, far))
            active.y = active.y.copy()
            active.y[negative[far]] = 0
        assert machine is not None
        return machine, "max_rounds"

    def _sides(self, samples: Samples, machine: SVM) -> np.ndarray:
        model = model_of([machine], self.rules.kernel, None, None)
        sums, rule = model.decisions(samples)
        sweep = SidesPass(rule, self.rules.threshold)
        return np.concatenate(self.engine.run(sweep, sums, "rows near the boundary"))

    def _represent(self, active: ActiveSet, side: int, own: bool) -> tuple[np.ndarray, Part]:
        """The representative of each row of a side, by its place in the part, and the representatives."""
        rows = np.flatnonzero(active.y == side)
        weights = active.weights[rows]
        if own or rows.size <= self.rules.n_clusters:
            return np.arange(rows.size), active.part(self.engine, rows, side, weights)
        labels, chosen = self._clusters(active, rows)
        labels = np.argsort(np.argsort(chosen))[labels]  # parts are in order of the rows
        sizes = np.bincount(labels, weights, chosen.size)
        return labels, active.part(self.engine, np.sort(chosen), side, sizes)

    def _clusters(self, active: ActiveSet, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cluster of each of some rows, and the row that represents each cluster."""
        weights = np.zeros(active.y.size)
        weights[rows] = active.weights[rows]
        if self.rules.representative == "pseudo-centre":
            found = self._fitted(active.samples, weights)
            if found is None:
                return np.zeros(rows.size, np.int64), rows[:1]
            full = found.pseudo_centres_ >= 0
            return (np.cumsum(full) - 1)[found.labels_[rows]], found.pseudo_centres_[full]
        # Drawn members only want clusters that are about right: means of a sample, and one pass that labels.
        n_drawn = min(rows.size, ROWS_A_CLUSTER * self.rules.n_clusters)
        drawn = rows[np.sort(self.random_state.permutation(rows.size)[:n_drawn])]
        found = self._fitted(
            open_samples(draw_sample(self.engine, active.samples, drawn).sample), weights[drawn]
        )
        labels = np.zeros(rows.size, np.int64) if found is None else found.predict(active.samples)[rows]
        _, labels = np.unique(labels, return_inverse=True)
        return labels, rows[drawn_members(labels, weights[rows], self.random_state)]

    def _fitted(self, samples: Samples, weights: np.ndarray) -> Any:
        """Clusters, as many as can be up to those that are asked for; None where all rows are equal."""
        for n_clusters in _halved(self.rules.n_clusters):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ClusterWarning)  # of clusters without rows
                    return self.clusterer(n_clusters).fit(samples, sample_weight=weights)
            except MemoryLimitError:
                raise
            except InputError:  # fewer rows that differ than clusters
                continue
        return None

    def _settle(self, active: ActiveSet, near: Part, labels: np.ndarray, far: np.ndarray) -> Part:
        """Representatives of rows that are dropped, with the weight of these alone."""
        rows = np.flatnonzero(active.y < 0)[far]
        weights, labels = active.weights[rows], labels[far]
        kept, labels = np.unique(labels, return_inverse=True)
        sizes = np.bincount(labels, weights)
        if self.rules.representative == "pseudo-centre":
            return Part(near.numbers[kept], near.rows[kept], near.y[kept], sizes)
        chosen = rows[drawn_members(labels, weights, self.random_state)]
        order = np.argsort(chosen)
        return active.part(self.engine, chosen[order], -1, sizes[order])


def drawn_members(labels: np.ndarray, weights: np.ndarray, random_state: Any) -> np.ndarray:
    """A member of each cluster, drawn with chances as the weights are.

    So the sum over the representatives, each with the weight of its cluster, is on average that over all
    rows, of whatever is summed.

    Parameters
    ----------
    labels : ndarray of shape (n,), int64
        Cluster of each row, 0 to k - 1, each of which has a row.
    weights : ndarray of shape (n,)
        Weights above 0.
    random_state : RandomState
        Draws one number a row.

    Returns
    -------
    ndarray of shape (k,), int64
        Rows.
    """
    # Of such arrivals the first of a cluster is that of row i with a chance in proportion to its weight.
    arrivals = random_state.exponential(size=labels.shape[0]) / weights
    order = np.lexsort((arrivals, labels))
    return order[np.flatnonzero(np.diff(labels[order], prepend=-1))]


def _halved(number: int) -> Iterator[int]:
    """The number and its halves, down to 2."""
    while number > 1:
        yield number
        number //= 2


def model_of(
    machines: list[SVM], kernel: Kernel, mean: np.ndarray | None, deviation: np.ndarray | None
) -> Model:
    """One machine as a hyperplane; several as scores over the union of their support vectors."""
    if len(machines) == 1:
        (machine,) = machines
        plane = Hyperplane(machine.coef, machine.offset)
        return Model(plane, kernel, machine.vectors, mean, deviation, "float64")
    numbers, first = np.unique(np.concatenate([one.numbers for one in machines]), return_index=True)
    basis = np.concatenate([one.vectors for one in machines])[first]
    coef = np.zeros((numbers.size, len(machines)))
    for c, one in enumerate(machines):
        np.add.at(coef[:, c], np.searchsorted(numbers, one.numbers), one.coef)  # a row may represent twice
    scores = Scores(coef, -np.array([one.offset for one in machines]))
    return Model(scores, kernel, np.ascontiguousarray(basis), mean, deviation, "float64")

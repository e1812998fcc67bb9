"""Two clusters on basis vectors: landmarks from the sample, or a basis that grows with the cutting planes.

The hyperplane lies in the span of the basis. A growing basis gains one vector per plane, as in the papers.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS, row_sum
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.run import Engine, ThreadEngine
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.features.bandwidth import candidate_gammas, default_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.needs import ROUTINES
from mmcnb.features.nystroem import choose_landmarks, normalization_of, scaled_landmarks
from mmcnb.features.rules import Hyperplane, Labels, Scores
from mmcnb.hinge import multiclass
from mmcnb.hinge.cutting_plane import WorkingSet
from mmcnb.hinge.needs import HELD_ROWS, MARGIN_ROUTINES, ROUND_ROUTINES, hinge_needs, needs_of_search
from mmcnb.hinge.sample_search import KernelFeatures, SearchConfig, landmark_features, search_config
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.hinge.two_clusters import fit_two_clusters
from mmcnb.least_squares.partition import PARTITION_ROUTINES, PartitionConfig
from mmcnb.least_squares.search import SearchSettings
from mmcnb.samples import CSRBlock, Samples, open_samples
from mmcnb.samples.matrix import as_matrix, row_shares

MOST_LANDMARKS = 200  # by default: `python -m benchmarks basis`
STEP = 0.01  # the papers' delta, in units of sigma²
MAX_STEPS = 50  # of one fixed-point iteration; most end after ten
ATTEMPTS = 4  # starts where the denominator vanishes, a case that Alg. 4 leaves open
AVERAGED_ROWS = 5  # rows whose mean is the first start
N_INIT = 8  # starts of least squares, from which more than two clusters of a sample come
SAME = 1 - 1e-6  # kernel value above which two basis vectors count as one


def basis_size(n_landmarks: int | None, rows: int) -> int:
    """Number of landmarks of a sample; by default half of its rows and at most 200."""
    return min(rows, n_landmarks) if n_landmarks else max(2, min(MOST_LANDMARKS, rows // 2))


def candidate_kernels(
    session: FitSession, name: str, gamma: float | str = "auto", degree: int = 3, coef0: float = 1.0
) -> list[Kernel]:
    """The kernels to try on the sample of a fit: one, or one for each candidate bandwidth.

    Raises
    ------
    InputError
        If all rows are equal.
    """
    try_all = isinstance(gamma, str) and gamma == "auto" and name == "rbf"  # others have no bandwidth
    given = session.sample, session.sample_weights
    gammas = candidate_gammas(*given) if try_all else [default_gamma(gamma, name, *given)]
    return [Kernel(name, one, int(degree), float(coef0)) for one in gammas]


def needs_of_landmarks(
    rows: RowShape, drawn: int, n_landmarks: int | None, landmarks: Any = None, growing: bool = False
) -> FitNeeds:
    """Bytes and work of a fit on landmarks of a sample of so many rows."""
    searched = min(rows.n_samples, drawn)
    size = basis_size(n_landmarks, searched) if landmarks is None else len(landmarks)
    compiled, sparse = not growing and size < searched, landmarks is None and not growing
    needs = hinge_needs(rows, size, drawn, stays_sparse=sparse, compiled=compiled)
    routines = {**ROUTINES, **PARTITION_ROUTINES, **needs.routines, **(ROUND_ROUTINES if compiled else {})}
    return replace(needs, routines=routines)


def fit_on_landmarks(
    session: FitSession,
    config: SearchConfig,
    kernels: list[Kernel],
    n_landmarks: int | None,
    landmarks: Any = None,
    growing: bool = False,
) -> FitResult:
    """Fit to the landmarks of a sample; on a growing basis the landmarks serve the starts alone."""
    rows, weights = session.sample, session.sample_weights
    size = basis_size(n_landmarks, rows.shape[0])
    if landmarks is None:
        basis = choose_landmarks(rows, size, session.random_state, weights, may_be_sparse=not growing)
    else:
        basis = scaled_landmarks(landmarks, rows, session.scaling)
    make: Any = growing_features if growing else landmark_features
    last = session.seed() if growing else landmarks is None and size == rows.shape[0]
    given = session.engine, open_samples(rows), basis, weights, last
    return fit_two_clusters(session, [partial(make, kernel, *given) for kernel in kernels], config)


# -- a basis that grows ------------------------------------------------------------------------


def growing_features(
    kernel: Kernel, engine: Engine, sample: Samples, basis: np.ndarray, weights: np.ndarray | None, seed: int
) -> KernelFeatures:
    """The sample on a growing basis; the landmarks serve the starts alone."""
    grow = partial(GrowingWorkingSet, engine, sample, kernel, weights, seed)
    return replace(landmark_features(kernel, engine, sample, basis, weights), new_working_set=grow)


class GrowingWorkingSet(WorkingSet):
    """Cutting planes on a basis that gains one vector with each plane.

    A basis vector is a fixed point of App. C, eq. (47): the point where one Gaussian bump is most like
    Ψ. Signs in Ψ are mixed, so the denominator can vanish. The search then restarts from another random
    average. Iterations are capped, and the best point found is used.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    samples : Samples
        The rows, in memory.
    kernel : Kernel
        A Gaussian kernel.
    weights : ndarray of shape (n,) or None
        Sample weights.
    seed : int
        Seed of the random averages.
    """

    evaluations = 0  # most of them in the search for fixed points

    def __init__(
        self, engine: Engine, samples: Samples, kernel: Kernel, weights: np.ndarray | None, seed: int
    ) -> None:
        self.engine, self.samples, self.kernel, self.weights = engine, samples, kernel, weights
        self.random_state = np.random.RandomState(seed)
        self.columns: np.ndarray = np.empty((samples.n_samples, 0), np.float32)
        self.basis: np.ndarray = np.empty((0, samples.n_features))
        self.row_shares = row_shares(samples.n_samples, weights)
        self._grow(self._fixed_point(self.row_shares))
        super().__init__(self.training_set)
        self.generators = [np.ones(samples.n_samples, np.int8)]  # which rows each plane has

    def over(self, training_set: Any) -> WorkingSet:
        """A working set on other rows, which starts anew: its basis is the one of now."""
        return WorkingSet(training_set)

    def find_most_violated(self, labels: Labels, hyperplane: Any, rho: float) -> tuple[Any, ...]:
        """One sweep of the columns so far."""
        _, statistics, active = self.training_set.most_violated(labels, hyperplane, rho)
        return active, statistics

    def add(self, found: Any) -> None:
        """Add the cutting plane, and a basis vector for it."""
        active, _ = found
        self.generators.append(active)
        self._grow(self._fixed_point(active * self.y * self.row_shares))
        self.relabel(self.labels)

    def relabel(self, labels: Labels) -> None:
        """Sign the cutting planes with labels, on the basis so far: all share one subspace."""
        self.labels, self.y = labels, labels.block(self.columns, 0, self.columns.shape[0])
        active = np.array(self.generators)
        self.s, self.t = active @ self.row_shares, (active * self.y) @ self.row_shares
        signed = active * self.y * self.row_shares
        self.centred = signed @ self.columns - np.outer(self.t, self.training_set.mean)
        self.coefs = self.training_set.represent(self.centred)

    def _grow(self, b: np.ndarray) -> None:
        """Add a basis vector unless the basis has it already."""
        kernel, samples = self.kernel, self.samples
        if self.basis.shape[0] and kernel(b[None, :], self.basis).max() > SAME:
            return
        self.basis = np.vstack([self.basis, b])
        column = kernel(samples.block(0, samples.n_samples), b[None, :].astype(samples.dtype), np.float32)
        self.evaluations += 1
        self.columns = np.ascontiguousarray(np.hstack([self.columns, column]))
        normalization = normalization_of(kernel(self.basis, self.basis))
        given = self.engine, open_samples(self.columns), normalization, self.weights
        self.training_set = TrainingSet(*given, hold_labels=True, basis=self.basis)

    def _fixed_point(self, z: np.ndarray) -> np.ndarray:
        """The point where one Gaussian bump is most like Σ z_i φ(x_i)."""
        best, highest = np.zeros(self.samples.n_features), -1.0
        rows = self.samples.block(0, self.samples.n_samples)
        precise = rows if isinstance(rows, CSRBlock) else rows.astype(np.float64)
        for attempt in range(ATTEMPTS):
            count = 1 if attempt else AVERAGED_ROWS
            averaged = np.unique(self.random_state.randint(self.samples.n_samples, size=count))
            b = np.asarray(as_matrix(self.samples.gather(averaged)).mean(axis=0), np.float64).ravel()
            for _ in range(MAX_STEPS):
                # Sums of z_i K(x_i, b) x_i and of z_i K(x_i, b): Wu & Zhang, eq. (47).
                total, weight = row_sum(rows, z * self.kernel(precise, b[None])[:, 0])
                self.evaluations += 1
                if abs(weight) > highest:
                    best, highest = b, abs(weight)
                if abs(weight) < 1e-12:
                    break
                moved, b = float(((total / weight - b) ** 2).sum()), total / weight
                if moved <= STEP / (2 * self.kernel.gamma):
                    return best
        return best


# -- the widest margin of a sample: a candidate beside those of the neighbour graph ----------------


def margin_on_sample(session: FitSession, n_clusters: int, kernel: str, seed: int) -> Model:
    """The widest margin between clusters of the sample of a fit, in one thread.

    Two clusters are those of `SparseKernelMMC`, and more those of `CrammerSingerMMC`, with their defaults.

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
            result = fit_on_landmarks(alone, search_config(alone), candidate_kernels(alone, kernel), None)
        else:
            config = search_config(alone, max_rounds=multiclass.ROUNDS)
            result = multiclass.fit_on_landmarks(alone, _settings(n_clusters, kernel), config)
    return replace(result.model, rule=_in_margins(result), scaling=session.scaling)


def _settings(n_clusters: int, kernel: str) -> SearchSettings:
    return SearchSettings(PartitionConfig(n_clusters, n_init=N_INIT, cluster_sizes="equal"), kernel)


def margin_needs(rows: RowShape, n_clusters: int, kernel: str, n_rows: int | None = None) -> FitNeeds:
    """Bytes and work of the fit to a sample: some rows in memory, or so many."""
    rows = replace(rows, n_samples=n_rows or rows.n_samples, is_reopenable=False)
    if n_clusters == 2:
        needs = needs_of_landmarks(rows, SAMPLE_ROWS, None)
    else:
        needs = needs_of_search(rows, _settings(n_clusters, kernel))
    # The rounds of so few rows are compiled: no sweep over blocks.
    called = needs.routines.keys() - MARGIN_ROUTINES.keys()
    return replace(needs, routines={name: needs.routines[name] for name in sorted(called)})


def _of_sample(
    session: FitSession, engine: ThreadEngine, n_clusters: int, kernel: str, seed: int
) -> FitSession:
    """A fit to the sample alone, as if it were all rows."""
    session = session.of_size(HELD_ROWS)  # up to which rounds are compiled
    samples = open_samples(session.sample)
    rows = RowShape.of(samples, 1)
    needs = margin_needs(rows, n_clusters, kernel)
    plan = replace(session.plan, rows=rows, needs=needs, store="memory", threads=1)
    alone = replace(
        session.of_rows(np.arange(rows.n_samples)),
        engine=engine,
        samples=samples,
        weights=session.sample_weights,
        plan=plan,
        scaling=None,
        random_state=np.random.RandomState(seed),
        kept_labels=None,
    )
    return alone.of_size(min(needs.sample_size, rows.n_samples))


def _in_margins(result: FitResult) -> Scores:
    """The scores of a fit in units of its margin; a hyperplane gives two that differ by its value."""
    rule, rho = result.model.rule, float(result.attributes["rho"])
    unit = rho if rho > 0 else 1.0
    if isinstance(rule, Hyperplane):
        half = rule.coef / 2
        rule = Scores(np.column_stack([-half, half]), np.array([rule.offset, -rule.offset]) / 2)
    return Scores(rule.coef / unit, rule.offset / unit)

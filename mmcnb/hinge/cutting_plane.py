"""The cutting-plane loop: for fixed labels, add planes until none is violated.

The loop follows Wu & Zhang, Alg. 1-3, lines 5-14, with the stopping rule (13). Each
subset of the rows, with indicators c_i, defines a constraint on the mean of c_i (rho -
y_i f(x_i)). One sweep over the rows finds the most violated constraint, which contains
the rows with y_i f(x_i) <= rho, eq. (12).

In centred features, plane k is P_k = Σ_i a_ki (φ_i - φ̄) with a_k = c_k∘y/n. The
working set stores the inner products of the planes with the basis (``centred``) and
their coefficients on the basis (``coefs``). The product of these two matrices is the
Gram matrix of the planes.

Labels are fixed while planes are added. (The papers update labels inside the loop,
which makes the problem non-convex.) When labels change between loops, all planes are
rebuilt.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mmcnb.engine.session import Record, Row
from mmcnb.features.rules import Hyperplane, Labels
from mmcnb.hinge.qp import (
    NO_SOLUTION,
    PlaneQPError,
    PlaneSolution,
    Threshold,
    solve_planes,
)
from mmcnb.hinge.training_set import (
    ConstraintStatistics,
    Generator,
    TrainingSet,
)
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples.matrix import row_shares

if TYPE_CHECKING:
    from mmcnb.kernels.cutting_plane import SamplePlanes

# If |w|² is below this fraction of the total variance, the solution is degenerate: the
# labels are treated as not separable.
DEGENERATE = 1e-6
# Names of the status codes 0 to 3 that `kernels.sample_subproblem` returns.
STATUS = ("converged", "stalled", "degenerate", "unsolved")


@dataclass(frozen=True)
class Objective:
    """Form of the objective: threshold, balance, and scale of the features.

    Parameters
    ----------
    threshold : {"adaptive", "fixed"}
        Whether rho is a variable (SKMMC) or fixed at 1 (SKMMCv2).
    balance : float
        Bound l/n on the absolute value of the mean decision value, in units of rho.
    total_variance : float
        Mean squared distance of the features from their mean, trace(K̃)/n.
    """

    threshold: Threshold
    balance: float
    total_variance: float


@dataclass(frozen=True)
class SubproblemResult:
    """Result of a cutting-plane loop.

    Parameters
    ----------
    hyperplane : Hyperplane or Scores
        Hyperplane of the last QP, or its scores if there are more than two clusters.
    quadratic : PlaneSolution
        Solution of the last QP.
    C : float
        Weight of the slack in this QP.
    threshold : {"adaptive", "fixed"}
        Whether rho is a variable or fixed at 1.
    statistics : ConstraintStatistics
        Statistics of the hyperplane, from the last sweep.
    status : {"converged", "degenerate", "stalled", "sweeps"}
        Reason why the loop ended: the tolerance was reached, |w|² is too small, the
        planes no longer improve the solution, or no sweeps are left.
    """

    hyperplane: Any
    quadratic: PlaneSolution
    C: float
    threshold: Threshold
    statistics: ConstraintStatistics
    status: str

    def value(self, slack: float) -> float:
        """Return 1/2|w|² - rho + C slack, omitting rho if the threshold is fixed."""
        rho = self.quadratic.rho if self.threshold == "adaptive" else 0.0
        return 0.5 * self.quadratic.norm2 - rho + self.C * max(0.0, slack)

    @property
    def objective(self) -> float:
        """Value of J_CP under the constraints found so far.

        This is a lower bound on the value under all constraints.
        """
        return self.value(self.quadratic.xi)

    @property
    def primal(self) -> float:
        """Value of J_CP with the slack over all constraints.

        This is an upper bound on the minimum under all constraints.
        """
        return self.value(self.statistics.violation)

    @property
    def score(self) -> float:
        """Quality of the solution; larger is better.

        With an adaptive threshold, the score is |w|², which is -2 times the objective
        at the optimum. With a fixed threshold, the score is C - J, where J is the upper
        bound of the objective, and C is the objective of w = 0.
        """
        if self.threshold == "adaptive":
            return self.quadratic.norm2
        return self.C - self.primal

    @property
    def gap(self) -> float:
        """Duality gap (`primal` minus `objective`), relative to C rho."""
        unit = max(self.C * self.quadratic.rho, np.finfo(float).tiny)
        return (self.primal - self.objective) / unit


class NewPlane(NamedTuple):
    """Cutting plane found by a sweep.

    Parameters
    ----------
    generator : object
        A `Generator`, from which the plane can be rebuilt under other labels, or a mask
        of the rows in the plane.
    statistics : ConstraintStatistics
        Statistics of the sweep.
    centred : ndarray of shape (p,)
        Inner products of the plane with the basis; empty if they are computed later.
    coef : ndarray of shape (p,)
        Coefficients of the plane on the basis; empty if they are computed later.
    """

    generator: Any
    statistics: ConstraintStatistics
    centred: np.ndarray = np.empty(0)
    coef: np.ndarray = np.empty(0)


class SweepBudget:
    """Counter of the sweeps that are still allowed.

    Parameters
    ----------
    sweeps : int or None, default=None
        Maximum number of sweeps. If None, there is no limit.
    """

    def __init__(self, sweeps: int | None = None) -> None:
        self.left = float("inf") if sweeps is None else sweeps


class WorkingSet:
    """Working set Ω of the cutting-plane loop, on a fixed basis or the input columns.

    For each plane, the working set stores the hyperplane that generated the plane and
    its rho (p + 2 numbers), but no array of size n. From these hyperplanes, one sweep
    rebuilds all planes under new labels.

    Parameters
    ----------
    training_set : TrainingSet
        Features and weights of the rows.
    """

    # Maximum number of planes added in one loop, and in one loop with random labels.
    max_planes = 1000
    random_planes = 200

    def __init__(self, training_set: TrainingSet) -> None:
        self.training_set = training_set
        # Start with the plane of all rows, so that the first QP is always feasible.
        self.generators: list[Any] = [training_set.all_rows()]
        self.labels: Labels | None = None  # labels for which the planes were built
        self.s = self.t = np.empty(0)
        self.centred = self.coefs = np.empty((0, 0))

    def over(self, training_set: TrainingSet) -> "WorkingSet":
        """Return a working set for another training set, with the same generators."""
        other = type(self)(training_set)
        other.generators = list(self.generators)
        return other

    def relabel(self, labels: Labels) -> None:
        """Rebuild all cutting planes under new labels, in one sweep."""
        self.labels = labels
        sums = self.training_set.plane_sums(labels, self.generators)
        self.s = sums.s
        self.t = sums.t
        self.centred, self.coefs = self._represent(sums.centred, len(self.generators))

    def find_most_violated(
        self, labels: Labels, hyperplane: Any, rho: float
    ) -> NewPlane:
        """Find the constraint that a hyperplane violates most, in one sweep."""
        violated = self.training_set.most_violated(labels, hyperplane, rho)
        centred, coef = self._represent(violated.centred, 1)
        generator = Generator(hyperplane, rho)
        return NewPlane(generator, violated.statistics, centred, coef)

    def add(self, plane: NewPlane) -> None:
        """Add a cutting plane that `find_most_violated` returned."""
        statistics = plane.statistics
        self.generators.append(plane.generator)
        self.s = np.append(self.s, statistics.active)
        self.t = np.append(self.t, statistics.signed)
        self.centred = np.vstack([self.centred, plane.centred])
        if plane.coef is plane.centred:  # rows are their own features
            self.coefs = self.centred
        else:
            self.coefs = np.vstack([self.coefs, plane.coef])

    def keep(self, is_kept: np.ndarray) -> None:
        """Drop the cutting planes for which ``is_kept`` is False."""
        self.generators = [self.generators[k] for k in np.flatnonzero(is_kept)]
        self.s = self.s[is_kept]
        self.t = self.t[is_kept]
        is_shared = self.coefs is self.centred
        self.centred = self.centred[is_kept]
        self.coefs = self.centred if is_shared else self.coefs[is_kept]

    def _represent(
        self, centred: np.ndarray, planes: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the planes' inner products with the basis and their coefficients."""
        flat = centred.reshape(planes, -1)
        coefs = self.training_set.represent(centred)
        if coefs is centred:  # rows are their own features
            return flat, flat
        return flat, coefs.reshape(planes, -1)

    @property
    def gram(self) -> np.ndarray:
        """Inner products of the cutting planes, of shape (planes, planes)."""
        product = self.centred @ self.coefs.T
        return (product + product.T) / 2

    def solve(self, C: float, balance: float, threshold: Threshold) -> PlaneSolution:
        """Solve the QP of the cutting planes."""
        return solve_planes(self.gram, self.s, self.t, C, balance, threshold)

    def hyperplane(self, multipliers: np.ndarray, beta: float) -> Any:
        """Return w = Σ λ_k P_k with mean decision value beta."""
        return self.training_set.hyperplane(multipliers @ self.coefs, beta)

    def cutting_plane(
        self,
        labels: Labels,
        objective: Objective,
        C: float,
        eta: float,
        record: Record,
        budget: SweepBudget,
    ) -> SubproblemResult:
        """Solve the convex subproblem for fixed labels.

        If the planes were built for other labels, they are rebuilt first. The loop adds
        planes, and drops planes whose multipliers were negligible in three successive
        QPs.

        Parameters
        ----------
        labels : Labels
            The fixed labels.
        objective : Objective
            Form of the objective.
        C : float
            Weight of the slack.
        eta : float
            Tolerance. The loop ends when no constraint is violated by more than xi +
            eta rho.
        record : callable
            Function that is called with one dict per sweep.
        budget : SweepBudget
            Counter of the sweeps that are still allowed.

        Returns
        -------
        SubproblemResult
            The solution. If its status is "converged", its gap is at most eta.
        """
        if labels is not self.labels:
            budget.left -= 1
            self.relabel(labels)
        idle = np.zeros(self.s.shape[0], np.int64)
        lowers = list[float]()
        form = objective.threshold
        solution: SubproblemResult | None = None
        while True:
            try:
                quadratic = self.solve(C, objective.balance, form)
            except PlaneQPError:
                if solution is None:
                    raise
                # The last plane was nearly a linear combination of the other planes.
                return replace(solution, status="stalled")
            hyperplane = self.hyperplane(quadratic.multipliers, quadratic.beta)
            budget.left -= 1
            plane = self.find_most_violated(labels, hyperplane, quadratic.rho)
            solution = SubproblemResult(
                hyperplane, quadratic, C, form, plane.statistics, "converged"
            )
            record(self._row(solution, self.s.shape[0]))
            lowers.append(solution.objective)
            status = self._end(solution, objective, eta, lowers)
            if status is None and budget.left <= 0:
                status = "sweeps"
            if status is not None:
                return replace(solution, status=status)
            is_kept = kernels.count_idle(idle, quadratic.multipliers, float(C))
            self.keep(is_kept)
            self.add(plane)
            idle = np.append(idle[is_kept], 0)

    def _end(
        self,
        solution: SubproblemResult,
        objective: Objective,
        eta: float,
        lowers: list[float],
    ) -> str | None:
        """Return the final status if the loop ends after this sweep, otherwise None.

        ``lowers`` contains the lower bounds from all sweeps so far.
        """
        quadratic = solution.quadratic
        least_norm2 = DEGENERATE * objective.total_variance
        if objective.threshold == "adaptive" and quadratic.norm2 < least_norm2:
            return "degenerate"
        tolerance = max(quadratic.xi, 0.0) + eta * quadratic.rho
        if solution.statistics.violation <= tolerance:
            return "converged"
        if len(lowers) > self.max_planes or kernels.stalls(np.array(lowers)):
            return "stalled"
        return None

    def _row(self, solution: SubproblemResult, planes: int) -> Row:
        """Return the history row of a sweep."""
        return {
            "C": solution.C,
            "objective": solution.objective,
            "primal": solution.primal,
            "norm": solution.quadratic.norm2**0.5,
            "rho": solution.quadratic.rho,
            "violation": solution.statistics.violation - solution.quadratic.xi,
            "planes": planes,
            "changed": solution.statistics.changed,
        }


class ExactWorkingSet(WorkingSet):
    """Cutting planes with all rows as the basis (Alg. 2).

    The features are the kernel matrix itself. The coefficients of a plane follow
    directly from the labels of its rows, so the kernel matrix is not inverted.
    """

    def relabel(self, labels: Labels) -> None:
        """Rebuild all cutting planes under new labels."""
        self.labels = labels
        n = self.training_set.n_samples
        shares = row_shares(n, self.training_set.weights)
        gram = self.training_set.features.block(0, n)
        y = labels.block(gram, 0, n)
        decisions = []
        rhos = []
        for hyperplane, rho in self.generators:
            decisions.append(gram @ hyperplane.coef + hyperplane.offset)
            rhos.append([rho])
        active = y * np.array(decisions) <= np.array(rhos)
        signed = active * y * shares
        self.s = active @ shares
        self.t = signed.sum(axis=1)
        self.centred = signed @ gram - np.outer(self.t, self.training_set.mean)
        self.coefs = signed - np.outer(self.t, shares)

    def find_most_violated(
        self, labels: Labels, hyperplane: Any, rho: float
    ) -> NewPlane:
        """Find the constraint that a hyperplane violates most, in one sweep."""
        violated = self.training_set.most_violated(labels, hyperplane, rho)
        n = violated.active.size
        signed = violated.active * labels.block(None, 0, n)
        shares = row_shares(n, self.training_set.weights)
        statistics = violated.statistics
        coef = (signed - statistics.signed) * shares
        generator = Generator(hyperplane, rho)
        return NewPlane(generator, statistics, violated.centred, coef)


class SampleWorkingSet(WorkingSet):
    """Cutting planes of a dense sample in memory, with a compiled loop.

    The loop is `mmcnb.kernels.unchecked.sample_subproblem`. For each plane, a mask of
    its rows is also stored, with one byte per row, so that updating the plane to new
    labels needs only the rows whose label changes. The compiled loop supports only an
    adaptive threshold and a balance of 0. For other forms of the objective, and if
    labels are not stored, the loop of `WorkingSet` is used.
    """

    # The planes at the end of the last compiled loop; None before the first loop.
    state: "SamplePlanes | None" = None

    def cutting_plane(
        self,
        labels: Labels,
        objective: Objective,
        C: float,
        eta: float,
        record: Record,
        budget: SweepBudget,
    ) -> SubproblemResult:
        """Solve the subproblem; see `WorkingSet.cutting_plane`.

        Sweeps of the compiled loop do not count against the budget, which limits passes
        over rows that are not in memory.
        """
        rows = self.training_set
        if objective.threshold == "fixed" or objective.balance or not rows.hold_labels:
            return super().cutting_plane(labels, objective, C, eta, record, budget)
        n = rows.n_samples
        least_norm2 = DEGENERATE * objective.total_variance
        sample_rows = kernels.SampleRows(
            np.ascontiguousarray(rows.features.block(0, n)),
            labels.block(None, 0, n),
            row_shares(n, rows.weights),
            rows.mean,
            rows.inverses[0],
        )
        limits = kernels.Limits(float(C), float(eta), least_norm2, self.max_planes)
        start = self.state or self._start()
        result = kernels.sample_subproblem(sample_rows, start, limits)
        self.state = result.state
        self.generators = [_generator(plane) for plane in result.state.planes]
        status = STATUS[result.status]
        if status == "unsolved":
            raise PlaneQPError(NO_SOLUTION)
        hyperplane = Hyperplane(result.hyperplane[:-1], float(result.hyperplane[-1]))
        for sweep in map(kernels.Sweep._make, result.history.tolist()):
            statistics = ConstraintStatistics(
                active=sweep.active,
                signed=sweep.signed,
                violation=sweep.violation,
                positive=sweep.above,
                changed=sweep.changed * rows.total_weight,
                hinge=sweep.hinge,
            )
            quadratic = PlaneSolution(
                result.multipliers, sweep.rho, sweep.xi, 0.0, sweep.norm2
            )
            solution = SubproblemResult(
                hyperplane, quadratic, C, "adaptive", statistics, status
            )
            record(self._row(solution, int(sweep.planes)))
        return solution

    def _start(self) -> "SamplePlanes":
        """Return the generators as `SamplePlanes` whose row masks are all 0."""
        n = self.training_set.n_samples
        p = self.training_set.mean.shape[0]
        n_planes = len(self.generators)
        planes = np.zeros((n_planes, 3 * p + 3))
        for plane, (hyperplane, rho) in zip(planes, self.generators, strict=True):
            plane[:p] = hyperplane.coef
            plane[p] = hyperplane.offset
            plane[p + 1] = rho
        members = np.zeros((n_planes, n), np.int8)
        signs = np.zeros(n, np.int8)  # no label is 0, so all rows count as changed
        return kernels.SamplePlanes(planes, members, signs)


def _generator(plane: np.ndarray) -> Generator:
    """Return the generator stored in a row of the plane array of `SamplePlanes`."""
    p = (plane.shape[0] - 3) // 3
    return Generator(Hyperplane(plane[:p], float(plane[p])), float(plane[p + 1]))

"""Divisions of a sample into k clusters, made better by the hinge form at rising C."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from mmcnb.engine import Engine
from mmcnb.samples import Samples
from mmcnb.selection.divide import Division
from mmcnb.solvers import (
    ClustersProblem,
    CrammerSingerPlanes,
    GivenLabels,
    Objective,
    Partition,
    Rounds,
    SweepBudget,
    continuation,
    cutting_plane,
    random_labels,
)
from mmcnb.solvers.cutting_plane import Record

RANDOM_PLANES, LOOSE_ETA = 200, 0.1
FIRST_C = 2.0  # labels that least squares found start here; coin flips would need C near 1


class HingeRefinement:
    """Labels of a sample followed through rising C, their sizes held.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    values : Samples
        Landmark features of the sample.
    metric : ndarray of shape (p, r)
        M with MM' the inverse of the kernel matrix of the landmarks.
    weights : ndarray of shape (m,)
        Weights of the rows.
    wanted : Division
        What is asked of a division.
    objective : Objective
        Form of the problem.
    path : sequence of float
        Rising values of C.
    eta : float
        Tolerance of the last rounds.
    limits : Rounds
        When rounds stop.
    """

    def __init__(
        self,
        engine: Engine,
        values: Samples,
        metric: np.ndarray,
        weights: np.ndarray,
        wanted: Division,
        objective: Objective,
        path: Sequence[float],
        eta: float,
        limits: Rounds,
    ) -> None:
        self.engine, self.values, self.metric, self.weights = engine, values, metric, weights
        self.wanted, self.objective, self.eta, self.limits = wanted, objective, eta, limits
        self.path = tuple(C for C in path if C >= FIRST_C) or tuple(path[-1:])
        self.sweeps: dict[int, list[dict[str, Any]]] = {}

    def planes(self, labels: np.ndarray) -> CrammerSingerPlanes:
        """A working set, with the bounds of clusters that have the sizes of some labels."""
        sizes = np.bincount(labels, self.weights, self.wanted.n_clusters)
        bounds = self.wanted.bounds_by_size(sizes)
        problem = ClustersProblem(self.engine, self.values, self.metric, bounds, self.weights, True)
        return CrammerSingerPlanes(problem)

    def __call__(self, start: Partition) -> np.ndarray | None:
        """The labels at the last C at which they can be separated; None where there is none."""
        rows = self.sweeps[start.start] = []

        def keep(row: dict[str, Any]) -> None:
            rows.append(row | {"stage": "sample", "start": start.start, "clock": time.perf_counter()})

        labels = GivenLabels(start.labels)
        planes = self.planes(start.labels)
        state = continuation(planes, labels, self.objective, self.path, self.eta, self.limits, keep)
        return None if state is None else state.labels.block(None, 0, start.labels.shape[0])

    def random_norm2(self, C: float, seed: int) -> float:
        """|W|² that random labels reach at one C: what a division has to beat."""
        shares, m = self.wanted.shares, self.weights.shape[0]
        labels = random_labels(m, shares, np.random.RandomState(seed))
        planes = self.planes(labels)
        planes.resign(GivenLabels(labels))
        planes.most_planes = RANDOM_PLANES
        solution = cutting_plane(
            planes, GivenLabels(labels), self.objective, C, LOOSE_ETA, lambda row: None, SweepBudget()
        )
        return solution.quadratic.norm2

    def tell(self, record: Record) -> None:
        """Hand all sweeps to a record, start by start."""
        for start in sorted(self.sweeps):
            for row in self.sweeps[start]:
                record(row)

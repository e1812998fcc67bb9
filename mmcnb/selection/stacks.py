"""A sample under several kernels side by side, each centred and scaled to one spread, and its clusters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb._errors import InputError
from mmcnb.engine import Engine, KernelSamples, KernelStack, as_matrix, cache_features
from mmcnb.samples import Samples
from mmcnb.selection.coarse import Candidate, Search, Trial, gathered, spread_of
from mmcnb.selection.divide import Division, divide
from mmcnb.solvers import (
    ClustersProblem,
    GivenLabels,
    KernelClustersPlanes,
    KernelPlanes,
    Objective,
    Problem,
    canonical_labels,
    continuation,
    metric_of,
    principal_features,
)
from mmcnb.solvers.cutting_plane import Record

FIRST_C = 2.0  # labels that least squares found start here; coin flips would need C near 1
TIE = 1e-6
NO_SPREAD = {False: 1e-6, True: 1e-10}  # of the kernel values, in float32 and in float64: rounding alone
NEGATIVE = 1e-6  # eigenvalue below 0, as a share of the largest, that rounding explains
SAME = 1e-9


@dataclass(frozen=True)
class StackedSample:
    """The sample under several kernels.

    Parameters
    ----------
    kernels : KernelStack
        The kernels.
    features : Samples
        Their values against the basis, side by side.
    metric : tuple of ndarray
        For each kernel M with M M' the inverse of its matrix of the basis, in units of its spread.
    columns : tuple of slice
        The features of each kernel.
    basis : ndarray of shape (p, d)
        Basis vectors, of all kernels.
    z : ndarray of shape (m, r)
        The sample in coordinates in which the sum of the kernels is an inner product.
    weights : ndarray of shape (m,) or None
        Sample weights.
    """

    kernels: KernelStack
    features: Samples
    metric: tuple[np.ndarray, ...]
    columns: tuple[slice, ...]
    basis: np.ndarray
    z: np.ndarray
    weights: np.ndarray | None

    def candidate(self, engine: Engine) -> Candidate:
        """What the search for two clusters tries."""
        given = self.features, self.metric, self.weights
        problem = Problem(engine, *given, hold_labels=True, basis=self.basis)
        return Candidate(self.kernels, self.z, self.weights, lambda: KernelPlanes(problem, self.columns))

    def clusters_candidate(self, engine: Engine, bounds: tuple[np.ndarray, np.ndarray]) -> Candidate:
        """What the search for more clusters tries, their sizes within some bounds."""
        problem = ClustersProblem(engine, self.features, self.metric, bounds, self.weights, hold_labels=True)
        problem.basis = self.basis
        return Candidate(
            self.kernels, self.z, self.weights, lambda: KernelClustersPlanes(problem, self.columns)
        )


def stack_sample(
    sample: Samples, kernels: KernelStack, basis: np.ndarray, weights: np.ndarray | None, exact: bool = False
) -> StackedSample:
    """Map a sample by several kernels, scaled so that each has a spread of 1, trace(K̃)/n = 1.

    Without that the weights of the kernels would tell of their scale.

    Parameters
    ----------
    sample : Samples
        The rows, in memory.
    kernels : KernelStack
        The kernels.
    basis : ndarray of shape (p, d)
        Basis vectors.
    weights : ndarray of shape (m,) or None
        Sample weights.
    exact : bool, default=False
        Whether every different row is a basis vector: then the numbers are exact too.

    Raises
    ------
    InputError
        If the landmarks are too few to tell rows apart under some kernel.
    """
    dtype, tolerance = (np.float64, 1e-12) if exact else (np.float32, 1e-6)
    features = cache_features(KernelSamples(sample, kernels.against(basis), dtype), "memory")
    columns = kernels.slices(basis.shape[0])
    values = as_matrix(features.block(0, features.n_samples)).astype(np.float64)
    metrics, parts = [], []
    for k, (gram, one) in enumerate(zip(grams_of(kernels, basis), columns, strict=True)):
        metric = metric_of(gram, tolerance)
        z = values[:, one] @ metric
        spread = spread_of(z, weights)
        if not spread > 0:
            raise InputError(
                f"kernel {k} has the same values for all rows against {basis.shape[0]} landmarks; give more "
                "of them."
            )
        metrics.append(metric / np.sqrt(spread))
        parts.append(z / np.sqrt(spread))
    return StackedSample(
        kernels, features, tuple(metrics), columns, basis, _narrow(np.hstack(parts)), weights
    )


def _narrow(z: np.ndarray) -> np.ndarray:
    """Coordinates of the same inner products, no more of them than rows."""
    if z.shape[1] <= z.shape[0]:
        return z
    values, vectors = np.linalg.eigh(z @ z.T)
    return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def grams_of(kernels: KernelStack, basis: np.ndarray) -> list[np.ndarray]:
    """The matrix of each kernel between basis vectors, symmetric."""
    basis = basis.astype(np.float64)
    values = kernels(basis, basis)
    return [(values[:, one] + values[:, one].T) / 2 for one in kernels.slices(basis.shape[0])]


def check_kernels(kernels: KernelStack, names: Sequence[str], basis: np.ndarray, exact: bool = False) -> None:
    """Refuse kernels that are none, or say nothing.

    Raises
    ------
    InputError
        Naming the kernel: not symmetric, a clearly negative eigenvalue, the same for all rows, or a copy.
    """
    basis = basis.astype(np.float64)
    values = kernels(basis, basis)
    seen: list[np.ndarray] = []
    for name, one in zip(names, kernels.slices(basis.shape[0]), strict=True):
        gram = values[:, one]
        largest = np.abs(gram).max()
        if np.abs(gram - gram.T).max() > NEGATIVE * largest:
            raise InputError(
                f"kernel {name} is not symmetric: k(x, b) is not k(b, x); give a kernel that is."
            )
        low, *_, high = np.linalg.eigvalsh((gram + gram.T) / 2) if len(gram) > 1 else (gram[0, 0],) * 2
        if low < -NEGATIVE * max(abs(high), abs(low)):
            raise InputError(
                f"kernel {name} has an eigenvalue of {low:.3g} beside one of {high:.3g}, so it is no inner "
                "product; give a positive semidefinite kernel."
            )
        centred = centred_gram(gram, exact)
        if centred is None:
            raise InputError(
                f"kernel {name} is the same for all rows, but for rounding, which tells none apart; leave it "
                "out, or centre the columns where they are far from 0, as scale='standard' does."
            )
        for other, before in zip(names, seen, strict=False):
            if np.abs(centred - before).max() <= SAME:
                raise InputError(
                    f"kernel {name} is kernel {other} again, but for scale and centre, and a copy would add "
                    "weight to it; give each kernel once."
                )
        seen.append(centred)


def distinct_kernels(kernels: KernelStack, basis: np.ndarray, exact: bool = False) -> list[int]:
    """Numbers of the kernels that tell rows apart and are no copy of one before."""
    seen: dict[int, np.ndarray] = {}
    for k, gram in enumerate(grams_of(kernels, basis)):
        centred = centred_gram(gram, exact)
        if centred is not None and all(np.abs(centred - one).max() > SAME for one in seen.values()):
            seen[k] = centred
    return list(seen)


def centred_gram(gram: np.ndarray, exact: bool = False) -> np.ndarray | None:
    """A kernel matrix in centred features, of trace 1; None where nothing is left but rounding.

    ``exact`` says that kernel values are held in float64; otherwise they are in float32.
    """
    held = np.finfo(np.float64 if exact else np.float32)
    largest = float(np.abs(gram).max())
    if not float(held.tiny) < largest < float(held.max) * float(held.eps):
        return None
    centred = gram - gram.mean(axis=0)
    centred = centred - centred.mean(axis=1)[:, None]
    trace = float(np.trace(centred))
    return centred / trace if trace > NO_SPREAD[exact] * largest * len(gram) else None


def search_clusters(
    engine: Engine,
    sample: StackedSample,
    wanted: Division,
    search: Search,
    record: Record,
    random_state: np.random.RandomState,
    separable: bool = True,
) -> Trial | None:
    """Divide a sample by least squares, and follow the best divisions through rising C.

    Parameters
    ----------
    engine : Engine
        Its threads share the starts.
    sample : StackedSample
        The sample.
    wanted : Division
        What is asked of a division; the sizes are held while it is sought, and free but for a floor after.
    search : Search
        What to try.
    record : callable
        Called with one dict a sweep.
    random_state : RandomState
        Source of randomness.
    separable : bool, default=True
        Whether a fit whose margin is nothing is none.

    Returns
    -------
    Trial or None
        The best objective wins; None where no division can be separated.
    """
    z = sample.z / np.sqrt(len(sample.columns))
    features = principal_features(z, sample.weights)
    K = z @ z.T if sample.weights is None else None
    divisions = divide(engine, K, features, wanted, random_state)
    distinct = {canonical_labels(one.labels).tobytes(): one.labels for one in divisions}
    starts = list(distinct.values())[: search.n_init]
    bounds = wanted.floor(features.total if sample.weights is None else float(sample.weights.sum()))
    candidate = sample.clusters_candidate(engine, bounds)
    form = Objective(
        search.threshold, search.balance, spread_of(sample.z, sample.weights) if separable else 0.0
    )
    path = tuple(C for C in search.path if C >= FIRST_C) or search.path[-1:]

    def follow(number: int) -> tuple[Trial | None, list[dict[str, Any]]]:
        labels, planes = GivenLabels(starts[number]), candidate.new_planes()
        rows, keep = gathered({"stage": "sample", "start": number})
        state = continuation(planes, labels, form, path, search.eta, search.limits, keep)
        if state is None:
            return None, rows
        found = state.labels.block(None, 0, sample.features.n_samples)
        return Trial(candidate, form, planes, state, found, number, (form.gain(state.solution),)), rows

    best: Trial | None = None
    for trial, rows in engine.each(follow, range(len(starts))):
        for row in rows:
            record(row)
        if trial is not None and trial.beats(best, TIE):
            best = trial
    return best

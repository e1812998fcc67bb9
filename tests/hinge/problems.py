"""Small problems, seen both by the solvers and by their naive twins."""

import numpy as np

from mmcnb.features.kernel import BasisMap, Kernel, KernelSamples
from mmcnb.features.nystroem import normalization_of
from mmcnb.features.rules import GivenLabels
from mmcnb.hinge.cutting_plane import ExactWorkingSet, SampleWorkingSet, WorkingSet
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.samples import open_samples


def two_groups(n, seed=0, gap=2.0):
    """Rows of two overlapping groups and labels that are right for most of them."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1, -1)
    X = rng.standard_normal((n, 2))
    X[:, 0] += gap / 2 * y
    flipped = rng.random(n) < 0.1
    return X, np.where(flipped, -y, y).astype(np.int8)


def rings(n, seed=0):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = np.where(np.arange(n) % 2, 1.0, 0.4)
    return np.c_[np.cos(angle), np.sin(angle)] * radius[
        :, None
    ] + 0.05 * rng.standard_normal((n, 2))


def make_planes(kind, engine, X, gamma=0.5, weights=None, hold_labels=True):
    """Planes of a kind, and the kernel matrix (or inner products) of the rows they stand for."""
    samples = open_samples(X)
    kernel = Kernel("rbf", gamma)
    if kind == "linear":
        return WorkingSet(
            TrainingSet(engine, samples, None, weights, hold_labels)
        ), X @ X.T
    basis = X
    if kind in ("landmarks", "sample"):
        basis = X[: max(2, len(X) // 2)]
    features = KernelSamples(samples, BasisMap(kernel, basis), np.float64)
    if kind == "exact":
        return ExactWorkingSet(
            TrainingSet(engine, features, None, weights, hold_labels)
        ), kernel(X, X)
    normalization = normalization_of(
        kernel(basis, basis), 1e-13 if kind == "all rows" else 1e-7
    )
    z = kernel(X, basis) @ normalization
    make = SampleWorkingSet if kind == "sample" else WorkingSet
    return make(
        TrainingSet(engine, features, normalization, weights, hold_labels)
    ), z @ z.T


def given(y):
    return GivenLabels(np.asarray(y, np.int8))


def ignore(row):
    """A record that nobody keeps."""

"""Planes whose basis grows: what they say of Ψ is its projection on the basis they hold."""

import numpy as np
import pytest

from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import normalization_of
from mmcnb.hinge.landmarks import GrowingWorkingSet
from mmcnb.samples import open_samples
from tests.hinge.problems import given, two_groups

GAMMA = 0.5


def grown(engine, X, y, weights=None, count=4):
    """Planes of random hyperplanes, and the 0/1 vectors and coefficients of the planes they stand for."""
    planes = GrowingWorkingSet(engine, open_samples(X), Kernel("rbf", GAMMA), weights, 0)
    shares = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    planes.relabel(given(y))
    rng = np.random.default_rng(1)
    for _ in range(count):
        multipliers = rng.random(len(planes.s))
        found = planes.find_most_violated(
            given(y), planes.hyperplane(multipliers, 0.05 * rng.standard_normal()), 0.1
        )
        planes.add(found)
    return planes, np.array(planes.generators) * y * shares, shares


@pytest.mark.parametrize("weighted", [False, True])
def test_shared_planes_are_projected_on_the_span_of_the_basis(engine, weighted):
    X, y = two_groups(40)
    weights = np.random.default_rng(2).integers(1, 4, 40).astype(float) if weighted else None
    planes, a, shares = grown(engine, X, y, weights)
    kernel = Kernel("rbf", GAMMA)
    z = kernel(X, planes.basis) @ normalization_of(kernel(planes.basis, planes.basis))
    centred = a @ z - np.outer(a.sum(axis=1), shares @ z)
    np.testing.assert_allclose(planes.gram, centred @ centred.T, atol=1e-5)
    np.testing.assert_allclose(planes.s, np.array(planes.generators) @ shares, rtol=1e-12)
    np.testing.assert_allclose(planes.t, a.sum(axis=1), atol=1e-12)


def test_shared_basis_never_overstates_a_plane_and_gains_with_each(engine):
    X, y = two_groups(40)
    kernel = Kernel("rbf", GAMMA)
    K = kernel(X, X)
    H = np.eye(40) - 1 / 40
    lost = []
    for count in (1, 3, 8):
        planes, a, _ = grown(engine, X, y, count=count)
        exact = np.diag(a @ H @ K @ H @ a.T)
        assert (np.diag(planes.gram) <= exact + 1e-6).all()
        lost.append(1 - planes.gram[0, 0] / exact[0])
    assert lost == sorted(lost, reverse=True)


def test_same_seed_grows_the_same_basis(engine):
    X, y = two_groups(40)
    one, other = (grown(engine, X, y)[0] for _ in range(2))
    np.testing.assert_array_equal(one.basis, other.basis)
    np.testing.assert_array_equal(one.gram, other.gram)

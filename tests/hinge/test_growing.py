"""Planes whose basis grows: what they say of Ψ is its projection on the basis they hold."""

import numpy as np
import pytest

from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import normalization_of
from mmcnb.hinge.growing import GrowingWorkingSet, OwnBasisWorkingSet, Rows
from mmcnb.samples import open_samples
from tests.hinge.problems import given, two_groups

GAMMA = 0.5


def grown(engine, planes, X, y, weights=None, count=4):
    """Planes of random hyperplanes, and the 0/1 vectors and coefficients of the planes they stand for."""
    planes = planes(Rows(engine, open_samples(X), Kernel("rbf", GAMMA), weights, 0))
    shares = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    planes.relabel(given(y))
    rng = np.random.default_rng(1)
    for _ in range(count):
        multipliers = rng.random(len(planes.s))
        found, _ = planes.find_most_violated(
            given(y), planes.hyperplane(multipliers, 0.05 * rng.standard_normal()), 0.1
        )
        planes.add(found)
    return planes, np.array(planes.generators) * y * shares, shares


@pytest.mark.parametrize("weighted", [False, True])
def test_shared_planes_are_projected_on_the_span_of_the_basis(engine, weighted):
    X, y = two_groups(40)
    weights = np.random.default_rng(2).integers(1, 4, 40).astype(float) if weighted else None
    planes, a, shares = grown(engine, GrowingWorkingSet, X, y, weights)
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
        planes, a, _ = grown(engine, GrowingWorkingSet, X, y, count=count)
        exact = np.diag(a @ H @ K @ H @ a.T)
        assert (np.diag(planes.gram) <= exact + 1e-6).all()
        lost.append(1 - planes.gram[0, 0] / exact[0])
    assert lost == sorted(lost, reverse=True)


def test_own_planes_are_one_bump_each(engine):
    X, y = two_groups(40)
    planes, a, _ = grown(engine, OwnBasisWorkingSet, X, y)
    kernel = Kernel("rbf", GAMMA)
    np.testing.assert_allclose(
        planes.gram, planes.coefs @ kernel(planes.basis, planes.basis) @ planes.coefs.T
    )
    # A plane lives on its own vector and on the mean's, and its size there is that of the best single bump.
    for k, position in enumerate(planes.positions):
        elsewhere = np.delete(planes.coefs[k], [0, position])
        np.testing.assert_array_equal(elsewhere, 0)
        if position:
            bump = a[k] @ kernel(X, planes.basis[position : position + 1])[:, 0]
            assert planes.coefs[k, position] == pytest.approx(bump, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("planes", [GrowingWorkingSet, OwnBasisWorkingSet])
def test_same_seed_grows_the_same_basis(engine, planes):
    X, y = two_groups(40)
    one, other = (grown(engine, planes, X, y)[0] for _ in range(2))
    np.testing.assert_array_equal(one.basis, other.basis)
    np.testing.assert_array_equal(one.gram, other.gram)


def test_a_basis_that_begins_anew_with_its_first_vector_fits_its_planes(engine, monkeypatch):
    X, y = two_groups(40)
    planes, _, _ = grown(engine, OwnBasisWorkingSet, X, y)
    assert planes.basis.shape[0] > 1
    monkeypatch.setattr(planes, "_fixed_point", lambda z: planes.basis[0])
    planes.relabel(given(-y))
    assert planes.gram_of_basis.shape == (1, 1)
    assert planes.centred.shape == (1, 1)
    assert planes.training_set.features.n_features == 1

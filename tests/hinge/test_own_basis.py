"""Planes with basis vectors of their own: what they say of rows, and fits in any storage."""

import numpy as np
import pytest

import mmcnb
from mmcnb.errors import InputError
from mmcnb.features.kernel import Kernel
from mmcnb.hinge.own_basis import OwnBasisWorkingSet
from mmcnb.samples import open_samples
from tests.hinge.problems import given, two_groups

KERNEL = Kernel("rbf", 0.2)


def planes_of(engine, X, y, weights=None, count=3):
    planes = OwnBasisWorkingSet(engine, open_samples(X), KERNEL, weights, 0)
    planes.relabel(given(y))
    for _ in range(count):
        solution = planes.solve(5.0, 0.0, "adaptive")
        hyperplane = planes.hyperplane(solution.multipliers, solution.beta)
        planes.add(planes.find_most_violated(given(y), hyperplane, solution.rho))
    return planes


@pytest.mark.parametrize("weighted", [False, True])
def test_planes_are_differences_of_estimates(engine, weighted):
    X, y = two_groups(60)
    weights = np.random.default_rng(2).integers(1, 4, 60).astype(float) if weighted else None
    shares = np.full(60, 1 / 60) if weights is None else weights / weights.sum()
    planes = planes_of(engine, X, y, weights)
    active = np.array(planes.generators)
    np.testing.assert_allclose(planes.s, active @ shares, rtol=1e-12)
    np.testing.assert_allclose(planes.t, (active * y) @ shares, atol=1e-12)
    mean = planes.mean
    for k, rows in enumerate(active):
        z = 60 * rows * y * shares
        own = mmcnb.estimate_basis(X, z, gamma=KERNEL.gamma, random_state=0)
        probe = KERNEL(X, own.basis) @ own.beta - planes.t[k] * (KERNEL(X, mean.basis) @ mean.beta)
        np.testing.assert_allclose(KERNEL(X, planes.basis) @ planes.coefs[k], probe, atol=1e-12)
    K = KERNEL(planes.basis, planes.basis)
    np.testing.assert_allclose(planes.gram, planes.coefs @ K @ planes.coefs.T, atol=1e-14)
    assert len(planes.basis) == 5  # of the mean, and of each plane
    assert planes.evaluations >= 10


def test_new_labels_start_anew(engine):
    X, y = two_groups(60)
    planes = planes_of(engine, X, y)
    planes.relabel(given(-y))
    assert len(planes.s) == 1
    assert len(planes.basis) == 2
    assert planes.t[0] == pytest.approx(-y.mean())


def blobs(n=900, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    return (random.standard_normal((n, 4)) + 4.0 * y[:, None]).astype(np.float32), y


def paper(**parameters):
    return mmcnb.SparseKernelMMC(basis="paper", random_state=0, n_init=2, **parameters)


@pytest.mark.parametrize("parameters", [{}, {"continuation": False, "eta": 1.0}, {"threshold": "fixed"}])
def test_groups_are_found_and_the_objective_is_the_recomputed_one(parameters):
    X, y = blobs()
    model = paper(**parameters).fit(X)
    assert max(np.mean(model.labels_ == y), np.mean(model.labels_ != y)) > 0.98
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    f, rho = model.decision_function(X), model.rho_
    basis, coef = model.model_.basis, model.model_.rule.coef
    norm2 = coef @ KERNEL.__class__("rbf", model.gamma_)(basis, basis) @ coef
    fixed = parameters.get("threshold") == "fixed"
    expected = 0.5 * norm2 - (0.0 if fixed else rho) + 10.0 * np.maximum(0.0, rho - np.abs(f)).mean()
    assert model.objective_ == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert len(basis) <= len(model.history_) + 1


def test_storages_threads_and_checkpoints_give_the_same_bits(tmp_path):
    X, _ = blobs(9000)
    models = [paper(n_jobs=1).fit(X)]
    with mmcnb.stores.create_dense_store(tmp_path / "a.zarr", 4, chunk_rows=1000) as store:
        store.append(X)
    models.append(paper(n_jobs=2).fit(tmp_path / "a.zarr"))
    models.append(paper(checkpoint=tmp_path / "kept").fit(tmp_path / "a.zarr"))
    models.append(paper(checkpoint=tmp_path / "kept").fit(tmp_path / "a.zarr"))
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_array_equal(model.model_.basis, models[0].model_.basis)
        np.testing.assert_array_equal(model.model_.rule.coef, models[0].model_.rule.coef)
    assert models[-1].history_["resumed"].any()


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"kernel": "linear"}, "basis='paper' needs kernel='rbf', not 'linear'"),
        ({"n_landmarks": 5}, "basis='paper' has no landmarks"),
        ({"landmarks": np.zeros((2, 4))}, "basis='paper' has no landmarks"),
    ],
)
def test_what_does_not_fit_is_refused(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        paper(**parameters).fit(blobs()[0])

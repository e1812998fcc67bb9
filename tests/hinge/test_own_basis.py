"""Planes with basis vectors of their own: what they say of rows, and fits in any storage."""

import numpy as np
import pytest

import mmcnb
from mmcnb.errors import InputError
from mmcnb.features.kernel import Kernel
from mmcnb.hinge.own_basis import OwnBasisWorkingSet
from mmcnb.samples import open_samples
from tests import reference
from tests.hinge.problems import given, two_groups

KERNEL = Kernel("rbf", 0.2)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_hyperplane_is_a_sum_of_estimated_planes_and_new_labels_start_anew(
    engine, weighted
):
    X, y = two_groups(60)
    weights = (
        np.random.default_rng(2).integers(1, 4, 60).astype(float) if weighted else None
    )
    shares = np.full(60, 1 / 60) if weights is None else weights / weights.sum()
    planes = OwnBasisWorkingSet(engine, open_samples(X), KERNEL, weights, 0)

    def estimated(z):
        own = mmcnb.estimate_basis(X, 60 * z, gamma=KERNEL.gamma, random_state=0)
        return KERNEL(X, own.basis) @ own.beta

    for labels in (y, -y):
        planes.relabel(given(labels))
        members = [np.ones(60)]
        for _ in range(3):
            solution = planes.solve(5.0, 0.0, "adaptive")
            hyperplane = planes.hyperplane(solution.multipliers, solution.beta)
            f = planes.training_set.decide(hyperplane)
            signed = np.array(members) * labels * shares
            of_planes = [estimated(z) - z.sum() * estimated(shares) for z in signed]
            w = solution.multipliers @ np.array(of_planes)
            np.testing.assert_allclose(f - f[0], w - w[0], atol=1e-9)
            active = planes.find_most_violated(given(labels), hyperplane, solution.rho)
            members.append(labels * f <= solution.rho)
            planes.add(active)
    assert len(planes.basis) == 5  # of the mean, and of each plane


def blobs(n=600):
    random = np.random.default_rng(0)
    y = random.integers(0, 2, n)
    return (random.standard_normal((n, 4)) + 4.0 * y[:, None]).astype(np.float32), y


def paper(**parameters):
    return mmcnb.SparseKernelMMC(basis="paper", random_state=0, n_init=2, **parameters)


@pytest.mark.parametrize(
    "parameters", [{}, {"continuation": False, "eta": 1.0}, {"threshold": "fixed"}]
)
def test_groups_are_found_and_the_objective_is_the_recomputed_one(parameters):
    X, y = blobs()
    model = paper(**parameters).fit(X)
    assert max(np.mean(model.labels_ == y), np.mean(model.labels_ != y)) > 0.98
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    f, (basis, coef) = (
        model.decision_function(X),
        (model.model_.basis, model.model_.rule.coef),
    )
    norm2 = coef @ Kernel("rbf", model.gamma_)(basis, basis) @ coef
    form = parameters.get("threshold", "adaptive")
    expected = reference.hinge_objective(
        f, np.where(f < 0, -1, 1), norm2, model.rho_, 10.0, threshold=form
    )
    assert model.objective_ == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert len(basis) <= len(model.history_) + 1


@pytest.mark.slow
def test_storages_threads_and_checkpoints_give_the_same_bits(tmp_path):
    X, _ = blobs(4200)
    short = {"init": "k-means", "continuation": False, "eta": 1.0}
    with mmcnb.stores.create_dense_store(
        tmp_path / "a.zarr", 4, chunk_rows=1000
    ) as store:
        store.append(X)
    models = [
        paper(n_jobs=1, **short).fit(X),
        paper(n_jobs=2, **short).fit(tmp_path / "a.zarr"),
    ]
    models += [
        paper(checkpoint=tmp_path / "kept", **short).fit(tmp_path / "a.zarr")
        for _ in range(2)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_array_equal(model.model_.basis, models[0].model_.basis)
        np.testing.assert_array_equal(
            model.model_.rule.coef, models[0].model_.rule.coef
        )
    assert models[-1].history_["resumed"].any()


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"kernel": "linear"}, "basis='paper' needs kernel='rbf', not 'linear'"),
        ({"n_landmarks": 5}, "basis='paper' does not use landmarks"),
        ({"landmarks": np.zeros((2, 4))}, "basis='paper' does not use landmarks"),
    ],
)
def test_what_does_not_fit_is_refused(parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        paper(**parameters).fit(blobs()[0])

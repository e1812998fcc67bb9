"""The basis of a mean: the plain form of Algorithm 4, its laws, and the same bits wherever rows lie."""

import re

import numpy as np
import pytest
import scipy.sparse
import zarr

import mmcnb
from mmcnb.engine.checkpoint import recorded_passes
from mmcnb.errors import InputError, MemoryLimitError
from tests import reference

GAMMA = 0.3


def problem(n=300, d=3, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + 3.0 * (np.arange(n) % 2)[:, None]
    return X, random.choice([-1.0, 0.0, 1.0], n)


def estimate(X, z, **parameters):
    return mmcnb.estimate_basis(
        X, z, **({"gamma": GAMMA, "random_state": 0} | parameters)
    )


@pytest.mark.parametrize(
    ("n_basis", "form"), [(3, np.asarray), (1, scipy.sparse.csr_array)]
)
def test_vectors_are_those_of_the_plain_form(n_basis, form):
    X, z = problem()
    found = estimate(form(X), z, n_basis=n_basis, tol=0.0)
    basis, beta, steps = reference.estimated_basis(
        X, z, GAMMA, n_basis, 0.01, np.random.RandomState(0)
    )
    np.testing.assert_allclose(found.basis, basis, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.beta, beta, rtol=1e-5)
    assert found.n_iter == steps
    K = reference.rbf_kernel_block(np.vstack([X, basis]), np.vstack([X, basis]), GAMMA)
    coefficients = np.append(z / len(X), -beta)
    assert found.mse == pytest.approx(coefficients @ K @ coefficients, rel=1e-5)


@pytest.mark.parametrize(("seed", "is_last"), [(0, False), (3, True), (5, True)])
def test_the_vector_is_the_visited_point_with_the_largest_denominator(seed, is_last):
    X, z = problem()
    found = estimate(X, z, random_state=seed)
    rows = np.unique(np.random.RandomState(seed).randint(300, size=5))
    b = X[rows].mean(axis=0)
    visited = []
    denominators = []
    for _ in range(found.n_iter):
        terms = z * np.exp(-GAMMA * ((X - b) ** 2).sum(axis=1))
        visited.append(b)
        denominators.append(abs(terms.sum()))
        b = terms @ X / terms.sum()
    best = int(np.argmax(denominators))
    assert (best == len(visited) - 1) == is_last
    np.testing.assert_allclose(found.basis[0], visited[best], rtol=1e-9)


def test_each_vector_leaves_a_smaller_rest_and_a_tolerance_ends_early():
    X, z = problem()
    errors = [estimate(X, z, n_basis=m, tol=0.0).mse for m in (1, 2, 4, 8)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.5 * errors[0]
    enough = estimate(X, z, n_basis=8, tol=errors[1])
    assert len(enough.basis) == 2
    assert estimate(X, z).mse is None


@pytest.mark.parametrize(
    "where",
    [
        {"n_jobs": 1},
        {"n_jobs": 2},
        pytest.param({"engine": "local:2"}, marks=pytest.mark.slow),
    ],
)
def test_stores_threads_and_clusters_give_the_same_bits(tmp_path, where):
    X, z = problem(9000)
    zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(777, 2))
    one = estimate(X, z, n_basis=2)
    other = estimate(tmp_path / "rows.zarr", z, n_basis=2, **where)
    np.testing.assert_array_equal(one.basis, other.basis)
    np.testing.assert_array_equal(one.beta, other.beta)


def test_a_call_goes_on_from_its_checkpoint(tmp_path):
    X, z = problem(9000)
    zarr.create_array(tmp_path / "rows.zarr", data=X)
    given = tmp_path / "rows.zarr", z
    one = estimate(*given, checkpoint=tmp_path / "kept")
    assert recorded_passes(tmp_path / "kept") == one.n_iter + 1
    again = estimate(*given, checkpoint=tmp_path / "kept")
    np.testing.assert_array_equal(again.basis, one.basis)
    with pytest.raises(InputError, match="delta"):
        estimate(*given, checkpoint=tmp_path / "kept", delta=0.5)


@pytest.mark.parametrize(
    ("z", "parameters", "sentence"),
    [
        (
            np.ones(299),
            {},
            r"coefficients has the shape \(299,\) for 300 rows; pass one number per row",
        ),
        (np.zeros(300), {}, "only zeros; pass finite values"),
        (np.full(300, np.nan), {}, "not finite"),
        (np.ones(300), {"n_basis": 301}, "n_basis"),
        (np.ones(300), {"delta": 0.0}, "delta"),
    ],
)
def test_bad_input_gets_one_sentence(z, parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        estimate(problem()[0], z, **parameters)


def test_coefficients_of_any_type_of_numbers_give_the_same_bits():
    X, z = problem()
    expected = estimate(X, z)
    for dtype in (np.int8, np.float32):
        found = estimate(X, z.astype(dtype))
        np.testing.assert_array_equal(found.basis, expected.basis)
        np.testing.assert_array_equal(found.beta, expected.beta)


def test_a_memory_limit_changes_no_bit_and_is_refused_if_it_is_too_small(tmp_path):
    X, z = problem()
    rows = zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(100, 3))
    expected = estimate(rows, z)
    with pytest.raises(MemoryLimitError, match=r"works is \d+ MiB\.$") as refused:
        estimate(rows, z, memory_limit="100MiB")
    least = re.search(r"works is (.*)\.$", str(refused.value))[1]
    found = estimate(rows, z, memory_limit=least)
    np.testing.assert_array_equal(found.basis, expected.basis)
    plan = mmcnb.basis_plan(rows, memory_limit=least)
    assert plan.peak <= plan.memory_limit

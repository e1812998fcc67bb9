"""Evolution of labels of two clusters: equal to its plain form, within its balance."""

import numpy as np
import pytest

from mmcnb import kernels
from tests import reference
from tests.kernels.test_moves import make_smoother


def make_forms(n):
    """R as a matrix, and as features whose product it is."""
    R = make_smoother(n)
    values, vectors = np.linalg.eigh(R)
    return [
        (R, True),
        (np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0))), False),
    ]


def make_population(mu, n):
    rng = np.random.default_rng(0)
    return np.array(
        [rng.permutation(np.where(np.arange(n) % 2, 1, -1)) for _ in range(mu)], np.int8
    )


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("flips", [[], [3], [5, 0, 7], list(range(12))])
def test_flips_change_the_fitness_as_from_scratch(form, flips):
    M, matrix = make_forms(12)[form]
    R = make_smoother(12)
    y = make_population(1, 12)[0]
    change, turned, product = kernels.flip_labels(
        M, matrix, y, y @ M, np.array(flips, np.int64)
    )
    expected = y.copy()
    expected[flips] *= -1
    np.testing.assert_array_equal(turned, expected)
    np.testing.assert_allclose(product, expected @ M, atol=1e-12)
    fitness = reference.two_cluster_loss(R, y) - change / 12
    assert reference.two_cluster_loss(R, expected) == pytest.approx(fitness, abs=1e-12)


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize(
    ("n", "mu", "nu", "limit"), [(4, 1, 1, 0), (14, 3, 2, 2), (14, 2, 5, 14)]
)
def test_evolution_equals_the_plain_form(form, n, mu, nu, limit):
    start = make_population(mu, n)
    found = kernels.evolve_labels(*make_forms(n)[form], start, limit, nu, 60, 25, 7)
    expected = reference.evolve_labels(make_smoother(n), start, limit, nu, 60, 25, 7)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], atol=1e-12)
    np.testing.assert_allclose(found[2], expected[2], atol=1e-8)


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("limit", [0, 6])
def test_thousands_of_generations_keep_the_balance_and_a_true_fitness(form, limit):
    M, matrix = make_forms(100)[form]
    population, fitness, best = kernels.evolve_labels(
        M, matrix, make_population(4, 100), limit, 4, 5000, 5000, 3
    )
    R = make_smoother(100)
    for y, F in zip(population.astype(float), fitness, strict=True):
        assert 1 - y @ R @ y / 100 == pytest.approx(F, abs=1e-10)
    assert (np.abs(population.sum(axis=1, dtype=int)) <= limit).all()
    assert best.shape == (5000,)
    assert (np.diff(best) <= 0).all()
    assert best[0] > best[-1] == fitness.min()


def test_patience_ends_an_evolution_that_is_no_better_but_beyond_the_tenth_digit():
    _, _, best = kernels.evolve_labels(
        make_smoother(12), True, make_population(1, 12), 0, 1, 10_000, 200, 0
    )
    assert best.shape[0] < 10_000
    start = make_population(3, 40)
    population, _, best = kernels.evolve_labels(
        1e-12 * make_smoother(40), True, start, 6, 5, 500, 30, 1
    )
    np.testing.assert_array_equal(population, start)
    assert best.shape == (30,)

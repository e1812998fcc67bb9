import numpy as np
import pytest

from mmcnb import InputError, kernels
from tests import reference
from tests.kernels.test_moves import make_smoother


def make_forms(n):
    """R as a matrix, and as features whose product it is."""
    R = make_smoother(n)
    values, vectors = np.linalg.eigh(R)
    return [(R, True), (np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0))), False)]


def make_population(mu, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(np.where(np.arange(n) % 2, 1, -1)) for _ in range(mu)], np.int8)


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("n", [4, 14])
@pytest.mark.parametrize(("mu", "nu", "limit"), [(1, 1, 0), (3, 2, 2), (2, 5, 14)])
def test_evolution_equals_the_plain_form(form, n, mu, nu, limit):
    M, matrix = make_forms(n)[form]
    start = make_population(mu, n)
    found = kernels.evolve_labels(M, matrix, start, limit, nu, 60, 25, 7)
    expected = reference.evolve_labels(make_smoother(n), start, limit, nu, 60, 25, 7)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], atol=1e-12)
    np.testing.assert_allclose(found[2], expected[2], atol=1e-8)


@pytest.mark.parametrize("form", [0, 1])
def test_fitness_is_true_after_thousands_of_generations(form):
    M, matrix = make_forms(100)[form]
    population, fitness, best = kernels.evolve_labels(
        M, matrix, make_population(4, 100), 10, 4, 5000, 5000, 3
    )
    R = make_smoother(100)
    for y, F in zip(population.astype(float), fitness, strict=True):
        assert 1 - y @ R @ y / 100 == pytest.approx(F, abs=1e-10)
    assert best.shape == (5000,)
    assert best[-1] == fitness.min()


@pytest.mark.parametrize("limit", [0, 6])
def test_balance_holds_and_the_best_never_falls_back(limit):
    R = make_smoother(40)
    population, _, best = kernels.evolve_labels(R, True, make_population(3, 40), limit, 5, 500, 500, 1)
    assert (np.abs(population.sum(axis=1, dtype=int)) <= limit).all()
    assert (np.diff(best) <= 0).all()
    assert best[-1] < best[0]


def test_a_seed_gives_the_same_labels_and_another_seed_other_ways():
    R, start = make_smoother(40), make_population(3, 40)
    runs = [kernels.evolve_labels(R, True, start, 4, 5, 300, 300, seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    np.testing.assert_array_equal(runs[0][2], runs[1][2])
    assert not np.array_equal(runs[0][2], runs[2][2])


def test_patience_ends_an_evolution_that_stands_still():
    R = make_smoother(12)
    _, _, best = kernels.evolve_labels(R, True, make_population(1, 12), 0, 1, 10_000, 200, 0)
    assert best.shape[0] < 10_000
    assert (best[-200:] == best[-1]).all()


def test_a_fitness_that_is_better_beyond_the_tenth_digit_alone_is_no_better():
    start = make_population(3, 40)
    population, _, best = kernels.evolve_labels(1e-12 * make_smoother(40), True, start, 6, 5, 500, 30, 1)
    np.testing.assert_array_equal(population, start)
    assert best.shape == (30,)


def test_a_matrix_that_is_not_square_is_refused():
    with pytest.raises(InputError, match="M has 3 columns"):
        kernels.evolve_labels(np.ones((4, 3)), True, make_population(1, 4), 0, 1, 10, 10, 0)

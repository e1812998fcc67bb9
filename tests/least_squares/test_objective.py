"""Regularised least squares: objective of a partition, local search, evolution."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError
from mmcnb.features.nystroem import principal_features
from mmcnb.graph.merge_tree import by_first
from mmcnb.least_squares.evolution import (
    MatrixFitness,
    balanced_labels,
    evolve,
    run_evolutions,
)
from mmcnb.least_squares.objective import (
    floor_bounds,
    size_bounds,
    smoother,
    target_shares,
)
from mmcnb.least_squares.partition import (
    PartitionConfig,
    local_search,
    partition_starts,
    random_labels,
    schedule_of,
)
from tests import reference

SEARCHES = ("shaking", "steepest", "stochastic")


def seeded(seed=0):
    return np.random.RandomState(seed)


def kernel_of(m, seed=0):
    """Three groups and their Gaussian kernel matrix."""
    X = np.random.default_rng(seed).standard_normal((m, 2))
    X[:, 0] += 4 * (np.arange(m) % 3)
    return X, reference.rbf_kernel_block(X, X, 0.1)


def make_smoother(m, seed=0):
    return smoother(kernel_of(m, seed)[1], m / 100)


def matrix_form(R):
    """Return the fitness of which R is the matrix."""
    return SimpleNamespace(M=R, matrix=True)


def search(R, k, seed=0, points=None, **options):
    return local_search(R, PartitionConfig(k, **options), seeded(seed), points)


def first_start(m, k):
    """Labels that the first start of a search with seed 0 has."""
    return random_labels(m, np.full(k, 1 / k), seeded(seeded().randint(2**31 - 1)))


@pytest.mark.parametrize("centre", [True, False])
def test_smoother_is_its_formula_symmetric_and_leaves_its_matrix_alone(centre):
    _, K = kernel_of(40)
    before = K.copy()
    R = smoother(K, 0.4, centre)
    np.testing.assert_array_equal(K, before)
    K = reference.centred(K) if centre else K
    np.testing.assert_allclose(R, np.linalg.solve(K + 0.4 * np.eye(40), K), atol=1e-12)
    assert (R == R.T).all()
    assert R.flags.c_contiguous
    # of equal rows
    np.testing.assert_allclose(smoother(np.ones((5, 5)), 0.1), 0, atol=1e-14)
    values = np.random.default_rng(0).normal(size=(60, 4)) + 3
    R = principal_features(values).smoother(1e-2)
    np.testing.assert_allclose(R, smoother(values @ values.T, 1e-2 * 60), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: smoother(np.eye(3), 0.0), "ridge must be positive"),
        (lambda: smoother(np.eye(3), np.nan), "ridge must be positive"),
        (lambda: smoother(-5 * np.eye(3), 0.1), "not positive definite"),
        (lambda: target_shares("even", 2), "cluster_sizes='even' is unknown"),
        (lambda: target_shares([0.5, 0.6], 2), "sum to 1, not to 1.1"),
        (lambda: target_shares([1.5, -0.5], 2), "must be positive"),
        (lambda: target_shares([0.5, 0.5], 3), "each of the 3 clusters"),
        (lambda: size_bounds(3, np.full(4, 0.25), 0.1), "need more than 3 rows"),
        (lambda: floor_bounds(3, 4, 0.5), "need more than 3 rows"),
    ],
)
def test_what_cannot_be_used_is_refused(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


def test_fitness_is_what_is_left_of_ridge_regression():
    """F(y) = min_c |y - Kc|²/n + (λ/n) c'Kc: Gieseke et al., eq. (8)."""
    _, K = kernel_of(20)
    y = np.where(np.arange(20) % 3 == 0, 1.0, -1.0)
    c = np.linalg.solve(K + 0.5 * np.eye(20), y)
    left = ((y - K @ c) ** 2).sum() / 20 + 0.5 / 20 * c @ K @ c
    fitness = MatrixFitness(K, 0.5 / 20, centre=False)
    assert fitness.value(y) == pytest.approx(left, abs=1e-12)
    assert reference.two_cluster_loss(fitness.M, y) == pytest.approx(left, abs=1e-12)


@pytest.mark.parametrize(("n", "k"), [(9, 2), (10, 2), (8, 3)])
def test_shaking_finds_the_best_of_all_labelings(n, k):
    low, high = (
        floor_bounds(n, 2, 0.5) if k == 2 else size_bounds(n, np.full(k, 1 / k), 0.1)
    )
    every = [np.array([0, *rest]) for rest in itertools.product(range(k), repeat=n - 1)]
    sizes = [np.bincount(labels, minlength=k) for labels in every]
    inside = [
        y
        for y, size in zip(every, sizes, strict=True)
        if ((low <= size) & (size <= high)).all()
    ]
    for seed in range(2):
        R = make_smoother(n, seed)
        best = max(reference.mean_objective(R, labels, k) for labels in inside)
        assert search(R, k, n_init=12)[0].objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(
    ("method", "k", "cluster_sizes", "tolerance"),
    [
        ("shaking", 3, "auto", 0.1),
        ("steepest", 3, "equal", 0.0),
        ("stochastic", 3, [0.5, 0.3, 0.2], 0.05),
        ("shaking", 2, [0.8, 0.2], 0.0),
        ("steepest", 3, [0.5, 0.3, 0.2], 0.05),
        ("stochastic", 2, "equal", 0.1),
    ],
)
def test_sizes_are_held_and_objectives_are_those_of_the_labels(
    method, k, cluster_sizes, tolerance
):
    low, high = size_bounds(90, target_shares(cluster_sizes, k), tolerance)
    R = make_smoother(90)
    sizes = {"cluster_sizes": cluster_sizes, "size_tolerance": tolerance}
    partitions = search(R, k, search=method, n_init=4, **sizes)
    assert sorted(partition.start for partition in partitions) == [0, 1, 2, 3]
    values = [partition.objective for partition in partitions]
    assert all(first >= second - 1e-6 for first, second in itertools.pairwise(values))
    for partition in partitions:
        expected = reference.mean_objective(R, partition.labels, k)
        assert partition.objective == pytest.approx(expected, abs=1e-10)
        sizes = np.sort(np.bincount(partition.labels, minlength=k))
        assert (np.sort(low) <= sizes).all()
        assert (sizes <= np.sort(high)).all()
        np.testing.assert_array_equal(partition.labels, by_first(partition.labels))


def test_two_clusters_of_auto_size_are_found_and_keep_a_floor():
    X = np.random.default_rng(0).standard_normal((80, 2))
    X[:24, 0] += 6
    partitions = search(smoother(reference.rbf_kernel_block(X, X, 0.1), 0.08), 2)
    assert np.bincount(partitions[0].labels).tolist() == [24, 56]
    assert all(np.bincount(partition.labels).min() >= 20 for partition in partitions)


def test_the_published_forms_are_the_plain_ones_without_bounds():
    R = make_smoother(60)
    bounds = (np.ones(3, int), np.full(3, 60))
    shaken, _ = reference.shake(R, first_start(60, 3), np.full(3, 1 / 3), 1.0, 0.5, 21)
    moved, _ = reference.stochastic_moves(
        R, first_start(60, 3), *bounds, np.arange(60), 100
    )
    for method, expected in (("shaking", shaken), ("stochastic", moved)):
        partition = search(R, 3, search=method, schedule="paper", n_init=1)[0]
        np.testing.assert_array_equal(partition.labels, by_first(expected))
    assert {schedule_of("paper", number) for number in range(12)} == {(1.0, 0.5, 21)}


def test_a_seed_gives_the_same_labels_and_restarts_mix_starts_amplitudes_and_decays():
    R, (X, _) = make_smoother(60), kernel_of(60)
    one, same = (search(R, 3, seed=5, points=X)[0] for _ in range(2))
    np.testing.assert_array_equal(one.labels, same.labels)
    assert one.start == same.start
    assert sorted(partition.start for partition in search(R, 3)) == list(range(8))
    assert (
        len({(number % 2, *schedule_of("mixed", number)) for number in range(12)}) == 12
    )
    # equal rows start at random
    for points, distinct in (
        (X, 3),
        (np.empty((60, 0)), 4),
    ):
        starts = partition_starts(4, 60, np.full(3, 1 / 3), seeded(), points)
        assert len({tuple(labels) for labels in starts}) >= distinct


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.97, 0.01, 0.02], [0.25] * 4])
def test_random_labels_have_their_shares(shares):
    sizes = np.bincount(
        random_labels(40, np.array(shares), seeded()), minlength=len(shares)
    )
    assert np.abs(sizes - 40 * np.array(shares)).max() <= 1 + 1e-9
    assert sizes.min() >= 1


def test_bounds_hold_whole_numbers_of_rows():
    low, high = size_bounds(100, np.array([0.5, 0.3, 0.2]), 0.1)
    assert low.tolist() == [45, 27, 18]
    assert high.tolist() == [55, 33, 22]
    assert [bound.tolist() for bound in floor_bounds(10, 3, 0.5)] == [
        [1, 1, 1],
        [8, 8, 8],
    ]


@pytest.mark.parametrize("matrix", [True, False])
def test_evolution_finds_the_two_groups_and_its_fitness_is_that_of_the_labels(matrix):
    X = np.random.default_rng(0).standard_normal((40, 2))
    X[::2, 0] += 6
    R = smoother(reference.rbf_kernel_block(X, X, 0.1), 0.04)
    values, vectors = np.linalg.eigh(R)
    M = R if matrix else np.ascontiguousarray(vectors[:, -10:] * np.sqrt(values[-10:]))
    rows = []
    with ThreadEngine(1) as engine:
        form = SimpleNamespace(M=M, matrix=matrix)
        ends = run_evolutions(engine, form, [3, 1, 2], rows.append, n_parents=5)
    assert ends[0].y.tolist() == [1, -1] * 20
    assert {row["start"] for row in rows} == {end.start for end in ends} == {0, 1, 2}
    for end in ends:
        loss = reference.two_cluster_loss(R if matrix else M @ M.T, end.y)
        assert loss == pytest.approx(end.fitness)
        # Parents whose values agree to ten digits are as good, and the first is taken.
        objectives = [row["objective"] for row in rows if row["start"] == end.start]
        assert objectives[-1] == pytest.approx(end.fitness, abs=1e-9)
        assert abs(int(end.y.sum())) <= 4
        assert (np.diff(end.best) <= 0).all()
    fitness = [round(end.fitness, 9) for end in ends]
    assert fitness == sorted(fitness)


@pytest.mark.parametrize("n", [2, 3, 9, 40])
def test_evolution_and_its_starts_hold_the_tightest_balance(n):
    for seed in range(3):
        assert abs(int(balanced_labels(n, n % 2, seeded(seed)).sum())) == n % 2
        form = matrix_form(make_smoother(n))
        evolved = evolve(form, balance=0.0, random_state=seeded(seed))
        assert abs(int(evolved.y.sum())) == n % 2
    # A matrix of ones rewards one-sided labels, so that only the balance holds them
    # back: 29 of 100 rows.
    form = matrix_form(np.ones((100, 100)))
    evolved = evolve(form, balance=0.29, random_state=seeded())
    assert abs(int(evolved.y.sum())) <= 29


@pytest.mark.parametrize("n", [8, 9])
def test_evolution_finds_the_best_of_all_labelings(n):
    R = make_smoother(n)
    every = (np.array([1, *rest]) for rest in itertools.product((-1, 1), repeat=n - 1))
    best = min(reference.two_cluster_loss(R, y) for y in every if abs(y.sum()) <= 2)
    runs = [
        evolve(matrix_form(R), balance=2 / n, random_state=seeded(seed))
        for seed in range(10)
    ]
    assert min(one.fitness for one in runs) == pytest.approx(best, rel=1e-9)

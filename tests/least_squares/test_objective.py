import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError
from mmcnb.features.nystroem import principal_features
from mmcnb.least_squares.evolution import MatrixFitness, balanced_labels, evolve, run_evolutions
from mmcnb.least_squares.objective import (
    floor_bounds,
    mean_objective,
    size_bounds,
    smoother,
    target_shares,
)
from mmcnb.least_squares.partition import (
    PartitionConfig,
    best_partition,
    canonical_labels,
    local_search,
    partition_starts,
    random_labels,
    schedule_of,
)
from tests import reference


def three_groups(m, seed=0):
    X = np.random.default_rng(seed).standard_normal((m, 2))
    X[:, 0] += 4 * (np.arange(m) % 3)
    return X


def make_smoother(m, alpha=0.01, seed=0):
    X = three_groups(m, seed)
    return smoother(reference.rbf_kernel_block(X, X, 0.1), alpha * m)


def search(R, k, seed=0, points=None, **options):
    return local_search(R, PartitionConfig(k, **options), np.random.RandomState(seed), points)


def first_start(m, k):
    """Labels that the first start of a search with seed 0 has."""
    seed = np.random.RandomState(0).randint(2**31 - 1)
    return random_labels(m, np.full(k, 1 / k), np.random.RandomState(seed))


@pytest.mark.parametrize("centre", [True, False])
def test_smoother_is_its_formula_and_symmetric(centre):
    X = three_groups(40)
    K = reference.rbf_kernel_block(X, X, 0.1)
    R = smoother(K, 0.4, centre)
    K = reference.centred(K) if centre else K
    np.testing.assert_allclose(R, np.linalg.solve(K + 0.4 * np.eye(40), K), atol=1e-12)
    assert (R == R.T).all()
    assert R.flags.c_contiguous
    if centre:
        np.testing.assert_allclose(R.sum(axis=0), 0, atol=1e-12)


def test_smoother_of_equal_rows_is_nothing():
    np.testing.assert_allclose(smoother(np.ones((5, 5)), 0.1), 0, atol=1e-14)


def test_smoother_leaves_its_matrix_alone():
    K = reference.rbf_kernel_block(three_groups(9), three_groups(9), 0.1)
    before = K.copy()
    smoother(K, 0.1)
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("ridge", [0.0, -1.0, np.nan])
def test_a_ridge_must_be_positive(ridge):
    with pytest.raises(InputError, match="ridge must be positive"):
        smoother(np.eye(3), ridge)


def test_a_matrix_that_is_no_kernel_is_refused():
    with pytest.raises(InputError, match="not positive definite"):
        smoother(-5 * np.eye(3), 0.1)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("centre", [True, False])
def test_one_objective_unites_the_family(k, centre):
    """Q = kn - 4 Σ|S_h|² + (4 - k)|S|², and F is the case of two clusters."""
    X = three_groups(30)
    K = reference.rbf_kernel_block(X, X, 0.1)
    R = smoother(K, 0.3, centre)
    labels = random_labels(30, np.full(k, 1 / k), np.random.RandomState(0))
    sums = [R[np.ix_(labels == h, labels == h)].sum() for h in range(k)]
    Q = 30 * k - 4 * sum(sums) + (4 - k) * R.sum()
    assert reference.one_against_all_loss(R, labels, k) == pytest.approx(Q, abs=1e-11)
    assert mean_objective(R, labels, k) == pytest.approx(reference.mean_objective(R, labels, k), abs=1e-12)
    if k == 2:
        y = np.where(labels == 0, 1, -1)
        assert 2 * 30 * reference.two_cluster_loss(R, y) == pytest.approx(Q, abs=1e-11)


def test_fitness_is_what_is_left_of_ridge_regression():
    """F(y) = min_c |y - Kc|²/n + (λ/n) c'Kc: Gieseke et al., eq. (8)."""
    X = three_groups(20)
    K = reference.rbf_kernel_block(X, X, 0.1)
    y = np.where(np.arange(20) % 3 == 0, 1.0, -1.0)
    c = np.linalg.solve(K + 0.5 * np.eye(20), y)
    left = ((y - K @ c) ** 2).sum() / 20 + 0.5 / 20 * c @ K @ c
    fitness = MatrixFitness(K, 0.5 / 20, centre=False)
    assert fitness.value(y) == pytest.approx(left, abs=1e-12)
    assert reference.two_cluster_loss(fitness.M, y) == pytest.approx(left, abs=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_mean_objective_lies_between_nothing_and_one_less_than_clusters(k):
    R = make_smoother(60, alpha=1e-6)
    for seed in range(5):
        labels = random_labels(60, np.full(k, 1 / k), np.random.RandomState(seed))
        assert 0 <= mean_objective(R, labels, k) <= k - 1
    assert mean_objective(R, np.zeros(60, int), k) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("n", "k"), [(9, 2), (10, 2), (8, 3)])
def test_shaking_finds_the_best_of_all_labelings(n, k):
    for seed in range(4):
        R = make_smoother(n, seed=seed)
        if k == 2:
            low, high = floor_bounds(n, 2, 0.5)
        else:
            low, high = size_bounds(n, np.full(k, 1 / k), 0.1)
        best = max(
            reference.mean_objective(R, labels, k)
            for rest in itertools.product(range(k), repeat=n - 1)
            if (low <= (sizes := np.bincount(labels := np.array([0, *rest]), minlength=k))).all()
            and (sizes <= high).all()
        )
        assert search(R, k, n_init=12)[0].objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("method", ["shaking", "steepest", "stochastic"])
@pytest.mark.parametrize(
    ("k", "cluster_sizes", "tolerance"),
    [
        (3, "auto", 0.1),
        (3, "equal", 0.0),
        (3, [0.5, 0.3, 0.2], 0.05),
        (2, "equal", 0.1),
        (2, [0.8, 0.2], 0.0),
    ],
)
def test_sizes_are_held(method, k, cluster_sizes, tolerance):
    low, high = size_bounds(90, target_shares(cluster_sizes, k), tolerance)
    found = search(
        make_smoother(90), k, search=method, cluster_sizes=cluster_sizes, size_tolerance=tolerance, n_init=3
    )
    for partition in found:
        sizes = np.sort(np.bincount(partition.labels, minlength=k))
        assert (np.sort(low) <= sizes).all()
        assert (sizes <= np.sort(high)).all()


def test_two_clusters_of_auto_size_are_found_and_keep_a_floor():
    X = np.random.default_rng(0).standard_normal((80, 2))
    X[:24, 0] += 6
    found = search(smoother(reference.rbf_kernel_block(X, X, 0.1), 0.08), 2)
    assert np.bincount(found[0].labels).tolist() == [24, 56]
    assert all(np.bincount(partition.labels).min() >= 20 for partition in found)


def test_the_published_form_shakes_and_does_no_more():
    R = make_smoother(60)
    expected, _ = reference.shake(R, first_start(60, 3), np.full(3, 1 / 3), 1.0, 0.5, 21)
    found = search(R, 3, schedule="paper", n_init=1)[0]
    np.testing.assert_array_equal(found.labels, canonical_labels(expected))


def test_the_published_stochastic_search_visits_the_rows_in_their_order_and_bounds_no_size():
    R = make_smoother(60)
    bounds = np.ones(3, int), np.full(3, 60)
    expected, _ = reference.stochastic_moves(R, first_start(60, 3), *bounds, np.arange(60), 100)
    found = search(R, 3, search="stochastic", schedule="paper", n_init=1)[0]
    np.testing.assert_array_equal(found.labels, canonical_labels(expected))


def test_objectives_are_those_of_the_labels_and_fall_along_the_list():
    R = make_smoother(60)
    for method in ("shaking", "steepest", "stochastic"):
        found = search(R, 3, search=method)
        for partition in found:
            expected = reference.mean_objective(R, partition.labels, 3)
            assert partition.objective == pytest.approx(expected, abs=1e-10)
        values = [partition.objective for partition in found]
        assert all(first >= second - 1e-6 for first, second in itertools.pairwise(values))
        assert sorted(partition.start for partition in found) == list(range(8))


def test_a_seed_gives_the_same_labels():
    R, X = make_smoother(60), three_groups(60)
    one, same = (search(R, 3, seed=5, points=X)[0] for _ in range(2))
    np.testing.assert_array_equal(one.labels, same.labels)
    assert one.start == same.start


def test_restarts_mix_starts_amplitudes_and_decays():
    mixed = [(number % 2, *schedule_of("mixed", number)) for number in range(12)]
    assert len(set(mixed)) == 12
    assert {schedule_of("paper", number) for number in range(12)} == {(1.0, 0.5, 21)}
    starts = list(partition_starts(4, 30, np.full(3, 1 / 3), np.random.RandomState(0), three_groups(30)))
    assert len({tuple(labels) for labels in starts}) >= 3


def test_equal_rows_start_at_random():
    starts = list(partition_starts(4, 30, np.full(3, 1 / 3), np.random.RandomState(0), np.empty((30, 0))))
    assert len({tuple(labels) for labels in starts}) == 4


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.97, 0.01, 0.02], [0.25] * 4])
def test_random_labels_have_their_shares(shares):
    labels = random_labels(40, np.array(shares), np.random.RandomState(0))
    sizes = np.bincount(labels, minlength=len(shares))
    assert np.abs(sizes - 40 * np.array(shares)).max() <= 1 + 1e-9
    assert sizes.min() >= 1


def test_bounds_hold_whole_numbers_of_rows():
    low, high = size_bounds(100, np.array([0.5, 0.3, 0.2]), 0.1)
    assert low.tolist() == [45, 27, 18]
    assert high.tolist() == [55, 33, 22]
    assert [bound.tolist() for bound in floor_bounds(10, 3, 0.5)] == [[1, 1, 1], [8, 8, 8]]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
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


def test_the_earlier_of_equals_is_the_best():
    found = search(make_smoother(60), 3)
    assert best_partition(found).objective == pytest.approx(found[0].objective, abs=1e-6)
    assert canonical_labels(np.array([4, 4, 1, 0, 1])).tolist() == [0, 0, 1, 2, 1]


@pytest.mark.parametrize("matrix", [True, False])
def test_evolution_finds_the_two_groups(matrix):
    X = np.random.default_rng(0).standard_normal((40, 2))
    X[::2, 0] += 6
    R = smoother(reference.rbf_kernel_block(X, X, 0.1), 0.04)
    values, vectors = np.linalg.eigh(R)
    M = R if matrix else np.ascontiguousarray(vectors[:, -10:] * np.sqrt(values[-10:]))
    fitness, rows = SimpleNamespace(M=M, matrix=matrix), []
    with ThreadEngine(1) as engine:
        found = run_evolutions(engine, fitness, [3, 1, 2], rows.append, n_parents=5)
    assert found[0].y.tolist() == [1, -1] * 20
    assert {row["start"] for row in rows} == {evolved.start for evolved in found} == {0, 1, 2}
    for evolved in found:
        loss = reference.two_cluster_loss(R if matrix else M @ M.T, evolved.y)
        assert loss == pytest.approx(evolved.fitness)
        ends = [row["objective"] for row in rows if row["start"] == evolved.start]
        assert ends[-1] == evolved.fitness
        assert abs(int(evolved.y.sum())) <= 4
        assert (np.diff(evolved.best) <= 0).all()
    fitness = [round(evolved.fitness, 9) for evolved in found]
    assert fitness == sorted(fitness)


@pytest.mark.parametrize("n", [2, 3, 9, 40])
def test_evolution_and_its_starts_hold_the_tightest_balance(n):
    for seed in range(5):
        y = balanced_labels(n, n % 2, np.random.RandomState(seed))
        assert abs(int(y.sum())) == n % 2
        evolved = evolve(make_smoother(n), matrix=True, balance=0.0, random_state=np.random.RandomState(seed))
        assert abs(int(evolved.y.sum())) == n % 2


@pytest.mark.parametrize("n", [8, 10])
def test_evolution_finds_the_best_of_all_labelings(n):
    R = make_smoother(n)
    best = min(
        reference.two_cluster_loss(R, y)
        for rest in itertools.product((-1, 1), repeat=n - 1)
        if abs((y := np.array([1, *rest])).sum()) <= 2
    )
    found = [
        evolve(R, matrix=True, balance=2 / n, random_state=np.random.RandomState(seed)) for seed in range(10)
    ]
    assert min(one.fitness for one in found) == pytest.approx(best, rel=1e-9)


def test_the_balance_counts_whole_rows():
    """A matrix of ones rewards one-sided labels, so that only the balance holds them back: 29 of 100 rows."""
    found = evolve(np.ones((100, 100)), matrix=True, balance=0.29, random_state=np.random.RandomState(0))
    assert abs(int(found.y.sum())) <= 29


def test_the_smoother_of_features_is_that_of_their_inner_products():
    values = np.random.default_rng(0).normal(size=(60, 4)) + 3
    R = principal_features(values).smoother(1e-2)
    np.testing.assert_array_equal(R, R.T)
    np.testing.assert_allclose(R, smoother(values @ values.T, 1e-2 * 60), atol=1e-12)

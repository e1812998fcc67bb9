"""Label generation: the mixture of labellings, the search for more, and the cutting plane."""

from itertools import product

import cvxpy
import numpy as np
import pytest

from mmcnb.relaxations.label_generation import LabelSearch, balanced_labels_of, generate_labels, mix_labels
from mmcnb.relaxations.sdp import solve_label_matrix, solve_svm


def centred_gram(n, seed=0, gap=1.0, shares=None):
    """Gaussian kernel matrix of two groups in the plane, centred."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X[: n // 2, 0] += 2 * gap
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 2)
    H = np.eye(n) - (1 / n if shares is None else shares)
    return H @ K @ H.T


def even(n):
    return np.full(n, 1 / n)


def all_labels(shares, balance):
    """Every labelling in balance, once."""
    labels = np.array([(1.0, *rest) for rest in product((-1.0, 1.0), repeat=len(shares) - 1)])
    return labels[np.abs(labels @ shares) <= balance + 1e-9]


def by_cvxpy(gram, labels, bounds):
    """The convex program of the mixture, over the primal vectors of the labellings' kernels."""
    n = len(gram)
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0))
    alpha, eta = cvxpy.Variable(n), cvxpy.Variable()
    forms = [cvxpy.sum_squares((root * y[:, None]).T @ alpha) <= 2 * eta for y in labels]
    box = [alpha >= 0, alpha <= bounds]
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(alpha) - eta), forms + box)
    problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.parametrize("C", [0.1, 30.0])
@pytest.mark.parametrize(("balance", "weighted"), [(0.0, False), (0.5, False), (0.5, True)])
def test_the_mixture_is_that_of_cvxpy(C, balance, weighted):
    n = 8
    weights = np.random.default_rng(1).integers(1, 4, n).astype(float) if weighted else np.ones(n)
    shares = weights / weights.sum()
    gram, labels = centred_gram(n, shares=shares), all_labels(shares, balance)
    found = mix_labels(gram, labels, C * weights)
    assert found.value == pytest.approx(by_cvxpy(gram, labels, C * weights), rel=1e-6)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-8])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_the_gap_is_closed_and_is_that_of_the_primal_form(C, tolerance):
    n = 40
    gram, bounds = centred_gram(n), np.full(n, C)
    labels = np.sign(np.random.default_rng(0).standard_normal((6, n)))
    found = mix_labels(gram, labels, bounds, tolerance)
    assert 0 <= found.gap <= tolerance * (found.value + found.gap)
    alpha, weights = found.multipliers, found.weights
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    assert ((alpha >= 0) & (alpha <= bounds)).all()
    forms = np.array([(alpha * y) @ gram @ (alpha * y) for y in labels])
    assert found.value == pytest.approx(alpha.sum() - 0.5 * forms.max())
    f = weights @ [y * (gram @ (alpha * y)) for y in labels]
    primal = 0.5 * weights @ forms + bounds @ np.maximum(0, 1 - f)
    assert found.value + found.gap == pytest.approx(primal, rel=1e-9)


def test_one_labelling_is_the_machine_of_its_labels():
    n, rng = 30, np.random.default_rng(3)
    gram, bounds = centred_gram(n), rng.uniform(0.5, 4, n)
    y = np.where(rng.standard_normal(n) > 0, 1, -1)
    alpha, value = solve_svm(gram, y, bounds)
    found = mix_labels(gram, y[None], bounds)
    assert found.value == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found.multipliers, alpha, atol=1e-4)


def test_more_labellings_never_raise_the_value_and_copies_change_nothing():
    n = 20
    gram, bounds = centred_gram(n), np.full(n, 2.0)
    labels = np.sign(np.random.default_rng(0).standard_normal((9, n)))
    values = [mix_labels(gram, labels[:count], bounds).value for count in range(1, 10)]
    assert (np.diff(values) <= 1e-7 * values[0]).all()
    twice = mix_labels(gram, np.r_[labels, -labels], bounds)
    assert twice.value == pytest.approx(values[-1], rel=1e-7)


def test_rows_that_the_kernel_does_not_tell_apart_lose_everything():
    found = mix_labels(np.zeros((4, 4)), np.array([[1, 1, -1, -1]]), np.full(4, 3.0))
    assert found.value == pytest.approx(12.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("balance", [0.0, 0.2, 0.6])
def test_sorting_maximises_a_linear_form_in_balance(balance, weighted):
    rng = np.random.default_rng(0)
    n = 8
    linear = rng.standard_normal((n, 30))
    shares = rng.permutation([1.0, 1, 1, 1, 2, 2, 2, 2]) / 12 if weighted else even(n)
    y = balanced_labels_of(linear, shares, balance)
    assert (np.abs(shares @ y) <= balance + (shares.max() if weighted else 0) + 1e-9).all()
    if not weighted:
        both = np.r_[all_labels(shares, balance), -all_labels(shares, balance)]
        np.testing.assert_allclose((y * linear).sum(axis=0), (both @ linear).max(axis=0))


def test_an_odd_number_of_rows_is_parted_as_evenly_as_it_can_be():
    y = balanced_labels_of(np.ones((5, 1)), even(5), 0.0)
    assert abs(y.sum()) == 1


@pytest.mark.parametrize("balance", [0.0, 0.4])
@pytest.mark.parametrize("n", [8, 12])
def test_the_search_finds_the_largest_form_of_all_labels(n, balance):
    labels = all_labels(even(n), balance)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        gram = centred_gram(n, seed, gap=rng.uniform(0, 2))
        some = labels[rng.choice(len(labels), 5, replace=False)]
        bounds = np.full(n, 10.0 ** rng.uniform(-1, 1))
        alpha = mix_labels(gram, some, bounds).multipliers if seed % 2 else bounds * rng.uniform(size=n)
        search = LabelSearch(gram, even(n), balance)
        found, forms = search.best(alpha, np.c_[search.axes, some.T])
        Q = alpha[:, None] * gram * alpha
        np.testing.assert_allclose(forms, np.einsum("ti,ij,tj->t", found, Q, found), atol=1e-12)
        assert forms[0] == pytest.approx(np.einsum("ti,ij,tj->t", labels, Q, labels).max(), rel=1e-9)
        assert (np.diff(forms) <= 0).all()
        assert (np.abs(found @ even(n)) <= balance + 1e-9).all()
        assert len(np.unique(found * found[:, :1], axis=0)) == len(found)


@pytest.mark.parametrize("balance", [0.0, 0.5])
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_the_planes_come_to_the_optimum_over_all_labellings(C, balance):
    n = 8
    gram, bounds = centred_gram(n), np.full(n, C)
    labels = all_labels(even(n), balance)
    optimum = mix_labels(gram, labels, bounds).value
    found = generate_labels(gram, bounds, even(n), balance, tolerance=1e-6)
    assert found.converged
    assert found.mixture.value == pytest.approx(optimum, rel=2e-6)
    assert found.bound <= optimum * (1 + 1e-7)
    best = min(solve_svm(gram, y, bounds)[1] for y in labels)
    assert found.mixture.value <= best * (1 + 1e-6)
    relaxed_further = solve_label_matrix(gram, bounds, even(n), balance).value
    assert relaxed_further <= found.mixture.value * (1 + 1e-6)


def test_two_tight_groups_leave_no_gap():
    """Equal rows within each group: the mixture is one labelling, and its objective the optimum."""
    y = np.repeat([1, -1], 5)
    gram = np.outer(y, y) * 0.8
    found = generate_labels(gram, np.ones(10), even(10), 0.4)
    assert found.mixture.value == pytest.approx(solve_svm(gram, y, np.ones(10))[1], rel=1e-3)
    assert abs(found.mixture.labels[found.mixture.weights.argmax()] @ y) == 10


def test_the_objective_falls_and_the_bound_rises_to_it():
    n, seen = 60, []
    found = generate_labels(*(centred_gram(n), np.ones(n), even(n), 0.4, 1e-3), record=seen.append)
    rounds, values, bounds, labellings = (
        np.array([row[name] for row in seen]) for name in ("round", "objective", "bound", "labellings")
    )
    assert found.converged
    assert found.rounds == len(seen) > 3
    np.testing.assert_array_equal(rounds, np.arange(len(seen)))
    assert (np.diff(values) <= 1e-5 * values[:-1]).all()
    assert (np.diff(bounds) >= 0).all()
    assert (bounds <= values * (1 + 1e-5)).all()
    assert (np.diff(labellings) > 0).all()
    assert values[-1] - bounds[-1] <= 1e-3 * values[-1] < values[-2] - bounds[-2]
    assert (values[-1], bounds[-1], labellings[-1]) == (
        *(found.mixture.value, found.bound),
        len(found.mixture.labels),
    )
    assert (np.abs(found.mixture.labels @ even(n)) <= 0.4 + 1e-9).all()
    assert len(np.unique(found.mixture.labels * found.mixture.labels[:, :1], axis=0)) == labellings[-1]


def test_rounds_end_where_they_are_told_to():
    n = 60
    found = generate_labels(centred_gram(n), np.ones(n), even(n), 0.4, 1e-3, max_rounds=2)
    assert not found.converged
    assert found.rounds == 2


@pytest.mark.parametrize("seed", range(4))
def test_order_and_scale_of_the_kernel_do_not_matter_to_the_mixture(seed):
    n, rng = 24, np.random.default_rng(seed)
    gram, order, labels = centred_gram(n, seed), rng.permutation(n), np.sign(rng.standard_normal((9, n)))
    one = mix_labels(gram, labels, np.full(n, 2.0)).value
    mixed = mix_labels(gram[np.ix_(order, order)], labels[:, order], np.full(n, 2.0)).value
    scaled = mix_labels(4e4 * gram, labels, np.full(n, 2.0 / 4e4)).value
    assert mixed == pytest.approx(one, rel=2e-8)
    assert scaled * 4e4 == pytest.approx(one, rel=2e-8)


@pytest.mark.parametrize("seed", range(4))
def test_order_and_scale_of_the_kernel_do_not_matter_where_the_search_misses_nothing(seed):
    """The search is exhaustive enough at 8 rows; with more, rounding can lead it to other labellings."""
    n = 8
    gram, order = centred_gram(n, seed), np.random.default_rng(seed).permutation(n)
    one = generate_labels(gram, np.full(n, 2.0), even(n), 0.3, 1e-5)
    mixed = generate_labels(gram[np.ix_(order, order)], np.full(n, 2.0), even(n), 0.3, 1e-5)
    scaled = generate_labels(4e4 * gram, np.full(n, 2.0 / 4e4), even(n), 0.3, 1e-5)
    assert mixed.mixture.value == pytest.approx(one.mixture.value, rel=2e-5)
    assert scaled.mixture.value * 4e4 == pytest.approx(one.mixture.value, rel=2e-5)


def test_a_weight_of_two_is_the_row_given_twice_where_sizes_are_free():
    n = 12
    weights = np.random.default_rng(5).integers(1, 4, n).astype(float)
    shares = weights / weights.sum()
    gram, rows = centred_gram(n, shares=shares), np.repeat(np.arange(n), weights.astype(int))
    one = generate_labels(gram, weights, shares, 0.9, 1e-6)
    other = generate_labels(
        *(gram[np.ix_(rows, rows)], np.ones(len(rows)), even(len(rows)), 0.9),
        tolerance=1e-6,
    )
    assert one.mixture.value == pytest.approx(other.mixture.value, rel=1e-5)

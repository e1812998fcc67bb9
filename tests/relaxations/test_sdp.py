"""The semidefinite program of maximum margin clustering."""

from itertools import product

import cvxpy
import numpy as np
import pytest
from sklearn.svm import LinearSVC

from mmcnb.relaxations.sdp import solve_label_matrix, solve_svm


def centred_gram(n, seed=0, gap=1.5, width=1.0):
    """Gaussian kernel matrix of two groups in the plane, centred."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X[: n // 2, 0] += 2 * gap
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / (2 * width**2))
    H = np.eye(n) - 1 / n
    return H @ K @ H


def by_cvxpy(gram, bounds, shares, balance, of_rows=False):
    """The program as it is printed, the thesis's (3.8), over two; ``of_rows`` takes its L4 as balance."""
    n = len(gram)
    M, delta = cvxpy.Variable((n, n), PSD=True), cvxpy.Variable()
    mu, nu = cvxpy.Variable(n, nonneg=True), cvxpy.Variable(n, nonneg=True)
    border = cvxpy.reshape(1 + mu - nu, (n, 1), order="C")
    corner = cvxpy.reshape(delta - 2 * bounds @ nu, (1, 1), order="C")
    block = cvxpy.bmat([[cvxpy.multiply(gram, M), border], [border.T, corner]])
    constraints = [cvxpy.diag(M) == 1, (block + block.T) / 2 >> 0]
    if of_rows:
        constraints += [M @ shares <= balance, M @ shares >= -balance]
    else:
        constraints += [shares @ M @ shares <= balance**2]
    problem = cvxpy.Problem(cvxpy.Minimize(delta), constraints)
    problem.solve(solver="CLARABEL")
    return problem.value / 2


def best_labels(gram, bounds, balance):
    """Least objective of all labels in balance, each by its machine."""
    n = len(gram)
    labels = (np.array([1.0, *rest]) for rest in product((-1.0, 1.0), repeat=n - 1))
    return min(solve_svm(gram, y, bounds)[1] for y in labels if abs(y.mean()) <= balance + 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("C", "balance"), [(0.05, 0.4), (1.0, 0.4), (1.0, 0.0), (50.0, 0.1)])
def test_the_optimum_is_that_of_the_printed_form(C, balance, weighted):
    n = 12
    weights = np.random.default_rng(1).integers(1, 4, n).astype(float) if weighted else np.ones(n)
    gram, shares = centred_gram(n), weights / weights.sum()
    found = solve_label_matrix(gram, C * weights, shares, balance)
    printed = by_cvxpy(gram, C * weights, shares, balance)
    assert found.converged
    assert found.value == pytest.approx(printed, rel=1e-5)
    assert found.value <= printed * (1 + 1e-6)
    np.testing.assert_allclose(np.diag(found.matrix), 1.0, atol=1e-3)
    assert np.linalg.eigvalsh(found.matrix)[0] >= -1e-9
    assert shares @ found.matrix @ shares <= balance**2 + 1e-5


def test_the_balance_of_all_rows_bounds_as_closely_as_that_of_each_row():
    n = 12
    gram = centred_gram(n, gap=0.2, width=3.0)
    ones, shares = np.ones(n), np.full(n, 1 / n)
    for balance in (0.05, 0.4):
        of_rows = by_cvxpy(gram, ones, shares, balance, of_rows=True)
        assert solve_label_matrix(gram, ones, shares, balance).value >= of_rows * (1 - 1e-5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("balance", [0.0, 0.5])
def test_the_optimum_bounds_the_objective_of_all_labels(seed, balance):
    n = 8
    gram = centred_gram(n, seed, gap=0.7)
    for C in (0.1, 1.0, 10.0):
        found = solve_label_matrix(gram, np.full(n, C), np.full(n, 1 / n), balance)
        assert 0 < found.value <= best_labels(gram, np.full(n, C), balance) * (1 + 1e-6)


def test_two_tight_groups_leave_no_gap():
    """Equal rows within each group: M is a labelling, and its objective the optimum."""
    n, y = 10, np.repeat([1.0, -1.0], 5)
    gram = np.outer(y, y) * 0.8
    found = solve_label_matrix(gram, np.ones(n), np.full(n, 0.1), 0.4)
    assert found.value == pytest.approx(solve_svm(gram, y, np.ones(n))[1], rel=1e-5)
    leading = np.linalg.eigh(found.matrix)[1][:, -1]
    assert abs(np.sign(leading) @ y) == n
    assert found.value == pytest.approx(best_labels(gram, np.ones(n), 0.4), rel=1e-5)


def test_the_value_does_not_depend_on_the_order_and_weights_repeat():
    n, rng = 14, np.random.default_rng(2)
    gram = centred_gram(n)
    weights = rng.integers(1, 4, n).astype(float)
    shares = weights / weights.sum()
    found = solve_label_matrix(gram, weights, shares, 0.3)
    order = rng.permutation(n)
    mixed = solve_label_matrix(gram[np.ix_(order, order)], weights[order], shares[order], 0.3)
    assert mixed.value == pytest.approx(found.value, rel=2e-6)
    np.testing.assert_allclose(mixed.matrix, found.matrix[np.ix_(order, order)], atol=1e-2)
    rows = np.repeat(np.arange(n), weights.astype(int))
    repeated = solve_label_matrix(
        gram[np.ix_(rows, rows)], np.ones(len(rows)), np.full(len(rows), 1 / len(rows)), 0.3
    )
    assert repeated.value == pytest.approx(found.value, rel=2e-6)


def test_scaling_the_kernel_is_scaling_C():
    """K times c at C is K at C times c, its objective divided by c."""
    n, shares = 10, np.full(10, 0.1)
    gram = centred_gram(n)
    one = solve_label_matrix(gram, np.full(n, 2.0), shares, 0.4)
    other = solve_label_matrix(4e4 * gram, np.full(n, 2.0 / 4e4), shares, 0.4)
    assert other.value * 4e4 == pytest.approx(one.value, rel=2e-6)


def test_the_path_is_recorded_and_rises():
    seen = []
    gram = centred_gram(20)
    found = solve_label_matrix(gram, np.ones(20), np.full(20, 0.05), 0.4, seen.append)
    steps, values, gaps = (np.array([row[name] for row in seen]) for name in ("steps", "objective", "gap"))
    assert (np.diff(steps) > 0).all()
    assert (np.diff(gaps) < 0).all()
    assert (values <= found.value * (1 + 1e-6)).all()
    assert (values[-1], gaps[-1], steps[-1]) == (found.value, found.gap, found.steps)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
def test_the_machine_has_no_gap_and_is_that_of_scikit_learn(C):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 3))
    X -= X.mean(axis=0)
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(30) > 0, 1, -1)
    bounds = C * rng.integers(1, 4, 30)
    alpha, value = solve_svm(X @ X.T, y, bounds)
    w = X.T @ (alpha * y)
    primal = 0.5 * w @ w + bounds @ np.maximum(0, 1 - y * (X @ w))
    assert primal == pytest.approx(value, rel=1e-6)
    assert (alpha >= 0).all()
    assert (alpha <= bounds).all()
    if C <= 1:
        machine = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0)
        machine.fit(X, y, sample_weight=bounds / C)
        np.testing.assert_allclose(machine.coef_[0], w, atol=1e-3 * np.abs(w).max())

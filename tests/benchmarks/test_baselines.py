"""The papers' peers: their programs are those of other solvers, and their bounds bound."""

from dataclasses import replace
from itertools import combinations, product

import cvxpy
import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR, LinearSVC

import mmcnb
from benchmarks.baselines import (
    SDPMMC,
    GeneralisedMMC,
    IterativeSVR,
    LabelGenerationMMC,
    LinearLabelGenerationMMC,
    ball_graph,
    graph_kernel_kmeans,
)
from benchmarks.baselines.generalised_mmc import inverse_without_offset, largest_multipliers
from benchmarks.baselines.graph_kmeans import least_eigenvalue
from benchmarks.baselines.label_generation import LabelSearch, balanced_labels_of, generate_labels, mix_labels
from benchmarks.baselines.linear_label_generation import CentredColumns, mix_columns
from benchmarks.baselines.sdp import solve_label_matrix, solve_with_triples, violated_triples
from benchmarks.baselines.svm import Problem, balanced_threshold

RELAXED = [SDPMMC, LabelGenerationMMC]


@pytest.fixture(scope="module")
def X():
    return make_blobs(60, centers=2, cluster_std=2.0, random_state=3)[0]


def problem(n=8, C=1.0, balance=0.4, seed=0, gap=1.0, weights=None, scale=1.0):
    """The Gaussian kernel of two groups in the plane, centred."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X[: n // 2, 0] += 2 * gap
    weights = np.ones(n) if weights is None else weights
    shares = weights / weights.sum()
    H = np.eye(n) - shares
    return Problem(scale * H @ rbf_kernel(X, gamma=0.5) @ H.T, C / scale * weights, shares, balance)


def tight(n=10):
    """Two groups of equal rows, and their labels."""
    y = np.repeat([1, -1], n // 2)
    return Problem(0.8 * np.outer(y, y), np.ones(n), np.full(n, 1 / n), 0.4), y


def some_weights(n, seed=1):
    return np.random.default_rng(seed).integers(1, 4, n).astype(float)


def all_labels(one):
    """Every labelling in balance, once."""
    labels = np.array([(1.0, *rest) for rest in product((-1.0, 1.0), repeat=len(one.shares) - 1)])
    return labels[np.abs(labels @ one.shares) <= one.balance + 1e-9]


def repeated(one, weights):
    rows = np.repeat(np.arange(len(weights)), weights.astype(int))
    n = len(rows)
    return Problem(one.gram[np.ix_(rows, rows)], np.ones(n), np.full(n, 1 / n), one.balance)


# -- the machine of given labels ---------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
def test_the_machine_has_no_gap_and_is_that_of_scikit_learn(C):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 3))
    X -= X.mean(axis=0)
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(30) > 0, 1, -1)
    bounds = C * rng.integers(1, 4, 30)
    alpha, value = Problem(X @ X.T, bounds, np.full(30, 1 / 30), 0.4).svm(y)
    w = X.T @ (alpha * y)
    primal = 0.5 * w @ w + bounds @ np.maximum(0, 1 - y * (X @ w))
    assert primal == pytest.approx(value, rel=1e-6)
    assert ((alpha >= 0) & (alpha <= bounds)).all()
    if C <= 1:
        machine = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0)
        machine.fit(X, y, sample_weight=bounds / C)
        np.testing.assert_allclose(machine.coef_[0], w, atol=1e-3 * np.abs(w).max())


def test_a_threshold_lies_between_values_and_zero_is_kept_if_it_serves():
    shares = np.full(5, 0.2)
    assert balanced_threshold(np.array([-2.0, -1, 1, 2, 3]), shares, 0.4) == 0.0
    assert balanced_threshold(np.array([1.0, 2, 3, 4, 5]), shares, 0.4) == 2.5
    assert balanced_threshold(-np.array([1.0, 2, 3, 4, 5]), shares, 0.4) == -2.5
    assert balanced_threshold(np.ones(5), shares, 0.4) == 0.0
    assert balanced_threshold(np.array([1.0, 1, 1, 1, 3]), shares, 0.0) == 2.0  # as far as equal values allow


# -- IterSVR -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "hinge"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_labels_are_a_fixpoint_of_the_machine(X, loss, kernel):
    """Trained on the labels that it ended with, scikit-learn's machine gives them back."""
    model = IterativeSVR(loss=loss, kernel=kernel, gamma=0.1, random_state=0).fit(X)
    assert model.converged_
    assert model.labels_[0] == 0
    shared = {"kernel": kernel, "gamma": 0.1, "coef0": 1.0}
    machine = SVC(**shared) if loss == "hinge" else SVR(epsilon=0.0, **shared)
    machine.fit(X, 2 * model.labels_ - 1)
    f = machine.decision_function(X) if loss == "hinge" else machine.predict(X)
    f -= balanced_threshold(f, np.full(len(X), 1 / len(X)), 0.4)
    np.testing.assert_array_equal(model.labels_, f >= 0)
    w = machine.dual_coef_[0] @ f[machine.support_]
    losses = np.maximum(0, 1 - np.abs(f)) if loss == "hinge" else np.abs(1 - np.abs(f))
    assert model.objective_ == pytest.approx(0.5 * w + losses.sum(), rel=1e-2)


@pytest.mark.parametrize("balance", [0.0, 0.2, 0.8])
@pytest.mark.parametrize("init", ["k-means", "random"])
def test_both_clusters_have_their_least_share(balance, init):
    X = np.random.default_rng(1).standard_normal((101, 3)) ** 3
    labels = IterativeSVR(balance=balance, init=init, random_state=0).fit(X).labels_
    assert np.bincount(labels, minlength=2).min() >= (1 - balance) / 2 * 101 - 1


def test_a_sample_labels_the_rest_and_sparse_rows_are_taken():
    X, y = make_blobs(3000, centers=2, cluster_std=0.5, random_state=0)
    for rows in (X, scipy.sparse.csr_array(X)):
        model = IterativeSVR(sample_size=200, random_state=0).fit(rows)
        np.testing.assert_array_equal(model.labels_, y != y[0])


def test_rounds_that_end_early_are_told(X):
    assert not IterativeSVR(init="random", max_rounds=1, random_state=0).fit(X).converged_


def test_a_weight_is_a_factor_of_C(X):
    weights = some_weights(len(X))
    for kind, given in ((IterativeSVR, {"random_state": 0}), (SDPMMC, {}), (LabelGenerationMMC, {})):
        one, other = (kind(C=c, **given).fit(X, sample_weight=weights / c) for c in (1.0, 4.0))
        np.testing.assert_array_equal(one.labels_, other.labels_)
        assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)


# -- both relaxations --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RELAXED)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_relaxed_optimum_bounds_the_objective(X, kind, kernel):
    for C in (0.1, 1.0, 10.0):
        model = kind(C=C, kernel=kernel).fit(X)
        assert model.converged_
        assert model.relaxed_ <= model.objective_ * (1 + 1e-9)


def test_the_mixture_bounds_more_closely_than_the_semidefinite_program(X):
    one, other = LabelGenerationMMC(tol=1e-4).fit(X), SDPMMC().fit(X)
    assert one.bound_ <= one.relaxed_ * (1 + 1e-4)
    assert one.relaxed_ >= other.relaxed_ * (1 - 1e-6)


@pytest.mark.parametrize("kind", RELAXED)
def test_tight_groups_are_found_exactly(kind):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [22, 18]))
    X = 9.0 * y[:, None] + 0.01 * rng.standard_normal((40, 3))
    model = kind().fit(X)
    np.testing.assert_array_equal(model.labels_, y != y[0])
    assert model.objective_ == pytest.approx(model.relaxed_, rel=1e-2)


@pytest.mark.parametrize("kind", RELAXED)
@pytest.mark.parametrize("balance", [0.0, 0.2, 0.8])
def test_their_clusters_have_their_least_share(kind, balance):
    X = np.random.default_rng(1).standard_normal((41, 3)) ** 3
    assert np.bincount(kind(balance=balance).fit(X).labels_).min() >= (1 - balance) / 2 * 41 - 1


@pytest.mark.parametrize("kind", RELAXED)
def test_scale_and_form_of_the_rows_do_not_matter(X, kind):
    expected = kind(scale="standard").fit(X)
    np.testing.assert_array_equal(kind(scale="standard").fit(X * [1.0, 1e6]).labels_, expected.labels_)
    sparse = kind().fit(scipy.sparse.csr_array(X))
    assert sparse.objective_ == pytest.approx(kind().fit(X).objective_, rel=1e-9)


@pytest.mark.parametrize(
    ("rows", "gamma"),
    [(make_circles(120, factor=0.4, noise=0.05, random_state=0), "auto"),
     (make_moons(120, noise=0.05, random_state=0), 8.0)],
)  # fmt: skip
def test_curved_groups_are_found(rows, gamma):
    X, y = rows
    np.testing.assert_array_equal(LabelGenerationMMC(gamma=gamma).fit(X).labels_, y != y[0])


# -- LG-MMC ------------------------------------------------------------------------------------


def by_cvxpy(one, labels):
    """The convex program of the mixture, over the primal vectors of the labellings' kernels."""
    values, vectors = np.linalg.eigh(one.gram)
    root = vectors * np.sqrt(np.maximum(values, 0))
    alpha, eta = cvxpy.Variable(len(values)), cvxpy.Variable()
    forms = [cvxpy.sum_squares((root * y[:, None]).T @ alpha) <= 2 * eta for y in labels]
    box = [alpha >= 0, alpha <= one.bounds]
    program = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(alpha) - eta), forms + box)
    program.solve(solver="CLARABEL")
    return program.value


@pytest.mark.parametrize("C", [0.1, 30.0])
@pytest.mark.parametrize(("balance", "weights"), [(0.0, None), (0.5, None), (0.5, some_weights(8))])
def test_the_mixture_is_that_of_cvxpy(C, balance, weights):
    one = problem(C=C, balance=balance, weights=weights)
    labels = all_labels(one)
    assert mix_labels(one, labels).value == pytest.approx(by_cvxpy(one, labels), rel=1e-6)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-8])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_the_gap_is_closed_and_is_that_of_the_primal_form(C, tolerance):
    one = problem(40, C)
    labels = np.sign(np.random.default_rng(0).standard_normal((6, 40)))
    found = mix_labels(one, labels, tolerance)
    assert 0 <= found.gap <= tolerance * (found.value + found.gap)
    alpha, weights = found.multipliers, found.weights
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    assert ((alpha >= 0) & (alpha <= one.bounds)).all()
    forms = np.array([(alpha * y) @ one.gram @ (alpha * y) for y in labels])
    assert found.value == pytest.approx(alpha.sum() - 0.5 * forms.max())
    f = weights @ [y * (one.gram @ (alpha * y)) for y in labels]
    primal = 0.5 * weights @ forms + one.bounds @ np.maximum(0, 1 - f)
    assert found.value + found.gap == pytest.approx(primal, rel=1e-9)


def test_one_labelling_is_the_machine_of_its_labels():
    one = problem(30, weights=np.random.default_rng(3).uniform(0.5, 4, 30))
    y = np.where(np.random.default_rng(4).standard_normal(30) > 0, 1, -1)
    alpha, value = one.svm(y)
    found = mix_labels(one, y[None])
    assert found.value == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found.multipliers, alpha, atol=1e-4)


def test_more_labellings_never_raise_the_value_and_copies_change_nothing():
    one, labels = problem(20, 2.0), np.sign(np.random.default_rng(0).standard_normal((9, 20)))
    values = [mix_labels(one, labels[:count]).value for count in range(1, 10)]
    assert (np.diff(values) <= 1e-7 * values[0]).all()
    assert mix_labels(one, np.r_[labels, -labels]).value == pytest.approx(values[-1], rel=1e-7)


def test_rows_that_the_kernel_does_not_tell_apart_lose_everything():
    one = Problem(np.zeros((4, 4)), np.full(4, 3.0), np.full(4, 0.25), 0.0)
    assert mix_labels(one, np.array([[1, 1, -1, -1]])).value == pytest.approx(12.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("balance", [0.0, 0.2, 0.6])
def test_sorting_maximises_a_linear_form_in_balance(balance, weighted):
    rng = np.random.default_rng(0)
    weights = rng.permutation([1.0, 1, 1, 1, 2, 2, 2, 2]) if weighted else np.ones(8)
    one, linear = problem(balance=balance, weights=weights), rng.standard_normal((8, 30))
    y = balanced_labels_of(linear, one.shares, balance)
    assert (np.abs(one.shares @ y) <= balance + (one.shares.max() if weighted else 0) + 1e-9).all()
    if not weighted:
        both = np.r_[all_labels(one), -all_labels(one)]
        np.testing.assert_allclose((y * linear).sum(axis=0), (both @ linear).max(axis=0))


@pytest.mark.parametrize("balance", [0.0, 0.4])
@pytest.mark.parametrize("n", [8, 12])
def test_the_search_finds_the_largest_form_of_all_labels(n, balance):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        one = problem(n, balance=balance, seed=seed, gap=rng.uniform(0, 2))
        labels, search = all_labels(one), LabelSearch(one)
        some = labels[rng.choice(len(labels), 5, replace=False)]
        one = replace(one, bounds=np.full(n, 10.0 ** rng.uniform(-1, 1)))
        alpha = mix_labels(one, some).multipliers if seed % 2 else one.bounds * rng.uniform(size=n)
        found, forms = search.best(alpha, np.c_[search.axes, some.T])
        Q = alpha[:, None] * one.gram * alpha
        np.testing.assert_allclose(forms, np.einsum("ti,ij,tj->t", found, Q, found), atol=1e-12)
        assert forms[0] == pytest.approx(np.einsum("ti,ij,tj->t", labels, Q, labels).max(), rel=1e-9)
        assert (np.diff(forms) <= 0).all()
        assert (np.abs(found @ one.shares) <= balance + 1e-9).all()
        assert len(np.unique(found * found[:, :1], axis=0)) == len(found)


@pytest.mark.parametrize("balance", [0.0, 0.5])
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_the_planes_come_to_the_optimum_over_all_labellings(C, balance):
    one = problem(C=C, balance=balance)
    labels = all_labels(one)
    optimum = mix_labels(one, labels).value
    _, mixture, bound, _ = generate_labels(one, 1e-6, 100)
    assert mixture.value == pytest.approx(optimum, rel=2e-6)
    assert bound <= optimum * (1 + 1e-7)
    assert mixture.value <= min(one.svm(y)[1] for y in labels) * (1 + 1e-6)
    assert solve_label_matrix(one).value <= mixture.value * (1 + 1e-6)


def test_two_tight_groups_leave_no_gap():
    """Equal rows within each group: the mixture is one labelling, and so is M."""
    one, y = tight()
    labels, mixture, *_ = generate_labels(one, 1e-2, 100)
    assert mixture.value == pytest.approx(one.svm(y)[1], rel=1e-3)
    assert abs(labels[mixture.weights.argmax()] @ y) == 10
    found = solve_label_matrix(one)
    assert found.value == pytest.approx(one.svm(y)[1], rel=1e-5)
    assert abs(np.sign(np.linalg.eigh(found.matrix)[1][:, -1]) @ y) == 10


def test_more_rounds_lower_the_value_and_raise_the_bound():
    one = problem(60)
    found = [generate_labels(one, 1e-3, rounds) for rounds in (1, 2, 4, 100)]
    values, bounds = np.array([mixture.value for _, mixture, *_ in found]), [bound for *_, bound, _ in found]
    assert (np.diff(values) <= 1e-5 * values[:-1]).all()
    assert (np.diff(bounds) >= 0).all()
    assert values[-1] - bounds[-1] <= 1e-3 * values[-1] < values[0] - bounds[0]
    labels = found[-1][0]
    assert (np.abs(labels @ one.shares) <= 0.4 + 1e-9).all()
    assert len(np.unique(labels * labels[:, :1], axis=0)) == len(labels)


@pytest.mark.parametrize("seed", range(4))
def test_order_and_scale_of_the_kernel_do_not_matter(seed):
    """The search is exhaustive enough at 8 rows; with more, rounding can lead it to other labellings."""
    one, order = problem(8, 2.0, 0.3, seed), np.random.default_rng(seed).permutation(8)
    mixed = Problem(one.gram[np.ix_(order, order)], one.bounds, one.shares, 0.3)
    scaled = problem(8, 2.0, 0.3, seed, scale=4e4)
    for solve in (lambda other: generate_labels(other, 1e-5, 100)[1], solve_label_matrix):
        value = solve(one).value
        assert solve(mixed).value == pytest.approx(value, rel=2e-5)
        assert 4e4 * solve(scaled).value == pytest.approx(value, rel=2e-5)


@pytest.mark.parametrize("solve", [lambda one: generate_labels(one, 1e-6, 100)[1], solve_label_matrix])
def test_a_weight_of_two_is_the_row_given_twice(solve):
    weights = some_weights(12, seed=5)
    one = problem(12, balance=0.9, weights=weights)
    assert solve(one).value == pytest.approx(solve(repeated(one, weights)).value, rel=1e-5)


# -- LG-MMC with a linear kernel ---------------------------------------------------------------


def some_columns(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([-1.0, 1.0], [n // 3, n - n // 3])
    X = rng.standard_normal((n, 4)) * [1.0, 2.0, 0.5, 1.0]
    X[:, 1] += 3 * y
    return CentredColumns(X), y


def test_one_labelling_on_columns_is_the_machine_of_its_labels():
    """Multipliers and objective are those of the dual, and the machine is that of scikit-learn."""
    columns, y = some_columns()
    found = mix_columns(columns, y[:, None], 2.0)
    rows = (columns.X - columns.mean) / columns.length
    alpha = found.multipliers
    w = rows.T @ (alpha * y)
    assert alpha.sum() - 0.5 * (w @ w + alpha @ alpha / 2.0) == pytest.approx(found.value, rel=1e-3)
    peer = LinearSVC(C=1.0, fit_intercept=False, tol=1e-8, max_iter=10**6).fit(rows, y)
    np.testing.assert_allclose(found.scores, y * (rows @ peer.coef_[0]), atol=5e-3)


def test_more_labellings_on_columns_never_raise_the_value():
    columns, y = some_columns()
    labels = np.c_[y, np.sign(np.random.default_rng(1).standard_normal((60, 4)))]
    values = [mix_columns(columns, labels[:, :count], 1.0).value for count in range(1, 6)]
    assert (np.diff(values) <= 5e-3 * values[0]).all()
    weights = mix_columns(columns, labels, 1.0).weights
    assert weights.sum() == pytest.approx(1)
    assert weights.argmax() == 0


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_sparse_columns_lead_to_the_clusters_of_dense_ones(C):
    X, y = make_blobs(300, centers=2, n_features=5, cluster_std=0.5, random_state=0)
    X[np.abs(X) < 1] = 0
    dense, sparse = (LinearLabelGenerationMMC(C=C).fit(rows) for rows in (X, scipy.sparse.csr_array(X)))
    np.testing.assert_array_equal(dense.labels_, y != y[0])
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-3)
    assert dense.n_iter_ >= 1


def test_units_of_the_columns_do_not_matter_to_the_linear_form():
    X, _ = make_blobs(100, centers=2, n_features=3, random_state=1)
    one, other = (LinearLabelGenerationMMC().fit(scale * X) for scale in (1.0, 1e4))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-3)


@pytest.mark.parametrize("balance", [0.0, 0.2, 0.8])
def test_linear_clusters_have_their_least_share(balance):
    X = np.random.default_rng(1).standard_normal((101, 3)) ** 3
    labels = LinearLabelGenerationMMC(balance=balance).fit(X).labels_
    assert np.bincount(labels, minlength=2).min() >= (1 - balance) / 2 * 101 - 1


# -- SDP ---------------------------------------------------------------------------------------


def triples_of(n):
    return np.array(list(combinations(range(n), 3)))


def transitive(M):
    """L1 and L2 as printed: m_ik >= m_ij + m_jk - 1, and m_jk >= -m_ij - m_ik - 1."""
    constraints = []
    for i, j, k in triples_of(M.shape[0]):
        for a, b, c in ((i, j, k), (j, i, k), (i, k, j)):
            constraints.append(M[a, c] >= M[a, b] + M[b, c] - 1)
        constraints.append(M[j, k] >= -M[i, j] - M[i, k] - 1)
    return constraints


def printed(one, triples=False):
    """The program as it is printed, over two."""
    n, s, u = len(one.bounds), one.shares, one.bounds
    M, delta = cvxpy.Variable((n, n), PSD=True), cvxpy.Variable()
    mu, nu = cvxpy.Variable(n, nonneg=True), cvxpy.Variable(n, nonneg=True)
    border = cvxpy.reshape(1 + mu - nu, (n, 1), order="C")
    corner = cvxpy.reshape(delta - 2 * u @ nu, (1, 1), order="C")
    block = cvxpy.bmat([[cvxpy.multiply(one.gram, M), border], [border.T, corner]])
    constraints = [cvxpy.diag(M) == 1, (block + block.T) / 2 >> 0, s @ M @ s <= one.balance**2]
    constraints += transitive(M) if triples else []
    program = cvxpy.Problem(cvxpy.Minimize(delta), constraints)
    program.solve(solver="CLARABEL")
    return program.value / 2


# On some processors the peer doubts its last digits; the bounds below say how many of them count.
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("weights", [None, some_weights(12)])
@pytest.mark.parametrize(("C", "balance"), [(0.05, 0.4), (1.0, 0.4), (1.0, 0.0), (50.0, 0.1)])
def test_the_optimum_is_that_of_the_printed_form(C, balance, weights):
    one = problem(12, C, balance, gap=1.5, weights=weights)
    found, expected = solve_label_matrix(one), printed(one)
    assert found.converged
    assert found.value == pytest.approx(expected, rel=1e-5)
    assert found.value <= expected * (1 + 1e-6)
    np.testing.assert_allclose(np.diag(found.matrix), 1.0, atol=1e-3)
    assert np.linalg.eigvalsh(found.matrix)[0] >= -1e-9
    assert one.shares @ found.matrix @ one.shares <= balance**2 + 1e-5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("balance", [0.0, 0.5])
def test_the_optimum_bounds_the_objective_of_all_labels(seed, balance):
    for C in (0.1, 1.0, 10.0):
        one = problem(8, C, balance, seed, gap=0.7)
        best = min(one.svm(y)[1] for y in all_labels(one))
        assert 0 < solve_label_matrix(one).value <= best * (1 + 1e-6)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(("C", "balance", "weights"), [(1.0, 0.4, None), (5.0, 0.1, some_weights(9))])
def test_the_optimum_with_triples_is_that_of_the_printed_form(C, balance, weights):
    one = problem(9, C, balance, seed=2, gap=0.5, weights=weights)
    found, expected = solve_with_triples(one, rise=0.0), printed(one, triples=True)
    assert found.value == pytest.approx(expected, rel=1e-4)
    assert found.value > solve_label_matrix(one).value * 1.001
    assert len(violated_triples(found.matrix, triples_of(9))) == 0


@pytest.mark.parametrize("n", [8, 16])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_the_bound_with_triples_is_not_looser_and_still_a_bound(n, C):
    for seed in range(3):
        one = problem(n, C, seed=seed, gap=0.5)
        found = solve_with_triples(one).value
        assert found >= solve_label_matrix(one).value * (1 - 2e-6)
        labels = all_labels(one) if n == 8 else [np.repeat([1.0, -1.0], n // 2)]
        assert found <= min(one.svm(y)[1] for y in labels) * (1 + 1e-6)


def test_no_labels_violate_a_constraint_on_triples_and_each_violation_is_found():
    y = np.where(np.random.default_rng(0).standard_normal(7) > 0, 1.0, -1.0)
    assert len(violated_triples(np.outer(y, y), triples_of(7))) == 0
    M = np.eye(4)
    M[0, 1] = M[1, 0] = M[1, 2] = M[2, 1] = 0.9  # so rows 0 and 2 should be alike
    M[0, 2] = M[2, 0] = 0.5
    (v,) = violated_triples(M, triples_of(4))
    assert v @ M @ v == pytest.approx(3 + 2 * (0.5 - 0.9 - 0.9))


def test_triples_of_many_rows_are_refused_in_one_sentence():
    rows = make_blobs(61, random_state=0)[0]
    with pytest.raises(mmcnb.InputError, match="takes at most 60 rows, not 61; give fewer"):
        SDPMMC(triples=True).fit(rows)
    model = SDPMMC(triples=True).fit(rows[:12])
    assert SDPMMC().fit(rows[:12]).relaxed_ * (1 - 2e-6) <= model.relaxed_ <= model.objective_ * (1 + 1e-9)


# -- GMMC --------------------------------------------------------------------------------------


def some_inverse(n=8, seed=0):
    one = problem(n, seed=seed)
    return inverse_without_offset(one.gram + np.eye(n)) + 1.0


def test_the_offset_is_minimised_out():
    rng = np.random.default_rng(0)
    K, z = rbf_kernel(rng.standard_normal((6, 2))), rng.standard_normal(6)
    inverse = np.linalg.inv(K)
    values = [(z - b) @ inverse @ (z - b) for b in np.linspace(-5, 5, 20_001)]
    assert z @ inverse_without_offset(K) @ z == pytest.approx(min(values), rel=1e-4)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_multipliers_are_those_of_cvxpy(seed, C):
    A = some_inverse(seed=seed)
    multipliers = cvxpy.Variable(8)
    inside = [A - cvxpy.diag(multipliers) >> 0, multipliers >= 0, multipliers <= C]
    program = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(multipliers)), inside)
    program.solve(solver="CLARABEL")
    found = largest_multipliers(A, C)
    assert found.sum() == pytest.approx(program.value, rel=1e-3)
    assert np.linalg.eigvalsh(A - np.diag(found))[0] >= -1e-9
    assert ((found >= 0) & (found <= C)).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_sum_of_the_multipliers_bounds_the_objective_of_all_labels(seed):
    A = some_inverse(seed=seed)
    labels = np.array([(1.0, *rest) for rest in product((-1.0, 1.0), repeat=7)])
    least = np.einsum("ti,ij,tj->t", labels, A, labels).min()
    assert 0 < largest_multipliers(A, 1e3).sum() <= least


def test_the_scores_part_two_groups_and_keep_the_balance(X):
    rows, y = make_blobs(80, centers=2, cluster_std=0.5, random_state=1)
    np.testing.assert_array_equal(GeneralisedMMC().fit(rows).labels_, y != y[0])
    assert np.bincount(GeneralisedMMC(balance=0.1).fit(X).labels_).min() >= 0.45 * len(X) - 1


# -- kernel k-means on a graph -----------------------------------------------------------------


def groups(n, seed=0):
    return make_blobs(n, n_features=3, centers=5, random_state=seed)[0]


def association_of(K, labels):
    hot = labels[:, None] == np.unique(labels)
    return (np.einsum("ih,ij,jh->h", hot, K, hot) / hot.sum(axis=0)).sum()


@pytest.mark.parametrize("sparse", [False, True])
def test_the_graph_has_the_kernel_values_that_are_large_enough(sparse):
    X = groups(120)
    K = rbf_kernel(X, gamma=0.4)
    graph = ball_graph(scipy.sparse.csr_array(X) if sparse else X, 0.4, least=0.2)
    np.testing.assert_allclose(graph.toarray(), np.where(K >= 0.2, K, 0.0), atol=1e-6)
    assert graph.nnz == (K >= 0.2).sum()


@pytest.mark.parametrize("least", [1e-300, 0.05, 0.5])
def test_no_round_on_the_graph_lowers_the_ratio_association(least):
    K, start = ball_graph(groups(200), 0.3, least), np.random.default_rng(0).integers(5, size=200)
    found = [graph_kernel_kmeans(K, start, rounds) for rounds in range(1, 12)]
    values = [association_of(K.toarray(), one.labels) for one in found]
    np.testing.assert_allclose([one.association for one in found], values, rtol=1e-9)
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] > association_of(K.toarray(), start)
    assert graph_kernel_kmeans(K, start).converged


@pytest.mark.parametrize("least", [1e-300, 0.05, 0.5])
def test_the_least_eigenvalue_is_bounded_closely_from_below(least):
    K = ball_graph(groups(200), 0.3, least)
    values = np.linalg.eigvalsh(K.toarray())
    assert values[0] - 0.01 * values[-1] <= least_eigenvalue(K) <= values[0] + 1e-12


def test_on_the_whole_matrix_the_graph_form_improves_no_kernel_k_means():
    X = groups(150)
    labels = mmcnb.KernelKMeans(5, gamma=0.3, n_landmarks=150, random_state=0).fit(X).labels_
    np.testing.assert_array_equal(graph_kernel_kmeans(ball_graph(X, 0.3, 1e-300), labels).labels, labels)

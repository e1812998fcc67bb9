"""The papers' peers: their programs are those of other solvers, and their bounds bound."""

from dataclasses import replace
from functools import partial
from itertools import combinations, product

import cvxpy
import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs
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
from benchmarks.baselines.generalised_mmc import (
    inverse_without_offset,
    largest_multipliers,
)
from benchmarks.baselines.graph_kmeans import least_eigenvalue
from benchmarks.baselines.label_generation import (
    LabelSearch,
    generate_labels,
    mix_labels,
)
from benchmarks.baselines.linear_label_generation import CentredColumns, mix_columns
from benchmarks.baselines.sdp import (
    solve_label_matrix,
    solve_with_triples,
    violated_triples,
)
from benchmarks.baselines.svm import Problem, balanced_threshold

pytestmark = pytest.mark.slow
RELAXED = [SDPMMC, LabelGenerationMMC]
SEEDED = partial(IterativeSVR, random_state=0)
WEIGHTS = np.random.default_rng(1).integers(1, 4, 12).astype(float)
# On some processors the peer doubts its last digits; the bounds below say how many of
# them count.
doubtful = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")


@pytest.fixture(scope="module")
def X():
    return make_blobs(60, centers=2, cluster_std=2.0, random_state=3)[0]


def problem(n=8, C=1.0, balance=0.4, seed=0, gap=1.0, weights=None):
    """The Gaussian kernel of two groups in the plane, centred."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X[: n // 2, 0] += 2 * gap
    weights = np.ones(n) if weights is None else weights
    shares = weights / weights.sum()
    H = np.eye(n) - shares
    return Problem(H @ rbf_kernel(X, gamma=0.5) @ H.T, C * weights, shares, balance)


def all_labels(one):
    """Every labelling in balance, once."""
    labels = np.array(
        [(1.0, *rest) for rest in product((-1.0, 1.0), repeat=len(one.shares) - 1)]
    )
    return labels[np.abs(labels @ one.shares) <= one.balance + 1e-9]


def least_objective(one):
    return min(one.svm(y)[1] for y in all_labels(one))


# -- all of them -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [SEEDED, *RELAXED, LinearLabelGenerationMMC, GeneralisedMMC]
)
def test_two_groups_are_found_and_both_clusters_have_their_least_share(kind):
    rows, y = make_blobs(40, centers=2, cluster_std=0.3, random_state=1)
    np.testing.assert_array_equal(kind().fit(rows).labels_, y != y[0])
    X = np.random.default_rng(1).standard_normal((41, 3)) ** 3
    for balance in (0.1, 0.8):
        assert (
            np.bincount(kind(balance=balance).fit(X).labels_).min()
            >= (1 - balance) / 2 * 41 - 1
        )


@pytest.mark.parametrize("C", [1e-2, 1.0])
def test_the_machine_of_given_labels_is_that_of_scikit_learn(C):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 3))
    X -= X.mean(axis=0)
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(30) > 0, 1, -1)
    bounds = C * rng.integers(1, 4, 30)
    alpha, value = Problem(X @ X.T, bounds, np.full(30, 1 / 30), 0.4).svm(y)
    w = X.T @ (alpha * y)
    assert 0.5 * w @ w + bounds @ np.maximum(0, 1 - y * (X @ w)) == pytest.approx(
        value, rel=1e-6
    )
    machine = LinearSVC(
        C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0
    )
    machine.fit(X, y, sample_weight=bounds / C)
    np.testing.assert_allclose(machine.coef_[0], w, atol=1e-3 * np.abs(w).max())


# -- IterSVR ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "kernel"),
    [("epsilon_insensitive", "rbf"), ("hinge", "linear"), ("hinge", "poly")],
)
def test_the_labels_are_a_fixpoint_of_the_machine(X, loss, kernel):
    """Trained on the labels that it ended with, scikit-learn's machine gives them back."""
    model = IterativeSVR(loss=loss, kernel=kernel, gamma=0.1, random_state=0).fit(X)
    assert model.converged_
    assert (
        not IterativeSVR(init="random", max_rounds=1, random_state=0).fit(X).converged_
    )
    shared = {"kernel": kernel, "gamma": 0.1, "coef0": 1.0}
    machine = SVC(**shared) if loss == "hinge" else SVR(epsilon=0.0, **shared)
    machine.fit(X, 2 * model.labels_ - 1)
    f = machine.decision_function(X) if loss == "hinge" else machine.predict(X)
    f -= balanced_threshold(f, np.full(len(X), 1 / len(X)), 0.4)
    np.testing.assert_array_equal(model.labels_, f >= 0)
    w = machine.dual_coef_[0] @ f[machine.support_]
    losses = np.maximum(0, 1 - np.abs(f)) if loss == "hinge" else np.abs(1 - np.abs(f))
    assert model.objective_ == pytest.approx(0.5 * w + losses.sum(), rel=1e-2)


def test_a_sample_labels_the_rest_and_sparse_rows_are_taken():
    X, y = make_blobs(3000, centers=2, cluster_std=0.5, random_state=0)
    for rows in (X, scipy.sparse.csr_array(X)):
        model = IterativeSVR(sample_size=200, random_state=0).fit(rows)
        np.testing.assert_array_equal(model.labels_, y != y[0])


# -- both relaxations ------------------------------------------------------------------


@pytest.mark.parametrize("kind", RELAXED)
@pytest.mark.parametrize(
    ("kernel", "C"), [("rbf", 0.1), ("linear", 10.0), ("poly", 1.0)]
)
def test_the_relaxed_optimum_bounds_the_objective(X, kind, kernel, C):
    model = kind(C=C, kernel=kernel).fit(X)
    assert model.converged_
    assert model.relaxed_ <= model.objective_ * (1 + 1e-9)
    sparse = kind(C=C, kernel=kernel).fit(scipy.sparse.csr_array(X))
    assert sparse.objective_ == pytest.approx(model.objective_, rel=1e-9)


# -- LG-MMC ----------------------------------------------------------------------------


@pytest.mark.parametrize(("C", "tolerance"), [(1e-3, 1e-8), (1.0, 1e-3), (1e3, 1e-8)])
def test_the_gap_is_closed_and_is_that_of_the_primal_form(C, tolerance):
    one = problem(40, C)
    labels = np.sign(np.random.default_rng(0).standard_normal((6, 40)))
    mixture = mix_labels(one, labels, tolerance)
    assert 0 <= mixture.gap <= tolerance * (mixture.value + mixture.gap)
    alpha = mixture.multipliers
    weights = mixture.weights
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    assert ((alpha >= 0) & (alpha <= one.bounds)).all()
    forms = np.array([(alpha * y) @ one.gram @ (alpha * y) for y in labels])
    assert mixture.value == pytest.approx(alpha.sum() - 0.5 * forms.max())
    f = weights @ [y * (one.gram @ (alpha * y)) for y in labels]
    primal = 0.5 * weights @ forms + one.bounds @ np.maximum(0, 1 - f)
    assert mixture.value + mixture.gap == pytest.approx(primal, rel=1e-9)
    assert mix_labels(one, labels[:1]).value == pytest.approx(
        one.svm(labels[0])[1], rel=1e-6
    )


@pytest.mark.parametrize(("n", "balance"), [(8, 0.4), (12, 0.0)])
def test_the_search_finds_the_largest_form_of_all_labels(n, balance):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        one = problem(n, balance=balance, seed=seed, gap=rng.uniform(0, 2))
        labels = all_labels(one)
        search = LabelSearch(one)
        some = labels[rng.choice(len(labels), 5, replace=False)]
        one = replace(one, bounds=np.full(n, 10.0 ** rng.uniform(-1, 1)))
        alpha = mix_labels(one, some).multipliers
        best, forms = search.best(alpha, np.c_[search.axes, some.T])
        Q = alpha[:, None] * one.gram * alpha
        np.testing.assert_allclose(
            forms, np.einsum("ti,ij,tj->t", best, Q, best), atol=1e-12
        )
        assert forms[0] == pytest.approx(
            np.einsum("ti,ij,tj->t", labels, Q, labels).max(), rel=1e-9
        )
        assert (np.diff(forms) <= 0).all()
        assert (np.abs(best @ one.shares) <= balance + 1e-9).all()
        assert len(np.unique(best * best[:, :1], axis=0)) == len(best)


@pytest.mark.parametrize(("C", "balance"), [(0.1, 0.5), (1.0, 0.0), (30.0, 0.5)])
def test_the_planes_come_to_the_optimum_over_all_labellings(C, balance):
    one = problem(C=C, balance=balance)
    optimum = mix_labels(one, all_labels(one)).value
    _, mixture, bound, _ = generate_labels(one, 1e-6, 100)
    assert mixture.value == pytest.approx(optimum, rel=2e-6)
    assert bound <= optimum * (1 + 1e-7)
    assert mixture.value <= least_objective(one) * (1 + 1e-6)
    assert solve_label_matrix(one).value <= mixture.value * (1 + 1e-6)
    early = generate_labels(one, 1e-6, 1)
    assert early[1].value >= mixture.value * (1 - 1e-6)
    assert early[2] <= bound * (1 + 1e-6)


def test_one_labelling_on_columns_is_the_machine_of_its_labels_and_more_lower_the_value():
    rng = np.random.default_rng(0)
    y = np.repeat([-1.0, 1.0], [20, 40])
    X = rng.standard_normal((60, 4)) * [1.0, 2.0, 0.5, 1.0]
    X[:, 1] += 3 * y
    columns = CentredColumns(X)
    mixture = mix_columns(columns, y[:, None], 2.0)
    rows = (columns.X - columns.mean) / columns.length
    alpha = mixture.multipliers
    w = rows.T @ (alpha * y)
    assert alpha.sum() - 0.5 * (w @ w + alpha @ alpha / 2.0) == pytest.approx(
        mixture.value, rel=1e-3
    )
    peer = LinearSVC(C=1.0, fit_intercept=False, tol=1e-8, max_iter=10**6).fit(rows, y)
    np.testing.assert_allclose(mixture.scores, y * (rows @ peer.coef_[0]), atol=5e-3)
    labels = np.c_[y, np.sign(rng.standard_normal((60, 4)))]
    mixtures = [mix_columns(columns, labels[:, :count], 1.0) for count in range(1, 6)]
    values = [one.value for one in mixtures]
    assert (np.diff(values) <= 5e-3 * values[0]).all()
    assert mixtures[-1].weights.argmax() == 0


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_sparse_columns_and_other_units_lead_to_the_same_linear_clusters(C):
    X, y = make_blobs(300, centers=2, n_features=5, cluster_std=0.5, random_state=0)
    X[np.abs(X) < 1] = 0
    model = LinearLabelGenerationMMC(C=C).fit(X)
    np.testing.assert_array_equal(model.labels_, y != y[0])
    for rows in (scipy.sparse.csr_array(X), 1e4 * X):
        other = LinearLabelGenerationMMC(C=C).fit(rows)
        np.testing.assert_array_equal(other.labels_, model.labels_)
        assert other.objective_ == pytest.approx(model.objective_, rel=1e-3)


# -- SDP -------------------------------------------------------------------------------


def transitive(M):
    """L1 and L2 as printed: m_ik >= m_ij + m_jk - 1, and m_jk >= -m_ij - m_ik - 1."""
    constraints = []
    for i, j, k in combinations(range(M.shape[0]), 3):
        for a, b, c in ((i, j, k), (j, i, k), (i, k, j)):
            constraints.append(M[a, c] >= M[a, b] + M[b, c] - 1)
        constraints.append(M[j, k] >= -M[i, j] - M[i, k] - 1)
    return constraints


def printed(one, triples=False):
    """The program as it is printed, over two."""
    n = len(one.bounds)
    s = one.shares
    u = one.bounds
    M = cvxpy.Variable((n, n), PSD=True)
    delta = cvxpy.Variable()
    mu = cvxpy.Variable(n, nonneg=True)
    nu = cvxpy.Variable(n, nonneg=True)
    border = cvxpy.reshape(1 + mu - nu, (n, 1), order="C")
    corner = cvxpy.reshape(delta - 2 * u @ nu, (1, 1), order="C")
    block = cvxpy.bmat([[cvxpy.multiply(one.gram, M), border], [border.T, corner]])
    constraints = [
        cvxpy.diag(M) == 1,
        (block + block.T) / 2 >> 0,
        s @ M @ s <= one.balance**2,
    ]
    constraints += transitive(M) if triples else []
    program = cvxpy.Problem(cvxpy.Minimize(delta), constraints)
    program.solve(solver="CLARABEL")
    return program.value / 2


@doubtful
@pytest.mark.parametrize(
    ("C", "balance", "weights"),
    [(0.05, 0.4, WEIGHTS), (1.0, 0.0, None), (50.0, 0.1, WEIGHTS)],
)
def test_the_optimum_is_that_of_the_printed_form(C, balance, weights):
    one = problem(12, C, balance, gap=1.5, weights=weights)
    relaxed = solve_label_matrix(one)
    expected = printed(one)
    assert relaxed.converged
    assert relaxed.value == pytest.approx(expected, rel=1e-5)
    assert relaxed.value <= expected * (1 + 1e-6)
    np.testing.assert_allclose(np.diag(relaxed.matrix), 1.0, atol=1e-3)
    assert np.linalg.eigvalsh(relaxed.matrix)[0] >= -1e-9
    assert one.shares @ relaxed.matrix @ one.shares <= balance**2 + 1e-5


@doubtful
@pytest.mark.parametrize(
    ("C", "balance", "weights"), [(1.0, 0.4, None), (5.0, 0.1, WEIGHTS[:9])]
)
def test_the_optimum_with_triples_is_that_of_the_printed_form(C, balance, weights):
    one = problem(9, C, balance, seed=2, gap=0.5, weights=weights)
    relaxed = solve_with_triples(one, rise=0.0)
    expected = printed(one, triples=True)
    assert relaxed.value == pytest.approx(expected, rel=1e-4)
    assert relaxed.value > solve_label_matrix(one).value * 1.001
    assert (
        len(violated_triples(relaxed.matrix, np.array([*combinations(range(9), 3)])))
        == 0
    )


@pytest.mark.parametrize(("C", "balance"), [(0.1, 0.5), (1.0, 0.0), (10.0, 0.4)])
def test_both_optima_bound_the_objective_of_all_labels(C, balance):
    one = problem(8, C, balance, gap=0.7)
    value = solve_label_matrix(one).value
    assert (
        0
        < value * (1 - 2e-6)
        <= solve_with_triples(one).value
        <= least_objective(one) * (1 + 1e-6)
    )


def test_triples_of_many_rows_are_refused_in_one_sentence():
    rows = make_blobs(61, random_state=0)[0]
    with pytest.raises(
        mmcnb.InputError, match="accepts at most 60 rows, but X has 61; pass fewer rows"
    ):
        SDPMMC(triples=True).fit(rows)
    model = SDPMMC(triples=True).fit(rows[:12])
    assert (
        SDPMMC().fit(rows[:12]).relaxed_ * (1 - 2e-6)
        <= model.relaxed_
        <= model.objective_ * (1 + 1e-9)
    )


# -- GMMC ------------------------------------------------------------------------------


def test_the_offset_is_minimised_out():
    rng = np.random.default_rng(0)
    K = rbf_kernel(rng.standard_normal((6, 2)))
    z = rng.standard_normal(6)
    inverse = np.linalg.inv(K)
    values = [(z - b) @ inverse @ (z - b) for b in np.linspace(-5, 5, 20_001)]
    assert z @ inverse_without_offset(K) @ z == pytest.approx(min(values), rel=1e-4)


@pytest.mark.parametrize("C", [0.1, 1.0, 1e3])
def test_the_multipliers_are_those_of_cvxpy(C):
    A = inverse_without_offset(problem().gram + np.eye(8)) + 1.0
    multipliers = cvxpy.Variable(8)
    inside = [A - cvxpy.diag(multipliers) >> 0, multipliers >= 0, multipliers <= C]
    program = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(multipliers)), inside)
    program.solve(solver="CLARABEL")
    largest = largest_multipliers(A, C)
    assert largest.sum() == pytest.approx(program.value, rel=1e-3)
    assert np.linalg.eigvalsh(A - np.diag(largest))[0] >= -1e-9
    assert ((largest >= 0) & (largest <= C)).all()
    labels = np.array([*product((-1.0, 1.0), repeat=8)])
    # a bound for all labels
    assert largest.sum() <= np.einsum("ti,ij,tj->t", labels, A, labels).min()


# -- kernel k-means on a graph ---------------------------------------------------------


def groups(n):
    return make_blobs(n, n_features=3, centers=5, random_state=0)[0]


def association_of(K, labels):
    hot = labels[:, None] == np.unique(labels)
    return (np.einsum("ih,ij,jh->h", hot, K, hot) / hot.sum(axis=0)).sum()


@pytest.mark.parametrize("least", [1e-300, 0.5])
def test_no_round_on_the_graph_lowers_the_ratio_association(least):
    K = ball_graph(groups(200), 0.3, least)
    start = np.random.default_rng(0).integers(5, size=200)
    rounds = [graph_kernel_kmeans(K, start, count) for count in range(1, 12)]
    values = [association_of(K.toarray(), one.labels) for one in rounds]
    np.testing.assert_allclose([one.association for one in rounds], values, rtol=1e-9)
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] > association_of(K.toarray(), start)
    assert graph_kernel_kmeans(K, start).converged
    eigenvalues = np.linalg.eigvalsh(K.toarray())
    assert (
        eigenvalues[0] - 0.01 * eigenvalues[-1]
        <= least_eigenvalue(K)
        <= eigenvalues[0] + 1e-12
    )


def test_on_the_whole_matrix_the_graph_form_improves_no_kernel_k_means():
    X = groups(150)
    labels = (
        mmcnb.KernelKMeans(5, gamma=0.3, n_landmarks=150, random_state=0).fit(X).labels_
    )
    np.testing.assert_array_equal(
        graph_kernel_kmeans(ball_graph(X, 0.3, 1e-300), labels).labels, labels
    )

"""Kernel k-means: Lloyd's passes, and means as representatives."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import RidgeMap, landmark_values
from mmcnb.least_squares.kernel_kmeans import lloyd
from mmcnb.least_squares.partition import canonical_labels
from mmcnb.samples.matrix import row_shares

LINEAR, RBF = Kernel("linear"), Kernel("rbf", 0.3)


def groups(n, k=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 3, (k, d))[rng.integers(k, size=n)] + rng.standard_normal((n, d))


def mapped_rows(X, kernel, basis, weights=None):
    """Features of all rows, and the map to centred coordinates."""
    values, normalization = landmark_values(X, kernel, basis)
    return values, RidgeMap(normalization, row_shares(len(X), weights) @ values @ normalization)


def passes(X, kernel, basis, chosen, weights=None, max_iter=300, tol=0.0):
    """All passes from the means at some rows."""
    values, mapped = mapped_rows(X, kernel, basis, weights)
    means = mapped.decide(values[chosen])
    found = lloyd(lambda sweep: sweep.block(values, 0, len(X)), mapped, means, weights, max_iter, tol)
    return list(found), values, mapped


def inertia_of(K, labels, weights=None):
    """Σ|φ(x) - m|² from the kernel matrix."""
    weights, total = np.ones(len(K)) if weights is None else weights, 0.0
    for h in np.unique(labels):
        own = np.where(labels == h, weights, 0.0)
        total += own @ np.diag(K) - own @ K @ own / max(own.sum(), 1e-300)
    return total


# -- passes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_with_a_linear_kernel_it_is_k_means(seed, weighted):
    X = groups(800, seed=seed) + 10.0
    weights = np.random.default_rng(seed).integers(0, 4, 800).astype(float) if weighted else None
    chosen = np.flatnonzero(np.ones(800) if weights is None else weights)[:6]
    *_, last = passes(X, LINEAR, X[:20], chosen, weights)[0]
    plain = KMeans(6, init=X[chosen], n_init=1, tol=0, max_iter=300, algorithm="lloyd")
    plain.fit(X, sample_weight=weights)
    assert last.converged
    assert last.inertia == pytest.approx(plain.inertia_, rel=1e-5)  # kernel values are float32
    labels = last.rule.label(mapped_rows(X, LINEAR, X[:20])[0])
    np.testing.assert_array_equal(labels, canonical_labels(plain.labels_))


@pytest.mark.parametrize("kernel", [LINEAR, RBF, Kernel("poly", 0.1, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_no_pass_raises_the_inertia_which_is_that_of_the_kernel_matrix(kernel, seed):
    X = groups(150, seed=seed)
    found, values, _ = passes(X, kernel, X, np.arange(7))
    inertias = [one.inertia for one in found]
    assert len(found) > 3
    assert (np.diff(inertias) <= 1e-9 * inertias[0]).all()
    K = kernel(X, X)
    for one in found:
        assert one.inertia == pytest.approx(inertia_of(K, one.rule.label(values)), rel=1e-4)
        np.testing.assert_array_equal(one.sizes, np.bincount(one.rule.label(values), minlength=7))
    assert [one.converged for one in found] == [False] * (len(found) - 1) + [True]
    again = passes(X, kernel, X, np.arange(7), max_iter=2)[0]
    assert [one.n_iter for one in again] == [1, 2]
    assert not again[-1].converged


def test_a_larger_tolerance_ends_sooner():
    X = groups(400)
    counts = [len(passes(X, RBF, X[:50], np.arange(6), tol=tol)[0]) for tol in (0.0, 1e-3, 1e-1)]
    assert counts[0] > counts[1] > counts[2]


@pytest.mark.parametrize("seed", range(3))
def test_a_weight_is_a_row_given_so_often(seed):
    X, rng = groups(300, seed=seed), np.random.default_rng(seed)
    weights = np.r_[np.ones(5), rng.integers(0, 4, 295)]
    often = np.repeat(np.arange(300), weights.astype(int))
    (*_, one), values, _ = passes(X, RBF, X[:40], np.arange(5), weights)
    (*_, other), repeated, _ = passes(X[often], RBF, X[:40], np.arange(5))
    assert one.inertia == pytest.approx(other.inertia, rel=1e-9)
    np.testing.assert_allclose(one.sizes, other.sizes)
    np.testing.assert_array_equal(one.rule.label(values)[often], other.rule.label(repeated))


def test_rows_that_change_places_take_their_labels_along():
    X, order = groups(500), np.random.default_rng(0).permutation(500)
    (*_, one), values, _ = passes(X, RBF, X[:40], np.arange(5))
    (*_, other), turned, _ = passes(X[order], RBF, X[:40], np.argsort(order)[:5])
    labels = canonical_labels(one.rule.label(values)[order])
    np.testing.assert_array_equal(other.rule.label(turned), labels)
    assert other.inertia == pytest.approx(one.inertia, rel=1e-9)


def test_a_cluster_without_rows_keeps_its_mean_and_comes_last():
    X = groups(100)
    values, mapped = mapped_rows(X, RBF, X[:30])
    far = np.full(mapped.matrix.shape[1], 99.0)
    means = np.stack([far, *mapped.decide(values[:2])])
    *_, last = lloyd(lambda sweep: sweep.block(values, 0, 100), mapped, means, None, 50, 0.0)
    assert last.sizes[2] == 0 < last.sizes[:2].min()
    np.testing.assert_array_equal(last.means[2], far)
    assert last.converged


# -- representatives -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_means_are_the_representatives_that_change_the_kernel_matrix_least(seed):
    """Theorem 4: among representatives of given clusters, in the Frobenius norm."""
    X, rng = groups(60, seed=seed), np.random.default_rng(seed)
    (*_, last), values, mapped = passes(X, RBF, X, np.arange(4))
    z, labels = values @ mapped.matrix, last.rule.label(values)
    means = last.means + mapped.centre
    np.testing.assert_allclose(means, [z[labels == h].mean(axis=0) for h in range(4)], atol=1e-9)
    K = z @ z.T

    def distance(representatives):
        return np.linalg.norm(K - representatives[labels] @ representatives[labels].T)

    least = distance(means)
    others = [
        means + size * rng.standard_normal(means.shape) for size in (1e-3, 1e-2, 0.1, 1) for _ in range(9)
    ]
    others += [np.array([z[rng.choice(np.flatnonzero(labels == h))] for h in range(4)]) for _ in range(50)]
    others += [means * (1 + step) for step in (-0.1, -0.01, 0.01, 0.1)]
    assert min(map(distance, others)) > least

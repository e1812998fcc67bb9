"""Kernel k-means: Lloyd's passes, and means as representatives."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import RidgeMap, landmark_values
from mmcnb.graph.merge_tree import by_first
from mmcnb.least_squares.kernel_kmeans import lloyd
from mmcnb.samples.matrix import row_shares

LINEAR = Kernel("linear")
RBF = Kernel("rbf", 0.3)


def groups(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 3, (5, 3))[rng.integers(5, size=n)] + rng.standard_normal(
        (n, 3)
    )


def mapped_rows(X, kernel, basis, weights=None):
    """Features of all rows, and the map to centred coordinates."""
    values, normalization = landmark_values(X, kernel, basis)
    return values, RidgeMap(
        normalization, row_shares(len(X), weights) @ values @ normalization
    )


def passes(X, kernel, basis, chosen, weights=None, max_iter=300, tol=0.0):
    """All passes from the means at some rows."""
    values, mapped = mapped_rows(X, kernel, basis, weights)
    means = mapped.decide(values[chosen])
    steps = lloyd(
        lambda sweep: sweep.block(values, 0, len(X)),
        mapped,
        means,
        weights,
        max_iter,
        tol,
    )
    return list(steps), values, mapped


@pytest.mark.parametrize("weighted", [False, True])
def test_with_a_linear_kernel_it_is_k_means(weighted):
    X = groups(400) + 10.0
    weights = (
        np.random.default_rng(0).integers(0, 4, 400).astype(float) if weighted else None
    )
    chosen = np.flatnonzero(np.ones(400) if weights is None else weights)[:6]
    (*_, last), values, _ = passes(X, LINEAR, X[:20], chosen, weights)
    plain = KMeans(6, init=X[chosen], n_init=1, tol=0, max_iter=300, algorithm="lloyd")
    plain.fit(X, sample_weight=weights)
    assert last.converged
    # kernel values are float32
    assert last.inertia == pytest.approx(plain.inertia_, rel=1e-5)
    np.testing.assert_array_equal(last.rule.label(values), by_first(plain.labels_))


@pytest.mark.parametrize("kernel", [LINEAR, RBF, Kernel("poly", 0.1, 2)])
def test_no_pass_raises_the_inertia_which_is_that_of_the_kernel_matrix(kernel):
    X = groups(150)
    steps, values, mapped = passes(X, kernel, X, np.arange(7))
    inertias = [step.inertia for step in steps]
    assert len(steps) > 3
    assert (np.diff(inertias) <= 1e-9 * inertias[0]).all()
    K = kernel(X, X)
    z = values @ mapped.matrix
    ends = steps[-1].rule.label(values)
    means = [z[ends == h].mean(axis=0) for h in range(7)]
    np.testing.assert_allclose(steps[-1].means + mapped.centre, means, atol=1e-9)
    for step in steps:
        same = np.eye(7)[step.rule.label(values)]
        sizes = same.sum(axis=0)
        # Σ|φ(x) - m|²
        expected = (
            np.trace(K) - (np.diag(same.T @ K @ same) / np.maximum(sizes, 1)).sum()
        )
        assert step.inertia == pytest.approx(expected, rel=1e-4)
        np.testing.assert_array_equal(step.sizes, sizes)
    assert [step.converged for step in steps] == [False] * (len(steps) - 1) + [True]
    again, _, _ = passes(X, kernel, X, np.arange(7), max_iter=2)
    assert [step.n_iter for step in again] == [1, 2]
    assert not again[-1].converged


def test_a_larger_tolerance_ends_sooner():
    X = groups(400)
    counts = [
        len(passes(X, RBF, X[:50], np.arange(6), tol=tol)[0])
        for tol in (0.0, 1e-3, 1e-1)
    ]
    assert counts[0] > counts[1] > counts[2]


def test_a_weight_is_a_row_given_so_often():
    X = groups(300)
    rng = np.random.default_rng(0)
    weights = np.r_[np.ones(5), rng.integers(0, 4, 295)]
    often = np.repeat(np.arange(300), weights.astype(int))
    (*_, one), values, _ = passes(X, RBF, X[:40], np.arange(5), weights)
    (*_, other), repeated, _ = passes(X[often], RBF, X[:40], np.arange(5))
    assert one.inertia == pytest.approx(other.inertia, rel=1e-9)
    np.testing.assert_allclose(one.sizes, other.sizes)
    np.testing.assert_array_equal(
        one.rule.label(values)[often], other.rule.label(repeated)
    )


def test_a_cluster_without_rows_keeps_its_mean_and_comes_last():
    X = groups(100)
    values, mapped = mapped_rows(X, RBF, X[:30])
    far = np.full(mapped.matrix.shape[1], 99.0)
    means = np.stack([far, *mapped.decide(values[:2])])
    *_, last = lloyd(
        lambda sweep: sweep.block(values, 0, 100), mapped, means, None, 50, 0.0
    )
    assert last.sizes[2] == 0 < last.sizes[:2].min()
    np.testing.assert_array_equal(last.means[2], far)
    assert last.converged

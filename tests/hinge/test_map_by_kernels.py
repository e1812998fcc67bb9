"""A sample under several kernels: one spread, kernels that say something, clusters that are parted."""

from types import SimpleNamespace

import numpy as np
import pytest

from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError
from mmcnb.features.base_kernels import centred_gram, check_kernels, distinct_kernels, grams_of
from mmcnb.features.kernel import CallableKernel, Kernel, MultipleKernels
from mmcnb.hinge.cccp import CCCPLimits
from mmcnb.hinge.multiple_kernels import MultipleKernelSample, search_clusters
from mmcnb.hinge.sample_search import SearchConfig
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.samples import open_samples
from tests import reference

KERNELS = (Kernel("rbf", 0.5), Kernel("linear"), Kernel("poly", 0.3, 2, 1.0))


def stack(*kernels, columns=None):
    return MultipleKernels(kernels, columns or (None,) * len(kernels))


def rows(n=80, seed=0, d=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + 4 * np.eye(3, d)[rng.integers(3, size=n)]


def function(values, name="given"):
    return CallableKernel(values, name)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_kernel_is_scaled_to_one_spread_and_is_its_inner_product(exact, weighted):
    X = rows()
    weights = np.random.default_rng(1).uniform(0.5, 2, 80) if weighted else None
    given = stack(*KERNELS, columns=(None, np.array([0, 2]), None))
    sample = MultipleKernelSample(open_samples(X), given, X, weights, exact)
    shares = np.full(80, 1 / 80) if weights is None else weights / weights.sum()
    values = sample.features.block(0, 80).astype(float)
    parts = [
        values[:, one] @ normalization
        for one, normalization in zip(sample.columns, sample.normalization, strict=True)
    ]
    together = sum(z @ z.T for z in parts)
    np.testing.assert_allclose(sample.z @ sample.z.T, together, atol=1e-9 * np.abs(together).max())
    assert sample.z.shape[1] <= 80
    for kernel, columns, z in zip(given.kernels, given.columns, parts, strict=True):
        part = X if columns is None else np.ascontiguousarray(X[:, columns])
        centred = z - shares @ z
        assert shares @ (centred**2).sum(axis=1) == pytest.approx(1.0)
        gram, found = kernel(part, part), z @ z.T
        ratio = np.trace(found) / np.trace(gram)
        np.testing.assert_allclose(
            found, ratio * gram, atol=(1e-8 if exact else 1e-3) * ratio * np.abs(gram).max()
        )


def test_the_matrices_of_the_kernels_are_symmetric_and_in_their_order():
    X = rows(20).astype(np.float32)
    for gram, kernel in zip(grams_of(stack(*KERNELS), X), KERNELS, strict=True):
        np.testing.assert_array_equal(gram, gram.T)
        np.testing.assert_allclose(gram, kernel(X.astype(float), X.astype(float)), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_a_matrix_is_centred_to_trace_one(scale):
    gram = KERNELS[0](rows(20), rows(20))
    centred = reference.centred(gram)
    np.testing.assert_allclose(centred_gram(scale * gram + scale), centred / np.trace(centred), atol=1e-12)


@pytest.mark.parametrize("exact", [False, True])
def test_of_a_matrix_that_is_all_rounding_nothing_is_left(exact):
    X = rows(20)
    held = np.float64 if exact else np.float32
    for nothing in (np.zeros((5, 5)), np.ones((5, 5)), np.full((5, 5), 0.1), np.full((5, 5), 1e300)):
        assert centred_gram(nothing, exact) is None
    # The inner products of columns so far from 0 that what differs between rows is beyond the digits held.
    far = X + np.finfo(held).eps ** -0.5 * 30
    assert centred_gram(far @ far.T, exact) is None
    assert centred_gram(X @ X.T, exact) is not None


def test_copies_but_for_scale_and_centre_are_left_out():
    linear = KERNELS[1]
    copy = function(lambda rows, basis: 3 * rows @ basis.T + 5)
    flat = function(lambda rows, basis: np.ones((len(rows), len(basis))))
    found = distinct_kernels(stack(flat, linear, KERNELS[0], copy, linear), rows(20))
    assert found.kernels == (linear, KERNELS[0])
    # The kernel of other columns is another.
    both = stack(linear, linear, columns=(np.array([0]), np.array([1])))
    found = distinct_kernels(both, rows(20))
    assert [columns.tolist() for columns in found.columns] == [[0], [1]]
    check_kernels(both, rows(20))
    # Of two places all kernels are one.
    assert distinct_kernels(stack(*KERNELS), np.array([[0.0, 1.0], [2.0, 0.0]])).kernels == KERNELS[:1]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (lambda rows, basis: rows.sum(axis=1)[:, None] + np.zeros(len(basis)), "is not symmetric"),
        (lambda rows, basis: -(rows @ basis.T), "has an eigenvalue of -"),
        (lambda rows, basis: np.tanh(rows @ basis.T - 3), "has an eigenvalue of -"),
        (lambda rows, basis: np.zeros((len(rows), len(basis))), "is the same for all rows"),
        (lambda rows, basis: np.full((len(rows), len(basis)), 1e12), "is the same for all rows"),
        (lambda rows, basis: 2 * (rows @ basis.T), "is kernel linear again"),
    ],
)
def test_kernels_that_are_none_or_say_nothing_are_named(values, said):
    with pytest.raises(InputError, match=rf"^kernel mine {said}[^\n]*\.$"):
        check_kernels(stack(KERNELS[1], function(values, "mine")), rows(30))


def test_rounding_is_forgiven():
    def rounded(rows, basis):
        return KERNELS[0](rows, basis).astype(np.float32)

    check_kernels(stack(function(rounded)), rows(200, d=2))


@pytest.mark.parametrize("threshold", ["adaptive", "fixed"])
@pytest.mark.parametrize("weighted", [False, True])
def test_clusters_are_found_and_the_best_of_the_starts_wins(threshold, weighted):
    X = 6 * np.eye(3)[np.arange(150) % 3] + np.random.default_rng(0).standard_normal((150, 3))
    weights = np.random.default_rng(1).uniform(0.5, 1.5, 150) if weighted else None
    sample = MultipleKernelSample(open_samples(X), stack(*KERNELS), X[:40], weights)
    wanted = PartitionConfig(3, 1e-3, "shaking", "mixed", 8, "equal", 0.1, 0.1)
    search = SearchConfig((1.01, 2.0, 3.5), CCCPLimits(5, 0, 0.05), 0, 150, threshold, n_init=4)
    found = []
    with ThreadEngine(1) as engine:
        session = SimpleNamespace(engine=engine, record=found.append, random_state=np.random.RandomState(0))
        restart = search_clusters(session, sample, wanted, search)
    assert sorted(np.bincount(restart.labels).tolist()) == [50, 50, 50]
    assert all(len(set(restart.labels[h::3].tolist())) == 1 for h in range(3))
    assert {row["C"] for row in found} == {2.0, 3.5}  # labels of least squares need no C near 1
    ends = {row["start"]: row["primal"] for row in found if row["C"] == 3.5}
    assert ends[restart.start] == min(ends.values())
    assert restart.state.solution.quadratic.kernel_weights.shape == (3,)

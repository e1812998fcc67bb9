"""A sample under several kernels: one spread, kernels that say something, clusters that are parted."""

from types import SimpleNamespace

import numpy as np
import pytest

from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError
from mmcnb.features.base_kernels import centred_gram, check_kernels, distinct_kernels
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


def rows(n, d=3):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)) + 4 * np.eye(3, d)[rng.integers(3, size=n)]


@pytest.mark.parametrize(("exact", "weighted"), [(False, True), (True, False)])
def test_the_kernels_are_scaled_to_one_spread_and_their_sum_is_an_inner_product(
    exact, weighted
):
    X = rows(60)
    weights = np.random.default_rng(1).uniform(0.5, 2, 60) if weighted else None
    kernels = stack(*KERNELS, columns=(None, np.array([0, 2]), None))
    sample = MultipleKernelSample(open_samples(X), kernels, X, weights, exact)
    shares = np.full(60, 1 / 60) if weights is None else weights / weights.sum()
    together = np.zeros((60, 60))
    for kernel, columns in zip(kernels.kernels, kernels.columns, strict=True):
        part = X if columns is None else X[:, columns].copy()
        gram = kernel(part, part)
        together += gram / (shares @ np.diag(gram) - shares @ gram @ shares)
    assert sample.z.shape[1] <= 60
    tolerance = (1e-8 if exact else 1e-3) * np.abs(together).max()
    np.testing.assert_allclose(sample.z @ sample.z.T, together, atol=tolerance)


@pytest.mark.parametrize("exact", [False, True])
def test_a_matrix_is_centred_to_trace_one_unless_it_is_all_rounding(exact):
    X = rows(20)
    gram = KERNELS[0](X, X)
    held = np.float64 if exact else np.float32
    centred = reference.centred(gram)
    for scale in (1e-3, 1e6):
        expected = centred / np.trace(centred)
        np.testing.assert_allclose(
            centred_gram(scale * gram + scale, exact), expected, atol=1e-12
        )
    for nothing in (np.zeros((5, 5)), np.full((5, 5), 0.1), np.full((5, 5), 1e300)):
        assert centred_gram(nothing, exact) is None
    # The inner products of columns so far from 0 that what differs between rows is
    # beyond the digits held.
    far = X + np.finfo(held).eps ** -0.5 * 30
    assert centred_gram(far @ far.T, exact) is None


def test_copies_but_for_scale_and_centre_are_left_out():
    linear = KERNELS[1]
    copy = CallableKernel(lambda rows, basis: 3 * rows @ basis.T + 5, "copy")
    flat = CallableKernel(lambda rows, basis: np.ones((len(rows), len(basis))), "flat")
    distinct = distinct_kernels(stack(flat, linear, KERNELS[0], copy, linear), rows(20))
    assert distinct.kernels == (linear, KERNELS[0])
    # The kernel of other columns is another.
    both = stack(linear, linear, columns=(np.array([0]), np.array([1])))
    assert [
        columns.tolist() for columns in distinct_kernels(both, rows(20)).columns
    ] == [[0], [1]]
    # Of two places all kernels are one.
    assert (
        distinct_kernels(stack(*KERNELS), np.array([[0.0, 1.0], [2.0, 0.0]])).kernels
        == KERNELS[:1]
    )


def test_a_kernel_with_a_negative_eigenvalue_is_named_and_rounding_is_forgiven():
    def rounded(rows, basis):
        return KERNELS[0](rows, basis).astype(np.float32)

    check_kernels(stack(CallableKernel(rounded, "rounded")), rows(60))
    negative = CallableKernel(lambda rows, basis: -(rows @ basis.T), "mine")
    with pytest.raises(
        InputError, match=r"^kernel mine has a negative eigenvalue of -[^\n]*\.$"
    ):
        check_kernels(stack(KERNELS[1], negative), rows(30))


@pytest.mark.parametrize(
    ("threshold", "weighted"), [("adaptive", True), ("fixed", False)]
)
def test_clusters_are_found_and_the_best_of_the_starts_wins(threshold, weighted):
    X = 6 * np.eye(3)[np.arange(90) % 3] + np.random.default_rng(0).standard_normal(
        (90, 3)
    )
    weights = np.random.default_rng(1).uniform(0.5, 1.5, 90) if weighted else None
    sample = MultipleKernelSample(open_samples(X), stack(*KERNELS), X[:30], weights)
    wanted = PartitionConfig(3, 1e-3, "shaking", "mixed", 4, "equal", 0.1, 0.1)
    search = SearchConfig(
        (1.01, 2.0, 3.5), CCCPLimits(5, 0, 0.05), 0, 90, threshold, n_init=4
    )
    record = []
    with ThreadEngine(1) as engine:
        session = SimpleNamespace(
            engine=engine, record=record.append, random_state=np.random.RandomState(0)
        )
        restart = search_clusters(session, sample, wanted, search)
    assert all(len(set(restart.labels[h::3].tolist())) == 1 for h in range(3))
    assert len(set(restart.labels.tolist())) == 3
    # labels of least squares need no C near 1
    assert {row["C"] for row in record} == {
        2.0,
        3.5,
    }
    ends = {row["start"]: row["primal"] for row in record if row["C"] == 3.5}
    assert ends[restart.start] == min(ends.values())

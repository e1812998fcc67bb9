"""Columns of kernel values and scaled columns: the naive values, the same wherever they are kept."""

import numpy as np
import pytest
import scipy.sparse

from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError
from mmcnb.features.kernel import BasisMap, Kernel, KernelSamples
from mmcnb.samples import open_samples
from mmcnb.samples.derived import ScaledSamples, Scaling, cache_features
from mmcnb.samples.matrix import as_matrix
from tests import reference
from tests.engine.fakes import FakeSamples, OrderedSum

KERNELS = {
    "rbf": (Kernel("rbf", 0.3), lambda X, B: reference.rbf_kernel_block(X, B, 0.3)),
    "linear": (Kernel("linear"), reference.linear_kernel_block),
    "poly": (
        Kernel("poly", 0.2, 2, 0.5),
        lambda X, B: reference.polynomial_kernel_block(X, B, 0.2, 0.5, 2),
    ),
}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return (rng.standard_normal((9001, 5)) * (rng.random((9001, 5)) < 0.6)).astype(
        np.float32
    )


def features(X, p=7, name="rbf"):
    return KernelSamples(open_samples(X), BasisMap(KERNELS[name][0], X[:p]))


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_of_dense_and_csr_rows_is_the_naive_one(X, name):
    kernel, naive = KERNELS[name]
    rows = X[:40].astype(np.float64)
    basis = X[50:57].astype(np.float64)
    csr = open_samples(scipy.sparse.csr_array(rows)).block(0, 40)
    np.testing.assert_allclose(
        kernel(rows, basis), naive(rows, basis), rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        kernel(csr, basis), naive(rows, basis), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_memory_scratch_and_recompute_hold_the_same_bits(X, form):
    source = KernelSamples(open_samples(form(X)), features(X).basis_map)
    whole = source.block(0, 9001)
    with ThreadEngine(2) as engine:
        for store in ("memory", "scratch", "recompute"):
            kept = cache_features(source, store)
            assert (kept.n_samples, kept.n_features, kept.dtype) == (
                9001,
                7,
                np.float32,
            )
            totals = [engine.run(OrderedSum(), kept)[1].tobytes() for _ in range(2)]
            assert totals == [engine.run(OrderedSum(), source)[1].tobytes()] * 2
            assert kept.cached == (store != "recompute")
            for start in (0, 4096):
                np.testing.assert_array_equal(kept.block(start, 9001), whole[start:])
    np.testing.assert_allclose(
        source.gather(np.array([0, 9000])), whole[[0, 9000]], rtol=1e-6
    )


@pytest.mark.parametrize(("chunk_rows", "n_jobs"), [(1000, 2), (9001, 1)])
def test_kept_features_are_computed_once_whatever_the_chunks_and_threads(
    X, chunk_rows, n_jobs
):
    base = FakeSamples(X, chunk_rows, 10**5)
    kept = cache_features(KernelSamples(base, features(X, 64).basis_map), "memory")
    with ThreadEngine(n_jobs) as engine:
        for _ in range(3):
            engine.run(OrderedSum(), kept)
    np.testing.assert_array_equal(base.reads, 1)
    np.testing.assert_array_equal(kept.block(0, 9001), features(X, 64).block(0, 9001))


def test_scratch_that_cannot_be_written_is_one_sentence(X, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    with (
        ThreadEngine(1) as engine,
        pytest.raises(
            InputError,
            match=r"^the scratch file of kernel columns in .* \(No space left on device\).*\.$",
        ),
    ):
        engine.run(OrderedSum(), cache_features(features(X), "scratch"))


def test_scratch_leaves_no_file(X, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cached = cache_features(features(X), "scratch")
    assert cached.block(0, 9001).any()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sparse", [False, True])
def test_scaled_columns_have_unit_variance_and_constant_ones_are_centred(X, sparse):
    X = np.c_[X, np.full(9001, 3, np.float32)]
    mean = X.mean(axis=0, dtype=np.float64)
    deviation = X.std(axis=0, dtype=np.float64)
    storage = open_samples(scipy.sparse.csr_array(X) if sparse else X)
    scaled = as_matrix(ScaledSamples(storage, Scaling(mean, deviation)).block(0, 9001))
    scaled = scaled.toarray() if sparse else scaled
    assert scaled.dtype == np.float32
    expected = (X - (0 if sparse else mean)) / np.where(deviation > 0, deviation, 1)
    np.testing.assert_allclose(scaled, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_scaled_rows_and_kernel_values_that_overflow_are_refused(form):
    X = form(np.array([[0.0, 1e30], [1.0, 2.0]], np.float32))
    narrow = Scaling(np.zeros(2), np.array([1.0, 1e-30]))
    cubes = KernelSamples(
        open_samples(X),
        Kernel("poly", degree=3).against(np.array([[1.0, 1e10]], np.float32)),
    )
    for rows in (ScaledSamples(open_samples(X), narrow), cubes):
        assert np.isfinite(as_matrix(rows.gather(np.array([1]))).sum())
        with pytest.raises(
            InputError, match=r"^X: its sums or products overflow \(column 1 has the "
        ):
            rows.block(0, 2)

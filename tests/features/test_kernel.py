import numpy as np
import pytest
import scipy.sparse

from mmcnb.engine.passes import GatherPass
from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError
from mmcnb.features.kernel import BasisMap, Kernel, KernelSamples
from mmcnb.samples import open_samples
from mmcnb.samples.derived import ScaledSamples, Scaling, cache_features
from mmcnb.samples.matrix import as_matrix
from tests import reference
from tests.engine.fakes import FakeSamples, OrderedSum, run

KERNELS = {
    "rbf": (Kernel("rbf", 0.3), lambda X, B: reference.rbf_kernel_block(X, B, 0.3)),
    "linear": (Kernel("linear"), reference.linear_kernel_block),
    "poly": (Kernel("poly", 0.2, 2, 0.5), lambda X, B: reference.polynomial_kernel_block(X, B, 0.2, 0.5, 2)),
}
STORES = ["memory", "scratch", "recompute"]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return (rng.standard_normal((9001, 5)) * (rng.random((9001, 5)) < 0.6)).astype(np.float32)


def features(X, p=7, name="rbf"):
    return KernelSamples(open_samples(X), BasisMap(KERNELS[name][0], X[:p]))


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_of_dense_and_csr_rows_is_the_naive_one(X, name):
    kernel, naive = KERNELS[name]
    rows, basis = X[:40].astype(np.float64), X[50:57].astype(np.float64)
    csr = open_samples(scipy.sparse.csr_array(rows)).block(0, 40)
    np.testing.assert_allclose(kernel(rows, basis), naive(rows, basis), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(csr, basis), naive(rows, basis), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("sparse", [False, True])
def test_memory_scratch_and_recompute_hold_the_same_bits(X, sparse):
    source = (
        features(X)
        if not sparse
        else KernelSamples(open_samples(scipy.sparse.csr_array(X)), features(X).basis_map)
    )
    held = []
    with ThreadEngine(2) as engine:
        for store in STORES:
            cached = cache_features(source, store)
            assert (cached.n_samples, cached.n_features, cached.dtype) == (9001, 7, np.float32)
            totals = [engine.run(OrderedSum(), cached)[1].tobytes() for _ in range(2)]
            assert cached.cached == (store != "recompute")
            held.append([cached.block(0, 9001).tobytes(), cached.block(4096, 9001).tobytes(), *totals])
    assert held[0] == held[1] == held[2]


def test_csr_rows_are_kept_as_they_are(X):
    rows = open_samples(scipy.sparse.csr_array(X))
    cached = cache_features(rows, "memory")
    with ThreadEngine(2) as engine:
        engine.run(GatherPass(np.arange(3)), cached)
    assert cached.cached
    for part, kept in zip(rows.block(4000, 9001)[:3], cached.block(4000, 9001)[:3], strict=True):
        np.testing.assert_array_equal(kept, part)


def test_kept_features_are_computed_once(X):
    base = FakeSamples(X, 1000, 10**5)
    cached = cache_features(KernelSamples(base, features(X).basis_map), "memory")
    with ThreadEngine(2) as engine:
        for _ in range(3):
            engine.run(OrderedSum(), cached)
    np.testing.assert_array_equal(base.reads, 1)


def test_blocks_of_kernel_values_do_not_depend_on_the_rows_asked_for(X):
    source = features(X, 64)
    whole = source.block(0, 9001)
    for start, stop in ((0, 4096), (4096, 8192), (8192, 9001), (4096, 9001)):
        np.testing.assert_array_equal(source.block(start, stop), whole[start:stop])


@pytest.mark.parametrize("chunk_rows", [1000, 4096, 9001])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_filling_the_cache_does_not_depend_on_chunks_or_threads(X, chunk_rows, n_jobs):
    stored = KernelSamples(FakeSamples(X, chunk_rows, 10**5), features(X, 64).basis_map)
    cached = cache_features(stored, "memory")
    with ThreadEngine(n_jobs) as engine:
        engine.run(OrderedSum(), cached)
    np.testing.assert_array_equal(cached.block(0, 9001), features(X, 64).block(0, 9001))


def test_scratch_that_cannot_be_written_is_one_sentence(X, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mmcnb.samples.derived.os.pwrite", full)
    with (
        ThreadEngine(1) as engine,
        pytest.raises(
            InputError, match=r"^the scratch file of kernel columns in .* \(No space left on device\).*\.$"
        ),
    ):
        engine.run(OrderedSum(), cache_features(features(X), "scratch"))


def test_scratch_leaves_no_file(X, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cached = cache_features(features(X), "scratch")
    assert cached.block(0, 9001).any()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sparse", [False, True])
def test_scaled_columns_have_unit_variance(X, sparse):
    storage = open_samples(scipy.sparse.csr_array(X) if sparse else X)
    mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    scaled = as_matrix(ScaledSamples(storage, Scaling(mean, deviation)).block(0, 9001))
    scaled = scaled.toarray() if sparse else scaled
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, (X - (0 if sparse else mean)) / deviation, rtol=1e-5, atol=1e-6)


def test_constant_columns_are_centred_and_not_divided():
    X = np.c_[np.full(10, 3.0), np.arange(10.0)]
    scaled = ScaledSamples(open_samples(X), Scaling(X.mean(axis=0), X.std(axis=0))).block(0, 10)
    np.testing.assert_array_equal(scaled[:, 0], 0)
    assert scaled[:, 1].std() == pytest.approx(1)


def test_gathered_rows_are_those_of_the_blocks(X):
    rows = np.array([0, 5, 4095, 4096, 9000])
    scaled = ScaledSamples(open_samples(X), Scaling(X.mean(axis=0), X.std(axis=0)))
    np.testing.assert_array_equal(scaled.gather(rows), scaled.block(0, 9001)[rows])
    np.testing.assert_allclose(features(X).gather(rows), features(X).block(0, 9001)[rows], rtol=1e-6)


def test_pass_over_features_reads_each_row_of_the_base_once(X):
    base = FakeSamples(X, 1000, 10**5)
    run(OrderedSum(), KernelSamples(base, features(X).basis_map), n_jobs=2)
    np.testing.assert_array_equal(base.reads, 1)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_scaled_rows_and_kernel_values_that_overflow_are_refused(form):
    X = form(np.array([[0.0, 1e30], [1.0, 2.0]], np.float32))
    narrow = Scaling(np.zeros(2), np.array([1.0, 1e-30]))
    cubes = KernelSamples(
        open_samples(X), Kernel("poly", degree=3).against(np.array([[1.0, 1e10]], np.float32))
    )
    for rows in (ScaledSamples(open_samples(X), narrow), cubes):
        assert np.isfinite(as_matrix(rows.gather(np.array([1]))).sum())
        with pytest.raises(InputError, match=r"^X: its sums or products overflow \(column 1 has the "):
            rows.block(0, 2)

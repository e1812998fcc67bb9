import numpy as np
import pytest
import scipy.sparse

from mmcnb.engine.passes import draw_sample, first_rows, row_sum
from mmcnb.engine.run import ThreadEngine
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import as_csr_block
from tests.engine.fakes import FakeSamples


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((9001, 6)) * (rng.random((9001, 6)) < 0.4) + 0.0


@pytest.fixture(scope="module")
def rows():
    return np.sort(np.random.default_rng(1).choice(9001, 500, replace=False))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", ["array", "stored", "csr"])
def test_moments_and_sample_are_numpys(X, rows, weighted, layout):
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float) if weighted else None
    storage = {"array": X, "stored": FakeSamples(X, 777), "csr": scipy.sparse.csr_array(X)}[layout]
    with ThreadEngine(2) as engine:
        sample, scaling = draw_sample(engine, open_samples(storage), rows, weights, moments=True)
    sample = sample.toarray() if layout == "csr" else sample
    mean = np.average(X, axis=0, weights=weights)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    np.testing.assert_array_equal(sample, X[rows])
    np.testing.assert_allclose(scaling.mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(scaling.deviation, deviation, rtol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_deviations_do_not_depend_on_how_far_the_columns_lie_from_zero(X, rows, shift, dtype, form):
    far, weights = (X + shift).astype(dtype), np.ones(len(X))
    far[::3, 0] = 0
    weights[:4500] = 0  # the first block of the reduction weighs nothing
    with ThreadEngine(2) as engine:
        _, scaling = draw_sample(engine, open_samples(form(far)), rows, weights, moments=True)
    exact = far[4500:].astype(np.longdouble)
    np.testing.assert_allclose(scaling.mean, exact.mean(axis=0).astype(float), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(scaling.deviation, exact.std(axis=0).astype(float), rtol=1e-5)


@pytest.mark.parametrize("layout", ["array", "stored", "csr"])
def test_sample_alone_is_the_same_and_has_no_moments(X, rows, layout):
    storage = {"array": X, "stored": FakeSamples(X, 777), "csr": scipy.sparse.csr_array(X)}[layout]
    with ThreadEngine(2) as engine:
        sample, scaling = draw_sample(engine, open_samples(storage), rows)
    sample = sample.toarray() if layout == "csr" else sample
    np.testing.assert_array_equal(sample, X[rows])
    assert scaling is None


def test_moments_have_the_same_bits_for_any_chunks_and_threads(X, rows):
    found = []
    for chunk_rows, n_jobs in ((4096, 1), (333, 2), (9001, 4)):
        with ThreadEngine(n_jobs) as engine:
            found.append(draw_sample(engine, FakeSamples(X, chunk_rows, 10**5), rows, moments=True)[1])
    for other in found[1:]:
        np.testing.assert_array_equal(other.mean, found[0].mean)
        np.testing.assert_array_equal(other.deviation, found[0].deviation)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_row_sums_are_added_in_float64_of_dense_and_csr_rows(dtype):
    X = np.full((100_000, 2), 0.1, dtype)
    X[::2, 1] = 0
    weights = np.random.default_rng(0).random(len(X))
    expected = [weights.sum() * float(X[0, 0]), weights[1::2].sum() * float(X[0, 0])]
    for rows in (X, as_csr_block(scipy.sparse.csr_array(X))):
        total, weight = row_sum(rows, weights)
        np.testing.assert_allclose(total, expected, rtol=1e-11)
        assert weight == weights.sum()
    X[3, 1] = np.nan
    assert np.isnan(row_sum(X, weights)[0][1])
    assert np.isnan(row_sum(as_csr_block(scipy.sparse.csr_array(X)), weights)[0][1])


@pytest.mark.parametrize("least", [0, -1])
def test_first_rows_are_those_of_a_plain_loop_and_noise_is_of_no_cluster(least):
    labels = np.random.default_rng(0).integers(least, 6, 40)
    found = first_rows(labels, 8, 1000)
    assert found.shape == (8,)
    for cluster in range(8):
        rows = [1000 + i for i, label in enumerate(labels) if label == cluster]
        assert found[cluster] == (rows[0] if rows else np.iinfo(np.int64).max)
    assert (first_rows(np.full(5, -1), 2) == np.iinfo(np.int64).max).all()

"""Passes over the rows: samples, moments, sums and first rows are NumPy's, in any storage."""

import numpy as np
import pytest
import scipy.sparse

from mmcnb.engine.passes import draw_sample, first_rows, row_sum
from mmcnb.engine.run import ThreadEngine
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import as_csr_block
from tests.engine.fakes import FakeSamples

STORAGES = {
    "array": np.asarray,
    "stored": lambda X: FakeSamples(X, 777),
    "csr": scipy.sparse.csr_array,
}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((9001, 6)) * (rng.random((9001, 6)) < 0.4) + 0.0


@pytest.fixture(scope="module")
def rows():
    return np.sort(np.random.default_rng(1).choice(9001, 500, replace=False))


def draw(storage, rows, *weights, n_jobs=2, **asked):
    with ThreadEngine(n_jobs) as engine:
        return draw_sample(engine, open_samples(storage), rows, *weights, **asked)


@pytest.mark.parametrize(
    ("layout", "weighted"), [("array", True), ("stored", False), ("csr", True)]
)
def test_moments_and_sample_are_numpys(X, rows, layout, weighted):
    weights = (
        np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
        if weighted
        else None
    )
    sample, scaling = draw(STORAGES[layout](X), rows, weights, moments=True)
    alone, nothing = draw(STORAGES[layout](X), rows)
    mean = np.average(X, axis=0, weights=weights)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    for one in (sample, alone):
        np.testing.assert_array_equal(
            one.toarray() if layout == "csr" else one, X[rows]
        )
    assert nothing is None
    np.testing.assert_allclose(scaling.mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(scaling.deviation, deviation, rtol=1e-12)


@pytest.mark.parametrize(
    ("shift", "dtype", "layout"),
    [
        (0.0, "float32", "csr"),
        (1e6, "float32", "array"),
        (1e9, "float64", "csr"),
        (1e12, "float64", "array"),
    ],
)
def test_deviations_do_not_depend_on_how_far_the_columns_lie_from_zero(
    X, rows, shift, dtype, layout
):
    far = (X + shift).astype(dtype)
    weights = np.ones(len(X))
    far[::3, 0] = 0
    weights[:4500] = 0  # the first block of the reduction weighs nothing
    _, scaling = draw(STORAGES[layout](far), rows, weights, moments=True)
    exact = far[4500:].astype(np.longdouble)
    np.testing.assert_allclose(
        scaling.mean, exact.mean(axis=0).astype(float), rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        scaling.deviation, exact.std(axis=0).astype(float), rtol=1e-5
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_row_sums_are_added_in_float64_of_dense_and_csr_rows(dtype):
    X = np.full((100_000, 2), 0.1, dtype)
    X[::2, 1] = 0
    weights = np.random.default_rng(0).random(len(X))
    expected = [weights.sum() * float(X[0, 0]), weights[1::2].sum() * float(X[0, 0])]
    for storage in (np.asarray, lambda X: as_csr_block(scipy.sparse.csr_array(X))):
        total, weight = row_sum(storage(X), weights)
        np.testing.assert_allclose(total, expected, rtol=1e-11)
        assert weight == weights.sum()
        odd = X.copy()
        odd[3, 1] = np.nan
        assert np.isnan(row_sum(storage(odd), weights)[0][1])


@pytest.mark.parametrize("least", [0, -1])
def test_first_rows_are_those_of_a_plain_loop_and_noise_is_of_no_cluster(least):
    labels = np.random.default_rng(0).integers(least, 6, 40)
    none = np.iinfo(np.int64).max
    expected = [
        min((1000 + i for i in range(40) if labels[i] == cluster), default=none)
        for cluster in range(8)
    ]
    assert first_rows(labels, 8, 1000).tolist() == expected
    assert first_rows(np.full(5, -1), 2).tolist() == [none, none]

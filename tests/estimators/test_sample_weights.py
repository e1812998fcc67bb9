"""Sample weights: 2 is a row given twice, 0 is none, and proportions alone count."""

import numpy as np
import pytest
import zarr
from sklearn.base import clone

import mmcnb
from mmcnb.engine.sample_weights import EXACT, scaled_weights
from mmcnb.hinge.needs import HELD_ROWS
from tests.estimators.conftest import (
    VARIANTS,
    bits,
    fitted,
    make,
    make_blobs,
    same_clusters,
)
from tests.estimators.every import NAMES

FACTORS = (1 / 97, 0.1, 2.0**-60, 1e300)
COUNTS = np.random.default_rng(1).integers(0, 4, 60).astype(np.float64)


def two_groups():
    X = make_blobs(60, gap=6.0)
    X[30:, 1] += 5
    return X


def assert_proportions_alone_count(variant, factor):
    X = two_groups()
    model, other = (fitted(variant, X, unit * COUNTS) for unit in (1.0, factor))
    assert bits(other, X)[:2] == bits(model, X)[:2]
    sizes = model.report_.get("sizes", [])
    np.testing.assert_allclose(
        other.report_.get("sizes", []), factor * np.array(sizes), rtol=1e-9
    )
    # the inertia is a sum over the weights
    unit = factor if variant == "KernelKMeans" else 1.0
    assert other.objective_ == pytest.approx(unit * model.objective_, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_proportions_alone_count_to_the_bit(name):
    assert_proportions_alone_count(name, 1e-300)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_proportions_alone_count_whatever_the_factor(variant):
    for factor in (1 / 97, 2.0**-60):
        assert_proportions_alone_count(variant, factor)


# Every row is a basis vector, and on one hill coin flips, one a row, cannot lead to
# different partitions.
SMOOTH = {"C": 1.3, "eta": 1e-6}
REPEATED = {
    "SparseKernelMMC": mmcnb.SparseKernelMMC(gamma="mean", n_landmarks=1000, **SMOOTH),
    "KernelCPMMC": mmcnb.KernelCPMMC(gamma="mean", **SMOOTH),
    "CPMMC": mmcnb.CPMMC(**SMOOTH),
    "MultipleKernelClustering": mmcnb.MultipleKernelClustering(
        n_landmarks=1000, n_init=1, **SMOOTH
    ),
    "CrammerSingerMMC": mmcnb.CrammerSingerMMC(2, gamma=0.1, n_landmarks=1000),
    "UnsupervisedRLS": mmcnb.UnsupervisedRLS(2, gamma=0.1),
    "KernelKMeans": mmcnb.KernelKMeans(2, gamma=0.1),
    "MaximumMarginClustering": mmcnb.MaximumMarginClustering(2, kernel="rbf"),
}


@pytest.mark.parametrize("name", REPEATED)
def test_weights_are_repetitions(name):
    X = make_blobs(150, gap=6.0)
    weights = np.random.default_rng(0).integers(0, 4, 150)
    model = (
        clone(REPEATED[name]).set_params(random_state=0).fit(X, sample_weight=weights)
    )
    repeated = clone(model).fit(np.repeat(X, weights, axis=0))
    assert same_clusters(np.repeat(model.labels_, weights), repeated.labels_)
    assert model.objective_ == pytest.approx(repeated.objective_, rel=1e-5)
    assert (
        sum(model.report_["sizes"]) == sum(repeated.report_["sizes"]) == weights.sum()
    )


@pytest.mark.parametrize("name", NAMES)
def test_weights_that_are_all_alike_are_no_weights_to_the_bit(name):
    X = two_groups()
    expected = bits(fitted(name, X), X)[:2]
    for weights in (np.ones(60), np.full(60, 2.5)):
        assert bits(fitted(name, X, weights), X)[:2] == expected


@pytest.mark.parametrize("name", ["SparseKernelMMC", "CPMMC"])
def test_rows_without_weight_do_not_pull_when_streamed(name):
    X = make_blobs(6000)
    mixed = np.full((12_000, 3), 40.0)
    mixed[::2] = X
    weights = np.tile([1.0, 0.0], 6000)
    # Both draw the same sample; rows of weight 0 only stream by.
    model = fitted(name, mixed, weights, sample_size=300)
    assert same_clusters(model.labels_[::2], fitted(name, X, sample_size=300).labels_)


@pytest.mark.slow
def test_rows_that_just_fit_into_memory_end_where_streamed_ones_do():
    X = make_blobs(HELD_ROWS, gap=3.0)
    more = np.r_[X, [X[0]]]
    weights = np.r_[np.ones(HELD_ROWS), 0.0]
    settings = {
        "n_landmarks": 30,
        "C": 1.3,
        "eta": 1e-5,
        "sample_size": 300,
        "gamma": 0.5,
    }
    held = make("SparseKernelMMC", **settings).fit(X)
    streamed = make("SparseKernelMMC", **settings).fit(more, sample_weight=weights)
    assert held.objective_ == pytest.approx(streamed.objective_, rel=1e-3)
    assert np.mean(held.labels_ == streamed.labels_[:-1]) > 0.999


def test_weights_of_a_store_are_those_in_memory(tmp_path):
    X = make_blobs(9000, gap=6.0)
    weights = 0.1 * np.random.default_rng(0).integers(0, 4, 9000)
    array = zarr.create_array(tmp_path / "weights.zarr", data=weights, chunks=(777,))
    expected = bits(fitted("CPMMC", X, weights), X)
    for stored in (array, str(tmp_path / "weights.zarr")):
        assert bits(fitted("CPMMC", X, stored), X) == expected
    zarr.create_array(tmp_path / "table.zarr", data=X)
    with pytest.raises(
        mmcnb.InputError, match=r"table\.zarr is not a 1-D array of numbers"
    ):
        fitted("CPMMC", X, tmp_path / "table.zarr")


def test_a_sum_beyond_the_range_of_floats_is_refused():
    with pytest.raises(
        mmcnb.InputError,
        match=r"^the sum of sample_weight exceeds the range of floats; divide",
    ):
        fitted("CPMMC", two_groups(), np.full(60, 1e308))


@pytest.mark.parametrize("factor", [*FACTORS, 5e-324])
def test_multiples_of_the_least_weight_become_whole_numbers(factor):
    weights, unit = scaled_weights(factor * COUNTS)
    np.testing.assert_array_equal(weights, COUNTS)
    assert unit == factor


@pytest.mark.parametrize("exponent", [-900, 0, 900])
def test_other_weights_keep_their_bits_and_their_sum_is_exact(exponent):
    lognormal = np.random.default_rng(0).lognormal(0, 2, 50) * 2.0**exponent
    lognormal[::7] = 0
    weights, unit = scaled_weights(lognormal)
    np.testing.assert_array_equal(weights * unit, lognormal)
    assert 1 <= weights[weights > 0].min() < 2
    assert weights.sum() <= EXACT
    np.testing.assert_array_equal(scaled_weights(np.ldexp(lognormal, 40))[0], weights)


def test_weights_of_all_magnitudes_lose_no_row():
    magnitudes = np.array([1e-150, 1.5, 1e150])
    weights, unit = scaled_weights(magnitudes)
    assert (weights > 0).all()
    assert weights.sum() <= EXACT
    np.testing.assert_array_equal(weights * unit, magnitudes)

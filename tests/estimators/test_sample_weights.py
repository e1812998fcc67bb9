"""Sample weights count by their proportions: w and c w are one fit, of any size, from anywhere."""

import numpy as np
import pytest
import zarr

import mmcnb
from mmcnb.engine.sample_weights import EXACT, scaled_weights
from mmcnb.stores import create_dense_store
from tests.estimators.conftest import bits, make_blobs

PROPORTIONAL = {
    "two clusters": mmcnb.MaximumMarginClustering(2),
    "three": mmcnb.MaximumMarginClustering(3),
    "three, on the graph": mmcnb.MaximumMarginClustering(3, kernel="graph"),
    "KernelCPMMC": mmcnb.KernelCPMMC(gamma=0.5),
    "CPMMC": mmcnb.CPMMC(),
    "UnsupervisedRLS": mmcnb.UnsupervisedRLS(3, cluster_sizes="equal"),
    "EvolutionaryMMC": mmcnb.EvolutionaryMMC(),
    "CrammerSingerMMC": mmcnb.CrammerSingerMMC(3),
    "KernelKMeans": mmcnb.KernelKMeans(3),
    "several kernels": mmcnb.MultipleKernelClustering(),
    "several kernels, three": mmcnb.MultipleKernelClustering(n_clusters=3),
}
FACTORS = (1 / 97, 0.1, 3.0, 2.0**-60, 2.0**70, 1e-300, 1e300)
COUNTS = np.random.default_rng(1).integers(0, 4, 60).astype(np.float64)


def rows(n=60):
    X = make_blobs(n, gap=6.0)
    X[n // 2 :, 1] += 5
    return X


def fitted(model, X, weights, **fit):
    return model.set_params(random_state=0).fit(X, sample_weight=weights, **fit)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROPORTIONAL)
@pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
def test_weights_count_by_their_proportions_to_the_bit(name):
    X, model = rows(), PROPORTIONAL[name]
    one = fitted(model, X, COUNTS)
    wanted, sizes, objective = bits(one, X)[:2], one.report_.get("sizes", []), one.objective_
    assert sum(sizes) in (COUNTS.sum(), 0)
    for factor in FACTORS:
        other = fitted(model, X, factor * COUNTS)
        assert bits(other, X)[:2] == wanted, factor
        np.testing.assert_allclose(other.report_.get("sizes", []), factor * np.array(sizes), rtol=1e-9)
        unit = factor if name == "KernelKMeans" else 1.0  # the inertia is a sum over the weights
        assert other.objective_ == pytest.approx(unit * objective, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROPORTIONAL)
@pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
def test_weights_that_sum_to_one_are_taken(name):
    X, model, weights = rows(), PROPORTIONAL[name], np.random.default_rng(2).uniform(0.1, 9, 60)
    one = fitted(model, X, weights).labels_
    np.testing.assert_array_equal(fitted(model, X, weights / weights.sum()).labels_, one)
    np.testing.assert_array_equal(fitted(model, X, 2.0**-200 * weights).labels_, one)


def test_a_sum_beyond_the_range_of_floats_is_refused():
    with pytest.raises(mmcnb.InputError, match=r"^sample_weight adds up to more than floats hold; divide"):
        mmcnb.CPMMC().fit(rows(), sample_weight=np.full(60, 1e308))


def test_scaled_weights_of_a_store_are_those_in_memory(tmp_path):
    X = rows(20_000)
    weights = 0.1 * np.random.default_rng(0).integers(0, 4, 20_000)
    zarr.create_array(tmp_path / "weights.zarr", data=weights, chunks=(777,))
    with create_dense_store(tmp_path / "rows.zarr", X.shape[1], dtype="float64", chunk_rows=4096) as writer:
        writer.append(X)
    settings = {"C": 1.3, "sample_size": 300, "random_state": 0}
    one = mmcnb.CPMMC(n_jobs=1, **settings).fit(X, sample_weight=weights)
    for n_jobs, given in ((1, weights), (2, tmp_path / "weights.zarr")):
        other = mmcnb.CPMMC(n_jobs=n_jobs, **settings).fit(tmp_path / "rows.zarr", sample_weight=given)
        assert bits(other, X) == bits(one, X)


@pytest.mark.parametrize("factor", [*FACTORS, 5e-324])
def test_multiples_of_the_least_weight_become_whole_numbers(factor):
    weights, unit = scaled_weights(factor * COUNTS)
    np.testing.assert_array_equal(weights, COUNTS)
    assert unit == factor


@pytest.mark.parametrize("seed", range(5))
def test_other_weights_keep_their_bits_and_their_sum_is_exact(seed):
    given = np.random.default_rng(seed).lognormal(0, 2, 50) * 2.0 ** np.random.default_rng(seed).integers(
        -900, 900
    )
    given[::7] = 0
    weights, unit = scaled_weights(given)
    np.testing.assert_array_equal(weights * unit, given)
    assert 1 <= weights[weights > 0].min() < 2
    assert weights.sum() <= EXACT
    for power in (-40, 40):
        np.testing.assert_array_equal(scaled_weights(np.ldexp(given, power))[0], weights)


def test_weights_of_all_magnitudes_lose_no_row():
    weights, unit = scaled_weights(np.array([1e-150, 1.5, 1e150]))
    assert (weights > 0).all()
    assert weights.sum() <= EXACT
    np.testing.assert_array_equal(weights * unit, [1e-150, 1.5, 1e150])
    assert scaled_weights(np.full(3, 1e308)) == (None, 1e308)

import numpy as np
import pytest

from mmcnb.graph import _genie as kernels
from tests import reference_genie

THRESHOLDS = [0.05, 0.3, 0.7, 1.0]


def random_tree(rng, p):
    """Each node is joined to one before it, most of them to one of the last; edges in any order."""
    earlier = [max(0, i - 1 - int(rng.exponential(3))) for i in range(1, p)]
    names = rng.permutation(p)
    return np.column_stack([names[np.arange(1, p)], names[earlier]])[rng.permutation(p - 1)]


def weights_of(kind, rng, p):
    return {"one": np.ones(p), "whole": rng.integers(1, 6, p) * 1.0, "any": rng.lognormal(0, 1, p)}[kind]


@pytest.mark.parametrize("kind", ["one", "whole", "any"])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_clusters_are_those_of_the_twin(threshold, kind):
    rng = np.random.default_rng(0)
    for p in (2, 3, 10, 40, 40, 40):
        ends, weights = random_tree(rng, p), weights_of(kind, rng, p)
        for k in {1, 2, 5, p // 2, p}:
            expected = reference_genie.genie(ends, weights, threshold, k)
            found = kernels.genie(ends, weights, threshold, k)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, expected)
            assert np.unique(found).size == min(k, p)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_forest_ends_in_its_trees(threshold):
    rng = np.random.default_rng(1)
    ends, weights = random_tree(rng, 40)[:-6], weights_of("whole", rng, 40)
    for k in (1, 7, 12):
        found = kernels.genie(ends, weights, threshold, k)
        np.testing.assert_array_equal(found, reference_genie.genie(ends, weights, threshold, k))
        assert np.unique(found).size == max(k, 7)


@pytest.mark.parametrize("n_clusters", [3, 4, 0])
def test_numbers_of_clusters_beyond_those_possible(n_clusters):
    found = kernels.genie(np.array([[0, 2], [1, 2]]), np.ones(3), 0.5, n_clusters)
    assert found.tolist() == ([0, 1, 2] if n_clusters else [0, 0, 0])
    assert kernels.genie(np.empty((0, 2), np.int64), np.ones(1), 0.5, n_clusters).tolist() == [0]


def test_an_index_equal_to_the_threshold_is_not_above_it():
    ends, weights = np.array([[2, 3], [0, 1], [3, 0]]), np.array([1.0, 1.0, 2.0, 2.0])
    index = 4 / (3 * 6)
    assert reference_genie.gini(weights) == index
    assert kernels.genie(ends, weights, index, 3).tolist() == [0, 1, 2, 2]
    assert kernels.genie(ends, weights, np.nextafter(index, 0), 3).tolist() == [0, 0, 2, 3]

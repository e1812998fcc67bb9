import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform

from mmcnb.kernels import unchecked as kernels
from tests.kernels.inputs import DTYPES


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(3))
def test_heights_are_those_of_scipy(seed, dtype):
    X = np.random.default_rng(seed).standard_normal((200, 4))
    merges, heights = kernels.average_linkage(squareform(pdist(X)).astype(dtype))
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(np.sort(heights), linkage(X, "average")[:, 2], rtol=tolerance)
    assert sorted(merges[:, 0]) == list(range(199))  # each row but the last ends once as the first of two
    assert (merges[:, 0] < merges[:, 1]).all()


def test_rows_that_are_equal_merge_first():
    x = np.repeat([0.0, 1.0, 5.0], [3, 4, 2])
    _, heights = kernels.average_linkage(np.abs(x[:, None] - x))
    np.testing.assert_allclose(np.sort(heights), [0] * 6 + [1, (3 * 5 + 4 * 4) / 7])


def test_rows_that_are_infinitely_far_merge_last():
    x = np.array([0.0, 1.0, np.inf, 3.0])
    distances = np.abs(np.subtract.outer(x, np.where(np.isinf(x), 0.0, x)))
    distances = np.maximum(distances, distances.T)
    distances[2, 2] = 0.0
    merges, heights = kernels.average_linkage(distances)
    assert sorted(merges[np.isinf(heights)].ravel().tolist()) == [2, 3]


@pytest.mark.parametrize("m", [1, 2])
def test_few_rows(m):
    merges, heights = kernels.average_linkage(np.ones((m, m)) - np.eye(m))
    assert merges.tolist() == [[0, 1]] * (m - 1)
    assert heights.tolist() == [1.0] * (m - 1)


def test_distances_of_any_kind_come_to_an_end():
    rng = np.random.default_rng(0)
    for values in (rng.random((50, 50)), np.full((50, 50), np.nan)):
        merges, _ = kernels.average_linkage(values)
        assert sorted(merges[:, 0]) == list(range(49))

"""k-means++ draws, the Nyström map and centring: their laws."""

import numpy as np
import pytest

from mmcnb import kernels
from tests.kernels.arguments import rows_and_basis


def test_draws_follow_the_weighted_squared_distances():
    X = np.array([[0.0], [1.0], [3.0]])
    weights = np.array([1.0, 2.0, 1.0])
    rng = np.random.default_rng(0)
    pairs = np.zeros((3, 3))
    for uniforms in rng.random((4000, 2)):
        first, second = kernels.kmeans_plusplus_rows(X, weights, uniforms)
        pairs[first, second] += 1 / 4000
    masses = weights * (X - X.T) ** 2
    expected = weights[:, None] / 4 * masses / masses.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(pairs, expected, atol=0.03)


def test_an_integer_weight_is_a_repetition_and_equal_rows_are_drawn_once():
    X, _ = rows_and_basis(6, 2, 1)
    weights = np.array([1, 0, 3, 2, 1, 1])
    uniforms = np.random.default_rng(1).random(9)
    drawn = kernels.kmeans_plusplus_rows(X, weights.astype(float), uniforms)
    repeated = np.repeat(X, weights, axis=0)
    same = kernels.kmeans_plusplus_rows(repeated, np.ones(len(repeated)), uniforms)
    np.testing.assert_array_equal(X[drawn], repeated[same])
    assert sorted(drawn) == [0, 2, 3, 4, 5]


def test_a_random_number_of_one_draws_the_last_row_with_weight():
    X = np.arange(4.0)[:, None]
    drawn = kernels.kmeans_plusplus_rows(X, np.array([1.0, 1, 1, 0]), np.ones(1))
    assert drawn.tolist() == [2]


def test_features_of_the_map_have_the_kernel_values_of_landmarks():
    X, _ = rows_and_basis(7, 3, 1)
    gram = np.empty((7, 7))
    kernels.rbf_kernel_block_into(X, X, 0.3, gram)
    features = gram @ kernels.nystroem_map(gram, 1e-12)
    np.testing.assert_allclose(features @ features.T, gram, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_of_a_centred_kernel_are_those_of_the_whole(dtype):
    X, _ = rows_and_basis(30, 3, 1)
    K = np.empty((30, 30))
    kernels.rbf_kernel_block_into(X, X, 0.3, K)
    H = np.eye(30) - 1 / 30
    means = K.mean(axis=0)
    for rows in (slice(0, 12), slice(12, 30)):
        block = K[rows].astype(dtype)
        kernels.centre_kernel_block_into(block, means[rows], means, K.mean(), block)
        tolerance = 1e-6 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(block, (H @ K @ H)[rows], atol=tolerance)

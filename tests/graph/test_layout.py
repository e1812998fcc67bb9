"""The layout equals a plain twin bit by bit, and k-means in it finds groups."""

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array
from threadpoolctl import threadpool_limits

from mmcnb.graph.layout import (
    N_EPOCHS,
    N_NEGATIVE,
    kmeans_in_layout,
    layout,
    smooth_start,
)
from tests import reference_layout


def planted(sizes, seed=0, bridge=0.05):
    """Return a ring with random chords for each group, and weak edges between them."""
    rng = np.random.default_rng(seed)
    rings = []
    for size in sizes:
        chords = rng.random((size, size))
        ring = np.roll(np.eye(size), 1, axis=1) + chords * (
            rng.random((size, size)) < 4 / size
        )
        rings.append(csr_array(np.triu(ring + ring.T, 1)))
    W = block_diag(rings).toarray()
    ends = np.cumsum(sizes)
    W[ends[:-1] - 1, ends[:-1]] = bridge
    return csr_array(W + W.T), np.repeat(np.arange(len(sizes)), sizes)


def same_partition(one, other):
    return (np.equal.outer(one, one) == np.equal.outer(other, other)).all()


@pytest.mark.parametrize(("sizes", "q"), [((3,), 1), ((4, 5), 3), ((2,), 10)])
def test_positions_equal_their_twin_bit_by_bit(sizes, q):
    graph, _ = planted(sizes)
    for seed in range(3):
        start = smooth_start(graph, q, seed)
        weights = graph.data / graph.data.max()
        steps = N_EPOCHS, N_NEGATIVE, seed
        expected = reference_layout.lay_out(
            graph.indptr, graph.indices, weights, start, *steps
        )
        found = layout(graph, seed, q)
        assert found.tobytes() == expected.tobytes()
        assert found.tobytes() == layout(7.0 * graph, seed, q).tobytes()
    assert found.tobytes() != layout(graph, 3, q).tobytes()


@pytest.mark.parametrize("sizes", [(60, 60), (30, 120), (40, 50, 60)])
def test_planted_groups_are_found(sizes):
    graph, truth = planted(sizes)
    for seed in range(3):
        labels = kmeans_in_layout(
            layout(graph, seed), np.ones(len(truth)), len(sizes), seed
        )
        assert labels.dtype == np.int64
        assert same_partition(labels, truth)


def test_threads_of_blas_do_not_matter():
    graph, _ = planted((300, 300))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            positions = layout(graph, 0)
            found.append(
                positions.tobytes()
                + kmeans_in_layout(positions, np.ones(600), 5, 0).tobytes()
            )
    assert found[0] == found[1]


def test_a_start_is_smooth_and_scaled():
    graph, _ = planted((50, 70))
    start = smooth_start(graph, 4, 0)
    assert np.abs(start).max() == pytest.approx(10)
    assert (start[np.abs(start).argmax(axis=0), np.arange(4)] > 0).all()
    degrees = graph.sum(axis=1)
    np.testing.assert_allclose(degrees @ start / degrees.sum(), 0, atol=1e-4)
    walk = graph @ start / degrees[:, None]
    assert (np.linalg.norm(walk, axis=0) > 0.5 * np.linalg.norm(start, axis=0)).all()
    np.testing.assert_allclose(walk[:, 0], start[:, 0], atol=0.01)  # the two groups


def test_sizes_count_in_k_means():
    positions = np.array([[0.0], [2.0], [3.0], [5.0]])
    for heaviest, expected in (([1, 2], [0, 0, 1, 1]), (3, [0, 0, 0, 1])):
        sizes = np.ones(4)
        sizes[heaviest] = 1e4
        assert same_partition(
            kmeans_in_layout(positions, sizes, 2, 0), np.array(expected)
        )


def test_none_where_fewer_clusters_come_out():
    assert (
        kmeans_in_layout(np.repeat([[0.0], [1.0]], 3, axis=0), np.ones(6), 3, 0) is None
    )

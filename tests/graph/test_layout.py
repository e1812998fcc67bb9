import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array
from threadpoolctl import threadpool_limits

from mmcnb.graph.layout import kmeans_in_layout, layout, smooth_start


def planted(sizes, seed=0, bridge=0.05):
    """A graph of rings with random chords, one for each group, with weak edges between neighbours."""
    rng, rings = np.random.default_rng(seed), []
    for size in sizes:
        chords = rng.random((size, size))
        ring = np.roll(np.eye(size), 1, axis=1) + chords * (rng.random((size, size)) < 4 / size)
        rings.append(csr_array(np.triu(ring + ring.T, 1)))
    W = block_diag(rings).toarray()
    ends = np.cumsum(sizes)
    W[ends[:-1] - 1, ends[:-1]] = bridge
    return csr_array(W + W.T), np.repeat(np.arange(len(sizes)), sizes)


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("sizes", [(60, 60), (30, 120), (40, 50, 60)])
def test_planted_groups_are_found(sizes):
    graph, truth = planted(sizes)
    for seed in range(3):
        positions = layout(graph, seed)
        labels = kmeans_in_layout(positions, np.ones(len(truth)), len(sizes), seed)
        assert labels.dtype == np.int64
        assert same_partition(labels, truth)


def test_isolated_groups_and_weights_of_all_sizes_are_laid_out():
    graph, truth = planted((40, 40), bridge=0.0)
    graph.data[graph.data < 0.3] *= 1e-9
    positions = layout(graph, 0)
    assert np.isfinite(positions).all()
    assert same_partition(kmeans_in_layout(positions, np.ones(80), 2, 0), truth)


def test_threads_of_blas_do_not_matter():
    graph, _ = planted((300, 300))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            positions = layout(graph, 0)
            found.append(positions.tobytes() + kmeans_in_layout(positions, np.ones(600), 5, 0).tobytes())
    assert found[0] == found[1]


def test_a_start_is_smooth_and_scaled():
    graph, _ = planted((50, 70))
    start = smooth_start(graph, 4, 0)
    assert np.abs(start).max() == pytest.approx(10)
    assert (start[np.abs(start).argmax(axis=0), np.arange(4)] > 0).all()
    degrees = graph.sum(axis=1)
    np.testing.assert_allclose(degrees @ start / degrees.sum(), 0, atol=1e-4)
    basis = start * np.sqrt(degrees)[:, None]
    gram = basis.T @ basis
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-4 * gram.max())
    walk = graph @ start / degrees[:, None]
    assert (np.linalg.norm(walk, axis=0) > 0.5 * np.linalg.norm(start, axis=0)).all()
    np.testing.assert_allclose(walk[:, 0], start[:, 0], atol=0.01)  # the two groups


@pytest.mark.parametrize("p", [2, 3, 5])
def test_fewer_nodes_than_dimensions(p):
    positions = layout(csr_array(1.0 - np.eye(p)), 0)
    assert positions.shape == (p, 10)
    assert np.isfinite(positions).all()


def test_sizes_count_in_k_means():
    positions = np.array([[0.0], [2.0], [3.0], [5.0]])
    light = kmeans_in_layout(positions, np.array([1.0, 100.0, 100.0, 1.0]), 2, 0)
    assert same_partition(light, np.array([0, 0, 1, 1]))
    heavy = kmeans_in_layout(positions, np.array([1.0, 1.0, 1.0, 1e4]), 2, 0)
    assert same_partition(heavy, np.array([0, 0, 0, 1]))


def test_none_where_fewer_clusters_come_out():
    assert kmeans_in_layout(np.zeros((5, 2)), np.ones(5), 2, 0) is None
    assert kmeans_in_layout(np.repeat([[0.0], [1.0]], 3, axis=0), np.ones(6), 3, 0) is None

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_array, triu
from scipy.spatial.distance import pdist, squareform

from mmcnb.graph.genie import genie_at, spanning_tree


def tree_of(X):
    return spanning_tree(csr_array(squareform(pdist(X))))


def same_clusters(one, other):
    return ((one[:, None] == one) == (other[:, None] == other)).all()


def test_the_tree_is_the_shortest_and_in_order():
    X = np.random.default_rng(0).standard_normal((80, 2))
    lengths = squareform(pdist(X))
    tree = tree_of(X)
    assert tree.dtype == np.int64
    assert (tree[:, 0] < tree[:, 1]).all()
    np.testing.assert_array_equal(lengths[*tree.T], np.sort(linkage(X, "single")[:, 2]))
    upper = csr_array(triu(csr_array(lengths)))
    for graph in (upper, csr_array(upper.T)):
        np.testing.assert_array_equal(spanning_tree(graph), tree)


def test_of_equal_lengths_those_of_the_first_nodes_are_taken():
    assert spanning_tree(csr_array(1.0 - np.eye(5))).tolist() == [[0, i] for i in range(1, 5)]


def test_edges_of_no_length_and_nodes_without_a_path():
    graph = csr_array((np.array([0.0, 2.0]), ([0, 1], [1, 2])), (4, 4))
    tree = spanning_tree(graph)
    assert tree.tolist() == [[0, 1], [1, 2]]
    assert genie_at(tree, np.ones(4), 1, 0.5) is None
    assert genie_at(tree, np.ones(4), 2, 0.5).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("k", [1, 2, 7, 100])
def test_at_threshold_one_this_is_single_linkage(k):
    X = np.random.default_rng(1).standard_normal((100, 2))
    found = genie_at(tree_of(X), np.ones(100), k, 1.0)
    assert same_clusters(found, fcluster(linkage(X, "single"), k, "maxclust"))


def test_no_more_clusters_than_nodes():
    assert genie_at(tree_of(np.arange(3.0)[:, None]), np.ones(3), 4, 0.3) is None


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7])
def test_a_weight_is_a_repetition(threshold):
    rng = np.random.default_rng(2)
    X, times = rng.standard_normal((60, 2)), rng.integers(1, 3, 60)
    repeated = np.repeat(np.arange(60), times)
    near = X[repeated] + 1e-9 * rng.standard_normal((len(repeated), 2))
    for k in (2, 5, 10):
        found = genie_at(tree_of(X), times, k, threshold)
        np.testing.assert_array_equal(
            genie_at(tree_of(near), np.ones(len(near)), k, threshold), found[repeated]
        )


@pytest.mark.parametrize("unit", [0.1, 0.3, 1 / 7, 1e-12, 1e12])
def test_the_unit_of_weights_makes_no_difference(unit):
    rng = np.random.default_rng(3)
    tree, sizes = tree_of(rng.standard_normal((200, 2))), rng.integers(1, 4, 200)
    for threshold in (0.1, 0.3):
        expected = genie_at(tree, sizes, 4, threshold)
        np.testing.assert_array_equal(genie_at(tree, unit * sizes, 4, threshold), expected)


def test_an_outlier_is_no_cluster_at_a_low_threshold():
    rng = np.random.default_rng(4)
    blobs = [centre + rng.standard_normal((size, 2)) for centre, size in ((0, 100), (20, 40), (40, 60))]
    X, truth = np.vstack([*blobs, [[0.0, 300.0]]]), np.repeat([0, 1, 2, 0], [100, 40, 60, 1])
    tree = tree_of(X)
    found = genie_at(tree, np.ones(201), 3, 0.3)
    assert same_clusters(found[:-1], truth[:-1])
    assert np.bincount(found).min() >= 40
    assert np.bincount(genie_at(tree, np.ones(201), 3, 1.0)).min() == 1  # single linkage leaves it alone

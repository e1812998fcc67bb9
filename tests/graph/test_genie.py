"""The Genie linkage along the minimum spanning tree equals a plain twin."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_array, triu
from scipy.spatial.distance import pdist, squareform

from mmcnb.graph.genie import genie_at, spanning_tree
from tests import reference_genie


def tree_of(X):
    return spanning_tree(csr_array(squareform(pdist(X))))


def same_clusters(one, other):
    return (np.equal.outer(one, one) == np.equal.outer(other, other)).all()


# -- the tree --------------------------------------------------------------------------


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
    assert spanning_tree(csr_array(1.0 - np.eye(5))).tolist() == [
        [0, i] for i in range(1, 5)
    ]


def test_edges_of_no_length_and_nodes_without_a_path():
    graph = csr_array((np.array([0.0, 2.0]), ([0, 1], [1, 2])), (4, 4))
    tree = spanning_tree(graph)
    assert tree.tolist() == [[0, 1], [1, 2]]
    assert genie_at(tree, np.ones(4), 1, 0.5) is None
    assert genie_at(tree, np.ones(4), 2, 0.5).tolist() == [0, 0, 0, 1]


# -- the linkage -----------------------------------------------------------------------


def random_tree(rng, p):
    """Join each node to an earlier one, mostly a recent one; edges in any order."""
    earlier = [max(0, i - 1 - int(rng.exponential(3))) for i in range(1, p)]
    names = rng.permutation(p)
    return np.column_stack([names[np.arange(1, p)], names[earlier]])[
        rng.permutation(p - 1)
    ]


@pytest.mark.parametrize("kind", ["one", "whole", "any"])
@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.7, 1.0])
def test_clusters_are_those_of_the_twin(threshold, kind):
    rng = np.random.default_rng(0)
    for p, n_trees in ((2, 1), (3, 1), (10, 1), (40, 1), (40, 1), (40, 7)):
        tree = random_tree(rng, p)[: p - n_trees]
        draws = {
            "one": np.ones(p),
            "whole": rng.integers(1, 6, p) * 1.0,
            "any": rng.lognormal(0, 1, p),
        }
        weights = draws[kind] / draws[kind].min()
        for k in {1, 2, 5, 12, p}:
            found = genie_at(tree, weights, k, threshold)
            assert (found is None) == (not n_trees <= k <= p)
            if found is not None:
                assert found.dtype == np.int64
                expected = reference_genie.genie(tree, weights, threshold, k)
                np.testing.assert_array_equal(
                    found, np.unique(expected, return_inverse=True)[1]
                )


def test_an_index_equal_to_the_threshold_is_not_above_it():
    tree = np.array([[2, 3], [0, 1], [3, 0]])
    weights = np.array([1.0, 1.0, 2.0, 2.0])
    index = 4 / (3 * 6)
    assert reference_genie.gini(weights) == index
    assert genie_at(tree, weights, 3, index).tolist() == [0, 1, 2, 2]
    assert genie_at(tree, weights, 3, np.nextafter(index, 0)).tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.7])
def test_a_weight_is_a_repetition_in_any_unit(threshold):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 2))
    times = rng.integers(1, 3, 60)
    repeated = np.repeat(np.arange(60), times)
    near = X[repeated] + 1e-9 * rng.standard_normal((len(repeated), 2))
    for k in (2, 5, 10):
        expected = genie_at(tree_of(near), np.ones(len(near)), k, threshold)
        for unit in (1, 0.1, 1 / 7, 1e-12, 1e12):
            found = genie_at(tree_of(X), unit * times, k, threshold)
            np.testing.assert_array_equal(found[repeated], expected)

"""The merge tree: its cuts nest, one for each number, and its merges are those of the largest links."""

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet, is_valid_linkage
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from mmcnb.errors import InputError
from mmcnb.graph.communities import merge_tree
from mmcnb.graph.merge_tree import MergeTree, by_first
from mmcnb.graph.vote_file import restore_tree
from tests import reference_graph
from tests.choice.graphs import ring


def random_graph(p, seed, loops=True):
    """Dense weights, of which no two links are equal, and the diagonal."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((p, p)) * (rng.random((p, p)) < 0.5), 1)
    upper[np.arange(p - 1), np.arange(1, p)] += 0.01  # connected
    return upper + upper.T, rng.random(p) * loops


def tree_of(W, loops, k=None):
    return merge_tree(csr_array(W), loops, k)


def pieces_below(tree):
    """The pieces in each piece and in each merge."""
    below = [{piece} for piece in range(tree.n_pieces)]
    for one, other in tree.merges:
        below.append(below[one] | below[other])
    return below


TREES = {
    "random": lambda: tree_of(*random_graph(40, 0), 12),
    "groups": lambda: merge_tree(*ring(5, 300)[0].edges()),
    "components": lambda: tree_of(
        np.kron(np.eye(4), random_graph(6, 2)[0]), np.ones(24), 12
    ),
}


@pytest.fixture(params=TREES)
def tree(request):
    return TREES[request.param]()


# -- its cuts --------------------------------------------------------------------------


def test_there_is_a_cut_for_each_number_and_all_nest(tree):
    assert tree.n_pieces > 4
    finer = tree.piece_of_node
    np.testing.assert_array_equal(tree.labels(tree.n_pieces), finer)
    for k in range(tree.n_pieces - 1, 0, -1):
        labels = tree.labels(k)
        from_largest = tree.cluster_of_piece(k)[tree.piece_of_node]
        assert (np.diff(np.bincount(from_largest)) <= 0).all()
        np.testing.assert_array_equal(by_first(from_largest), labels)
        numbers, first = np.unique(labels, return_index=True)
        assert numbers.tolist() == list(range(k))
        assert (np.diff(first) > 0).all()  # numbered by first nodes
        # each in one
        assert len(set(zip(finer.tolist(), labels.tolist(), strict=True))) == k + 1
        finer = labels


def test_the_cut_at_a_link_undoes_all_merges_below(tree):
    for link in [*tree.links, *np.sqrt(tree.links[1:] * tree.links[:-1]), 1e9, 1e-9]:
        k = tree.n_at(link)
        np.testing.assert_array_equal(tree.labels(k), tree.without(tree.links < link))
        assert k == tree.n_pieces - (tree.links >= link).sum()


def test_merges_above_one_that_is_undone_are_undone(tree):
    rng = np.random.default_rng(0)
    c = tree.n_pieces
    for _ in range(20):
        undone = rng.random(tree.links.size) < 0.2
        clusters = {piece: {piece} for piece in range(c)}
        for t, (a, b) in enumerate(tree.merges.tolist()):
            if not undone[t] and a in clusters and b in clusters:
                clusters[c + t] = clusters.pop(a) | clusters.pop(b)
        of_piece = np.empty(c, int)
        for number, pieces in enumerate(clusters.values()):
            of_piece[list(pieces)] = number
        assert (
            adjusted_rand_score(of_piece[tree.piece_of_node], tree.without(undone)) == 1
        )


def test_sums_and_merges_of_pairs_are_those_of_the_pieces_below(tree):
    values = np.random.default_rng(0).random(tree.piece_of_node.size)
    below = pieces_below(tree)
    expected = [
        values[np.isin(tree.piece_of_node, list(pieces))].sum() for pieces in below
    ]
    np.testing.assert_allclose(tree.sums(values), expected, rtol=1e-12)
    pairs = np.array(list(combinations(range(tree.n_pieces), 2)))
    first = [
        [pair <= both for both in below[tree.n_pieces :]].index(True)
        for pair in map(set, pairs)
    ]
    assert (
        tree.merge_of_pieces(*pairs.T).tolist()
        == tree.merge_of_pieces(*pairs.T[::-1]).tolist()
        == first
    )


# -- its links -------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2, 3, 9, 16])
def test_merges_are_always_those_of_the_largest_link(p):
    for seed in range(6):
        W, loops = random_graph(p, seed, seed % 2 > 0)
        tree = tree_of(W, loops, p)
        pairs, links = reference_graph.merges(W, loops, tree.piece_of_node)
        np.testing.assert_allclose(tree.links, links, rtol=1e-9)
        assert (np.diff(tree.links) <= 0).all()
        for k in range(1, tree.n_pieces + 1):
            expected = reference_graph.cut_of(tree.piece_of_node, pairs, k)
            assert adjusted_rand_score(expected, tree.labels(k)) == 1


def test_pieces_are_as_many_as_asked_for():
    for k in (1, 5, 12):
        assert tree_of(*random_graph(40, 0), k).n_pieces >= min(40, 3 * k)


def test_heights_of_the_linkage_of_scipy_are_the_inverse_links(tree):
    linkage = tree.linkage()
    pairs = np.triu_indices(tree.n_pieces, 1)
    assert is_valid_linkage(linkage)
    assert linkage.shape == (tree.n_pieces - 1, 4)
    assert linkage[:, 3].tolist() == [
        len(pieces) for pieces in pieces_below(tree)[tree.n_pieces :]
    ]
    links = tree.links[tree.merge_of_pieces(*pairs)]
    heights = cophenet(linkage)
    is_joined = links >= 1e-6
    np.testing.assert_allclose(heights[is_joined], 1 / links[is_joined], rtol=1e-12)
    np.testing.assert_allclose(
        heights[~is_joined], 2 * heights[is_joined].max(), rtol=1e-12
    )


# -- of arrays that may be anything ----------------------------------------------------

SMALL = MergeTree(
    np.array([0, 1, 2, 0]), np.array([[1, 2], [0, 3]]), np.array([3.0, 0.5])
)


def test_a_tree_is_restored_from_its_arrays():
    arrays = {
        "pieces": SMALL.piece_of_node,
        "merges": SMALL.merges,
        "links": SMALL.links,
    }
    again = restore_tree(arrays, 4)
    for k in (1, 2, 3):
        np.testing.assert_array_equal(again.labels(k), SMALL.labels(k))
    arrays = {
        "pieces": np.zeros(4, np.int64),
        "merges": np.empty((0, 2), np.int64),
        "links": np.empty(0),
    }
    one = restore_tree(arrays, 4)
    assert (one.n_pieces, one.labels(1).tolist(), one.linkage().shape) == (
        1,
        [0] * 4,
        (0, 4),
    )


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("pieces", [0, 1, 3, 0]),
        ("merges", [[1, 2], [0, 4]]),  # itself
        ("merges", [[1, 2], [0, 1]]),  # one that is merged already
        ("merges", [[1, 2], [0, -1]]),
        ("merges", [[1, 2], [0, 2**62]]),
        ("merges", [[1, 2]]),
        ("links", [3.0, 0.0]),
        ("links", [0.5, 3.0]),
        ("links", [np.nan, np.nan]),
    ],
)
def test_arrays_that_are_no_tree_are_refused(name, array):
    arrays = {
        "pieces": SMALL.piece_of_node,
        "merges": SMALL.merges,
        "links": SMALL.links,
    }
    arrays[name] = np.array(array)
    with pytest.raises(InputError, match=name):
        restore_tree(arrays, 4)

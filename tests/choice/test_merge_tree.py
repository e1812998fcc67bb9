"""The merge tree: its cuts nest, one for each number, and its merges are those of the largest links."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet, dendrogram, fcluster, is_valid_linkage
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from mmcnb.choice.number import structure
from mmcnb.errors import InputError
from mmcnb.graph.communities import MergeTree, merge_tree
from tests import reference_graph
from tests.choice.graphs import blobs, graph_of, ring


def random_graph(p, seed, loops=True):
    """Dense weights, of which no two links are equal, and the diagonal."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((p, p)) * (rng.random((p, p)) < 0.5), 1)
    upper[np.arange(p - 1), np.arange(1, p)] += 0.01  # connected
    return upper + upper.T, rng.random(p) * loops


def tree_of(W, loops, k=None):
    return merge_tree(csr_array(W), loops, k)


def nests(fine, coarse):
    """Whether each cluster of the fine labels lies in one of the coarse ones."""
    table = np.zeros((fine.max() + 1, coarse.max() + 1), int)
    np.add.at(table, (fine, coarse), 1)
    return (np.count_nonzero(table, axis=1) == 1).all()


TREES = {
    "random": lambda: tree_of(*random_graph(40, 0), 12),
    "groups": lambda: structure(ring(5, 300)[0]).tree,
    "no groups": lambda: structure(graph_of(blobs(400, 1, d=3))).tree,
    "all nodes": lambda: tree_of(*random_graph(15, 1), 15),
    "components": lambda: tree_of(np.kron(np.eye(4), random_graph(6, 2)[0]), np.ones(24), 12),
}


@pytest.fixture(params=TREES)
def tree(request):
    return TREES[request.param]()


# -- its cuts ----------------------------------------------------------------------------------


def test_there_is_a_cut_for_each_number_and_all_nest(tree):
    assert tree.n_pieces > 4
    finer = tree.piece_of_node
    np.testing.assert_array_equal(tree.labels(tree.n_pieces), finer)
    for k in range(tree.n_pieces - 1, 0, -1):
        labels = tree.labels(k)
        assert np.unique(labels).tolist() == list(range(k))
        assert (np.diff(np.unique(labels, return_index=True)[1]) > 0).all()  # numbered by first nodes
        assert nests(finer, labels)
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
        cluster = {piece: {piece} for piece in range(c)}
        for t, (a, b) in enumerate(tree.merges.tolist()):
            if not undone[t] and a in cluster and b in cluster:
                cluster[c + t] = cluster.pop(a) | cluster.pop(b)
        of_piece = np.empty(c, int)
        for number, pieces in enumerate(cluster.values()):
            of_piece[list(pieces)] = number
        expected = of_piece[tree.piece_of_node]
        assert adjusted_rand_score(expected, tree.without(undone)) == 1


def test_clusters_of_pieces_are_those_of_the_nodes_from_the_largest_on(tree):
    for k in range(1, tree.n_pieces + 1):
        labels = tree.cluster_of_piece(k)[tree.piece_of_node]
        assert adjusted_rand_score(tree.labels(k), labels) == 1
        assert (np.diff(np.bincount(labels)) <= 0).all()


def test_sums_are_those_of_the_nodes_below(tree):
    values = np.random.default_rng(0).random(tree.piece_of_node.size)
    sums, c = tree.sums(values), tree.n_pieces
    of_piece = [{piece} for piece in range(c)]
    for a, b in tree.merges:
        of_piece.append(of_piece[a] | of_piece[b])
    expected = [values[np.isin(tree.piece_of_node, list(pieces))].sum() for pieces in of_piece]
    np.testing.assert_allclose(sums, expected, rtol=1e-12)


def test_the_merge_of_two_pieces_is_the_first_that_has_both(tree):
    of_piece = [{piece} for piece in range(tree.n_pieces)]
    for a, b in tree.merges:
        of_piece.append(of_piece[a] | of_piece[b])
    pairs = np.array([*permutations(range(tree.n_pieces), 2)], int).reshape(-1, 2)
    for (a, b), found in zip(pairs, tree.merge_of_pieces(*pairs.T), strict=True):
        expected = [t for t, both in enumerate(of_piece[tree.n_pieces :]) if {a, b} <= both]
        assert found == expected[0]


# -- its links ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("p", [2, 3, 5, 9, 16])
def test_merges_are_always_those_of_the_largest_link(p, loops):
    for seed in range(6):
        W, own = random_graph(p, seed, loops)
        tree = tree_of(W, own, p)
        k = tree.n_pieces
        pairs, links = reference_graph.merges(W, own, tree.piece_of_node)
        np.testing.assert_allclose(tree.links, links, rtol=1e-9)
        for cut in range(1, k + 1):
            expected = reference_graph.cut_of(tree.piece_of_node, pairs, cut)
            assert adjusted_rand_score(expected, tree.labels(cut)) == 1


def test_links_fall_and_pieces_are_as_many_as_asked(tree):
    assert (np.diff(tree.links) <= 0).all()
    assert (tree.links > 0).all() or tree.links[-1] == 0
    for k in (1, 5, 12):
        assert tree_of(*random_graph(40, 0), k).n_pieces >= min(40, 3 * k)


def test_the_weakest_links_join_groups_far_apart():
    graph, truth = ring(6, 300)
    tree = structure(graph).tree
    assert adjusted_rand_score(truth, tree.labels(6)) == 1
    assert tree.links[-5] < tree.links[-6] / 100


def test_permuted_nodes_have_the_same_tree():
    W, loops = random_graph(30, 3)
    order = np.random.default_rng(0).permutation(30)
    one, other = tree_of(W, loops, 30), tree_of(W[order][:, order], loops[order], 30)
    assert one.n_pieces == other.n_pieces == 30
    np.testing.assert_allclose(one.links, other.links, rtol=1e-9)
    for k in range(1, 31):
        assert adjusted_rand_score(one.labels(k)[order], other.labels(k)) == 1


def test_edges_in_any_order_and_any_threads_have_the_same_tree_to_the_bit():
    W, loops = random_graph(60, 4)
    tree, graph = tree_of(W, loops, 15), csr_array(W)
    shuffled = graph.copy()
    for start, stop in zip(graph.indptr[:-1], graph.indptr[1:], strict=True):
        order = np.random.default_rng(start).permutation(np.arange(start, stop))
        shuffled.indices[start:stop], shuffled.data[start:stop] = graph.indices[order], graph.data[order]
    shuffled.has_sorted_indices = False
    with ThreadPoolExecutor(4) as pool:
        others = [*pool.map(lambda one: merge_tree(one, loops, 15), [graph] * 4), tree_of(W, loops, 15)]
    for other in others:
        for name in ("piece_of_node", "merges", "links"):
            assert getattr(tree, name).tobytes() == getattr(other, name).tobytes()
    again = merge_tree(shuffled, loops, 15)
    np.testing.assert_array_equal(again.piece_of_node, tree.piece_of_node)
    np.testing.assert_array_equal(again.merges, tree.merges)
    np.testing.assert_allclose(again.links, tree.links, rtol=1e-12)


# -- as SciPy's linkage ------------------------------------------------------------------------


def test_the_linkage_is_one_that_scipy_takes_and_draws(tree):
    linkage, c = tree.linkage(), tree.n_pieces
    assert linkage.shape == (c - 1, 4)
    assert is_valid_linkage(linkage)
    assert linkage[-1, 3] == c
    drawn = dendrogram(linkage, ax=plt.figure().gca())
    assert sorted(drawn["leaves"]) == list(range(c))
    plt.close("all")


def test_scipy_cuts_the_linkage_as_the_tree_is_cut(tree):
    linkage = tree.linkage()
    for k in range(1, tree.n_pieces + 1):
        flat = fcluster(linkage, k, "maxclust")
        if flat.max() == k:  # equal heights are cut together
            assert adjusted_rand_score(flat[tree.piece_of_node], tree.labels(k)) == 1


def test_heights_are_the_inverse_links(tree):
    heights, pairs = cophenet(tree.linkage()), np.triu_indices(tree.n_pieces, 1)
    merge = tree.merge_of_pieces(*pairs)
    joined = tree.links[merge] >= 1e-6
    np.testing.assert_allclose(heights[joined], 1 / tree.links[merge[joined]], rtol=1e-12)


# -- of arrays that may be anything ------------------------------------------------------------

SMALL = MergeTree(np.array([0, 1, 2, 0]), np.array([[1, 2], [0, 3]]), np.array([3.0, 0.5]))


def test_a_tree_is_restored_from_its_arrays():
    again = MergeTree.restore([SMALL.piece_of_node, SMALL.merges, SMALL.links], 4)
    for k in (1, 2, 3):
        np.testing.assert_array_equal(again.labels(k), SMALL.labels(k))
    one = MergeTree.restore([np.zeros(4, np.int64), np.empty((0, 2), np.int64), np.empty(0)], 4)
    assert (one.n_pieces, one.labels(1).tolist(), one.linkage().shape) == (1, [0] * 4, (0, 4))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("pieces", [0, 1, 3, 0]),
        ("pieces", [0, 1, -1, 0]),
        ("pieces", [0, 1, 2]),
        ("merges", [[1, 2], [0, 4]]),  # itself
        ("merges", [[0, 4], [1, 2]]),  # one that comes later
        ("merges", [[1, 2], [0, 1]]),  # one that is merged already
        ("merges", [[1, 1], [0, 3]]),
        ("merges", [[1, 2], [0, -1]]),
        ("merges", [[1, 2], [0, 2**62]]),
        ("merges", [[1, 2]]),
        ("links", [3.0, -0.5]),
        ("links", [3.0, 0.0]),
        ("links", [0.5, 3.0]),
        ("links", [np.nan, np.nan]),
        ("links", [[3.0], [0.5]]),
    ],
)
def test_arrays_that_are_no_tree_are_refused(name, array):
    arrays = {"pieces": SMALL.piece_of_node, "merges": SMALL.merges, "links": SMALL.links}
    arrays[name] = np.array(array)
    with pytest.raises(InputError, match=name):
        MergeTree.restore(list(arrays.values()), 4)

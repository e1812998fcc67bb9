import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

from mmcnb.graph.communities import communities_at
from tests import reference_communities as reference
from tests.reference_communities import cliques, numbered, random_graph


def at(W, k, seed=0, loops=None):
    return communities_at(csr_array(W), np.zeros(len(W)) if loops is None else loops, k, seed)


@pytest.mark.parametrize("seed", range(8))
def test_communities_equal_their_twin(seed):
    W, loops = random_graph(seed, p=12 + 3 * seed, loops=seed % 3 > 0)
    for k in (1, 2, 3, 5):
        labels = at(W, k, seed, loops)
        assert labels.tolist() == reference.communities_at(W, loops, k, seed).tolist()
        assert set(labels) == set(range(k))


@pytest.mark.parametrize("k", range(2, 9))
def test_numbers_that_no_resolution_gives_come_by_linkage(k):
    W = cliques(8, 4)  # all pieces are alike, so many join at the same resolution
    labels = at(W, k)
    expected = reference.communities_at(W, np.zeros(32), k, 0)
    assert sorted(np.bincount(labels)) == sorted(np.bincount(expected))
    assert (labels.reshape(8, 4) == labels[::4, None]).all()
    one, other = (reference.modularity(W, np.zeros(32), found, 1.0) for found in (labels, expected))
    assert one == pytest.approx(other, abs=1e-12)


def test_a_planted_partition_is_found():
    rng, truth = np.random.default_rng(0), np.arange(200) % 4
    upper = np.triu(rng.random((200, 200)) < np.where(np.equal.outer(truth, truth), 0.3, 0.02), 1)
    labels = at((upper + upper.T).astype(float), 4)
    assert labels.dtype == np.int64
    assert labels.tolist() == truth.tolist()  # numbers are those of the first nodes


def test_a_ring_of_cliques_falls_into_arcs():
    W = cliques(12, 6)
    assert at(W, 12).tolist() == np.repeat(np.arange(12), 6).tolist()
    for k in (2, 3, 4, 6):
        labels = at(W, k).reshape(12, 6)
        assert (labels == labels[:, :1]).all()  # whole cliques
        ring = labels[:, 0]
        assert (ring != np.roll(ring, 1)).sum() == k


@pytest.mark.parametrize("k", range(1, 7))
def test_components_come_before_their_parts(k):
    W = block_diag([csr_array(cliques(1, 5, 0.0))] * 4).toarray()
    labels = at(W, k)
    assert set(labels) == set(range(k))
    of_component = [set(part) for part in labels.reshape(4, 5)]
    if k <= 4:
        assert all(len(part) == 1 for part in of_component)
    else:
        assert sum(map(len, of_component)) == k  # none has nodes of two


def test_nodes_without_edges_are_shared_out():
    labels = at(np.zeros((9, 9)), 3, loops=np.ones(9))
    assert np.bincount(labels).min() >= 2


def test_as_many_communities_as_nodes_and_no_more():
    W = cliques(2, 4)
    assert at(W, 8).tolist() == list(range(8))
    assert at(W, 9) is None
    assert at(cliques(1, 2, 1.0), 2).tolist() == [0, 1]
    assert at(cliques(1, 2, 1.0), 1).tolist() == [0, 0]


def test_a_seed_gives_the_same_communities_and_numbers_by_first_node():
    W, loops = random_graph(3, p=80)
    before = W.copy(), loops.copy()
    for seed in range(4):
        labels = at(W, 5, seed, loops)
        assert labels.tolist() == at(W, 5, seed, loops).tolist() == numbered(labels).tolist()
    assert all(np.array_equal(*pair) for pair in zip(before, (W, loops), strict=True))

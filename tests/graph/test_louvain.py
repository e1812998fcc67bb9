import numpy as np
import pytest

from mmcnb.graph import _louvain as kernels
from tests import reference_communities as reference
from tests.reference_communities import cliques, csr, modularity, random_graph

SEEDS, RESOLUTIONS = range(12), (0.25, 1.0, 3.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_louvain_equals_its_twin(seed):
    W, loops = random_graph(seed, loops=seed % 3 > 0)
    order = np.random.default_rng(seed).permutation(len(W))
    for resolution in RESOLUTIONS:
        labels = kernels.louvain(*csr(W), loops, resolution, order)
        assert labels.dtype == np.int64
        assert labels.tolist() == reference.louvain(W, loops, resolution, order).tolist()
        assert labels.tolist() == reference.numbered(labels).tolist()
        alone = modularity(W, loops, np.arange(len(W)), resolution)
        assert modularity(W, loops, labels, resolution) >= alone - 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_moves_equal_their_twin_and_empty_no_community(seed):
    W, loops = random_graph(seed, loops=seed % 3 > 0)
    rng, p = np.random.default_rng(seed), len(W)
    k = int(rng.integers(1, p + 1))
    labels, order = rng.permutation(np.arange(p) % k), rng.permutation(p)
    for resolution in RESOLUTIONS:
        before = labels.copy()
        moved = kernels.move_nodes(*csr(W), loops, labels, k, resolution, order)
        assert labels.tolist() == before.tolist()
        assert moved.tolist() == reference.move_nodes(W, loops, labels, k, resolution, order).tolist()
        assert set(moved) == set(range(k))
        gain = modularity(W, loops, moved, resolution) - modularity(W, loops, labels, resolution)
        assert gain >= -1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_graphs_of_communities_equal_their_twin(seed):
    W, loops = random_graph(seed)
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, len(W) + 1))
    labels = rng.permutation(np.arange(len(W)) % k)
    found = kernels.aggregate(*csr(W), loops, labels, k)
    links, inner = reference.aggregate(W, loops, labels, k)
    for one, other in zip(found, (*csr(links), inner), strict=True):
        assert one.tolist() == other.tolist()
    whole = modularity(links, inner, np.arange(k), 1.5)  # a loop is worth its inner edges
    assert whole == pytest.approx(modularity(W, loops, labels, 1.5))


def test_types_of_indices_and_units_of_weights_change_nothing():
    W, loops = random_graph(5, p=60)
    starts, ends, weights = csr(W)
    labels = kernels.louvain(starts, ends, weights, loops, 1.0, np.arange(60))
    short = starts.astype(np.int32), ends.astype(np.int32)
    assert kernels.louvain(*short, weights, loops, 1.0, np.arange(60)).tolist() == labels.tolist()
    tiny = weights * 2.0**-600, loops * 2.0**-600
    assert kernels.louvain(starts, ends, *tiny, 1.0, np.arange(60)).tolist() == labels.tolist()


def test_loops_tie_a_node_to_its_own_community():
    W = np.array([[0.0, 1.0], [1.0, 0.0]])
    for loop, expected in ((0.0, [0, 0]), (9.0, [0, 1])):  # volumes 1 and 1: 1 > 1/2; 10 and 10: 1 < 100/20
        assert kernels.louvain(*csr(W), np.full(2, loop), 1.0, np.arange(2)).tolist() == expected


def test_cliques_are_communities():
    labels = kernels.louvain(*csr(cliques(6, 5)), np.zeros(30), 1.0, np.arange(30))
    assert labels.tolist() == np.repeat(np.arange(6), 5).tolist()


@pytest.mark.parametrize("weight", [0.1, 1e300, np.nan])
def test_any_weights_and_resolutions_come_to_an_end(weight):
    W = weight * (np.ones((40, 40)) - np.eye(40))
    for resolution in (1e-3, 1.0, 39 / 40, 2.0**40):  # ties but for rounding, among others
        labels = kernels.louvain(*csr(W), np.zeros(40), resolution, np.arange(40))
        start = np.arange(40) % 7
        kernels.move_nodes(*csr(W), np.zeros(40), start, 7, resolution, np.arange(40))
        assert labels[0] == 0


def test_nodes_without_edges_stay_alone():
    nothing = np.zeros((3, 3))
    assert kernels.louvain(*csr(nothing), np.zeros(3), 1.0, np.arange(3)).tolist() == [0, 1, 2]

"""Communities equal a plain twin, at a resolution and in a number."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from mmcnb.graph.communities import communities_at, communities_by
from tests import reference_communities as reference
from tests.reference_communities import cliques, modularity, numbered, random_graph


def at(W, k, seed=0, loops=None):
    return communities_at(
        csr_array(W), np.zeros(len(W)) if loops is None else loops, k, seed
    )


def by(W, resolution, loops=None):
    return communities_by(
        csr_array(W), np.zeros(len(W)) if loops is None else loops, resolution
    )


# -- at a resolution -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_communities_at_a_resolution_equal_their_twin(seed):
    W, loops = random_graph(seed, loops=seed % 3 > 0)
    for resolution in (0.25, 1.0, 3.0):
        labels = by(W, resolution, loops)
        assert labels.dtype == np.int64
        assert (
            labels.tolist()
            == reference.louvain(W, loops, resolution, range(len(W))).tolist()
        )
        assert labels.tolist() == numbered(labels).tolist()
        alone = modularity(W, loops, np.arange(len(W)), resolution)
        assert modularity(W, loops, labels, resolution) >= alone - 1e-12
        tiny = by(W * 2.0**-600, resolution, loops * 2.0**-600)
        assert tiny.tolist() == labels.tolist()


def test_loops_tie_a_node_to_its_own_community():
    W = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert by(W, 1.0).tolist() == [0, 0]  # volumes of 1 and 1: 1 > 1/2
    assert by(W, 1.0, np.full(2, 9.0)).tolist() == [0, 1]  # of 10 and 10: 1 < 100/20
    assert by(np.zeros((3, 3)), 1.0).tolist() == [0, 1, 2]


@pytest.mark.parametrize("weight", [0.1, 1e300])
def test_any_weights_and_resolutions_come_to_an_end(weight):
    W = weight * (np.ones((40, 40)) - np.eye(40))
    # ties but for rounding, among others
    for resolution in (
        1e-3,
        1.0,
        39 / 40,
        2.0**40,
    ):
        assert by(W, resolution)[0] == 0


# -- in a number -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_communities_in_a_number_equal_their_twin(seed):
    W, loops = random_graph(seed, p=12 + 3 * seed, loops=seed % 3 > 0)
    for k in (1, 2, 3, 5):
        labels = at(W, k, seed, loops)
        assert labels.tolist() == reference.communities_at(W, loops, k, seed).tolist()
        assert labels.tolist() == numbered(labels).tolist()
        assert set(labels) == set(range(k))


@pytest.mark.parametrize("k", range(2, 9))
def test_numbers_that_no_resolution_gives_come_by_linkage(k):
    W = cliques(8, 4)  # all pieces are alike, so many join at the same resolution
    labels = at(W, k)
    expected = reference.communities_at(W, np.zeros(32), k, 0)
    assert sorted(np.bincount(labels)) == sorted(np.bincount(expected))
    assert (labels.reshape(8, 4) == labels[::4, None]).all()
    one, other = (
        modularity(W, np.zeros(32), found, 1.0) for found in (labels, expected)
    )
    assert one == pytest.approx(other, abs=1e-12)


def test_a_ring_of_cliques_falls_into_arcs():
    W = cliques(12, 6)
    assert (
        at(W, 12).tolist()
        == by(W, 1.0).tolist()
        == np.repeat(np.arange(12), 6).tolist()
    )
    for k in (2, 3, 6):
        labels = at(W, k).reshape(12, 6)
        assert (labels == labels[:, :1]).all()  # whole cliques
        assert (labels[:, 0] != np.roll(labels[:, 0], 1)).sum() == k


def test_there_are_no_more_communities_than_nodes():
    W = cliques(2, 4)
    assert at(W, 8).tolist() == list(range(8))
    assert at(W, 9) is None
    assert at(cliques(1, 2, 1.0), 2).tolist() == [0, 1]
    assert at(cliques(1, 2, 1.0), 1).tolist() == [0, 0]

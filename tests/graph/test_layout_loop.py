import numpy as np
import pytest

from mmcnb.graph import _layout as kernels
from tests import reference_layout


def random_graph(p, seed, share=0.4):
    """Rows of a symmetric graph in CSR form, and its weights; some nodes may have no edge."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((p, p)) * (rng.random((p, p)) < share), 1)
    W = (W + W.T) / W.max()
    return np.r_[0, np.cumsum((W > 0).sum(axis=1))], np.nonzero(W)[1].copy(), W[W > 0]


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize(("q", "n_negative"), [(1, 5), (2, 0), (3, 1), (10, 5)])
def test_positions_equal_their_twin_bit_by_bit(q, n_negative, index_dtype):
    for seed in range(4):
        indptr, indices, weights = random_graph(9, seed, share=0.3)
        start = np.random.default_rng(seed).standard_normal((9, q))
        given = indptr.astype(index_dtype), indices.astype(index_dtype), weights, start, 7, n_negative, seed
        found, kept = kernels.lay_out(*given), start.copy()
        assert found.tobytes() == reference_layout.lay_out(*given).tobytes()
        assert start.tobytes() == kept.tobytes()


def test_an_edge_is_visited_in_proportion_to_its_weight():
    pair, start = (np.array([0, 1, 2]), np.array([1, 0])), np.array([[0.0], [3.0]])
    gaps = [np.ptp(kernels.lay_out(*pair, np.full(2, w), start, 4, 0, 0)) for w in (1.0, 0.5, 0.25, 0.2)]
    assert gaps[0] < gaps[1] < gaps[2] < gaps[3] == 3.0


@pytest.mark.parametrize("spread", [0.0, 1e-9, 1.0, 1e6])
def test_positions_are_finite(spread):
    indptr, indices, weights = random_graph(30, 0, share=0.05)
    weights[::2], weights[1::2] = 1e-9, 1.0
    start = spread * np.random.default_rng(0).standard_normal((30, 3))
    assert np.isfinite(kernels.lay_out(indptr, indices, weights, start, 50, 5, 0)).all()


def test_nodes_without_edges_stay():
    graph = np.array([0, 1, 2, 2]), np.array([1, 0]), np.ones(2)
    start = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]])
    assert kernels.lay_out(*graph, start, 20, 5, 0)[2].tolist() == [5.0, 5.0]


def test_the_same_seed_gives_the_same_bits():
    graph, start = random_graph(40, 1), np.random.default_rng(1).standard_normal((40, 10))
    one, again, other = (kernels.lay_out(*graph, start, 20, 5, seed) for seed in (3, 3, 4))
    assert one.tobytes() == again.tobytes() != other.tobytes()

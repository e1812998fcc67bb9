"""The second draw: rows farthest from the nodes, whatever the blocks, and never a node itself."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse

from mmcnb.engine.passes import sample_rows
from mmcnb.engine.run import ThreadEngine
from mmcnb.features.far_rows import FarRowsPass, far_rows
from mmcnb.graph.neighbours import node_graph
from mmcnb.samples import BLOCK_ROWS, open_samples


def rows_of(n=700, n_far=9, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    far = np.sort(random.permutation(n)[:n_far])
    X[far] *= 9
    return X, far


def naive_far(X, nodes):
    """Rows by falling distance to their tenth node; nodes are left out."""
    distances = np.sort(np.linalg.norm(X[:, None] - X[nodes][None], axis=2), axis=1)[
        :, 9
    ]
    others = np.setdiff1d(np.arange(len(X)), nodes)
    order = others[np.argsort(-distances[others], kind="stable")]
    return order, distances[order]


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("cuts", [[], [1, 100, 201, 699]])
@pytest.mark.parametrize("are_all_drawn", [True, False])
def test_the_farthest_of_the_rows_drawn_are_found_in_blocks_of_any_size(
    form, cuts, are_all_drawn
):
    X, far = rows_of()
    nodes = np.arange(0, 700, 5)
    drawn = np.arange(700) if are_all_drawn else np.setdiff1d(np.arange(100, 700), far)
    graph = node_graph(X[nodes], None, np.random.RandomState(0))
    sweep = FarRowsPass(drawn, graph.axes, graph.search, 30)
    samples = open_samples(form(X))
    ranges = itertools.pairwise([0, *cuts, 700])
    blocks = (
        sweep.block(samples.block(start, stop), start, stop) for start, stop in ranges
    )
    found, rows = functools.reduce(sweep.combine, blocks)
    expected, distances = naive_far(X, nodes)
    is_drawn = np.isin(expected, drawn)
    np.testing.assert_array_equal(rows, expected[is_drawn][:30])
    np.testing.assert_allclose(found, distances[is_drawn][:30], rtol=1e-12)


@pytest.mark.parametrize(
    ("most", "is_weighted"), [(10**6, False), (2 * BLOCK_ROWS, True)]
)
def test_rows_are_drawn_in_their_order_and_at_most_a_fifth_of_the_nodes(
    most, is_weighted
):
    n = 3 * BLOCK_ROWS
    X, far = rows_of(n)
    nodes = np.setdiff1d(np.arange(0, n, 50), far)
    graph = node_graph(X[nodes], None, np.random.RandomState(0))
    weights = np.arange(1.0, n + 1) if is_weighted else None
    with ThreadEngine(1) as engine:
        sample, drawn = far_rows(engine, open_samples(X), weights, graph, most)
    assert len(sample) == np.ceil(nodes.size / 5)
    rows = np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in sample])
    assert (np.diff(rows) > 0).all()
    seen = sample_rows(n, most, weights, 0)
    assert set(far) & set(seen) <= set(rows) <= set(seen)
    assert np.array_equal(drawn, rows + 1.0) if is_weighted else drawn is None

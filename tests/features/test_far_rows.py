"""The second draw: rows farthest from the nodes, whatever the blocks, and never a node itself."""

import functools
import itertools
from dataclasses import replace

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


def naive_far(X, nodes, count):
    """Rows by falling distance to their tenth node; nodes are left out."""
    distances = np.sort(np.linalg.norm(X[:, None] - X[nodes][None], axis=2), axis=1)
    others = np.setdiff1d(np.arange(len(X)), nodes)
    order = others[np.argsort(-distances[others, 9], kind="stable")]
    return order[:count], distances[order[:count], 9]


def the_pass(X, nodes, drawn, count=30):
    graph = node_graph(X[nodes], None, np.random.RandomState(0))
    return FarRowsPass(drawn, graph.axes, graph.search, count)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("cuts", [[], [350], [1, 200, 201, 699]])
def test_the_farthest_rows_are_found_in_blocks_of_any_size(form, cuts):
    X, _ = rows_of()
    nodes = np.arange(0, 700, 5)
    sweep, samples = the_pass(X, nodes, np.arange(700)), open_samples(form(X))
    ranges = itertools.pairwise([0, *cuts, 700])
    blocks = (sweep.block(samples.block(start, stop), start, stop) for start, stop in ranges)
    total = functools.reduce(sweep.combine, blocks)
    rows, distances = naive_far(X, nodes, 30)
    np.testing.assert_array_equal(total[1], rows)
    np.testing.assert_allclose(total[0], distances, rtol=1e-12)


@pytest.mark.parametrize("cuts", [[350], [100, 400]])
def test_rows_that_are_not_drawn_are_left_out(cuts):
    X, far = rows_of()
    drawn = np.setdiff1d(np.arange(100, 700), far)  # none of the first hundred
    sweep = the_pass(X, np.arange(0, 700, 5), drawn)
    ranges = itertools.pairwise([0, *cuts, 700])
    blocks = (sweep.block(X[start:stop], start, stop) for start, stop in ranges)
    total = functools.reduce(sweep.combine, blocks)
    others = drawn[drawn % 5 > 0]
    distances = naive_far(X, np.arange(0, 700, 5), 700)
    expected = [row for row in distances[0] if row in set(others)][:30]
    np.testing.assert_array_equal(total[1], expected)


@pytest.mark.parametrize("most", [10**6, 2 * BLOCK_ROWS])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_rows_are_drawn_in_their_order_and_at_most_a_fifth_of_the_nodes(most, is_weighted):
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
    assert set(rows) <= set(seen)
    assert set(far) & set(seen) <= set(rows)
    assert (drawn is None) == (not is_weighted)
    assert drawn is None or np.array_equal(drawn, rows + 1.0)


def test_nothing_is_drawn_if_all_rows_are_nodes():
    X, _ = rows_of()
    graph = node_graph(X, None, np.random.RandomState(0))
    with ThreadEngine(1) as engine:
        sample, weights = far_rows(engine, open_samples(np.vstack([X, X])), None, graph)
    assert (sample.shape, weights) == ((0, 4), None)


def test_one_cell_suffices_to_find_rows_far_from_all():
    X, far = rows_of(20_000)
    nodes = np.setdiff1d(np.arange(0, 20_000, 4), far)
    graph = node_graph(X[nodes], None, np.random.RandomState(0))
    assert len(graph.search.centres) > 1
    nodes = replace(graph.search, n_probes=1)
    _, rows = FarRowsPass(np.arange(20_000), graph.axes, nodes, 100).block(X, 0, 20_000)
    assert set(far) <= set(rows)

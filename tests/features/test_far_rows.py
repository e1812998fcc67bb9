"""The second draw: rows farthest from the nodes, whatever the blocks, and never a node itself."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from mmcnb.engine.run import ThreadEngine
from mmcnb.features.far_rows import FarRowsPass, far_rows
from mmcnb.graph.neighbours import node_graph
from mmcnb.samples import BLOCK_ROWS, open_samples
from mmcnb.samples.derived import EveryNthGroup
from mmcnb.samples.matrix import as_matrix


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


def the_pass(X, nodes, weights=None, count=30, **others):
    graph = node_graph(X[nodes], None, np.random.RandomState(0))
    return FarRowsPass(weights, graph.axes, graph.search, count, **others)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("cuts", [[], [350], [1, 200, 201, 699]])
def test_the_farthest_rows_are_found_in_blocks_of_any_size(form, cuts):
    X, _ = rows_of()
    nodes = np.arange(0, 700, 5)
    sweep, samples = the_pass(X, nodes), open_samples(form(X))
    total = sweep.start()
    for start, stop in zip([0, *cuts], [*cuts, 700], strict=True):
        total = sweep.combine(total, sweep.block(samples.block(start, stop), start, stop))
    rows, distances = naive_far(X, nodes, 30)
    np.testing.assert_array_equal(total[1], rows)
    np.testing.assert_allclose(total[0], distances, rtol=1e-12)


def test_rows_without_weight_are_left_out():
    X, far = rows_of()
    nodes, weights = np.arange(0, 700, 5), np.ones(700)
    weights[far] = 0
    _, rows = the_pass(X, nodes, weights).block(X, 0, 700)
    assert len(rows) == 30
    assert not set(rows) & set(far)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_every_nth_group_has_the_rows_of_its_groups(monkeypatch, form, step):
    monkeypatch.setattr("mmcnb.samples.derived.GROUP_ROWS", 2 * BLOCK_ROWS)
    n = 7 * BLOCK_ROWS + 5
    X = np.arange(1.0, n + 1)[:, None]
    part = EveryNthGroup(open_samples(form(X)), step)
    numbers = np.flatnonzero(np.arange(n) // (2 * BLOCK_ROWS) % step == 0)
    np.testing.assert_array_equal(part.numbers(np.arange(part.n_samples)), numbers)
    np.testing.assert_array_equal(as_matrix(part.block(0, part.n_samples)) @ [1.0], numbers + 1)
    blocks = [as_matrix(rows) for rows in part.blocks(BLOCK_ROWS, part.n_samples)]
    assert [rows.shape[0] for rows in blocks[:-1]] == [BLOCK_ROWS] * (len(blocks) - 1)
    np.testing.assert_array_equal(np.concatenate([rows @ [1.0] for rows in blocks]), numbers[BLOCK_ROWS:] + 1)
    some = np.array([0, 3, part.n_samples - 1])
    np.testing.assert_array_equal(as_matrix(part.gather(some)) @ [1.0], numbers[some] + 1)


@pytest.mark.parametrize("most", [10**6, 2 * BLOCK_ROWS])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_rows_are_drawn_in_their_order_and_at_most_a_fifth_of_the_nodes(monkeypatch, most, is_weighted):
    monkeypatch.setattr("mmcnb.features.far_rows.MOST_ROWS", most)
    monkeypatch.setattr("mmcnb.samples.derived.GROUP_ROWS", BLOCK_ROWS)
    n = 3 * BLOCK_ROWS
    X, far = rows_of(n)
    nodes = np.setdiff1d(np.arange(0, n, 50), far)
    graph = node_graph(X[nodes], None, np.random.RandomState(0))
    weights = np.arange(1.0, n + 1) if is_weighted else None
    with ThreadEngine(1) as engine:
        sample, drawn = far_rows(engine, open_samples(X), weights, graph)
    assert len(sample) == np.ceil(nodes.size / 5)
    rows = np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in sample])
    assert (np.diff(rows) > 0).all()
    is_seen = np.ones(n, bool)
    if most < n:
        is_seen[BLOCK_ROWS : 2 * BLOCK_ROWS] = False
    assert is_seen[rows].all()
    assert set(far[is_seen[far]]) <= set(rows)
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
    _, rows = FarRowsPass(None, graph.axes, replace(graph.search, n_probes=1), 100).block(X, 0, 20_000)
    assert set(far) <= set(rows)

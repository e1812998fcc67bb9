"""Rows seen from the nodes: decisions as the rule has them, scores and pieces as plain loops have them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from mmcnb.choice.structure import find_structure
from mmcnb.features.labelling import SizesPass, TablePass
from mmcnb.features.of_nodes import NodeColumns, NodeRule
from mmcnb.features.rules import Hyperplane, Scores, Shares, clusters_of
from mmcnb.graph.neighbours import N_NEIGHBORS, node_graph
from mmcnb.graph.vote import log_distances, noise_threshold, outlier_offsets, vote
from tests import reference_graph


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) + 7.0 * rng.integers(0, 3, (n, 1))


@pytest.fixture(scope="module")
def nodes():
    X = rows_of(150)
    graph = node_graph(X, None, np.random.RandomState(0))
    seen = find_structure(graph, 3)
    labels = seen.tree.labels(3)
    offsets = outlier_offsets(log_distances(graph.distances, graph.beyond(X)), labels)
    return graph, vote(graph, labels, 3, seen.tree, offsets)


def nearest(nodes, X):
    """Numbers and distances of the nearest nodes, one more than vote."""
    graph, found = nodes
    numbers, distances = reference_graph.nearest_nodes(
        graph.axes(X),
        found.search.nodes,
        [0, graph.n_nodes],
        np.zeros((len(X), 1), int),
        N_NEIGHBORS + 1,
    )
    return numbers, distances


RULES = {
    "vote": Shares(np.array([2.0, 0.0, 1.0]), np.zeros(3)),
    "scores": Scores(
        np.array([[1.0, -1.0, 0.2], [0.3, 0.5, -1.0]]), np.array([0.0, 0.5, 1.0])
    ),
    "hyperplane": Hyperplane(np.array([1.0, -2.0]), 0.3),
    "one": Scores(np.ones((2, 1)), np.zeros(1)),
}


@pytest.mark.parametrize(
    ("name", "form"),
    [*((name, np.asarray) for name in RULES), ("vote", scipy.sparse.csr_array)],
)
def test_columns_are_decisions_scores_and_pieces(nodes, name, form):
    _, found = nodes
    rule = RULES[name]
    X = rows_of(40, seed=1)
    columns = NodeColumns(rule, found if name == "vote" else None, found)
    block = columns.block(form(X), np.float64)
    k = rule.offset.size if name != "hyperplane" else 1
    assert block.shape == (40, columns.n_features) == (40, k + 3)
    numbers, distances = nearest(nodes, X)
    features = found.block(X, np.float64) if name == "vote" else X
    np.testing.assert_allclose(
        np.squeeze(block[:, :-3]), np.squeeze(rule.decide(features)), rtol=1e-9
    )
    expected = np.log(distances[:, N_NEIGHBORS - 1]) - found.offsets[numbers[:, 0]]
    np.testing.assert_allclose(block[:, -2], expected, rtol=1e-6)
    assert (block[:, -3] < 0).all()  # no row is noise
    weights = reference_graph.calibrated_weights(distances[:, :N_NEIGHBORS])
    votes = np.zeros((40, found.tree.n_pieces))
    for i in range(40):
        for j in range(N_NEIGHBORS):
            votes[i, found.tree.piece_of_node[numbers[i, j]]] += weights[i, j]
    np.testing.assert_array_equal(block[:, -1], votes.argmax(axis=1))
    n_clusters = 2 if name == "hyperplane" else k
    node_rule = NodeRule(n_clusters)
    np.testing.assert_array_equal(node_rule.label(block), rule.label(features))
    assert np.shape(node_rule.decide(block)) == np.shape(rule.decide(features))


def test_offsets_are_medians_the_own_one_by_the_size_of_the_cluster():
    logs = np.random.default_rng(0).normal(size=200)
    labels = np.repeat([0, 1, 2], [149, 50, 1])
    offsets = outlier_offsets(logs, labels)
    middle = np.median(logs)
    for cluster, share in ((0, 149 / 200), (1, 50 / 200)):
        own = share / (share + 0.1)
        expected = own * np.median(logs[labels == cluster]) + (1 - own) * middle
        np.testing.assert_allclose(offsets[labels == cluster], expected)
    own = 0.005 / 0.105
    assert offsets[-1] == pytest.approx(own * logs[-1] + (1 - own) * middle - 2.0)
    sure = outlier_offsets(logs, labels, np.arange(200) == 199)
    np.testing.assert_array_equal(sure, np.append(offsets[:-1], logs[-1]))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_distances_are_those_in_all_columns(form):
    """Rows beyond the axes are far, whatever their place along the axes."""
    random = np.random.default_rng(0)
    X = np.c_[
        10.0 * random.standard_normal((300, 50)),
        0.1 * random.standard_normal((300, 10)) + 5,
    ]
    far = X[:20] + np.r_[np.zeros(50), np.full(10, 40.0)]
    graph = node_graph(form(X), None, np.random.RandomState(0))
    assert graph.axes.n_axes == 50
    points = graph.axes(form(far))
    numbers, distances = graph.search.nearest(points, N_NEIGHBORS)
    beyond = graph.axes.beyond(form(far), points)
    exact = np.linalg.norm(far - X[graph.node_of.argsort()[numbers[:, -1]]], axis=1)
    np.testing.assert_allclose(
        np.exp(log_distances(distances, beyond)), exact, rtol=0.01
    )
    within = log_distances(graph.distances, graph.beyond(form(X)))
    np.testing.assert_allclose(
        np.exp(within), graph.distances[:, N_NEIGHBORS - 1], rtol=1e-3
    )


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_about_a_share_of_the_weight_lies_beyond_the_threshold(share):
    random = np.random.default_rng(0)
    sizes = random.integers(1, 9, 150).astype(float)
    scores = random.normal(size=150)
    beyond = sizes[scores > noise_threshold(scores, sizes, share)].sum()
    assert share * sizes.sum() - sizes.max() <= beyond <= share * sizes.sum()


def test_rows_above_the_threshold_of_their_nearest_node_are_noise(nodes):
    _, found = nodes
    X = rows_of(60, seed=2)
    rule = RULES["vote"]
    scores = NodeColumns(rule, found, found).block(X, np.float64)[:, -2]
    number = nearest(nodes, X)[0][:, 0]
    thresholds = np.random.default_rng(0).normal(size=150)
    limited = replace(found, thresholds=thresholds)
    block = NodeColumns(rule, limited, limited).block(X, np.float64)
    is_noise = NodeRule(3).label(block) == -1
    np.testing.assert_array_equal(is_noise, scores > thresholds[number])
    assert 0 < is_noise.sum() < 60


def test_noise_is_what_exceeds_a_threshold_in_all_columns():
    columns = np.c_[
        np.eye(3)[[0, 1, 2, 1]],
        [-0.5, 0.0, 0.1, -9.0],
        [0.0, 0.5, 0.6, -9.0],
        [0, 1, 1, 0],
    ]
    weights = np.array([5.0, 1.0, 2.0, 4.0])
    sizes, first, _ = SizesPass(weights, NodeRule(3)).block(columns, 0, 4)
    assert sizes.tolist() == [5.0, 5.0, 0.0]
    assert first.tolist() == [0, 1, np.iinfo(np.int64).max]
    rule = NodeRule(3, layers=[("layer_2", np.array([1, 0]))])
    assert rule.label(columns).tolist() == [0, 1, -1, 1]
    assert NodeRule(3, layer=np.array([1, 0])).label(columns).tolist() == [
        1,
        0,
        -1,
        1,
    ]
    (table,) = TablePass(rule).block(columns, 0, 4)
    assert list(table) == ["cluster", "margin", "layer_2"]
    assert [column.tolist() for column in table.values()] == [
        [0, 1, -1, 1],
        [1.0] * 4,
        [1, 0, -1, 1],
    ]


def test_shares_in_another_order_are_the_same_columns():
    rows = np.random.default_rng(0).random((30, 4))
    order = [2, 0, 3, 1]
    once = Shares(np.arange(4.0), np.zeros(4)).ordered(order)
    np.testing.assert_array_equal(once.decide(rows), rows[:, order])
    np.testing.assert_array_equal(
        once.ordered(order).decide(rows), rows[:, order][:, order]
    )
    np.testing.assert_array_equal(once.label(rows), clusters_of(rows[:, order]))

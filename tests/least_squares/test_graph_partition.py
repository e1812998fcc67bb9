"""Partitions of a graph: the score is its formula, and the search finds what scores best."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score

from mmcnb.engine.plan import RowShape
from mmcnb.features.graph import GraphKernel
from mmcnb.features.nystroem import principal_features
from mmcnb.least_squares import graph_partition
from mmcnb.least_squares.graph_partition import (
    AGREEING_ROWS,
    SETTLED,
    agreed_first,
    graph_needs,
    graph_sample,
    linked_directions,
    partition_graph,
)
from mmcnb.least_squares.normalized_cut import cut_score, relative_cut
from mmcnb.least_squares.objective import Partition, smoother
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.synthetic import make_shape
from tests import reference_graph


def blobs(n, k=3, gap=4.0, seed=0, shares=None):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k if shares is None else rng.choice(k, n, p=shares)
    angle = 2 * np.pi * y / k
    return gap * np.c_[np.cos(angle), np.sin(angle)] + rng.standard_normal((n, 2)), y


def config_of(k, cluster_sizes=None, min_share=0.1, tolerance=0.1, **options):
    settings = {"n_init": 3, "cluster_sizes": cluster_sizes, "min_share": min_share} | options
    return PartitionConfig(k, size_tolerance=tolerance, **settings)


def clustered(engine, X, config, weights=None, draw_rows=2000, seed=0, **settings):
    random_state = np.random.RandomState(seed)
    sample = graph_sample(X, weights, GraphKernel(**settings), config.n_clusters, random_state)
    return sample, partition_graph(engine, sample, config, random_state, draw_rows)


def random_graph(p, seed=0):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((p, p)) * (rng.random((p, p)) < 0.5), 1) + np.eye(p, k=1) * 0.1
    return W + W.T


# -- the score ---------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_score_equals_the_plain_formula(k, seed):
    W = random_graph(30, seed)
    labels = np.r_[np.arange(k), np.random.default_rng(seed).integers(0, k, 30 - k)]
    score = cut_score(scipy.sparse.csr_array(W), labels, k)
    assert score == pytest.approx(reference_graph.cut_score(W, labels, k), rel=1e-12)
    order = np.random.default_rng(seed).permutation(k)
    assert cut_score(scipy.sparse.csr_array(W), order[labels], k) == pytest.approx(score, rel=1e-12)
    assert cut_score(scipy.sparse.csr_array(7 * W), labels, k) == pytest.approx(score, rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_relative_cut_is_nothing_between_groups_apart_and_one_at_random(k):
    X, y = blobs(240, k, gap=60.0)
    graph = graph_sample(X, None, GraphKernel(), k, np.random.RandomState(0)).graph
    assert relative_cut(graph, y, k) == pytest.approx(0, abs=1e-5)
    random = np.random.default_rng(0).integers(0, k, 240)
    assert relative_cut(graph, random, k) == pytest.approx(float(k > 1), abs=0.1)


def test_an_empty_cluster_scores_least_of_all_and_one_cluster_is_a_number():
    W = scipy.sparse.csr_array(random_graph(12))
    assert cut_score(W, np.arange(12) % 2, 3) == -np.inf
    assert np.isfinite(cut_score(W, np.zeros(12, int), 1))


def test_of_equal_cuts_the_more_even_scores_better():
    path = scipy.sparse.csr_array(np.eye(8, k=1) + np.eye(8, k=-1))
    scores = [cut_score(path, (np.arange(8) >= cut).astype(int), 2) for cut in range(1, 5)]
    assert (np.diff(scores) > 0).all()


@pytest.mark.parametrize(("n", "k", "seed"), [(10, 2, 0), (11, 2, 1), (9, 3, 0), (9, 3, 2)])
def test_a_few_rows_score_nearly_as_well_as_the_best_of_all_labelings(engine, n, k, seed):
    X, _ = blobs(n, k, gap=3.0, seed=seed)
    sample, found = clustered(engine, X, config_of(k, n_init=8), n_neighbors=3)
    weights = sample.graph.weights
    every = itertools.product(range(k), repeat=n - 1)
    best = max(cut_score(weights, np.array((0, *rest)), k) for rest in every)
    assert found[0].objective <= best + 1e-9
    assert found[0].objective >= best - 0.35  # the search maximises J, and the cut chooses among its ends


# -- the search --------------------------------------------------------------------------------


def test_what_is_found_is_scored_on_the_nodes_and_in_falling_order(engine):
    X, _ = blobs(240)
    X = np.repeat(X, 2, axis=0)
    sample, found = clustered(engine, X, config_of(3), draw_rows=150)
    objectives = [one.objective for one in found]
    assert objectives == sorted(objectives, reverse=True)
    assert sample.graph.weights.shape == (240, 240)
    for one in found:
        assert one.labels.shape == (480,)
        np.testing.assert_array_equal(one.labels[::2], one.labels[1::2])  # equal rows are together
        labels = np.empty(240, int)
        labels[sample.graph.node_of] = one.labels
        assert one.objective == pytest.approx(
            reference_graph.cut_score(sample.graph.weights.toarray(), labels, 3), rel=1e-9
        )


@pytest.mark.parametrize("draw_rows", [2000, 250])
@pytest.mark.parametrize("shape", ["two-rings", "two-spirals"])
def test_rings_and_spirals_are_found(engine, shape, draw_rows):
    X, y = make_shape(shape, 600, random_state=0)
    _, found = clustered(engine, X, config_of(len(set(y.tolist()))), draw_rows=draw_rows)
    assert adjusted_rand_score(y, found[0].labels) == 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 4])
def test_clusters_hold_the_least_share_or_more(engine, k, weighted):
    X, _ = blobs(400, k, shares=[1 - 0.03 * (k - 1), *[0.03] * (k - 1)])
    weights = np.random.default_rng(0).uniform(0.5, 2, 400) if weighted else None
    weights = None if weights is None else weights / weights.mean()
    for least in (0.1, 0.4, 0.9):
        _, found = clustered(engine, X, config_of(k, min_share=least), weights)
        for one in found:
            assert np.bincount(one.labels, weights, minlength=k).min() >= least * 400 / k - 4


def test_an_uneven_cluster_is_found_and_not_below_the_floor(engine):
    X, y = blobs(500, 2, gap=6.0, shares=[0.7, 0.3])
    _, free = clustered(engine, X, config_of(2))
    assert adjusted_rand_score(y, free[0].labels) > 0.95
    _, held = clustered(engine, X, config_of(2, min_share=0.8))
    assert np.bincount(held[0].labels).min() >= 0.4 * 500 - 3


@pytest.mark.parametrize("draw_rows", [2000, 300])
@pytest.mark.parametrize("cluster_sizes", ["equal", [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
def test_sizes_that_are_asked_for_are_kept_within_their_tolerance(engine, cluster_sizes, draw_rows):
    X, _ = blobs(600, 3, gap=2.0, shares=[0.6, 0.3, 0.1])
    shares = np.sort(np.full(3, 1 / 3) if cluster_sizes == "equal" else cluster_sizes)
    config = config_of(3, cluster_sizes, tolerance=0.1)
    _, found = clustered(engine, X, config, draw_rows=draw_rows)
    for one in found:
        sizes = np.sort(np.bincount(one.labels, minlength=3)) / 600
        assert (sizes >= 0.9 * shares - 0.02).all()
        assert (sizes <= 1.1 * shares + 0.02).all()


@pytest.mark.parametrize("search", [{"schedule": "paper"}, {"search": "steepest"}, {"search": "stochastic"}])
def test_every_search_of_the_paper_works_on_a_graph(engine, search):
    X, _ = blobs(150, 3, gap=8.0)
    _, found = clustered(engine, X, config_of(3, "equal", **search))
    assert len(found) == 3 + 3  # its starts and those of linkage, and no regularisation paths
    for one in found:
        assert np.isfinite(one.objective)
        sizes = np.bincount(one.labels, minlength=3)
        assert (np.abs(sizes - 50) <= 5 + 2).all()


def test_linkage_sees_directions_alone():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 10, 4])
    values = (np.eye(3)[y] + 0.05 * rng.normal(size=(54, 3))) * rng.uniform(0.1, 10, size=(54, 1))
    labels = linked_directions(values, 3)
    assert labels.dtype == np.int64
    assert adjusted_rand_score(y, labels) == 1.0


def test_linkage_takes_rows_and_columns_of_zeros():
    values = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0], [-1.0, 0.0]])
    labels = linked_directions(values, 2)
    assert labels[0] == labels[1] != labels[3]


def test_linkage_takes_fewer_rows_of_large_samples(engine, monkeypatch):
    X, y = blobs(600, 3, gap=6.0)
    taken = []

    def counted(values, n_clusters):
        taken.append(len(values))
        return linked_directions(values, n_clusters)

    monkeypatch.setattr(graph_partition, "LINKED_ROWS", 250)
    monkeypatch.setattr(graph_partition, "linked_directions", counted)
    _, found = clustered(engine, X, config_of(3))
    assert taken == [200] * 3
    assert adjusted_rand_score(y, found[0].labels) > 0.95


@pytest.mark.parametrize(("n", "draws", "size"), [(90, 1, 90), (150, 1, 100), (200, 1, 100), (201, 8, 100)])
def test_few_rows_are_one_sample_evenly_spread_and_more_are_drawn(n, draws, size):
    found = [draw.rows for draw in graph_partition._draws(n, 100, config_of(3), np.random.RandomState(0))]
    assert [rows.size for rows in found] == [size] * draws
    assert all((np.diff(rows) > 0).all() and rows[-1] < n for rows in found)
    if draws == 1:
        assert np.diff(found[0]).max() <= -(-n // size)


def test_most_starts_take_one_step_and_the_best_take_more(engine, monkeypatch):
    X, _ = blobs(400, 3, gap=2.0)
    steps = []

    def counted(*given):
        steps.append(given[-1])
        return settled(*given)

    settled = graph_partition.settled_labels
    monkeypatch.setattr(graph_partition, "SETTLED", 5)
    monkeypatch.setattr(graph_partition, "settled_labels", counted)
    _, found = clustered(engine, X, config_of(3), draw_rows=150)
    assert steps == [1] * len(found) + [graph_partition.NODE_STEPS] * 5
    assert sorted(one.start for one in found) == list(range(len(found)))


def test_half_of_the_draws_are_searched_and_all_are_linked(engine):
    X, _ = blobs(400, 3, gap=2.0)
    _, found = clustered(engine, X, config_of(3, n_init=2), draw_rows=150)
    of_search = 2 + 4  # local searches and regularisation paths
    assert len(found) == 4 * of_search + 8 * 3


def test_the_smoother_of_features_is_that_of_their_inner_products():
    values = np.random.default_rng(0).normal(size=(60, 4)) + 3
    R = principal_features(values).smoother(1e-2)
    np.testing.assert_array_equal(R, R.T)
    np.testing.assert_allclose(R, smoother(values @ values.T, 1e-2 * 60), atol=1e-12)


def test_integer_weights_count_as_rows_do(engine):
    X, _ = blobs(90, 3, gap=2.0)
    counts = np.random.default_rng(0).integers(1, 4, 90)
    weights = counts * (90 / counts.sum())
    one = graph_sample(X, weights, GraphKernel(), 3, np.random.RandomState(0))
    other = graph_sample(np.repeat(X, counts, axis=0), None, GraphKernel(), 3, np.random.RandomState(0))
    np.testing.assert_allclose(
        one.graph.weights.toarray(), other.graph.weights.toarray(), rtol=1e-8, atol=1e-12
    )
    np.testing.assert_allclose(one.features.variances, other.features.variances, rtol=1e-6)
    np.testing.assert_allclose(one.features.mean, other.features.mean, atol=1e-6)


def test_the_same_seed_gives_the_same_partitions(engine):
    X, _ = blobs(700, 3, gap=2.0)
    one, other = (clustered(engine, X, config_of(3), draw_rows=200, seed=4)[1] for _ in range(2))
    assert [part.objective for part in one] == [part.objective for part in other]
    np.testing.assert_array_equal(one[0].labels, other[0].labels)


def test_a_larger_graph_needs_more_memory_and_never_more_than_its_nodes():
    small, large = (graph_needs(GraphKernel(n_nodes=p), 3, RowShape(10**6, 5), 0, 3) for p in (1000, 20_000))
    assert small.sample_bytes < large.sample_bytes
    assert (small.sample_size, large.sample_size) == (1000, 20_000)
    assert graph_needs(GraphKernel(), 3, RowShape(500, 5), 0, 3).sample_size == 500
    assert small.sweeps == 1
    assert graph_needs(GraphKernel(), 3, RowShape(500, 5), 0, 3).sweeps == 3


def test_the_search_of_a_sample_of_the_nodes_takes_time_beside_that_of_the_graph():
    def seconds(draw_rows):
        return graph_needs(GraphKernel(n_nodes=3000), 3, RowShape(10**6, 5), draw_rows).search_seconds

    assert 0 < seconds(0) < seconds(500) < seconds(3000)
    assert seconds(10**6) == seconds(3000)  # no sample has more rows than there are nodes


def partitions(rows, gap):
    """The best partition, which no other search found, and two that are the same but for the names."""
    single, found = np.arange(rows) % 10 == 0, np.arange(rows) % 2
    labelings = [single.astype(np.int64), found, 1 - found]
    scores = [1.0, 1.0 - gap, 1.0 - 2 * gap]
    return [Partition(*one) for one in zip(labelings, scores, range(3), strict=True)]


def test_of_partitions_that_cut_the_same_the_one_found_again_comes_first():
    assert [one.start for one in agreed_first(partitions(1000, 0.01))] == [1, 0, 2]
    assert [one.start for one in agreed_first(partitions(1000, 1.5))] == [0, 1, 2]
    assert [one.start for one in agreed_first(partitions(1000, 0.01)[:1])] == [0]


def test_agreement_counts_less_where_rows_are_many():
    gap = 0.2
    few, many = (
        agreed_first(partitions(rows, gap))[0].start for rows in (AGREEING_ROWS, 100 * AGREEING_ROWS)
    )
    assert (few, many) == (1, 0)


def test_partitions_that_were_not_settled_have_no_say():
    best, *others = partitions(1000, 0.01)
    late = [replace(others[0], start=3 + number) for number in range(20)]
    found = [best, *[replace(best, start=100)] * (SETTLED - 1), *late]
    assert agreed_first(found)[0] is best

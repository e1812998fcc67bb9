"""The density along boundaries: long curves stay whole, groups in few columns are told apart."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmcnb import MaximumMarginClustering
from mmcnb.choice.no_structure import dimension
from mmcnb.choice.persistence import (
    Regions,
    joined_without_valley,
    least_of_any_cut,
    log_density,
    split_at_valleys,
)
from tests.choice.graphs import graph_of
from tests.reference import smoothed_log_density


def found_in(X, seed=0, **parameters):
    return MaximumMarginClustering(random_state=seed, **parameters).fit(X)


def two_hooks(n, seed=0):
    """Two half circles, each around an end of the other one."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    angle = random.uniform(0, np.pi, n)
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where(y[:, None] == 0, upper, [1.0, 0.4] - upper)
    return X + random.normal(0, 0.07, X.shape), y


def four_groups(n, distance, seed=0):
    """Gaussians at the corners of a square."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 4, n)
    corners = distance * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    return corners[y] + random.normal(size=(n, 2)), y


def towns(n, k, seed=0):
    """Places on a lattice whose sizes fall as 1/rank, and 3 % of the points between."""
    random = np.random.default_rng(seed)
    sizes = 1 / np.arange(1, k + 1)
    y = random.choice(k, n, p=sizes / sizes.sum())
    centres = np.array([[i % 6, i // 6] for i in range(k)]) + random.uniform(
        -0.2, 0.2, (k, 2)
    )
    X = centres[y] + 0.08 * random.normal(size=(n, 2))
    between = random.random(n) < 0.03
    X[between] = random.uniform(-1, 7, (np.count_nonzero(between), 2))
    y[between] = -1
    return X, y


# -- the density -----------------------------------------------------------------------


def test_the_density_is_that_of_its_formula():
    random = np.random.default_rng(0)
    X = np.repeat(random.normal(size=(150, 2)), random.integers(1, 4, 150), axis=0)
    graph = graph_of(X)
    np.testing.assert_allclose(
        log_density(graph, 1.7, steps=2),
        smoothed_log_density(graph.edges()[0].toarray(), graph, 1.7, 2),
        rtol=1e-12,
    )


def test_merged_regions_are_those_of_the_merged_partition():
    X, y = four_groups(600, 3.0)
    graph = graph_of(X)
    labels = graph.of_nodes(y)
    regions = Regions(graph, 2.0, labels)
    # The last number is free afterwards.
    pair = min(pair for pair in regions.boundaries if 3 in pair)
    regions.merge(pair)
    first, second = pair
    again = Regions(graph, 2.0, np.where(labels == second, first, labels))
    assert set(regions.boundaries) == set(again.boundaries)
    for other, boundary in regions.boundaries.items():
        assert boundary.persistence == again.boundaries[other].persistence
        assert regions.gap(other) == pytest.approx(again.gap(other))


# -- curves ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2000, 9000])
def test_hooks_of_any_number_of_rows_are_two_clusters(n):
    X, y = two_hooks(n)
    model = found_in(X)
    assert adjusted_rand_score(y, model.labels_) == pytest.approx(1, abs=0.01)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_a_joined_number_says_why_and_the_partition_taken_is_the_first_layer():
    X, _ = two_hooks(12_000)
    model = found_in(X)
    reason = model.report_["number"]["reason"]
    assert "pieces were joined into 2, because the density does not fall" in reason
    assert model.layers_["taken"].tolist()[0]
    assert model.layers_["n_clusters"][0] == 2
    np.testing.assert_array_equal(model.predict(X, layer=0), model.labels_)


def test_one_long_curve_is_one_cluster():
    X, y = two_hooks(8000, seed=1)
    model = found_in(X[y == 0])
    assert model.n_clusters_ == 1
    assert "the density hardly falls between them" in model.report_["number"]["reason"]


def test_slices_are_joined_until_the_least_number_is_reached():
    along = np.random.default_rng(0).uniform(0, 30, 3000)
    X = np.column_stack([along, np.random.default_rng(1).normal(size=3000)])
    graph = graph_of(X)
    slices = graph.of_nodes((along // 5).astype(int))
    d = dimension(graph)
    assert joined_without_valley(graph, d, slices, least=1).max() == 0
    assert joined_without_valley(graph, d, slices, least=3).max() == 2
    assert least_of_any_cut(graph, d, slices) < 0.33


# -- groups ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1500, 6000])
def test_groups_that_touch_are_found_at_any_number_of_rows(n):
    X, y = four_groups(n, 4.5)
    assert adjusted_rand_score(y, found_in(X).labels_) > 0.9


def test_a_cluster_with_two_modes_is_split_and_the_reason_says_so():
    X, y = towns(6000, 24)
    model = found_in(X)
    inside = y >= 0
    assert 22 <= model.n_clusters_ <= 27
    assert adjusted_rand_score(y[inside], model.labels_[inside]) > 0.97
    X, y = four_groups(3000, 6.0)
    graph = graph_of(X)
    whole = np.zeros(graph.n_nodes, np.int64)
    labels = split_at_valleys(graph, 2.0, whole)
    assert adjusted_rand_score(graph.of_nodes(y), labels) > 0.95


def test_a_range_bounds_splits_and_joins():
    X, _ = four_groups(3000, 6.0)
    assert found_in(X, n_clusters=(1, 3)).n_clusters_ <= 3
    X, _ = two_hooks(9000)
    assert found_in(X, n_clusters=(3, 9)).n_clusters_ >= 3


@pytest.mark.slow
def test_a_million_places_in_degrees():
    X, y = towns(1_000_000, 24)
    degrees = np.array([48.1, 11.5]) + X * [0.01, 0.015]
    model = found_in(degrees)
    inside = y >= 0
    assert adjusted_rand_score(y[inside], model.labels_[inside]) > 0.95
    assert 20 <= model.n_clusters_ <= 40


# -- no groups -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["stretched", "log-normal", "exponential", "Student"])
def test_one_cloud_in_two_columns_is_one_cluster(kind):
    random = np.random.default_rng(0)
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    X = {
        "stretched": lambda: random.normal(size=(4000, 2)) * [5, 1] @ turn,
        "log-normal": lambda: random.lognormal(size=(4000, 2)),
        "exponential": lambda: random.exponential(size=(4000, 2)),
        "Student": lambda: random.standard_t(3, (4000, 2)),
    }[kind]()
    assert found_in(X).n_clusters_ == 1


# -- laws ------------------------------------------------------------------------------


def test_weights_are_repetitions():
    X, _ = two_hooks(5000)
    weights = np.random.default_rng(0).integers(1, 3, len(X))
    weighted = MaximumMarginClustering(random_state=0).fit(X, sample_weight=weights)
    repeated = MaximumMarginClustering(random_state=0).fit(
        np.repeat(X, weights, axis=0)
    )
    assert weighted.n_clusters_ == repeated.n_clusters_
    np.testing.assert_array_equal(
        np.repeat(weighted.labels_, weights), repeated.labels_
    )

"""Clusters beside one cloud with the correlations of the rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from mmcnb import MaximumMarginClustering
from mmcnb.choice.structure import find_structure
from mmcnb.choice.surrogate import excess_over_surrogate, surrogate
from tests.choice.graphs import graph_of


def long_cloud(n, columns, power, seed=0):
    """One Gaussian cloud with axes of falling lengths, turned at random."""
    random = np.random.default_rng(seed)
    turn = np.linalg.qr(random.normal(size=(columns, columns)))[0]
    return (
        random.normal(size=(n, columns)) * np.arange(1, columns + 1.0) ** -power @ turn
    )


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("columns", [10, 60])
def test_correlated_columns_alone_are_one_cluster(power, columns):
    model = MaximumMarginClustering(random_state=0).fit(
        long_cloud(1500, columns, power)
    )
    assert model.n_clusters_ == 1


def test_the_reason_names_the_cloud():
    model = MaximumMarginClustering(random_state=0).fit(long_cloud(1500, 10, 2.0))
    reason = model.report_["number"]["reason"]
    assert "one cloud with the same correlations" in reason
    assert model.report_["trust"]["level"] == "low"


@pytest.mark.parametrize("columns", [20, 200])
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_directions_of_one_cloud_are_one_cluster(columns, shift):
    X = long_cloud(1500, columns, 1.0) + shift
    model = MaximumMarginClustering(metric="cosine", random_state=0).fit(X)
    assert model.n_clusters_ == 1


def test_directions_of_three_clouds_are_three_clusters():
    X = long_cloud(1500, 200, 1.0)
    X += 1.5 * np.eye(200)[np.arange(1500) % 3]
    model = MaximumMarginClustering(metric="cosine", random_state=0).fit(X)
    assert model.n_clusters_ == 3


@pytest.mark.parametrize("weights", ["whole", "fractions"])
def test_weights_alone_are_no_clusters(weights):
    random = np.random.default_rng(0)
    sample_weight = {
        "whole": random.integers(1, 4, 1500),
        "fractions": random.uniform(0.1, 1, 1500),
    }[weights]
    X = long_cloud(1500, 20, 1.0)
    model = MaximumMarginClustering(random_state=0)
    assert model.fit(X, sample_weight=sample_weight).n_clusters_ == 1


def test_counts_of_words_without_topics_are_one_cluster():
    random = np.random.default_rng(0)
    shares = 1 / np.arange(1, 801)
    texts = random.multinomial(60, shares / shares.sum(), size=800)
    model = MaximumMarginClustering(random_state=0)
    assert model.fit(csr_array(texts.astype(float))).n_clusters_ == 1


def test_groups_of_correlated_columns_are_found():
    X = long_cloud(1500, 20, 1.0)
    X += 1.5 * np.eye(20)[np.arange(1500) % 3]
    assert MaximumMarginClustering(random_state=0).fit(X).n_clusters_ == 3


def test_a_surrogate_has_the_covariance_and_the_tails_of_the_rows():
    random = np.random.RandomState(0)
    rows = random.standard_t(5, (20_000, 1)) * random.normal(size=(20_000, 4))
    rows = rows * [4.0, 2.0, 1.0, 0.0]
    cloud = surrogate(rows, random)
    np.testing.assert_allclose(cloud.std(axis=0), rows.std(axis=0), rtol=0.1, atol=1e-9)
    assert (cloud[:, 0] / cloud[:, 0].std()).max() > 5


def test_the_seed_alone_decides_and_weights_are_repetitions():
    X = long_cloud(400, 6, 1.0)
    weights = np.random.default_rng(0).integers(1, 3, 400)
    structures = [
        find_structure(graph_of(np.repeat(X, weights, axis=0))),
        find_structure(graph_of(X, weights.astype(float))),
    ]
    found = [excess_over_surrogate(one, 3) for one in structures]
    assert found[0] == found[1] == excess_over_surrogate(structures[0], 3)
    assert found[0] != excess_over_surrogate(structures[0], 4)


def test_distances_alone_have_no_surrogate():
    from sklearn.neighbors import kneighbors_graph

    cloud = long_cloud(300, 5, 1.0)
    distances = kneighbors_graph(cloud, 25, mode="distance")
    model = MaximumMarginClustering(metric="precomputed", random_state=0).fit(distances)
    assert "one cloud" not in model.report_["number"]["reason"]

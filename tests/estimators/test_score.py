"""score: J of the clusters of some rows, so that a grid search needs no function of its own."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import kneighbors_graph

import mmcnb
from mmcnb.datasets import make_shape
from mmcnb.errors import InputError
from tests.estimators.every import NAMES, make_any
from tests.estimators.front_door import front_door

X, y = make_shape("two-moons", 200, random_state=0)


@pytest.mark.parametrize("name", NAMES)
def test_the_score_is_that_of_the_labels_in_the_scaling_of_the_fit(name):
    model = make_any(name, n_clusters=2, n_init=1).fit(X)
    rows = model.model_.scaled(mmcnb.open_samples(X))
    expected = mmcnb.partition_score(rows, model.predict(X), scale=None, random_state=0)
    assert model.score(X) == model.score(X, y) == expected.J


def test_a_grid_search_finds_the_kernel_of_curved_clusters():
    search = GridSearchCV(front_door(2), {"kernel": ["linear", "graph"]}, cv=2).fit(X)
    assert search.best_params_ == {"kernel": "graph"}


def test_directions_are_scored_as_directions():
    rows = (
        np.abs(np.random.default_rng(0).normal(size=(300, 6)))
        + 5 * np.eye(6)[np.arange(300) % 3]
    )
    model = front_door(3, metric="cosine").fit(rows)
    lengths = np.random.default_rng(1).uniform(0.1, 9.0, size=(300, 1))
    assert model.score(rows * lengths) == pytest.approx(model.score(rows), rel=1e-3)


def test_one_cluster_scores_0_and_distances_are_refused():
    assert front_door(1).fit(X).score(X) == 0.0
    graph = kneighbors_graph(X, 15, mode="distance")
    model = front_door(2, metric="precomputed").fit(graph)
    with pytest.raises(
        InputError, match=r"^metric='precomputed' is unknown; choose one of"
    ):
        model.score(graph)

"""Small clusters of many rows: a second draw finds them, in any storage, unless something is asked."""

import numpy as np
import pytest

import mmcnb

pytestmark = pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")


def rows_with_small(n=6000, sizes=(15, 40), seed=0):
    """Two large groups, and small ones of 0.25 % and 0.7 % of the rows: the class of each, 0 and 1 large."""
    random = np.random.default_rng(seed)
    y = np.r_[np.arange(n - sum(sizes)) % 2, np.repeat(np.arange(2, 2 + len(sizes)), sizes)]
    y = random.permutation(y)
    centres = np.array([[0, 0, 0], [12, 0, 0], [0, 30, 0], [0, 0, 30]], float)
    return (centres[y] + random.normal(size=(n, 3))).astype(np.float32), y


def front_door(**parameters):
    return mmcnb.MaximumMarginClustering(**{"n_nodes": 800, "random_state": 0} | parameters)


def is_found(y, labels, one):
    """Whether some cluster has the rows of a class and no others."""
    inside = labels[y == one]
    return inside.min() == inside.max() and not (labels[y != one] == inside[0]).any()


def test_small_clusters_are_found_and_labelled_as_the_model_does(tmp_path):
    X, y = rows_with_small()
    model = front_door().fit(X)
    assert model.n_clusters_ == 4
    assert all(is_found(y, model.labels_, one) for one in range(4))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert sorted(model.report_["sizes"])[:2] == [15, 40]
    taken = model.layers_[model.layers_["taken"]].iloc[0]
    assert (taken["n_clusters"], taken["smallest"]) == (4, 15)
    number = model.report_["number"]
    assert number["n_clusters"] == 4
    assert " small and far from the others; " in number["reason"]
    model.save(tmp_path / "a.model")
    np.testing.assert_array_equal(mmcnb.load(tmp_path / "a.model").predict(X), model.labels_)


@pytest.mark.parametrize("asked", [{"n_clusters": 2}, {"n_clusters": (2, 3)}, {"min_cluster_size": 0.01}])
def test_nothing_is_looked_for_if_the_clusters_are_asked_for(asked):
    X, y = rows_with_small()
    model = front_door(**asked).fit(X)
    assert " far from the others" not in str(model.report_["number"])
    assert not is_found(y, model.labels_, 2)


def test_rows_of_small_clusters_are_no_noise():
    X, y = rows_with_small()
    X[:60] = np.random.default_rng(1).uniform(-200, 200, (60, 3))
    model = front_door(noise="auto").fit(X)
    kept = np.arange(6000) >= 60
    assert np.mean(model.labels_[:60] == -1) > 0.9
    assert all(np.mean(model.labels_[kept & (y == one)] == -1) < 0.2 for one in (2, 3))


def test_rows_of_weight_0_make_no_cluster():
    X, y = rows_with_small()
    weights = np.where(y < 2, 1.0, 0.0)
    model = front_door().fit(X, sample_weight=weights)
    assert model.n_clusters_ == 2


@pytest.mark.parametrize("parameters", [{}, {"metric": "cosine"}, {"scale": "standard"}, {"noise": "auto"}])
def test_storages_and_threads_give_the_same_bits(dense_storages, parameters):
    X, _ = rows_with_small()
    models = [
        front_door(n_jobs=jobs, **parameters).fit(source)
        for jobs, source in enumerate([X, *dense_storages(X).values()], start=1)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        assert model.objective_ == models[0].objective_


@pytest.mark.slow
def test_a_cluster_of_computers_gives_the_same_bits(dense_storages):
    X, _ = rows_with_small()
    path = dense_storages(X)["zarr, 4096 rows"]
    one, other = front_door().fit(X), front_door(engine="local:2").fit(path)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert one.objective_ == other.objective_

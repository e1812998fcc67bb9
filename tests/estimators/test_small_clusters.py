"""Small clusters of many rows: a second draw finds them, in any storage, unless something is asked."""

import numpy as np
import pytest
import zarr

import mmcnb
from mmcnb.metrics import adjusted_rand_index
from tests.estimators.front_door import front_door

RNG = np.random.default_rng(0)
SIZES = (15, 40)  # beside two large groups: 0.5 % and 1.3 % of the rows
Y = RNG.permutation(np.r_[np.arange(3000 - sum(SIZES)) % 2, np.repeat([2, 3], SIZES)])
CENTRES = np.array([[0, 0, 0], [12, 0, 0], [0, 30, 0], [0, 0, 30]], float)
X = (CENTRES[Y] + RNG.normal(size=(3000, 3))).astype(np.float32)


def is_found(labels, one):
    """Whether some cluster has the rows of a class and no others."""
    inside = labels[one == Y]
    return inside.min() == inside.max() and not (labels[one != Y] == inside[0]).any()


def test_small_clusters_are_found_and_labelled_as_the_model_does_from_any_storage(
    tmp_path,
):
    model = front_door(n_nodes=400).fit(X)
    assert model.n_clusters_ == 4
    assert all(is_found(model.labels_, one) for one in range(4))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert sorted(model.report_["sizes"])[:2] == [15, 40]
    taken = model.layers_[model.layers_["taken"]].iloc[0]
    assert (taken["n_clusters"], taken["smallest"]) == (4, 15)
    number = model.report_["number"]
    assert number["n_clusters"] == 4
    assert " small and far from the others; " in number["reason"]
    model.save(tmp_path / "a.model")
    np.testing.assert_array_equal(
        mmcnb.load(tmp_path / "a.model").predict(X), model.labels_
    )
    zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(777, 2))
    stored = front_door(n_nodes=400, n_jobs=2).fit(tmp_path / "rows.zarr")
    np.testing.assert_array_equal(stored.labels_, model.labels_)
    assert stored.objective_ == model.objective_


@pytest.mark.parametrize("asked", [{"n_clusters": (2, 3)}, {"min_cluster_size": 0.02}])
def test_nothing_is_looked_for_if_the_clusters_are_asked_for(asked):
    model = front_door(n_nodes=400, **asked).fit(X)
    assert " far from the others" not in str(model.report_["number"])
    assert not is_found(model.labels_, 2)


def test_rows_of_small_clusters_are_no_noise():
    rows = X.copy()
    rows[:60] = np.random.default_rng(1).uniform(-200, 200, (60, 3))
    is_noise = front_door(n_nodes=400, noise="auto").fit(rows).labels_ == -1
    assert np.mean(is_noise[:60]) > 0.9
    assert all(np.mean(is_noise[60:][Y[60:] == one]) < 0.2 for one in (2, 3))


def test_rows_of_weight_0_make_no_cluster():
    model = front_door(n_nodes=400).fit(X, sample_weight=np.where(Y < 2, 1.0, 0.0))
    assert model.n_clusters_ == 2


def with_tails(kind, seed, n=12_000, columns=12):
    """Three groups with long tails in two directions each, and the group of each row."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centres = 3 * random.normal(size=(3, columns))
    directions = random.normal(size=(3, 2, columns))
    tails = {
        "Student": random.standard_t(3, (n, 2)),
        "log-normal": np.exp(random.normal(size=(n, 2))),
    }[kind]
    rows = centres[y] + 0.6 * random.normal(size=(n, columns))
    for one in range(3):
        rows[y == one] += tails[y == one] @ directions[one]
    return rows, y


@pytest.mark.parametrize("kind", ["Student", "log-normal"])
@pytest.mark.parametrize("seed", [0, 2])
def test_tails_of_clusters_are_no_clusters(kind, seed):
    rows, y = with_tails(kind, seed)
    model = front_door(n_nodes=1500).fit(rows)
    assert model.n_clusters_ == 3
    assert adjusted_rand_index(y, model.labels_) > 0.99


def test_a_small_cluster_beside_tails_is_found():
    rows = with_tails("Student", 1)[0]
    far = np.r_[60.0, np.zeros(11)]
    rows[:30] = far + np.random.default_rng(5).normal(size=(30, 12))
    labels = front_door(n_nodes=1500).fit_predict(rows)
    assert len(np.unique(labels)) == 4
    assert np.unique(labels[:30]).size == 1
    assert not (labels[30:] == labels[0]).any()


def test_trust_is_not_high_if_most_clusters_are_tiny():
    random = np.random.default_rng(0)
    sizes = (2880, 30, 30, 30, 30)
    centres = 60 * np.eye(5)
    y = np.repeat(np.arange(5), sizes)
    model = front_door(n_nodes=400).fit(centres[y] + random.normal(size=(3000, 5)))
    assert model.n_clusters_ == 5
    trust = model.report_["trust"]
    assert trust["level"] != "high"
    assert "4 of 5 clusters have fewer than " in trust["reason"]

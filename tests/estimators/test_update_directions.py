"""Updates by rows that no earlier cluster explains: embeddings of a new direction beside old ones."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import zarr

from mmcnb import ClusterWarning
from tests.estimators.front_door import changes_of, front_door

N_OLD = 1600
N_COLUMNS = 60
NEW = 120
KINDS = ("Gaussian", "unit length", "heavy tails")


class Directions:
    """Seven directions of embeddings, and one that only an update brings."""

    def __init__(self, kind="Gaussian", seed=0):
        self.kind = kind
        self.random = np.random.default_rng(seed)
        centres = self.random.normal(size=(8, N_COLUMNS))
        self.centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)
        self.old = self.rows(self.random.integers(0, 7, N_OLD))

    def rows(self, directions, shift=0.0):
        noise = 0.06 * self.random.normal(size=(len(directions), N_COLUMNS))
        if self.kind == "heavy tails":
            noise *= np.sqrt(4 / self.random.chisquare(4, size=(len(directions), 1)))
        X = self.centres[directions] + noise + shift
        if self.kind == "unit length":
            X /= np.linalg.norm(X, axis=1, keepdims=True)
        return X.astype(np.float32)

    def new(self, n_others=200):
        """Rows of the new direction, and then others."""
        others = self.random.integers(0, 7, n_others)
        return self.rows(np.append(np.full(NEW, 7), others))


@cache
def _fitted(kind, n_clusters, metric):
    data = Directions(kind)
    return data, front_door(n_clusters, metric=metric).fit(data.old)


def fitted(kind, n_clusters=None, metric="euclidean"):
    """The rows of some kind, and a model of the old ones."""
    return deepcopy(_fitted(kind, n_clusters, metric))


def together(labels):
    """The largest cluster of the rows of the new direction, and their share in it."""
    counts = np.bincount(labels[:NEW] + 1)[1:]
    return int(counts.argmax()), counts.max() / NEW


@pytest.mark.parametrize("n_others", [0, 200])
@pytest.mark.parametrize("n_clusters", [None, (2, 20)])
@pytest.mark.parametrize(
    ("kind", "metric"), [(kind, "euclidean") for kind in KINDS] + [(KINDS[2], "cosine")]
)
def test_a_new_direction_is_a_new_cluster_and_old_rows_keep_theirs(
    kind, metric, n_clusters, n_others
):
    data, model = fitted(kind, n_clusters, metric)
    before = model.labels_
    new = data.new(n_others)
    model.update(new)
    after = model.predict(data.old)
    assert np.mean(after == before) >= 0.99
    cluster, share = together(model.labels_)
    assert (cluster, model.n_clusters_) == (7, 8)
    assert share >= 0.95
    assert np.count_nonzero(after == cluster) <= 2
    assert changes_of(model) == ["kept"] * 7 + ["new"]
    np.testing.assert_array_equal(model.labels_, model.predict(new))
    assert sum(model.report_["sizes"]) == N_OLD + len(new)


@pytest.mark.parametrize("n_clusters", [7, (2, 7)])
@pytest.mark.parametrize("kind", KINDS)
def test_without_room_for_a_new_cluster_the_update_says_so_and_changes_no_cluster(
    kind, n_clusters
):
    data, model = fitted(kind, n_clusters)
    assert model.report_["trust"]["level"] == "high"
    first_model = model.model_
    before = model.labels_
    usual = np.quantile(model.score_outliers(data.old), 0.9)
    new = data.new()
    for _ in range(2):
        with pytest.warns(
            ClusterWarning,
            match=r"^1[12]\d of 320 new rows are far from all clusters, and n_clusters="
            r"[^\n]* allows no new cluster[^\n]*outlier_score_[^\n]*\.$",
        ):
            model.update(new)
        assert model.model_ is first_model
        assert len(model.report_["warnings"]) == 1
        trust = model.report_["trust"]
        assert trust["level"] == "medium"
        assert "new rows are far from all clusters" in trust["reason"]
        assert np.mean(model.outlier_score_[:NEW] > usual) > 0.9
        assert set(changes_of(model)) == {"kept"}
    np.testing.assert_array_equal(model.predict(data.old), before)
    np.testing.assert_array_equal(model.labels_, model.predict(new))
    np.testing.assert_array_equal(model.outlier_score_, model.score_outliers(new))


@pytest.mark.parametrize("shift", [0.0, 0.02])
@pytest.mark.parametrize("n_clusters", [None, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_old_directions_change_no_cluster_even_if_all_have_moved_a_little(
    kind, n_clusters, shift, recwarn
):
    data, model = fitted(kind, n_clusters)
    before = model.labels_
    trust = model.report_["trust"]["level"]
    new = data.random.integers(0, 7, 300)
    model.update(data.rows(new, shift))
    assert changes_of(model) == ["kept"] * 7
    assert np.mean(model.predict(data.old) == before) >= 0.99
    if shift == 0:
        assert model.report_["trust"]["level"] == trust
        assert model.report_["warnings"] == []
        assert len(recwarn) == 0


def test_two_new_directions_are_two_clusters():
    data = Directions()
    data.centres[:2] *= -1
    with pytest.warns(ClusterWarning, match="120 of 120 new rows are in new clusters"):
        model = front_door().fit(data.old).update(data.rows(np.arange(NEW) % 2))
    assert set(model.labels_[::2]) == {7}
    assert set(model.labels_[1::2]) == {8}


def test_a_group_below_the_least_size_is_no_cluster():
    data = Directions()
    model = front_door(min_cluster_size=150).fit(data.old)
    model.update(data.new())
    assert changes_of(model) == ["kept"] * 7
    assert model.n_clusters_ == 7


@pytest.mark.parametrize("noise", [None, "auto"])
def test_a_new_direction_is_found_beside_rows_of_noise_which_stay_noise(noise):
    data = Directions("unit length")
    is_noise = data.random.random(N_OLD) < 0.12
    scattered = data.random.normal(0, 0.09, (N_OLD, N_COLUMNS)).astype(np.float32)
    scattered /= np.linalg.norm(scattered, axis=1, keepdims=True)
    old = np.where(is_noise[:, None], scattered, data.old)
    model = front_door(noise=noise).fit(old)
    before = model.labels_
    if noise is not None:
        assert np.mean(before[is_noise] == -1) > 0.9
    model.update(data.new())
    after = model.predict(old)
    assert np.mean(after == before) >= 0.99
    cluster, share = together(model.labels_)
    assert share >= 0.95
    assert cluster > before.max()
    assert np.count_nonzero(after == cluster) <= 2


def test_scattered_far_rows_are_no_cluster_and_the_update_warns():
    random = np.random.default_rng(0)
    old = random.normal(size=(600, 3)) + 9 * (np.arange(600) % 2)[:, None]
    model = front_door(kernel="graph").fit(old)
    before = model.labels_
    new = old[:200] + random.normal(0, 0.1, (200, 3))
    far = random.normal(size=(30, 3))
    new[:30] = 90 * far / np.linalg.norm(far, axis=1, keepdims=True)
    with pytest.warns(
        ClusterWarning, match=r"^3[0-3] of 200 new rows are far from all"
    ):
        model.update(new)
    assert changes_of(model) == ["kept", "kept"]
    assert model.report_["trust"]["level"] != "high"
    np.testing.assert_array_equal(model.predict(old), before)
    assert model.outlier_score_[:30].min() > model.outlier_score_[30:].max()


def test_updates_by_a_new_direction_have_the_same_bits_in_memory_and_in_a_store(
    tmp_path,
):
    data, model = fitted("heavy tails")
    other = deepcopy(model).set_params(n_jobs=2)
    new = data.new()
    zarr.create_array(tmp_path / "new.zarr", data=new, chunks=(37, 11))
    model.update(new)
    other.update(tmp_path / "new.zarr")
    np.testing.assert_array_equal(other.labels_, model.labels_)
    np.testing.assert_array_equal(other.outlier_score_, model.outlier_score_)
    assert other.report_ == model.report_
    for name, array in model.model_.arrays().items():
        np.testing.assert_array_equal(other.model_.arrays()[name], array)

"""New rows in a model: clusters keep their numbers, a new cluster gets one, and a failure changes nothing."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import mmcnb

pytestmark = pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
CENTRES = np.array([[0, 0, 0], [12, 0, 0], [0, 30, 0]], float)


def rows(n, seed, n_far=0, d=3):
    """Three groups, the first rows in a fourth one far from them."""
    random = np.random.default_rng(seed)
    X = np.zeros((n, d))
    X[:, :3] = CENTRES[random.integers(0, 3, n)]
    X[:n_far, :3] = [40, 0, 40]
    return (X + random.normal(size=(n, d))).astype(np.float32)


def front_door(**parameters):
    return mmcnb.MaximumMarginClustering(**{"n_nodes": 1800, "random_state": 0} | parameters)


def of_changes(model):
    return [one["change"] for one in model.report_["changes"]]


OLD, SAME, FAR = rows(2000, 0), rows(300, 1), rows(300, 2, n_far=20)


@pytest.fixture
def model():
    return front_door().fit(OLD)


@pytest.mark.parametrize("X", [SAME, OLD[:500]])
def test_rows_of_the_same_kind_change_nothing_but_counts(model, X):
    before, own, sizes = model.predict(X), model.model_, model.report_["sizes"]
    number = model.report_["number"]
    assert model.update(X) is model
    assert model.model_ is own
    np.testing.assert_array_equal(model.labels_, before)
    assert of_changes(model) == ["kept"] * 3
    assert model.report_["sizes"] == (sizes + np.bincount(model.labels_)).tolist()
    assert model.report_["number"] is number


@pytest.mark.parametrize("parameters", [{}, {"kernel": "rbf"}])
def test_models_of_a_machine_take_in_rows_of_the_same_kind(parameters, tmp_path):
    X = np.random.default_rng(3).normal(size=(900, 3)) + 6 * (np.arange(900) % 2)[:, None]
    model = front_door(n_clusters=2, **parameters).fit(X[:600])
    before, own, sizes = model.predict(X), model.model_, model.report_["sizes"]
    model.save(tmp_path / "model")
    for one in (mmcnb.load(tmp_path / "model"), model):
        np.testing.assert_array_equal(one.update(X[600:]).labels_, before[600:])
        np.testing.assert_array_equal(one.predict(X), before)
        assert one.report_["sizes"] == pytest.approx(np.bincount(before[600:]) + sizes)
        assert of_changes(one) == ["kept"] * 2
    assert model.model_ is own


@pytest.mark.parametrize("first", [1, -1])
def test_the_nodes_vote_in_place_of_a_machine_once_rows_are_far(first, tmp_path):
    """Whatever numbers the machine has, the clusters keep them."""
    X = np.random.default_rng(3).normal(size=(900, 3)) + 6 * (np.arange(900) % 2)[:, None]
    model = front_door().fit(X[:600][::first])
    assert model.kernel_ == "rbf"
    before, new = model.predict(X), X[600:].copy()
    new[:60:2] += [60, 0, -60]
    model.update(new)
    assert (model.kernel_, of_changes(model)) == ("graph", ["kept", "kept", "new"])
    assert set(model.labels_[:60:2]) == {2}
    np.testing.assert_array_equal(model.labels_, model.predict(new))
    assert np.mean(model.predict(X) == before) > 0.99
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(mmcnb.load(tmp_path / "model").predict(new), model.labels_)


@pytest.mark.parametrize("first", [1, -1])
def test_rows_of_noise_do_not_tell_the_numbers_of_a_machine(first):
    X = np.random.default_rng(3).normal(size=(900, 3)) + 6 * (np.arange(900) % 2)[:, None]
    model = front_door(n_clusters=2, noise=0.7).fit(X[:600][::first])
    assert model.kernel_ == "rbf"
    before, new = model.predict(X), X[600:].copy()
    new[:60:2] += [60, 0, -60]
    after = model.update(new).predict(X)
    is_both = (before >= 0) & (after >= 0)
    assert is_both.sum() > 150
    np.testing.assert_array_equal(after[is_both], before[is_both])


def test_rows_that_are_all_far_tell_nothing_of_a_machine():
    X = np.random.default_rng(3).normal(size=(900, 3)) + 6 * (np.arange(900) % 2)[:, None]
    model = front_door().fit(X)
    with pytest.raises(mmcnb.InputError, match="kernel='rbf' takes in none"):
        model.update(X + 90)


@pytest.mark.parametrize(
    "parameters", [{}, {"n_nodes": 20_000}, {"noise": "auto"}, {"kernel": "graph", "scale": "standard"}]
)
def test_a_new_far_cluster_gets_a_new_number_and_the_others_keep_theirs(parameters):
    model = front_door(**parameters).fit(OLD)
    before = model.predict(OLD)
    model.update(FAR)
    assert set(model.labels_[:20]) <= {3, -1}
    assert np.mean(model.labels_[:20] == 3) > 0.7
    assert set(model.labels_[20:]) <= {-1, 0, 1, 2}
    assert np.mean(model.predict(OLD) == before) > 0.99
    assert of_changes(model) == ["kept", "kept", "kept", "new"]
    assert model.n_clusters_ == model.report_["number"]["n_clusters"] == 4
    np.testing.assert_array_equal(model.labels_, model.predict(FAR))
    assert sum(model.report_["sizes"]) + model.report_.get("noise", 0) == 2300
    assert model.layers_["n_clusters"][model.layers_["taken"]].tolist() == [4]
    if "noise" in parameters:
        np.testing.assert_array_equal(model.outlier_score_, model.score_outliers(FAR))
    own, again = model.model_, model.predict(OLD)
    model.update(rows(300, 3, n_far=20))  # the cluster is known by now
    assert model.model_ is own
    assert set(model.labels_[:20]) <= {3, -1}
    np.testing.assert_array_equal(model.predict(OLD), again)


@pytest.mark.parametrize("seed", range(4))
def test_a_far_cluster_does_not_merge_two_near_ones(seed):
    """Beside it the gap between the two is small, and scattered far rows are in no cluster of their own."""
    random = np.random.default_rng(seed)
    old, new = random.normal(size=(500, 5)), random.normal(size=(60, 5))
    old[:200, 0] += 4
    new[:20, 0] += 4
    new[:15] = 0.3 * new[:15] + 40
    new[15:21] += np.sign(random.normal(size=(6, 5))) * 3.5
    model = front_door(kernel="graph").fit(old)
    before = model.labels_
    model.update(new)
    assert of_changes(model) == ["kept", "kept", "new"]
    assert set(model.labels_[:15]) == {2}
    assert np.mean(model.predict(old) == before) > 0.99


def test_many_updates_lose_no_number_and_keep_the_limit_of_nodes(model):
    for seed in range(4):
        far = np.random.default_rng(seed).normal([200.0 * seed, -90.0, 0.0], size=(30, 3))
        model.update(np.vstack([SAME, far.astype(np.float32)]))
    assert model.model_.graph.sizes.size <= 1800
    assert np.bincount(model.predict(SAME))[:3].min() > 50
    assert set(of_changes(model)) == {"kept", "new"}
    assert model.n_clusters_ == 7


def test_a_better_partition_in_the_range_replaces_the_earlier_one():
    """Two groups become the two sides of a far larger gap, with the new rows on the other side."""
    random = np.random.default_rng(0)
    old = np.vstack([random.normal(size=(700, 3)), random.normal((9, 0, 0), size=(700, 3))])
    model = front_door(n_clusters=2, kernel="graph").fit(old)
    before = model.report_["sizes"]
    new = random.normal((0, 900, 0), size=(900, 3))
    model.update(new)
    np.testing.assert_array_equal(model.labels_, model.predict(new))
    assert len(set(model.labels_)) == len(set(model.predict(old))) == 1
    assert sum(model.report_["sizes"]) == 2300
    kept, gone = (of_changes(model).index(change) for change in ("merged", "gone"))
    assert model.report_["changes"][kept]["after"] == 1400
    assert [one["before"] for one in model.report_["changes"][:2]] == before
    assert model.report_["sizes"][gone] == 0


def test_given_numbers_are_held():
    model = front_door(n_clusters=3).fit(OLD)
    model.update(FAR)
    assert (model.n_clusters_, model.report_["number"]) == (3, None)
    np.testing.assert_array_equal(model.labels_, model.predict(FAR))


def test_sources_and_files_give_the_same_bits(dense_storages, model, tmp_path):
    model.save(tmp_path / "a.model")
    model.update(FAR).save(tmp_path / "b.model")
    assert mmcnb.load(tmp_path / "b.model").report_ == model.report_
    for jobs, source in enumerate(dense_storages(FAR).values(), start=1):
        other = mmcnb.load(tmp_path / "a.model").set_params(n_jobs=jobs).update(source)
        np.testing.assert_array_equal(other.labels_, model.labels_)
        assert other.report_ == model.report_
        for name, array in model.model_.arrays().items():
            np.testing.assert_array_equal(other.model_.arrays()[name], array)


def test_many_columns_and_directions_are_updated():
    old, new = rows(1200, 0, d=80), rows(300, 2, n_far=20, d=80)
    model = front_door().fit(old)
    before = model.predict(old)
    model.update(new)
    assert set(model.labels_[:20]) == {3}
    assert np.mean(model.predict(old) == before) > 0.99
    random = np.random.default_rng(0)
    texts = scipy.sparse.csr_array(
        np.abs(random.normal(size=(600, 30))) * np.repeat(np.eye(3), 10, axis=1)[random.integers(0, 3, 600)]
    )
    sparse = front_door(metric="cosine", n_clusters=3).fit(texts)
    before = sparse.predict(texts)
    other = np.zeros((90, 30))
    other[:, :3] = random.random((90, 3))
    sparse.update(scipy.sparse.csr_array(other))
    np.testing.assert_array_equal(sparse.labels_, sparse.predict(scipy.sparse.csr_array(other)))
    assert np.mean(sparse.predict(texts) == before) > 0.99


def test_weights_and_tables_are_updated():
    frame = pd.DataFrame(OLD, columns=list("pqr"))
    model = front_door().fit(frame, sample_weight=np.full(2000, 0.5))
    model.update(pd.DataFrame(FAR, columns=list("pqr")))
    assert sum(model.report_["sizes"]) == 1300
    assert of_changes(model)[-1] == "new"
    with pytest.raises(mmcnb.InputError, match="feature names"):
        model.update(pd.DataFrame(FAR, columns=list("qpr")))


# -- bad input, and updates that fail ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("fitted", "X", "words"),
    [
        ({}, OLD[:, :2], "has 2 features, but"),
        ({}, OLD[:0], "0 sample"),
        ({"kernel": "rbf", "n_clusters": 2}, FAR, r"fit\(X, like=model\)"),
    ],
)
def test_bad_input_is_one_sentence(fitted, X, words):
    model = front_door(**fitted).fit(OLD)
    with pytest.raises(mmcnb.InputError, match=words) as error:
        model.update(X)
    assert "\n" not in str(error.value)


def test_models_without_a_fit_or_of_equal_rows_are_refused():
    with pytest.raises(mmcnb.InputError, match=r"fit\(X, like=model\)"):
        front_door().fit(np.ones((5, 2))).update(np.ones((5, 2)))
    with pytest.raises(ValueError, match="not fitted"):
        front_door().update(FAR)


def test_rows_of_clusters_without_a_node_in_the_search_are_counted(model):
    """Of a small cluster no node may be drawn."""
    labels = model.model_.graph.labels.copy()
    labels[labels == 2] = 1
    graph = dataclasses.replace(model.model_.graph, labels=labels)
    model.model_ = dataclasses.replace(model.model_, graph=graph)
    before = model.report_["sizes"][2]
    model.update(FAR)
    assert sum(model.report_["sizes"]) == len(OLD) + len(FAR)
    assert model.report_["sizes"][2] >= before


@pytest.mark.parametrize("place", ["node_graph", "_searched", "Report"])
def test_a_failed_update_leaves_the_model_as_it_was(model, monkeypatch, place):
    before, sizes = dict(vars(model)), list(model.report_["sizes"])

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"mmcnb.estimators.update.{place}", stop)
    with pytest.raises(KeyboardInterrupt):
        model.update(FAR)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    assert model.report_["sizes"] == sizes


def test_rows_that_are_not_finite_are_refused(model):
    bad = FAR.copy()
    bad[250, 1] = np.nan
    own = model.model_
    with pytest.raises(mmcnb.InputError, match="row 250"):
        model.update(bad)
    assert model.model_ is own

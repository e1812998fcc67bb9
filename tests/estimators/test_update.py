"""New rows in a model: clusters keep their numbers, a new cluster gets one, and a failure changes nothing."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

import mmcnb
from tests.estimators.front_door import InterruptedRows, changes_of, front_door

CENTRES = np.array([[0, 0, 0], [12, 0, 0], [0, 30, 0]], float)


def rows(n, seed, n_far=0, d=3):
    """Three groups, the first rows in a fourth one far from them."""
    random = np.random.default_rng(seed)
    X = np.zeros((n, d))
    X[:, :3] = CENTRES[random.integers(0, 3, n)]
    X[:n_far, :3] = [40, 0, 40]
    return (X + random.normal(size=(n, d))).astype(np.float32)


def halves(n=600):
    """Two groups, of every other row each."""
    return (
        np.random.default_rng(3).normal(size=(n, 3)) + 6 * (np.arange(n) % 2)[:, None]
    )


OLD = rows(600, 0)
SAME = rows(300, 1)
FAR = rows(300, 2, n_far=20)


def model_of_old(**parameters):
    return front_door(**{"n_nodes": 540} | parameters).fit(OLD)


@pytest.fixture(scope="module")
def fitted():
    return model_of_old()


@pytest.fixture
def model(fitted):
    return deepcopy(fitted)


def test_rows_of_the_same_kind_change_nothing_but_counts(model):
    before = model.predict(SAME)
    fitted = model.model_
    sizes = model.report_["sizes"]
    number = model.report_["number"]
    assert model.update(SAME) is model
    assert model.model_ is fitted
    np.testing.assert_array_equal(model.labels_, before)
    assert changes_of(model) == ["kept"] * 3
    assert model.report_["sizes"] == (sizes + np.bincount(before)).tolist()
    assert model.report_["number"] is number


@pytest.mark.parametrize("kernel", ["auto", "rbf"])
def test_models_of_a_machine_take_in_rows_of_the_same_kind(kernel, tmp_path):
    X = halves()
    model = front_door(2, kernel=kernel).fit(X[:400])
    assert model.kernel_ == "rbf"
    before = model.predict(X)
    sizes = model.report_["sizes"]
    model.save(tmp_path / "model")
    for one in (mmcnb.load(tmp_path / "model"), model):
        np.testing.assert_array_equal(one.update(X[400:]).labels_, before[400:])
        np.testing.assert_array_equal(one.predict(X), before)
        assert one.report_["sizes"] == (sizes + np.bincount(before[400:])).tolist()
        assert changes_of(one) == ["kept"] * 2


@pytest.mark.parametrize("noise", [None, 0.7])
@pytest.mark.parametrize("first", [1, -1])
def test_the_nodes_vote_in_place_of_a_machine_once_rows_are_far(first, noise, tmp_path):
    """Whatever numbers the machine has, the clusters keep them; rows of noise do not tell these."""
    X = halves()
    model = front_door(noise=noise).fit(X[:400][::first])
    assert model.kernel_ == "rbf"
    before = model.predict(X)
    new = X[400:].copy()
    new[:40:2] += [60, 0, -60]
    model.update(new)
    assert model.kernel_ == "graph"
    after = model.predict(X)
    is_both = (before >= 0) & (after >= 0)
    assert is_both.sum() > (100 if noise else 590)
    np.testing.assert_array_equal(after[is_both], before[is_both])
    np.testing.assert_array_equal(model.labels_, model.predict(new))
    if noise is None:
        assert changes_of(model) == ["kept", "kept", "new"]
        assert set(model.labels_[:40:2]) == {2}
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        mmcnb.load(tmp_path / "model").predict(new), model.labels_
    )


@pytest.mark.parametrize(
    "parameters", [{"n_nodes": 20_000}, {"noise": "auto"}, {"scale": "standard"}]
)
def test_a_new_far_cluster_gets_a_new_number_and_the_others_keep_theirs(parameters):
    model = model_of_old(**parameters)
    before = model.predict(OLD)
    model.update(FAR)
    assert set(model.labels_[:20]) <= {3, -1}
    assert np.mean(model.labels_[:20] == 3) > 0.7
    assert set(model.labels_[20:]) <= {-1, 0, 1, 2}
    assert np.mean(model.predict(OLD) == before) > 0.98
    assert changes_of(model) == ["kept", "kept", "kept", "new"]
    assert model.n_clusters_ == model.report_["number"]["n_clusters"] == 4
    np.testing.assert_array_equal(model.labels_, model.predict(FAR))
    assert sum(model.report_["sizes"]) + model.report_.get("noise", 0) == 900
    assert model.layers_["n_clusters"][model.layers_["taken"]].tolist() == [4]
    if "noise" in parameters:
        np.testing.assert_array_equal(model.outlier_score_, model.score_outliers(FAR))
    fitted = model.model_
    model.update(rows(300, 3, n_far=20))  # the cluster is known by now
    assert model.model_ is fitted
    assert set(model.labels_[:20]) <= {3, -1}


@pytest.mark.parametrize("seed", range(2))
def test_a_far_cluster_does_not_merge_two_near_ones(seed):
    """Beside it the gap between the two is small, and scattered far rows are in no cluster of their own."""
    random = np.random.default_rng(seed)
    old = random.normal(size=(500, 5))
    new = random.normal(size=(60, 5))
    old[:200, 0] += 4
    new[:20, 0] += 4
    new[:15] = 0.3 * new[:15] + 40
    new[15:21] += np.sign(random.normal(size=(6, 5))) * 3.5
    model = front_door(kernel="graph").fit(old)
    before = model.labels_
    model.update(new)
    assert changes_of(model) == ["kept", "kept", "new"]
    assert set(model.labels_[:15]) == {2}
    assert np.mean(model.predict(old) == before) > 0.99


def test_many_updates_lose_no_number_and_keep_the_limit_of_nodes(model):
    for seed in range(4):
        far = np.random.default_rng(seed).normal(
            [200.0 * seed, -90.0, 0.0], size=(60, 3)
        )
        model.update(np.vstack([SAME, far.astype(np.float32)]))
    assert model.model_.graph.sizes.size <= 540
    assert np.bincount(model.predict(SAME))[:3].min() > 50
    assert set(changes_of(model)) == {"kept", "new"}
    assert model.n_clusters_ == 7


def test_a_better_partition_in_the_range_replaces_the_earlier_one():
    """Two groups become the two sides of a far larger gap, with the new rows on the other side."""
    random = np.random.default_rng(0)
    old = np.vstack(
        [random.normal(size=(300, 3)), random.normal((9, 0, 0), size=(300, 3))]
    )
    model = front_door(2, kernel="graph").fit(old)
    before = model.report_["sizes"]
    new = random.normal((0, 900, 0), size=(400, 3))
    with pytest.warns(
        mmcnb.ClusterWarning, match="are now in other clusters[^\n]*clearly better"
    ):
        model.update(new)
    np.testing.assert_array_equal(model.labels_, model.predict(new))
    assert len(set(model.labels_)) == len(set(model.predict(old))) == 1
    assert sum(model.report_["sizes"]) == 1000
    merged, gone = (changes_of(model).index(change) for change in ("merged", "gone"))
    assert model.report_["changes"][merged]["after"] == 600
    assert [one["before"] for one in model.report_["changes"][:2]] == before
    assert model.report_["sizes"][gone] == 0


def test_given_numbers_are_held():
    model = model_of_old(n_clusters=3).update(FAR)
    assert (model.n_clusters_, model.report_["number"]) == (3, None)
    np.testing.assert_array_equal(model.labels_, model.predict(FAR))


def test_a_cluster_without_a_node_in_the_search_keeps_its_count():
    few = np.random.default_rng(2).normal([0, 0, 90], size=(12, 3))
    model = front_door(kernel="graph").fit(np.vstack([OLD, few]))
    assert model.report_["sizes"][3] == 12
    model.set_params(n_nodes=40).update(FAR)  # of 912 rows, none of the twelve
    assert sum(model.report_["sizes"]) == 912
    assert model.report_["sizes"][3] == 12


def test_sources_and_files_give_the_same_bits(model, tmp_path):
    model.save(tmp_path / "a.model")
    model.update(FAR).save(tmp_path / "b.model")
    assert mmcnb.load(tmp_path / "b.model").report_ == model.report_
    zarr.create_array(tmp_path / "far.zarr", data=FAR, chunks=(77, 2))
    other = (
        mmcnb.load(tmp_path / "a.model")
        .set_params(n_jobs=2)
        .update(tmp_path / "far.zarr")
    )
    np.testing.assert_array_equal(other.labels_, model.labels_)
    assert other.report_ == model.report_
    for name, array in model.model_.arrays().items():
        np.testing.assert_array_equal(other.model_.arrays()[name], array)


def test_many_columns_and_directions_are_updated():
    old = rows(500, 0, d=80)
    new = rows(300, 2, n_far=20, d=80)
    model = front_door().fit(old)
    before = model.predict(old)
    model.update(new)
    assert set(model.labels_[:20]) == {3}
    assert np.mean(model.predict(old) == before) > 0.99
    random = np.random.default_rng(0)
    topics = np.repeat(np.eye(3), 10, axis=1)[random.integers(0, 3, 300)]
    texts = scipy.sparse.csr_array(np.abs(random.normal(size=(300, 30))) * topics)
    sparse = front_door(3, metric="cosine").fit(texts)
    before = sparse.predict(texts)
    other = np.zeros((90, 30))
    other[:, :3] = random.random((90, 3))
    other = scipy.sparse.csr_array(other)
    np.testing.assert_array_equal(sparse.update(other).labels_, sparse.predict(other))
    assert np.mean(sparse.predict(texts) == before) > 0.99


def test_weights_and_tables_are_updated():
    frame = pd.DataFrame(OLD, columns=list("pqr"))
    model = front_door(n_nodes=540).fit(frame, sample_weight=np.full(600, 0.5))
    model.update(pd.DataFrame(FAR, columns=list("pqr")))
    assert sum(model.report_["sizes"]) == 600
    assert changes_of(model)[-1] == "new"
    with pytest.raises(mmcnb.InputError, match="feature names"):
        model.update(pd.DataFrame(FAR, columns=list("qpr")))


# -- updates that fail -----------------------------------------------------------------


@pytest.mark.parametrize("n_reads", range(3))
def test_an_update_that_is_interrupted_leaves_the_model_as_it_was(model, n_reads):
    before = dict(vars(model))
    sizes = list(model.report_["sizes"])
    with pytest.raises(KeyboardInterrupt):
        model.update(InterruptedRows(FAR, n_reads))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    assert model.report_["sizes"] == sizes


def test_rows_that_cannot_be_taken_in_are_refused_in_one_sentence_and_change_nothing(
    model,
):
    bad = FAR.copy()
    bad[250, 1] = np.inf
    fitted = model.model_
    for X, words in (
        (OLD[:, :2], "has 2 features, but"),
        (OLD[:0], "0 sample"),
        (bad, "row 250"),
    ):
        with pytest.raises(mmcnb.InputError, match=rf"^[^\n]*{words}[^\n]*$"):
            model.update(X)
    assert model.model_ is fitted


@pytest.mark.parametrize(
    ("kernel", "is_far"),
    [("auto", np.full(600, True)), ("rbf", np.arange(600) % 10 == 0)],
)
def test_a_machine_that_is_asked_for_or_that_no_row_is_near_takes_in_no_far_rows(
    kernel, is_far
):
    X = halves()
    model = front_door(2, kernel=kernel).fit(X)
    with pytest.raises(
        mmcnb.InputError,
        match=r"^[^\n]*kernel='rbf' cannot be updated with them[^\n]*fit\(X, like=model\)\.$",
    ):
        model.update(X + 90 * is_far[:, None])


def test_models_without_a_fit_or_of_equal_rows_are_refused():
    with pytest.raises(mmcnb.InputError, match=r"fit\(X, like=model\)"):
        front_door().fit(np.ones((5, 2))).update(np.ones((5, 2)))
    with pytest.raises(ValueError, match="not fitted"):
        front_door().update(FAR)

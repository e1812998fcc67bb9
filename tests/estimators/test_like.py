"""A fit like an earlier model: clusters keep their numbers."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

import mmcnb
from tests.estimators import front_door as front_doors
from tests.estimators.front_door import InterruptedRows, changes_of
from tests.estimators.test_update import OLD, rows


def front_door(**parameters):
    return front_doors.front_door(**{"n_nodes": 400} | parameters)


@pytest.fixture(scope="module")
def model():
    return front_door().fit(OLD)


def test_equal_data_keep_all_numbers(model):
    order = np.random.default_rng(0).permutation(600)
    other = front_door(random_state=7).fit(OLD[order], like=model)
    np.testing.assert_array_equal(other.labels_, model.labels_[order])
    np.testing.assert_array_equal(other.labels_, other.predict(OLD[order]))
    assert changes_of(other) == ["kept"] * 3
    counts = np.bincount(other.labels_).tolist()
    assert other.report_["sizes"] == counts
    assert [one["before"] for one in other.report_["changes"]] == counts


def test_more_clusters_have_numbers_after_those_of_the_model(model):
    X = np.vstack([rows(300, 2, n_far=50), OLD])
    other = front_door(n_nodes=5000).fit(X, like=model)
    assert sorted(changes_of(other)) == ["kept", "kept", "new", "split"]
    assert changes_of(other)[model.predict(X[:1])[0]] == "split"
    assert set(other.labels_[:50]) == {3}
    np.testing.assert_array_equal(other.labels_[300:], model.labels_)


@pytest.mark.parametrize(
    "parameters", [{"noise": "auto"}, {"kernel": "rbf", "n_clusters": 2}]
)
def test_the_number_of_a_cluster_that_is_gone_is_free(model, parameters, tmp_path):
    X = OLD[model.labels_ != 1]
    other = front_door(random_state=3, **parameters).fit(X, like=model)
    assert set(other.labels_) - {-1} == {0, 2}
    assert np.mean((other.labels_ == model.predict(X)) | (other.labels_ < 0)) > 0.95
    np.testing.assert_array_equal(other.labels_, other.predict(X))
    kept = other.labels_ >= 0
    assert other.report_["sizes"] == np.bincount(other.labels_[kept]).tolist()
    assert changes_of(other) == ["kept", "gone", "kept"]
    assert (other.n_clusters_, other.report_["sizes"][1]) == (2, 0)
    shares = other.predict_proba(X)
    assert shares.shape == (len(X), 3)
    assert (shares[:, 1] == 0).all()
    np.testing.assert_array_equal(shares.argmax(axis=1)[kept], other.labels_[kept])
    other.save(tmp_path / "c.model")
    loaded = mmcnb.load(tmp_path / "c.model")
    np.testing.assert_array_equal(loaded.predict_proba(X), shares)
    np.testing.assert_array_equal(loaded.predict(X), other.labels_)
    third = front_door(random_state=5).fit(OLD[:500], like=loaded)
    assert 1 not in third.labels_  # a free number is not given again
    assert [one["number"] for one in third.report_["changes"]] == [0, 2, 3]


def test_equal_scores_are_decided_as_predict_decides_them():
    random = np.random.default_rng(1)
    X = np.vstack(
        [random.integers(0, 4, (300, 2)), random.integers(5, 9, (300, 2))]
    ).astype(float)
    before = front_door().fit(X[::-1])
    for k in (2, 3, 4):
        other = front_door(n_clusters=k, random_state=k).fit(X, like=before)
        np.testing.assert_array_equal(other.labels_, other.predict(X))
        assert other.report_["sizes"] == np.bincount(other.labels_).tolist()


def test_a_model_may_be_like_itself_and_like_another_class(model):
    other = front_door(random_state=11).fit(OLD[::-1])
    before = other.labels_
    other.set_params(random_state=12).fit(OLD[::-1], like=other)
    np.testing.assert_array_equal(other.labels_, before)
    two = mmcnb.SparseKernelMMC(random_state=0).fit(OLD)
    merged = front_door(n_clusters=2).fit(OLD, like=two)
    assert merged.predict_proba(OLD[:9]).shape[1] == max(2, merged.labels_.max() + 1)
    few = front_door().fit(OLD[:1].repeat(5, axis=0), like=model)  # all rows are equal
    assert set(few.labels_) == {int(model.labels_[0])}


def test_few_nodes_keep_numbers_of_many_clusters(tmp_path):
    many = front_door(n_clusters=40).fit(OLD)
    few = front_door(n_clusters=2).fit(OLD[:12], like=many)
    few.save(tmp_path / "few.model")
    np.testing.assert_array_equal(
        mmcnb.load(tmp_path / "few.model").predict(OLD), few.predict(OLD)
    )


def test_weights_count_and_rows_of_weight_0_match_nothing(model):
    X = np.vstack([OLD, rows(300, 2, n_far=20)])
    weights = np.r_[np.full(600, 0.5), np.zeros(300)]
    other = front_door(random_state=2).fit(X, sample_weight=weights, like=model)
    np.testing.assert_array_equal(other.labels_[:600], model.labels_)
    assert other.report_["sizes"] == (np.bincount(model.labels_) / 2).tolist()
    assert changes_of(other) == ["kept"] * 3


def test_noise_of_now_was_a_row_before(model):
    other = front_door(noise=0.05).fit(OLD, like=model)
    assert changes_of(other) == ["kept"] * 3
    assert [one["before"] for one in other.report_["changes"]] == model.report_["sizes"]
    assert (
        sum(one["after"] for one in other.report_["changes"])
        == 600 - other.report_["noise"]
    )
    assert other.report_["noise"] == np.count_nonzero(other.labels_ < 0) > 0


def test_sources_give_the_same_bits(model, tmp_path):
    zarr.create_array(tmp_path / "old.zarr", data=OLD, chunks=(77, 2))
    expected = front_door(random_state=4).fit(OLD, like=model)
    other = front_door(random_state=4, n_jobs=2).fit(tmp_path / "old.zarr", like=model)
    np.testing.assert_array_equal(other.labels_, expected.labels_)
    assert other.report_["changes"] == expected.report_["changes"]
    for name, array in expected.model_.arrays().items():
        np.testing.assert_array_equal(other.model_.arrays()[name], array)


def test_tables_and_sparse_rows_keep_their_numbers():
    frame = pd.DataFrame(OLD, columns=list("pqr")).assign(kind="one")
    before = front_door().fit(frame)
    frame.loc[:50, "kind"] = "two"  # which the earlier table did not have
    np.testing.assert_array_equal(
        front_door(random_state=1).fit(frame, like=before).labels_, before.labels_
    )
    sparse = scipy.sparse.csr_array(OLD)
    before = front_door(n_clusters=3).fit(sparse)
    again = front_door(n_clusters=3, random_state=1).fit(sparse[::-1], like=before)
    assert np.mean(again.labels_ == before.labels_[::-1]) > 0.99


@pytest.mark.slow
def test_of_many_sorted_rows_some_are_matched(model):
    # the first rows are all of one cluster
    order = np.argsort(model.labels_, kind="stable")
    X = np.repeat(OLD[order], 180, axis=0)
    expected = np.repeat(model.labels_[order], 180)
    other = front_door(random_state=1).fit(X, like=model)
    assert np.mean(other.labels_ == expected) > 0.999
    for one in other.report_["changes"]:
        assert one["change"] == "kept"
        assert one["after"] == pytest.approx(180 * one["before"], rel=0.01)


def test_what_is_no_model_of_these_columns_is_refused_in_one_sentence(model):
    without_sizes = mmcnb.EvolutionaryMMC(random_state=0).fit(OLD[:60])
    for X, like, words in (
        (
            OLD,
            mmcnb.MaximumMarginClustering(),
            "is not a fitted model with cluster sizes",
        ),
        (OLD, 3, "is not a fitted model with cluster sizes"),
        (OLD, without_sizes, "is not a fitted model with cluster sizes"),
        (OLD[:, :2], model, "has 2 features, but"),
    ):
        with pytest.raises(mmcnb.InputError, match=rf"^[^\n]*{words}[^\n]*$"):
            front_door().fit(X, like=like)


def test_a_fit_that_stops_at_the_new_numbers_has_those_of_its_rows(model):
    X = OLD[::-1]
    whole = InterruptedRows(X, 100)
    front_door().fit(whole, like=model)
    other = front_door()
    with pytest.raises(KeyboardInterrupt):
        other.fit(InterruptedRows(X, 99 - whole.n_reads), like=model)
    np.testing.assert_array_equal(other.labels_, other.predict(X))
    assert "changes" not in other.report_

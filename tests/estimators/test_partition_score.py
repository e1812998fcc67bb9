"""The judge for partitions of any program: its laws, the rows it leaves out, and what it refuses."""

import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.cluster import KMeans

import mmcnb
from mmcnb.errors import InputError
from mmcnb.stores import create_csr_store


@pytest.fixture(scope="module")
def rows():
    """Three groups that touch."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    return 4.0 * np.eye(3)[y] + rng.standard_normal((400, 3)), y


def score(X, labels, **given):
    return mmcnb.partition_score(X, labels, random_state=0, **given)


def test_j_is_the_sum_of_its_parts(rows):
    found = score(*rows)
    assert pytest.approx(4 * found.information + found.gap) == found.J
    assert 0 < found.information <= 1
    assert found.left_out == 0


def test_the_classes_score_higher_than_a_worse_partition_and_random_labels_lowest(rows):
    X, y = rows
    rng = np.random.default_rng(1)
    worse = np.where(rng.random(400) < 0.2, rng.integers(0, 3, 400), y)
    scores = [score(X, labels).J for labels in (y, worse, rng.integers(0, 3, 400))]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[1] + 0.5 > scores[2] + 1


def test_the_score_is_that_of_the_front_door(rows):
    X, _ = rows
    model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(X)
    assert pytest.approx(model.objective_, rel=1e-9) == score(X, model.labels_).J
    assert model.objective_ + 0.1 >= score(X, KMeans(3, random_state=0).fit(X).labels_).J


@pytest.mark.parametrize("scale", ["auto", "standard", {"0": "log"}])
def test_columns_are_scaled_as_by_the_front_door(rows, scale):
    X = np.exp(rows[0] / 4) * [1.0, 1000.0, 0.01]
    model = mmcnb.MaximumMarginClustering(3, scale=scale, random_state=0).fit(X)
    found = score(X, model.labels_, scale=scale)
    assert pytest.approx(model.objective_, rel=1e-9) == found.J
    assert found != score(X, model.labels_, scale=None)


@pytest.mark.parametrize(
    "names",
    [lambda y: y + 7, lambda y: -2 - y, lambda y: 2 - y, lambda y: np.array(["a", "b", "c"])[y], list],
)
def test_names_of_clusters_do_not_matter(rows, names):
    X, y = rows
    assert score(X, names(y)) == score(X, y)


def test_weights_are_repetitions(rows):
    X, y = rows
    counts = np.random.default_rng(1).integers(1, 5, 400)
    weighted = score(X, y, sample_weight=counts)
    assert weighted == pytest.approx(score(np.repeat(X, counts, axis=0), np.repeat(y, counts)), rel=1e-9)
    assert weighted == pytest.approx(score(X, y, sample_weight=counts / 97), rel=1e-9)
    assert abs(weighted.J - score(X, y).J) > 1e-6


@pytest.mark.parametrize("weights", [None, np.random.default_rng(2).integers(1, 9, 400)])
def test_rows_labelled_minus_one_are_left_out_and_their_share_is_told(rows, weights):
    X, y = rows
    is_noise = np.random.default_rng(1).random(400) < 0.3
    found = score(X, np.where(is_noise, -1, y), sample_weight=weights)
    kept = None if weights is None else weights[~is_noise]
    assert found[:3] == pytest.approx(score(X[~is_noise], y[~is_noise], sample_weight=kept)[:3], rel=1e-9)
    assert found.left_out == pytest.approx(np.average(is_noise, weights=weights))


def test_storages_give_the_same_bits(rows, tmp_path):
    X, y = rows
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(77, 2))
    for size in (400, 150):
        expected = score(X, y, n_nodes=size)
        assert score(tmp_path / "a.zarr", y, n_nodes=size) == expected
        assert score(X.tolist(), y.tolist(), n_nodes=size) == expected
    sparse = scipy.sparse.csr_array(np.where(X > 1, X, 0))
    with create_csr_store(tmp_path / "csr.zarr", 3, dtype="float64") as writer:
        writer.append(sparse)
    assert score(tmp_path / "csr.zarr", y) == score(sparse, y)
    assert score(sparse, y) == pytest.approx(score(sparse.toarray(), y), rel=1e-6)


def test_directions_are_rows_divided_by_their_lengths(rows):
    X, y = rows
    longer = X * np.random.default_rng(0).lognormal(0, 2, 400)[:, None]
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert score(longer, y, metric="cosine") == pytest.approx(score(unit, y), rel=1e-6)


def test_a_sample_stands_for_all_rows(rows):
    X, y = rows
    assert pytest.approx(score(X, y).J, abs=0.5) == score(X, y, n_nodes=200).J
    assert score(X, y, n_nodes=200) == score(X, y, n_nodes=200)


@pytest.mark.parametrize(
    ("labels", "given", "sentence"),
    [
        (np.zeros(400, int), {}, r"labels has 1 cluster\(s\) in the sample; give labels of two or more"),
        (np.full(400, -1), {}, r"labels"),
        (np.zeros(399, int), {}, r"labels has the shape \(399,\) for 400 rows; give one label a row"),
        (np.zeros((400, 1), int), {}, r"labels has the shape \(400, 1\) for 400 rows"),
        (np.arange(400), {"metric": "manhattan"}, r"metric='manhattan' is unknown"),
        (np.arange(400), {"n_nodes": 1}, r"n_nodes=1 is out of range"),
        (np.arange(400), {"sample_weight": np.ones(3)}, r"sample_weight"),
        (np.arange(400), {"sample_weight": -np.ones(400)}, r"sample_weight"),
    ],
)
def test_what_cannot_be_scored_is_refused_in_one_sentence(rows, labels, given, sentence):
    with pytest.raises(InputError, match=rf"^[^\n]*{sentence}[^\n]*\.$") as error:
        score(rows[0], labels, **given)
    assert str(error.value).count(". ") == 0


def test_equal_rows_cannot_be_scored():
    with pytest.raises(InputError, match=r"^all rows are equal, or differ by less than rounding"):
        score(np.ones((20, 2)), np.arange(20) % 2)

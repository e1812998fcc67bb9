"""The judge for partitions of any program: its laws, the rows it leaves out, and what it refuses."""

import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.cluster import KMeans

import mmcnb
from mmcnb.errors import InputError
from tests.estimators.front_door import front_door

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 400)
X = 4.0 * np.eye(3)[Y] + RNG.standard_normal((400, 3))  # three groups that touch


def score(rows, labels, **options):
    return mmcnb.partition_score(rows, labels, random_state=0, **options)


def test_the_classes_score_higher_than_a_worse_partition_and_random_labels_lowest():
    rng = np.random.default_rng(1)
    worse = np.where(rng.random(400) < 0.2, rng.integers(0, 3, 400), Y)
    classes, second, third = (
        score(X, labels) for labels in (Y, worse, rng.integers(0, 3, 400))
    )
    assert classes.J > second.J + 0.5 > third.J + 1
    assert pytest.approx(4 * classes.information + classes.gap) == classes.J
    assert 0 < classes.information <= 1
    assert classes.left_out == 0


@pytest.mark.parametrize("scale", ["auto", "standard", {"0": "log"}, None])
def test_the_score_is_that_of_the_front_door_in_its_scaling(scale):
    rows = np.exp(X / 4) * [1.0, 1000.0, 0.01]
    model = front_door(3, scale=scale).fit(rows)
    labels = model.labels_
    assert (
        pytest.approx(model.objective_, rel=1e-9) == score(rows, labels, scale=scale).J
    )
    assert (score(rows, labels, scale=scale) == score(rows, labels, scale=None)) == (
        scale is None
    )
    others = KMeans(3, random_state=0).fit(rows).labels_
    assert model.objective_ + 0.1 >= score(rows, others, scale=scale).J


def test_names_of_clusters_do_not_matter():
    for labels in (Y + 7, -2 - Y, 2 - Y, np.array(["a", "b", "c"])[Y], list(Y)):
        assert score(X, labels) == score(X, Y)


def test_weights_are_repetitions():
    counts = np.random.default_rng(1).integers(1, 5, 400)
    weighted = score(X, Y, sample_weight=counts)
    assert weighted == pytest.approx(
        score(np.repeat(X, counts, axis=0), np.repeat(Y, counts)), rel=1e-9
    )
    assert weighted == pytest.approx(score(X, Y, sample_weight=counts / 97), rel=1e-9)
    assert abs(weighted.J - score(X, Y).J) > 1e-6


@pytest.mark.parametrize(
    "weights", [None, np.random.default_rng(2).integers(1, 9, 400)]
)
def test_rows_labelled_minus_one_are_left_out_and_their_share_is_told(weights):
    is_noise = np.random.default_rng(1).random(400) < 0.3
    with_noise = score(X, np.where(is_noise, -1, Y), sample_weight=weights)
    kept = None if weights is None else weights[~is_noise]
    expected = score(X[~is_noise], Y[~is_noise], sample_weight=kept)
    assert with_noise[:3] == pytest.approx(expected[:3], rel=1e-9)
    assert with_noise.left_out == pytest.approx(np.average(is_noise, weights=weights))


def test_storages_give_the_same_bits(tmp_path):
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(77, 2))
    for size in (400, 150):
        expected = score(X, Y, n_nodes=size)
        assert score(tmp_path / "a.zarr", Y, n_nodes=size) == expected
        assert score(X.tolist(), Y.tolist(), n_nodes=size) == expected
        assert pytest.approx(score(X, Y).J, abs=0.5) == expected.J
    sparse = scipy.sparse.csr_array(np.where(X > 1, X, 0))
    assert score(sparse, Y) == pytest.approx(score(sparse.toarray(), Y), rel=1e-6)


def test_directions_are_rows_divided_by_their_lengths():
    longer = X * np.random.default_rng(0).lognormal(0, 2, 400)[:, None]
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert score(longer, Y, metric="cosine") == pytest.approx(score(unit, Y), rel=1e-6)


@pytest.mark.parametrize(
    ("labels", "options", "sentence"),
    [
        (
            np.zeros(400, int),
            {},
            r"labels has 1 cluster\(s\) in the sample; pass labels of two or more clusters",
        ),
        (np.full(400, -1), {}, r"labels"),
        (
            np.zeros(399, int),
            {},
            r"labels has shape \(399,\), but X has 400 rows; pass one label per row",
        ),
        (
            np.zeros((400, 1), int),
            {},
            r"labels has shape \(400, 1\), but X has 400 rows",
        ),
        (Y, {"metric": "manhattan"}, r"metric='manhattan' is unknown"),
        (Y, {"n_nodes": 1}, r"n_nodes=1 is out of range"),
        (Y, {"sample_weight": -np.ones(400)}, r"sample_weight"),
    ],
)
def test_what_cannot_be_scored_is_refused_in_one_sentence(labels, options, sentence):
    with pytest.raises(InputError, match=rf"^[^\n]*{sentence}[^\n]*\.$") as error:
        score(X, labels, **options)
    assert str(error.value).count(". ") == 0


def test_equal_rows_cannot_be_scored():
    with pytest.raises(
        InputError,
        match=r"^all rows are equal, so they cannot .*; pass rows that differ\.$",
    ):
        score(np.ones((20, 2)), np.arange(20) % 2)

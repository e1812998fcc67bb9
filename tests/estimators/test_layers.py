"""Layers and cuts of the merge tree: they nest, label any rows, and come back from files and tables."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from scipy.cluster.hierarchy import dendrogram, is_valid_linkage
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.errors import InputError
from tests.estimators.front_door import WAYS, front_door

COLUMNS = ["n_clusters", "persistence", "J", "smallest", "agreement", "taken"]
WITH_MORE = WAYS | {"a range": ((4, 9), {}), "noise": (None, {"noise": 0.05})}


def pairs_of_groups(n=300, seed=0):
    """Three pairs of groups that touch, and the group of each row."""
    angle = 2 * np.pi * np.arange(3) / 3
    centres = np.repeat(14 * np.c_[np.cos(angle), np.sin(angle)], 2, axis=0)
    centres[1::2, 0] += 4.5
    y = np.arange(n) % 6
    return centres[y] + np.random.default_rng(seed).standard_normal((n, 2)), y


X, Y = pairs_of_groups()


@pytest.fixture(scope="module", params=WITH_MORE)
def fitted(request):
    """A model for each way to ask for clusters."""
    n_clusters, parameters = WITH_MORE[request.param]
    return front_door(n_clusters, **parameters).fit(X)


@pytest.fixture(scope="module")
def model():
    """A model that found its number of clusters."""
    return front_door().fit(X)


def others_of(model):
    """The layers that are not the one taken."""
    return [model.predict(X, layer=i) for i in np.flatnonzero(~model.layers_["taken"])]


def is_inside(fine, coarse):
    """Whether each fine cluster lies in one coarse one; noise counts nowhere."""
    kept = (fine >= 0) & (coarse >= 0)
    return len(np.unique(np.c_[fine, coarse][kept], axis=0)) == len(
        np.unique(fine[kept])
    )


# -- layers ----------------------------------------------------------------------------


def test_layers_are_at_most_five_and_the_first_is_taken(fitted):
    layers = fitted.layers_
    assert layers.columns.tolist() == COLUMNS
    assert 1 <= len(layers) <= 5
    assert (np.diff(layers["n_clusters"][1:]) > 0).all()
    assert layers["taken"].tolist() == [True] + [False] * (len(layers) - 1)
    (taken,) = layers[layers["taken"]].itertuples()
    assert (taken.n_clusters, taken.agreement) == (fitted.n_clusters_, pytest.approx(1))
    assert pytest.approx(fitted.objective_) == taken.J
    assert (
        (layers["smallest"] >= 0)
        & (layers["smallest"] <= len(X) / layers["n_clusters"])
    ).all()
    assert fitted.report_["layers"] == layers.to_dict("records")


def test_a_layer_labels_rows_of_the_fit_with_its_clusters(fitted):
    for i, one in enumerate(fitted.layers_.itertuples()):
        labels = fitted.predict(X, layer=i)
        assert labels.dtype == np.int32
        kept = labels >= 0
        # noise is the same in all
        np.testing.assert_array_equal(kept, fitted.labels_ >= 0)
        assert np.unique(labels[kept]).tolist() == list(range(one.n_clusters))
        if one.taken:
            np.testing.assert_array_equal(labels, fitted.labels_)
            assert fitted.predict(X, layer=np.int64(i)).tolist() == labels.tolist()
        else:
            assert (
                np.diff(np.bincount(labels[kept])) <= 0.02 * len(X)
            ).all()  # from the largest on
            np.testing.assert_array_equal(
                labels[kept], fitted.labels_at(X, one.n_clusters)[kept]
            )
            if fitted.kernel_ == "graph" and fitted.noise is None:
                assert one.agreement == pytest.approx(
                    adjusted_rand_score(labels, fitted.labels_), abs=1e-9
                )
                assert one.smallest == np.bincount(labels).min()


def test_pieces_lie_inside_layers_and_layers_inside_coarser_ones(fitted):
    others = others_of(fitted)
    pieces = fitted.labels_at(X, len(fitted.linkage_) + 1)
    assert all(is_inside(pieces, labels) for labels in others)
    assert all(is_inside(fine, coarse) for coarse, fine in pairwise(others))


def test_pairs_of_groups_are_two_layers():
    rows, y = pairs_of_groups(600)
    layers = front_door().fit(rows).layers_
    assert {3, 6} <= set(layers["n_clusters"])
    for k, truth in ((3, y // 2), (6, y)):
        model = front_door(k).fit(rows)
        i = model.layers_["n_clusters"].tolist().index(k)
        assert adjusted_rand_score(truth, model.predict(rows, layer=i)) > 0.94


# -- cuts ------------------------------------------------------------------------------


def test_cuts_of_all_numbers_nest_and_are_numbered_from_the_largest_on(model):
    most = len(model.linkage_) + 1
    assert most == model.piece_of_node_.max() + 1
    cuts = [
        model.labels_at(X, n_clusters) for n_clusters in (1, 2, 3, 6, most // 2, most)
    ]
    assert [np.unique(labels).size for labels in cuts] == [1, 2, 3, 6, most // 2, most]
    assert all((np.diff(np.bincount(labels)) <= 0).all() for labels in cuts)
    assert all(is_inside(fine, coarse) for coarse, fine in pairwise(cuts))
    np.testing.assert_array_equal(
        model.labels_at(X, np.int64(6)), model.labels_at(X, 6)
    )


def test_new_rows_are_labelled_as_those_near_them(model):
    new, classes = pairs_of_groups(seed=1)
    for n_clusters, truth in ((6, classes), (3, classes // 2)):
        assert adjusted_rand_score(truth, model.labels_at(new, n_clusters)) > 0.94
    sparse = model.labels_at(scipy.sparse.csr_array(new), 6)
    dense = model.labels_at(new, 6)
    np.testing.assert_array_equal(sparse, dense)
    alone = np.concatenate([model.labels_at(new[i : i + 1], 6) for i in range(40)])
    np.testing.assert_array_equal(alone, dense[:40])


def test_the_linkage_is_one_that_scipy_draws(fitted):
    assert is_valid_linkage(fitted.linkage_)
    leaves = dendrogram(fitted.linkage_, no_plot=True)["leaves"]
    assert sorted(leaves) == list(range(fitted.piece_of_node_.max() + 1))
    assert fitted.piece_of_node_.shape == (len(X),)


def test_a_given_number_has_a_cut_however_large():
    for n_clusters in (2, 40, 120):
        model = front_door(n_clusters, kernel="graph").fit(X[:120])
        assert np.unique(model.labels_at(X[:120], n_clusters)).size == n_clusters
        assert model.layers_["n_clusters"].max() >= n_clusters


# -- files and tables ------------------------------------------------------------------


def test_a_file_has_the_same_layers(tmp_path, fitted):
    fitted.save(tmp_path / "a.model")
    loaded = mmcnb.load(tmp_path / "a.model")
    pd.testing.assert_frame_equal(loaded.layers_, fitted.layers_)
    assert loaded.linkage_.tobytes() == fitted.linkage_.tobytes()
    np.testing.assert_array_equal(loaded.piece_of_node_, fitted.piece_of_node_)
    np.testing.assert_array_equal(others_of(loaded), others_of(fitted))
    zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(77, 1))
    labels = loaded.labels_at(tmp_path / "rows.zarr", 5)
    np.testing.assert_array_equal(labels, fitted.labels_at(X, 5))
    loaded.predict(X, out=tmp_path / "labels.zarr", layer=0)
    written = zarr.open_array(tmp_path / "labels.zarr", mode="r")[:]
    np.testing.assert_array_equal(written, fitted.predict(X, layer=0))
    assert loaded.score_outliers(X).tobytes() == fitted.score_outliers(X).tobytes()


@pytest.mark.parametrize("noise", [None, 0.1])
def test_a_table_has_a_column_for_each_layer(tmp_path, noise):
    def written(layer):
        assert model.predict(X, out=tmp_path / f"{layer}.csv", layer=layer) is None
        return pd.read_csv(tmp_path / f"{layer}.csv")

    model = front_door(noise=noise).fit(X)
    others = model.layers_[~model.layers_["taken"]]
    assert len(others) > 0
    names = [f"layer_{k}" for k in others["n_clusters"]]
    frame = written("all")
    assert frame.columns[1:].tolist() == ["cluster", "margin", *names]
    np.testing.assert_array_equal(frame["margin"], model.to_frame(X)["margin"])
    np.testing.assert_array_equal(frame["cluster"], model.labels_)
    np.testing.assert_array_equal(frame[names].T, others_of(model))
    one = written(int(others.index[0]))
    assert one.columns[1:].tolist() == ["cluster"]
    np.testing.assert_array_equal(one["cluster"], frame[names[0]])


# -- what cannot be --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda model: model.predict(X, layer=9),
            r"layer=9 is out of range; give a whole number",
        ),
        (
            lambda model: model.predict(X, layer=-0.5),
            r"layer=-0\.5 is not an integer; give an integer",
        ),
        (lambda model: model.predict(X, layer="most"), r"layer='most' is out of range"),
        (
            lambda model: model.predict(X, layer="all"),
            r"layer='all' needs a table for its columns; pass a path that ends with",
        ),
        (
            lambda model: model.labels_at(X, 0),
            r"n_clusters=0 is out of range; give a whole number",
        ),
        (
            lambda model: model.labels_at(X, 10**4),
            r"n_clusters=10000 is out of range; give a whole",
        ),
        (lambda model: model.labels_at(X[:, :1], 2), r"X has 1 features"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(ask, sentence, model):
    with pytest.raises(InputError, match=rf"^[^\n]*{sentence}[^\n]*\.$") as error:
        ask(model)
    assert str(error.value).count(". ") == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.predict(X, "l.csv", layer="all"),
        lambda model: model.labels_at(X, 1),
        lambda model: model.score_outliers(X),
        lambda model: model.linkage_,
    ],
)
def test_equal_rows_have_no_tree_and_before_a_fit_there_is_none(ask):
    model = front_door().fit(np.ones((20, 2)))
    assert len(model.layers_) == 0
    with pytest.raises(
        InputError,
        match=r"^this model has no merge tree because all rows of its fit are equal; [^\n]*\.$",
    ):
        ask(model)
    with pytest.raises(NotFittedError):
        ask(front_door())
    with pytest.raises(NotFittedError):
        front_door().layers_

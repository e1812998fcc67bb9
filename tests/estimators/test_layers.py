"""Layers and cuts of the merge tree: they nest, label any rows, and are the same from files and storages."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from scipy.cluster.hierarchy import dendrogram, is_valid_linkage
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.errors import InputError
from mmcnb.stores import create_dense_store

pytestmark = pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
COLUMNS = ["n_clusters", "persistence", "J", "smallest", "agreement", "taken"]


def front_door(n_clusters=None, **parameters):
    return mmcnb.MaximumMarginClustering(n_clusters, random_state=0, **parameters)


def pairs_of_groups(n=600, seed=0):
    """Three pairs of groups that touch, and the group of each row."""
    angle = 2 * np.pi * np.arange(3) / 3
    centres = np.repeat(14 * np.c_[np.cos(angle), np.sin(angle)], 2, axis=0)
    centres[1::2, 0] += 4.5
    y = np.arange(n) % 6
    return centres[y] + np.random.default_rng(seed).standard_normal((n, 2)), y


WAYS = {
    "found": (None, {}),
    "a range": ((4, 9), {}),
    "given": (6, {}),
    "given, two": (2, {}),
    "margin": (2, {"kernel": "rbf"}),
    "linear": (3, {"kernel": "linear"}),
    "directions": (None, {"metric": "cosine"}),
    "noise": (None, {"noise": 0.05}),
}


@pytest.fixture(scope="module", params=WAYS)
def fitted(request):
    n_clusters, parameters = WAYS[request.param]
    X, _ = pairs_of_groups()
    return front_door(n_clusters, **parameters).fit(X), X


def is_inside(fine, coarse):
    """Whether each fine cluster lies in one coarse one; noise counts nowhere."""
    kept = (fine >= 0) & (coarse >= 0)
    return len(np.unique(np.c_[fine, coarse][kept], axis=0)) == len(np.unique(fine[kept]))


# -- layers ------------------------------------------------------------------------------------


def test_layers_are_at_most_five_by_rising_number_and_one_is_taken(fitted):
    model, X = fitted
    layers = model.layers_
    assert layers.columns.tolist() == COLUMNS
    assert 1 <= len(layers) <= 5
    assert (np.diff(layers["n_clusters"]) > 0).all()
    assert layers["taken"].sum() == 1
    (taken,) = layers[layers["taken"]].itertuples()
    assert (taken.n_clusters, taken.agreement) == (model.n_clusters_, pytest.approx(1))
    assert pytest.approx(model.objective_) == taken.J
    assert ((layers["smallest"] >= 0) & (layers["smallest"] <= len(X) / layers["n_clusters"])).all()
    assert model.report_["layers"] == layers.to_dict("records")


def test_a_layer_labels_rows_of_the_fit_with_its_clusters(fitted):
    model, X = fitted
    for i, one in enumerate(model.layers_.itertuples()):
        labels = model.predict(X, layer=i)
        assert labels.dtype == np.int32
        kept = labels >= 0
        np.testing.assert_array_equal(kept, model.labels_ >= 0)  # noise is the same in all
        assert np.unique(labels[kept]).tolist() == list(range(one.n_clusters))
        if one.taken:
            np.testing.assert_array_equal(labels, model.labels_)
            assert model.predict(X, layer=np.int64(i)).tolist() == labels.tolist()
        else:
            assert (np.diff(np.bincount(labels[kept])) <= 0.02 * len(X)).all()  # from the largest on
            np.testing.assert_array_equal(labels[kept], model.labels_at(X, one.n_clusters)[kept])
            if model.kernel_ == "graph" and model.noise is None:
                assert one.agreement == pytest.approx(adjusted_rand_score(labels, model.labels_), abs=1e-9)
                assert one.smallest == np.bincount(labels).min()


def test_layers_but_the_one_taken_nest(fitted):
    model, X = fitted
    others = [model.predict(X, layer=i) for i in np.flatnonzero(~model.layers_["taken"])]
    for coarse, fine in pairwise(others):
        assert is_inside(fine, coarse)


def test_rows_of_one_piece_stay_together(fitted):
    model, X = fitted
    pieces = model.labels_at(X, len(model.linkage_) + 1)
    for labels in [model.predict(X, layer=i) for i in np.flatnonzero(~model.layers_["taken"])]:
        assert is_inside(pieces, labels)


def test_pairs_of_groups_are_two_layers():
    X, y = pairs_of_groups()
    layers = front_door().fit(X).layers_
    assert {3, 6} <= set(layers["n_clusters"])
    for k, truth in ((3, y // 2), (6, y)):
        model = front_door(k).fit(X)
        i = model.layers_["n_clusters"].tolist().index(k)
        assert adjusted_rand_score(truth, model.predict(X, layer=i)) > 0.94


# -- cuts --------------------------------------------------------------------------------------


def test_cuts_of_all_numbers_nest_and_are_numbered_from_the_largest_on():
    X, _ = pairs_of_groups()
    model = front_door().fit(X)
    most = len(model.linkage_) + 1
    assert most == model.piece_of_node_.max() + 1
    finer = None
    for n_clusters in (most, most // 2, 6, 3, 2, 1):
        labels = model.labels_at(X, n_clusters)
        assert (np.diff(np.bincount(labels, minlength=n_clusters)) <= 0).all()
        assert np.unique(labels).size == n_clusters
        assert finer is None or is_inside(finer, labels)
        finer = labels
    np.testing.assert_array_equal(model.labels_at(X, np.int64(6)), model.labels_at(X, 6))


def test_new_rows_are_labelled_as_those_near_them():
    X, _ = pairs_of_groups()
    model = front_door().fit(X)
    new, classes = pairs_of_groups(300, seed=1)
    for n_clusters, truth in ((6, classes), (3, classes // 2)):
        assert adjusted_rand_score(truth, model.labels_at(new, n_clusters)) > 0.94
    sparse, dense = model.labels_at(scipy.sparse.csr_array(new), 6), model.labels_at(new, 6)
    np.testing.assert_array_equal(sparse, dense)
    alone = np.concatenate([model.labels_at(new[i : i + 1], 6) for i in range(40)])
    np.testing.assert_array_equal(alone, dense[:40])


def test_the_linkage_is_one_that_scipy_draws(fitted):
    model, _ = fitted
    assert is_valid_linkage(model.linkage_)
    leaves = dendrogram(model.linkage_, no_plot=True)["leaves"]
    assert sorted(leaves) == list(range(model.piece_of_node_.max() + 1))
    assert model.piece_of_node_.shape == (len(pairs_of_groups()[0]),)


def test_a_given_number_has_a_cut_however_large():
    X, _ = pairs_of_groups(120)
    for n_clusters in (2, 40, 120):
        model = front_door(n_clusters, kernel="graph").fit(X)
        assert np.unique(model.labels_at(X, n_clusters)).size == n_clusters
        assert model.layers_["n_clusters"].max() >= n_clusters


# -- files, storages and threads ---------------------------------------------------------------


def test_a_file_has_the_same_layers(tmp_path, fitted):
    model, X = fitted
    model.save(tmp_path / "a.model")
    read = mmcnb.load(tmp_path / "a.model")
    pd.testing.assert_frame_equal(read.layers_, model.layers_)
    assert read.linkage_.tobytes() == model.linkage_.tobytes()
    np.testing.assert_array_equal(read.piece_of_node_, model.piece_of_node_)
    for i in range(len(model.layers_)):
        np.testing.assert_array_equal(read.predict(X, layer=i), model.predict(X, layer=i))
    np.testing.assert_array_equal(read.labels_at(X, 5), model.labels_at(X, 5))
    assert read.score_outliers(X).tobytes() == model.score_outliers(X).tobytes()


@pytest.mark.parametrize("noise", [None, "auto"])
def test_stores_and_threads_have_the_same_layers_to_the_bit(tmp_path, noise):
    X = pairs_of_groups(9000)[0].astype(np.float32)
    with create_dense_store(tmp_path / "rows.zarr", 2) as writer:
        writer.append(X)
    settings = {"n_nodes": 900, "noise": noise}
    model = front_door(n_jobs=1, **settings).fit(X)
    again = front_door(n_jobs=3, **settings).fit(tmp_path / "rows.zarr")
    pd.testing.assert_frame_equal(again.layers_, model.layers_, check_exact=True)
    assert again.linkage_.tobytes() == model.linkage_.tobytes()
    for i in range(len(model.layers_)):
        np.testing.assert_array_equal(
            again.predict(tmp_path / "rows.zarr", layer=i), model.predict(X, layer=i)
        )
    np.testing.assert_array_equal(again.labels_at(tmp_path / "rows.zarr", 9), model.labels_at(X, 9))
    assert again.score_outliers(tmp_path / "rows.zarr").tobytes() == model.score_outliers(X).tobytes()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("noise", [None, 0.1])
def test_a_table_has_a_column_for_each_layer(tmp_path, ending, noise):
    X, _ = pairs_of_groups()
    model = front_door(noise=noise).fit(X)
    path = tmp_path / f"labels.{ending}"
    assert model.predict(X, out=path, layer="all") is None
    frame = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    others = model.layers_[~model.layers_["taken"]]
    assert len(others) > 0
    names = [f"layer_{k}" for k in others["n_clusters"]]
    assert frame.columns[1:].tolist() == ["cluster", "margin", *names]
    np.testing.assert_array_equal(frame["margin"], model.to_frame(X)["margin"])
    np.testing.assert_array_equal(frame["cluster"], model.labels_)
    for i, name in zip(others.index, names, strict=True):
        np.testing.assert_array_equal(frame[name], model.predict(X, layer=i))
    assert model.predict(X, out=tmp_path / f"one.{ending}", layer=int(others.index[0])) is None
    one = pd.read_csv(tmp_path / "one.csv") if ending == "csv" else pd.read_parquet(tmp_path / "one.parquet")
    assert one.columns[1:].tolist() == ["cluster"]
    np.testing.assert_array_equal(one["cluster"], frame[names[0]])


def test_a_layer_is_written_to_a_store(tmp_path):
    X, _ = pairs_of_groups()
    model = front_door().fit(X)
    i = int(np.flatnonzero(~model.layers_["taken"])[0])
    model.predict(X, out=tmp_path / "labels.zarr", layer=i)
    np.testing.assert_array_equal(
        zarr.open_array(tmp_path / "labels.zarr", mode="r")[:], model.predict(X, layer=i)
    )


# -- laws --------------------------------------------------------------------------------------


def test_a_weight_is_a_repetition_in_all_layers():
    X, counts = pairs_of_groups(300)[0], np.arange(300) % 3 + 1
    weighted = front_door().fit(X, sample_weight=counts)
    repeated = front_door().fit(np.repeat(X, counts, axis=0))
    assert repeated.n_clusters_ == weighted.n_clusters_
    one, other = weighted.layers_, repeated.layers_
    for name in ("n_clusters", "persistence", "taken"):
        assert one[name].tolist() == other[name].tolist()
    np.testing.assert_allclose(one["J"], other["J"], rtol=1e-9)
    for i in range(len(one)):
        np.testing.assert_array_equal(
            np.repeat(weighted.predict(X, layer=i), counts),
            repeated.predict(np.repeat(X, counts, axis=0), layer=i),
        )


def test_without_structure_trust_is_never_high():
    for seed in range(4):
        X = np.random.default_rng(seed).standard_normal((300, 3))
        for n_clusters in (None, 2, 4, (3, 6)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = clone(front_door(n_clusters)).fit(X)
            assert model.report_["trust"]["level"] == "low"


# -- what cannot be ----------------------------------------------------------------------------

REFUSED = {
    "a layer beyond the last": (
        lambda m, X: m.predict(X, layer=9),
        r"layer=9 is out of range; give a whole number",
    ),
    "a layer below the first": (
        lambda m, X: m.predict(X, layer=-1),
        r"layer=-1 is out of range; give a whole number",
    ),
    "half a layer": (lambda m, X: m.predict(X, layer=0.5), r"layer=0\.5 is out of range"),
    "all layers without a table": (
        lambda m, X: m.predict(X, layer="all"),
        r"layer='all' is for a table; give out, a path that ends with",
    ),
    "a layer by name": (lambda m, X: m.predict(X, layer="most"), r"layer='most' is out of range"),
    "no cluster": (lambda m, X: m.labels_at(X, 0), r"n_clusters=0 is out of range; give a whole number"),
    "more than there are": (
        lambda m, X: m.labels_at(X, 10**4),
        r"n_clusters=10000 is out of range; give a whole",
    ),
    "other columns": (lambda m, X: m.labels_at(X[:, :1], 2), r"X has 1 features"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(case):
    ask, sentence = REFUSED[case]
    X, _ = pairs_of_groups(200)
    with pytest.raises(InputError, match=rf"^[^\n]*{sentence}[^\n]*\.$") as error:
        ask(front_door().fit(X), X)
    assert str(error.value).count(". ") == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda m, X: m.predict(X, layer=0),
        lambda m, X: m.predict(X, "l.csv", layer="all"),
        lambda m, X: m.labels_at(X, 1),
        lambda m, X: m.score_outliers(X),
        lambda m, X: m.linkage_,
        lambda m, X: m.piece_of_node_,
    ],
)
def test_equal_rows_have_no_tree_and_before_a_fit_there_is_none(ask):
    X = np.ones((20, 3))
    with pytest.raises(InputError, match=r"^this model has no merge tree: its rows are equal; [^\n]*\.$"):
        ask(front_door().fit(X), X)
    with pytest.raises(NotFittedError):
        ask(front_door(), X)
    with pytest.raises(NotFittedError):
        front_door().layers_

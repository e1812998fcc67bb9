"""Laws of the shapes: the rows and clusters that are said, and the same for the same seed."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from mmcnb.datasets import SHAPES, make_shape
from mmcnb.errors import InputError

SEPARATED = [name for name, shape in SHAPES.items() if shape.separated]
TOUCHING = [name for name, shape in SHAPES.items() if not shape.separated]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("n_samples", [100, 1200])
def test_a_shape_has_the_rows_features_and_clusters_it_says(name, n_samples):
    shape = SHAPES[name]
    X, y = make_shape(name, n_samples, random_state=0)
    assert X.shape == (n_samples, shape.n_features)
    assert np.isfinite(X).all()
    assert (X.dtype, y.dtype) == (np.float64, np.int32)
    weights = np.array(shape.weights or [1] * shape.n_clusters)
    sizes = np.bincount(y)
    assert len(sizes) == shape.n_clusters
    np.testing.assert_allclose(sizes, n_samples * weights / weights.sum(), atol=shape.n_clusters)


@pytest.mark.parametrize("name", SHAPES)
def test_one_row_for_each_cluster_is_the_least(name):
    n_clusters = SHAPES[name].n_clusters
    assert sorted(make_shape(name, n_clusters, random_state=0)[1]) == list(range(n_clusters))
    with pytest.raises(InputError, match=f"n_samples is {n_clusters - 1}; {name} has {n_clusters} clusters"):
        make_shape(name, n_clusters - 1)


@pytest.mark.parametrize("name", SHAPES)
def test_the_seed_says_all(name):
    X, y = make_shape(name, 200, random_state=3)
    for same in (3, np.random.RandomState(3)):
        again_X, again_y = make_shape(name, 200, random_state=same)
        np.testing.assert_array_equal(again_X, X)
        np.testing.assert_array_equal(again_y, y)
    assert not np.isin(make_shape(name, 200, random_state=4)[0], X).any()


@pytest.mark.parametrize("name", SHAPES)
def test_rows_are_shuffled(name):
    _, y = make_shape(name, random_state=0)
    shares = np.bincount(y) / len(y)
    expected = len(y) * (1 - np.sum(shares**2))
    assert np.count_nonzero(np.diff(y)) == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("name", SEPARATED)
@pytest.mark.parametrize("seed", [0, 1])
def test_where_a_gap_lies_between_clusters_single_linkage_finds_them(name, seed):
    X, y = make_shape(name, random_state=seed)
    found = fcluster(linkage(X, "single"), SHAPES[name].n_clusters, "maxclust")
    assert adjusted_rand_score(y, found) == 1.0


@pytest.mark.parametrize("name", SHAPES)
def test_the_nearest_row_is_of_the_same_cluster(name):
    X, y = make_shape(name, random_state=0)
    agreement = cross_val_score(KNeighborsClassifier(1), X, y, cv=5).mean()
    if SHAPES[name].separated:
        assert agreement >= 0.99
    else:
        assert 0.9 <= agreement < 0.99


@pytest.mark.parametrize("name", TOUCHING)
def test_where_clusters_touch_single_linkage_does_not_find_them(name):
    X, y = make_shape(name, random_state=0)
    found = fcluster(linkage(X, "single"), SHAPES[name].n_clusters, "maxclust")
    assert adjusted_rand_score(y, found) < 0.5


def test_families_stand_together_and_in_several_dimensions():
    families = [shape.family for shape in SHAPES.values()]
    changes = [
        family for family, before in zip(families, [None, *families], strict=False) if family != before
    ]
    assert len(changes) == len(set(families))
    assert {shape.n_features for shape in SHAPES.values()} == {2, 3, 10}


def test_linked_rings_cannot_be_pulled_apart():
    X, y = make_shape("linked-rings", random_state=0)
    in_plane = X[(y == 1) & (np.abs(X[:, 2]) < 0.2)]
    inside = np.hypot(in_plane[:, 0], in_plane[:, 1]) < 0.5
    assert inside.any()
    assert not inside.all()


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("rings", {}, "name='rings' is unknown; choose one of 'two-rings', 'three-rings'"),
        ("two-rings", {"random_state": -1}, "random_state=-1 is no seed"),
        ("two-rings", {"random_state": "seed"}, "random_state='seed' is no seed"),
    ],
)
def test_bad_arguments_are_one_sentence(name, options, sentence):
    with pytest.raises(InputError, match=sentence):
        make_shape(name, **options)


def test_shapes_cannot_be_changed():
    with pytest.raises(TypeError, match="item assignment"):
        SHAPES["mine"] = SHAPES["two-rings"]

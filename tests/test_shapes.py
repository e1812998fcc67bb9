"""Laws of the shapes: the rows and clusters that are said, a gap where one is said, one answer for a seed."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from mmcnb.datasets import SHAPES, make_shape
from mmcnb.errors import InputError

SOME = [
    "three-rings",
    "unequal-moons",
    "hypercube-corners",
    "linked-rings",
    "three-densities",
    "roll-pieces",
]
TOUCHING = [name for name, shape in SHAPES.items() if not shape.separated][:2]


@pytest.mark.parametrize("name", SOME)
def test_a_shape_has_the_rows_features_and_clusters_it_says(name):
    shape = SHAPES[name]
    weights = np.array(shape.weights or [1] * shape.n_clusters)
    for n_samples in (shape.n_clusters, 1200):
        X, y = make_shape(name, n_samples, random_state=0)
        assert X.shape == (n_samples, shape.n_features)
        assert np.isfinite(X).all()
        assert (X.dtype, y.dtype) == (np.float64, np.int32)
        sizes = np.bincount(y)
        assert sizes.min() > 0
        np.testing.assert_allclose(
            sizes, n_samples * weights / weights.sum(), atol=shape.n_clusters
        )
    shares = sizes / sizes.sum()
    # rows are shuffled
    assert np.mean(np.diff(y) != 0) == pytest.approx(1 - np.sum(shares**2), rel=0.25)


@pytest.mark.parametrize("name", SOME)
def test_the_seed_says_all(name):
    X, y = make_shape(name, 200, random_state=3)
    again_X, again_y = make_shape(name, 200, random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(again_X, X)
    np.testing.assert_array_equal(again_y, y)
    assert not np.isin(make_shape(name, 200, random_state=4)[0], X).any()


@pytest.mark.parametrize("name", [*SOME, *TOUCHING])
def test_single_linkage_finds_the_clusters_just_where_a_gap_lies_between_them(name):
    X, y = make_shape(name, random_state=0)
    labels = fcluster(linkage(X, "single"), SHAPES[name].n_clusters, "maxclust")
    agreement = adjusted_rand_score(y, labels)
    assert agreement == 1.0 if SHAPES[name].separated else agreement < 0.5


@pytest.mark.parametrize(
    ("name", "n_samples", "seed", "sentence"),
    [
        (
            "rings",
            100,
            0,
            "name='rings' is unknown; choose one of 'two-rings', 'three-rings'",
        ),
        ("two-rings", 100, -1, "random_state=-1 is not a valid seed"),
        ("two-rings", 100, "seed", "random_state='seed' is not a valid seed"),
        ("three-rings", 2, 0, "n_samples is 2; three-rings has 3 clusters"),
    ],
)
def test_bad_arguments_are_one_sentence(name, n_samples, seed, sentence):
    with pytest.raises(InputError, match=sentence):
        make_shape(name, n_samples, random_state=seed)


def test_shapes_cannot_be_changed():
    with pytest.raises(TypeError, match="item assignment"):
        SHAPES["mine"] = SHAPES["two-rings"]

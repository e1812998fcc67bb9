"""Laws of the synthetic data: any rows can be made alone, and they are what they are called."""

import numpy as np
import pytest

from mmcnb.datasets import make_block, write_synthetic
from mmcnb.errors import InputError
from mmcnb.samples import BLOCK_ROWS, open_samples
from mmcnb.stores import open_class_labels

KINDS = ("rings", "moons", "blobs", "arcs")


@pytest.mark.parametrize("kind", KINDS)
def test_any_range_is_a_part_of_the_whole_and_of_the_store(kind, tmp_path):
    n = 2 * BLOCK_ROWS + 17
    X, y = make_block(kind, 0, n, 3, random_state=7)
    assert (X.dtype, y.dtype) == (np.float32, np.int64)
    for start, stop in (
        (0, 0),
        (5, 9),
        (BLOCK_ROWS - 1, BLOCK_ROWS + 1),
        (BLOCK_ROWS, n),
        (17, 2 * BLOCK_ROWS),
    ):
        part_X, part_y = make_block(kind, start, stop, 3, random_state=7)
        np.testing.assert_array_equal(part_X, X[start:stop])
        np.testing.assert_array_equal(part_y, y[start:stop])
    write_synthetic(kind, tmp_path / "s.zarr", n, 3, random_state=7)
    np.testing.assert_array_equal(open_samples(tmp_path / "s.zarr").block(0, n), X)
    np.testing.assert_array_equal(open_class_labels(tmp_path / "s.zarr"), y)


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_differ_and_blocks_differ(kind):
    X, y = make_block(kind, 0, 2 * BLOCK_ROWS, 2, random_state=0)
    other, _ = make_block(kind, 0, BLOCK_ROWS, 2, random_state=1)
    assert not np.array_equal(X[:BLOCK_ROWS], other)
    assert not np.array_equal(X[:BLOCK_ROWS], X[BLOCK_ROWS:])
    assert y.mean() == pytest.approx(0.5, abs=0.05)


def test_rings_have_their_radii_and_spreads():
    X, y = make_block("rings", 0, 20000, 5)
    radius = np.hypot(X[:, 0], X[:, 1])
    for ring, expected in enumerate((1.0, 0.4)):
        assert radius[y == ring].mean() == pytest.approx(expected, abs=0.01)
        assert radius[y == ring].std() == pytest.approx(0.05, rel=0.05)
    np.testing.assert_allclose(X[:, 2:].std(axis=0), 0.03, rtol=0.05)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=0.02)


def test_moons_lie_on_their_half_circles():
    X, y = make_block("moons", 0, 20000, 2)
    centres = np.array([[0.0, 0.0], [1.0, 0.5]])[y]
    radius = np.hypot(*(X - centres).T)
    assert radius.mean() == pytest.approx(1.0, abs=0.01)
    assert radius.std() == pytest.approx(0.05, rel=0.05)


def test_blobs_are_as_many_as_asked_and_of_unit_variance():
    X, y = make_block("blobs", 0, 20000, 4, n_clusters=5)
    assert set(y) == set(range(5))
    for blob in range(5):
        np.testing.assert_allclose(X[y == blob].std(axis=0), 1.0, rtol=0.05)


def test_arcs_are_half_circles_each_in_a_plane_of_its_own():
    X, y = make_block("arcs", 0, 20000, 8, n_clusters=3)
    assert set(y) == {0, 1, 2}
    for arc in range(3):
        variances = np.linalg.eigvalsh(np.cov(X[y == arc].T))
        np.testing.assert_allclose(np.sqrt(variances[:-2]), 0.05, rtol=0.1)
        # along the arc's chord cos has variance 1/2, across it sin has 1/2 - (2/pi)**2
        expected = np.array([0.5 - (2 / np.pi) ** 2, 0.5]) + 0.05**2
        np.testing.assert_allclose(variances[-2:], expected, rtol=0.05)


@pytest.mark.parametrize(
    ("arguments", "n_clusters", "sentence"),
    [
        (("spirals", 0, 1, 2), 2, "kind='spirals' is unknown; choose one of 'rings'"),
        (("rings", 0, 1, 1), 2, "n_features=1 is out of range"),
        (("rings", 5, 1, 2), 2, "rows 5 to 1"),
        (("rings", 0, 1, 2, -1), 2, "random_state=-1 is out of range"),
        (("rings", 0, 1, 2), 3, r"n_clusters=3 .* at most 2"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, n_clusters, sentence):
    with pytest.raises(InputError, match=sentence):
        make_block(*arguments, n_clusters=n_clusters)


def test_a_store_that_is_there_is_kept_unless_told_otherwise(tmp_path):
    with pytest.raises(InputError, match="n_samples=0 is out of range"):
        write_synthetic("rings", tmp_path / "s.zarr", 0, 2)
    assert list(tmp_path.iterdir()) == []
    write_synthetic("rings", tmp_path / "s.zarr", 10, 2)
    with pytest.raises(InputError, match="exists"):
        write_synthetic("rings", tmp_path / "s.zarr", 20, 2)
    assert open_samples(tmp_path / "s.zarr").n_samples == 10
    write_synthetic("rings", tmp_path / "s.zarr", 20, 2, overwrite=True)
    assert open_samples(tmp_path / "s.zarr").n_samples == 20

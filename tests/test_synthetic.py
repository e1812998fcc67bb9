"""Laws of the synthetic data: any rows can be made alone, and they are what they are called."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmcnb.datasets import make_block, write_synthetic
from mmcnb.errors import InputError
from mmcnb.samples import BLOCK_ROWS, open_samples
from mmcnb.stores import open_class_labels

KINDS = ("rings", "moons", "blobs", "arcs")


@settings(max_examples=25)
@given(
    st.sampled_from(KINDS), st.integers(0, 3 * BLOCK_ROWS), st.integers(0, 2 * BLOCK_ROWS), st.integers(0, 3)
)
def test_any_range_is_a_part_of_the_whole(kind, start, length, seed):
    stop = start + length
    X, y = make_block(kind, 0, stop, 3, seed)
    part_X, part_y = make_block(kind, start, stop, 3, seed)
    np.testing.assert_array_equal(part_X, X[start:])
    np.testing.assert_array_equal(part_y, y[start:])
    assert part_X.dtype == np.float32
    assert part_y.dtype == np.int64


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_differ_and_blocks_differ(kind):
    X, y = make_block(kind, 0, 2 * BLOCK_ROWS, 2, random_state=0)
    other, _ = make_block(kind, 0, BLOCK_ROWS, 2, random_state=1)
    assert not np.array_equal(X[:BLOCK_ROWS], other)
    assert not np.array_equal(X[:BLOCK_ROWS], X[BLOCK_ROWS:])
    assert abs(y.mean() - 0.5) < 0.05


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
        rows = X[y == arc]
        variances = np.linalg.eigvalsh(np.cov(rows.T))
        np.testing.assert_allclose(np.sqrt(variances[:-2]), 0.05, rtol=0.1)
        # along the arc's chord cos has variance 1/2, across it sin has 1/2 - (2/pi)**2
        expected = np.array([0.5 - (2 / np.pi) ** 2, 0.5]) + 0.05**2
        np.testing.assert_allclose(variances[-2:], expected, rtol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_the_store_holds_the_same_rows(tmp_path, kind):
    n = BLOCK_ROWS + 17
    write_synthetic(kind, tmp_path / "s.zarr", n, 3, random_state=7)
    samples = open_samples(tmp_path / "s.zarr")
    X, y = make_block(kind, 0, n, 3, 7)
    assert (samples.n_samples, samples.n_features) == X.shape
    np.testing.assert_array_equal(samples.block(0, n), X)
    np.testing.assert_array_equal(open_class_labels(tmp_path / "s.zarr"), y)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("spirals", 0, 1, 2), "kind='spirals' is unknown; choose one of 'rings'"),
        (("rings", 0, 1, 1), "n_features=1 is out of range"),
        (("rings", 5, 1, 2), "rows 5 to 1"),
        (("rings", 0, 1, 2, -1), "random_state=-1 is out of range"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        make_block(*arguments)


def test_rings_are_two(tmp_path):
    with pytest.raises(InputError, match=r"n_clusters=3 .* at most 2"):
        make_block("rings", 0, 1, 2, n_clusters=3)
    with pytest.raises(InputError, match="n_samples=0 is out of range"):
        write_synthetic("rings", tmp_path / "s.zarr", 0, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_there_is_kept_unless_told_otherwise(tmp_path):
    write_synthetic("rings", tmp_path / "s.zarr", 10, 2)
    with pytest.raises(InputError, match="exists"):
        write_synthetic("rings", tmp_path / "s.zarr", 20, 2)
    assert open_samples(tmp_path / "s.zarr").n_samples == 10
    write_synthetic("rings", tmp_path / "s.zarr", 20, 2, overwrite=True)
    assert open_samples(tmp_path / "s.zarr").n_samples == 20

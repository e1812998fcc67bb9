"""The real files: rows, features, classes, and what is known of their numbers."""

import os
from itertools import pairwise

import numpy as np
import pytest

import data_loaders
from benchmarks.studies.small import sparsity
from data_loaders import Source, usps
from data_loaders._registry import DATASETS, PAPER_PAIRS, find_dataset

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real_data,
    pytest.mark.skipif(
        "MMCNB_DATA_DIR" not in os.environ, reason="MMCNB_DATA_DIR does not name the real data"
    ),
]
EXTENDED = ("usps-extended", "usps-extended-test")


def need(*names):
    for name in names:
        missing = [file.path for file in find_dataset(name).files if Source().find(file) is None]
        if missing:
            pytest.skip(f"{missing[0]} is not in MMCNB_DATA_DIR")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in (*DATASETS, *PAPER_PAIRS) if name not in EXTENDED])
def test_rows_features_and_classes(name):
    need(name)
    dataset = find_dataset(name)
    X, y = data_loaders.load(name)
    assert X.shape == (dataset.n_samples, dataset.n_features)
    assert X.dtype == dataset.dtype
    assert y.dtype == np.int64
    classes, counts = np.unique(y, return_counts=True)
    assert dict(zip(classes.tolist(), counts.tolist(), strict=True)) == dict(dataset.class_counts)


# Per cent that is not zero in Tab. I, Tab. IV and §5.3.2 of the SKMMC paper, where the raw files fit it.
@pytest.mark.parametrize(
    ("name", "percentage"),
    [
        ("spectf", 100.00),
        ("heart", 75.10),
        ("haberman", 85.19),
        ("liver", 99.57),
        ("ionosphere", 88.09),
        ("german", 74.95),
        ("waveform-1v2", 99.70),
        ("mnist-1v7", 13.75),
        ("mnist-2v7", 19.10),
        ("mnist-3v8", 21.48),
        ("mnist-8v9", 20.20),
        ("adult", 11.28),
    ],
)
def test_the_share_of_non_zeros_is_the_papers(name, percentage):
    need(name)
    assert sparsity(data_loaders.load(name)[0]) == pytest.approx(percentage, abs=0.005)


def test_each_adult_set_is_an_ordered_part_of_the_next():
    names = [f"a{number}a" for number in range(1, 10)]
    need(*names)
    rows = []
    for name in names:
        X, y = data_loaders.load(name)
        parts = np.split(X.indices, X.indptr[1:-1])
        rows.append([(label, part.tobytes()) for label, part in zip(y.tolist(), parts, strict=True)])
    for smaller, larger in pairwise(rows):
        remaining = iter(larger)
        assert all(row in remaining for row in smaller)


def test_adult_has_ones_alone():
    need("adult")
    X, _ = data_loaders.load("adult")
    assert set(X.data) == {1.0}
    assert X.nnz / X.shape[0] == pytest.approx(13.87, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "images"), [("usps-extended", 2199), ("usps-extended-test", 623)])
def test_the_extended_usps_is_121_images_of_each_zero_and_one(name, images):
    need(name)
    dataset = DATASETS[name]
    assert dataset.n_samples == 121 * images
    content = Source().content(dataset.files[0], dataset.page)
    [(pixels, digits)] = usps.read_zip(content)
    ink = np.count_nonzero(pixels[digits <= 1] > -1)
    nonzero = 0
    for X, _ in dataset.blocks([content]):
        nonzero += np.count_nonzero(X)
        assert X.min() >= 0
        assert X.max() <= 1
    assert nonzero == 121 * ink
    if name == "usps-extended":
        assert 100 * nonzero / (dataset.n_samples * dataset.n_features) == pytest.approx(14.951, abs=0.0005)


def test_draws_of_the_extended_usps_are_nested():
    need("usps-extended")
    smaller, larger = (data_loaders.load("usps-extended", rows=rows, random_state=0) for rows in (300, 3000))
    assert smaller[0].shape == (300, 676)
    remaining = iter(map(bytes, larger[0]))
    assert all(bytes(row) in remaining for row in smaller[0])
    assert np.bincount(larger[1]).tolist() == pytest.approx([1629, 1371], abs=120)


def test_ringnorm_has_one_class_of_four_times_the_variance():
    need("ringnorm")
    X, y = data_loaders.load("ringnorm")
    assert X[y == 1].var() / X[y == -1].var() == pytest.approx(4, abs=0.1)


def test_waveform_has_the_rows_of_its_two_classes_in_order():
    need("waveform")
    X, y = data_loaders.load("waveform")
    X_pair, y_pair = data_loaders.load("waveform-1v2")
    np.testing.assert_array_equal(X[y > 0], X_pair)
    np.testing.assert_array_equal(y[y > 0], y_pair)
    # The last 19 features are noise of mean 0 and variance 1.
    assert np.abs(X[:, 21:].mean(axis=0)).max() < 0.05
    assert X[:, 21:].var(axis=0) == pytest.approx(1, abs=0.05)


def test_pen_digits_are_points_of_a_square():
    need("pendigits")
    X, _ = data_loaders.load("pendigits")
    assert (X.min(), X.max()) == (0, 100)
    assert np.array_equal(X, np.round(X))


@pytest.mark.parametrize(
    ("name", "constant", "ratio"), [("segment", 1, 1e3), ("wdbc", 0, 1e5), ("magic", 0, 5e2)]
)
def test_columns_differ_in_spread(name, constant, ratio):
    need(name)
    spread = data_loaders.load(name)[0].std(axis=0)
    assert np.count_nonzero(spread == 0) == constant
    assert spread.max() > ratio * spread[spread > 0].min()


def test_satellite_has_the_rows_of_the_papers_pair():
    need("satellite", "satellite-1v2")
    X, y = data_loaders.load("satellite")
    X_pair, y_pair = data_loaders.load("satellite-1v2")
    np.testing.assert_array_equal(X[y <= 2], X_pair)
    np.testing.assert_array_equal(y[y <= 2], y_pair)


@pytest.mark.parametrize("name", ["coil20", "yale", "pixraw10p"])
def test_pixels_are_from_0_to_1(name):
    need(name)
    X, _ = data_loaders.load(name)
    assert X.min() == 0
    assert X.max() == (np.float32(62 / 255) if name == "pixraw10p" else 1)


@pytest.mark.parametrize("name", ["lymphoma", "nci9", "leukemia"])
def test_expression_is_in_few_steps(name):
    need(name)
    assert set(np.unique(data_loaders.load(name)[0])) <= {-2, -1, 0, 1, 2}


@pytest.mark.parametrize(
    ("name", "empty"), [("agnews", 0), ("tweet", 3), ("stackoverflow", 32), ("search-snippets", 5)]
)
def test_texts_have_length_1_or_no_word(name, empty):
    need(name)
    X, _ = data_loaders.load(name)
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    assert np.count_nonzero(length == 0) == empty
    assert length[length > 0] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ["agnews", "tweet", "search-snippets"])
def test_embedded_texts_have_length_1_and_the_classes_of_the_texts(name):
    need(name, f"{name}-embedded")
    X, y = data_loaders.load(f"{name}-embedded")
    assert np.linalg.norm(X, axis=1) == pytest.approx(1, abs=1e-4)
    np.testing.assert_array_equal(y, data_loaders.load(name)[1])

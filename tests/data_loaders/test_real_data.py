"""The published files: that they load as their facts say, and what is known of their numbers."""

import os

import numpy as np
import pytest

import data_loaders
from mmcnb import InputError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real_data,
    pytest.mark.skipif(
        "MMCNB_DATA_DIR" not in os.environ,
        reason="MMCNB_DATA_DIR does not name the real data",
    ),
]
# Per cent that is not zero in Tab. I and Tab. IV of the SKMMC paper, where the raw
# files fit it.
NON_ZERO = {
    "spectf": 100.00,
    "heart": 75.10,
    "haberman": 85.19,
    "liver": 99.57,
    "ionosphere": 88.09,
    "german": 74.95,
    "waveform-1v2": 99.70,
    "mnist-3v8": 21.48,
    "adult": 11.28,
}
ROWS = {fact["name"]: fact["n_samples"] for fact in data_loaders.registry()}
LARGE = [
    pytest.param(name, marks=pytest.mark.nightly) for name in ROWS if ROWS[name] > 3000
]


def load(name, **options):
    try:
        return data_loaders.load(name, **options)
    except InputError as error:
        pytest.skip(str(error))


# Loading compares rows, features, classes and the hash of each file with those that are
# known.
@pytest.mark.parametrize(
    "name", [*(name for name in ROWS if ROWS[name] <= 3000), *LARGE]
)
def test_the_files_are_those_that_were_published(name):
    X, y = load(name)
    assert len(y) == X.shape[0] == ROWS[name]


@pytest.mark.parametrize("name", NON_ZERO)
def test_the_share_of_non_zeros_is_the_papers(name):
    X, _ = load(name)
    share = 100 * (X != 0).sum() / np.prod(X.shape)
    assert share == pytest.approx(NON_ZERO[name], abs=0.005)


@pytest.mark.parametrize(
    ("whole", "classes"), [("waveform", [1, 2]), ("satellite", [1, 2])]
)
def test_the_papers_pairs_are_rows_of_the_whole_in_order(whole, classes):
    X, y = load(whole)
    pair, pair_classes = load(f"{whole}-1v2")
    np.testing.assert_array_equal(X[np.isin(y, classes)], pair)
    np.testing.assert_array_equal(y[np.isin(y, classes)], pair_classes)

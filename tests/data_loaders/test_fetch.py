"""Data sets in scikit-learn's manner, by their public name."""

import numpy as np
import pytest
from sklearn.utils import Bunch

import data_loaders
import mmcnb
from mmcnb import InputError
from mmcnb.datasets import (
    fetch_adult,
    fetch_mnist,
    fetch_optdigits,
    fetch_pendigits,
    fetch_uci,
    fetch_usps,
)

SUBSETS = [fetch_adult, fetch_mnist, fetch_usps, fetch_optdigits, fetch_pendigits]


def test_the_public_name_is_the_same_module():
    assert mmcnb.datasets is data_loaders


def test_a_bunch_has_rows_classes_and_a_description(data_dir):
    bunch = fetch_uci("australian")
    assert isinstance(bunch, Bunch)
    X, y = fetch_uci("australian", return_X_y=True)
    np.testing.assert_array_equal(bunch.data, X)
    np.testing.assert_array_equal(bunch.target, y)
    facts = "australian: 690 rows, 14 features; rows of each class: 0: 383, 1: 307."
    assert bunch.DESCR.startswith(facts)


@pytest.mark.parametrize("fetch", SUBSETS)
def test_an_unknown_name_is_refused_with_those_there_are(fetch):
    with pytest.raises(
        InputError, match=r"^subset='half' is unknown; choose one of .*\.$"
    ):
        fetch(subset="half")
    with pytest.raises(InputError, match=r"choose one of .*ionosphere.*magic"):
        fetch_uci("mnist")


def test_without_a_download_a_missing_or_other_file_is_told(tmp_path, monkeypatch):
    monkeypatch.delenv("MMCNB_DATA_DIR", raising=False)
    options = {
        "subset": "a1a",
        "data_home": tmp_path / "home",
        "download_if_missing": False,
    }
    with pytest.raises(
        InputError, match=r"adult/a1a is not in the data folder .* are switched off"
    ):
        fetch_adult(**options)
    (tmp_path / "home/adult").mkdir()
    (tmp_path / "home/adult/a1a").write_bytes(b"-1 3:1 11:1 \n+1 5:1 \n")
    with pytest.raises(InputError, match="a1a is not the file that was published"):
        fetch_adult(**options)


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize(
    "fetch", [fetch_usps, fetch_optdigits, fetch_pendigits, lambda: fetch_uci("iris")]
)
def test_each_column_of_a_published_set_has_its_name(fetch):
    try:
        bunch = fetch()
    except InputError as error:
        pytest.skip(str(error))
    assert len(set(bunch.feature_names)) == bunch.data.shape[1]

"""Data sets in scikit-learn's manner, by their public name."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import Bunch

import data_loaders
import mmcnb
from data_loaders import _fetch
from mmcnb import InputError
from mmcnb.datasets import fetch_adult, fetch_mnist, fetch_optdigits, fetch_pendigits, fetch_uci, fetch_usps

ROOT = Path(__file__).parents[2]
LINES = b"-1 3:1 11:1 \n+1 5:1 \n"
DIGITS = [fetch_mnist, fetch_usps, fetch_optdigits, fetch_pendigits]


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.delenv("MMCNB_DATA_DIR", raising=False)


@pytest.fixture
def asked(monkeypatch):
    """Names that are asked of `load`, which gives two rows."""
    names = []

    def load(name, *, source):
        names.append(name)
        return np.zeros((2, 4)), np.array([0, 1])

    monkeypatch.setattr(_fetch, "load", load)
    return names


def test_the_public_name_is_the_same_module():
    assert mmcnb.datasets is data_loaders
    assert sys.modules["mmcnb.datasets"] is data_loaders


@pytest.mark.slow
@pytest.mark.parametrize("module", ["data_loaders", "mmcnb.datasets"])
def test_both_names_run(module):
    done = subprocess.run([sys.executable, "-m", module, "list"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0
    assert "adult" in done.stdout
    helped = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, cwd=ROOT
    )
    assert helped.stdout.startswith(f"usage: python -m {module} ")


def test_a_bunch_has_rows_classes_names_and_a_description(asked):
    found = fetch_uci("iris")
    assert isinstance(found, Bunch)
    assert found.data.shape == (2, 4)
    assert found.target.tolist() == [0, 1]
    assert found.feature_names[3] == "petal width (cm)"
    assert found.DESCR.startswith("iris: 150 rows, 4 features; rows of each class: 0: 50, 1: 50, 2: 50.")
    assert "versicolor (1)" in found.DESCR
    X, y = fetch_uci("iris", return_X_y=True)
    np.testing.assert_array_equal(X, found.data)
    np.testing.assert_array_equal(y, found.target)


def test_feature_names_are_as_many_as_columns(asked):
    for fetch in DIGITS:
        for subset in ("all", "train", "test"):
            names = fetch(subset=subset).feature_names
            assert len(set(names)) == len(names) == data_loaders._registry.find_dataset(asked[-1]).n_features
    assert len(asked) == 12
    assert {"mnist", "usps-train", "optdigits-tes", "pendigits-test"} <= set(asked)


def test_the_names_of_the_census_form(asked):
    assert fetch_adult().feature_names is None
    fetch_adult(subset="a9a.t")
    assert asked == ["a9a", "a9a.t"]


@pytest.mark.parametrize("fetch", [fetch_adult, *DIGITS])
def test_an_unknown_subset_is_refused_with_those_there_are(fetch, asked):
    with pytest.raises(InputError, match=r"^subset='half' is no data set here; choose one of .*\.$"):
        fetch(subset="half")
    assert asked == []


def test_an_unknown_name_is_refused_with_those_there_are(asked):
    with pytest.raises(InputError, match=r"choose one of .*ionosphere.*magic"):
        fetch_uci("mnist")


def test_without_a_download_a_missing_file_is_told(offline, tmp_path):
    with pytest.raises(
        InputError, match=r"adult/a1a is not in the data folder .* downloads are switched off"
    ):
        fetch_adult(subset="a1a", data_home=tmp_path / "home", download_if_missing=False)
    assert (tmp_path / "home").is_dir()


def test_files_are_found_in_the_data_home(offline, tmp_path):
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "a1a").write_bytes(LINES)
    with pytest.raises(InputError, match="a1a is not the file that was published"):
        fetch_adult(subset="a1a", data_home=tmp_path, download_if_missing=False)


@pytest.mark.real_data
def test_the_published_rows_come_out():
    try:
        found = fetch_adult(subset="a1a", download_if_missing=False)
    except InputError as error:
        pytest.skip(str(error))
    assert found.data.shape == (1605, 123)
    assert np.bincount(found.target + 1).tolist() == [1210, 0, 395]
    assert "LIBSVM" in found.DESCR

"""The sets of CLUBench: read from a clone that the environment names."""

import numpy as np
import pytest

from benchmarks.protocol import NoData
from benchmarks.studies._choice_clubench import VARIABLE, load

ROWS = 50


@pytest.fixture(autouse=True)
def nothing_loaded():
    load.cache_clear()


def test_rows_of_a_clone_are_standardised_and_classes_numbered(tmp_path, monkeypatch):
    folder = tmp_path / "CLUBench" / "datasets"
    folder.mkdir(parents=True)
    x = np.random.RandomState(0).normal(3, 7, size=(80, 4))
    x[:, 3] = 1.0
    np.savez(folder / "zoo.npz", x=x, y=np.repeat([2, 5], 40))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    data = load("zoo", ROWS)
    assert data.X.shape == (ROWS, 4)
    assert np.allclose(data.X.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(data.X[:, :3].std(axis=0), 1, atol=1e-5)
    assert not data.X[:, 3].any()
    assert set(data.y) == {0, 1}


def test_a_missing_clone_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(NoData, match=f"set {VARIABLE} to the folder of a clone"):
        load("zoo", ROWS)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(NoData, match=r"zoo\.npz is missing"):
        load("zoo", ROWS)

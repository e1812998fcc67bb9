"""A file or a store that another program writes while a fit reads it ends the fit."""

import shutil

import numpy as np
import pandas as pd
import pytest
import zarr

import mmcnb
from mmcnb.errors import InputError
from tests.engine.fakes import after_each_pass

h5py = pytest.importorskip("h5py", reason="h5py reads HDF5")


def rows(seed):
    """Two blobs in more than one fixed block."""
    return (
        np.random.default_rng(seed).normal(size=(6000, 3))
        + 6 * (np.arange(6000) % 2)[:, None]
    )


def write_parquet(path, X):
    pd.DataFrame(X, columns=list("abc")).to_parquet(path, row_group_size=1000)


def write_csv(path, X):
    pd.DataFrame(X).to_csv(path, index=False)


def write_hdf5(path, X):
    with h5py.File(path, "w") as file:
        file["X"] = X


def write_zarr(path, X):
    zarr.create_array(path, data=X, chunks=(1000, 3))


def write_zarr_2(path, X):
    zarr.create_array(path, data=X, chunks=(1000, 3), zarr_format=2)


WRITERS = {
    "rows.npy": np.save,
    "rows.parquet": write_parquet,
    "rows.h5": write_hdf5,
    "rows.zarr": write_zarr,
    "version 2.zarr": write_zarr_2,
}


def exchange(path, other):
    """One file of a path becomes that of another place, in one step."""
    inside = [
        file.relative_to(path) for file in sorted(path.rglob("*")) if file.is_file()
    ]
    part = next(
        (
            file
            for file in inside
            if file.suffix != ".json" and not file.name.startswith(".z")
        ),
        "",
    )
    shutil.copy(other / part, path.parent / "new")
    (path.parent / "new").replace(path / part)


def model():
    return mmcnb.CPMMC(random_state=0, sample_size=200, n_init=1)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("at", [1, 2])
def test_a_change_between_two_passes_ends_the_fit(name, at, tmp_path):
    path = tmp_path / name
    other = tmp_path / f"other-{name}"
    WRITERS[name](path, rows(0))
    WRITERS[name](other, rows(1))
    element = "X" if name == "rows.h5" else None
    refusal = rf"{name}.* was changed by another program while it was read: run"
    with (
        after_each_pass(lambda passes: passes == at and exchange(path, other)),
        pytest.raises(InputError, match=refusal),
    ):
        model().fit(path, element=element)
    assert model().fit(path, element=element).labels_.shape == (6000,)  # the remedy


def test_a_table_that_has_fewer_rows_than_when_it_was_opened_is_refused(tmp_path):
    write_parquet(tmp_path / "rows.parquet", rows(0))
    samples = mmcnb.open_samples(tmp_path / "rows.parquet")
    write_parquet(tmp_path / "rows.parquet", rows(0)[:500])
    with pytest.raises(
        InputError, match=r"^[^\n]*rows\.parquet cannot be read \([^\n]*\.$"
    ):
        samples.block(0, 6000)


def test_text_is_read_once_so_that_all_labels_are_of_one_version(tmp_path):
    path = tmp_path / "rows.csv"
    write_csv(path, rows(0))
    write_csv(tmp_path / "other.csv", rows(1))
    expected = model().fit(path).labels_
    with after_each_pass(lambda _: exchange(path, tmp_path / "other.csv")):
        assert np.array_equal(model().fit(path).labels_, expected)
    assert not np.array_equal(pd.read_csv(path), rows(0))


def test_a_fit_of_a_file_that_stays_is_not_disturbed_by_files_beside_it(tmp_path):
    path = tmp_path / "group.zarr" / "rows"
    write_zarr(path, rows(0))
    with after_each_pass(lambda _: np.save(path.parent / "notes.npy", np.zeros(3))):
        labels = model().fit(path).labels_
    assert (path.parent / "notes.npy").exists()
    assert np.bincount(labels).tolist() == [3000, 3000]

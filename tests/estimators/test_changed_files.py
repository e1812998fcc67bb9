"""A file or a store that another program writes while a fit reads it ends the fit."""

import shutil
from itertools import islice

import numpy as np
import pandas as pd
import pytest
import zarr

import mmcnb
from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError
from mmcnb.tables import files

h5py = pytest.importorskip("h5py", reason="h5py reads HDF5")


def rows(seed):
    """Two blobs in more than one fixed block."""
    return np.random.default_rng(seed).normal(size=(6000, 3)) + 6 * (np.arange(6000) % 2)[:, None]


def write_npy(path, X):
    np.save(path, X)


def write_parquet(path, X):
    pd.DataFrame(X, columns=list("abc")).to_parquet(path, row_group_size=1000)


def write_hdf5(path, X):
    with h5py.File(path, "w") as file:
        file["X"] = X


def write_zarr(path, X, **options):
    array = zarr.create_array(path, shape=X.shape, chunks=(1000, 3), dtype="f8", **options)
    array[:] = X


def write_zarr_2(path, X):
    write_zarr(path, X, zarr_format=2)


def write_blosc(path, X):
    write_zarr(path, X, compressors=[zarr.codecs.BloscCodec()])


WRITERS = {
    "rows.npy": write_npy,
    "rows.parquet": write_parquet,
    "rows.h5": write_hdf5,
    "zstd.zarr": write_zarr,
    "v2.zarr": write_zarr_2,
    "blosc.zarr": write_blosc,
}


def exchanged(path, other):
    """One file of a path becomes that of another place, in one step."""
    inside = [file.relative_to(path) for file in sorted(path.rglob("*")) if file.is_file()]
    part = next((file for file in inside if file.suffix != ".json" and not file.name.startswith(".z")), "")
    shutil.copy(other / part, path.parent / "new")
    (path.parent / "new").replace(path / part)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("at", [1, 2])
def test_a_change_between_two_passes_ends_the_fit(name, at, tmp_path, monkeypatch):
    path, other = tmp_path / name, tmp_path / f"other-{name}"
    WRITERS[name](path, rows(0))
    WRITERS[name](other, rows(1))
    element = "X" if name == "rows.h5" else None
    run, count = ThreadEngine.stream, 0

    def stream(self, pass_, samples, description=""):
        nonlocal count
        yield from run(self, pass_, samples, description)
        count += self.traffic.watches(samples)
        if count == at:
            exchanged(path, other)

    model = mmcnb.CPMMC(random_state=0, sample_size=200, n_init=1)
    expected = model.fit(path, element=element).labels_
    monkeypatch.setattr(ThreadEngine, "stream", stream)
    with pytest.raises(InputError, match=rf"{name}.* was changed by another program while it was read: run"):
        model.fit(path, element=element)
    monkeypatch.undo()
    assert model.fit(path, element=element).labels_.shape == expected.shape  # the remedy


@pytest.mark.parametrize("left", [0, 1])
def test_a_table_that_has_fewer_rows_in_a_group_than_when_it_was_opened_is_refused(
    left, tmp_path, monkeypatch
):
    WRITERS["rows.parquet"](tmp_path / "rows.parquet", rows(0))
    samples = mmcnb.open_samples(tmp_path / "rows.parquet")
    monkeypatch.setattr(files, "step_rows", lambda *_: 7)
    parts = samples.table_rows.table.parts
    monkeypatch.setattr(samples.table_rows.table, "parts", lambda *given: islice(parts(*given), left))
    with pytest.raises(InputError, match=r"rows.parquet has other rows than when it was opened; run this"):
        samples.block(0, 10)


def test_text_is_read_once_so_that_all_labels_are_of_one_version(tmp_path, monkeypatch):
    for seed, name in enumerate(["rows.csv", "other.csv"]):
        pd.DataFrame(rows(seed)).to_csv(tmp_path / name, index=False)
    model = mmcnb.CPMMC(random_state=0, sample_size=200, n_init=1)
    expected, run = model.fit(tmp_path / "rows.csv").labels_, ThreadEngine.stream

    def stream(self, *given):
        yield from run(self, *given)
        exchanged(tmp_path / "rows.csv", tmp_path / "other.csv")

    monkeypatch.setattr(ThreadEngine, "stream", stream)
    assert np.array_equal(model.fit(tmp_path / "rows.csv").labels_, expected)


def test_a_fit_of_a_file_that_stays_is_not_disturbed_by_files_beside_it(tmp_path, monkeypatch):
    write_zarr(tmp_path / "group.zarr" / "rows", rows(0))
    run = ThreadEngine.stream

    def stream(self, *given):
        yield from run(self, *given)
        np.save(tmp_path / "group.zarr" / "notes.npy", np.zeros(3))

    monkeypatch.setattr(ThreadEngine, "stream", stream)
    model = mmcnb.CPMMC(random_state=0).fit(tmp_path / "group.zarr" / "rows")
    assert np.bincount(model.labels_).tolist() == [3000, 3000]

"""Headers of .npy and .npz files that claim more than the file holds are refused before anything is read."""

import zipfile

import numpy as np
import pytest

from mmcnb._machine import peak_memory
from mmcnb.errors import InputError
from mmcnb.samples import open_samples
from mmcnb.stores import convert

SHAPES = [(10**12, 3), (3, 10**12), (10**12, 10**12), (2**62, 8), (-1, 3)]


def claim(file, shape, by_columns=False, numbers=b""):
    header = {"descr": "<f8", "fortran_order": by_columns, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    file.write(numbers)


def refused(ask, name):
    before = peak_memory()
    with pytest.raises(InputError, match=rf"^[^\n]*{name}[^\n]*\.$"):
        ask()
    assert peak_memory() - before < 100 * 2**20


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("by_columns", [False, True])
def test_an_array_is_no_longer_than_its_file(tmp_path, shape, by_columns):
    with (tmp_path / "a.npy").open("wb") as file:
        claim(file, shape, by_columns, bytes(240))
    refused(lambda: open_samples(tmp_path / "a.npy"), "a.npy")
    refused(lambda: convert(tmp_path / "a.npy", tmp_path / "out.zarr"), "a.npy")
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["X", "y", "indptr"])
def test_a_member_is_no_longer_than_its_archive_says(tmp_path, shape, name):
    arrays = {"X": np.zeros((4, 2)), "y": np.zeros(4)}
    if name == "indptr":
        arrays = {"data": np.zeros(4), "indices": np.zeros(4, int), "shape": np.array([4, 2])}
    np.savez(tmp_path / "whole.npz", **arrays)
    with zipfile.ZipFile(tmp_path / "whole.npz") as whole, zipfile.ZipFile(tmp_path / "a.npz", "w") as out:
        for member in whole.namelist():
            if member != f"{name}.npy":
                out.writestr(member, whole.read(member))
        with out.open(f"{name}.npy", "w") as file:
            claim(file, shape, numbers=bytes(64))
    refused(lambda: convert(tmp_path / "a.npz", tmp_path / "out.zarr"), "a.npz")


@pytest.mark.parametrize(
    "header", [b"{'descr': '<f8', 'shape': (3, 2),", b"(" * 9000, b"[" * 9000, b"'''", b"{'shape': 1}"]
)
def test_a_damaged_header_is_one_sentence(tmp_path, header):
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(48)
    (tmp_path / "a.npy").write_bytes(content)
    refused(lambda: open_samples(tmp_path / "a.npy"), "a.npy")
    refused(lambda: convert(tmp_path / "a.npy", tmp_path / "out.zarr"), "a.npy")

"""Headers of .npy and .npz files that claim more than the file holds are refused before anything is read."""

import tracemalloc
import zipfile

import numpy as np
import pytest

from mmcnb import open_samples
from mmcnb.stores import convert
from tests.samples.common import one_sentence

SHAPES = [(10**12, 3), (3, 10**12), (2**62, 8), (-1, 3)]


def claim(file, shape, by_columns=False):
    header = {"descr": "<f8", "fortran_order": by_columns, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    file.write(bytes(240))


def assert_refused(path):
    """It is neither opened nor converted."""
    for ask in (open_samples, lambda path: convert(path, path.with_name("out.zarr"))):
        with one_sentence(rf"{path.name}.*\.$"):
            ask(path)
    assert not path.with_name("out.zarr").exists()


@pytest.fixture
def little_memory():
    """The test takes little memory."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("by_columns", [False, True])
def test_an_array_is_no_longer_than_its_file(tmp_path, shape, by_columns):
    with (tmp_path / "a.npy").open("wb") as file:
        claim(file, shape, by_columns)
    assert_refused(tmp_path / "a.npy")


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("shape", [*SHAPES, (29, 1), (31, 1)])
@pytest.mark.parametrize("name", ["X", "y", "indptr"])
def test_a_member_is_as_long_as_its_archive_says(tmp_path, shape, name):
    arrays = {"X": np.zeros((4, 2)), "y": np.zeros(4)}
    if name == "indptr":
        arrays = {
            "data": np.zeros(4),
            "indices": np.zeros(4, int),
            "shape": np.array([4, 2]),
        }
    arrays.pop(name, None)
    np.savez(tmp_path / "a.npz", **arrays)
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "a") as archive,
        archive.open(f"{name}.npy", "w") as file,
    ):
        claim(file, shape)
    assert_refused(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'shape': (3, 2),",
        b"(" * 9000,
        b"[" * 9000,
        b"'''",
        b"{'shape': 1}",
    ],
)
def test_a_damaged_header_is_one_sentence(tmp_path, header):
    content = (
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(48)
    )
    (tmp_path / "a.npy").write_bytes(content)
    assert_refused(tmp_path / "a.npy")

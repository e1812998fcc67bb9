"""HDF5 files may hold links: those inside the file are followed, and no file opens another one."""

import numpy as np
import pytest

from mmcnb import InputError
from mmcnb.errors import DamagedStoreError
from mmcnb.samples import open_samples

h5py = pytest.importorskip("h5py", reason="h5py is not installed")
ROWS = np.arange(12.0).reshape(6, 2)


@pytest.fixture
def other(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = ROWS
    return tmp_path / "other.h5"


def write(path, key, link):
    with h5py.File(path, "w") as file:
        file["rows"] = ROWS
        file[key] = link
    return path


@pytest.mark.parametrize("element", ["rows", "same", "by/way"])
def test_links_inside_the_file_are_followed(tmp_path, element):
    path = tmp_path / "rows.h5"
    with h5py.File(path, "w") as file:
        file["rows"] = ROWS
        file["same"] = h5py.SoftLink("/rows")
        file.create_group("by")["way"] = h5py.SoftLink("/same")
    assert open_samples(path, element).block(0, 6).tolist() == ROWS.tolist()


def test_link_to_another_file_is_refused_by_its_name(tmp_path, other):
    path = write(tmp_path / "rows.h5", "X", h5py.ExternalLink(other, "X"))
    with pytest.raises(InputError, match=r"X leads to the file .*other.h5.*copy them into one"):
        open_samples(path)


def test_link_behind_a_link_is_refused_too(tmp_path, other):
    path = write(tmp_path / "rows.h5", "out", h5py.ExternalLink(other, "/"))
    with h5py.File(path, "a") as file:
        file["X"] = h5py.SoftLink("/out/X")
    with pytest.raises(InputError, match="leads to the file"):
        open_samples(path)


def test_links_in_a_circle_are_refused(tmp_path):
    with pytest.raises(DamagedStoreError, match="lead in a circle"):
        open_samples(write(tmp_path / "rows.h5", "X", h5py.SoftLink("/X")))


def test_numbers_in_other_files_are_refused(tmp_path, other):
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        layout = h5py.VirtualLayout(ROWS.shape, ROWS.dtype)
        layout[...] = h5py.VirtualSource(other, "X", ROWS.shape)
        file.create_virtual_dataset("X", layout)
        file.create_dataset("raw", ROWS.shape, ROWS.dtype, external=[(str(tmp_path / "raw"), 0, ROWS.nbytes)])
    for element in ("X", "raw"):
        with pytest.raises(InputError, match="keeps its numbers in other files"):
            open_samples(tmp_path / "rows.h5", element)

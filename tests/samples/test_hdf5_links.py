"""HDF5 files may hold links: those inside the file are followed, and no file opens another one."""

import numpy as np
import pytest

from mmcnb import open_samples
from mmcnb.errors import DamagedStoreError
from tests.samples.common import one_sentence

h5py = pytest.importorskip("h5py", reason="h5py is not installed")
ROWS = np.arange(12.0).reshape(6, 2)


@pytest.fixture
def path(tmp_path):
    """A file of rows, with links inside it and to a file beside it."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = ROWS
    other = tmp_path / "other.h5"
    layout = h5py.VirtualLayout(ROWS.shape, ROWS.dtype)
    layout[...] = h5py.VirtualSource(other, "X", ROWS.shape)
    raw = [(str(tmp_path / "raw"), 0, ROWS.nbytes)]
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["rows"] = ROWS
        file["same"] = h5py.SoftLink("/rows")
        file.create_group("by")["way"] = h5py.SoftLink("/same")
        file["circle"] = h5py.SoftLink("/circle")
        file["out"] = h5py.ExternalLink(other, "X")
        file["whole"] = h5py.ExternalLink(other, "/")
        file["behind"] = h5py.SoftLink("/whole/X")
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("raw", ROWS.shape, ROWS.dtype, external=raw)
    return tmp_path / "rows.h5"


@pytest.mark.parametrize("element", ["rows", "same", "by/way"])
def test_links_inside_the_file_are_followed(path, element):
    assert open_samples(path, element).block(0, 6).tolist() == ROWS.tolist()


@pytest.mark.parametrize("element", ["out", "behind"])
def test_a_link_to_another_file_is_refused_by_its_name(path, element):
    with one_sentence(r"leads to the file .*other.h5.*copy the data into one"):
        open_samples(path, element)


@pytest.mark.parametrize("element", ["virtual", "raw"])
def test_numbers_in_other_files_are_refused(path, element):
    with one_sentence("stores its numbers in other files"):
        open_samples(path, element)


def test_links_in_a_circle_are_refused(path):
    with one_sentence("lead in a circle", DamagedStoreError):
        open_samples(path, "circle")

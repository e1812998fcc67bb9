"""Files are read from regular files alone: a pipe, a socket or a device is refused at once."""

import os
import socket

import numpy as np
import pytest

import mmcnb
from mmcnb import open_samples
from mmcnb.stores import convert, create_dense_store
from tests.samples.common import one_sentence

READERS = {
    "rows.npy": open_samples,
    "rows.h5": open_samples,
    "rows.npz": lambda path: convert(path, f"{path}.zarr"),
    "model": mmcnb.load,
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused_at_once(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with one_sentence(rf"{name} is a pipe, not a regular file: copy its contents to a file"):
        READERS[name](tmp_path / name)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no sockets among its files")
def test_sockets_devices_and_nothing_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket may not be long
    (tmp_path / "device.npy").symlink_to(os.devnull)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.npy")
        for kind in ("socket", "device"):
            with one_sentence(rf"{kind}\.npy is a {kind}, not a regular file"):
                open_samples(f"{kind}.npy")
    with one_sentence(r"nothing\.npy does not exist: check the path"):
        open_samples(tmp_path / "nothing.npy")


def test_a_document_of_a_store_is_read_up_to_its_bound(tmp_path):
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(np.eye(3))
    os.truncate(tmp_path / "rows.zarr/X/zarr.json", 2**40)  # it takes no place on the disk
    with one_sentence(r"X/zarr\.json has more than 67,108,864 bytes, .*it\.$"):
        open_samples(tmp_path / "rows.zarr")

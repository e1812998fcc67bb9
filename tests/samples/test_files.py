"""Local files are read by one function, which takes regular files alone and never waits."""

import os
import shutil
import socket
import threading

import numpy as np
import pytest

import mmcnb
from mmcnb.errors import InputError
from mmcnb.samples import _files as files
from mmcnb.samples import open_samples
from mmcnb.stores import convert, create_dense_store

ROWS = np.arange(12.0).reshape(4, 3)
READERS = {
    "rows.npy": open_samples,
    "rows.h5": open_samples,
    "rows.npz": lambda path: convert(path, f"{path}.zarr"),
    "model": mmcnb.load,
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused_at_once_and_its_copy_in_a_file_is_read(tmp_path, name):
    path = tmp_path / name
    os.mkfifo(path)
    with pytest.raises(InputError, match=rf"^[^\n]*{name} is a pipe, not a regular file: copy its contents"):
        READERS[name](path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_the_contents_of_a_pipe_are_read_from_a_copy(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    np.save(tmp_path / "rows.npy", ROWS)
    content = (tmp_path / "rows.npy").read_bytes()
    writer = threading.Thread(target=(tmp_path / "pipe.npy").write_bytes, args=(content,), daemon=True)
    with pytest.raises(InputError, match="copy its contents to a file"):
        open_samples(tmp_path / "pipe.npy")
    writer.start()
    with (tmp_path / "pipe.npy").open("rb") as pipe, (tmp_path / "copy.npy").open("wb") as copy:
        shutil.copyfileobj(pipe, copy)
    writer.join(timeout=60)
    assert np.array_equal(open_samples(tmp_path / "copy.npy").block(0, 4), ROWS)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no sockets among its files")
def test_sockets_devices_folders_and_nothing_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket may not be long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.npy")
        with pytest.raises(InputError, match=r"socket\.npy is a socket, not a regular file"):
            files.open_file("socket.npy")
    for path, kind in ((os.devnull, "device"), (tmp_path, "folder")):
        with pytest.raises(InputError, match=f"is a {kind}, not a regular file"):
            files.open_file(path)
    with pytest.raises(InputError, match=r"nothing\.npy does not exist: check the path"):
        open_samples(tmp_path / "nothing.npy")


def test_a_document_is_read_up_to_its_bound(tmp_path, monkeypatch):
    (tmp_path / "small").write_bytes(b"12345678")
    monkeypatch.setattr(files, "DOCUMENT_BYTES", 8)
    assert files.read_document(tmp_path / "small") == b"12345678"
    (tmp_path / "large").write_bytes(b"123456789")
    with pytest.raises(InputError, match="large has more than 8 bytes"):
        files.read_document(tmp_path / "large")


def test_a_document_of_a_store_is_read_up_to_its_bound(tmp_path):
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(ROWS)
    with (tmp_path / "rows.zarr" / "X" / "zarr.json").open("ab") as file:
        file.truncate(2**40)  # it takes no place on the disk
    with pytest.raises(InputError, match=r"X/zarr\.json has more than 67,108,864 bytes, [^\n]*it\.$"):
        open_samples(tmp_path / "rows.zarr")

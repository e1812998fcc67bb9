"""A tiny data set in the registry, a folder for its file, and a server for downloads."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from data_loaders._dataset import DataSet, File
from data_loaders._registry import DATASETS

IRIS_LINES = (
    b"5.1,3.5,1.4,0.2,Iris-setosa\n7.0,3.2,4.7,1.4,Iris-versicolor\n6.3,3.3,6.0,2.5,Iris-virginica\n\n"
)


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@dataclass(frozen=True)
class Server:
    """A web server on this machine, and the folder it serves."""

    url: str
    folder: Path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=folder)) as http:
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield Server(f"http://127.0.0.1:{http.server_address[1]}", folder)
        http.shutdown()
        thread.join()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """Three flowers of iris, in the registry as ``tiny``."""
    file = File("tiny/tiny.data", None, hashlib.sha256(IRIS_LINES).hexdigest())
    dataset = replace(DATASETS["iris"], name="tiny", class_counts={0: 1, 1: 1, 2: 1}, files=(file,))
    monkeypatch.setitem(DATASETS, "tiny", dataset)
    return dataset


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder that holds the file of ``tiny``, named by MMCNB_DATA_DIR."""
    folder = tmp_path / "data"
    (folder / "tiny").mkdir(parents=True)
    (folder / "tiny" / "tiny.data").write_bytes(IRIS_LINES)
    monkeypatch.setenv("MMCNB_DATA_DIR", str(folder))
    return folder

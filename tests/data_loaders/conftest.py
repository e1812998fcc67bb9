"""A data folder with a set in its publisher's form, and a server for downloads."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(tmp_path):
    """The address of a web server on this machine, and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(QuietHandler, directory=folder)
    ) as http:
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", folder
        http.shutdown()
        thread.join()


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    """The folder that MMCNB_DATA_DIR names, with made rows of "australian", of which no hash is known."""
    folder = tmp_path / "data"
    (folder / "australian").mkdir(parents=True)
    random = np.random.default_rng(0)
    y = random.permutation(np.repeat([0, 1], [383, 307]))
    rows = np.c_[random.integers(10, size=(690, 14)), y]
    np.savetxt(folder / "australian/australian.dat", rows, fmt="%d")
    monkeypatch.setenv("MMCNB_DATA_DIR", str(folder))
    return folder

"""Rows to read, the storage they can have, and a server of stores."""

import re
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.sparse
import zarr


@pytest.fixture
def rng():
    """A generator with a fixed seed."""
    return np.random.default_rng(0)


@pytest.fixture
def X(rng):
    """Dense float32 rows; more than two reduction blocks."""
    return rng.normal(size=(9000, 7)).astype(np.float32)


@pytest.fixture
def csr(rng):
    """Sparse float32 rows, some of them empty."""
    matrix = scipy.sparse.random_array(
        (9000, 40), density=0.1, rng=rng, dtype=np.float32, format="csr"
    )
    matrix.sort_indices()
    return matrix


@pytest.fixture
def write_csr(tmp_path):
    """A function that writes a CSR group in AnnData's encoding and gives its store's path."""

    def write(
        data,
        indices,
        indptr,
        shape,
        chunks=1000,
        zarr_format=3,
        name="foreign.zarr",
        path="X",
    ):
        root = zarr.open_group(tmp_path / name, mode="w", zarr_format=zarr_format)
        attributes = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}
        if shape is not None:
            attributes["shape"] = [int(n) for n in shape]
        group = root.create_group(path, attributes=attributes)
        for part, values in (("data", data), ("indices", indices), ("indptr", indptr)):
            array = group.create_array(
                part, shape=values.shape, dtype=values.dtype, chunks=(chunks,)
            )
            array[:] = values
        return tmp_path / name

    return write


@pytest.fixture(params=["one piece", "many pieces"])
def pieces(request, monkeypatch):
    """Files come whole, and cut into small pieces."""
    if request.param == "many pieces":
        # Internal: pieces have megabytes; files of several would take seconds a test.
        monkeypatch.setattr("mmcnb.samples.text.PIECE_BYTES", 60)
        # Internal: the same, of rows on their way into a store.
        monkeypatch.setattr("mmcnb.samples.npy.STEP_BYTES", 100)


class Handler(BaseHTTPRequestHandler):
    """Files and parts of files of a folder; those of one path, or all, in the manner of the server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        server = self.server
        if server.stopped.is_set():
            return
        try:
            content = server.root.joinpath(self.path.lstrip("/")).read_bytes()
        except OSError:
            self.send_error(404)
            return
        if self.command == "GET" and self.path.startswith(server.path):
            server.asked += 1
            server.manner(self, content)
        else:
            self.answer(content)

    do_HEAD = do_GET

    def answer(self, content, length=None, status=200, **headers):
        """Send the file, or as much of it as was asked for."""
        part = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if part and status == 200:
            first, last = part.groups()
            status = 206
            content = content[
                int(first) if first else -int(last) : int(last) + 1
                if first and last
                else None
            ]
        self.send_response(status)
        self.send_header(
            "Content-Length", str(len(content) if length is None else length)
        )
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def serve():
    """A function that starts a server on this machine and gives it."""
    started = []

    def start(handler, **attributes):
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.stopped = threading.Event()
        server.url = f"http://127.0.0.1:{server.server_port}"
        vars(server).update(attributes)
        thread = threading.Thread(
            target=partial(server.serve_forever, poll_interval=0.01)
        )
        thread.start()
        started.append((server, thread))
        return server

    yield start
    for server, thread in started:
        server.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server(serve, tmp_path):
    """A server of ``tmp_path / "web"``, which answers as its ``manner`` says where ``path`` begins a path."""
    (tmp_path / "web").mkdir()
    return serve(
        Handler, root=tmp_path / "web", path="/", manner=Handler.answer, asked=0
    )

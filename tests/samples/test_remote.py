"""Stores behind addresses give the same bits, and what fails on the way is told from damage."""

import asyncio
import pickle
import re
import shutil
import socketserver
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest
import zarr

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples import _remote as remote
from mmcnb.samples import open_samples
from mmcnb.samples._limits import LimitedStore
from mmcnb.stores import (
    convert,
    create_csr_store,
    create_dense_store,
    describe_store,
    open_class_labels,
    verify_store,
)

fsspec = pytest.importorskip("fsspec", reason="stores behind addresses are an optional extra")
pytest.importorskip("aiohttp", reason="fsspec reads http:// with it")


class Handler(SimpleHTTPRequestHandler):
    """Files and parts of files of a folder; folders are not listed."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        if server.stalls:
            server.stalls -= 1
            time.sleep(2)
        if server.failures:
            server.failures -= 1
            self.send_error(503)
            return
        try:
            content = server.root.joinpath(self.path.lstrip("/")).read_bytes()
        except OSError:
            self.send_error(404)
            return
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        status = 200
        if found and server.ranges:
            first, last = found.groups()
            status = 206
            end = int(last) + 1 if first and last else None
            content = content[int(first) if first else -int(last) : end]
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of web pages for ``tmp_path / "web"``."""
    monkeypatch.setattr(remote, "PAUSES", (0.0, 0.0))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.root, server.asked, server.failures, server.ranges = tmp_path / "web", [], 0, True
    server.stalls = 0
    server.root.mkdir()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=["http", "memory"])
def publish(request, server):
    """A function that puts a store behind an address."""

    def put(path):
        if request.param == "http":
            shutil.copytree(path, server.root / path.name)
            return f"{server.url}/{path.name}"
        memory = fsspec.filesystem("memory")
        memory.store.clear()
        for file in path.rglob("*"):
            if file.is_file():
                memory.pipe_file(f"/{path.name}/{file.relative_to(path).as_posix()}", file.read_bytes())
        return f"memory://{path.name}"

    return put


def spans_agree(samples, reference):
    """Whether blocks, single rows and the digest of two sources agree."""
    rows = np.array([0, 17, 4096, 8999])
    for a, b in [
        *((samples.block(*span), reference.block(*span)) for span in [(0, 10), (4000, 9000), (0, 9000)]),
        (samples.gather(rows), reference.gather(rows)),
    ]:
        parts = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
        assert all(np.array_equal(p, q) for p, q in parts)
    assert samples.digest == reference.digest


@pytest.mark.slow
def test_our_stores(X, csr, tmp_path, publish):
    y = np.arange(9000) % 3
    with create_dense_store(tmp_path / "d.zarr", 7, chunk_rows=1000) as writer:
        writer.append(X, y)
    with create_csr_store(tmp_path / "s.zarr", 40) as writer:
        writer.append(csr, y=y)
    for name, rows in (("d.zarr", X), ("s.zarr", csr)):
        url = publish(tmp_path / name)
        samples = open_samples(url)
        assert samples.checksummed
        assert (samples.path, samples.element) == (url, "X")
        spans_agree(samples, open_samples(rows))
        spans_agree(open_samples(f"{url}/X"), open_samples(rows))
        assert open_samples(f"{url}/X").checksummed
        assert np.array_equal(open_class_labels(url), y)
        assert verify_store(url)["digest"] == samples.digest
        assert describe_store(url)["class_counts"] == {0: 3000, 1: 3000, 2: 3000}
        convert(url, tmp_path / f"copy-{name}")
        assert verify_store(tmp_path / f"copy-{name}")["digest"] == samples.digest


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_foreign_stores(X, csr, tmp_path, write_csr, publish, zarr_format):
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype, chunks=(700, 7), zarr_format=zarr_format
    )
    array[:] = X
    spans_agree(open_samples(publish(tmp_path / "a.zarr")), open_samples(X))
    path = write_csr(csr.data, csr.indices, csr.indptr, csr.shape, 5000, zarr_format=zarr_format)
    url = publish(path)
    spans_agree(open_samples(url), open_samples(csr))
    with pytest.raises(InputError, match="has no element 'Y'"):
        open_samples(url, "Y")


def test_shards(X, tmp_path, publish):
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=X.shape, dtype=X.dtype, chunks=(500, 7), shards=(2000, 7)
    )
    array[:] = X
    spans_agree(open_samples(publish(tmp_path / "a.zarr")), open_samples(X))


def test_parts_of_a_value_are_fetched_by_the_own_get_of_a_store():
    """Zarr 3.4 has a method for parts, which would pass by the bounds of `get`."""

    async def get(key, prototype, part):
        return key, prototype, part

    async def parts():
        given = remote.RemoteStore.get_ranges(
            SimpleNamespace(get=get), "c/0", [3, 4], prototype="bytes", max_gap_bytes=1
        )
        return [one async for some in given for one in some]

    assert asyncio.run(parts()) == [(0, ("c/0", "bytes", 3)), (1, ("c/0", "bytes", 4))]
    assert LimitedStore.get_ranges is remote.RemoteStore.get_ranges


def test_shards_need_a_server_that_sends_parts(X, server):
    array = zarr.create_array(
        server.root / "a.zarr", shape=X.shape, dtype=X.dtype, chunks=(500, 7), shards=(2000, 7)
    )
    array[:] = X
    server.ranges = False
    with pytest.raises(InputError, match="that shards need") as caught:
        open_samples(f"{server.url}/a.zarr").block(0, 10)
    assert not isinstance(caught.value, DamagedStoreError)


@pytest.fixture
def address(server):
    """A store of three chunks behind an address."""
    with create_dense_store(server.root / "a.zarr", 5, chunk_rows=100) as writer:
        writer.append(np.random.default_rng(0).normal(size=(300, 5)))
    return f"{server.url}/a.zarr"


def test_damage_is_found(server, address):
    file = server.root / "a.zarr/X/c/1/0"
    whole = file.read_bytes()
    for place in (4, 100, len(whole) - 1):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        samples = open_samples(address)
        assert samples.block(0, 100).shape == (100, 5)
        with pytest.raises(DamagedStoreError, match=r"chunk X/c/1/0 is damaged"):
            samples.block(0, 300)
    file.unlink()
    with pytest.raises(DamagedStoreError, match=r"chunk X/c/1/0 is missing"):
        open_samples(address).block(0, 300)
    with pytest.raises(DamagedStoreError, match=r"X/c/1/0"):
        verify_store(address)


def test_a_server_that_stumbles_is_asked_again(server, address):
    samples = open_samples(address)
    server.failures = 2
    assert samples.block(0, 300).shape == (300, 5)


def test_an_answer_that_came_too_late_is_asked_for_again(server, address, monkeypatch):
    monkeypatch.setattr(remote, "SECONDS", 0.5)
    samples = open_samples(address)
    server.stalls = 1
    assert samples.block(0, 300).shape == (300, 5)
    assert server.stalls == 0


def test_a_server_that_fails_is_no_damage(server, address):
    samples = open_samples(address)
    server.failures = 10**6
    for read in (
        partial(samples.block, 0, 300),
        partial(samples.gather, np.array([1])),
        partial(open_samples, address),
    ):
        with pytest.raises(InputError, match=r"could not be fetched.*503.*connection") as caught:
            read()
        assert not isinstance(caught.value, DamagedStoreError)
        assert "\n" not in str(caught.value)


@pytest.fixture
def silent_url():
    """Address of a server that hangs up without a word."""

    class HangUp(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(2**16)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), HangUp) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_addresses_that_lead_nowhere(server, address, silent_url):
    for url, match in [
        (f"{server.url}/none.zarr", "contains no Zarr array or group"),
        (f"{server.url}/rows.parquet", "a table must be local"),
        (f"{silent_url}/a.zarr", "could not be fetched"),
        ("nothing-such://a.zarr", "no address that can be read"),
    ]:
        with pytest.raises(InputError, match=match) as caught:
            open_samples(url)
        assert not isinstance(caught.value, DamagedStoreError)
        assert "\n" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(InputError, match=r"pip install 'mmcnb\[remote\]'"):
        open_samples("http://127.0.0.1:1/a.zarr")


def test_addresses_are_reopened(server, address):
    samples = open_samples(address)
    assert samples.is_reopenable
    sent = pickle.dumps(samples)
    assert len(sent) < 2000
    assert np.array_equal(pickle.loads(sent).block(0, 300), samples.block(0, 300))


def test_a_path_may_be_given_as_an_address(X, tmp_path):
    with create_dense_store(tmp_path / "a.zarr", 7) as writer:
        writer.append(X)
    assert open_samples(f"file://{tmp_path}/a.zarr").path == str(tmp_path / "a.zarr")

"""Servers and stores that send or claim more than they can hold are refused before they fill the memory."""

import gzip
import threading
import time
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import zarr
from numcodecs.blosc import Blosc
from numcodecs.zstd import Zstd

from mmcnb._machine import peak_memory
from mmcnb.errors import InputError
from mmcnb.samples import _remote as remote
from mmcnb.samples import open_samples
from mmcnb.stores import create_dense_store

pytest.importorskip("aiohttp", reason="fsspec reads http:// with it")
CHUNK = "/a.zarr/X/c/1/0"
MOST_GROWTH = 200 * 2**20


class Handler(BaseHTTPRequestHandler):
    """Files of a folder; one of them in the way that the server was told."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        if server.stopped.is_set():
            return
        try:
            content = server.root.joinpath(self.path.lstrip("/")).read_bytes()
        except OSError:
            self.send_error(404)
            return
        if self.path == server.path and self.command == "GET":
            server.asked += 1
            server.manner(self, content)
            return
        self.answer(content)

    do_HEAD = do_GET

    def answer(self, content, length=None, status=200, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


def endless(handler, content):
    """A body of no told length that never ends."""
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    part = bytes(2**20)
    try:
        while not handler.server.stopped.is_set():
            handler.wfile.write(part)
    except OSError:
        handler.close_connection = True


def promised(handler, content):
    """A body that is said to be a terabyte."""
    handler.answer(content, length=2**40)
    handler.close_connection = True


def drip(handler, content):
    """A byte now and then."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    try:
        for byte in content:
            if handler.server.stopped.wait(0.1):
                return
            handler.wfile.write(bytes([byte]))
    except OSError:
        handler.close_connection = True


def silent(handler, content):
    """No answer at all."""
    handler.server.stopped.wait(20)


def zipped(handler, content):
    """A body that is 128 MiB when it is unpacked on the way."""
    handler.answer(gzip.compress(bytes(2**27)), Content_Encoding="gzip")


def elsewhere(handler, content):
    """The answer is said to be at another port."""
    handler.answer(b"", status=302, Location=handler.server.other)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of ``tmp_path / "web"``, with a store of three chunks."""
    monkeypatch.setattr(remote, "PAUSES", (0.0, 0.0))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.root, server.path, server.manner = tmp_path / "web", CHUNK, Handler.answer
    server.stopped, server.asked = threading.Event(), 0
    server.url = f"http://127.0.0.1:{server.server_port}"
    server.root.mkdir()
    with create_dense_store(server.root / "a.zarr", 5, chunk_rows=100) as writer:
        writer.append(np.random.default_rng(0).normal(size=(300, 5)))
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
    thread.start()
    yield server
    server.stopped.set()
    server.shutdown()
    thread.join()
    server.server_close()


def refusal(ask, match):
    """The one sentence of a refusal that neither fills the memory nor takes long."""
    before, began = peak_memory(), time.monotonic()
    with pytest.raises(InputError, match=match) as caught:
        ask()
    assert "\n" not in str(caught.value)
    assert peak_memory() - before < MOST_GROWTH
    assert time.monotonic() - began < 10
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("manner", [endless, promised, zipped])
@pytest.mark.parametrize("path", [CHUNK, "/a.zarr/zarr.json"])
def test_a_body_longer_than_it_can_be_is_not_read(server, manner, path):
    server.path, server.manner = path, manner
    refusal(lambda: open_samples(f"{server.url}/a.zarr").block(0, 300), r"(X/c/1/0|zarr\.json) has more than")
    assert server.asked == 1  # it is not asked for again


@pytest.mark.parametrize("manner", [drip, silent])
def test_a_body_that_does_not_come_is_not_waited_for(server, manner, monkeypatch):
    monkeypatch.setattr(remote, "SECONDS", 0.5)
    server.manner = manner
    refusal(lambda: open_samples(f"{server.url}/a.zarr").block(0, 300), "X/c/1/0 did not come within 0.5 s")


def test_a_slow_server_that_sends_enough_is_waited_for(server, monkeypatch):
    monkeypatch.setattr(remote, "SECONDS", 0.3)
    monkeypatch.setattr(remote, "LEAST_RATE", 100)

    def slow(handler, content):
        handler.answer(content[:100], length=len(content))
        for start in range(100, len(content), 400):
            time.sleep(0.1)
            handler.wfile.write(content[start : start + 400])

    server.manner = slow
    assert open_samples(f"{server.url}/a.zarr").block(0, 300).shape == (300, 5)


def test_a_server_does_not_send_us_on_to_another_host(server):
    came = []

    class Other(Handler):
        def do_GET(self):
            came.append(self.path)
            self.send_error(404)

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        thread = threading.Thread(target=partial(other.serve_forever, poll_interval=0.01))
        thread.start()
        server.manner, server.other = elsewhere, f"http://127.0.0.1:{other.server_port}/X"
        refusal(lambda: open_samples(f"{server.url}/a.zarr").block(0, 300), "sends requests on to http://127")
        server.other = "file:///etc/hostname"
        refusal(
            lambda: open_samples(f"{server.url}/a.zarr").block(0, 300), "sends requests on to file:///etc"
        )
        other.shutdown()
        thread.join()
    assert came == []


def test_a_server_may_send_us_on_within_itself(server):
    server.manner, server.other = elsewhere, "/a.zarr/X/c/1/copy"
    (server.root / "a.zarr/X/c/1/copy").write_bytes((server.root / "a.zarr/X/c/1/0").read_bytes())
    assert open_samples(f"{server.url}/a.zarr").block(0, 300).shape == (300, 5)


ZEROS = np.zeros(5 * 10**7, np.uint8)
CODECS = {
    "zstd": (zarr.codecs.ZstdCodec, Zstd(1).encode),
    "blosc": (zarr.codecs.BloscCodec, Blosc().encode),
    "gzip": (zarr.codecs.GzipCodec, gzip.compress),
}


def crc32c(content):
    """The checksum of a shard's index (RFC 3720, B.4)."""
    rest = 2**32 - 1
    for byte in content:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ 0x82F63B78 * (rest & 1)
    return (rest ^ 2**32 - 1).to_bytes(4, "little")


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("shards", [None, (200, 5)])
def test_a_chunk_that_claims_more_than_its_array_holds_is_not_decoded(tmp_path, name, shards):
    codec, encode = CODECS[name]
    store = tmp_path / "a.zarr"
    layout = {"shape": (200, 5), "chunks": (100, 5), "shards": shards, "dtype": "f8"}
    layout |= {} if shards else {"filters": zarr.codecs.TransposeCodec(order=(0, 1))}  # read by Zarr
    array = zarr.create_array(store, **layout, compressors=codec())
    array[:] = 1
    assert open_samples(store).block(0, 200).sum() == 1000
    bomb = encode(ZEROS)
    if shards:  # the second of its chunks
        whole = (store / "c/0/0").read_bytes()
        length = int.from_bytes(whole[-28:-20], "little")
        index = np.array([[0, length], [length, len(bomb)]], "<u8").tobytes()
        bomb = whole[:length] + bomb + index + crc32c(index)
    (store / "c/0/0").write_bytes(bomb)
    refusal(
        lambda: open_samples(store).block(0, 200),
        r"c/0/0 is damaged \((it is cut, or claims to|it is longer|the chunk does not have 4000 bytes)",
    )


def test_chunks_of_more_than_the_memory_are_refused(tmp_path):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(100, 3), chunks=(10**13, 3), dtype="f4")
    array.attrs["a"] = 1
    refusal(lambda: open_samples(tmp_path / "a.zarr"), r"one chunk has 120,000,000,000,000 bytes")


@pytest.mark.slow
def test_a_zipped_store_with_a_bomb_is_refused(tmp_path):
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        array = zarr.create_array(store, shape=(10, 3), chunks=(10, 3), dtype="f4", compressors=None)
        array[:] = 1
    with zipfile.ZipFile(tmp_path / "a.zip") as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    for spoiled, match in (("c/0/0", r"c/0/0 is damaged \(it is longer"), ("zarr.json", r"zarr\.json has 1")):
        with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as out:
            for name, content in members.items():
                out.writestr(name, bytes(2**27) if name == spoiled else content)
        refusal(lambda: open_samples(tmp_path / "b.zip").block(0, 10), match)

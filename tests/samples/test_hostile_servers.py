"""Servers and stores that send or claim more than they can hold are refused before they fill the memory."""

import gzip
import time
import tracemalloc
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import google_crc32c
import numpy as np
import pytest
import zarr
from numcodecs.blosc import Blosc
from numcodecs.zstd import Zstd

from mmcnb import open_samples
from mmcnb.stores import create_dense_store
from tests.samples.common import one_sentence, rows_of

pytest.importorskip("aiohttp", reason="fsspec reads http:// with it")
CHUNK = "/a.zarr/X/c/1/0"


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


def zipped(handler, content):
    """A body that is 128 MiB when it is unpacked on the way."""
    handler.answer(gzip.compress(bytes(2**27)), Content_Encoding="gzip")


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


def elsewhere(handler, content):
    """The answer is said to be at another place."""
    handler.answer(b"", status=302, Location=handler.server.other)


@pytest.fixture
def hostile(server):
    """A server of a store of three chunks, with an odd manner for the second of them."""
    server.path = CHUNK
    with create_dense_store(server.root / "a.zarr", 5, chunk_rows=100) as writer:
        writer.append(np.random.default_rng(0).normal(size=(300, 5)))
    return server


@contextmanager
def cheap_refusal(match):
    """The block is refused in one sentence, neither fills the memory nor takes long."""
    began = time.monotonic()
    tracemalloc.start()
    with one_sentence(match):
        yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 2**20
    assert time.monotonic() - began < 10


@pytest.mark.slow
@pytest.mark.parametrize("manner", [endless, promised, zipped])
@pytest.mark.parametrize("path", [CHUNK, "/a.zarr/zarr.json"])
def test_a_body_longer_than_it_can_be_is_not_read(hostile, manner, path):
    hostile.path = path
    hostile.manner = manner
    with cheap_refusal(r"(X/c/1/0|zarr\.json) has more than"):
        rows_of(f"{hostile.url}/a.zarr")
    assert hostile.asked == 1  # it is not asked for again


@pytest.fixture
def hurried(monkeypatch):
    """Answers are waited for half a second."""
    # Internal: the time an answer may take, half a minute, has no option.
    monkeypatch.setattr("mmcnb.samples._remote.SECONDS", 0.5)


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("manner", [drip, silent])
def test_a_body_that_does_not_come_is_not_waited_for(hostile, manner):
    hostile.manner = manner
    with cheap_refusal("X/c/1/0 did not arrive within 0.5 s"):
        rows_of(f"{hostile.url}/a.zarr")


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
def test_an_answer_that_came_too_late_is_asked_for_again(hostile):
    answer = hostile.manner

    def late_once(handler, content):
        if hostile.asked == 1:
            time.sleep(1)
        answer(handler, content)

    hostile.manner = late_once
    assert rows_of(f"{hostile.url}/a.zarr").shape == (300, 5)
    assert hostile.asked == 2


def test_a_server_sends_us_on_within_itself_alone(hostile, serve):
    came = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self):
            came.append(self.path)
            self.send_error(404)

    hostile.manner = elsewhere
    for place in (f"{serve(Other).url}/X", "file:///etc/hostname"):
        hostile.other = place
        with cheap_refusal(f"redirects to {place[:10]}"):
            rows_of(f"{hostile.url}/a.zarr")
    assert came == []
    hostile.other = "/a.zarr/X/c/1/copy"
    copy = hostile.root / hostile.other[1:]
    copy.write_bytes((hostile.root / CHUNK[1:]).read_bytes())
    assert rows_of(f"{hostile.url}/a.zarr").shape == (300, 5)


ZEROS = np.zeros(5 * 10**7, np.uint8)
CODECS = {
    "zstd": (zarr.codecs.ZstdCodec, Zstd(1).encode),
    "blosc": (zarr.codecs.BloscCodec, Blosc().encode),
    "gzip": (zarr.codecs.GzipCodec, gzip.compress),
}


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("shards", [None, (200, 5)])
def test_a_chunk_that_claims_more_than_its_array_holds_is_not_decoded(
    tmp_path, name, shards
):
    codec, encode = CODECS[name]
    store = tmp_path / "a.zarr"
    layout = {"shape": (200, 5), "chunks": (100, 5), "shards": shards, "dtype": "f8"}
    # read by Zarr
    layout |= {} if shards else {"filters": zarr.codecs.TransposeCodec(order=(0, 1))}
    zarr.create_array(store, **layout, compressors=codec())[:] = 1
    assert rows_of(store).sum() == 1000
    bomb = encode(ZEROS)
    if shards:  # the second of its chunks
        whole = (store / "c/0/0").read_bytes()
        length = int.from_bytes(whole[-28:-20], "little")
        index = np.array([[0, length], [length, len(bomb)]], "<u8").tobytes()
        bomb = (
            whole[:length]
            + bomb
            + index
            + google_crc32c.value(index).to_bytes(4, "little")
        )
    (store / "c/0/0").write_bytes(bomb)
    with cheap_refusal(
        r"c/0/0 is damaged \((it is truncated, or claims to|it is longer|the chunk does not have 4000 bytes)"
    ):
        rows_of(store)


def test_chunks_of_more_than_the_memory_are_refused(tmp_path):
    zarr.create_array(
        tmp_path / "a.zarr", shape=(100, 3), chunks=(10**13, 3), dtype="f4"
    )
    with cheap_refusal(r"one chunk has 120,000,000,000,000 bytes"):
        open_samples(tmp_path / "a.zarr")


@pytest.mark.slow
def test_a_zipped_store_with_a_bomb_is_refused(tmp_path):
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        zarr.create_array(
            store, shape=(10, 3), chunks=(10, 3), dtype="f4", compressors=None
        )[:] = 1
    with zipfile.ZipFile(tmp_path / "a.zip") as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    for spoiled, match in (
        ("c/0/0", r"c/0/0 is damaged \(it is longer"),
        ("zarr.json", r"zarr\.json has 1"),
    ):
        with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as out:
            for name, content in members.items():
                out.writestr(name, bytes(2**27) if name == spoiled else content)
        with cheap_refusal(match):
            rows_of(tmp_path / "b.zip")

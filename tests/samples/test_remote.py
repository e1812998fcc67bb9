"""Stores behind addresses give the same bits, and what fails on the way is told from damage."""

import pickle
import shutil
import sys
from functools import partial
from itertools import count
from socketserver import BaseRequestHandler

import numpy as np
import pytest
import zarr

from mmcnb import open_samples
from mmcnb.errors import DamagedStoreError
from mmcnb.stores import (
    convert,
    create_csr_store,
    create_dense_store,
    describe_store,
    open_class_labels,
    verify_store,
)
from tests.samples.common import assert_same, one_sentence

fsspec = pytest.importorskip(
    "fsspec", reason="stores behind addresses are an optional extra"
)
pytest.importorskip("aiohttp", reason="fsspec reads http:// with it")


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
                memory.pipe_file(
                    f"/{path.name}/{file.relative_to(path).as_posix()}",
                    file.read_bytes(),
                )
        return f"memory://{path.name}"

    return put


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
        assert_same(samples, open_samples(rows))
        assert open_samples(f"{url}/X").checksummed
        assert open_samples(f"{url}/X").digest == samples.digest
        assert np.array_equal(open_class_labels(url), y)
        assert verify_store(url)["digest"] == samples.digest
        assert describe_store(url)["class_counts"] == {0: 3000, 1: 3000, 2: 3000}
        convert(url, tmp_path / f"copy-{name}")
        assert verify_store(tmp_path / f"copy-{name}")["digest"] == samples.digest


@pytest.mark.slow
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_foreign_stores(X, csr, tmp_path, write_csr, publish, zarr_format):
    zarr.create_array(
        tmp_path / "a.zarr", data=X, chunks=(700, 7), zarr_format=zarr_format
    )
    assert_same(open_samples(publish(tmp_path / "a.zarr")), open_samples(X))
    url = publish(
        write_csr(
            csr.data, csr.indices, csr.indptr, csr.shape, 5000, zarr_format=zarr_format
        )
    )
    assert_same(open_samples(url), open_samples(csr))
    with one_sentence("has no element 'Y'"):
        open_samples(url, "Y")


def test_shards(X, tmp_path, publish):
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(500, 7), shards=(2000, 7))
    assert_same(open_samples(publish(tmp_path / "a.zarr")), open_samples(X))


def test_shards_need_a_server_that_sends_parts(X, server):
    zarr.create_array(server.root / "a.zarr", data=X, chunks=(500, 7), shards=(2000, 7))
    server.manner = partial(server.manner, status=203)  # which sends files whole
    with one_sentence("sends whole files instead of") as caught:
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
        with one_sentence(r"chunk X/c/1/0 is damaged", DamagedStoreError):
            samples.block(0, 300)
    file.unlink()
    with one_sentence(r"chunk X/c/1/0 is missing", DamagedStoreError):
        open_samples(address).block(0, 300)
    with one_sentence(r"X/c/1/0", DamagedStoreError):
        verify_store(address)


def failing(times, answer):
    """A manner in which the first answers are failures."""
    numbers = count()

    def manner(handler, content):
        if next(numbers) < times:
            handler.send_error(503)
        else:
            answer(handler, content)

    return manner


def test_a_server_that_stumbles_is_asked_again(server, address):
    samples = open_samples(address)
    server.manner = failing(2, server.manner)
    assert samples.block(0, 300).shape == (300, 5)


@pytest.mark.slow
def test_a_server_that_fails_is_no_damage(server, address):
    samples = open_samples(address)
    server.manner = failing(10**6, None)
    for read in (
        partial(samples.block, 0, 300),
        partial(samples.gather, np.array([1])),
    ):
        with one_sentence(r"could not be fetched.*503.*connection") as caught:
            read()
        assert not isinstance(caught.value, DamagedStoreError)
    with one_sentence(r"could not be fetched.*503.*connection"):
        open_samples(address)


@pytest.mark.slow
def test_addresses_that_lead_nowhere(server, serve):
    class HangUp(BaseRequestHandler):
        def handle(self):
            self.request.recv(2**16)

    for url, match in [
        (f"{server.url}/none.zarr", "contains no Zarr array or group"),
        (f"{server.url}/rows.parquet", "a table must be local"),
        (f"{serve(HangUp).url}/a.zarr", "could not be fetched"),
        ("nothing-such://a.zarr", "not an address that can be read"),
    ]:
        with one_sentence(match) as caught:
            open_samples(url)
        assert not isinstance(caught.value, DamagedStoreError)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with one_sentence(r"pip install 'mmcnb\[remote\]'"):
        open_samples("http://127.0.0.1:1/a.zarr")


def test_addresses_are_reopened(address):
    samples = open_samples(address)
    assert samples.is_reopenable
    sent = pickle.dumps(samples)
    assert len(sent) < 2000
    assert np.array_equal(pickle.loads(sent).block(0, 300), samples.block(0, 300))


def test_a_path_may_be_given_as_an_address(X, tmp_path):
    with create_dense_store(tmp_path / "a.zarr", 7) as writer:
        writer.append(X)
    assert open_samples(f"file://{tmp_path}/a.zarr").path == str(tmp_path / "a.zarr")

"""Wherever a file is read, what is no regular file is refused at once, in one sentence."""

import os
import shutil
import signal
import socket
from contextlib import contextmanager
from functools import partial

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

import mmcnb
from mmcnb import InputError, open_samples
from mmcnb.cli import main
from mmcnb.stores import convert, create_csr_store, create_dense_store
from tests.samples.common import one_sentence, rows_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not hasattr(os, "mkfifo"), reason="this system has no pipes among its files"
    ),
]
SECONDS = 20  # after which a read has hung; the first fit of the process may compile


def link_to(target):
    return lambda path: path.symlink_to(target or path.name)


def socket_file(path):
    os.chdir(path.parent)  # the name of a socket may not be long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


KINDS = {
    "pipe": os.mkfifo,
    "endless device": link_to("/dev/zero"),
    "link to nothing": link_to("nothing-there"),
    "link in a circle": link_to(None),
    "socket": socket_file,
}
ROWS = (
    np.random.default_rng(0).normal(size=(300, 4)) + 6 * (np.arange(300) % 2)[:, None]
)


@contextmanager
def no_wait():
    """The block is refused in one sentence; one that waits ends with an error."""

    def give_up(*_):
        raise TimeoutError("a read has waited")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    try:
        with one_sentence(None):
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def spoil(path, kind):
    """Put an odd file in place of another, or of a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    KINDS[kind](path)


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch, tmp_path):
    """Each kind of odd file."""
    monkeypatch.chdir(tmp_path)
    return request.param


@pytest.mark.parametrize(
    "ending",
    [
        "npy",
        "npz",
        "h5",
        "h5ad",
        "csv",
        "tsv",
        "csv.gz",
        "parquet",
        "arrow",
        "zip",
        "txt",
        "txt.gz",
        "zarr",
    ],
)
def test_files_of_rows(tmp_path, kind, ending):
    path = tmp_path / f"rows.{ending}"
    spoil(path, kind)
    for read in (open_samples, lambda path: convert(path, tmp_path / "out.zarr")):
        with no_wait():
            read(path)


def fit_like(path):
    words = ["fit", str(path.with_name("rows.npy")), "--like", str(path)]
    if main([*words, "--model", str(path.with_name("new.model"))]) == 2:
        raise InputError("refused")


def test_weights_models_and_checkpoints(tmp_path, kind):
    np.save(tmp_path / "rows.npy", ROWS)
    checkpoint = tmp_path / "checkpoint"
    fit = mmcnb.CPMMC(random_state=0, checkpoint=checkpoint).fit
    fit(tmp_path / "rows.npy")
    spoil(checkpoint / "run.json", kind)
    with no_wait():
        fit(tmp_path / "rows.npy")
    spoil(checkpoint, kind)
    with no_wait():
        fit(tmp_path / "rows.npy")
    for name, read in (
        (
            "weights.zarr",
            lambda path: mmcnb.CPMMC(random_state=0).fit(ROWS, sample_weight=path),
        ),
        ("model", mmcnb.load),
        ("like", fit_like),
    ):
        spoil(tmp_path / name, kind)
        with no_wait():
            read(tmp_path / name)


def ours(path):
    with create_dense_store(path, 4, chunk_rows=100) as writer:
        writer.append(ROWS, np.arange(300) % 2)


def sparse(path):
    with create_csr_store(path, 4) as writer:
        writer.append(scipy.sparse.csr_array(ROWS.astype("f4")))


def plain(path, **options):
    zarr.create_array(path, data=ROWS, **{"chunks": (100, 4)} | options)


def annotated(path):
    anndata.AnnData(X=scipy.sparse.csr_array(ROWS)).write_zarr(path)


def tables(path, ending):
    path.mkdir()
    frame = pd.DataFrame(ROWS[:100], columns=list("abcd"))
    for number in range(3):
        getattr(frame, f"to_{ending}")(path / f"{number}.{ending}")


STORES = {
    "our rows": (ours, ["zarr.json", "X/zarr.json", "y/zarr.json", "X/c/1/0"]),
    "our sparse rows": (sparse, ["X/zarr.json", "X/indptr/zarr.json", "X/indices/c/0"]),
    "plain rows": (plain, ["zarr.json", "c/1/0"]),
    "plain rows of version 2": (partial(plain, zarr_format=2), [".zarray", "1.0"]),
    "sharded rows": (
        partial(plain, chunks=(50, 4), shards=(100, 4)),
        ["zarr.json", "c/1/0"],
    ),
    "AnnData": (
        annotated,
        ["X/.zgroup", "X/.zattrs", "X/data/.zarray", "var/.zattrs", "X/indices/0"],
    ),
    "a folder of text": (partial(tables, ending="csv"), ["1.csv"]),
    "a folder of Parquet": (partial(tables, ending="parquet"), ["1.parquet"]),
}


@pytest.mark.filterwarnings("ignore")  # of anndata, about its next format
@pytest.mark.parametrize("name", STORES)
def test_members_of_stores_and_folders(tmp_path, kind, name):
    make, members = STORES[name]
    for number, member in enumerate(members):
        path = tmp_path / f"{number}.zarr"
        make(path)
        spoil(path / member, kind)
        with no_wait():
            open_samples(path).feature_names
            rows_of(path)


@pytest.mark.parametrize(
    ("kind", "word"),
    [("pipe", "pipe"), ("endless device", "device"), ("socket", "socket")],
)
def test_the_kind_is_named(tmp_path, monkeypatch, kind, word):
    monkeypatch.chdir(tmp_path)
    KINDS[kind](tmp_path / "rows.npy")
    with one_sentence(rf"rows\.npy is a {word}, not a regular file: "):
        open_samples(tmp_path / "rows.npy")
    with one_sentence(r"nothing\.npy does not exist: check the path"):
        open_samples(tmp_path / "nothing.npy")


def test_a_document_of_a_store_is_read_up_to_its_bound(tmp_path):
    ours(tmp_path / "rows.zarr")
    # it takes no place on the disk
    os.truncate(tmp_path / "rows.zarr/X/zarr.json", 2**40)
    with one_sentence(r"X/zarr\.json has more than 67,108,864 bytes, .*it\.$"):
        open_samples(tmp_path / "rows.zarr")

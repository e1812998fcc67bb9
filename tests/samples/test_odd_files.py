"""Wherever a file is read, what is no regular file is refused at once, in one sentence."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

SECONDS = 20  # after which a read has hung; the first fit of the process may compile


def pipe(path):
    os.mkfifo(path)


def endless_device(path):
    path.symlink_to("/dev/zero")


def link_to_nothing(path):
    path.symlink_to("nothing-there")


def link_in_a_circle(path):
    path.symlink_to(path.name)


def socket_file(path):
    os.chdir(path.parent)  # the name of a socket may not be long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


KINDS = {one.__name__: one for one in (pipe, endless_device, link_to_nothing, link_in_a_circle, socket_file)}
ROWS = np.random.default_rng(0).normal(size=(300, 4)) + 6 * (np.arange(300) % 2)[:, None]
ENDINGS = [
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
]


def places(folder):
    """By name: what makes files in a folder, the one that becomes odd, and who reads them."""
    import anndata
    import scipy.sparse
    import zarr

    import mmcnb
    from mmcnb.cli import main
    from mmcnb.samples import open_samples
    from mmcnb.stores import convert, create_csr_store, create_dense_store

    np.save(folder / "good.npy", ROWS)
    model = mmcnb.CPMMC(random_state=0).fit(ROWS)
    model.save(folder / "good.model")

    def ours(path):
        with create_dense_store(path, 4, chunk_rows=100) as writer:
            writer.append(ROWS, np.arange(300) % 2)

    def sparse(path):
        with create_csr_store(path, 4) as writer:
            writer.append(scipy.sparse.csr_array(ROWS.astype("f4")))

    def plain(path):
        zarr.create_array(path, data=ROWS, chunks=(100, 4))

    def second(path):
        zarr.create_array(path, data=ROWS, chunks=(100, 4), zarr_format=2)

    def sharded(path):
        zarr.create_array(path, data=ROWS, chunks=(50, 4), shards=(100, 4))

    def annotated(path):
        anndata.AnnData(X=scipy.sparse.csr_array(ROWS)).write_zarr(path)

    def tables(path):
        import pandas as pd

        path.mkdir()
        for number in range(3):
            frame = pd.DataFrame(ROWS[:100], columns=list("abcd"))
            frame.to_csv(path / f"{number}.csv") if path.name == "csv" else frame.to_parquet(
                path / f"{number}.parquet"
            )

    def labels(path):
        model.predict(folder / "good.npy", out=path)

    def checkpoint(path):
        mmcnb.CPMMC(random_state=0, checkpoint=path).fit(folder / "good.npy")

    def read(path):
        samples = open_samples(path)
        samples.feature_names, samples.block(0, samples.n_samples)

    def as_score(path):
        mmcnb.partition_score(ROWS, path)

    def as_weights(path):
        mmcnb.CPMMC(random_state=0).fit(ROWS, sample_weight=path)

    def like(path):
        words = ["fit", folder / "good.npy", "--like", path, "--model", folder / "new.model"]
        if main([str(word) for word in words]) == 2:
            raise mmcnb.InputError("refused")

    found = {f"rows.{ending}": (None, "", read) for ending in ENDINGS}
    found |= {
        f"rows.{ending} to convert": (
            None,
            "",
            lambda path: convert(path, f"{path}.out.zarr", progress=False),
        )
        for ending in ENDINGS
    }
    for name, make, documents, chunk in (
        ("our rows", ours, ("zarr.json", "X/zarr.json", "y/zarr.json"), "X/c/1/0"),
        ("our sparse rows", sparse, ("X/zarr.json", "X/indptr/zarr.json"), "X/indices/c/0"),
        ("plain rows", plain, ("zarr.json",), "c/1/0"),
        ("plain rows of version 2", second, (".zarray",), "1.0"),
        ("sharded rows", sharded, ("zarr.json",), "c/1/0"),
        ("AnnData", annotated, ("X/.zgroup", "X/.zattrs", "X/data/.zarray", "var/.zattrs"), "X/indices/0"),
        ("labels", labels, ("zarr.json",), "c/0"),
    ):
        ask = as_score if make is labels else read
        found |= {f"{document} of {name}": (make, document, ask) for document in documents}
        found[f"a chunk of {name}"] = make, chunk, ask
    found |= {f"{form} in a folder": (tables, f"1.{form}", read) for form in ("csv", "parquet")}
    found |= {f"labels.{ending}": (None, "", as_score) for ending in ("csv", "parquet", "zarr", "npy")}
    found |= {"weights.zarr": (None, "", as_weights), "model": (None, "", mmcnb.load)}
    found |= {"model to be like": (None, "", like), "checkpoint": (None, "", checkpoint)}
    found["run.json"] = checkpoint, "run.json", checkpoint
    return found


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes and devices among its files")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_regular_file_is_refused_at_once(kind):
    told = {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", __file__, kind]
    done = subprocess.run(command, env=os.environ | told, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 50
    assert [line for line in done.stdout.splitlines() if not line.endswith(": refused")] == []


def answer(ask, path):
    """Whether a file was read or refused; a read that hangs ends the process."""
    from mmcnb.errors import InputError

    signal.alarm(SECONDS)
    try:
        ask(path)
    except InputError as error:
        return "refused" if "\n" not in str(error) else f"more than a line: {error}"
    finally:
        signal.alarm(0)
    return "read"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for place, (make, inner, ask) in places(Path(name)).items():
            folder = Path(tempfile.mkdtemp(dir=name))
            form = next((form for form in ("csv", "parquet") if place == f"{form} in a folder"), "a.zarr")
            path = folder / (form if make else place.split()[0])
            if make:
                make(path)
            odd = path / inner if inner else path
            if odd.exists():
                odd.unlink() if odd.is_file() else shutil.rmtree(odd)
            KINDS[sys.argv[1]](odd)
            print(f"{place}: {answer(ask, path)}", flush=True)

"""A folder with rows, models and labels, in which commands and calls are tried."""

import io
import shutil
from contextlib import chdir, redirect_stdout

import numpy as np
import pandas as pd
import pytest
import zarr

from mmcnb.cli import main
from mmcnb.datasets import write_synthetic
from tests.remedies.tables import lines

OUTPUTS = "--model {0}.model --labels {0}-labels.csv --random-state 0"


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """Rows of several formats, and models and labels of two of them."""
    folder = tmp_path_factory.mktemp("inputs")
    with chdir(folder), redirect_stdout(io.StringIO()):
        write_synthetic("blobs", "blobs.zarr", 150, 3, 35, n_clusters=3)
        write_synthetic("blobs", "wide.zarr", 50, 4)
        customers = lines("age,spent,plan", customer, 60)
        (folder / "customers.csv").write_text(customers)
        (folder / "other.csv").write_text(lines("age,income", lambda k: f"{k},{k}"))
        near = customers.replace("plan", "plans", 1)
        (folder / "near.csv").write_text(near)
        short = lines("cluster", str, 5)
        (folder / "short.csv").write_text(short)
        halves = lines("cluster", lambda k: str(k / 2), 150)
        (folder / "halves.csv").write_text(halves)
        numbers = pd.DataFrame({"a": [1.0, 2, 4] * 9, "b": [0.0, 5] * 13 + [1]})
        numbers.to_parquet("rows.parquet")
        for rows, more in (
            ("blobs.zarr", ""),
            ("customers.csv", ""),
            ("blobs.zarr --method cpmmc", "hyperplane"),
        ):
            name = more or rows.partition(".")[0]
            assert main(f"fit {rows} {OUTPUTS.format(name)}".split()) == 0
        begun = "fit customers.csv --method cpmmc --checkpoint begun --model m"
        assert main(begun.split()) == 0
        (folder / "m").unlink()
        write_plain(folder / "plain.zarr")
        damage(folder)
    return folder


def write_plain(path):
    """Write a store without checksums."""
    rows = np.random.default_rng(0).normal(size=(50, 3))
    zarr.save_array(path, rows, zarr_format=2)


def damage(folder):
    """Make stores without a chunk, with a changed byte or without metadata, and a model."""
    for name in ("hole", "flip", "meta"):
        shutil.copytree(folder / "blobs.zarr", folder / f"{name}.zarr")
    (chunk,) = folder.glob("hole.zarr/X/c/0/0")
    chunk.unlink()
    (chunk,) = folder.glob("flip.zarr/X/c/0/0")
    content = bytearray(chunk.read_bytes())
    content[20] ^= 1
    chunk.write_bytes(content)
    (folder / "meta.zarr" / "zarr.json").write_text("{")
    content = (folder / "blobs.model").read_bytes()
    (folder / "half.model").write_bytes(content[: len(content) // 2])


def customer(k):
    """Three groups by age and plan."""
    plan = ("basic", "family", "student")[k % 3]
    return f"{20 + 25 * (k % 3) + k % 7 / 10},{k % 5 / 10},{plan}"


@pytest.fixture
def folder(inputs, tmp_path, monkeypatch):
    """The working folder, with copies of these files."""
    copy = tmp_path / "folder"
    shutil.copytree(inputs, copy)
    monkeypatch.chdir(copy)
    return copy

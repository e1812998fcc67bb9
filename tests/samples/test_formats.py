"""Files of many formats: recognised by their first bytes, read, or named with a way to read them."""

import bz2
import gzip
import io
import lzma
import pickle
import sqlite3
import zipfile

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.cli import main
from mmcnb.samples.formats import file_format
from mmcnb.stores import convert
from tests.samples.common import one_sentence

ROWS = np.random.default_rng(3).normal(size=(40, 2)).round(3) + np.repeat(
    [[0], [9]], 20, 0
)
FRAME = pd.DataFrame(ROWS, columns=["width", "height"])


def bytes_of(kind):
    """The table as the bytes of a file."""
    file = io.BytesIO()
    if kind == "parquet":
        FRAME.to_parquet(file)
    elif kind == "feather":
        FRAME.to_feather(file, compression="uncompressed")
    elif kind == "npy":
        np.save(file, ROWS)
    else:
        text = FRAME.to_csv(index=False).encode()
        file.write(
            {"gzip": gzip, "bz2": bz2, "xz": lzma}[kind].compress(text)
            if kind != "csv"
            else text
        )
    return file.getvalue()


def check_rows(samples, names=("width", "height")):
    assert samples.feature_names == (None if names is None else list(names))
    np.testing.assert_allclose(samples.block(0, 40), ROWS, rtol=1e-6)


# --- renamed files --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("parquet", "rows.csv"),
        ("parquet", "rows"),
        ("feather", "rows.txt"),
        ("csv", "rows.csv.gz"),
        ("csv", "rows.xls"),
        ("csv", "rows.txt"),
        ("csv", "rows.data"),
        ("gzip", "rows.csv"),
        ("gzip", "rows.csv.bz2"),
        ("bz2", "rows.tsv"),
        ("xz", "rows.dat"),
        ("npy", "rows.bin"),
    ],
)
def test_the_first_bytes_tell_the_format(tmp_path, kind, name):
    path = tmp_path / name
    path.write_bytes(bytes_of(kind))
    names = None if kind == "npy" else ("width", "height")
    check_rows(mmcnb.open_samples(path), names)
    convert(path, tmp_path / "rows.zarr")
    check_rows(mmcnb.open_samples(tmp_path / "rows.zarr"), names)


@pytest.mark.parametrize("mark", ["\t", ";", "|", " ", "   "])
def test_the_delimiter_of_text_is_found(tmp_path, mark):
    path = tmp_path / "rows.txt"
    path.write_text(FRAME.to_csv(index=False).replace(",", mark))
    check_rows(mmcnb.open_samples(path))


def test_libsvm_text_may_be_called_txt(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("1 1:0.5 3:2\n2 2:1\n")
    assert file_format(path) == "libsvm"
    convert(path, tmp_path / "rows.zarr", layout="dense")
    np.testing.assert_array_equal(
        mmcnb.open_samples(tmp_path / "rows.zarr").block(0, 2), [[0.5, 0, 2], [0, 1, 0]]
    )


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [
        (
            "rows.xls",
            b"<html><table><tr><td>1</td></tr></table></html>",
            r"a page of HTML: save .* CSV",
        ),
        (
            "rows.xls",
            b'<?xml version="1.0"?><Workbook></Workbook>',
            r"an XML document: save .* as \.xlsx",
        ),
        ("rows.sav", b"$FL2@(#) SPSS", r"a file of SPSS: .*pandas\.read_spss\(path\)"),
        ("rows.csv", pickle.dumps(1), None),
        ("rows.pkl", pickle.dumps(1), r"a pickle.*pandas\.read_pickle"),
        ("rows.rds", gzip.compress(b"X\n\0\0\0\3"), r"a file of R: .*write_parquet"),
        (
            "rows.parquet.gz",
            gzip.compress(b"PAR1" + bytes(40)),
            r"is compressed \(\.gz\).*unpack it",
        ),
        (
            "rows.mat",
            b"MATLAB 5.0 MAT-file, Platform",
            r"a file of MATLAB.*scipy\.io\.loadmat",
        ),
        ("rows.pdf", b"%PDF-1.7 ", r"a PDF document"),
    ],
)
def test_a_format_that_is_not_read_is_named_with_a_way(tmp_path, name, content, remedy):
    path = tmp_path / name
    path.write_bytes(content)
    for read in (
        mmcnb.open_samples,
        mmcnb.read_table,
        lambda path: convert(path, tmp_path / "rows.zarr"),
    ):
        with one_sentence(remedy or "rows.csv"):
            read(path)


def test_databases_and_archives_are_named(tmp_path):
    path = tmp_path / "rows.csv"
    with sqlite3.connect(path) as database:
        FRAME.to_sql("rows", database)
    with one_sentence("an SQLite database: .*read_sql_query"):
        mmcnb.open_samples(path)
    check_rows(
        mmcnb.open_samples(
            pd.read_sql_query("SELECT * FROM rows", sqlite3.connect(path)).drop(
                columns="index"
            )
        )
    )
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
        archive.writestr("rows.csv", FRAME.to_csv())
    with one_sentence("an archive: unpack it"):
        mmcnb.open_samples(tmp_path / "rows.zip")


@pytest.mark.parametrize("name", ["absent.csv", "absent.xlsx", "absent", "absent.npy"])
def test_a_path_that_does_not_exist_says_so(tmp_path, name, capsys):
    path = str(tmp_path / "no" / name)
    out = str(tmp_path / "rows.zarr")
    for read in (
        mmcnb.open_samples,
        mmcnb.read_table,
        mmcnb.MaximumMarginClustering(2).fit,
    ):
        with one_sentence("does not exist: check the path"):
            read(path)
    for words in (
        ["info", path],
        ["plan", path],
        ["fit", path, "--labels", out],
        ["convert", path, out],
    ):
        assert main(words) == 2
        assert "does not exist" in capsys.readouterr().err


def test_a_home_folder_is_expanded(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    np.save(tmp_path / "rows.npy", ROWS)
    check_rows(mmcnb.open_samples("~/rows.csv"))
    check_rows(mmcnb.read_table("~/rows.csv"))
    check_rows(mmcnb.open_samples("~/rows.npy"), None)
    convert("~/rows.csv", "~/rows.zarr")
    check_rows(mmcnb.open_samples("~/rows.zarr"))
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit("~/rows.csv")
    model.save("~/rows.model")
    model.predict("~/rows.csv", out="~/labels.csv")
    assert (mmcnb.load("~/rows.model").predict("~/rows.csv") == model.labels_).all()
    for words in (
        "info ~/rows.csv",
        "info ~/rows.zarr",
        "plan ~/rows.csv",
        "fit ~/rows.csv --labels=~/fit.csv --model=~/fit.model --n-clusters 2",
        "predict ~/fit.model ~/rows.csv --labels=~/predict.csv",
        "score ~/rows.csv ~/predict.csv",
        "convert ~/rows.csv ~/again.zarr",
    ):
        assert main(words.split()) == 0, capsys.readouterr().err
    for name in (
        "rows.zarr",
        "rows.model",
        "labels.csv",
        "fit.csv",
        "fit.model",
        "predict.csv",
        "again.zarr",
    ):
        assert (tmp_path / name).exists()

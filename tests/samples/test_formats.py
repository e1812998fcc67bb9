"""Files of many formats: recognised by their first bytes, read, or named with a way to read them."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
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


def test_commas_in_amounts_do_not_divide_cells(tmp_path):
    path = tmp_path / "rows.csv"
    amounts = [f"{k * 1.5};${1000 + 37 * k:,}.50" for k in range(60)]
    path.write_text("\n".join(["width;price, net", *amounts]))
    samples = mmcnb.open_samples(path)
    assert samples.feature_names == ["width", "price, net"]
    expected = [[1.5 * k, 1000.5 + 37 * k] for k in range(60)]
    np.testing.assert_array_equal(samples.block(0, 60), expected)


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
            r"an HTML page: save .* CSV",
        ),
        (
            "rows.xls",
            b'<?xml version="1.0"?><Workbook></Workbook>',
            r"an XML document: save .* as \.xlsx",
        ),
        ("rows.sav", b"$FL2@(#) SPSS", r"an SPSS file: .*pandas\.read_spss\(path\)"),
        ("rows.csv", pickle.dumps(1), None),
        ("rows.pkl", pickle.dumps(1), r"a pickle.*pandas\.read_pickle"),
        (
            "rows.rds",
            gzip.compress(b"X\n\0\0\0\3", mtime=0),
            r"an R file: .*write_parquet",
        ),
        (
            "rows.parquet.gz",
            gzip.compress(b"PAR1" + bytes(40), mtime=0),
            r"is compressed \(\.gz\).*unpack it",
        ),
        (
            "rows.mat",
            b"MATLAB 5.0 MAT-file, Platform",
            r"a MATLAB file.*scipy\.io\.loadmat",
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


# --- JSON -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "orient", ["records", "columns", "index", "split", "table", "values", "list"]
)
def test_json_documents_of_pandas(tmp_path, orient):
    path = tmp_path / "rows.json"
    if orient == "list":
        path.write_text(json.dumps(FRAME.to_dict("list")))
    elif orient == "index":
        path.write_text(json.dumps({"count": 40, "rows": FRAME.to_dict("records")}))
    else:
        FRAME.to_json(path, orient=orient)
    samples = mmcnb.open_samples(path)
    if orient == "table":
        assert samples.feature_names[-2:] == ["width", "height"]
    else:
        check_rows(samples, ("0", "1") if orient == "values" else ("width", "height"))


@pytest.mark.parametrize(
    "name", ["rows.jsonl", "rows.ndjson", "rows.json", "rows.txt", "rows.jsonl.gz"]
)
def test_json_lines(tmp_path, name):
    text = FRAME.to_json(orient="records", lines=True).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text, mtime=0) if name.endswith(".gz") else text)
    check_rows(mmcnb.open_samples(path))
    convert(path, tmp_path / "rows.zarr")
    check_rows(mmcnb.open_samples(tmp_path / "rows.zarr"))


def test_json_lines_of_several_pieces_have_the_columns_of_all(tmp_path, monkeypatch):
    monkeypatch.setattr("mmcnb.samples.text.PIECE_BYTES", 300)
    rows = [{"size": k % 9, "price": k % 4 + 0.5} for k in range(60)]
    rows[40] |= {"late": 7.5}
    rows[50]["price"] = "n/a"
    rows[51]["size"] = None
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    samples = mmcnb.read_table(path, columns="size,price,late")
    assert samples.feature_names == ["size", "price", "late"]
    np.testing.assert_allclose(
        samples.block(0, 40), [[k % 9, k % 4 + 0.5, 7.5] for k in range(40)]
    )


def test_objects_in_json_are_flattened(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [
        {"id": f"x{k}", "size": {"width": k % 5, "box": {"depth": k % 3}}}
        for k in range(20)
    ]
    rows[3]["size"] = None
    path.write_text("\n".join(map(json.dumps, rows)))
    samples = mmcnb.read_table(path, drop="id")
    assert samples.feature_names == ["size.width", "size.box.depth"]
    np.testing.assert_array_equal(samples.block(4, 6), [[4, 1], [0, 2]])


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("rows.jsonl", '{"a": 1}\n{"a": \n', "line 2: this is not JSON .*: correct it"),
        (
            "rows.jsonl",
            '{"a": 1}\n[1, 2]\n',
            "line 2: this is not a JSON object: write each row",
        ),
        (
            "rows.jsonl",
            '{"a": 1}\n{"a": 2}\n{"a": ',
            "line 3: .*the file seems to be truncated: get it again",
        ),
        ("rows.json", '{"a": 1', "it seems to be truncated: get it again"),
        ("rows.json", '{"a": 1,,}', r"this is not JSON .*: correct it"),
        (
            "rows.json",
            '{"a": 1, "b": "x"}',
            "is JSON, but not a table: write a list of objects",
        ),
    ],
)
def test_json_that_is_no_table(tmp_path, name, text, sentence):
    path = tmp_path / name
    path.write_text(text)
    with one_sentence(sentence):
        mmcnb.open_samples(path)


# --- files of other programs ----------------------------------------------------------


def test_orc_stata_and_arff(tmp_path):
    orc = pytest.importorskip("pyarrow.orc")
    orc.write_table(pa.Table.from_pandas(FRAME), tmp_path / "rows.orc")
    gaps = FRAME.assign(kind=pd.Categorical(["low", "high"] * 20))
    gaps.loc[0, "width"] = np.nan
    gaps.to_stata(tmp_path / "rows.dta", write_index=False)
    lines = [f"{width},{height},a" for width, height in ROWS]
    lines[0] = f"?,{ROWS[0, 1]},?"
    head = "@relation rows\n@attribute width real\n@attribute height real\n@attribute kind {a,b}\n@data\n"
    (tmp_path / "rows.arff").write_text(head + "\n".join(lines))
    check_rows(mmcnb.open_samples(tmp_path / "rows.orc"))
    samples = mmcnb.open_samples(tmp_path / "rows.dta")
    assert samples.feature_names == ["width", "height", "kind_high", "kind_low"]
    np.testing.assert_allclose(samples.block(1, 40)[:, :2], ROWS[1:], rtol=1e-6)
    for name in ("rows.dta", "rows.arff"):
        with one_sentence(r"column 0 \('width'\): the cell has no value"):
            mmcnb.read_table(tmp_path / name, columns="width", missing="refuse")
    (tmp_path / "cut.dta").write_bytes((tmp_path / "rows.dta").read_bytes()[:200])
    with one_sentence(r"cut\.dta cannot be read"):
        mmcnb.open_samples(tmp_path / "cut.dta")


# --- columns of lists -----------------------------------------------------------------

VECTORS = np.random.default_rng(5).normal(size=(40, 3)).round(3) + np.repeat(
    [[0], [9]], 20, 0
)


def lists(kind):
    """The vectors as a column of lists, in a table or in a file."""
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 3)
    if kind == "large":
        return pa.array(VECTORS.tolist(), pa.large_list(pa.float32()))
    return pa.array(VECTORS.tolist())


@pytest.mark.parametrize(
    "kind", ["lists", "large", "fixed", "objects", "polars", "json"]
)
def test_a_column_of_lists_is_the_rows(tmp_path, kind):
    if kind == "objects":
        sources = [pd.DataFrame({"vector": list(VECTORS)})]
    elif kind == "polars":
        polars = pytest.importorskip("polars")
        sources = [
            polars.DataFrame({"vector": VECTORS}),
            polars.DataFrame({"vector": VECTORS.tolist()}),
        ]
    elif kind == "json":
        sources = [tmp_path / "rows.jsonl"]
        sources[0].write_text(
            "\n".join(json.dumps({"vector": row}) for row in VECTORS.tolist())
        )
    else:
        table = pa.table({"vector": lists(kind)})
        pa.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=15)
        sources = [table, tmp_path / "rows.parquet"]
    for source in sources:
        samples = mmcnb.open_samples(source)
        assert samples.feature_names == ["vector_0", "vector_1", "vector_2"]
        np.testing.assert_allclose(samples.block(0, 40), VECTORS, rtol=1e-6)
        model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(source)
        assert (model.predict(source) == model.labels_).all()


def test_lists_of_another_length_than_in_the_fit_are_refused():
    near = np.random.default_rng(0).normal(size=(40, 3))
    vectors = near + 9 * (np.arange(40) % 2)[:, None]
    model = mmcnb.CPMMC(random_state=0).fit(pd.DataFrame({"vector": vectors.tolist()}))
    longer = np.c_[vectors, near[:, 0]]
    with one_sentence("lists of 'vector' have 4 elements, but had 3 in the fit"):
        model.predict(pd.DataFrame({"vector": longer.tolist()}))
    with one_sentence("'vector_2'"):
        model.predict(pd.DataFrame({"vector": vectors[:, :2].tolist()}))


def test_lists_of_other_lengths_are_named_and_can_be_dropped(tmp_path):
    vectors = VECTORS.tolist()
    vectors[30].append(1.0)
    table = pa.table({"size": ROWS[:, 0], "vector": pa.array(vectors)})
    pa.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=15)
    for source in (table, tmp_path / "rows.parquet"):
        with one_sentence(
            r"row 30, column 'vector': the list has 4 elements, but the first list has 3: .*drop.*vector"
        ):
            mmcnb.read_table(source).block(0, 40)
    assert mmcnb.read_table(tmp_path / "rows.parquet", drop="vector").feature_names == [
        "size"
    ]

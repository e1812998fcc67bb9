"""Columns of tables in each format; each fault is named by line and column, and each remedy works."""

import bz2
import gzip
import json
import lzma
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import mmcnb
from mmcnb.errors import InputError
from mmcnb.samples import open_samples
from mmcnb.stores import convert, open_class_labels, open_index, verify_store


def zstd(text):
    """Text as the bytes of a .zst file."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    return sink.getvalue().to_pybytes()


COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}
FORMATS = ("csv", "parquet", "arrow")
REFUSE = {"missing": "refuse", "categories": "refuse", "dates": "refuse"}


def write(table, path):
    """Write an Arrow table in the format that the file's name says."""
    writers = {
        ".csv": pa.csv.write_csv,
        ".parquet": lambda table, path: pa.parquet.write_table(table, path, row_group_size=70),
        ".arrow": lambda table, path: pa.feather.write_feather(table, path, chunksize=90),
    }
    writers[path.suffix](table, path)
    return path


@pytest.fixture(params=["one piece", "many pieces"])
def pieces(request, monkeypatch):
    """Files come whole, and cut into small pieces."""
    if request.param == "many pieces":
        from mmcnb.samples import _npy, _text

        monkeypatch.setattr(_text, "PIECE_BYTES", 60)
        monkeypatch.setattr(_npy, "STEP_BYTES", 100)


def lower_median(values):
    """The middle one of the sorted values, of two the lower one."""
    return np.sort(values)[(len(values) - 1) // 2]


def rows_of(path):
    """All rows of a store."""
    samples = open_samples(path)
    return samples.block(0, samples.n_samples)


@pytest.fixture
def taken(tmp_path):
    """A function that converts text and gives rows, feature names and the report."""

    def convert_text(text, **options):
        source = tmp_path / "a.csv"
        source.write_bytes(text if isinstance(text, bytes) else text.encode())
        report = convert(source, tmp_path / "a.zarr", **options)
        verify_store(tmp_path / "a.zarr")
        return rows_of(tmp_path / "a.zarr").tolist(), open_samples(tmp_path / "a.zarr").feature_names, report

    return convert_text


# --- the same numbers in each format -------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("missing", ["refuse", "drop", "median"])
def test_all_formats_give_the_same_store(rng, tmp_path, missing):
    X = rng.normal(size=(300, 4)).astype(np.float32)
    kinds, names = np.array(["red", "green", "blue"])[rng.integers(0, 3, 300)], [f"r{i}" for i in range(300)]
    if missing != "refuse":
        X[rng.integers(0, 300, 20), rng.integers(0, 4, 20)] = np.nan
    columns = {f"x{j}": pa.array(X[:, j], from_pandas=True) for j in range(4)}
    table = pa.table({"name": names, **columns, "kind": kinds, "class": kinds})
    options = {"index_column": "name", "label_column": "class", "categories": "one-hot", "missing": missing}
    stores = []
    for form in FORMATS:
        convert(write(table, tmp_path / f"a.{form}"), tmp_path / f"{form}.zarr", **options)
        assert verify_store(tmp_path / f"{form}.zarr")["checksummed"]
        stores.append(open_samples(tmp_path / f"{form}.zarr"))
    one_hot = [f"kind_{kind}" for kind in ("blue", "green", "red")]
    rows = [store.block(0, store.n_samples) for store in stores]
    for store, block in zip(stores, rows, strict=True):
        assert store.feature_names == ["x0", "x1", "x2", "x3", *one_hot]
        assert block.dtype == np.float32
        assert block.tobytes() == rows[0].tobytes()
        assert open_class_labels(store).tolist() == open_class_labels(stores[0]).tolist()
        assert open_index(store).tolist() == open_index(stores[0]).tolist()
    whole = np.isfinite(X).all(axis=1)
    if missing == "drop":
        assert open_index(stores[0]).tolist() == np.array(names)[whole].tolist()
        assert np.array_equal(rows[0][:, :4], X[whole])
    else:
        medians = [lower_median(column[np.isfinite(column)]) for column in X.T]
        assert np.array_equal(rows[0][:, :4], np.where(np.isfinite(X), X, medians).astype(np.float32))
    assert rows[0][:, 4:].sum(axis=1).tolist() == [1.0] * len(rows[0])


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("ending", COMPRESS)
def test_compressed_text(tmp_path, ending):
    text = "a,b\n" + "".join(f"{i},{i / 8}\n" for i in range(100))
    (tmp_path / f"a.csv{ending}").write_bytes(COMPRESS[ending](text.encode()))
    convert(tmp_path / f"a.csv{ending}", tmp_path / "a.zarr", columns="all")
    assert rows_of(tmp_path / "a.zarr").tolist() == [[i, i / 8] for i in range(100)]


def test_numbers_are_those_of_python(rng, tmp_path):
    values = rng.normal(size=2000) * 10.0 ** rng.integers(-300, 300, 2000)
    (tmp_path / "a.csv").write_text("a\n" + "".join(f"{value!r}\n" for value in values.tolist()))
    convert(tmp_path / "a.csv", tmp_path / "a.zarr", dtype="float64")
    assert rows_of(tmp_path / "a.zarr")[:, 0].tolist() == values.tolist()


def test_types_of_parquet_and_arrow(tmp_path):
    table = pa.table(
        {
            "small": pa.array([1, 2], pa.int8()),
            "flag": [True, False],
            "half": pa.array(np.array([0.5, 2], np.float16)),
            "price": pa.array([1, 2], pa.decimal128(10, 2)),
            "code": pa.array([3, 4]).dictionary_encode(),
        }
    )
    for form in ("parquet", "arrow"):
        convert(write(table, tmp_path / f"a.{form}"), tmp_path / f"{form}.zarr")
        assert rows_of(tmp_path / f"{form}.zarr").tolist() == [[1, 1, 0.5, 1, 3], [2, 0, 2, 2, 4]]
        convert(tmp_path / f"a.{form}", tmp_path / f"{form}8.zarr", columns="small")
        assert open_samples(tmp_path / f"{form}8.zarr").stored_dtype == np.int8


def test_a_folder_of_parquet_is_one_table(tmp_path):
    (tmp_path / "rows" / "part=1").mkdir(parents=True)
    for number, name in enumerate(["a.parquet", "b.parquet", "part=1/c.parquet", "_metadata.parquet"]):
        write(pa.table({"a": [number], "b": [0.5]}), tmp_path / "rows" / name)
    convert(tmp_path / "rows", tmp_path / "a.zarr")
    assert rows_of(tmp_path / "a.zarr").tolist() == [[0, 0.5], [1, 0.5], [2, 0.5]]
    write(pa.table({"a": [1], "c": [2]}), tmp_path / "rows" / "d.parquet")
    with pytest.raises(InputError, match=r"a\.parquet, row 0, column 2 \('c'\): the cell has no value"):
        convert(tmp_path / "rows", tmp_path / "b.zarr", missing="refuse")


def test_an_arrow_stream_is_read(tmp_path):
    table = pa.table({"a": [1.0, 2.0]})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    convert(tmp_path / "a.arrow", tmp_path / "a.zarr")
    assert rows_of(tmp_path / "a.zarr").tolist() == [[1], [2]]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_the_index_of_a_frame_names_rows(tmp_path, form):
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])
    write(pa.Table.from_pandas(frame), tmp_path / f"a.{form}")
    listing = convert(tmp_path / f"a.{form}", tmp_path / "a.zarr")["columns"]
    assert [one["becomes"] for one in listing] == ["number", "names of rows"]
    assert open_index(tmp_path / "a.zarr").tolist() == ["x", "y"]
    assert open_samples(tmp_path / "a.zarr").feature_names == ["a"]


# --- which columns -------------------------------------------------------------------------------

TABLE = 'id,size,"b, c",kind\n7,1,2.5,x\n8,3,4,y\n'


@pytest.mark.parametrize(
    ("options", "names", "left_out"),
    [
        ({"drop": ["id", "kind"]}, ["size", "b, c"], ["id", "kind"]),
        ({"drop": "id,kind"}, ["size", "b, c"], ["id", "kind"]),
        ({"drop": [0, -1]}, ["size", "b, c"], ["id", "kind"]),
        ({"drop": "0, 3"}, ["size", "b, c"], ["id", "kind"]),
        ({"columns": "b, c"}, ["b, c"], ["id", "size", "kind"]),
        ({"columns": '"b, c",size'}, ["b, c", "size"], ["id", "kind"]),
        ({"columns": ["b, c", "size"], "label_column": "kind"}, ["b, c", "size"], ["id"]),
        ({"index_column": "id", "label_column": 3}, ["size", "b, c"], []),
        ({"categories": "one-hot"}, ["id", "size", "b, c", "kind_x", "kind_y"], []),
    ],
)
def test_columns_are_chosen(taken, options, names, left_out):
    rows, found, report = taken(TABLE, **options)
    assert ([one["name"] for one in report["columns"] if one["becomes"] == "left out"]) == left_out
    assert (found, report["header"]) == (names, True)
    values = {"id": 7, "size": 1, "b, c": 2.5, "kind_x": 1, "kind_y": 0}
    assert rows[0] == [values[name] for name in names]


def test_names_of_rows_are_kept(taken, tmp_path):
    taken(TABLE, index_column="id", drop="kind")
    assert open_index(tmp_path / "a.zarr").tolist() == [7, 8]
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert open_index(open_samples(tmp_path / "b.zarr")).tolist() == [7, 8]
    assert open_index(np.eye(2)) is None


@pytest.mark.parametrize(
    ("text", "header", "names"),
    [
        ("1,2\n3,4\n", False, None),
        ("0,1,2\n5,6,7\n", True, ["0", "1", "2"]),
        ("1990,x\n3,4\n", True, ["1990", "x"]),
        ("\ufeffa,b\n1,2\n", True, ["a", "b"]),
        ("\n a , b \n\n1,2\n\n", True, ["a", "b"]),
        ('"a\n1",b\n1,2\n', True, ["a\n1", "b"]),
    ],
)
def test_headers(taken, text, header, names):
    rows, found, report = taken(text)
    assert (report["header"], found) == (header, names)
    assert len(rows) == (1 if header else 2)


def test_missing_values_and_flags(taken):
    text = "a,b,c\n1,True,0.5\n,false,NA\n3,True,2\n7,,1\n"
    rows, _, report = taken(text)
    assert rows == [[1, 1, 0.5], [3, 0, 1], [3, 1, 2], [7, 1, 1]]
    assert (report["cells_filled"], report["rows_dropped"]) == (3, 0)


def test_rows_with_missing_values_are_dropped(taken, tmp_path):
    text = "a,kind,y\n1,x,p\n,y,q\n3,,p\n4,z,\n5,x,r\n"
    rows, names, report = taken(text, missing="drop", categories="one-hot", label_column="y")
    assert (rows, names, report["rows_dropped"]) == ([[1, 1], [5, 1]], ["a", "kind_x"], 3)
    assert open_class_labels(tmp_path / "a.zarr").tolist() == [0, 1]


def test_tabs(taken):
    for delimiter in ("\t", r"\t"):
        assert taken("a\tb\n1\t2\n", delimiter=delimiter, overwrite=True)[0] == [[1, 2]]


@pytest.mark.slow
def test_memory_does_not_grow_with_a_row_group(tmp_path):
    """In a process of its own, as pyarrow's memory is not Python's."""
    measure = (
        "import sys, mmcnb.stores, pyarrow; mmcnb.stores.convert(*sys.argv[1:3]); "
        "print(pyarrow.default_memory_pool().max_memory())"
    )
    peaks = []
    for rows in (2**17, 2**19):
        path = tmp_path / f"{rows}.parquet"
        numbers = np.random.default_rng(0).normal(size=(8, rows))
        table = pa.table({f"x{number}": column for number, column in enumerate(numbers)})
        pa.parquet.write_table(table, path, row_group_size=rows)
        command = [sys.executable, "-c", measure, path, tmp_path / f"{rows}.zarr"]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    assert peaks[1] < 1.5 * peaks[0]


def test_decimal_commas(taken):
    assert taken("a;b\n1,5;2\n-3,25e1;,5\n", delimiter=";", decimal=",")[0] == [[1.5, 2], [-32.5, 0.5]]


# --- faults ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        (
            ",id,a\n0,7,1\n1,8,2\n",
            {"index_column": "id"},
            "column 0 has no name: .* --index-column 0, .* --drop 0",
        ),
        ("a,b,\n1,2,\n", {}, "column 2 has no name: .* --drop 2"),
        ("a,a\n1,2\n", {}, "columns 0 and 1 are both named 'a': .*--drop 1"),
        (
            "a,b\n1,x\n2,y\n",
            {"categories": "refuse"},
            r"line 2, column 1 \('b'\): 'x' is not a number: .*one-hot, .*--drop b ",
        ),
        ("a,my b\n1,x\n", {"categories": "refuse"}, "--drop 'my b' "),
        ("a\n" + "1\n" * 40 + "oops\n2\n", {}, "line 42, column 0 .*'oops' is not a number: .*--drop a"),
        ("a,b\n1,2\n1_000,2\n3,3\n", {}, r"line 3, column 0 \('a'\): '1_000' is not a number"),
        ("a,b\n1,2\n٣,2\n3,3\n", {}, r"line 3, column 0 \('a'\): '٣' is not a number"),
        ("a,b\n1,2\n2,0x1F\n3,3\n", {}, r"line 3, column 1 \('b'\): '0x1F' is not a number"),
        (
            "a,b\n1,2\n,2\n",
            {"missing": "refuse"},
            r"line 3, column 0 \('a'\): the cell has no value.*--missing drop.*--missing median",
        ),
        ("a\n1\n \n2\n", {"missing": "refuse"}, r"line 3, column 0 \('a'\): the cell has no value"),
        ('a\n1\n""\n', {"missing": "refuse"}, r"line 3, column 0 \('a'\): the cell has no value"),
        ("a,b\n1,2\n3,inf\n", {}, r"line 3, column 1 \('b'\): the cell is infinite: .*--missing"),
        ("a,b\n1,2\n3,1e99\n", {"missing": "median", "dtype": "float32"}, "line 3, .* too large.*--dtype"),
        ("a,b\n1,2\n1,2,3\n", {}, "line 3: 3 cells, but the first line has 2"),
        ('a,b\n1,"x\ny"\n1\n', {"drop": "b"}, "line 4: 1 cells, but the first line has 2"),
        ("a;b\n1,5;2,5\n", {"delimiter": ";"}, "line 2, .* '1,5' is not a number: give --decimal ','"),
        ("a,day\n1,2024-01-31\n", {"dates": "refuse"}, "line 2, .* 1 .*'2024-01-31' is a date .*--drop day"),
        ("a,f\n1,True\n" + "2,False\n" * 9 + "3,maybe\n", {}, "line 12, .*'maybe' is neither true nor false"),
        ("a,b\n1,\n2,\n", {"columns": "all"}, r"column 1 \('b'\): no cell has a value"),
        ("a,b\n1,\n2,\n", {"missing": "drop"}, "all 2 rows have a missing cell"),
        ("a,y\n1,p\n2,\n", {"label_column": "y"}, r"line 3, column 1 \('y'\): the class is empty"),
        ("a,b\n1,2\n", {"drop": "sise"}, "no column is named 'sise' among a, b"),
        ("size,b\n1,2\n", {"drop": "sise"}, "perhaps 'size' is meant .--drop"),
        ("1,2\n", {"columns": 5}, "there is no column 5 among 2: count from 0"),
        ("a,b\n1,2\n", {"drop": "a,b"}, "no column is left"),
        ("a,b\n1,2\n", {"drop": "a", "columns": "a,b"}, "column 0 .* is both used and dropped"),
        ("a,b\n1,2\n", {"label_column": "a", "index_column": 0}, "cannot be both"),
        ("a,b\n1,2\n", {"missing": "zero"}, "missing='zero' is unknown"),
        ("a,b\n1,2\n", {"categories": "hash"}, "categories='hash' is unknown"),
        ("a,b\n1,2\n", {"delimiter": ";;"}, "delimiter=';;' is no single character"),
        ("a,b\n1,2\n", {"decimal": ","}, "',' cannot divide both cells and decimals"),
        ("a,b\n1,2\n".encode("utf-16"), {}, "line 1: this is not UTF-8 text .it looks like UTF-16."),
        (b"a,b\n1,2\n1,\xff\n", {}, "line 3: this is not UTF-8 text"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(taken, tmp_path, text, options, match):
    with pytest.raises(InputError, match=match) as caught:
        taken(text, **options)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("columns", "options", "match"),
    [
        ({"a": [1, None]}, REFUSE, r"row 1, column 0 \('a'\): the cell has no value.*: .*--missing"),
        ({"a": [1, np.nan]}, REFUSE, r"row 1, column 0 \('a'\): the cell is NaN: .*--missing"),
        ({"a": ["1", "x"]}, REFUSE, r"row 1, column 0 \('a'\): 'x' is not a number: .*one-hot"),
        ({"a": [1], "b": [[1, 2]]}, {}, r"row 0, column 1 \('b'\): \[1, 2\] is of type list.*--drop b"),
        ({"a": [pd.Timestamp("2024-01-31")]}, REFUSE, r"row 0, column 0 \('a'\): '2024-01-31.* is a date"),
        ({"a": [1]}, {"decimal": ","}, "decimal is of CSV files"),
        ({"a": pa.array([], pa.float64())}, {}, "has no rows|0 sample"),
    ],
)
def test_what_cannot_be_used_of_columns(tmp_path, form, columns, options, match):
    write(pa.table(columns), tmp_path / f"a.{form}")
    with pytest.raises(InputError, match=match):
        convert(tmp_path / f"a.{form}", tmp_path / "a.zarr", **options)
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{form}"]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
def test_damaged_files(tmp_path, name):
    write(pa.table({"a": np.arange(5000.0)}), tmp_path / name.replace("feather", "arrow"))
    whole = (tmp_path / name.replace("feather", "arrow")).read_bytes()
    for data in (b"", b"junk", whole[: len(whole) // 2]):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=f"{name} cannot be read"):
            convert(tmp_path / name, tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


def test_too_many_categories(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"1,t{i}\n" for i in range(1001)))
    with pytest.raises(
        InputError, match=r"column 1 \('b'\): there are more than 1000 different texts.*--drop b"
    ):
        convert(tmp_path / "a.csv", tmp_path / "a.zarr", categories="one-hot")


def test_options_of_tables_are_of_tables(tmp_path):
    for source, kind in ((np.eye(3), "ndarray"), (pd.DataFrame({"a": [1, 2]}), "DataFrame")):
        match = f"^drop is of CSV, Parquet and Arrow files, but a {kind} is none: leave it out.$"
        with pytest.raises(InputError, match=match):
            convert(source, tmp_path / "a.zarr", drop="a")


@pytest.mark.slow
def test_the_command_tells_what_it_took(tmp_path):
    (tmp_path / "a.csv").write_text("id,a,kind,note\nx,1,p,n\ny,,q,n\n")
    options = [
        "--index-column",
        "id",
        "--drop",
        "note",
        "--categories",
        "one-hot",
        "--missing",
        "median",
        "--json",
    ]
    command = [sys.executable, "-m", "mmcnb", "convert", tmp_path / "a.csv", tmp_path / "a.zarr", *options]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    listing = [(one["name"], one["missing"], one["distinct"], one["becomes"]) for one in report["columns"]]
    assert listing == [
        ("id", 0, 2, "names of rows"),
        ("a", 1, 1, "number"),
        ("kind", 0, 2, "a 0/1 column for each text"),
        ("note", None, None, "left out"),
    ]
    assert (report["cells_filled"], report["n_samples"]) == (1, 2)


def test_a_damaged_line_far_from_the_head_is_told_by_our_sentence_alone(tmp_path, monkeypatch, capfd):
    path = tmp_path / "damaged.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n" * 100 + b"1,\xff,2\n")
    with pytest.raises(InputError, match="line 102: this is not UTF-8 text"):
        convert(path, tmp_path / "out.zarr")
    assert capfd.readouterr().err == ""


def test_a_blank_line_is_no_row_beside_text_beyond_ascii(tmp_path):
    path = tmp_path / "names.csv"
    path.write_bytes("a,b,name\n1,2,Zoé\n3,4,Zoë\n  \n".encode())
    convert(path, tmp_path / "out.zarr", drop=["name"])
    assert open_samples(tmp_path / "out.zarr").n_samples == 2


# --- kinds of tables -----------------------------------------------------------------------------


def convert_and_open(folder, text, **options):
    """Text as a store; its rows."""
    (folder / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    convert(folder / "a.csv", folder / "a.zarr", overwrite=True, **options)
    return rows_of(folder / "a.zarr")


COUNTED = "".join(f"{i},{i * i % 7}\n" for i in range(30))
REMEDIES = {
    "text": (
        "a,b\n1,x\n2,y\n",
        {"categories": "refuse"},
        {
            "--categories one-hot": {"categories": "one-hot"},
            "--drop b": {"drop": "b"},
            "--label-column": {"label_column": "b"},
            "--index-column": {"index_column": "b"},
        },
    ),
    "a date": (
        "a,day\n1,2024-01-31\n2,2024-02-01\n",
        {"dates": "refuse"},
        {"--dates epoch": {"dates": "epoch"}, "--drop day": {"drop": "day"}},
    ),
    "thousands": (
        'a,b\n1,"1,234"\n2,"12,345"\n',
        {},
        {"--thousands ','": {"thousands": ","}, "--drop b": {"drop": "b"}},
    ),
    "quoted decimals": ('a,b\n1,"0,5"\n2,"1,25"\n', {}, {"--decimal ','": {"decimal": ","}}),
    "decimals": ("a;b\n1,5;2,5\n3,5;4,5\n", {"delimiter": ";"}, {"--decimal ','": {"decimal": ","}}),
    "apostrophes": ("a,b\n1,1'234\n2,12'345\n", {}, {'--thousands "\'"': {"thousands": "'"}}),
    "an unknown mark": (
        "a,b\n1,5\n2,void\n3,7\n",
        {"missing": "refuse"},
        {"--na-values void and --missing drop": {"na_values": "void", "missing": "drop"}},
    ),
    "an unknown mark, filled": (
        "a,b\n1,5\n2,void\n3,7\n",
        {},
        {"--na-values void": {"na_values": "void"}},
    ),
    "a flag": ("a,b\n1,true\n2,false\n3,2\n", {}, {"--drop b": {"drop": "b"}}),
    "a gap": (
        "a,b\n1,2\n3,\n",
        {"missing": "refuse"},
        {"--missing drop": {"missing": "drop"}, "--missing median": {"missing": "median"}},
    ),
    "a mark that is a text": (
        "a,b\n1,-\n2,x\n",
        {"categories": "one-hot", "missing": "refuse"},
        {"--na-values ''": {"na_values": ""}, "--missing drop": {"missing": "drop"}},
    ),
    "a large number": ("a\n1\n1e99\n", {"dtype": "float32"}, {"--dtype float64": {"dtype": "float64"}}),
    "no class": ("a,y\n1,p\n2,\n", {"label_column": "y"}, {"--missing drop": {"missing": "drop"}}),
    "no median": ("a,b\n1,\n2,\n", {"columns": "all"}, {"--drop b": {"drop": "b"}}),
    "no row": (
        "a,b\n1,\n,2\n",
        {"missing": "drop"},
        {"--missing median": {"missing": "median"}, "--drop": {"drop": "b"}},
    ),
    "numbers above": (
        "400.0,402.5\n" + "".join(f"{i / 90},{i / 80}\n" for i in range(9)),
        {},
        {"--header yes": {"header": "yes"}, "--header no": {"header": "no"}},
    ),
    "an infinite cell": ("a,b\n1,2\n3,inf\n", {}, {"--missing drop": {"missing": "drop"}}),
    "row names of pandas beside others": (
        ",id,a\n0,7,1\n1,8,2\n",
        {"index_column": "id"},
        {"--index-column 0": {"index_column": 0}, "--drop 0": {"drop": 0}},
    ),
    "a column without a name": ("a,b,\n1,2,\n", {}, {"--drop 2": {"drop": 2}}),
    "a name twice": ("a,a\n1,2\n", {}, {"--drop 1": {"drop": 1}}),
    "many texts": (
        "a,b\n" + "".join(f"1,t{i}\n" for i in range(1001)),
        {"categories": "one-hot"},
        {"--drop b": {"drop": "b"}},
    ),
}


@pytest.mark.parametrize("kind", REMEDIES)
def test_each_remedy_works_when_it_is_followed(tmp_path, kind):
    text, options, remedies = REMEDIES[kind]
    with pytest.raises(InputError) as caught:
        convert_and_open(tmp_path, text, **options)
    for words, remedy in remedies.items():
        assert words in str(caught.value)
        rows = convert_and_open(tmp_path, text, **options | remedy)
        assert len(rows)
        assert np.isfinite(rows).all()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_remedies_of_columns_work(tmp_path, form):
    frame = pd.DataFrame({"a": [1, 2], "b": [[1, 2], [3]], "day": pd.to_datetime(["2024-01-31", None])})
    path = write(pa.Table.from_pandas(frame), tmp_path / f"a.{form}")
    with pytest.raises(InputError, match=r"--drop b, .*--dates epoch, or .*--drop day\."):
        convert(path, tmp_path / "a.zarr", dates="refuse")
    with pytest.raises(InputError, match=r"column 2 .'day'.: the cell has no value: .*--missing drop"):
        convert(path, tmp_path / "a.zarr", drop="b", dates="epoch", missing="refuse")
    convert(path, tmp_path / "a.zarr", drop="b", dates="epoch", missing="drop")
    assert rows_of(tmp_path / "a.zarr").tolist() == [[1, pd.Timestamp("2024-01-31").timestamp()]]
    convert(path, tmp_path / "b.zarr", drop="b", dates="drop")
    assert rows_of(tmp_path / "b.zarr").tolist() == [[1], [2]]


def test_another_mark_divides_cells_beside_decimal_commas(tmp_path):
    with pytest.raises(InputError, match=r"give another delimiter .--delimiter ';'"):
        convert_and_open(tmp_path, "a,b\n1,2\n", decimal=",")
    rows = convert_and_open(tmp_path, "a;b\n1,5;2\n", decimal=",", delimiter=";")
    assert rows.tolist() == [[1.5, 2]]


def test_row_names_that_are_missing_can_be_left_out(tmp_path):
    path = write(pa.table({"id": [1, None], "a": [1.0, 2.0]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"row 1, .*'id'\): the name of the row is missing: .*--drop id"):
        convert(path, tmp_path / "a.zarr", index_column="id")
    convert(path, tmp_path / "a.zarr", drop="id")
    assert rows_of(tmp_path / "a.zarr").tolist() == [[1], [2]]


def test_a_text_that_is_too_large_becomes_a_store(tmp_path, monkeypatch):
    from mmcnb.tables import rows as tables

    (tmp_path / "a.csv").write_text("a\n1\n2\n")
    monkeypatch.setattr(tables, "MOST_WHOLE_BYTES", 3)
    with pytest.raises(InputError, match=r"`mmcnb convert .*a\.csv OUT\.zarr`"):
        open_samples(tmp_path / "a.csv")
    convert(tmp_path / "a.csv", tmp_path / "a.zarr")
    assert open_samples(tmp_path / "a.zarr").n_samples == 2


@pytest.mark.parametrize("first", [1_700_000_000, 123_456_000])
@pytest.mark.parametrize("before", [0, 5000])
def test_whole_numbers_that_float32_merges_stay_apart(tmp_path, first, before):
    numbers = [*range(before), *range(first, first + 90)]
    text = "id,a\n" + "".join(f"{number},1\n" for number in numbers)
    rows = convert_and_open(tmp_path, text, columns="all")
    assert rows[:, 0].tolist() == numbers


def test_numbers_near_each_other_stay_apart(tmp_path):
    text = "a,b\n" + "".join(f"{1e6 + i / 100:.2f},{i}\n" for i in range(100))
    assert len(np.unique(convert_and_open(tmp_path, text)[:, 0])) == 100
    assert convert_and_open(tmp_path, "a\n0.1\n0.25\n").dtype == np.float32


@pytest.mark.parametrize("has_index", [True, False])
def test_a_header_of_numbers_names_the_columns(tmp_path, rng, has_index):
    frame = pd.DataFrame(rng.random((40, 3)).round(3), columns=[400.0, 402.5, 405.0])
    frame.to_csv(tmp_path / "a.csv", index=has_index)
    options = {"header": "yes", "index_column": 0 if has_index else None}
    convert(tmp_path / "a.csv", tmp_path / "a.zarr", **options)
    assert open_samples(tmp_path / "a.zarr").feature_names == ["400.0", "402.5", "405.0"]
    assert rows_of(tmp_path / "a.zarr") == pytest.approx(frame.to_numpy())
    if has_index:
        assert open_index(tmp_path / "a.zarr").tolist() == list(range(40))


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("notes", ["# station 4\n", "# station 4\n# height, 120 m\n#\n"])
def test_notes_above_the_header_are_passed_over(tmp_path, notes):
    text = notes + "heat,wind\n" + COUNTED
    assert convert_and_open(tmp_path, text, columns="all").shape == (30, 2)
    assert open_samples(tmp_path / "a.zarr").feature_names == ["heat", "wind"]
    with pytest.raises(InputError, match=f"line {notes.count(chr(10)) + 32}, column 1 .'wind'"):
        convert_and_open(tmp_path, text + "1,x\n")


@pytest.mark.parametrize("mark", ["?", "-", "None", "NA", "n/a", ""])
def test_marks_of_missing_values(tmp_path, mark):
    numbers = "power,weight\n" + "".join(f"{mark if i % 9 == 3 else 50 + i},{i}\n" for i in range(40))
    rows = convert_and_open(tmp_path, numbers, columns="all")
    others = [50 + i for i in range(40) if i % 9 != 3]
    assert rows[3].tolist() == [lower_median(others), 3]
    texts = "weight,colour\n" + "".join(f"{i},{[mark, 'red', 'blue'][i % 3]}\n" for i in range(30))
    rows = convert_and_open(tmp_path, texts, missing="drop", columns="all")
    assert rows.shape == (20, 3)


def test_numbers_below_marks_are_no_categories(tmp_path):
    text = "kind,size\n" + "".join(f"{'ab'[i % 2]},{'?' if i < 20 else i / 4}\n" for i in range(30))
    rows = convert_and_open(tmp_path, text, missing="drop", categories="one-hot")
    assert rows.shape == (10, 3)
    assert open_samples(tmp_path / "a.zarr").feature_names == ["kind_a", "kind_b", "size"]
    text = "kind,size\n" + "".join(f"{'ab'[i % 2]},{'void' if i < 9 else i}\n" for i in range(30))
    with pytest.raises(InputError, match=r"'void' is not a number .and 8 more.: give --na-values void"):
        convert_and_open(tmp_path, text, missing="drop", categories="one-hot")


@pytest.mark.usefixtures("pieces")
def test_columns_divided_by_several_spaces(tmp_path):
    text = "a  b  c\n" + "".join(f"{i}   {i / 4}  {-i}\n" for i in range(30))
    rows = convert_and_open(tmp_path, text, columns="all")
    assert rows.tolist() == [[i, i / 4, -i] for i in range(30)]
    text = " a b\n 1  2 \n 3  4\n"
    assert convert_and_open(tmp_path, text, delimiter=" ").tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_text_that_stops_early_is_refused(tmp_path, rng, ending):
    text = "a,b\n" + "".join(f"{a},{b}\n" for a, b in rng.normal(size=(5000, 2)).round(4))
    whole = COMPRESS[ending](text.encode())
    for part in (whole[:-8], whole[: len(whole) // 2]):
        (tmp_path / f"a.csv{ending}").write_bytes(part)
        with pytest.raises(InputError, match=f"a.csv{ending} cannot be .*: get the file again"):
            convert(tmp_path / f"a.csv{ending}", tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.parametrize("form", FORMATS)
def test_files_of_a_folder_are_joined_by_name(tmp_path, form):
    folder = tmp_path / "rows"
    folder.mkdir()
    ages, incomes = pa.array(range(20)), pa.array(np.arange(20) / 4)
    write(pa.table({"age": ages, "income": incomes}), folder / f"1.{form}")
    write(pa.table({"income": incomes, "age": ages.cast(pa.float64())}), folder / f"2.{form}")
    samples = open_samples(folder)
    assert samples.feature_names == ["age", "income"]
    assert samples.block(0, 40).tolist() == [[i % 20, i % 20 / 4] for i in range(40)]
    write(pa.table({"age": pa.array(["x"]), "income": [1.0]}), folder / f"3.{form}")
    with pytest.raises(InputError, match=r"'age'.*(write one type in all files|'x' is not a number)"):
        open_samples(folder)


@pytest.mark.parametrize("form", FORMATS)
def test_folders_named_by_values_add_a_column(tmp_path, form):
    for year in (2023, 2024):
        (tmp_path / f"rows/year={year}").mkdir(parents=True)
        write(pa.table({"a": [0.5, 1.5]}), tmp_path / f"rows/year={year}/part.{form}")
    samples = mmcnb.read_table(tmp_path / "rows")
    assert samples.feature_names == ["a", "year"]
    assert samples.block(0, 4).tolist() == [[0.5, 2023], [1.5, 2023], [0.5, 2024], [1.5, 2024]]
    write(pa.table({"year": [1.0]}), tmp_path / f"rows/year=2023/other.{form}")
    with pytest.raises(InputError, match="'year' names a column and folders: rename the folders"):
        mmcnb.read_table(tmp_path / "rows")


@pytest.mark.parametrize("ending", ["parquet", "parq", "pq"])
def test_endings_of_parquet(tmp_path, ending):
    write(pa.table({"a": [1.0, 2.0]}), tmp_path / "a.parquet").rename(tmp_path / f"b.{ending}")
    assert open_samples(tmp_path / f"b.{ending}").block(0, 2).tolist() == [[1], [2]]
    convert(tmp_path / f"b.{ending}", tmp_path / "a.zarr")
    assert rows_of(tmp_path / "a.zarr").tolist() == [[1], [2]]


def test_all_faults_are_told_at_once_and_nothing_is_written(tmp_path):
    text = "a,b,c\n1,2,x\n1,2\n,y,3\n4,5,6\n,6,7\n" + "1,2,3\n" * 90
    with pytest.raises(InputError) as caught:
        convert_and_open(tmp_path, text, missing="refuse")
    said = str(caught.value)
    for fault in (
        "line 2, column 2 ('c'): 'x' is not a number",
        "line 3: 2 cells, but the first line has 3",
        "line 4, column 0 ('a'): the cell has no value (and 1 more)",
        "line 4, column 1 ('b'): 'y' is not a number",
    ):
        assert fault in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_a_first_column_without_a_name_names_the_rows(tmp_path, name):
    rows = convert_and_open(tmp_path, f"{name},a\n7,1\n5,2\n")
    assert rows.tolist() == [[1], [2]]
    assert open_samples(tmp_path / "a.zarr").feature_names == ["a"]
    assert open_index(tmp_path / "a.zarr").tolist() == [7, 5]
    assert convert_and_open(tmp_path, f"{name},a\n7,1\n5,2\n", columns=[0, 1]).tolist() == [[7, 1], [5, 2]]
    convert_and_open(tmp_path, f"{name},a\n7,1\n5,2\n", drop=0)
    assert open_index(tmp_path / "a.zarr") is None


@pytest.mark.usefixtures("pieces")
def test_a_type_that_proves_wrong_later_is_read_again(tmp_path):
    text = "a,b,c\n" + "1,,3\n" * 50 + "1.5,2,3\n"
    rows = convert_and_open(tmp_path, text, missing="drop")
    assert rows.tolist() == [[1.5, 2, 3]]
    text = "id,a\n" + "".join(f"{i},1\n" for i in range(50)) + "x,2\n"
    convert_and_open(tmp_path, text, index_column="id")
    assert open_index(tmp_path / "a.zarr").tolist() == [*map(str, range(50)), "x"]


def test_a_blank_line_changes_no_type(tmp_path):
    text = "id,a\n1,2\n  \n3,4\n"
    convert_and_open(tmp_path, text, index_column="id")
    assert open_index(tmp_path / "a.zarr").tolist() == [1, 3]
    report = convert(tmp_path / "a.csv", tmp_path / "b.zarr")
    assert [one["type"] for one in report["columns"]] == ["int64", "int64"]


def test_the_columns_are_listed_after_the_first_rows_and_at_the_end(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n" + f"1,{'x' * 30}\n" * 200_000 + "2,\n" * 9)
    shown: list = []
    report = convert(
        tmp_path / "a.csv", tmp_path / "a.zarr", label_column="b", missing="drop", show_columns=shown.append
    )
    [first] = shown
    assert [(one["name"], one["distinct"], one["missing"]) for one in first] == [("a", 1, 0), ("b", 1, 0)]
    names = ("name", "type", "missing", "distinct", "becomes")
    assert [tuple(one[name] for name in names) for one in report["columns"]] == [
        ("a", "int64", 0, 2, "number"),
        ("b", "string", 9, 1, "classes"),
    ]
    assert report["rows_dropped"] == 9


def test_options_of_the_command_are_those_of_python(tmp_path):
    import inspect

    from mmcnb.cli.convert import OF_TABLES

    options = list(inspect.signature(mmcnb.read_table).parameters)
    assert options == ["path", *OF_TABLES, "dtype"]
    (tmp_path / "a.csv").write_text("a;b;day\n1,5;x;2024-01-01\n2,5;y;2024-01-02\n")
    samples = mmcnb.read_table(tmp_path / "a.csv", ["a", "day"], decimal=",", dates="epoch", dtype="float64")
    assert samples.block(0, 2).tolist() == [[1.5, 1704067200], [2.5, 1704153600]]
    with pytest.raises(InputError, match=r"is no table: give a \.csv"):
        mmcnb.read_table(tmp_path / "a.npy")


def test_info_lists_the_columns_and_verify_says_what_to_do(tmp_path, capsys):
    from mmcnb.cli import main

    (tmp_path / "a.csv").write_text("a,k\n1,x\n2,x\n")
    assert main(["info", str(tmp_path / "a.csv"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["becomes"] for one in report["columns"]] == ["number", "a 0/1 column for each text"]
    assert (report["n_samples"], report["faults"]) == (2, None)
    write(pa.table({"a": [1, 2], "k": [[1], [2]]}), tmp_path / "a.parquet")
    assert main(["info", str(tmp_path / "a.parquet"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["becomes"] for one in report["columns"]] == ["number", "refused"]
    assert "[1] is of type list<element: int64> and not a number" in report["faults"]
    assert main(["info", str(tmp_path / "a.csv")]) == 0
    assert "column  type" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "a.csv")]) != 0
    assert "make one by `mmcnb convert" in capsys.readouterr().err


def test_a_cell_of_two_lines_is_refused_in_one_sentence_without_a_mark_to_give(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('a,b\n1,2\n3,"two\nlines"\n5,6\n7,8\n')
    with pytest.raises(InputError, match=r"^[^\n]*'two.nlines' is not a number: correct it[^\n]*$"):
        open_samples(path)


def test_an_arrow_file_whose_buffers_are_too_short_is_refused_in_one_sentence(tmp_path):
    columns = {name: pa.array(np.arange(150)) for name in "abc"}
    pyarrow.feather.write_feather(pa.table(columns), tmp_path / "whole.arrow", compression="uncompressed")
    content = (tmp_path / "whole.arrow").read_bytes()
    path, refused = tmp_path / "rows.arrow", []
    place = content.index((1200).to_bytes(8, "little"))  # the length of a buffer, in the message of the batch
    while place >= 0:
        path.write_bytes(content[:place] + bytes(8) + content[place + 8 :])
        try:
            convert(path, tmp_path / f"{place}.zarr", progress=False)
        except InputError as error:
            refused.append(str(error))
            assert not (tmp_path / f"{place}.zarr").exists()
        place = content.find((1200).to_bytes(8, "little"), place + 8)
    assert any("too small" in sentence for sentence in refused)
    assert all("rows.arrow" in sentence and "\n" not in sentence for sentence in refused)

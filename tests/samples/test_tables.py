"""Tables in files: numbers, names and kinds of their columns, and the sentence if they cannot be taken."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import mmcnb
from mmcnb import open_samples
from mmcnb.stores import convert, open_class_labels, open_index, verify_store
from tests.samples.common import COMPRESS, one_sentence, rows_of

FORMATS = ("csv", "parquet", "arrow")
REFUSE = {"missing": "refuse", "categories": "refuse", "dates": "refuse"}


def write(table, path):
    """Write an Arrow table in the format that the file's name says."""
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=70)
    else:
        pa.feather.write_feather(table, path, chunksize=90)
    return path


def lower_median(values):
    """The middle one of the sorted values, of two the lower one."""
    return np.sort(values)[(len(values) - 1) // 2]


@pytest.fixture
def taken(tmp_path):
    """A function that converts text, and gives the rows, the names of columns and the report."""

    def convert_text(text, **options):
        source = tmp_path / "a.csv"
        source.write_bytes(text if isinstance(text, bytes) else text.encode())
        report = convert(source, tmp_path / "a.zarr", overwrite=True, **options)
        return (
            rows_of(tmp_path / "a.zarr").tolist(),
            open_samples(tmp_path / "a.zarr").feature_names,
            report,
        )

    return convert_text


# --- the same numbers in each format --------------------------------------------------


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("form", FORMATS)
def test_classes_and_names_of_rows_in_each_format(tmp_path, form):
    columns = {
        "name": ["p", "q", "r", "s"],
        "a": [1, 2, None, 3],
        "class": ["x", "y", "z", "x"],
    }
    source = write(pa.table(columns), tmp_path / f"a.{form}")
    store = tmp_path / "a.zarr"
    for missing, kept in (("drop", [0, 1, 3]), ("median", [0, 1, 2, 3])):
        options = {"index_column": "name", "label_column": "class", "missing": missing}
        convert(source, store, overwrite=True, **options)
        assert verify_store(store)["checksummed"]
        assert rows_of(store)[:, 0].tolist() == [[1, 2, 2, 3][row] for row in kept]
        assert open_index(store).tolist() == ["pqrs"[row] for row in kept]
        assert open_class_labels(store).tolist() == (
            [0, 1, 0] if missing == "drop" else [0, 1, 2, 0]
        )
        assert open_samples(store).feature_names == ["a"]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("ending", COMPRESS)
def test_compressed_text(tmp_path, ending):
    path = tmp_path / f"a.csv{ending}"
    text = "a,b\n" + "".join(f"{i},{i / 8}\n" for i in range(100))
    path.write_bytes(COMPRESS[ending](text.encode()))
    convert(path, tmp_path / "a.zarr", columns="all")
    assert rows_of(tmp_path / "a.zarr").tolist() == [[i, i / 8] for i in range(100)]


def test_numbers_are_those_of_python(rng, taken):
    values = (rng.normal(size=2000) * 10.0 ** rng.integers(-300, 300, 2000)).tolist()
    rows, _, _ = taken(
        "a\n" + "".join(f"{value!r}\n" for value in values), dtype="float64"
    )
    assert rows == [[value] for value in values]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_types_of_parquet_and_arrow(tmp_path, form):
    table = pa.table(
        {
            "small": pa.array([1, 2], pa.int8()),
            "flag": [True, False],
            "half": pa.array(np.array([0.5, 2], np.float16)),
            "price": pa.array([1, 2], pa.decimal128(10, 2)),
            "code": pa.array([3, 4]).dictionary_encode(),
        }
    )
    path = write(table, tmp_path / f"a.{form}")
    # A dictionary has categories, but Parquet keeps no dictionary of numbers.
    first, second = ([3], [4]) if form == "parquet" else ([1, 0], [0, 1])
    assert rows_of(path).tolist() == [[1, 1, 0.5, 1, *first], [2, 0, 2, 2, *second]]
    convert(path, tmp_path / "a.zarr", columns="small")
    assert open_samples(tmp_path / "a.zarr").stored_dtype == np.int8


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_the_index_of_a_frame_names_rows(tmp_path, form):
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])
    path = write(pa.Table.from_pandas(frame), tmp_path / f"a.{form}")
    listing = convert(path, tmp_path / "a.zarr")["columns"]
    assert [one["becomes"] for one in listing] == ["number", "names of rows"]
    assert open_index(tmp_path / "a.zarr").tolist() == ["x", "y"]
    assert open_samples(tmp_path / "a.zarr").feature_names == ["a"]


# --- folders --------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_files_of_a_folder_are_joined_by_name(tmp_path, form):
    folder = tmp_path / "rows"
    (folder / "inner").mkdir(parents=True)
    ages = pa.array(range(20))
    incomes = pa.array(np.arange(20) / 4)
    write(pa.table({"age": ages, "income": incomes}), folder / f"1.{form}")
    write(
        pa.table({"income": incomes, "age": ages.cast(pa.float64())}),
        folder / f"inner/2.{form}",
    )
    write(pa.table({"other": ages}), folder / f"_metadata.{form}")
    assert open_samples(folder).feature_names == ["age", "income"]
    assert rows_of(folder).tolist() == [[i % 20, i % 20 / 4] for i in range(40)]
    write(pa.table({"age": pa.array(["x"]), "income": [1.0]}), folder / f"3.{form}")
    if form == "csv":
        notes = " ".join(open_samples(folder).notes)
        assert "count as missing: 1 in 'age' ('x')" in notes
    else:
        with one_sentence("'age'.*write it with the same type in all files"):
            open_samples(folder)
    write(pa.table({"age": [1]}), folder / f"3.{form}")
    with one_sentence(
        rf"3\.{form}, (row 0|line 2), column 1 \('income'\): the cell has no value"
    ):
        convert(folder, tmp_path / "a.zarr", missing="refuse")


@pytest.mark.parametrize("form", FORMATS)
def test_folders_named_by_values_add_a_column(tmp_path, form):
    for year in (2023, 2024):
        (tmp_path / f"rows/year={year}").mkdir(parents=True)
        write(pa.table({"a": [0.5, 1.5]}), tmp_path / f"rows/year={year}/part.{form}")
    samples = mmcnb.read_table(tmp_path / "rows")
    assert samples.feature_names == ["a", "year"]
    assert rows_of(samples).tolist() == [
        [0.5, 2023],
        [1.5, 2023],
        [0.5, 2024],
        [1.5, 2024],
    ]
    write(pa.table({"year": [1.0]}), tmp_path / f"rows/year=2023/other.{form}")
    with one_sentence("'year' names both a column and folders: rename the folders"):
        mmcnb.read_table(tmp_path / "rows")


# --- which columns --------------------------------------------------------------------

TABLE = 'id,size,"b, c",kind\n7,1,2.5,x\n8,3,4,y\n'


@pytest.mark.parametrize(
    ("options", "names", "left_out"),
    [
        ({"drop": ["id", "kind"]}, ["size", "b, c"], ["id", "kind"]),
        ({"drop": [0, -1]}, ["size", "b, c"], ["id", "kind"]),
        ({"columns": '"b, c",size'}, ["b, c", "size"], ["id", "kind"]),
        (
            {"columns": ["b, c", "size"], "label_column": "kind"},
            ["b, c", "size"],
            ["id"],
        ),
        ({"index_column": "id", "label_column": 3}, ["size", "b, c"], []),
    ],
)
def test_columns_are_chosen(taken, tmp_path, options, names, left_out):
    rows, found, report = taken(TABLE, **options)
    assert [
        one["name"] for one in report["columns"] if one["becomes"] == "left out"
    ] == left_out
    assert found == names
    values = {"size": 1, "b, c": 2.5}
    assert rows[0] == [values[name] for name in names]
    if "index_column" in options:
        convert(tmp_path / "a.zarr", tmp_path / "b.zarr")
        assert open_index(tmp_path / "b.zarr").tolist() == [7, 8]


@pytest.mark.parametrize(
    ("text", "options", "names", "rows"),
    [
        ("1,2\n3,4\n", {}, None, [[1, 2], [3, 4]]),
        ("0,1,2\n5,6,7\n", {}, ["0", "1", "2"], [[5, 6, 7]]),
        ("1990,x\n3,4\n", {}, ["1990", "x"], [[3, 4]]),
        ("\ufeffa,b\n1,2\n", {}, ["a", "b"], [[1, 2]]),
        ("\n a , b \n\n1,2\n\n", {}, ["a", "b"], [[1, 2]]),
        ('"a\n1",b\n1,2\n', {}, ["a\n1", "b"], [[1, 2]]),
        (
            "# station 4\n# height, 120 m\n#\nheat,wind\n1,2\n",
            {},
            ["heat", "wind"],
            [[1, 2]],
        ),
        ("a\tb\n1\t2\n", {}, ["a", "b"], [[1, 2]]),
        (
            "a;b\n1,5;2\n-3,25e1;,5\n",
            {"delimiter": ";", "decimal": ","},
            ["a", "b"],
            [[1.5, 2], [-32.5, 0.5]],
        ),
        (
            "a  b  c\n1   2.5  -3\n4 5 6\n",
            {},
            ["a", "b", "c"],
            [[1, 2.5, -3], [4, 5, 6]],
        ),
        (" a b\n 1  2 \n 3  4\n", {"delimiter": " "}, ["a", "b"], [[1, 2], [3, 4]]),
        (
            "a,b,name\n1,2,Zoé\n3,4,Zoë\n  \n",
            {"drop": "name"},
            ["a", "b"],
            [[1, 2], [3, 4]],
        ),
        (",a\n7,1\n5,2\n", {}, ["a"], [[1], [2]]),
        (",a\n7,1\n5,2\n", {"columns": [0, 1]}, ["", "a"], [[7, 1], [5, 2]]),
        (
            "a,b\n1,2\n4,3\n,7\n",
            {"missing": "mean"},
            ["a", "b"],
            [[1, 2], [4, 3], [2.5, 7]],
        ),
        (
            "a,b\n1,True\n,false\n3,\n7,True\n",
            {},
            ["a", "b"],
            [[1, 1], [3, 0], [3, 1], [7, 1]],
        ),
        ('a\n"1,234"\n"12,345"\n', {"thousands": ","}, ["a"], [[1234], [12345]]),
        (
            "a,b\n1,-\n2,5\n4,void\n",
            {"na_values": "void"},
            ["a", "b"],
            [[1, 5], [2, 5], [4, 5]],
        ),
        ("a,day\n1,1970-01-02\n2,1970-01-01\n", {}, ["a", "day"], [[1, 86400], [2, 0]]),
        ("a,day\n1,1970-01-02\n2,1970-01-01\n", {"dates": "drop"}, ["a"], [[1], [2]]),
        ("a,b,c\n1,,3\n1.5,2,3\n", {"missing": "drop"}, ["a", "b", "c"], [[1.5, 2, 3]]),
    ],
)
@pytest.mark.usefixtures("pieces")
def test_text_becomes_names_and_numbers(taken, text, options, names, rows):
    found, found_names, report = taken(text, **options)
    assert (found_names, found) == (names, rows)
    assert report["header"] == (names is not None)


def test_the_report_counts_cells_and_rows_that_were_changed(taken, tmp_path):
    report = taken("a,b,c\n1,True,0.5\n,false,NA\n7,,1\n")[2]
    assert (report["cells_filled"], report["rows_dropped"]) == (0, 0)
    assert any("gaps are stored as NaN" in note for note in report["notes"])
    report = taken("a,y\n1,p\n,q\n4,\n5,r\n", missing="drop", label_column="y")[2]
    assert (report["cells_filled"], report["rows_dropped"]) == (0, 2)
    assert open_class_labels(tmp_path / "a.zarr").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "options", "names"),
    [
        (",a\n7,1\n5,2\n", {}, [7, 5]),
        (",a\n7,1\n5,2\n", {"drop": 0}, None),
        ("id,a\n1,2\n  \n3,4\n", {"index_column": "id"}, [1, 3]),
        ("id,a\n" + "7,1\n" * 50 + "x,2\n", {"index_column": "id"}, [*["7"] * 50, "x"]),
    ],
)
@pytest.mark.usefixtures("pieces")
def test_names_of_rows_are_kept(taken, tmp_path, text, options, names):
    taken(text, **options)
    index = open_index(tmp_path / "a.zarr")
    assert (index if index is None else index.tolist()) == names


@pytest.mark.parametrize("mark", ["?", "-", "None", "NA", "n/a", ""])
def test_marks_of_missing_values(taken, mark):
    cells = [mark if i % 9 == 3 else 50 + i for i in range(40)]
    rows, _, _ = taken(
        "power,weight\n" + "".join(f"{cell},{i % 7}\n" for i, cell in enumerate(cells))
    )
    median = lower_median([cell for cell in cells if cell != mark])
    assert rows == [
        [median if cell == mark else cell, i % 7] for i, cell in enumerate(cells)
    ]
    texts = "weight,colour\n" + "".join(
        f"{i % 7},{[mark, 'red', 'blue'][i % 3]}\n" for i in range(30)
    )
    rows, names, _ = taken(texts, missing="drop")
    assert (len(rows), names) == (20, ["weight", "colour_blue", "colour_red"])


def test_numbers_below_marks_are_no_categories(taken):
    text = "kind,size\n" + "".join(
        f"{'ab'[i % 2]},{'?' if i < 20 else i / 4}\n" for i in range(30)
    )
    rows, names, _ = taken(text, missing="drop", categories="one-hot")
    assert (len(rows), names) == (10, ["kind_a", "kind_b", "size"])


@pytest.mark.parametrize("first", [1_700_000_000, 123_456_000])
@pytest.mark.parametrize("before", [0, 5000])
def test_whole_numbers_that_float32_merges_stay_apart(taken, first, before):
    numbers = [*range(before), *range(first, first + 90)]
    rows, _, _ = taken(
        "id,a\n" + "".join(f"{number},1\n" for number in numbers), columns="all"
    )
    assert [row[0] for row in rows] == numbers


def test_numbers_near_each_other_stay_apart(taken, tmp_path):
    rows, _, _ = taken("a\n" + "".join(f"{1e6 + i / 100:.2f}\n" for i in range(100)))
    assert len({row[0] for row in rows}) == 100
    taken("a\n0.1\n0.25\n")
    assert open_samples(tmp_path / "a.zarr").dtype == np.float32


def test_the_columns_are_listed_after_the_first_rows_and_at_the_end(taken):
    shown = []
    text = "a,b\n" + f"1,{'x' * 30}\n" * 150_000 + "2,\n" * 9
    report = taken(text, label_column="b", missing="drop", show_columns=shown.append)[2]
    [first] = shown
    assert [(one["name"], one["distinct"], one["missing"]) for one in first] == [
        ("a", 1, 0),
        ("b", 1, 0),
    ]
    keys = ("name", "type", "missing", "distinct", "becomes")
    assert [tuple(one[key] for key in keys) for one in report["columns"]] == [
        ("a", "int64", 0, 2, "number"),
        ("b", "large_string", 9, 1, "classes"),
    ]
    assert report["rows_dropped"] == 9


# --- faults ---------------------------------------------------------------------------

MANY = "a,b\n" + "".join(f"1,t{i}\n" for i in range(1001))
ONE_HOT = {"categories": "one-hot"}
DROP = {"missing": "drop"}
MEDIAN = {"missing": "median"}
B = {"drop": "b"}
FAULTS = [
    # names of columns
    (
        ",id,a\n0,7,1\n1,8,2\n",
        {"index_column": "id"},
        "column 0 has no name: .* --index-column 0, .* --drop 0",
        [{"index_column": 0}, {"drop": 0}],
    ),
    # texts, dates and flags
    (
        "a,b\n1,x\n2,y\n",
        {"categories": "refuse"},
        r"line 2, column 1 \('b'\): 'x' is not a number: .*one-hot, .*--drop b .*--label-column.*--index-col",
        [ONE_HOT, B, {"label_column": "b"}, {"index_column": "b"}],
    ),
    (
        MANY,
        ONE_HOT,
        r"column 1 \('b'\): it has more than 1000 different texts.*--drop b",
        [B],
    ),
    (
        "a,day\n1,2024-01-31\n2,2024-02-01\n",
        {"dates": "refuse"},
        "line 2, .* 1 .*'2024-01-31' is a date .*--dates epoch, .*--drop day",
        [{"dates": "epoch"}, {"drop": "day"}],
    ),
    # numbers
    (
        "a,b\n1,2\n",
        {"decimal": ","},
        r"',' cannot be both .*\(--delimiter ';'\)",
        [],
    ),
    (
        "a,b\n1,2\n3,inf\n",
        {},
        r"line 3, column 1 \('b'\): the cell is infinite: .*--na-values inf,-inf",
        [{"na_values": ["inf", "-inf"]}, DROP],
    ),
    (
        "a,b\n1,2\n3,1e99\n",
        {"dtype": "float32"},
        "line 3, .* too large for float32: .*--dtype float64",
        [{"dtype": "float64"}],
    ),
    # gaps
    (
        "a,b\n1,2\n3,\n",
        {"missing": "refuse"},
        r"line 3, column 1 \('b'\): the cell has no value.*--missing drop.*--missing median",
        [DROP, MEDIAN],
    ),
    (
        'a\n1\n""\n',
        {"missing": "refuse"},
        r"line 3, column 0 \('a'\): the cell has no value",
        [MEDIAN],
    ),
    (
        "a,b\n1,\n2,\n",
        {"columns": "all"},
        r"column 1 \('b'\): no cell has a value: .*--drop b",
        [B],
    ),
    (
        "a,b\n1,\n,2\n",
        DROP,
        "all 2 rows have a missing cell: .*--drop.*--missing median",
        [B, MEDIAN],
    ),
    (
        "a,y\n1,p\n2,\n",
        {"label_column": "y"},
        r"line 3, column 1 \('y'\): the class label is missing: .*drop",
        [DROP],
    ),
    (
        "a,y\n1,0\n2,1\n3,x\n",
        {"label_column": 1},
        "line 4, column 1 .*label 'x' is not an integer",
        [],
    ),
    # lines
    ("a,b\n1,2\n1,2,3\n", {}, "line 3: 3 cells, but the table has 2 columns", []),
    (
        'a,b\n1,"x\ny"\n1,2,3\n',
        {"drop": "b"},
        "line 4: 3 cells, but the table has 2 columns",
        [],
    ),
    ("", {}, "no rows", []),
    ("a,b\n", {}, "a header and no rows", []),
    # options
    ("a,b\n1,2\n", {"drop": "sise"}, "no column is named 'sise' among 'a', 'b'", [B]),
    (
        "size,b\n1,2\n",
        {"drop": "sise"},
        "perhaps 'size' is meant .--drop",
        [{"drop": "size"}],
    ),
    (
        "1,2\n",
        {"columns": 5},
        "there is no column 5 among the 2 columns: count from 0",
        [{"columns": 1}],
    ),
    ("a,b\n1,2\n", {"drop": "a,b"}, "no column is left", [B]),
    (
        "a,b\n1,2\n",
        {"drop": "a", "columns": "a,b"},
        "column 0 .* is both used and dropped",
        [],
    ),
    ("a,b\n1,2\n", {"label_column": "a", "index_column": 0}, "cannot be both", []),
    ("a,b\n1,2\n", {"delimiter": ";;"}, "delimiter=';;' is not a single character", []),
    ("a¦b\n1¦2\n", {"delimiter": "¦"}, "delimiter='¦' is not an ASCII character", []),
    (
        "a,b\n1,2\n",
        {"columns": 3.5},
        "columns=3.5 is not a list: pass names or indices",
        [],
    ),
]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(("text", "options", "match", "remedies"), FAULTS)
def test_a_fault_is_named_and_its_remedies_work(
    taken, tmp_path, capfd, text, options, match, remedies
):
    with one_sentence(match):
        taken(text, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert capfd.readouterr().err == ""
    for remedy in remedies:
        rows, _, _ = taken(text, **options | remedy)
        assert np.isfinite(rows).all()
        assert rows


def test_numbers_far_above_others_are_names_or_numbers_as_told(taken):
    text = "400.0,402.5\n" + "".join(f"{i / 90},{i / 80}\n" for i in range(9))
    with one_sentence("pass --header yes if they name the columns, or --header no"):
        taken(text)
    assert taken(text, header="yes")[1] == ["400.0", "402.5"]
    assert taken(text, header="no")[0][0] == [400.0, 402.5]


def test_all_faults_are_told_at_once(taken):
    text = "a,b,c\n1,2,x\n1,2,3,4\n,y,3\n4,5,6\n,6,7\n" + "1,2,3\n" * 90
    with one_sentence(
        "line 3: 4 cells, but the table has 3.*line 2, .* 'x' is not a number"
    ) as caught:
        taken(text, missing="refuse")
    assert "line 4, column 0 ('a'): the cell has no value (and 1 more)" in str(
        caught.value
    )
    assert "line 4, column 1 ('b'): 'y' is not a number" in str(caught.value)


DAY = pd.Timestamp("2024-01-31")


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("columns", "options", "match", "remedy"),
    [
        (
            {"a": [1, None]},
            REFUSE,
            r"row 1, column 0 \('a'\): the cell has no value.*: .*--missing drop",
            DROP,
        ),
        (
            {"a": [1, np.nan]},
            REFUSE,
            r"row 1, column 0 \('a'\): the cell is NaN: .*--missing",
            MEDIAN,
        ),
        (
            {"a": ["1", "x"]},
            REFUSE,
            r"row 1, column 0 \('a'\): 'x' is not a number: .*one-hot",
            ONE_HOT,
        ),
        (
            {"a": [1], "b": [["x", "y"]]},
            {"columns": "all"},
            r"row 0, column 1 \('b'\): .* has type list.*--drop b",
            B,
        ),
        (
            {"a": [DAY]},
            REFUSE,
            r"row 0, column 0 \('a'\): '2024-01-31.* is a date",
            {"dates": "epoch"},
        ),
        ({"a": [1]}, {"header": "yes"}, "header applies to CSV", {"header": None}),
        ({"a": pa.array([], pa.float64())}, {}, "has no rows|0 sample", None),
        (
            {"b": [1, None], "a": [1.0, 2.0]},
            {"index_column": "b"},
            r"row 1, .*'b'\): the row name is missing: .*--drop b",
            {"index_column": None, **B},
        ),
    ],
)
def test_a_fault_of_typed_columns_is_named_and_its_remedy_works(
    tmp_path, form, columns, options, match, remedy
):
    path = write(pa.table(columns), tmp_path / f"a.{form}")
    with one_sentence(match):
        convert(path, tmp_path / "a.zarr", **options)
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{form}"]
    if remedy is not None:
        convert(path, tmp_path / "a.zarr", **options | remedy)
        assert np.isfinite(rows_of(tmp_path / "a.zarr")).all()


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
def test_damaged_files(tmp_path, name):
    path = tmp_path / name
    table = pa.table({"a": np.arange(5000.0)})
    write(table, path)
    whole = path.read_bytes()
    for data in (b"", b"junk", whole[: len(whole) // 2]):
        path.write_bytes(data)
        with one_sentence(f"{name} cannot be read"):
            convert(path, tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


def test_an_arrow_file_whose_buffers_are_too_short_is_refused(tmp_path):
    path = tmp_path / "rows.arrow"
    table = pa.table({name: pa.array(np.arange(150)) for name in "abc"})
    pyarrow.feather.write_feather(table, path, compression="uncompressed")
    content = path.read_bytes()
    length = (1200).to_bytes(8, "little")  # of a buffer, in the message of the batch
    path.write_bytes(content.replace(length, bytes(8), 1))
    with one_sentence(r"rows\.arrow cannot be read .*too small"):
        convert(path, tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.parametrize(
    ("source", "kind"),
    [(np.eye(3), "ndarray"), (pd.DataFrame({"a": [1]}), "DataFrame")],
)
def test_options_of_tables_are_of_tables(tmp_path, source, kind):
    with one_sentence(
        f"^drop applies to CSV, Parquet and Arrow files only, but a {kind} is not one: leave it out.$"
    ):
        convert(source, tmp_path / "a.zarr", drop="a")


# --- commands -------------------------------------------------------------------------


def test_info_lists_the_columns_and_verify_says_what_to_do(tmp_path, capsys):
    from mmcnb.cli import main

    path = tmp_path / "a.csv"
    path.write_text("a,k\n1,x\n2,x\n")
    assert main(["info", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["becomes"] for one in report["columns"]] == [
        "number",
        "a 0/1 column for each text",
    ]
    assert (report["n_samples"], report["faults"]) == (2, None)
    lists = write(pa.table({"a": [1, 2], "k": [["x"], ["y"]]}), tmp_path / "a.parquet")
    assert main(["info", str(lists), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    left_out = "left out: lists of texts cannot become numbers"
    assert [one["becomes"] for one in report["columns"]] == ["number", left_out]
    assert report["faults"] is None
    assert main(["verify", str(path)]) != 0
    assert "convert it with `mmcnb convert" in capsys.readouterr().err

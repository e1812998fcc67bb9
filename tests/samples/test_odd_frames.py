"""Columns of unusual types are read as their values, or refused by one sentence."""

import datetime
import json
import uuid
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import mmcnb
from mmcnb import open_samples
from tests.campaigns import frames
from tests.samples.common import one_sentence, rows_of

NUMBERS = [3.5, 1.0, 2.0, 2.5] * 3
WHOLE = [4, 1, 2, 2] * 3
TEXTS = ["b", "a", "a", "b"] * 3
FLAGS = [True, False, False, True] * 3


def run_ends(values):
    ends = pa.array(range(1, len(values) + 1), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, values)


def stored(extension, values):
    return pa.ExtensionArray.from_storage(
        extension, pa.array(values, extension.storage_type)
    )


# Each beside the plain column that it is.
ARROW = {
    "run ends of numbers": (run_ends(NUMBERS), NUMBERS),
    "run ends of texts": (run_ends(TEXTS), TEXTS),
    "8-bit flags": (stored(pa.bool8(), [1, 0, 0, 1] * 3), FLAGS),
    "JSON texts": (stored(pa.json_(), TEXTS), TEXTS),
    "decimals of 256 bits": (
        pa.array(map(Decimal, WHOLE), pa.decimal256(70, 2)),
        [float(value) for value in WHOLE],
    ),
    "half floats": (pa.array(np.array(NUMBERS, "f2")), NUMBERS),
    "texts as views": (pa.array(TEXTS, pa.string_view()), TEXTS),
    "dictionary of views": (
        pa.DictionaryArray.from_arrays(
            pa.array([1, 0, 0, 1] * 3), pa.array(["a", "b"], pa.string_view())
        ),
        TEXTS,
    ),
    "chunks of which one is empty": (
        pa.chunked_array([pa.array(NUMBERS[:1]), [], pa.array(NUMBERS[1:])]),
        NUMBERS,
    ),
}


@pytest.mark.parametrize("kind", ARROW)
@pytest.mark.parametrize("form", ["Arrow", "Arrow file"])
def test_values_are_read_whatever_their_layout_is(kind, form, tmp_path):
    column, plain = ARROW[kind]
    source = pa.table({"a": column, "n": NUMBERS})
    if form == "Arrow file":
        path = tmp_path / "a.arrow"
        with pa.ipc.new_file(str(path), source.schema) as writer:
            writer.write_table(source)
        source = path
    samples = open_samples(source)
    expected = open_samples(pd.DataFrame({"a": plain, "n": NUMBERS}))
    assert samples.feature_names == expected.feature_names
    assert rows_of(samples).tolist() == rows_of(expected).tolist()


def test_identifiers_of_bytes_are_texts_that_are_left_out():
    keys = stored(pa.uuid(), [uuid.UUID(int=k).bytes for k in range(12)])
    samples = open_samples(pa.table({"key": keys, "n": NUMBERS}))
    assert samples.feature_names == ["n"]
    assert "'key' (12 texts in 12 rows)" in samples.notes[0]


def test_objects_that_are_numbers_are_numbers():
    rows = pd.DataFrame([[1, 2.5], [True, Decimal("0.5")], [7, 2]] * 4, dtype=object)
    assert rows_of(open_samples(rows)).tolist() == [[1, 2.5], [1, 0.5], [7, 2]] * 4


def test_sparse_columns_of_several_types_stay_sparse():
    sparse = pd.DataFrame(
        {
            "a": pd.arrays.SparseArray(FLAGS),
            "b": pd.arrays.SparseArray(WHOLE, fill_value=0),
        }
    )
    samples = open_samples(sparse)
    assert samples.is_sparse
    assert rows_of(samples).tolist() == [
        list(row) for row in zip(FLAGS, WHOLE, strict=True)
    ]


@pytest.mark.parametrize(
    "values",
    [
        [np.datetime64("NaT"), np.complex64(2)],
        [np.timedelta64(4, "D"), np.complex64(2)],
        [1.5, 1j],
        ["a", object()],
        [datetime.datetime(2024, 1, 1), {1, 2}],
    ],
)
def test_objects_that_are_no_values_are_refused_with_their_row(values):
    frame = pd.DataFrame({"a": [*values * 6], "n": NUMBERS}, dtype=object)
    with one_sentence(r"row 1, column 'a'.*has type"):
        open_samples(frame)
    assert open_samples(frame.drop(columns="a")).n_features == 1


def test_half_pairs_of_unicode_are_written_as_codes():
    frame = pd.DataFrame({"a": ["\udcff", "b"] * 6, "n": NUMBERS})
    assert open_samples(frame).feature_names == ["a_\\udcff", "a_b", "n"]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([b"a"], "bytes cannot become numbers"),
        ([[1, 2]], "its lists are empty"),
        ([None], "it is empty"),
    ],
)
def test_a_column_of_no_values_is_left_out_whatever_its_type(values, why):
    data_type = pa.array(values).type
    table = pa.table({"a": pa.nulls(12, data_type), "n": NUMBERS})
    samples = open_samples(table)
    assert samples.feature_names == ["n"]
    assert f"'a' ({why})" in samples.notes[0]


NESTED = {
    "lists of texts": [["x"], [], ["x", "y"], None] * 3,
    "lists of objects": [[{"x": 1}], [], None, [{"x": 2}]] * 3,
    "lists of lists of numbers": [[[1]], [[2, 3]], None, []] * 3,
}


def in_a_file(table, form, folder):
    path = folder / f"a.{form}"
    if form == "parquet":
        pa.parquet.write_table(table, path)
    elif form == "arrow":
        pyarrow.feather.write_feather(table, path)
    else:
        lines = map(json.dumps, table.to_pylist())
        path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("contents", NESTED)
@pytest.mark.parametrize("form", ["parquet", "arrow", "jsonl", "pandas", "table"])
def test_columns_of_lists_are_left_out_unless_their_elements_are_numbers(
    tmp_path, form, contents
):
    pairs = [[k, k / 2] for k in range(12)]
    table = pa.table({"pair": pairs, "tags": NESTED[contents], "n": NUMBERS})
    source = table
    if form == "pandas":
        source = table.to_pandas()
    elif form != "table":
        source = in_a_file(table, form, tmp_path)
    samples = open_samples(source)
    assert samples.feature_names == ["pair_0", "pair_1", "n"]
    assert f"'tags' ({contents} cannot become numbers)" in samples.notes[0]
    # Numbers are those of the columns of the file, not of the elements of lists.
    assert mmcnb.read_table(source, drop=0).feature_names == ["n"]
    assert mmcnb.read_table(source, drop=-1).feature_names == ["pair_0", "pair_1"]
    with one_sentence(r"column 1 \('tags'\)"):
        mmcnb.read_table(source, keep=["tags"])
    with one_sentence(r"column 1 \('tags'\) cannot be read as texts"):
        mmcnb.read_table(source, text=["tags"])
    with one_sentence("there is no column 3 among the 3 columns"):
        mmcnb.read_table(source, drop=3)


@pytest.mark.parametrize("value", [{"x": 1, "y": "z"}, {1, 2}, [1, "z"]])
def test_objects_that_arrow_cannot_represent_are_left_out(value):
    frame = pd.DataFrame({"n": NUMBERS})
    frame["a"] = [value, *[{"x": "z", "y": 2}] * 10, None]
    samples = open_samples(frame)
    assert samples.feature_names == ["n"]
    assert "'a' (objects cannot become numbers)" in samples.notes[0]


def test_names_of_rows_are_numbers_or_texts(tmp_path):
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table({"": [b"a"] * 12, "n": NUMBERS}), path)
    with one_sentence(
        r"cannot name rows or classes: leave the column out with --drop 0"
    ):
        open_samples(path)
    assert mmcnb.read_table(path, drop=0).feature_names == ["n"]


@pytest.mark.parametrize(
    "batch",
    [
        pd.DataFrame({"n": pd.Categorical([1, 2]), "t": ["a", "new"]}),
        pd.DataFrame({"n": pd.Categorical([3, None]), "t": [None, "a"]}),
        pd.DataFrame({"n": [None, None], "t": pd.Categorical(["a", "b"])}),
        pd.DataFrame({"n": ["2", "1.5"], "t": ["b", None]}, dtype="string"),
        pl.DataFrame({"n": [Decimal("1.5"), None], "t": ["a", "b"]}),
        pa.table({"n": pa.nulls(2), "t": ["a", "b"]}),
    ],
    ids=["categories", "no categories", "None", "texts", "decimals", "null"],
)
def test_a_batch_of_other_types_is_predicted(batch):
    rows = pd.DataFrame({"n": NUMBERS, "t": TEXTS})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mmcnb.ClusterWarning)
        model = mmcnb.CPMMC(random_state=0).fit(rows)
        assert len(model.predict(batch)) == 2


def test_no_odd_frame_has_a_traceback(tmp_path):
    for seed in range(80):
        folder = tmp_path / str(seed)
        folder.mkdir()
        frames.attempt(seed, folder)


def test_a_batch_without_a_column_that_has_a_number_for_a_name_is_refused():
    rows = pd.DataFrame({"0": NUMBERS, "1": WHOLE, "2": TEXTS})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mmcnb.ClusterWarning)
        model = mmcnb.CPMMC(random_state=0).fit(rows)
    with one_sentence(r"has no column '0', but the fit had one"):
        model.predict(rows[["1", "2"]])


def test_objects_inside_of_cells_are_no_numbers():
    frame = pd.DataFrame({"a": [1.5, pd.Series([1])] * 6, "n": NUMBERS})
    with one_sentence(r"row 1, column 'a'.*has type Series"):
        open_samples(frame)
    complex_numbers = [1.5, np.complex64(1 + 2j)] * 6
    with one_sentence(r"row 1, column 'a'.*has type complex64"):
        open_samples(pd.DataFrame({"a": pd.Series(complex_numbers, dtype=object)}))

"""Tables that are opened where they are: the same blocks and labels as from memory, each group read once."""

import pickle
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from sklearn.datasets import make_blobs

import mmcnb
from mmcnb import InputError, open_samples
from mmcnb.stores import convert
from mmcnb.tables.options import NUMBERS_ALONE
from tests.samples.common import assert_same, one_sentence, rows_of

FORMS = ("csv", "parquet", "arrow", "stream", "feather", "folder")


def write(table, folder, form, rows=1000):
    """Write an Arrow table; its path."""
    path = folder / f"rows.{form.replace('stream', 'ipc')}"
    if form == "csv":
        pa.csv.write_csv(table, path)
    elif form == "parquet":
        pa.parquet.write_table(table, path, row_group_size=rows)
    elif form in ("arrow", "stream"):
        opener = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as file, opener(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    elif form == "feather":
        pa.feather.write_feather(table, path, chunksize=rows)
    else:
        path.mkdir(exist_ok=True)
        for number, start in enumerate(range(0, table.num_rows, 4000)):
            part = table.slice(start, 4000)
            ending = ["parquet", "parq", "pq"][number]
            pa.parquet.write_table(
                part, path / f"part-{number}.{ending}", row_group_size=rows
            )
    return path


def table_of(X):
    """An Arrow table with a column for each of X."""
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})


@pytest.mark.parametrize("form", FORMS)
def test_blocks_are_those_of_memory(X, tmp_path, form):
    samples = open_samples(write(table_of(X), tmp_path, form))
    assert samples.feature_names == [f"x{j}" for j in range(7)]
    assert_same(samples, open_samples(X))


def test_a_pass_reads_each_group_of_a_parquet_file_once(X, tmp_path, monkeypatch):
    path = write(table_of(X), tmp_path, "parquet")
    samples = open_samples(path)
    opened = Counter()
    real = pa.parquet.ParquetFile.iter_batches

    def counting(self, *how, row_groups, **options):
        opened.update(row_groups)
        return real(self, *how, row_groups=row_groups, **options)

    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", counting)
    with ThreadPoolExecutor(3) as pool:
        blocks = list(
            pool.map(
                lambda start: samples.block(start, start + 700), range(0, 9000, 700)
            )
        )
    assert np.array_equal(np.concatenate(blocks), X)
    assert opened == dict.fromkeys(range(9), 1)


@pytest.mark.parametrize("form", ["arrow", "feather"])
def test_a_length_that_no_memory_has_is_one_sentence(tmp_path, form):
    """A turned bit may ask for more memory than there is, which is damage and no want of memory."""
    path = write(table_of(np.arange(40.0).reshape(20, 2)), tmp_path, form)
    whole = path.read_bytes()
    sentences = set()
    for place in range(7, len(whole), 8):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 2]) + whole[place + 1 :])
        try:
            rows_of(path)  # such files have no checksums
        except InputError as error:
            sentences.add(str(error))
    assert "\n" not in "".join(sentences)
    assert any(
        "malloc" in sentence and "get or write the file again" in sentence
        for sentence in sentences
    )


def test_labels_are_the_same_from_every_form(tmp_path):
    X = make_blobs(600, 4, centers=2, random_state=0)[0].astype(np.float32)
    paths = [write(table_of(X), tmp_path, form, 150) for form in FORMS]
    convert(paths[0], tmp_path / "rows.zarr")

    def fit(rows):
        model = mmcnb.UnsupervisedRLS(2, random_state=0).fit(rows)
        return model.labels_.tobytes(), model.objective_

    expected = fit(X)
    for path in (*paths, tmp_path / "rows.zarr"):
        assert fit(str(path)) == expected, path


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "arrow", "folder"])
def test_rows_are_sent_as_a_path(X, tmp_path, form):
    path = write(table_of(X), tmp_path, form)
    sent = pickle.dumps(open_samples(path))
    assert len(sent) < 2000
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert np.array_equal(pool.submit(rows_of, open_samples(path)).result(), X)
    write(table_of(X[::-1]), tmp_path, form, 900)
    with one_sentence("has been replaced"):
        pickle.loads(sent)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (
            {"a": [1.5] * 5, "b": ["x"] * 5},
            r"column 1 \('b'\): 'x' is not a number.*mmcnb.read_table takes categories='one-hot' or drop=\['b'\]",
        ),
        (
            {"a": [1.5] * 4 + [None], "b": [1] * 5},
            r"(row 4|line 6), column 0 \('a'\): the cell has no value.*--missing.*mmcnb.read_table takes missing='drop' or missing='median'",
        ),
        ({"a": [1.5] * 4 + [np.inf]}, r"infini"),
    ],
)
def test_what_is_no_table_of_numbers(tmp_path, form, columns, match):
    path = write(pa.table(columns), tmp_path, form, 2)
    with one_sentence(match):
        rows_of(open_samples(path, options=NUMBERS_ALONE))

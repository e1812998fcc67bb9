"""Tables that are opened where they are: the same blocks and labels as from memory, each group read once."""

import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from sklearn.datasets import make_blobs

import mmcnb
from mmcnb.errors import InputError
from mmcnb.samples import open_samples
from mmcnb.samples._base import open_again
from mmcnb.stores import convert
from mmcnb.tables import rows as tables
from mmcnb.tables.columns import NUMBERS_ALONE

FORMS = ("csv", "parquet", "arrow", "feather", "folder")


def write(table, folder, form, rows=1000):
    """Write an Arrow table; its path."""
    path = folder / f"rows.{form}"
    if form == "csv":
        pa.csv.write_csv(table, path)
    elif form == "parquet":
        pa.parquet.write_table(table, path, row_group_size=rows)
    elif form == "arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    elif form == "feather":
        pa.feather.write_feather(table, path, chunksize=rows)
    else:
        path.mkdir()
        for number, start in enumerate(range(0, table.num_rows, 4000)):
            part = path / f"part-{number}.parquet"
            pa.parquet.write_table(table.slice(start, 4000), part, row_group_size=rows)
    return path


def table_of(X):
    """An Arrow table with a column for each of X."""
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})


@pytest.mark.parametrize("form", ["arrow", "feather"])
def test_a_length_that_no_memory_has_is_one_sentence(tmp_path, form):
    """A turned bit may ask for more memory than there is, which is damage and no want of memory."""
    path = write(table_of(np.arange(40.0).reshape(20, 2)), tmp_path, form)
    whole, said = path.read_bytes(), set()
    for place in range(7, len(whole), 8):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 2]) + whole[place + 1 :])
        try:
            samples = open_samples(path)  # such files have no checksums
            samples.block(0, samples.n_samples)
        except InputError as error:
            said.add(str(error))
    assert all("\n" not in sentence for sentence in said)
    assert any("malloc" in sentence and "get or write the file again" in sentence for sentence in said)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_are_those_of_memory(X, tmp_path, rng, form):
    samples, memory = open_samples(write(table_of(X), tmp_path, form)), open_samples(X)
    assert samples.feature_names == [f"x{j}" for j in range(7)]
    assert (samples.n_samples, samples.n_features, samples.dtype) == (9000, 7, np.float32)
    for start, stop in ((0, 1), (999, 1001), (0, 9000), (4096, 8192), (8999, 9000), (1000, 3000)):
        assert np.array_equal(samples.block(start, stop), memory.block(start, stop))
    rows = np.sort(rng.choice(9000, 40, replace=False))
    assert np.array_equal(samples.gather(rows), X[rows])
    assert samples.gather(rows[:0]).shape == (0, 7)
    assert samples.digest == memory.digest


@pytest.mark.parametrize("form", ["parquet", "arrow", "feather", "folder"])
def test_a_pass_reads_each_group_once(X, tmp_path, monkeypatch, form):
    path, read = write(table_of(X), tmp_path, form), []
    original = tables.TableSamples._read_group

    def counting(self, number):
        read.append(number)
        return original(self, number)

    monkeypatch.setattr(tables.TableSamples, "_read_group", counting)
    samples = open_samples(path)
    with ThreadPoolExecutor(3) as pool:
        blocks = list(pool.map(lambda start: samples.block(start, start + 700), range(0, 9000, 700)))
    assert np.array_equal(np.concatenate(blocks), X)
    assert sorted(read) == list(range(len(samples.table_rows.table.lengths)))


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
    assert len(sent) < 1000
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert np.array_equal(pool.submit(pickle.loads(sent).block, 0, 5).result(), X[:5])
    if form != "folder":
        write(table_of(X[::-1]), tmp_path, form, 900)
        open_again.cache_clear()
        with pytest.raises(InputError, match="was replaced by another"):
            pickle.loads(sent)


def test_whole_numbers_flags_and_an_index(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False]}, index=["x", "y"])
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_feather(tmp_path / "a.feather")
    for name in ("a.parquet", "a.feather"):
        samples = open_samples(tmp_path / name)
        assert samples.block(0, 2).tolist() == [[1, 1], [2, 0]]
        assert samples.feature_names == ["a", "b"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (
            {"a": [1.5] * 5, "b": ["x"] * 5},
            r"column 1 \('b'\): 'x' is not a number.*`mmcnb convert .*rows.*`",
        ),
        (
            {"a": [1.5] * 4 + [None], "b": [1] * 5},
            r"(row 4|line 6), column 0 \('a'\): the cell has no value.*--missing.*mmcnb conv",
        ),
        ({"a": [1.5] * 4 + [np.inf]}, r"infini"),
    ],
)
def test_what_is_no_table_of_numbers(tmp_path, form, columns, match):
    path = write(pa.table(columns), tmp_path, form, 2)

    def read():
        samples = open_samples(path, options=NUMBERS_ALONE)
        samples.block(0, samples.n_samples)

    with pytest.raises(InputError, match=match) as caught:
        read()
    assert "\n" not in str(caught.value)


def test_csv_that_is_not_to_be_read_whole(tmp_path, monkeypatch):
    path = write(pa.table({"a": [1, 2]}), tmp_path, "csv")
    with pytest.raises(InputError, match="has no element 'X'"):
        open_samples(path, "X")
    monkeypatch.setattr(tables, "MOST_WHOLE_BYTES", 3)
    with pytest.raises(
        InputError, match=r"too large to be read whole: .*`mmcnb convert .*rows\.csv OUT\.zarr`"
    ):
        open_samples(path)


def test_an_arrow_stream_is_read_whole(tmp_path):
    table = pa.table({"a": [1.0, 2.0]})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    assert open_samples(tmp_path / "a.arrow").block(0, 2).tolist() == [[1], [2]]

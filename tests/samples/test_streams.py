"""Readers of record batches and datasets of Arrow, whose rows are read once."""

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import mmcnb
from tests.samples.common import one_sentence

KIND = np.arange(90) % 3
ROWS = np.c_[12 * KIND, 6 * KIND % 9] + np.random.default_rng(2).normal(size=(90, 2))
TABLE = pa.table({"width": ROWS[:, 0], "height": ROWS[:, 1]})
MIXED = TABLE.append_column("color", pa.array(["red", "green", "blue"] * 30))


class Stream:
    """Rows of another library, of which only the protocol of Arrow is known."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


SOURCES = {
    "reader": lambda table: table.to_reader(max_chunksize=20),
    "dataset": pa.dataset.dataset,
    "scanner": lambda table: pa.dataset.dataset(table).scanner(),
    "stream": Stream,
}


@pytest.fixture(params=SOURCES)
def source(request):
    return SOURCES[request.param]


@pytest.mark.parametrize("table", [TABLE, MIXED], ids=["numbers", "mixed"])
@pytest.mark.parametrize("read", [mmcnb.open_samples, mmcnb.read_table])
def test_a_stream_is_read_as_its_table(source, table, read):
    samples, right = read(source(table)), read(table)
    assert samples.feature_names == right.feature_names
    np.testing.assert_array_equal(samples.block(0, 90), right.block(0, 90))


@pytest.mark.parametrize("table", [TABLE, MIXED], ids=["numbers", "mixed"])
def test_a_model_takes_streams_at_fit_and_predict(source, table):
    model = mmcnb.MaximumMarginClustering(n_clusters=3, random_state=0)
    labels = model.fit(source(table)).labels_
    right = mmcnb.MaximumMarginClustering(n_clusters=3, random_state=0).fit(table)
    np.testing.assert_array_equal(labels, right.labels_)
    assert list(model.feature_names_in_) == list(right.feature_names_in_)
    np.testing.assert_array_equal(model.predict(source(table)), labels)
    with one_sentence("wid"):
        model.predict(source(table.rename_columns(["wide", *table.column_names[1:]])))


def test_clusters_stand_beside_the_columns_of_a_stream(source, tmp_path):
    model = mmcnb.MaximumMarginClustering(n_clusters=3, random_state=0).fit(MIXED)
    table = model.label_table(source(MIXED))
    assert "cluster" in table.column_names
    assert table.select(MIXED.column_names) == MIXED
    model.label_table(source(MIXED), tmp_path / "clusters.parquet")
    written = pyarrow.parquet.read_table(tmp_path / "clusters.parquet")
    assert written["cluster"].to_pylist() == model.labels_.tolist()


def test_options_apply_to_streams(source):
    samples = mmcnb.read_table(source(MIXED), columns=["height"])
    assert samples.feature_names == ["height"]


def test_a_reader_that_was_read_is_refused():
    reader = TABLE.to_reader()
    mmcnb.open_samples(reader)
    with one_sentence("RecordBatchReader.*read before: open it again"):
        mmcnb.open_samples(reader)


def test_an_error_of_a_reader_is_one_sentence():
    def batches():
        yield TABLE.to_batches()[0]
        raise ConnectionResetError("the connection was closed")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with one_sentence("connection was closed.*Parquet"):
        mmcnb.open_samples(reader)


def test_a_column_of_polars_is_refused():
    with one_sentence("one column of a frame.*to_frame"):
        mmcnb.open_samples(pl.Series("width", ROWS[:, 0]))

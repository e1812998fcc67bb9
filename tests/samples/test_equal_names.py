"""Columns of one name get numbers, in files and frames alike, and a sentence says so."""

import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mmcnb
from mmcnb import open_samples
from mmcnb.samples.frames import unique_names
from mmcnb.stores import convert

TABLE = pa.table([[1.5, 2, 4], ["x", "y", "x"], [4.5, 5, 8]], names=["a", "b", "a"])
NAMES = ["a", "b_x", "b_y", "a.1"]
ROWS = [[1.5, 1, 0, 4.5], [2, 0, 1, 5], [4, 1, 0, 8]]
NOTE = "columns with equal names are numbered from left to right: 'a', 'a.1'."


def write_arrow(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as to:
        to.write(table)


WRITERS = {
    "csv": lambda path: TABLE.to_pandas().to_csv(path, index=False),
    "parquet": lambda path: pa.parquet.write_table(TABLE, path),
    "arrow": lambda path: write_arrow(TABLE, path),
}


@given(st.lists(st.sampled_from(["a", "a.1", "a.2", "a.1.1", "b"]), min_size=1))
def test_names_are_numbered_as_by_pandas(names):
    text = io.StringIO(",".join(names) + "\n")
    assert unique_names(names) == list(pd.read_csv(text).columns)


@pytest.mark.parametrize("form", WRITERS)
def test_equal_names_in_files(tmp_path, form):
    path = tmp_path / f"a.{form}"
    WRITERS[form](path)
    samples = open_samples(path)
    assert samples.feature_names == NAMES
    assert samples.block(0, 3).tolist() == ROWS
    assert list(samples.notes) == [f"{path}: {NOTE}"]
    last_first = mmcnb.read_table(path, columns=[2, 0]).block(0, 3)
    assert last_first.tolist() == [[4.5, 1.5], [5, 2], [8, 4]]
    for option in ({"drop": 2}, {"drop": "a.1"}, {"columns": ["a", "b"]}):
        report = convert(path, tmp_path / "a.zarr", overwrite=True, **option)
        assert report["notes"] == [f"{path}: {NOTE}"]
        assert open_samples(tmp_path / "a.zarr").feature_names == NAMES[:3]


@pytest.mark.parametrize("frame", [TABLE, TABLE.to_pandas()], ids=["arrow", "pandas"])
def test_equal_names_in_frames(frame):
    samples = open_samples(frame)
    assert samples.feature_names == NAMES
    assert samples.block(0, 3).tolist() == ROWS
    assert list(samples.notes) == [f"the data frame: {NOTE}"]


def test_a_fit_warns_of_equal_names(blobs_of_equal_names):
    model = mmcnb.MaximumMarginClustering(random_state=0)
    with pytest.warns(mmcnb.ClusterWarning, match="from left to right: 'a', 'a.1'"):
        model.fit(blobs_of_equal_names)
    assert list(model.feature_names_in_) == ["a", "a.1"]
    assert any("'a.1'" in sentence for sentence in model.report_["warnings"])
    assert (model.predict(blobs_of_equal_names) == model.labels_).all()


@pytest.fixture
def blobs_of_equal_names(rng):
    values = rng.normal(size=(90, 2)) + [[10 * (i % 3), 0] for i in range(90)]
    return pd.DataFrame(values, columns=["a", "a"])

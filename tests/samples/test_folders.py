"""Folders of tables: files of one table are joined by the names of their columns, and others refused by name."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse

import mmcnb
from mmcnb.cli import main
from tests.samples.common import one_sentence

ROWS = np.random.default_rng(8).normal(size=(30, 3)).round(3)


def folder_of(tmp_path, ending="csv", **columns):
    """A folder with one file for each list of names."""
    folder = tmp_path / "months"
    folder.mkdir()
    for name, names in columns.items():
        frame = pd.DataFrame(ROWS[:, : len(names)], columns=names)
        if ending == "csv":
            frame.to_csv(folder / f"{name}.csv", index=False)
        elif ending == "parquet":
            frame.to_parquet(folder / f"{name}.parquet")
        else:
            frame.to_json(folder / f"{name}.jsonl", orient="records", lines=True)
    return folder


def refused(folder):
    """The message about a folder."""
    with one_sentence("give|rename") as caught:
        mmcnb.open_samples(folder)
    return str(caught.value)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize(
    "other", ["Width", "wid th", "WID_TH", "wid\N{NO-BREAK SPACE}th"]
)
def test_another_spelling_is_refused(tmp_path, ending, other):
    folder = folder_of(tmp_path, ending, may=["width", "a"], june=[other, "a"])
    said = refused(folder)
    for word in ("'width'", repr(other), f"may.{ending}", f"june.{ending}", "rename"):
        assert word in said


def test_the_command_names_both_files_and_columns(tmp_path, capsys):
    folder = folder_of(tmp_path, may=["width", "y"], june=["width", "Y"])
    assert main(["convert", str(folder), str(tmp_path / "rows.zarr")]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in ("'y'", "'Y'", "may.csv", "june.csv"))


@pytest.mark.parametrize(
    "names",
    [
        {"may": ["y", "Y"], "june": ["y", "Y"]},
        {"may": ["y", "Y"], "june": ["y"]},
        {"may": ["x_1_1", "a", "b"], "june": ["x_11", "a", "b"]},
    ],
)
def test_names_that_a_file_tells_apart_stay(tmp_path, names):
    folder = folder_of(tmp_path, **names)
    samples = mmcnb.open_samples(folder)
    assert samples.n_samples == 60


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_unrelated_files_are_refused(tmp_path, ending):
    folder = folder_of(
        tmp_path, ending, flowers=["width", "height", "x"], prices=["day", "price", "x"]
    )
    said = refused(folder)
    for word in ("flowers", "prices", "'width'", "'price'", "one of the files"):
        assert word in said


def test_files_that_share_a_key_alone_are_refused(tmp_path):
    folder = folder_of(tmp_path, width=["row", "width"], height=["row", "height"])
    assert "only 1 of these names" in refused(folder)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_column_that_a_file_lacks_is_noted(tmp_path, ending):
    folder = folder_of(
        tmp_path, ending, april=["a", "b", "c"], may=["a", "b"], june=["a", "b"]
    )
    samples = mmcnb.open_samples(folder)
    (note,) = [note for note in samples.notes if "no column 'c'" in note]
    assert f"june.{ending} and 1 more file have" in note
    assert "gaps" in note
    with pytest.warns(UserWarning, match=r"no column 'c'"):
        mmcnb.MaximumMarginClustering().fit(folder)


def test_equal_columns_in_another_order_need_no_note(tmp_path):
    folder = folder_of(tmp_path, may=["a", "b"], june=["b", "a"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        samples = mmcnb.open_samples(folder)
    assert not [note for note in samples.notes if "other files" in note]
    assert samples.feature_names == ["b", "a"]
    right = np.concatenate([ROWS[:, :2], ROWS[:, 1::-1]]).astype("float32")
    np.testing.assert_array_equal(samples.block(0, 60), right)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("open_as", ["python", "fit", "info", "convert"])
def test_a_matrix_beside_tables_is_named(tmp_path, capsys, is_packed, open_as):
    folder = tmp_path / "counts"
    folder.mkdir()
    path = folder / "matrix.mtx"
    scipy.io.mmwrite(path, scipy.sparse.coo_array(np.eye(30)))
    if is_packed:
        packed = path.with_name("matrix.mtx.gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    names = "".join(f"CELL{row}\n" for row in range(30))
    (folder / "barcodes.tsv").write_text(names)
    if open_as == "python":
        said = refused(folder)
    else:
        out = {
            "convert": [str(tmp_path / "rows.zarr")],
            "fit": ["--labels", str(tmp_path / "labels.csv")],
        }
        assert main([open_as, str(folder), *out.get(open_as, [])]) == 2
        said = capsys.readouterr().err
    assert "matrix.mtx" in said
    assert "scipy.io.mmread" in said


def test_tables_of_several_formats_are_refused(tmp_path):
    folder = folder_of(tmp_path, may=["a", "b"])
    pd.DataFrame(ROWS[:, :2], columns=["a", "b"]).to_parquet(folder / "june.parquet")
    said = refused(folder)
    assert all(word in said for word in ("several formats", "may.csv", "june.parquet"))

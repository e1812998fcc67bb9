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
    with one_sentence("give|pass|rename") as caught:
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
    assert "missing values" in note
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
    assert "features.tsv" in said


def test_tables_of_several_formats_are_refused(tmp_path):
    folder = folder_of(tmp_path, may=["a", "b"])
    pd.DataFrame(ROWS[:, :2], columns=["a", "b"]).to_parquet(folder / "june.parquet")
    said = refused(folder)
    assert all(word in said for word in ("several formats", "may.csv", "june.parquet"))


def locales_of(tmp_path, n_rows=40):
    """A folder of a German and an American export of one table, and its numbers."""
    folder = tmp_path / "locales"
    folder.mkdir()
    rng = np.random.default_rng(3)
    middle = 9 * (np.arange(n_rows) % 2)
    rows = np.column_stack(
        [
            middle + rng.normal(size=n_rows).round(2) + 0.01,
            1000 * middle + rng.integers(1000, 9000, n_rows) + 0.5,
            rng.integers(0, 50, n_rows),
            middle + rng.integers(1, 900, n_rows) / 1000,
        ]
    )
    german = str.maketrans(",.", ".,")
    for name, delimiter in {"de": ";", "us": ","}.items():
        lines = [delimiter.join(["size", "price", "n", "share"])]
        part = rows[: n_rows // 2] if name == "de" else rows[n_rows // 2 :]
        for size, price, n, share in part:
            cells = [f"{size:.2f}", f"{price:,.2f} \u20ac", f"{n:.0f}", f"{share:.3f}"]
            if name == "de":
                cells = [cell.translate(german) for cell in cells]
            lines.append(delimiter.join(f'"{cell}"' for cell in cells))
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder, rows


def test_each_file_is_read_by_its_own_decimal_mark(tmp_path):
    folder, rows = locales_of(tmp_path)
    samples = mmcnb.open_samples(folder)
    np.testing.assert_allclose(samples.block(0, 40), rows, rtol=1e-6)
    (note,) = [note for note in samples.notes if "own mark" in note]
    assert "de.csv has numbers with a decimal comma ('size', 'price')" in note


@pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
def test_a_file_of_a_folder_is_labelled_as_in_the_fit(tmp_path):
    folder, _ = locales_of(tmp_path)
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(folder)
    for name, part in {"de": slice(0, 20), "us": slice(20, 40)}.items():
        labels = model.predict(folder / f"{name}.csv")
        np.testing.assert_array_equal(labels, model.labels_[part])


def test_a_decimal_comma_behind_the_first_rows_is_read_too(tmp_path):
    folder = tmp_path / "late"
    folder.mkdir()
    lines = [f"{k};{k % 7},5" for k in range(3000)]
    lines[-1] = "2999,25;1,5"
    (folder / "de.csv").write_text("a;b\n" + "\n".join(lines))
    lines = [f"{k}.5,{k % 7}.5" for k in range(3000)]
    (folder / "us.csv").write_text("a,b\n" + "\n".join(lines))
    block = mmcnb.open_samples(folder).block(0, 6000)
    assert block[2999].tolist() == [2999.25, 1.5]
    assert block[5999].tolist() == [2999.5, 3.5]


def test_points_in_texts_stay(tmp_path):
    folder = tmp_path / "versions"
    folder.mkdir()
    versions = [f"v{k % 3}.1" for k in range(30)]
    for name, decimal in {"us": ".", "de": ","}.items():
        lines = [f"{k}{decimal}5;{version}" for k, version in enumerate(versions)]
        (folder / f"{name}.csv").write_text("a;version\n" + "\n".join(lines))
    samples = mmcnb.open_samples(folder)
    assert samples.feature_names == ["a", *(f"version_v{k}.1" for k in range(3))]
    np.testing.assert_array_equal(samples.block(0, 60)[:, 0] % 1, 0.5)


def test_one_decimal_comma_in_all_files_needs_no_note(tmp_path):
    folder = tmp_path / "months"
    folder.mkdir()
    for name in ("may", "june"):
        lines = [f"{k},5;{k % 3}" for k in range(30)]
        (folder / f"{name}.csv").write_text("a;b\n" + "\n".join(lines))
    samples = mmcnb.open_samples(folder)
    assert not [note for note in samples.notes if "own mark" in note]


def test_a_mark_that_is_given_is_that_of_all_files(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    for name, cell in {"may": "1.500", "june": "1,5"}.items():
        (folder / f"{name}.csv").write_text("a;b\n" + f"{cell};2\n{cell};3\n" * 20)
    samples = mmcnb.read_table(folder, decimal=",", thousands=".", columns="all")
    assert set(samples.block(0, 80)[:, 0]) == {1500.0, 1.5}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
def test_a_column_that_a_file_lacks_is_a_doubt(tmp_path, ending):
    levels = {}
    for name in ("whole", "partial"):
        folder = tmp_path / name
        folder.mkdir()
        for number in range(3):
            X, _ = mmcnb.datasets.make_block("blobs", number, 200, 4, n_clusters=3)
            frame = pd.DataFrame(X, columns=list("abcd"))
            if name == "partial" and number == 1:
                frame = frame.drop(columns="d")
            path = folder / f"{number}.{ending}"
            if ending == "csv":
                frame.to_csv(path, index=False)
            else:
                frame.to_parquet(path)
        model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(folder)
        levels[name] = model.report_["trust"]
    assert levels["whole"]["level"] == "high"
    assert levels["partial"]["level"] != "high"
    assert "some files of the folder lack columns ('d')" in levels["partial"]["reason"]

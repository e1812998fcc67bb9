"""Workbooks are read as the same table is from a CSV file, with their own types, gaps and sheets."""

import datetime
import sys

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.cli import main
from mmcnb.stores import convert
from tests.samples.common import one_sentence

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("python_calamine")

ROWS = np.random.default_rng(3).normal(size=(40, 2)).round(3) + np.repeat(
    [[0], [9]], 20, 0
)


def book(path, *sheets, merged=()):
    """Write a workbook with sheets of rows."""
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets:
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    for cells in merged:
        workbook[sheets[0][0]].merge_cells(cells)
    workbook.save(path)
    return path


def table(names=("width", "height")):
    return [names, *ROWS.tolist()]


def check(samples, names=("width", "height")):
    assert samples.feature_names == (None if names is None else list(names))
    np.testing.assert_allclose(samples.block(0, 40), ROWS, rtol=1e-6)


@pytest.mark.parametrize("ending", [".xlsx", ".xlsm", ".xls", ".ods", ".csv", ""])
def test_a_workbook_is_read_under_any_name(tmp_path, ending):
    path = book(tmp_path / "rows.xlsx", ("flats", table()))
    path = path.rename(tmp_path / f"rows{ending}")
    check(mmcnb.open_samples(path))
    check(mmcnb.read_table(path))
    convert(path, tmp_path / "rows.zarr")
    check(mmcnb.open_samples(tmp_path / "rows.zarr"))


@pytest.mark.parametrize("name", ["rows.xlsx", "rows.bin"])
def test_half_a_workbook_is_called_truncated(tmp_path, name):
    path = book(tmp_path / "rows.xlsx", ("flats", table()))
    content = path.read_bytes()
    path = tmp_path / name
    path.write_bytes(content[: len(content) // 2])
    with one_sentence("damaged or truncated .* workbook.*: get or write the file"):
        mmcnb.open_samples(path)


def test_an_open_document_is_read(tmp_path):
    pytest.importorskip("odf")
    path = tmp_path / "rows.ods"
    pd.DataFrame(ROWS, columns=["width", "height"]).to_excel(str(path), index=False)
    check(mmcnb.open_samples(path))


def test_all_verbs_take_a_workbook(tmp_path, capsys):
    path = str(book(tmp_path / "rows.xlsx", ("flats", table())))
    labels = str(tmp_path / "labels.csv")
    model = str(tmp_path / "rows.model")
    for words in (
        ["info", path],
        ["plan", path],
        ["fit", path, "--labels", labels, "--model", model, "--n-clusters", "2"],
        ["predict", model, path, "--labels", labels, "--overwrite"],
        ["score", path, labels],
        ["convert", path, str(tmp_path / "rows.zarr")],
    ):
        assert main(words) == 0, capsys.readouterr().err


def test_a_model_reads_the_sheet_of_its_fit(tmp_path):
    shifted = [["width", "height"], *(ROWS + 100).tolist()]
    path = book(tmp_path / "rows.xlsx", ("first", shifted), ("flats", table()))
    model = mmcnb.CPMMC(random_state=0).fit(mmcnb.read_table(path, sheet="flats"))
    labels = model.labels_
    model.save(tmp_path / "rows.model")
    model = mmcnb.load(tmp_path / "rows.model")
    assert np.array_equal(model.predict(path), labels)
    # Another workbook has another sheet, and a CSV file has none.
    other = book(tmp_path / "other.xlsx", ("rows", table()))
    assert np.array_equal(model.predict(other), labels)
    pd.DataFrame(ROWS, columns=["width", "height"]).to_csv(
        tmp_path / "rows.csv", index=False
    )
    assert np.array_equal(model.predict(tmp_path / "rows.csv"), labels)


def test_the_first_sheet_is_read_unless_another_is_named(tmp_path):
    path = book(
        tmp_path / "rows.xlsx",
        ("empty", []),
        ("flats", table()),
        ("notes", [["a", "b"], [1, 2], [3, 4]]),
    )
    samples = mmcnb.open_samples(path)
    check(samples)
    assert any(
        f"but not 'notes'; mmcnb.read_table({str(path)!r}, sheet='notes') (" in note
        for note in samples.notes
    )
    for sheet in ("notes", 2, "2"):
        other = mmcnb.read_table(path, sheet=sheet)
        assert other.feature_names == ["a", "b"]
        assert not any("sheet" in note for note in other.notes)
    with one_sentence("no sheet 'flat': name one of empty, flats, notes"):
        mmcnb.read_table(path, sheet="flat")
    assert (
        main(["convert", str(path), str(tmp_path / "a.zarr"), "--sheet", "notes"]) == 0
    )
    assert mmcnb.open_samples(tmp_path / "a.zarr").feature_names == ["a", "b"]


def test_cells_have_their_types_and_errors_are_gaps(tmp_path):
    day = datetime.datetime(2024, 3, 1)
    rows = [["size", "code", "flag", "sold", "kind"]]
    for k in range(30):
        rows.append(
            [
                k % 7 + 0.5,
                f"0{k % 3}",
                k % 2 == 0,
                day + datetime.timedelta(days=k % 5),
                "ab"[k % 2],
            ]
        )
    rows[3][0] = "#N/A"
    rows[4][0] = "#DIV/0!"
    rows[5][0] = None
    samples = mmcnb.read_table(
        book(tmp_path / "rows.xlsx", ("a", rows)), missing="refuse", columns="kind,flag"
    )
    assert samples.feature_names == ["kind_a", "kind_b", "flag"]
    np.testing.assert_array_equal(samples.block(0, 2), [[1, 0, 1], [0, 1, 0]])
    with one_sentence("has no value"):
        mmcnb.read_table(tmp_path / "rows.xlsx", missing="refuse", columns="size")
    sizes = (
        mmcnb.read_table(tmp_path / "rows.xlsx", columns="size").block(0, 30).ravel()
    )
    assert (
        sizes[2]
        == sizes[3]
        == sizes[4]
        == np.median([k % 7 + 0.5 for k in range(30) if k not in (2, 3, 4)])
    )
    sold = (
        mmcnb.read_table(tmp_path / "rows.xlsx", columns="sold", dates="epoch")
        .block(0, 2)
        .ravel()
    )
    assert sold[1] - sold[0] == 86400


def test_titles_empty_lines_and_margins_are_passed_over(tmp_path):
    rows = [
        [],
        [None, "Flats of 2024"],
        [],
        [None, "width", "height"],
        *([None, *row] for row in ROWS.tolist()),
    ]
    check(mmcnb.open_samples(book(tmp_path / "rows.xlsx", ("a", rows))))


def test_without_a_header_no_row_is_lost(tmp_path):
    path = book(tmp_path / "rows.xlsx", ("a", ROWS.tolist()))
    check(mmcnb.read_table(path, header="no"), None)
    check(mmcnb.open_samples(path), None)


def test_two_lines_of_names_of_which_one_is_merged_are_joined(tmp_path):
    rows = [
        ["2023", None, "2024", None],
        ["a", "b", "a", "b"],
        *np.tile(ROWS, 2).tolist(),
    ]
    path = book(tmp_path / "rows.xlsx", ("a", rows), merged=["A1:B1", "C1:D1"])
    assert mmcnb.open_samples(path).feature_names == [
        "2023 a",
        "2023 b",
        "2024 a",
        "2024 b",
    ]


def test_cells_merged_downwards_stand_for_all_their_rows(tmp_path):
    rows = [
        ["kind", "size"],
        *([["ab"[k // 20] if k % 20 == 0 else None, float(k % 7)] for k in range(40)]),
    ]
    path = book(tmp_path / "rows.xlsx", ("a", rows), merged=["A2:A21", "A22:A41"])
    block = mmcnb.read_table(path, columns="kind").block(0, 40)
    np.testing.assert_array_equal(block[:, 0], np.arange(40) < 20)


def test_faults_have_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "rows.xlsx"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with one_sentence(
        r"rows\.xlsx cannot be read as a workbook .*: save it again as \.xlsx, or as CSV"
    ):
        mmcnb.open_samples(path)
    book(path, ("a", [["width"]]))
    with one_sentence("has a header and no rows"):
        mmcnb.open_samples(path)
    book(path, ("a", []))
    with one_sentence("the sheet 'a' has no rows"):
        mmcnb.open_samples(path)
    book(path, ("a", table()))
    with one_sentence("delimiter applies to CSV files only"):
        mmcnb.read_table(path, delimiter=";")
    monkeypatch.setattr("mmcnb.tables.excel_file.available_memory", lambda: 1000)
    with one_sentence(
        "needs about .* of memory, and .* are free: save the sheet as CSV"
    ):
        mmcnb.open_samples(path)
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with one_sentence(r"needs python-calamine .*: pip install 'mmcnb\[excel\]'"):
        mmcnb.open_samples(path)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    with one_sentence("sheet applies to workbooks only, and .*: leave sheet out"):
        mmcnb.read_table(tmp_path / "rows.csv", sheet="a")

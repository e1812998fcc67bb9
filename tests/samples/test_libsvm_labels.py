"""LIBSVM text whose labels are no classes is converted without them."""

import re

import pytest

from mmcnb import open_samples
from mmcnb.stores import convert, open_class_labels
from tests.samples.common import one_sentence

ROWS = [[0.5, 0, 2], [0, 1, 0], [3, 0, 0]]
PAIRS = ["1:0.5 3:2", "2:1", "1:3"]
LABELS = {
    "real targets": (
        ["12.75", "-3.5", "0.25"],
        r"line 1 has a label that is not an integer \(12.75\)",
    ),
    "a late real target": (
        ["1", "2", "0.25"],
        r"line 3 has a label that is not an integer \(0.25\)",
    ),
    "several labels": (["2,5", "1", "1,2,3"], r"line 1 has several labels \(2,5\)"),
    "no labels": (["", "", ""], "line 1 has no label"),
    "some labels": (["1", "", "2"], "line 2 has no label"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_that_are_no_classes_are_ignored_and_named(tmp_path, kind):
    labels, note = LABELS[kind]
    lines = [f"{label} {row}\n" for label, row in zip(labels, PAIRS, strict=True)]
    path = tmp_path / "rows.libsvm"
    path.write_text("".join(lines))
    taken = convert(path, tmp_path / "rows.zarr", layout="dense")
    assert open_samples(tmp_path / "rows.zarr").block(0, 3).tolist() == ROWS
    assert open_class_labels(tmp_path / "rows.zarr") is None
    [sentence] = taken["notes"]
    assert re.search(note, sentence)
    assert sentence.endswith("all labels were ignored.")


def test_a_line_that_is_no_libsvm_text_is_named_all_the_same(tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_text("0.5 1:2\n0.25 1:x\n")
    with one_sentence("line 2 is not LIBSVM text"):
        convert(path, tmp_path / "rows.zarr")
    assert not (tmp_path / "rows.zarr").exists()


def test_several_labels_are_seen_in_a_text_file_without_an_ending_of_libsvm(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("2,5 1:0.5 3:2\n1 2:1\n1,2,3 1:3\n")
    taken = convert(path, tmp_path / "rows.zarr", layout="dense")
    assert open_samples(tmp_path / "rows.zarr").block(0, 3).tolist() == ROWS
    assert "several labels (2,5)" in taken["notes"][0]


def test_a_fault_beside_a_label_is_the_one_that_is_named(tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_text("0.5 0:1\n")
    with one_sentence("index 0 needs --zero-based"):
        convert(path, tmp_path / "rows.zarr")
    convert(path, tmp_path / "rows.zarr", zero_based=True)
    assert open_samples(tmp_path / "rows.zarr").n_samples == 1


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_are_rows_of_zeros_if_no_row_has_a_label(tmp_path, end):
    path = tmp_path / "rows.libsvm"
    lines = ["# pairs alone", "", "1:0.5 3:2", "", "  ", "2:1", "# the last", ""]
    path.write_bytes("".join(line + end for line in lines).encode())
    convert(path, tmp_path / "rows.zarr", layout="dense")
    zeros = [0, 0, 0]
    rows = [zeros, [0.5, 0, 2], zeros, zeros, [0, 1, 0], zeros]
    assert open_samples(tmp_path / "rows.zarr").block(0, 6).tolist() == rows


@pytest.mark.parametrize("label", ["1", "0.5"])
def test_blank_lines_between_labelled_rows_are_no_rows(tmp_path, label):
    path = tmp_path / "rows.libsvm"
    path.write_text(f"\n{label} 1:0.5 3:2\n\n{label} 2:1\n\n{label}\n\n")
    convert(path, tmp_path / "rows.zarr", layout="dense")
    rows = [[0.5, 0, 2], [0, 1, 0], [0, 0, 0]]
    samples = open_samples(tmp_path / "rows.zarr")
    assert samples.block(0, samples.n_samples).tolist() == rows

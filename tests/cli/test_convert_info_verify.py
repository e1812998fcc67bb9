"""`mmcnb convert`, `info` and `verify`: files become stores that say what they hold."""

import numpy as np

import mmcnb
from tests.cli.conftest import ROWS


def test_convert_writes_the_rows_of_a_file(folder, report_of):
    X = mmcnb.open_samples("blobs.zarr").block(0, ROWS)
    lines = [
        " ".join(f"{column}:{value!r}" for column, value in enumerate(row, 1))
        for row in X.tolist()
    ]
    (folder / "rows.libsvm").write_text("\n".join(f"1 {line}" for line in lines))
    report = report_of(
        "convert rows.libsvm rows.zarr --layout dense --dtype float32 --memory-limit 8GiB"
    )
    assert (report["n_samples"], report["n_features"]) == X.shape
    np.testing.assert_array_equal(mmcnb.open_samples("rows.zarr").block(0, ROWS), X)


def test_convert_and_info_list_the_columns_of_a_table(folder, printed):
    listing = [
        "column  type    missing  distinct  becomes",
        "age     double  0        150       number",
        "spent   double  0        150       number",
        "plan    string  0        3         a 0/1 column for each text",
    ]
    assert printed("info customers.csv").splitlines()[:4] == listing
    assert printed("convert customers.csv rows.zarr").splitlines()[:4] == listing


def test_info_and_verify_tell_the_shape_and_the_bytes(folder, printed, report_of):
    report = report_of("info blobs.zarr")
    assert (report["n_samples"], report["n_features"]) == (ROWS, 3)
    assert (
        "class counts   0: 51, 1: 58, 2: 41" in printed("info blobs.zarr").splitlines()
    )
    # the classes too
    assert report_of("verify blobs.zarr")["bytes"] == ROWS * (3 * 4 + 8)
    assert "bytes        2.93 KiB" in printed("verify blobs.zarr").splitlines()

"""`mmcnb update` and `mmcnb fit --like`: clusters keep their numbers."""

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.cli import main
from tests.cli.conftest import contents


def test_an_update_replaces_the_model_and_writes_the_labels_of_the_new_rows(
    folder, printed
):
    expected = mmcnb.load("customers.model").update("new.csv")
    text = printed("update customers.model new.csv --labels l.csv")
    assert "change: new, before: 0, after: 10" in text
    assert "customers.model (replaced by the updated model)" in text
    np.testing.assert_array_equal(pd.read_csv("l.csv")["cluster"], expected.labels_)
    np.testing.assert_array_equal(
        mmcnb.load("customers.model").predict("new.csv"), expected.labels_
    )


def test_an_update_with_another_path_leaves_the_first_model_as_it_was(
    folder, report_of
):
    before = contents(folder)
    report = report_of("update customers.model new.csv --out other.model")
    assert report["changes"][3] == {
        "number": 3,
        "change": "new",
        "before": 0,
        "after": 10,
    }
    assert mmcnb.load("other.model").n_clusters_ == 4
    assert before.items() <= contents(folder).items()


def test_an_update_that_is_stopped_goes_on_from_its_checkpoint(
    folder, at_each_read, printed, refusal_of, capsys
):
    printed("convert new.csv new.zarr")
    expected = mmcnb.load("customers.model").update("new.zarr").predict("new.zarr")
    before = contents(folder)
    reads = []

    def stop_at_the_last():
        reads.append("all rows")
        if len(reads) == 2:
            raise KeyboardInterrupt

    at_each_read(stop_at_the_last)
    update = "update customers.model new.zarr --checkpoint kept"
    assert main(update.split()) == 130
    assert (
        "stopped by the user; run the same command again to resume from kept."
        in capsys.readouterr().err
    )
    assert before.items() <= contents(folder).items()
    printed(update)
    assert len(reads) == 4  # the first of three was not made again
    np.testing.assert_array_equal(
        mmcnb.load("customers.model").predict("new.zarr"), expected
    )
    assert "kept belongs to another fit: the model differ" in refusal_of(update)


@pytest.mark.parametrize("rows", ["new.csv", "new.zarr"])
def test_an_update_says_what_its_checkpoint_has_recorded(rows, folder, printed):
    """Rows in memory are read again in less time than a record takes."""
    printed("convert new.csv new.zarr")
    text = printed(f"update customers.model {rows} --checkpoint kept --out m2")
    is_recorded = any((folder / "kept" / "passes").iterdir())
    assert is_recorded == (rows == "new.zarr")
    assert ("no passes are recorded" in text) != is_recorded
    assert ("0 passes were resumed from this folder" in text) == is_recorded


@pytest.mark.parametrize("more", [[], ["--layers"]])
def test_a_fit_like_a_model_has_its_numbers(more, folder, printed):
    expected = mmcnb.load("customers.model").predict("customers.csv")[::-1]
    pd.read_csv("customers.csv")[::-1].to_csv("reversed.csv", index=False)
    text = printed(
        "fit reversed.csv --like customers.model --model m --labels l.csv --random-state 5",
        *more,
    )
    for number, rows in enumerate(np.bincount(expected)):
        assert (
            f"cluster          {number}: kept, {rows} rows before and {rows} now"
            in text.splitlines()
        )
    np.testing.assert_array_equal(pd.read_csv("l.csv")["cluster"], expected)
    np.testing.assert_array_equal(mmcnb.load("m").predict("reversed.csv"), expected)

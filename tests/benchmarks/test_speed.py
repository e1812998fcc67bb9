"""The study of speed: ratios of the same turn, what stands in, what is missing, and its page."""

import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.methods import FRONT_DOOR, KMEANS
from benchmarks.run import Options, Run
from benchmarks.studies import speed
from benchmarks.studies.peers import why_missing
from mmcnb import InputError

pytestmark = pytest.mark.slow


def frame_of(part, dataset, *runs):
    frame = pd.DataFrame(runs, columns=["method", "seed", "seconds"])
    facts = {"n": 9, "d": 2, "ari": 1.0, "clusters": 2, "compile_seconds": 0.0}
    return frame.assign(part=part, dataset=dataset, reason="", **facts)


def test_a_ratio_is_of_the_same_turn():
    """The median of ratios, which is not the ratio of medians: here 2 and 1.5."""
    runs = [(KMEANS, seed, kmeans) for seed, kmeans in enumerate((1.0, 2.0, 4.0))]
    runs += [(FRONT_DOOR, seed, ours) for seed, ours in enumerate((2.0, 3.0, 8.0))]
    table = speed.tables(frame_of("fits", "a9a", *runs)).tables["speed"]
    found = table.set_index("method")
    assert found.loc[FRONT_DOOR, ["seconds", "ratio", "to"]].tolist() == [
        3.0,
        2.0,
        KMEANS,
    ]
    assert found.loc[KMEANS, "ratio"] == 1


def test_a_library_that_is_not_installed_has_a_row_with_the_reason():
    frame = frame_of("made", speed.BLOBS, (KMEANS, 0, 1.0))
    notes = speed.tables(frame).tables["speed"].set_index("method")["note"]
    for method in speed.OTHERS:
        assert notes.get(method, "") == why_missing(method)


def test_made_rows_stand_in_for_missing_data_under_another_name(tmp_path, monkeypatch):
    monkeypatch.setenv("MMCNB_DATA_DIR", str(tmp_path / "nowhere"))
    settings = {"rows": 60, "n_clusters": 2}
    run = Run("a9a", KMEANS, 0, part="fits", settings=settings)
    found = speed.compute(run)
    row = dict(zip(Run._fields, run, strict=True)) | {"reason": ""} | found
    table = speed.tables(pd.DataFrame([row])).tables["speed"]
    assert table["dataset"].tolist() == ["made, like a9a"]
    assert (found["n"], found["d"]) == (60, 123)
    assert "MMCNB_DATA_DIR" in table["note"][0]


def test_the_page_has_each_figure_and_the_machine(tmp_path):
    out, docs = tmp_path / "out", tmp_path / "docs"
    assert main(["speed", "--smoke", "--part", "convert", "--out", str(out)]) == 0
    from benchmarks.speed_page import write_page

    page = pd.read_csv(write_page(out, docs), dtype=str)
    assert page["method"].tolist() == [speed.CONVERT, speed.PYARROW]
    assert page["ratio"][1] == "1 of pyarrow"
    machine = (docs / "speed.txt").read_text(encoding="utf-8")
    assert "Processor: " in machine
    assert "numba " in machine


def test_a_part_that_is_not_known_is_refused(tmp_path):
    with pytest.raises(InputError, match="choose from fits, made, first, memory"):
        speed.grid(Options(tmp_path, parts=("others",)))

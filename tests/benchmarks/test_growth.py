"""The study of growth: its numbers of rows, columns and clusters, and the slopes of time."""

import pandas as pd
import pytest

from benchmarks.methods import FRONT_DOOR
from benchmarks.run import Options, Run
from benchmarks.studies.growth import QUICK_ROWS, SECTIONS, SMALL_AND_LARGE, USUAL, sizes


def test_sizes_end_at_the_largest_and_rise_tenfold(tmp_path):
    assert sizes(Options(tmp_path)) == [10**4, 10**5, 10**6, 10**7]
    assert sizes(Options(tmp_path, quick=True))[-1] == QUICK_ROWS
    assert sizes(Options(tmp_path, rows=2000)) == [200, 2000]


@pytest.mark.parametrize("what", SMALL_AND_LARGE)
def test_only_one_size_grows(what, tmp_path):
    runs = [Run(**row) for row in SECTIONS[what].grid(Options(tmp_path)).to_dict("records")]
    assert sorted({run.parameters[what] for run in runs}) == SMALL_AND_LARGE[what]
    others = {name: {run.parameters[name] for run in runs} for name in USUAL if name != what}
    assert others == {name: {USUAL[name]} for name in others}
    assert len({run.identity for run in runs}) == len(runs)


@pytest.mark.parametrize("what", SMALL_AND_LARGE)
def test_a_slope_is_that_of_the_logarithms(what):
    sizes = SMALL_AND_LARGE[what]
    figures = {"ari": 1.0, "n": 9, "d": 2, "peak_mib": 1.0, "status": "ok", "method": FRONT_DOOR}
    frame = pd.DataFrame([{what: size, "seconds": 3.0 * size**0.75} | figures for size in sizes])
    result = SECTIONS[what].tables(frame)
    assert result.tables[f"growth-{what}"][what].tolist() == sizes
    assert [goal.figure for goal in result.goals] == [pytest.approx(0.75)]
    assert [goal.reached for goal in result.goals] == [what == "columns"]

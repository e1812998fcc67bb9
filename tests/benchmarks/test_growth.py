"""The study of growth: its numbers of rows."""

from benchmarks.run import Options
from benchmarks.studies.growth import QUICK_ROWS, sizes


def test_sizes_end_at_the_largest_and_rise_tenfold(tmp_path):
    assert sizes(Options(tmp_path)) == [10**4, 10**5, 10**6, 10**7]
    assert sizes(Options(tmp_path, quick=True))[-1] == QUICK_ROWS
    assert sizes(Options(tmp_path, rows=2000)) == [200, 2000]

"""The study of the continuation rule: which rises of the objective count."""

import numpy as np
import pandas as pd

from benchmarks.studies.collapse import count_rises


def history(*rows):
    columns = ["stage", "start", "C", "round", "objective", "primal"]
    return pd.DataFrame(rows, columns=columns).assign(gamma=1.0)


def test_a_rise_within_one_C_and_start_is_counted():
    falls = [("sample", 0, 2.0, 0, -1.0, -0.5), ("sample", 0, 2.0, 1, -2.0, -1.5)]
    rise = ("sample", 0, 2.0, 2, -1.4, -1.2)
    assert count_rises(history(*falls)) == (1, 0)
    assert count_rises(history(*falls, rise)) == (2, 1)


def test_other_paths_and_earlier_sweeps_are_not_compared():
    end = ("sample", 0, 2.0, 0, -1.0, -0.9)
    assert count_rises(history(end, ("sample", 0, 3.0, 0, 5.0, 5.0))) == (0, 0)
    assert count_rises(history(end, ("sample", 1, 2.0, 1, 5.0, 5.0))) == (0, 0)
    assert count_rises(history(end, ("all rows", np.nan, 2.0, 0, 5.0, 5.0))) == (0, 0)
    sweeps = [("sample", 0, 2.0, 1, 5.0, 5.0), ("sample", 0, 2.0, 1, -1.0, -0.9)]
    assert count_rises(history(end, *sweeps)) == (1, 0)


def test_rounds_of_all_rows_are_compared_though_they_have_no_start():
    rows = [("all rows", np.nan, 2.0, 0, -1.0, -0.9), ("all rows", np.nan, 2.0, 1, -0.5, -0.4)]
    assert count_rises(history(*rows)) == (1, 1)

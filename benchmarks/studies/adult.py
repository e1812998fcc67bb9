"""Adult a1a to a9a (1,605 to 32,561 sparse rows), SKMMC's Fig. 1: error and time of all methods.

``python -m benchmarks adult [--quick] [--seeds N]`` fits the nine sizes by both
protocols, three times with other seeds: k-means, linear CPMMC and LG-MMC, and SKMMC by
default and at each width of the paper's grid. The methods of the paper's protocol stand
at the parameters of the least mean balanced error, as the classes tell; SKMMC starts
there from three coin flips on 2,000 rows, and eta is 0.1. With the basis and the
settings of the paper there are ten runs. Slopes are of time against the number of rows
on logarithmic scales.
"""

import pandas as pd

from benchmarks.run import Options, Runs, frame_of_runs
from benchmarks.studies._skmmc import (
    compute,
    growth_goals,
    runs_of,
    slopes_of,
    table_of,
)
from benchmarks.tables import Result

__all__ = ["compute", "grid", "tables"]

STARTS = {"init": "random", "n_init": 3, "eta": 0.1}
SIZES = tuple(f"a{k}a" for k in range(1, 10))
OWN_BASIS_RUNS = 10


@frame_of_runs
def grid(options: Options) -> Runs:
    """All methods at each size."""
    for name in options.pick(SIZES, SIZES, SIZES[:2]):
        rows = options.rows_of(name)
        yield from runs_of(
            name, rows, options, starts=STARTS, own_basis_runs=OWN_BASIS_RUNS
        )
        if rows is not None and rows == options.rows:
            break  # a1a is part of a2a and so on: the others would be as large


def tables(frame: pd.DataFrame) -> Result:
    """Errors, times, and their slopes."""
    table = table_of(frame)
    slopes = slopes_of(table)
    found = {"adult": table} | ({} if slopes.empty else {"adult-slopes": slopes})
    return Result(found, growth_goals("adult", table))

"""Adult a1a to a9a (1,605 to 32,561 sparse rows), SKMMC's Fig. 1: error and time of all methods.

``python -m benchmarks adult [--quick] [--seeds N]`` fits the nine sizes by both protocols, three times with
other seeds: k-means, linear CPMMC, and SKMMC by default and at each width of the paper's grid. The methods of
the paper's protocol stand at the parameters of the least mean balanced error, as the classes tell; SKMMC
starts there from three coin flips on 2,000 rows, and eta is .1. Slopes are of time against the number of rows
on logarithmic scales.
"""

from __future__ import annotations

from benchmarks._common import Options, Result, rows_of
from benchmarks._compare import cells_of, table_of
from benchmarks._journal import Journal
from benchmarks._scaling import goals_of, slopes_of

STARTS = {"init": "random", "n_init": 3, "eta": 0.1}
SIZES = tuple(f"a{k}a" for k in range(1, 10))


def run(options: Options, journal: Journal) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.
    journal : Journal
        Record of the cells.

    Returns
    -------
    Result
        Tables and goals.
    """
    cells = []
    for name in SIZES[:2] if options.smoke else SIZES:
        rows = rows_of(name, options)
        cells += cells_of(name, rows, options, starts=STARTS)
        if rows is not None and rows == options.rows:
            break  # a1a is part of a2a and so on: the others would be as large
    table = table_of(journal.rows(cells))
    slopes = slopes_of(table)
    tables = {"adult": table} | ({} if slopes.empty else {"adult-slopes": slopes})
    return Result(tables, goals_of("adult", table))

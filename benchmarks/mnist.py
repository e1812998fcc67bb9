"""Four pairs of MNIST digits, SKMMC's Tab. IV to VI: error and time of all methods, published ones beside.

``python -m benchmarks mnist [--quick] [--seeds N]`` fits the digits 1 and 7, 2 and 7, 3 and 8, 8 and 9 of
MNIST (14,000 to 15,000 rows x 784 each, training and test images pooled) by both protocols, three times with
other seeds: k-means, linear CPMMC, and SKMMC by default and at each width of the paper's grid. The methods of
the paper's protocol stand at the parameters of the least mean balanced error, as the classes tell.
``--quick`` draws 2,000 rows.
"""

from __future__ import annotations

from benchmarks._common import MNIST_PAIRS, Goal, Options, Result, rows_of
from benchmarks._compare import ERROR, PAPER, SKMMC, SKMMC_PAPER, cells_of, table_of
from benchmarks._journal import Journal
from benchmarks.published import figure

QUICK_ROWS = 2000


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
    names = MNIST_PAIRS[:1] if options.smoke else MNIST_PAIRS
    most = QUICK_ROWS if options.quick else None
    cells = [cell for name in names for cell in cells_of(name, rows_of(name, options, most), options)]
    table = table_of(journal.rows(cells))
    ours = table[(table["protocol"] == PAPER) & (table["method"] == SKMMC)].set_index("dataset")[ERROR]
    goals = [
        Goal(
            f"{name}: error at the paper's protocol",
            100 * ours.get(name, float("nan")),
            round(100 * figure(SKMMC_PAPER, name, SKMMC, ERROR), 2),
            "%",
        )
        for name in names
    ]
    return Result({"mnist": table}, goals)

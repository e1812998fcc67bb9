"""Four pairs of MNIST digits, as in SKMMC's Tab. IV to VI: error and time of all methods beside the published ones.

``python -m benchmarks mnist [--quick] [--seeds N]`` fits k-means, linear CPMMC and
LG-MMC, and SKMMC with its defaults and at each width of the paper's grid, to the digits
1 and 7, 2 and 7, 3 and 8, and 8 and 9 of MNIST (14,000 to 15,000 rows x 784 each,
training and test images pooled), with both protocols and three seeds. In the paper's
protocol, the parameters with the smallest mean balanced error are selected with the
classes. Rounds of CCCP are counted over all values of C and starts. ``--quick`` draws
2,000 rows.
"""

import pandas as pd

from benchmarks.methods import SKMMC
from benchmarks.protocol import ERROR, MNIST_PAIRS, PAPER
from benchmarks.published import SKMMC as SKMMC_PAPER
from benchmarks.published import figure
from benchmarks.run import Options, Runs, frame_of_runs
from benchmarks.studies._skmmc import compute, runs_of, table_of
from benchmarks.tables import Result, goals_of

__all__ = ["compute", "grid", "tables"]

QUICK_ROWS = 2000


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield all methods on each pair."""
    for name in options.pick(MNIST_PAIRS, MNIST_PAIRS, MNIST_PAIRS[:1]):
        yield from runs_of(
            name, options.rows_of(name, QUICK_ROWS if options.quick else None), options
        )


def tables(frame: pd.DataFrame) -> Result:
    """Return errors and times; our errors should not exceed the published ones.

    This goal is for the paper's protocol.
    """
    table = table_of(frame)
    ours = table[(table["protocol"] == PAPER) & (table["method"] == SKMMC)].set_index(
        "dataset"
    )[ERROR]
    names = frame["dataset"].unique()
    bounds = {name: figure(SKMMC_PAPER, name, SKMMC, ERROR) for name in names}
    goals = goals_of(
        ours.reindex(names), bounds, "{}: error at the paper's protocol", "%"
    )
    return Result({"mnist": table}, goals)

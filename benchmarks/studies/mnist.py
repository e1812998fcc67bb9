"""Four pairs of MNIST digits, SKMMC's Tab. IV to VI: error and time of all methods, published ones beside.

``python -m benchmarks mnist [--quick] [--seeds N]`` fits the digits 1 and 7, 2 and 7, 3
and 8, 8 and 9 of MNIST (14,000 to 15,000 rows x 784 each, training and test images
pooled) by both protocols, three times with other seeds: k-means, linear CPMMC and
LG-MMC, and SKMMC by default and at each width of the paper's grid. The methods of the
paper's protocol stand at the parameters of the least mean balanced error, as the
classes tell. Rounds are those of CCCP over all values of C and starts. ``--quick``
draws 2,000 rows.
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
    """All methods on each pair."""
    for name in options.pick(MNIST_PAIRS, MNIST_PAIRS, MNIST_PAIRS[:1]):
        yield from runs_of(
            name, options.rows_of(name, QUICK_ROWS if options.quick else None), options
        )


def tables(frame: pd.DataFrame) -> Result:
    """Return the errors and times; ours should not exceed the published ones.

    This is judged by the paper's protocol.
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

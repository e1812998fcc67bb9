"""A study of a few quick fits, for processes that are killed while it runs."""

import pandas as pd

from benchmarks.run import Options, Run, frame_of_runs
from benchmarks.tables import Result


@frame_of_runs
def grid(options: Options):
    """A fit a seed."""
    for seed in options.repeats(6):
        yield Run("moons", "least squares", seed)


def compute(run: Run) -> dict[str, float]:
    """The objective of a fit to made rows."""
    from mmcnb import UnsupervisedRLS
    from mmcnb.datasets import make_block

    rows, _ = make_block("moons", 0, 300, 3, random_state=run.seed)
    fitted = UnsupervisedRLS(n_init=2, n_jobs=1, random_state=run.seed).fit(rows)
    return {"objective": fitted.objective_}


def tables(frame: pd.DataFrame) -> Result:
    """The objectives."""
    return Result({"objectives": frame[["seed", "objective"]]})

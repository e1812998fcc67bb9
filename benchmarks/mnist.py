"""Four pairs of MNIST digits: error at the best width and by default, with k-means beside.

``python -m benchmarks mnist [--seeds N]`` fits k-means (ten starts), the default and each width of a grid on
the digits 1 and 7, 2 and 7, 3 and 8, 8 and 9 of MNIST (14,000 to 15,000 rows x 784 each, training and test
images pooled), three times with other seeds; figures are medians.
"""

from __future__ import annotations

import pandas as pd

from benchmarks._common import MNIST_PAIRS, Goal, Options, Result, load
from benchmarks._compare import compare, medians, summarise, warm_up

BOUNDS = dict(zip(MNIST_PAIRS, (2, 3, 13, 5), strict=True))  # per cent, at the best width


def run(options: Options) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.

    Returns
    -------
    Result
        Tables and goals.
    """
    frames = []
    for name in BOUNDS:
        data = load(name, options)
        compiled = warm_up(data.X)
        frames.append(compare(data, range(options.seeds or 3)).assign(compile_seconds=compiled))
    frame = pd.concat(frames)
    facts = summarise(frame)
    errors = facts.set_index("dataset")["best error"]
    goals = [
        Goal(f"{name}: error at the best width", 100 * errors[name], bound, "%")
        for name, bound in BOUNDS.items()
    ]
    tables = {"mnist-fits": frame, "mnist": medians(frame), "mnist-summary": facts}
    return Result(tables, goals, shown=("mnist", "mnist-summary"))

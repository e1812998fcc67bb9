"""Adult a9a (32,561 sparse rows): error by default and at the best width, and time beside k-means.

``python -m benchmarks adult [--seeds N]`` fits k-means (ten starts), the default and each width of a grid in
turn on the same CSR matrix, three times with other seeds; figures are medians. With ``--sizes`` it also
fits a1a to a9a and gives the slope of time against the number of rows on logarithmic scales.
"""

from __future__ import annotations

import pandas as pd

from benchmarks._common import Goal, Options, Result, load, slope
from benchmarks._compare import OURS, compare, medians, summarise, warm_up

SIZES = tuple(f"a{k}a" for k in range(1, 10))
SIZE_WIDTH = 1.0


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
    seeds = range(options.seeds or 3)
    data = load("a9a", options)
    compiled = warm_up(data.X)
    frame = compare(data, seeds).assign(compile_seconds=compiled)
    facts = summarise(frame)
    row = facts.iloc[0]
    goals = [
        Goal("a9a: error by default", 100 * row["default error"], 26, "%"),
        Goal("a9a: error at the best width", 100 * row["best error"], 24.1, "%"),
        Goal("a9a: time at a given gamma", row["given gamma / k-means"], 2, "of k-means"),
        Goal('a9a: time with gamma="auto"', row["auto / k-means"], 6, "of k-means"),
    ]
    tables = {"adult-fits": frame, "adult": medians(frame), "adult-summary": facts}
    if options.sizes:
        sizes = _sizes(options, seeds)
        tables["adult-sizes"] = sizes
        goals += slopes_of_sizes(sizes[sizes["method"] == OURS])
    return Result(tables, goals, shown=tuple(name for name in tables if name != "adult-fits"))


def slopes_of_sizes(sizes: pd.DataFrame) -> list[Goal]:
    """One goal for each parameters: the slope of seconds against n; none where there is a single n."""
    if sizes["n"].nunique() < 2:
        return []
    return [
        Goal(
            f"{SIZES[0]} to {SIZES[-1]}: slope of time, {parameters}", slope(part["n"], part["seconds"]), 1.1
        )
        for parameters, part in sizes.groupby("parameters")
    ]


def _sizes(options: Options, seeds: range) -> pd.DataFrame:
    """All sizes in turn for each seed, so that a busy spell of the machine does not fall on one size."""
    sets = []
    for name in SIZES:
        sets.append(load(name, options))
        if len(sets[-1].y) == options.rows:
            break  # a1a is part of a2a and so on: the others would be as large
    frames = [compare(data, [seed], (SIZE_WIDTH,)) for seed in seeds for data in sets]
    return medians(pd.concat(frames))

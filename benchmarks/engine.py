"""The engine: passes beside a bare scan and a bare product, fits within 1 GiB, k-means, and Dask.

``python -m benchmarks engine [--quick] [--part NAME ...]`` measures, each in turn with its peer:

scan    the pass of ``predict`` over a Zarr store of incompressible float32 (64 columns, 64 basis vectors)
        against plain Zarr slices of the same chunks with the best number of threads
product the same pass over rows in memory (784 columns, 256 basis vectors) against a bare single-precision
        product of the pass's blocks
csr     kernel values of a9a against 200 of its rows, beside scikit-learn's ``rbf_kernel``
large   ``mmcnb fit`` of two rings and two blobs (32 columns) under 1 GiB: peak memory of the process tree,
        time in multiples of a bare scan, reads of the rows
peers   time and error beside k-means with ten starts: a9a, MNIST pairs, extended USPS
dask    a fit on 1 and 2 worker processes beside threads: time and labels

Ratios are of medians of runs that take turns. It writes a figure, engine.png, beside its tables. ``--quick``
takes small sizes.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from benchmarks._common import Goal, Options, Result, parts_of
from benchmarks._fits import dask, large, peers
from benchmarks._passes import csr, product, scan

PARTS: dict[str, Callable[[Options], tuple[pd.DataFrame, list[Goal]]]] = {
    "scan": scan,
    "product": product,
    "csr": csr,
    "large": large,
    "peers": peers,
    "dask": dask,
}


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
    frames, goals = [], []
    for part in parts_of(options, PARTS):
        frame, found = PARTS[part](options)
        frames.append(frame.assign(part=part))
        goals += found
    table = pd.concat(frames, ignore_index=True)
    front = ["part", "dataset", "n", "d", "method", "parameters"]
    table = table[front + [name for name in table.columns if name not in front]]
    draw(goals, options)
    return Result({"engine": table}, goals)


def draw(goals: list[Goal], options: Options) -> None:
    """One bar a goal: the figure as a share of its bound."""
    import matplotlib.pyplot as plt

    from benchmarks._common import whole_file

    shares = [goal.bound / goal.figure if goal.at_least else goal.figure / goal.bound for goal in goals]
    figure, ax = plt.subplots(figsize=(8, 0.35 * len(goals) + 1.2), layout="constrained")
    colours = ["tab:blue" if goal.reached else "tab:orange" for goal in goals]
    ax.barh([goal.what for goal in goals], shares, color=colours)
    ax.axvline(1.0, color="black", linewidth=1)
    ax.invert_yaxis()
    ax.set_xlabel("figure in units of its bound (left of the line: reached)")
    with whole_file(options.out / "engine.png") as aside:
        figure.savefig(aside, format="png", dpi=120)
    plt.close(figure)

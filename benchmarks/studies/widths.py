"""Label-free selection of the bandwidth: its error beside the best and a fixed bandwidth, and k-means.

``python -m benchmarks widths [--quick] [--seeds N]`` fits k-means, the default
(``gamma="auto"``) and each bandwidth of a grid on the UCI sets and pairs of digits of
optdigits and MNIST. The excess of a selection is its error minus the error at the best
bandwidth, which is found with the known classes. The second table has the mean and the
worst excess. ``--quick`` leaves MNIST out.
"""

from functools import partial
from itertools import product

import pandas as pd

from benchmarks.methods import KMEANS, SKMMC
from benchmarks.protocol import ERROR, MNIST_PAIRS, PAPER, PAPER_WIDTHS, UCI
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._skmmc import WIDTHS_BETWEEN, compute
from benchmarks.tables import Result, best, over_seeds

__all__ = ["compute", "grid", "tables"]

OPTDIGITS_PAIRS = tuple(name.replace("mnist", "optdigits") for name in MNIST_PAIRS)
GROUPS = {"UCI": UCI, "optdigits": OPTDIGITS_PAIRS}
WIDTHS = tuple(sorted(PAPER_WIDTHS + WIDTHS_BETWEEN))
FIXED_WIDTH = 0.5
AUTO = 'gamma="auto"'
FIXED = f"width {FIXED_WIDTH:g}"


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield k-means, the default and each bandwidth, in turn for each seed."""
    smoke = {"UCI": UCI[2:3], "optdigits": OPTDIGITS_PAIRS[:1]}
    groups = options.pick(GROUPS | {"MNIST": MNIST_PAIRS}, GROUPS, smoke)
    seeds = range(options.seeds or 3)
    for group, names in groups.items():
        for name, seed in product(names, seeds):
            run = partial(
                Run,
                name,
                seed=seed,
                part=group,
                settings={"rows": options.rows_of(name)},
            )
            yield run(KMEANS, parameters={"n_init": 10})
            yield run(SKMMC)
            for width in WIDTHS:
                yield run(SKMMC, parameters={"width": width}, protocol=PAPER)


def tables(frame: pd.DataFrame) -> Result:
    """Return errors at each bandwidth and of each selection, and their excess.

    There is no goal.
    """
    by_width = over_seeds(frame, ["part", "dataset", "method", "width"], ERROR)
    errors = errors_of(by_width)
    found = {
        "widths-by-width": by_width,
        "widths": errors,
        "widths-excess": excess_of(errors),
    }
    return Result(found, shown=("widths", "widths-excess"))


def errors_of(by_width: pd.DataFrame) -> pd.DataFrame:
    """Return one row per data set: errors of k-means, of each selection, and at the best bandwidth."""
    keys = ["part", "dataset"]
    at_width = by_width[by_width["width"].notna()]
    chosen = by_width[by_width["width"].isna()]
    chosen = chosen.pivot(index=keys, columns="method", values=ERROR)
    chosen = chosen.reindex(columns=[SKMMC, KMEANS])
    fixed = at_width[at_width["width"] == FIXED_WIDTH].set_index(keys)[ERROR]
    least = best(at_width, keys, ERROR).set_index(keys)
    table = least[["n", "d", ERROR, "width"]]
    table.insert(2, f"{AUTO} error", chosen[SKMMC])
    table.insert(3, f"{FIXED} error", fixed)
    table.insert(4, f"{KMEANS} error", chosen[KMEANS])
    titles = {"part": "group", ERROR: "best error", "width": "best width"}
    return table.reset_index().rename(columns=titles)


def excess_of(errors: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and worst excess error of each selection, in each group and in all."""
    rows = []
    for group, part in [*errors.groupby("group", sort=False), ("all", errors)]:
        for choice in (AUTO, FIXED, KMEANS):
            excess = part[f"{choice} error"] - part["best error"]
            row = {
                "group": group,
                "choice": choice,
                "mean excess error": excess.mean(),
                "worst excess error": excess.max(),
                "worst on": part.loc[excess.idxmax(), "dataset"],
            }
            rows.append(row)
    return pd.DataFrame(rows)

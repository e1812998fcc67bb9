"""Label-free choice of the bandwidth: its error beside the best one, a fixed one, and k-means.

``python -m benchmarks widths [--quick] [--seeds N]`` fits k-means, the default
(``gamma="auto"``) and each bandwidth of a grid on the UCI sets and pairs of digits of
optdigits and MNIST. The excess of a choice is its error less that at the best
bandwidth, which is found with the known classes. The second table gives its mean and
worst. ``--quick`` leaves MNIST out.
"""

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
    """k-means, the default and each bandwidth, in turn for each seed."""
    few = {"UCI": UCI[2:3], "optdigits": OPTDIGITS_PAIRS[:1]}
    for group, names in options.pick(
        GROUPS | {"MNIST": MNIST_PAIRS}, GROUPS, few
    ).items():
        for name in names:
            rows = {"rows": options.rows_of(name)}
            for seed in range(options.seeds or 3):
                yield Run(
                    name,
                    KMEANS,
                    seed,
                    parameters={"n_init": 10},
                    part=group,
                    settings=rows,
                )
                yield Run(name, SKMMC, seed, part=group, settings=rows)
                for width in WIDTHS:
                    yield Run(
                        name,
                        SKMMC,
                        seed,
                        parameters={"width": width},
                        protocol=PAPER,
                        part=group,
                        settings=rows,
                    )


def tables(frame: pd.DataFrame) -> Result:
    """Errors at each bandwidth and of each choice, and the excess of the choices; there is no goal."""
    by_width = over_seeds(frame, ["part", "dataset", "method", "width"], ERROR)
    errors = errors_of(by_width)
    found = {
        "widths-by-width": by_width,
        "widths": errors,
        "widths-excess": excess_of(errors),
    }
    return Result(found, shown=("widths", "widths-excess"))


def errors_of(by_width: pd.DataFrame) -> pd.DataFrame:
    """One row a data set: errors of k-means, of each choice, and at the best bandwidth."""
    keys = ["part", "dataset"]
    given = by_width[by_width["width"].notna()]
    chosen = by_width[by_width["width"].isna()]
    table = best(given, keys, ERROR)[[*keys, "n", "d", ERROR, "width"]].set_index(keys)
    chosen = chosen.pivot(index=keys, columns="method", values=ERROR).reindex(
        columns=[SKMMC, KMEANS]
    )
    fixed = given[given["width"] == FIXED_WIDTH].set_index(keys)[ERROR]
    table.insert(2, f"{AUTO} error", chosen[SKMMC])
    table.insert(3, f"{FIXED} error", fixed)
    table.insert(4, f"{KMEANS} error", chosen[KMEANS])
    return table.reset_index().rename(
        columns={"part": "group", ERROR: "best error", "width": "best width"}
    )


def excess_of(errors: pd.DataFrame) -> pd.DataFrame:
    """Mean and worst excess error of each choice, in each group and in all."""
    rows = []
    for group, part in [*errors.groupby("group", sort=False), ("all", errors)]:
        for choice in (AUTO, FIXED, KMEANS):
            excess = part[f"{choice} error"] - part["best error"]
            rows.append(
                (
                    group,
                    choice,
                    excess.mean(),
                    excess.max(),
                    part.loc[excess.idxmax(), "dataset"],
                )
            )
    columns = ["group", "choice", "mean excess error", "worst excess error", "worst on"]
    return pd.DataFrame(rows, columns=columns)

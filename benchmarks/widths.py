"""Label-free choice of the width: its error beside the best width, a fixed width, and k-means.

``python -m benchmarks widths [--quick] [--seeds N]`` fits k-means, the default (``gamma="auto"``) and each
width of a grid on the UCI sets and pairs of digits of optdigits and MNIST. The excess of a choice is its
error less that at the best width, which is found with the known classes; the second table gives mean and
worst. ``--quick`` leaves MNIST out.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from benchmarks._cells import LABEL_FREE, PAPER, Cell
from benchmarks._common import MNIST_PAIRS, UCI, Options, Result, rows_of
from benchmarks._compare import ERROR, KMEANS, PAPER_WIDTHS, SKMMC, WIDTHS_BETWEEN, fitted
from benchmarks._journal import Journal
from benchmarks._statistics import best, over_seeds

OPTDIGITS_PAIRS = tuple(name.replace("mnist", "optdigits") for name in MNIST_PAIRS)
WIDTHS = tuple(sorted(PAPER_WIDTHS + WIDTHS_BETWEEN))
FIXED_WIDTH = 0.5
AUTO, FIXED = 'gamma="auto"', f"width {FIXED_WIDTH:g}"


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
        Tables; the study has no goal.
    """
    groups = {"UCI": UCI, "optdigits": OPTDIGITS_PAIRS}
    if options.smoke:
        groups = {"UCI": UCI[2:3], "optdigits": OPTDIGITS_PAIRS[:1]}
    elif not options.quick:
        groups["MNIST"] = MNIST_PAIRS
    seeds = range(options.seeds or 3)
    cells = [
        cell
        for group, names in groups.items()
        for name in names
        for cell in cells_of(group, name, rows_of(name, options), seeds)
    ]
    by_width = over_seeds(journal.rows(cells), ["part", "dataset", "method", "width"], ERROR)
    facts = facts_of(by_width)
    tables = {"widths-by-width": by_width, "widths": facts, "widths-excess": excess_of(facts)}
    return Result(tables, shown=("widths", "widths-excess"))


def cells_of(group: str, name: str, rows: int | None, seeds: range) -> list[Cell]:
    """k-means, the default and each width, in turn for each seed."""
    points: list[tuple[str, str, dict[str, float]]] = [
        (KMEANS, LABEL_FREE, {"n_init": 10}),
        (SKMMC, LABEL_FREE, {}),
        *((SKMMC, PAPER, {"width": width}) for width in WIDTHS),
    ]
    return [
        Cell(name, method, seed, partial(fitted, name, rows, method, seed, given), given, protocol, group)
        for seed in seeds
        for method, protocol, given in points
    ]


def facts_of(by_width: pd.DataFrame) -> pd.DataFrame:
    """One row a data set: errors of k-means, of each choice, and at the best width."""
    rows = []
    for (group, name), part in by_width.groupby(["part", "dataset"], sort=False):
        given = part[part["width"].notna()]
        found = best(given, ["dataset"], ERROR).iloc[0]
        chosen = part[part["width"].isna()].set_index("method")[ERROR]
        rows.append(
            {
                "group": group,
                "dataset": name,
                "n": found["n"],
                "d": found["d"],
                f"{AUTO} error": chosen.get(SKMMC, float("nan")),
                f"{FIXED} error": given.loc[given["width"] == FIXED_WIDTH, ERROR].squeeze(),
                f"{KMEANS} error": chosen.get(KMEANS, float("nan")),
                "best error": found[ERROR],
                "best width": found["width"],
            }
        )
    return pd.DataFrame(rows)


def excess_of(facts: pd.DataFrame) -> pd.DataFrame:
    """Mean and worst excess error of each choice, in each group and in all."""
    rows = []
    for group, part in [*facts.groupby("group", sort=False), ("all", facts)]:
        for choice in (AUTO, FIXED, KMEANS):
            excess = part[f"{choice} error"] - part["best error"]
            rows.append(
                {
                    "group": group,
                    "choice": choice,
                    "mean excess error": excess.mean(),
                    "worst excess error": excess.max(),
                    "worst on": part.loc[excess.idxmax(), "dataset"],
                }
            )
    return pd.DataFrame(rows)

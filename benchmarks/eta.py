"""Precision of the cutting planes, SKMMC's Fig. 3 to 6: error, time and cuts against eta on the small sets.

``python -m benchmarks eta [--quick] [--seeds N]`` fits SKMMC at five values of eta up to 1, by default and,
from coin flips, at each width of the paper's grid, whose best at each eta is chosen by the classes, three
times with other seeds.
"SKMMC, own vectors" is the paper's basis, one vector a plane that no other plane uses, at one width and one
seed: eta sets the number of its basis vectors. Cuts are steps of the cutting-plane loop, rounds those of
CCCP, over all starts and widths. ``--quick`` takes three sets and three values.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from benchmarks._cells import LABEL_FREE, PAPER, Cell
from benchmarks._common import UCI, Goal, Options, Result, rows_of
from benchmarks._compare import COIN_FLIPS, ERROR, PAPER_WIDTHS, SKMMC, fitted
from benchmarks._journal import Journal
from benchmarks._statistics import best, over_seeds

ETAS = (0.01, 0.03, 0.1, 0.3, 1.0)
QUICK_ETAS, QUICK_SETS = (0.01, 0.1, 1.0), ("heart", "ionosphere", "breast")
OWN, OWN_WIDTH = "SKMMC, own vectors", 1.0
KEYS = ["dataset", "protocol", "method", "eta"]
COUNTS = ("cuts", "rounds", "cuts_a_round", "basis_vectors")
MOST_CUTS, MOST_RISE = 2.0, 2.0  # cuts a round, and points of error


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
    frame = journal.rows(list(cells_of(options)))
    settings = over_seeds(frame, [*KEYS, "parameters"], ERROR, *COUNTS)
    table = best(settings, KEYS, ERROR)
    means = means_of(settings, table)
    return Result({"eta": table, "eta-means": means}, goals_of(means))


def cells_of(options: Options) -> Iterator[Cell]:
    """Each eta by default, at each width, and with the paper's basis."""
    names = QUICK_SETS[: 1 if options.smoke else None] if options.quick else UCI
    etas = QUICK_ETAS if options.quick else ETAS
    widths = PAPER_WIDTHS[1:3] if options.smoke else PAPER_WIDTHS
    for name in names:
        rows = rows_of(name, options)

        def cell(method: str, protocol: str, seed: int, given: dict[str, Any], **fixed: Any) -> Cell:
            compute = partial(fitted, name, rows, SKMMC, seed, fixed | given)  # noqa: B023
            return Cell(name, method, seed, compute, given, protocol)  # noqa: B023

        for seed in range(options.seeds or (1 if options.quick else 3)):
            for eta in etas:
                yield cell(SKMMC, LABEL_FREE, seed, {"eta": eta})
                for width in widths:
                    yield cell(SKMMC, PAPER, seed, {"eta": eta, "width": width}, **COIN_FLIPS)
        for eta in etas[1:] if options.quick else etas:  # the least takes minutes
            yield cell(OWN, PAPER, 0, {"eta": eta, "width": OWN_WIDTH}, basis="own", init="random", n_init=1)


def means_of(settings: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Means over the data sets: errors at the best width, counts and seconds over all widths.

    Parameters
    ----------
    settings : DataFrame
        One row for each data set, protocol, method, eta and width.
    table : DataFrame
        Of these the rows at the best width.

    Returns
    -------
    DataFrame
        One row for each protocol, method and eta, with the seconds beside those at the least eta.
    """
    keys = KEYS[1:]
    means = settings.groupby(keys)[[*COUNTS, "seconds"]].mean()
    means.insert(0, ERROR, table.groupby(keys)[ERROR].mean())
    means = means.reset_index()
    first = means.groupby(keys[:2])["seconds"].transform("first")
    return means.assign(**{"of the least eta": means["seconds"] / first})


def goals_of(means: pd.DataFrame) -> list[Goal]:
    """What the paper says of eta: at its largest, a cut or two a round and little more error."""
    goals = []
    for protocol, rows in means[means["method"] == SKMMC].groupby("protocol", sort=False):
        ends = rows.sort_values("eta").iloc[[0, -1]]
        rise = 100 * float(ends[ERROR].iloc[1] - ends[ERROR].iloc[0])
        cuts = float(ends["cuts_a_round"].iloc[1])
        goals += [
            Goal(f"{protocol}: error at the largest eta above that at the least", rise, MOST_RISE, "points"),
            Goal(f"{protocol}: cuts a round at the largest eta", cuts, MOST_CUTS),
            Goal(f"{protocol}: time at the largest eta", ends["of the least eta"].iloc[1], 1, "of the least"),
        ]
    return goals

"""Precision eta of the cutting planes, as in SKMMC's Fig. 3 to 6: error, time and cuts on the small sets.

``python -m benchmarks eta [--quick] [--seeds N]`` fits SKMMC at five values of eta up
to 1 with three seeds: with its defaults, and from random labels at each width of the
paper's grid, where the best width for each eta is selected with the classes. At these
widths, SKMMC with the paper's basis is fitted as well. Cuts are steps of the
cutting-plane loop, and rounds are rounds of CCCP, counted over all starts and widths.
``--quick`` uses three data sets and three values.
"""

from itertools import product

import pandas as pd

from benchmarks.methods import SKMMC
from benchmarks.protocol import ERROR, LABEL_FREE, PAPER, PAPER_WIDTHS, UCI
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._skmmc import AS_PRINTED, COIN_FLIPS, OWN_BASIS, compute
from benchmarks.tables import Result, best, goals_of, over_seeds

__all__ = ["compute", "grid", "tables"]

ETAS = (0.01, 0.03, 0.1, 0.3, 1.0)
QUICK_ETAS = (0.01, 0.1, 1.0)
QUICK_SETS = ("heart", "ionosphere", "breast")
KEYS = ["dataset", "protocol", "method", "eta"]
COUNTS = ("cuts", "rounds", "cuts_a_round", "basis_vectors")
# The paper says of the largest eta: one or two cuts per round, and little more error.
MOST_RISE = 0.02
MOST_CUTS = 2.0
MOST_TIME = 1.0


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each eta with the defaults and at each width."""
    etas = options.pick(ETAS, QUICK_ETAS, QUICK_ETAS)
    for name in options.pick(UCI, QUICK_SETS, QUICK_SETS[:1]):
        data = {"rows": options.rows_of(name)}
        printed = {key: value for key, value in AS_PRINTED.items() if key != "eta"}
        for seed, eta in product(options.repeats(3), etas):
            yield Run(
                name,
                SKMMC,
                seed,
                parameters={"eta": eta},
                protocol=LABEL_FREE,
                settings=data,
            )
            for width in options.pick(PAPER_WIDTHS, PAPER_WIDTHS, PAPER_WIDTHS[1:3]):
                for method, fixed in ((SKMMC, COIN_FLIPS), (OWN_BASIS, printed)):
                    given = {"eta": eta, "width": width}
                    yield Run(
                        name,
                        method,
                        seed,
                        parameters=given,
                        protocol=PAPER,
                        settings=data | {"fixed": fixed},
                    )


def tables(frame: pd.DataFrame) -> Result:
    """Return each data set at its best width, means over the data sets, and goals."""
    settings = over_seeds(frame, [*KEYS, "parameters"], ERROR, *COUNTS)
    table = best(settings, KEYS, ERROR)
    means = means_of(settings, table)
    ours = means[means["method"] == SKMMC].sort_values("eta").groupby("protocol")
    least = ours.first()
    largest = ours.last()
    rise = largest[ERROR] - least[ERROR]
    goals = [
        *goals_of(
            rise,
            MOST_RISE,
            "{}: error at the largest eta above that at the least",
            "points",
        ),
        *goals_of(
            largest["cuts_a_round"], MOST_CUTS, "{}: cuts a round at the largest eta"
        ),
        *goals_of(
            largest["of the least eta"],
            MOST_TIME,
            "{}: time at the largest eta",
            "of the least",
        ),
    ]
    return Result({"eta": table, "eta-means": means}, goals)


def means_of(settings: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return means over the data sets.

    Errors are those at the best width; counts and seconds are means over all widths.

    Parameters
    ----------
    settings : DataFrame
        One row for each data set, protocol, method, eta and width.
    table : DataFrame
        The rows of ``settings`` at the best width.

    Returns
    -------
    DataFrame
        One row for each protocol, method and eta, with the ratio of the seconds to
        those at the smallest eta.
    """
    keys = KEYS[1:]
    means = settings.groupby(keys)[[*COUNTS, "seconds"]].mean()
    means.insert(0, ERROR, table.groupby(keys)[ERROR].mean())
    means = means.reset_index()
    first = means.groupby(keys[:2])["seconds"].transform("first")
    return means.assign(**{"of the least eta": means["seconds"] / first})

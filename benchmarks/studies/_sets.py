"""Data sets for the default and its peers: rows, numbers of clusters, halves."""

from collections.abc import Sequence

import pandas as pd

import data_loaders
from benchmarks.halves import TUNING, half_of
from benchmarks.methods import FRONT_DOOR, LEAST_SQUARES
from benchmarks.protocol import ERROR, MNIST_PAIRS, Data, load_once, rows_within
from benchmarks.run import Options
from benchmarks.tables import over_seeds
from mmcnb.datasets import SHAPES, make_shape

OURS = (FRONT_DOOR, LEAST_SQUARES)
SETS = (
    "mnist",
    "optdigits",
    "pendigits",
    "usps",
    "segment",
    "waveform",
    "ringnorm",
    "ionosphere",
    "breast",
    "wdbc",
    "house-votes",
    "adult",
    *MNIST_PAIRS,
)
SMOKE_SETS = ("optdigits", "wdbc")
SMOKE_SHAPES = ("two-moons", "four-moons")
QUICK_ROWS = 3000
SHAPE_ROWS = 1200
QUICK_SHAPE_ROWS = 600


def tuning(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names in the tuning half."""
    return tuple(name for name in names if half_of(name) == TUNING)


def sets_of(
    options: Options, names: Sequence[str] = SETS
) -> list[tuple[str, int | None]]:
    """Return the data sets of a scale, and how many rows to draw (None for all).

    Quick ones are for tuning.
    """
    bound = QUICK_ROWS if options.quick else None
    names = options.pick(tuple(names), tuning(names), SMOKE_SETS)
    return [(name, rows_within(name, options.rows, bound)) for name in names]


def shapes_of(
    options: Options, names: Sequence[str] = tuple(SHAPES)
) -> list[tuple[str, int | None]]:
    """Return the shapes of a scale, and how many rows to generate.

    Quick ones are for tuning.
    """
    rows = options.sized(SHAPE_ROWS, QUICK_SHAPE_ROWS)
    return [
        (name, rows) for name in options.pick(tuple(names), tuning(names), SMOKE_SHAPES)
    ]


def rows_of_set(name: str, rows: int | None, seed: int) -> Data:
    """Return a shape, which is generated again for each seed, or the rows of a data set."""
    if name in SHAPES:
        return Data(name, *make_shape(name, rows or SHAPE_ROWS, random_state=seed))
    return load_once(name, rows)


def n_clusters_of(name: str) -> int:
    """Return the number of classes of a data set, or of clusters of a shape.

    Examples
    --------
    >>> from benchmarks.studies._sets import n_clusters_of
    >>> n_clusters_of("two-moons"), n_clusters_of("segment")
    (2, 7)
    """
    if name in SHAPES:
        return SHAPES[name].n_clusters
    return next(
        len(fact["class_counts"])
        for fact in data_loaders.registry()
        if fact["name"] == name
    )


def over_sets(
    frame: pd.DataFrame, keys: Sequence[str] = (), others: Sequence[str] = ()
) -> pd.DataFrame:
    """Return `over_seeds` for each data set and method, with its half and the worst scores.

    The worst scores are the ARI and the balanced error of the worst seed.

    Parameters
    ----------
    frame : DataFrame
        One row per run, with a column ari and optionally balanced_error.
    keys : sequence of str, default=()
        Further columns that identify a group.
    others : sequence of str, default=()
        Further columns of which the mean is computed.
    """
    groups = ["dataset", "method", *keys]
    table = over_seeds(frame, groups, "ari", ERROR, *others).drop(columns="peak_mib")
    known = frame.reindex(columns=[*groups, "ari", ERROR]).groupby(groups, sort=False)
    worst = known.agg(**{"worst ari": ("ari", "min"), f"worst {ERROR}": (ERROR, "max")})
    table.insert(1, "half", table["dataset"].map(half_of))
    return table.join(worst, on=groups)


def over_halves(table: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """Return means of `over_sets` over the data sets of each half."""
    groups = table.groupby(["half", "method", *keys], sort=False)
    means = groups[["ari", "worst ari", ERROR, f"worst {ERROR}", "seconds"]].mean()
    means.insert(0, "sets", groups.size())
    return means.reset_index()

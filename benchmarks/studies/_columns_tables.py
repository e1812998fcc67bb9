"""Tables of the study ``columns``: means, gains and losses of "auto", and reports of single columns."""

import pandas as pd

from benchmarks.halves import CONFIRMATION, TUNING
from benchmarks.methods import FRONT_DOOR
from benchmarks.run import OK
from benchmarks.studies._columns_sets import KINDS, METRES, sets
from benchmarks.tables import Result

AUTO = "auto"
OTHERS = ["none", "standard"]
CHANGE = "auto is ahead by"
BOTH = "both"
HALVES = (TUNING, CONFIRMATION, BOTH)
# The rule is known to lose on these data sets, and on coordinates in metres.
NAMED = ("svmguide1", "australian", "magic")
MOST_CHANGES = 12  # largest number of gains, and of losses
FAILED_ARI = 0.3
GOOD_ARI = 0.6


def tables_of_sets(frame: pd.DataFrame) -> Result:
    """Return the index of each data set, means by kind and half, and the largest changes by "auto"."""
    table = over_sets(frame)
    tables = {"columns-sets": table, "columns": by_kind(table)}
    if AUTO in table:
        tables["columns-changes"] = changes(table)
    return Result(tables, shown=tuple(tables)[1:])


def over_sets(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean index over the seeds of each data set, with a column for each method.

    Our methods are named by their scales.
    """
    frame = frame[frame["status"] == OK]
    ways = frame["method"] + ", " + frame["scale"].fillna("")
    ways = ways.str.removesuffix(", ").str.removeprefix(f"{FRONT_DOOR}, ")
    means = frame.assign(way=ways).pivot_table(
        "ari", "dataset", "way", "mean", sort=False
    )
    facts = pd.DataFrame(
        [(data_set.name, data_set.kind, data_set.half) for data_set in sets()],
        columns=["dataset", "kind", "half"],
    )
    return facts.merge(means, on="dataset")


def by_kind(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over the data sets of each kind, in each half and in both.

    Each data set has the same weight.
    """
    table = pd.concat([table, table.assign(half=BOTH)])
    table["kind"] = pd.Categorical(table["kind"], KINDS)
    table["half"] = pd.Categorical(table["half"], HALVES)
    groups = table.drop(columns="dataset").groupby(["kind", "half"], observed=True)
    means = groups.mean()
    means.insert(0, "sets", groups.size())
    return means.reset_index()


def changes(table: pd.DataFrame) -> pd.DataFrame:
    """Return the largest gains and losses of "auto", and the data sets known to lose.

    A gain is relative to the better of the other two scales.
    """
    change = table[AUTO] - table[OTHERS].max(axis=1)
    table = table.assign(**{CHANGE: change})
    table = table.dropna(subset=CHANGE).sort_values(CHANGE, ascending=False)
    is_named = table["dataset"].isin(NAMED) | (table["kind"] == METRES)
    ranks = table[CHANGE].rank(method="first")
    is_loss = ranks <= MOST_CHANGES
    is_gain = ranks > len(table) - MOST_CHANGES
    columns = ["dataset", "kind", "half", *OTHERS, AUTO, CHANGE]
    return table.loc[is_named | is_loss | is_gain, columns].reset_index(drop=True)


def tables_of_flags(frame: pd.DataFrame) -> Result:
    """Count the failed and the good partitions whose trust names a few columns."""
    kind_of = {data_set.name: data_set.kind for data_set in sets()}
    frame = frame[frame["status"] == OK]
    kinds = frame["dataset"].map(kind_of)
    frame = frame.assign(kind=kinds, flagged=frame["flagged"] > 0)
    frame = pd.concat([frame, frame.assign(kind="all")])
    failed = frame[frame["ari"] < FAILED_ARI].assign(partition="failed")
    good = frame[frame["ari"] >= GOOD_ARI].assign(partition="good")
    keys = ["kind", "scale", "partition"]
    groups = pd.concat([failed, good]).groupby(keys, sort=False)["flagged"]
    counts = groups.agg(runs="size", flagged="sum", share="mean").reset_index()
    counts["kind"] = pd.Categorical(counts["kind"], [*KINDS, "all"])
    return Result({"columns-flags": counts.sort_values(keys, ignore_index=True)})

"""Tables of the study of columns: means by kind and half, gains and losses of "auto", and flags."""

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
NAMED = (
    "svmguide1",
    "australian",
    "magic",
)  # and coordinates in metres: the rule is known to lose on these
MOST_CHANGES = 12  # gains, and losses
FAILED_ARI = 0.3
GOOD_ARI = 0.6


def tables_of_sets(frame: pd.DataFrame) -> Result:
    """Each set, means of each kind and half, and the sets that "auto" changes most."""
    table = over_sets(frame)
    found = {"columns-sets": table, "columns": by_kind(table)}
    if AUTO in table:
        found["columns-changes"] = changes(table)
    return Result(found, shown=tuple(found)[1:])


def over_sets(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean index over the seeds of each set, a column a way; ours are called by their scales alone."""
    frame = frame[frame["status"] == OK]
    scales = frame["scale"].fillna("")
    ways = (
        (frame["method"] + ", " + scales)
        .str.removesuffix(", ")
        .str.removeprefix(f"{FRONT_DOOR}, ")
    )
    means = frame.assign(way=ways).pivot_table(
        "ari", "dataset", "way", "mean", sort=False
    )
    known = pd.DataFrame(
        [(one.name, one.kind, one.half) for one in sets()],
        columns=["dataset", "kind", "half"],
    )
    return known.merge(means, on="dataset")


def by_kind(table: pd.DataFrame) -> pd.DataFrame:
    """Means over the sets of each kind, in each half and in both; each set weighs the same."""
    table = pd.concat([table, table.assign(half=BOTH)])
    table["kind"] = pd.Categorical(table["kind"], KINDS)
    table["half"] = pd.Categorical(table["half"], HALVES)
    groups = table.drop(columns="dataset").groupby(["kind", "half"], observed=True)
    means = groups.mean()
    means.insert(0, "sets", groups.size())
    return means.reset_index()


def changes(table: pd.DataFrame) -> pd.DataFrame:
    """The largest gains and losses of "auto" over the better of the other scales, and sets known to lose."""
    table = table.assign(**{CHANGE: table[AUTO] - table[OTHERS].max(axis=1)}).dropna(
        subset=CHANGE
    )
    table = table.sort_values(CHANGE, ascending=False)[
        ["dataset", "kind", "half", *OTHERS, AUTO, CHANGE]
    ]
    named = table["dataset"].isin(NAMED) | (table["kind"] == METRES)
    ranks = table[CHANGE].rank(method="first")
    far = (ranks <= MOST_CHANGES) | (ranks > len(table) - MOST_CHANGES)
    return table[named | far].reset_index(drop=True)


def tables_of_flags(frame: pd.DataFrame) -> Result:
    """Of failed and of good partitions of each kind and scale: how many are flagged for a few columns."""
    kinds = {one.name: one.kind for one in sets()}
    frame = frame[frame["status"] == OK]
    frame = frame.assign(kind=frame["dataset"].map(kinds), flagged=frame["flagged"] > 0)
    frame = pd.concat([frame, frame.assign(kind="all")])
    is_good = frame["ari"] >= GOOD_ARI
    is_failed = frame["ari"] < FAILED_ARI
    parts = pd.concat(
        [
            frame[is_failed].assign(partition="failed"),
            frame[is_good].assign(partition="good"),
        ]
    )
    groups = parts.groupby(["kind", "scale", "partition"], sort=False)["flagged"]
    counts = groups.agg(runs="size", flagged="sum", share="mean").reset_index()
    counts["kind"] = pd.Categorical(counts["kind"], [*KINDS, "all"])
    return Result(
        {
            "columns-flags": counts.sort_values(
                ["kind", "scale", "partition"], ignore_index=True
            )
        }
    )

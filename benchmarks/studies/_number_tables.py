"""Tables of the study ``number``: means by kind, results for each data set, and trust.

Each data set has the same weight in a mean.
"""

import pandas as pd

from benchmarks.libraries import LEIDEN
from benchmarks.methods import FRONT_DOOR
from benchmarks.run import OK
from benchmarks.studies._choice_problems import GEOMETRY
from benchmarks.studies._choice_tables import (
    BOTH,
    by_trust,
    in_order,
    ranks,
    with_facts,
)
from benchmarks.tables import Result, goals_of

REAL = "all real sets"
FIGURES = ["ari", "best layer", "exact", "of the true number", "seconds"]


def tables_of_sets(frame: pd.DataFrame) -> Result:
    """Return means by kind, the numbers found for each data set, and trust.

    Means and trust are computed over both halves.
    """
    frame = with_facts(frame[frame["status"] == OK])
    needed = frame.columns.union(["best layer", "layers"], sort=False)
    frame = frame.reindex(columns=needed)
    ratio = frame["clusters"] / frame["k"]
    frame["exact"] = (ratio == 1).astype(float)
    frame["of the true number"] = ratio
    kinds = by_kind(frame)
    both = kinds[kinds["half"] == BOTH].set_index(["kind", "method"])
    means = both["ari"].unstack("method")
    goals = []
    if {FRONT_DOOR, LEIDEN} <= set(means):
        goals = goals_of(
            means[FRONT_DOOR],
            means[LEIDEN].to_dict(),
            "{}: ARI, above Leiden at resolution 1",
            at_least=True,
        )
    tables = {
        "number": kinds,
        "number-trust": by_trust(frame),
        "number-sets": by_set(frame),
    }
    problems = frame.groupby(["dataset", "set", "kind", "method"], sort=False)
    ranked = ranks(problems["ari"].mean().reset_index())
    if len(ranked):
        tables["number-ranks"] = ranked
    return Result(tables, goals)


def by_kind(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the means for each kind, half and method, and over all real data sets.

    "best layer" is the ARI of the best layer, "exact" is the share of the data sets for
    which the number of classes is found, and "of the true number" is the median of the
    number found divided by the number of classes.
    """
    frame = pd.concat([frame, frame[frame["kind"] != GEOMETRY].assign(kind=REAL)])
    frame = pd.concat([frame, frame.assign(half=BOTH)])
    keys = ["kind", "half", "method"]
    runs_of_problem = frame.groupby([*keys, "set", "dataset"], sort=False)
    problems = runs_of_problem[FIGURES].mean()
    sets = problems.groupby([*keys, "set"], sort=False).mean()
    groups = sets.groupby(keys, sort=False)
    means = groups.mean()
    means["of the true number"] = groups["of the true number"].median()
    means.insert(0, "sets", groups.size())
    return in_order(means.reset_index(), ["kind", "half"])


def by_set(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per data set: its classes, and ARI and numbers found for each method."""
    keys = ["dataset", "kind", "half", "n", "k"]
    rows = []
    for values, part in frame.groupby(keys, sort=False):
        row = dict(zip(keys, values, strict=True))
        for method, runs in part.groupby("method", sort=False):
            prefix = "" if method == FRONT_DOOR else f"{method}, "
            numbers = runs["clusters"].astype(int).astype(str)
            row[f"{prefix}found"] = ", ".join(numbers)
            row[f"{prefix}ari"] = runs["ari"].mean()
            if runs["best layer"].notna().any():
                row[f"{prefix}best layer"] = runs["best layer"].mean()
            if method == FRONT_DOOR:
                row["layers"] = runs["layers"].iloc[0]
                row["trust"] = ", ".join(runs["trust"])
        rows.append(row)
    return pd.DataFrame(rows)

"""Tables of the study of the number: means in which each set weighs the same, each set, and trust."""

import pandas as pd

from benchmarks.libraries import LEIDEN
from benchmarks.methods import FRONT_DOOR
from benchmarks.run import OK
from benchmarks.studies._choice_problems import GEOMETRY
from benchmarks.studies._choice_tables import BOTH, by_trust, ranks, with_facts
from benchmarks.tables import Result, goals_of

REAL = "all real sets"
FIGURES = ["ari", "best layer", "exact", "of the true number", "seconds"]


def tables_of_sets(frame: pd.DataFrame) -> Result:
    """Means by kind, half and method; each set with the numbers found; trust on both halves."""
    frame = with_facts(frame[frame["status"] == OK])
    frame = frame.reindex(columns=[*{*frame.columns, "best layer", "layers"}])
    ratio = frame["clusters"] / frame["k"]
    frame = frame.assign(
        **{"exact": (ratio == 1).astype(float), "of the true number": ratio}
    )
    kinds = by_kind(frame)
    means = (
        kinds[kinds["half"] == BOTH]
        .set_index(["kind", "method"])["ari"]
        .unstack("method")
    )
    goals = []
    if {FRONT_DOOR, LEIDEN} <= set(means):
        goals = goals_of(
            means[FRONT_DOOR],
            means[LEIDEN].to_dict(),
            "{}: ARI, above Leiden at resolution 1",
            at_least=True,
        )
    of_seeds = (
        frame.groupby(["dataset", "set", "kind", "method"], sort=False)["ari"]
        .mean()
        .reset_index()
    )
    ranked = ranks(of_seeds)
    named = {
        "number": kinds,
        "number-trust": by_trust(frame),
        "number-sets": by_set(frame),
    }
    return Result(named | ({"number-ranks": ranked} if len(ranked) else {}), goals)


def by_kind(frame: pd.DataFrame) -> pd.DataFrame:
    """Means of each kind, half and method, over both halves, and over all real sets.

    "best layer" is the ARI of the best layer, "exact" the share in which the number is
    that of the classes, "of the true number" the median of the number found over that
    of the classes.
    """
    frame = pd.concat([frame, frame[frame["kind"] != GEOMETRY].assign(kind=REAL)])
    frame = pd.concat([frame, frame.assign(half=BOTH)])
    keys = ["kind", "half", "method"]
    problems = frame.groupby([*keys, "set", "dataset"], sort=False)[FIGURES].mean()
    sets = problems.groupby([*keys, "set"], sort=False).mean().groupby(keys, sort=False)
    means = sets.mean()
    means["of the true number"] = sets["of the true number"].median()
    means.insert(0, "sets", sets.size())
    return means.reset_index().sort_values(
        ["kind", "half"], kind="stable", ignore_index=True
    )


def by_set(frame: pd.DataFrame) -> pd.DataFrame:
    """Each set: its classes; and of each method the mean ARI and the numbers of clusters of the seeds."""
    keys = ["dataset", "kind", "half", "n", "k"]
    rows = []
    for known, part in frame.groupby(keys, sort=False):
        row = dict(zip(keys, known, strict=True))
        for method, runs in part.groupby("method", sort=False):
            name = "" if method == FRONT_DOOR else f"{method}, "
            row[f"{name}found"] = ", ".join(map(str, runs["clusters"].astype(int)))
            row[f"{name}ari"] = runs["ari"].mean()
            if runs["best layer"].notna().any():
                row[f"{name}best layer"] = runs["best layer"].mean()
            if method == FRONT_DOOR:
                row |= {
                    "layers": runs["layers"].iloc[0],
                    "trust": ", ".join(runs["trust"]),
                }
        rows.append(row)
    return pd.DataFrame(rows)

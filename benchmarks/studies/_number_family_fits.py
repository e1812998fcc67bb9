"""Part ``families`` of ``number``: fits of the synthetic families without a number of clusters."""

from itertools import product
from typing import Any

import pandas as pd

import mmcnb
from benchmarks.halves import TUNING, half_of
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import clustering, facts, scored, timed
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._choice_tables import BOTH
from benchmarks.studies._number_families import (
    CORRELATED,
    CURVES,
    FLAT,
    NOISE_KINDS,
    ONE_CURVE,
    OVERLAPPING,
    PLACES,
    SHAPES_LARGE,
    SHAPES_SMALL,
    SPECTRA,
    STRETCHED,
    UNEVEN,
    MadeSet,
    all_sets,
)
from benchmarks.tables import Goal, Result, goals_of

GOALS = {
    CURVES: 0.91,
    ONE_CURVE: 1.0,
    SHAPES_LARGE: 0.88,
    SHAPES_SMALL: 0.83,
    PLACES: 0.97,
    UNEVEN: 0.85,
    OVERLAPPING: 0.45,
}
LARGEST = 20_000
QUICK_ROWS = 8000
ONE_CLUSTER = (*NOISE_KINDS, ONE_CURVE)


def sets_within(options: Options) -> list[MadeSet]:
    """Return the data sets of a scale; the quick ones have few rows, and are in the tuning half."""
    least = min(made.n_rows for made in all_sets())
    most = max(least, options.rows or options.pick(LARGEST, QUICK_ROWS, least))
    sets = [made for made in all_sets() if made.n_rows <= most]
    tuning = [made for made in sets if made.half == TUNING]
    return options.pick(sets, tuning, tuning[:4])


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the default, without a number of clusters, on each data set."""
    for seed, made in product(options.repeats(1), sets_within(options)):
        yield Run(made.name, FRONT_DOOR, seed, parameters={"family": made.family})


def compute(run: Run) -> dict[str, Any]:
    """Return the number found, and ARI; for a cloud, 1 if one cluster was found."""
    family = run.parameters["family"]
    made = next(
        made for made in all_sets() if (made.family, made.name) == (family, run.dataset)
    )
    data = made.data(run.seed)
    model: Any = mmcnb.MaximumMarginClustering(n_clusters=None, random_state=run.seed)
    if family in ONE_CLUSTER:
        measures = facts(data.X) | timed(model, data.X)
        measures["ari"] = float(model.n_clusters_ == 1)
    else:
        measures = scored(data, model, clustering)
    measures["k"] = len(set(data.y.tolist()))
    measures["clusters"] = model.n_clusters_
    measures["trust"] = model.report_["trust"]["level"]
    return measures


def tables(frame: pd.DataFrame) -> Result:
    """Return means by family and half, and the numbers found for each data set.

    "one cluster" is the share of the fits that find one cluster, and "high, right" is
    the share of the fits with high trust whose ARI is at least 0.8.
    """
    frame = frame[frame["status"] == OK].copy()
    frame["half"] = frame["dataset"].map(half_of)
    frame["one cluster"] = (frame["clusters"] == 1).astype(float)
    frame["high"] = (frame["trust"] == "high").astype(float)
    is_right = frame["ari"] >= 0.8
    frame["high, right"] = is_right.where(frame["trust"] == "high").astype(float)
    both = pd.concat([frame, frame.assign(half=BOTH)])
    figures = ["ari", "one cluster", "high", "high, right", "seconds"]
    groups = both.groupby(["family", "half"], sort=False)
    means = groups[figures].mean()
    means.insert(0, "fits", groups.size())
    names = ["family", "dataset", "n", "k"]
    sets = frame.groupby(names, sort=False).agg(
        found=("clusters", lambda found: ", ".join(map(str, found))),
        ari=("ari", "mean"),
        trust=("trust", ", ".join),
    )
    return Result(
        {
            "number-families": means.reset_index(),
            "number-family-sets": sets.reset_index(),
        },
        _goals(frame),
    )


def _goals(frame: pd.DataFrame) -> list[Goal]:
    """Return the goals for the families that were run."""
    means = frame.groupby("family", sort=False)["ari"].mean()
    known = {family: goal for family, goal in GOALS.items() if family in means}
    goals = goals_of(means, known, "{}: ARI, number unknown", at_least=True)
    alarms = frame[frame["family"].isin(NOISE_KINDS)]
    correlated = alarms["family"].isin((CORRELATED, SPECTRA))
    if correlated.any():
        count = float((alarms[correlated]["ari"] == 0).sum())
        goals.append(Goal("correlated clouds with more than one cluster", count, 1.0))
    flat = alarms["family"].isin((FLAT, STRETCHED))
    if flat.any():
        count = float((alarms[flat]["ari"] == 0).sum())
        goals.append(Goal("flat clouds with more than one cluster", count, 0.0))
    return goals

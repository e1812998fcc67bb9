"""Rules that pick the number of clusters, and how often they find that of the classes."""

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.halves import TUNING
from benchmarks.methods import FRONT_DOOR
from benchmarks.studies._choice_problems import problems
from benchmarks.studies._choice_rules import held_out
from benchmarks.tables import Result

NUMBER_SIGNS = ("objective", "smallest", "gap", "eigenvalue", "relative_cut", "agreement", "weakest_valley")
NumberRule = Callable[[pd.DataFrame], int]  # from the signs of a problem, by number of clusters


def tables_of_numbers(frame: pd.DataFrame) -> Result:
    """How often each rule takes the number of classes, exactly and within one."""
    whole = signs_by_number(frame)
    rows = []
    for name, part in whole.groupby("dataset", sort=False):
        signs = part.set_index("n_clusters").sort_index()
        for rule, number in NUMBER_RULES.items():
            rows.append({"dataset": name, "rule": rule, "taken": number(signs)})
    first = whole.groupby("dataset")[["half", "domain", "classes"]].first()
    taken = pd.concat([pd.DataFrame(rows), _learned_numbers(whole)]).join(first, on="dataset")
    away = (taken["taken"] - taken["classes"]).abs()
    taken = taken.assign(exact=away == 0, near=away <= 1)
    groups = pd.concat([taken, taken.assign(domain="all")]).groupby(["half", "domain", "rule"], sort=False)
    table = groups.agg(cases=("exact", "size"), exact=("exact", "mean"), near=("near", "mean"))
    return Result({"choice-clusters": table.reset_index()})


def signs_by_number(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each problem and number: figures of the graph, and the estimator's own."""
    known = {one.name: one for one in problems()}
    whole = frame[frame["status"] == "ok"]
    chosen = whole[whole["method"] == FRONT_DOOR].set_index("dataset")
    seen = pd.concat(
        [pd.DataFrame(json.loads(text)).assign(dataset=name) for name, text in chosen["numbers"].items()]
    )
    graph = whole[whole["method"] != FRONT_DOOR]
    columns = ["dataset", "n_clusters", "classes", "objective", "smallest", "gap", "eigenvalue"]
    both = graph[columns].merge(seen, on=["dataset", "n_clusters"])
    return both.assign(
        half=both["dataset"].map(lambda name: known[name].half),
        domain=both["dataset"].map(lambda name: known[name].domain),
    )


def _elbow(signs: pd.DataFrame) -> int:
    """The largest second difference of J, which is 0 with one cluster."""
    values = np.r_[0.0, signs["objective"].to_numpy()]
    second = 2 * values[1:-1] - values[:-2] - values[2:]
    return int(signs.index[second.argmax()])


def _top(sign: str, signs: pd.DataFrame) -> int:
    return int(signs[sign].astype(float).fillna(-np.inf).idxmax())


def _last_good(sign: str, least: float, signs: pd.DataFrame) -> int:
    """The largest number at which a sign is still near its best."""
    values = signs[sign].astype(float).fillna(-np.inf)
    best = values.max()
    return int(values.index[values >= best - (1 - least) * abs(best)].max())


NUMBER_RULES: dict[str, NumberRule] = {
    FRONT_DOOR: partial(_top, "score"),
    "elbow of J": _elbow,
    "eigengap": partial(_top, "gap"),
    "agreement of searches": partial(_top, "agreement"),
    "weakest valley": partial(_top, "weakest_valley"),
    "last deep valley": partial(_last_good, "weakest_valley", 0.5),
}


def _learned_numbers(part: pd.DataFrame) -> pd.DataFrame:
    """The number that logistic regression on signs and on their changes finds most likely."""
    sources = {one.name: one.source for one in problems()}
    part = part.sort_values(["dataset", "n_clusters"], kind="stable").reset_index(drop=True)
    y, source = (part["n_clusters"] == part["classes"]).to_numpy(), part["dataset"].map(sources).to_numpy()
    scores = held_out(_changes(part), y, source, (part["half"] == TUNING).to_numpy())
    best = part.assign(score=scores).groupby("dataset")["score"].idxmax()
    chosen = part.loc[best, ["dataset"]]
    return chosen.assign(rule="learned", taken=part.loc[best, "n_clusters"])


def _changes(part: pd.DataFrame) -> np.ndarray:
    values = part[list(NUMBER_SIGNS)].astype(float)
    values = values.fillna(values.median()).fillna(0.0)
    groups = values.groupby(part["dataset"])
    before, after = groups.diff().fillna(0.0), groups.diff(-1).fillna(0.0)
    return pd.concat([values, groups.rank(pct=True), before, after], axis=1).to_numpy()

"""Rules that pick a candidate, or the number of clusters, from signs without classes, and what they lose."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.halves import TUNING
from benchmarks.methods import FRONT_DOOR, KMEANS
from benchmarks.protocol import ERROR
from benchmarks.studies._choice_problems import problems, unpacked
from benchmarks.tables import Result

PEERS = (KMEANS, FRONT_DOOR)
FAILURE = 0.2  # of ARI below the best candidate
NEAR_BEST = 0.02  # of ARI below it: what the learned rules look for
QUICK = ("graph", "graph, hinge", "rbf", "rbf, equal", "rbf, hinge")  # candidates of little cost
STANDARD = (*QUICK, "graph, standard", "rbf, standard", "rbf, hinge, standard")
FREE_SIGNS = (
    "cut",
    "knn",
    "dunn",
    "valley",
    "balance",
    "smallest",
    "loo rbf",
    "loo linear",
    "loo graph",
)
ALL_SIGNS = (
    *FREE_SIGNS,
    "cut standard",
    "knn standard",
    "valley standard",
    "logistic",
    "trees",
    "halves",
    "refits",
)
NUMBER_SIGNS = (
    *("objective", "cut", "knn", "valley", "loo graph", "loo rbf 0.5", "halves", "refits", "smallest"),
    *("gap", "eigenvalue"),
)
NumberRule = Callable[[pd.DataFrame], int]  # from the signs of a problem, by number of clusters
Rule = Callable[[pd.DataFrame], str]  # from the candidates of a problem, by name, to one of them
BOUNDS, LEAST_AGREEMENT, NO_CUT = (0.05, 0.075, 0.1, 0.15, 0.2, 0.3), 0.4, 0.01
Picks = dict[str, str]  # from problems to candidates


def tables_of(frame: pd.DataFrame) -> Result:
    """Candidates by domain, and the loss of each rule by half and domain."""
    whole = prepared(frame)
    losses = pd.concat([loss_of(name, picks(whole), whole) for name, picks in RULES.items()])
    return Result({"choice-candidates": by_candidate(whole), "choice-rules": summary(losses)})


def prepared(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs that succeeded: half and domain of their problem, and how far they are below the best."""
    known = pd.DataFrame(
        [(one.name, one.source, one.domain, one.half) for one in problems()],
        columns=["dataset", "source", "domain", "half"],
    )
    whole = frame[frame["status"] == "ok"].merge(known, on="dataset")
    ours = whole[~whole["method"].isin(PEERS)]
    best = ours.groupby("dataset")["ari"].max()
    parts = [agreements(part) for _, part in ours.groupby("dataset", sort=False)]
    whole = whole.assign(agreement=pd.concat(parts), best=whole["dataset"].map(best))
    evidence = frame[frame["method"] == FRONT_DOOR].set_index("dataset")
    for name in ("relative_cut", "searches"):
        whole[name] = whole["dataset"].map(evidence[name]) if name in evidence else np.nan
    residuals = [name for name in whole if name.startswith("loo rbf") and not name.endswith("standard")]
    whole["loo rbf"] = whole[residuals].min(axis=1)
    return whole.assign(loss=whole["best"] - whole["ari"])


def agreements(part: pd.DataFrame) -> pd.Series:
    """Mean adjusted Rand index of the labels of each run with those of all others."""
    from sklearn.metrics import adjusted_rand_score

    labels = part["labels"].map(unpacked)
    table = pd.DataFrame(0.0, index=part.index, columns=part.index)
    for one, other in combinations(part.index, 2):
        table.loc[one, other] = table.loc[other, one] = adjusted_rand_score(labels[one], labels[other])
    return table.sum(axis=1) / max(1, len(part) - 1)


def by_candidate(whole: pd.DataFrame) -> pd.DataFrame:
    """Mean ARI and loss of each candidate in each domain of the tuning half."""
    part = whole[whole["half"] == TUNING]
    groups = part.groupby(["domain", "method"], sort=False)
    table = groups.agg(
        problems=("ari", "size"), ari=("ari", "mean"), loss=("loss", "mean"), seconds=("seconds", "median")
    )
    return table.reset_index()


def loss_of(name: str, picks: Picks, whole: pd.DataFrame) -> pd.DataFrame:
    """What a rule picks on each problem, and how far it is below the best candidate."""
    ours = whole[~whole["method"].isin(PEERS)]
    least = ours.groupby("dataset")[ERROR].min()
    picked = ours[ours["method"] == ours["dataset"].map(picks)]
    above = (picked[ERROR] - picked["dataset"].map(least)).where(picked["k"] == 2)
    columns = ["dataset", "half", "domain", "k", "ari", "best", "loss"]
    return picked[columns].assign(rule=name, picked=picked["method"], error_above=above)


def summary(losses: pd.DataFrame) -> pd.DataFrame:
    """Mean loss of each rule in each half and domain, and over all; its worst decile and failures."""
    parts = [losses, losses.assign(domain="all")]
    groups = pd.concat(parts).groupby(["half", "domain", "rule"], sort=False)
    table = groups.agg(
        problems=("loss", "size"),
        ari=("ari", "mean"),
        loss=("loss", "mean"),
        worst_decile=("loss", lambda loss: loss.quantile(0.9)),
        failures=("loss", lambda loss: (loss > FAILURE).mean()),
        error_above=("error_above", "mean"),
    )
    return table.reset_index()


# -- rules for one problem ---------------------------------------------------------------------


def each(rule: Rule, whole: pd.DataFrame) -> Picks:
    """What a rule picks on each problem by itself."""
    ours = whole[~whole["method"].isin(PEERS)]
    return {name: rule(part.set_index("method")) for name, part in ours.groupby("dataset", sort=False)}


def always(name: str) -> Rule:
    """One candidate for all problems."""
    return lambda part: name if name in part.index else part.index[0]


def largest(sign: str, among: Sequence[str] | None = None) -> Rule:
    """The candidate with the largest sign."""
    return lambda part: _least(-part[sign].astype(float), among)


def smallest(sign: str, among: Sequence[str] | None = None) -> Rule:
    """The candidate with the smallest sign."""
    return lambda part: _least(part[sign].astype(float), among)


def _least(values: pd.Series, among: Sequence[str] | None) -> str:
    values = values if among is None else values[values.index.isin(among)]
    return str(values.fillna(np.inf).idxmin())


def agreed(among: Sequence[str]) -> Rule:
    """The candidate with which the others of some agree most."""
    return lambda part: str(agreements(part[part.index.isin(among)]).idxmax())


def within(bound: float) -> Rule:
    """The rule of `MaximumMarginClustering` with some bound of the relative cut."""

    def rule(part: pd.DataFrame) -> str:
        cut, searches, k = (part[name].iloc[0] for name in ("relative_cut", "searches", "k"))
        kernel = "graph" if cut <= (bound if searches >= LEAST_AGREEMENT else NO_CUT) else "rbf"
        return f"{kernel}, hinge" if k == 2 else kernel

    return rule


# -- rules learned on the tuning half ----------------------------------------------------------


def learned(signs: Sequence[str], among: Sequence[str], whole: pd.DataFrame) -> Picks:
    """The candidate that logistic regression on signs holds most likely to be near the best.

    It learns from the tuning half. Problems of that half are judged by a model that has not seen their set.
    """
    part = whole[whole["method"].isin(among)]
    best = part.groupby("dataset")["ari"].transform("max")
    X, y = _relative(part, signs, among), (part["ari"] >= best - NEAR_BEST).to_numpy()
    scores = held_out(X, y, part["source"].to_numpy(), (part["half"] == TUNING).to_numpy())
    chosen = part.assign(score=scores).groupby("dataset")["score"].idxmax()
    return dict(zip(part.loc[chosen, "dataset"], part.loc[chosen, "method"], strict=True))


def held_out(X: np.ndarray, y: np.ndarray, source: np.ndarray, tuning: np.ndarray) -> np.ndarray:
    """Probabilities by logistic regression on the tuning half, without the set of the row that is judged."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scores = np.zeros(len(y))
    for one in np.unique(source):
        here, seen = source == one, tuning & (source != one)
        if np.unique(y[seen]).size < 2:  # nothing to learn from
            continue
        model: Any = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        scores[here] = model.fit(X[seen], y[seen]).predict_proba(X[here])[:, 1]
    return scores


def _relative(part: pd.DataFrame, signs: Sequence[str], among: Sequence[str]) -> np.ndarray:
    """Signs as they are and relative to the other candidates of a problem, and which candidate it is."""
    values = part[list(signs)].astype(float)
    values = values.fillna(values.median()).fillna(0.0)
    groups = values.groupby(part["dataset"])
    ranks = groups.rank(pct=True)
    centred = values - groups.transform("mean")
    which = pd.DataFrame({name: (part["method"] == name).astype(float) for name in among})
    two = (part["k"] == 2).astype(float)
    return pd.concat([values, ranks, centred, which, which.mul(two, axis=0)], axis=1).to_numpy()


RULES: dict[str, Callable[[pd.DataFrame], Picks]] = {
    **{f"always {name}": partial(each, always(name)) for name in STANDARD},
    **{f"graph up to a cut of {bound:g}": partial(each, within(bound)) for bound in BOUNDS},
    "least cut": partial(each, smallest("cut")),
    "leave one out": partial(each, smallest("loo rbf")),
    "stable halves": partial(each, largest("halves")),
    "agreement": partial(each, largest("agreement")),
    "agreement, quick": partial(each, agreed(QUICK)),
    "nearest rows": partial(each, largest("knn")),
    "logistic": partial(each, largest("logistic")),
    "trees": partial(each, largest("trees")),
    "near-neighbour Dunn": partial(each, largest("dunn")),
    "valley": partial(each, largest("valley")),
    "without sparse rows": partial(each, largest("trimmed")),
    "learned, quick": partial(learned, FREE_SIGNS, QUICK),
    "learned, standard": partial(learned, FREE_SIGNS, STANDARD),
    "learned, all signs": partial(learned, ALL_SIGNS, STANDARD),
}


# -- the number of clusters --------------------------------------------------------------------


def tables_of_numbers(frame: pd.DataFrame) -> Result:
    """How often each rule takes the number of classes, exactly and within one."""
    halves = {one.name: (one.half, one.domain) for one in problems()}
    whole = frame[frame["status"] == "ok"]
    whole = whole.assign(
        half=whole["dataset"].map(lambda name: halves[name][0]),
        domain=whole["dataset"].map(lambda name: halves[name][1]),
    )
    rows = []
    for (method, name), part in whole.groupby(["method", "dataset"], sort=False):
        signs = part.set_index("n_clusters").sort_index()
        for rule, number in NUMBER_RULES.items():
            found = {"dataset": name, "method": method, "rule": rule, "taken": number(signs)}
            rows.append(found | {key: part[key].iloc[0] for key in ("half", "domain", "classes")})
    taken = pd.DataFrame(rows)
    learned = _learned_numbers(whole[whole["method"] == "graph"])
    taken = pd.concat([taken, learned], ignore_index=True)
    away = (taken["taken"] - taken["classes"]).abs()
    taken = taken.assign(exact=away == 0, near=away <= 1)
    groups = pd.concat([taken, taken.assign(domain="all")]).groupby(
        ["half", "domain", "method", "rule"], sort=False
    )
    table = groups.agg(cases=("exact", "size"), exact=("exact", "mean"), near=("near", "mean")).reset_index()
    return Result({"choice-clusters": table})


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
    return int(values.index[values >= least * values.max()].max())


NUMBER_RULES: dict[str, NumberRule] = {
    "elbow of J": _elbow,
    "stable halves": partial(_top, "halves"),
    "last stable": partial(_last_good, "halves", 0.95),
    "eigengap": partial(_top, "gap"),
    "nearest rows, last": partial(_last_good, "knn", 0.98),
}


def _learned_numbers(part: pd.DataFrame) -> pd.DataFrame:
    """The number that logistic regression on signs and on their changes holds most likely."""
    sources = {one.name: one.source for one in problems()}
    part = part.sort_values(["dataset", "n_clusters"], kind="stable").reset_index(drop=True)
    y, source = (part["n_clusters"] == part["classes"]).to_numpy(), part["dataset"].map(sources).to_numpy()
    scores = held_out(_changes(part), y, source, (part["half"] == TUNING).to_numpy())
    best = part.assign(score=scores).groupby("dataset")["score"].idxmax()
    chosen = part.loc[best, ["dataset", "method", "half", "domain", "classes"]]
    return chosen.assign(rule="learned", taken=part.loc[best, "n_clusters"])


def _changes(part: pd.DataFrame) -> np.ndarray:
    values = part[list(NUMBER_SIGNS)].astype(float)
    values = values.fillna(values.median()).fillna(0.0)
    groups = values.groupby(part["dataset"])
    before, after = groups.diff().fillna(0.0), groups.diff(-1).fillna(0.0)
    return pd.concat([values, groups.rank(pct=True), before, after], axis=1).to_numpy()

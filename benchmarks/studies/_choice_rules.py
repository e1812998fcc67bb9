"""Rules that pick one candidate of each problem from signs without classes, and what each of them loses."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.halves import TUNING
from benchmarks.protocol import ERROR
from benchmarks.studies._choice_problems import problems
from benchmarks.tables import Result

PEER = "k-means"
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
    "agreement",
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
Rule = Callable[[pd.DataFrame], str]  # from the candidates of a problem, by name, to one of them
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
    ours = whole[whole["method"] != PEER]
    best = ours.groupby("dataset")["ari"].max()
    parts = [agreements(part) for _, part in ours.groupby("dataset", sort=False)]
    whole = whole.assign(agreement=pd.concat(parts), best=whole["dataset"].map(best))
    residuals = [name for name in whole if name.startswith("loo rbf") and not name.endswith("standard")]
    whole["loo rbf"] = whole[residuals].min(axis=1)
    return whole.assign(loss=whole["best"] - whole["ari"])


def agreements(part: pd.DataFrame) -> pd.Series:
    """Mean adjusted Rand index of the labels of each run with those of all others."""
    from sklearn.metrics import adjusted_rand_score

    from benchmarks.studies.choice import unpacked

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
    ours = whole[whole["method"] != PEER]
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
    ours = whole[whole["method"] != PEER]
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


def valley_or_gaussian(part: pd.DataFrame) -> str:
    """The graph where its cut is small, otherwise a Gaussian kernel, as the estimator does."""
    two = float(part["k"].iloc[0]) == 2
    graph, gaussian = ("graph, hinge", "rbf, hinge") if two else ("graph", "rbf")
    return graph if part.loc["graph", "cut"] <= 0.1 else gaussian


# -- rules learned on the tuning half ----------------------------------------------------------


def learned(signs: Sequence[str], among: Sequence[str], whole: pd.DataFrame) -> Picks:
    """The candidate that logistic regression on signs holds most likely to be near the best.

    It learns from the tuning half. Problems of that half are judged by a model that has not seen their set.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    part = whole[whole["method"].isin(among)]
    best = part.groupby("dataset")["ari"].transform("max")
    X, y = _relative(part, signs, among), (part["ari"] >= best - NEAR_BEST).to_numpy()
    scores, tuning = np.zeros(len(part)), (part["half"] == TUNING).to_numpy()
    for source in part["source"].unique():
        here = (part["source"] == source).to_numpy()
        seen = tuning & ~here
        if np.unique(y[seen]).size < 2:  # nothing to learn from
            continue
        model: Any = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        scores[here] = model.fit(X[seen], y[seen]).predict_proba(X[here])[:, 1]
    chosen = part.assign(score=scores).groupby("dataset")["score"].idxmax()
    return dict(zip(part.loc[chosen, "dataset"], part.loc[chosen, "method"], strict=True))


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
    "valley or Gaussian": partial(each, valley_or_gaussian),
    "least cut": partial(each, smallest("cut")),
    "leave one out": partial(each, smallest("loo rbf")),
    "stable halves": partial(each, largest("halves")),
    "agreement": partial(each, largest("agreement")),
    "agreement, quick": partial(each, largest("agreement", QUICK)),
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

"""Rules that pick a candidate from signs without classes, their losses, and signs of failures."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.halves import TUNING
from benchmarks.methods import FRONT_DOOR, KMEANS
from benchmarks.protocol import ERROR, clustering
from benchmarks.studies._choice_problems import LABELLED, PEERS, problems, unpacked
from benchmarks.tables import Result

FAILURE = 0.2  # of ARI below the best candidate
FAILED_ABOVE, FAILED_AT = 0.05, 0.35  # of error above the best candidate's, or of error: a failure to tell of
NEAR_BEST = 0.02  # of ARI below it: the aim of the learned rules
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
FLAG_SIGNS = {  # 1 if a larger sign is better
    "gap": 1,
    "searches": 1,
    "relative_cut": -1,
    "cut": -1,
    "knn": 1,
    "dunn": 1,
    "loo rbf": -1,
    "loo graph": -1,
    "logistic": 1,
    "trees": 1,
    "balance": 1,
}
Rule = Callable[[pd.DataFrame], str]  # from the candidates of a problem, by name, to one of them
BOUNDS, LEAST_AGREEMENT, NO_CUT = (0.05, 0.075, 0.1, 0.15, 0.2, 0.3), 0.4, 0.01
EQUAL_SIZES, HARDLY_MORE = "graph, equal", 1.1
HARDEST = 12  # problems of each half that are listed
Picks = dict[str, str]  # from problems to candidates


def tables_of(frame: pd.DataFrame) -> Result:
    """Candidates by domain, and the loss of each rule by half and domain."""
    whole = prepared(frame)
    losses = [loss_of(name, picks(whole), whole) for name, picks in RULES.items()]
    losses += [loss_of_votes(name, weigh, whole) for name, weigh in VOTES.items()]
    return Result(
        {
            "choice-candidates": by_candidate(whole),
            "choice-rules": summary(pd.concat(losses)),
            "choice-hard": hardest(whole),
            "choice-trust": by_trust(whole),
            "choice-flags": flags(whole),
            "choice-labels": mended(whole),
        }
    )


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
    """The pick of a rule on each problem, and how far it is below the best candidate."""
    ours = whole[~whole["method"].isin(PEERS)]
    least = ours.groupby("dataset")[ERROR].min()
    picked = whole[whole["method"] == whole["dataset"].map(picks)]
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
    """The pick of a rule on each problem by itself."""
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
        clear = cut <= (bound if searches >= LEAST_AGREEMENT else NO_CUT)
        return ("graph, hinge" if k == 2 else "graph") if clear else "rbf"

    return rule


def within_and(part: pd.DataFrame) -> str:
    """The rule of `MaximumMarginClustering`, with equal sizes on the graph if they cut hardly more."""
    taken = within(BOUNDS[3])(part)
    cuts = part["cut"]
    able = taken.startswith("graph") and {taken, EQUAL_SIZES} <= set(part.index)
    return EQUAL_SIZES if able and cuts[EQUAL_SIZES] <= HARDLY_MORE * cuts[taken] else taken


def cut_off(part: pd.DataFrame) -> str:
    """The rule of `MaximumMarginClustering`, with the cut-off filter for more than two clusters."""
    taken = within(BOUNDS[3])(part)
    return "graph, cut-off" if taken == "graph" else taken


# -- votes -------------------------------------------------------------------------------------


def loss_of_votes(name: str, weigh: Callable[[pd.DataFrame], pd.Series], whole: pd.DataFrame) -> pd.DataFrame:
    """Labels by a vote of labellings on each problem: each row joins the cluster with most of the weight.

    ``weigh`` gives the weights of the candidates of a problem. Clusters are matched with those of the
    candidate that weighs most.
    """
    rows = []
    for _, part in whole[~whole["method"].isin(PEERS)].groupby("dataset", sort=False):
        weights = weigh(part)
        labellings = [unpacked(text) for text in part.loc[weights.index, "labels"]]
        classes = unpacked(part["classes"].iloc[0])
        found = clustering(classes, vote(labellings, weights.to_numpy(float)))
        first = part.iloc[0]
        above = found[ERROR] - part[ERROR].min() if first["k"] == 2 else np.nan
        row = {key: first[key] for key in ("dataset", "half", "domain", "k", "best")}
        rows.append(row | {"ari": found["ari"], "loss": first["best"] - found["ari"], "error_above": above})
    return pd.DataFrame(rows).assign(rule=name, picked="")


def vote(labellings: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """The label of each row with the largest weight, clusters being matched with the heaviest labelling.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._choice_rules import vote
    >>> vote([np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([0, 1, 1])], np.ones(3)).tolist()
    [0, 0, 1]
    """
    from scipy.optimize import linear_sum_assignment

    lead, k = labellings[int(weights.argmax())], 1 + max(int(one.max()) for one in labellings)
    votes = np.zeros((len(lead), k))
    for labels, weight in zip(labellings, weights, strict=True):
        counts = np.bincount(labels * k + lead, minlength=k * k).reshape(k, k)
        votes[np.arange(len(lead)), linear_sum_assignment(counts, maximize=True)[1][labels]] += weight
    return np.asarray(votes.argmax(axis=1))


def few_of_least_cut(part: pd.DataFrame) -> pd.Series:
    """The three that cut least, each by how little it cuts."""
    return (1 / (0.01 + part["cut"].astype(float))).nlargest(3)


def all_by_agreement(part: pd.DataFrame) -> pd.Series:
    """All candidates, each by how much the others agree with it."""
    return part["agreement"].clip(lower=0.01) ** 2


VOTES = {"vote of three": few_of_least_cut, "vote of all": all_by_agreement}


# -- rules learned on the tuning half ----------------------------------------------------------


def learned(signs: Sequence[str], among: Sequence[str], whole: pd.DataFrame) -> Picks:
    """The candidate that logistic regression on signs finds most likely to be near the best.

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


def of_peer(name: str, whole: pd.DataFrame) -> Picks:
    """A method that is no candidate, on each problem."""
    return dict.fromkeys(whole["dataset"], name)


RULES: dict[str, Callable[[pd.DataFrame], Picks]] = {
    **{name: partial(of_peer, name) for name in (FRONT_DOOR, KMEANS)},
    **{f"always {name}": partial(each, always(name)) for name in STANDARD},
    **{f"graph up to a cut of {bound:g}": partial(each, within(bound)) for bound in BOUNDS},
    "equal sizes if they cut hardly more": partial(each, within_and),
    "cut-off filter": partial(each, cut_off),
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


# -- failures, and their signs -----------------------------------------------------------------


def failures(whole: pd.DataFrame, method: str = FRONT_DOOR) -> pd.DataFrame:
    """The runs of the estimator, and whether they failed: by error, balanced if there are two classes."""
    errors = whole["error"].where(whole["k"] > 2, whole[ERROR])
    least = errors[~whole["method"].isin(PEERS)].groupby(whole["dataset"]).min()
    runs = whole[whole["method"] == method]
    error = errors[runs.index]
    failed = (error > runs["dataset"].map(least) + FAILED_ABOVE) | (error > FAILED_AT)
    return runs.assign(failed=failed)


def by_trust(whole: pd.DataFrame) -> pd.DataFrame:
    """Failures at each level of trust, and recall and precision of the lowest."""
    runs, rows = failures(whole), []
    for half, part in runs.groupby("half", sort=False):
        low = part["trust"] == "low"
        found = {"half": half, "problems": len(part), "failures": int(part["failed"].sum())}
        for level in ("low", "medium", "high"):
            at = part["trust"] == level
            found |= {f"{level}": int(at.sum()), f"failed at {level}": int(part["failed"][at].sum())}
        caught = int((low & part["failed"]).sum())
        found |= {"recall": caught / max(1, part["failed"].sum()), "precision": caught / max(1, low.sum())}
        rows.append(found)
    return pd.DataFrame(rows)


def flags(whole: pd.DataFrame) -> pd.DataFrame:
    """How well each sign tells failures from other fits: area under the curve, by half."""
    from sklearn.metrics import roc_auc_score

    runs, rows = failures(whole), []
    for half, part in runs.groupby("half", sort=False):
        both = part["failed"].nunique() == 2
        for sign, sense in FLAG_SIGNS.items():
            values = sense * part[sign].astype(float)
            area = roc_auc_score(part["failed"], -values.fillna(values.max())) if both else np.nan
            rows.append({"half": half, "sign": sign, "area": float(area)})
    return pd.DataFrame(rows)


def hardest(whole: pd.DataFrame) -> pd.DataFrame:
    """The problems of each half whose best candidate is farthest from the classes, and the trust there."""
    table = whole.groupby("dataset", sort=False)[["half", "domain", "k", "best"]].first().reset_index()
    trust = whole[whole["method"] == FRONT_DOOR].set_index("dataset")["trust"]
    table["trust"] = table["dataset"].map(trust)
    return table.sort_values("best", kind="stable").groupby("half", sort=False).head(HARDEST)


def mended(whole: pd.DataFrame) -> pd.DataFrame:
    """Failures with 1 % of the labels known, among those without any, and the mean ARI of both."""
    plain, labelled = (failures(whole, name).set_index("dataset") for name in (FRONT_DOOR, LABELLED))
    both = plain.join(labelled[["failed", "ari"]], rsuffix=" labelled", how="inner")
    failed = both[both["failed"]]
    table = pd.DataFrame(
        {
            "problems": both.groupby("half").size(),
            "failures": failed.groupby("half").size(),
            "mended": failed.groupby("half")["failed labelled"].apply(lambda still: (~still).mean()),
            "ari": both.groupby("half")["ari"].mean(),
            "ari with labels": both.groupby("half")["ari labelled"].mean(),
        }
    )
    return table.reset_index()

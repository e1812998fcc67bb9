"""The number of clusters without labels: signs at each number, and the number that rules would take."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.halves import TUNING
from benchmarks.protocol import Data, clustering, fit
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._choice_problems import GEOMETRY, MANY, PAIRS, Problem, of_scale, problems, rows_of
from benchmarks.studies._choice_signs import signs_of
from benchmarks.tables import Result

GRAPH, GAUSSIAN = "graph", "rbf"
METHODS: dict[str, dict[str, Any]] = {GRAPH: {"kernel": "graph"}, GAUSSIAN: {"cluster_sizes": None}}
NUMBERS = range(2, 13)
SIGNS = (
    *("objective", "cut", "knn", "valley", "loo graph", "loo rbf 0.5", "halves", "refits", "smallest"),
    *("gap", "eigenvalue"),
)
NumberRule = Callable[[pd.DataFrame], int]  # from the signs of a problem, by number of clusters


def cases() -> list[Problem]:
    """Problems of 2 to 10 classes: few pairs, even and uneven draws, and the shapes.

    Examples
    --------
    >>> from benchmarks.studies._choice_clusters import cases
    >>> len(cases()) >= 60
    True
    """
    known = problems()
    pairs = [one for one in known if one.domain == PAIRS]
    return pairs[::5] + [one for one in known if one.domain in (MANY, GEOMETRY)]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Each method with each number of clusters on each problem, the tuning half first."""
    for problem in of_scale(options, cases(), ("optdigits 4 even", "two-moons")):
        settings = {"problem": list(problem), "rows": options.rows}
        for name in METHODS:
            for k in NUMBERS if not options.smoke else NUMBERS[:4]:
                yield Run(problem.name, name, 0, {"n_clusters": k}, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Signs of one number of clusters: of the fit, of its labels, and of fits to two halves."""
    (problem,) = (one for one in cases() if one.name == run.dataset)
    data, k = rows_of(problem, run.settings["rows"]), int(run.parameters["n_clusters"])
    started = time.perf_counter()
    model = _fitted(run.method, k, data.X, run.seed)
    found: dict[str, Any] = {"seconds": time.perf_counter() - started, "classes": int(data.y.max()) + 1}
    found |= {"objective": float(model.objective_), **clustering(data.y, model.labels_)}
    if run.method == GRAPH:
        found |= _spectrum(model.report_["graph"]["eigenvalues"], k)
    return (
        found
        | signs_of(data, model.labels_, run.seed)
        | _halves(run.method, k, data, model.labels_, run.seed)
    )


def _fitted(method: str, k: int, X: np.ndarray, seed: int) -> Any:
    return fit(mmcnb.UnsupervisedRLS(k, random_state=seed, **METHODS[method]), X)


def _spectrum(eigenvalues: list[float], k: int) -> dict[str, float]:
    """The gap after k - 1 eigenvalues, as a ratio: k clusters that hardly touch have as many near 1."""
    beyond = np.maximum(1 - np.array(eigenvalues), 1e-9)
    if k > len(beyond):
        return {"eigenvalue": float(1 - beyond[-1]), "gap": 0.0}
    return {"eigenvalue": float(1 - beyond[k - 2]), "gap": float(np.log(beyond[k - 1] / beyond[k - 2]))}


def _halves(method: str, k: int, data: Data, labels: np.ndarray, seed: int) -> dict[str, float]:
    """Agreement of fits to two halves of the rows with one another, and with the fit to all."""
    from sklearn.metrics import adjusted_rand_score as agreement

    order = np.random.RandomState(seed).permutation(len(data.y))
    try:
        one, other = (
            _fitted(method, k, data.X[np.sort(part)], seed).predict(data.X)
            for part in np.array_split(order, 2)
        )
    except mmcnb.InputError:
        return {"halves": 0.0, "refits": 0.0}
    refits = (agreement(labels, one) + agreement(labels, other)) / 2
    return {"halves": float(agreement(one, other)), "refits": float(refits)}


# -- rules -------------------------------------------------------------------------------------


def tables(frame: pd.DataFrame) -> Result:
    """How often each rule takes the number of classes, exactly and within one."""
    halves = {one.name: (one.half, one.domain) for one in cases()}
    whole = frame[frame["status"] == "ok"]
    whole = whole.assign(
        half=whole["dataset"].map(lambda name: halves[name][0]),
        domain=whole["dataset"].map(lambda name: halves[name][1]),
    )
    rows = []
    for (method, name), part in whole.groupby(["method", "dataset"], sort=False):
        signs = part.set_index("n_clusters").sort_index()
        for rule, number in RULES.items():
            found = {"dataset": name, "method": method, "rule": rule, "taken": number(signs)}
            rows.append(found | {key: part[key].iloc[0] for key in ("half", "domain", "classes")})
    taken = pd.DataFrame(rows)
    learned = _learned_numbers(whole[whole["method"] == GRAPH])
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


def _top(sign: str, signs: pd.DataFrame, sense: float = 1.0) -> int:
    return int((sense * signs[sign].astype(float)).fillna(-np.inf).idxmax())


def _last_good(sign: str, least: float, signs: pd.DataFrame) -> int:
    """The largest number at which a sign is still near its best."""
    values = signs[sign].astype(float).fillna(-np.inf)
    return int(values.index[values >= least * values.max()].max())


RULES: dict[str, NumberRule] = {
    "elbow of J": _elbow,
    "stable halves": partial(_top, "halves"),
    "last stable": partial(_last_good, "halves", 0.95),
    "eigengap": partial(_top, "gap"),
    "nearest rows, last": partial(_last_good, "knn", 0.98),
}


def _learned_numbers(part: pd.DataFrame) -> pd.DataFrame:
    """The number that logistic regression on signs and on their changes holds most likely."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sources = {one.name: one.source for one in cases()}
    part = part.sort_values(["dataset", "n_clusters"], kind="stable").reset_index(drop=True)
    X, y = _changes(part), (part["n_clusters"] == part["classes"]).to_numpy()
    source, scores = part["dataset"].map(sources).to_numpy(), np.zeros(len(part))
    tuning = (part["half"] == TUNING).to_numpy()
    for one in np.unique(source):
        here, seen = source == one, tuning & (source != one)
        if not y[seen].any():
            continue
        model: Any = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        scores[here] = model.fit(X[seen], y[seen]).predict_proba(X[here])[:, 1]
    best = part.assign(score=scores).groupby("dataset")["score"].idxmax()
    chosen = part.loc[best, ["dataset", "method", "half", "domain", "classes"]]
    return chosen.assign(rule="learned", taken=part.loc[best, "n_clusters"])


def _changes(part: pd.DataFrame) -> np.ndarray:
    values = part[list(SIGNS)].astype(float)
    values = values.fillna(values.median()).fillna(0.0)
    groups = values.groupby(part["dataset"])
    before, after = groups.diff().fillna(0.0), groups.diff(-1).fillna(0.0)
    return pd.concat([values, groups.rank(pct=True), before, after], axis=1).to_numpy()

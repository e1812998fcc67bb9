"""Part ``rules`` of ``explain``: whether planted conjunctions of two conditions are found."""

import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.protocol import fit
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.tables import Goal, Result

ROWS = 5000
SMOKE_ROWS = 1000
CLUSTERS = 3  # with a planted rule; the other rows form one more cluster
NOISE = (0.0, 0.05, 0.1)  # shares of rows with the label of another cluster
IRRELEVANT = (4, 10, 20, 40)  # numbers of columns without information
LEAST_SHARE = 0.9
NEAR = 0.05
KINDS = ("numbers", "number and category", "categories")
SEEDS = 4  # for each kind
CATEGORIES = np.array(["invoice", "card", "cash", "voucher"])


class Planted(NamedTuple):
    """A table, its clusters, the columns of their rules, and which rows match each rule."""

    X: pd.DataFrame
    y: np.ndarray
    columns: set[str]
    matches: list[np.ndarray]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield four tables for each kind of conjunction."""
    rows = options.rows or options.pick(ROWS, ROWS, SMOKE_ROWS)
    for kind in KINDS:
        for seed in range(options.seeds or SEEDS):
            yield Run("planted rules", kind, seed, settings={"rows": rows})


def planted_rules(kind: str, seed: int, rows: int) -> Planted:
    """Generate a table with a rule on two columns for each of three clusters.

    The clusters are three of the four corners in the plane of two columns, so neither
    column alone separates a cluster. Some rows get the label of another cluster.

    Examples
    --------
    >>> from benchmarks.studies._explain_rules import planted_rules
    >>> table = planted_rules("categories", 0, 500)
    >>> table.X.shape[0], len(table.matches)
    (500, 3)
    """
    random = np.random.default_rng([KINDS.index(kind), seed])
    amount = np.exp(random.normal(5, 1, rows)).round(2)
    age = random.normal(45, 15, rows).round()
    payment = random.choice(CATEGORIES, rows)
    region = random.choice(np.array(["north", "south", "west"]), rows)
    high = np.quantile(amount, random.uniform(0.4, 0.6))
    old = np.quantile(age, random.uniform(0.4, 0.6))
    if kind == "numbers":
        names = {"amount", "age"}
        matches = [
            (amount > high) & (age > old),
            (amount > high) & (age <= old),
            (amount <= high) & (age > old),
        ]
    elif kind == "number and category":
        names = {"amount", "payment"}
        matches = [
            (amount > high) & (payment == "invoice"),
            (amount <= high) & (payment == "invoice"),
            (amount > high) & (payment == "card"),
        ]
    else:
        names = {"payment", "region"}
        matches = [
            (payment == "invoice") & (region == "north"),
            (payment == "invoice") & (region == "south"),
            (payment == "card") & (region == "north"),
        ]
    y = np.full(rows, CLUSTERS)
    for k, match in enumerate(matches):
        y[match] = k
    is_noise = random.random(rows) < NOISE[seed % len(NOISE)]
    y[is_noise] = random.integers(0, CLUSTERS + 1, is_noise.sum())
    table = {"amount": amount, "age": age, "payment": payment, "region": region}
    for k in range(IRRELEVANT[seed % len(IRRELEVANT)]):
        is_text = k % 4 == 3
        table[f"extra {k}"] = (
            random.choice(np.array(["a", "b", "c"]), rows)
            if is_text
            else random.normal(size=rows) * 10.0 ** random.integers(-2, 4)
        )
    X = pd.DataFrame(table)
    return Planted(X[list(random.permutation(list(X)))], y, names, matches)


def compute(run: Run) -> dict[str, Any]:
    """Count the planted rules that are found, and compare their figures with the truth."""
    table = planted_rules(run.method, run.seed, run.settings["rows"])
    model = mmcnb.KernelKMeans(2, kernel="linear", n_init=1, random_state=0)
    model = fit(model, table.X)
    started = time.perf_counter()
    rules = model.explain(table.X, table.y).rules.set_index("cluster")
    seconds = time.perf_counter() - started
    n_found = 0
    differences = [0.0]
    for k, match in enumerate(table.matches):
        inside = (match & (table.y == k)).sum()
        rule = rules.loc[k]
        n_found += {name for name, _, _ in rule["conditions"]} == table.columns
        of_coverage = abs(rule["coverage"] - inside / (table.y == k).sum())
        of_precision = abs(rule["precision"] - inside / match.sum())
        differences += [of_coverage, of_precision]
    return {
        "n": len(table.X),
        "d": table.X.shape[1],
        "rules": len(table.matches),
        "found": int(n_found),
        "difference": float(np.max(differences)),
        "seconds": seconds,
    }


def tables(frame: pd.DataFrame) -> Result:
    """Return the share of rules found, and differences from the truth, by kind."""
    frame = frame[frame["status"] == OK]
    groups = pd.concat([frame, frame.assign(method="all")]).groupby("method")
    table = groups.agg(
        tables=("d", "size"),
        rules=("rules", "sum"),
        found=("found", "sum"),
        difference=("difference", "max"),
        seconds=("seconds", "mean"),
    )
    share = table["found"] / table["rules"]
    goals = [
        Goal(
            "explain: share of planted rules found",
            float(share["all"]),
            LEAST_SHARE,
            at_least=True,
        ),
        Goal(
            "explain: largest difference of coverage or precision from the truth",
            float(table["difference"]["all"]),
            NEAR,
        ),
    ]
    return Result({"explain-rules": table.assign(share=share).reset_index()}, goals)

"""Sentences computed from the figures: where we are better, where worse, how time grows, what failed."""

from __future__ import annotations

import pandas as pd

from benchmarks.report._frames import Study, is_share
from benchmarks.report._studies import COINS, KMEANS, PAPER, About, direction, is_ours, said
from benchmarks.report._summary import beside, beside_published

NOTHING = "\u2013"
EQUAL = 5e-4  # of a share; relative for other metrics


def amount(metric: str, value: float) -> str:
    """A figure for people: errors and accuracies in per cent.

    Examples
    --------
    >>> from benchmarks.report._reading import amount
    >>> amount("balanced_error", 0.0281), amount("seconds", 12345.678), amount("ari", float("nan"))
    ('2.81 %', '12,346', '\u2013')
    """
    if pd.isna(value):
        return NOTHING
    if is_share(metric):
        return f"{100 * value:.2f} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def against(rows: pd.DataFrame, other: str, against_whom: str) -> str:
    """Count where a metric is better, equal and worse than another figure of its row, and name the worst.

    Parameters
    ----------
    rows : DataFrame
        Rows of one metric: dataset, method, metric, mean and ``other``.
    other : str
        Column of the other figure.
    against_whom : str
        Whose figure it is.

    Returns
    -------
    str
        One or two sentences; empty where there is nothing to compare.
    """
    if rows.empty:
        return ""
    metric = rows["metric"].iloc[0]
    better, worse = counts(rows, other)
    text = f"{_name(metric)} against {against_whom}: better in {better}, worse in {worse} of {len(rows)} rows"
    equal = len(rows) - better - worse
    text += f", equal in {equal}." if equal else "."
    if not worse:
        return text
    row = rows.loc[_loss(rows, other).idxmax()]
    where = f"{row['method']} on {row['dataset']}" + (
        f" ({row['n']:,.0f} rows)" if pd.notna(row["n"]) else ""
    )
    return f"{text} Worst: {where}, {amount(metric, row['mean'])} against {amount(metric, row[other])}."


def counts(rows: pd.DataFrame, other: str) -> tuple[int, int]:
    """How many rows are better, and how many worse, than another figure by more than a rounding."""
    if rows.empty:
        return 0, 0
    loss = _loss(rows, other)
    share = rows["metric"].map(is_share)
    tolerance = EQUAL * rows[other].abs().where(~share, 1)
    return int((loss < -tolerance).sum()), int((loss > tolerance).sum())


def _loss(rows: pd.DataFrame, other: str) -> pd.Series:
    return -rows["metric"].map(direction) * (rows["mean"] - rows[other])


def comparisons(summary: pd.DataFrame, known: pd.DataFrame, about: About, metric: str) -> list[str]:
    """What the rows of one metric say beside the published figures, k-means and coin flips."""
    of_metric = summary[summary["metric"] == metric]
    if not direction(metric) or of_metric.empty:
        return []
    table = beside_published(of_metric, known)
    texts = [
        against(part, "published", f"the published figure of {method}")
        for method, part in table.groupby("method", sort=False)
        if method in _spoken_of(table, about)
    ]
    if about.papers and table.empty:
        texts.append(f"{_name(metric)}: the paper prints no figure of these rows.")
    for protocol, part in beside(of_metric, KMEANS, about).groupby("protocol", sort=False):
        texts.append(against(part, "other", f"k-means of the same run, {said(str(protocol))}"))
    flips = beside(of_metric[of_metric["protocol"] == PAPER], COINS, about)
    texts.append(against(flips, "other", "the best of as many coin flips"))
    if counts(flips, "other")[0] < len(flips):
        texts[-1] += " Where coin flips do as well, the row measures selection and not clustering."
    return [text for text in texts if text] or [
        "No published figure and no k-means beside: nothing to compare with."
    ]


def growth(fits: pd.DataFrame, about: About) -> list[str]:
    """How the time of ours and of k-means grows with the rows.

    Parameters
    ----------
    fits : DataFrame
        From `slopes`.
    about : About
        Which methods are ours.
    """
    spoken = [is_ours(name, about) or name == KMEANS for name in fits["method"]]
    return [
        f"{row.method}, {row.protocol}: from {row.least:,.0f} to {row.most:,.0f} rows "
        f"the time grows as n to the {row.slope:.2f} (95 % interval {row.low:.2f} to {row.high:.2f})"
        + (", faster than n." if row.low > 1.005 else ".")
        for row in fits.loc[spoken].itertuples()
    ]


def largest(rows: pd.DataFrame, about: About, metric: str, least: int = 3000) -> list[str]:
    """At how many sizes from ``least`` rows ours beat all others; the time at the largest beside k-means."""
    texts = []
    measured = rows[rows["metric"] == metric]
    for protocol, part in measured[measured["n"] >= least].groupby("protocol", sort=False):
        sign = -direction(metric)
        signed = part.assign(
            mean=sign * part["mean"],
            ours=[is_ours(name, about) for name in part["method"]],
            variant=[name.partition(", ")[0] in about.ours for name in part["method"]],
        )
        best = (
            signed[signed["ours"] | ~signed["variant"]]
            .groupby(["n", "ours"])["mean"]
            .min()
            .unstack("ours")
            .reindex(columns=[True, False])
            .dropna()
        )
        lost = [f"{n:,.0f}" for n in best.index[best[True] >= best[False]]]
        if sign and len(best):
            texts.append(
                f"Ours are best of all methods by {_name(metric).lower()}, {said(protocol)}, at "
                f"{(best[True] < best[False]).sum()} of {len(best)} sizes from {least:,} rows up"
                + (f", not at {' and '.join(lost)} rows." if lost else ".")
            )
    seconds = rows[(rows["metric"] == "seconds") & (rows["n"] == rows["n"].max())]
    texts += [
        f"{row.method}, {row.protocol}, at {row.n:,.0f} rows: {amount('seconds', row.mean)} s, "
        f"{row.mean / row.other:.2f} of k-means ({amount('seconds', row.other)} s)."
        for row in beside(seconds, KMEANS, about).itertuples()
    ]
    return texts


def swept(rows: pd.DataFrame, about: About, metric: str) -> list[str]:
    """How far the metric moves over the swept parameter, and the time from its least to its largest value."""
    texts = []
    points = rows[rows["x"].notna()]
    for (protocol, method), part in points.groupby(["protocol", "method"], sort=False):
        values = part[part["metric"] == metric].groupby("dataset")["mean"].agg(["min", "max"])
        seconds = (
            part[part["metric"] == "seconds"]
            .sort_values("x")
            .groupby("dataset")["mean"]
            .agg(["first", "last"])
        )
        if values.empty or seconds.empty:
            continue
        moved = values["max"] - values["min"]
        ratio = (seconds["last"] / seconds["first"]).median()
        low, high = part["x"].min(), part["x"].max()
        texts.append(
            f"{method}, {said(protocol)}: over {about.sweep} from {low:g} to {high:g} the "
            f"{_name(metric).lower()} moves by {amount(metric, moved.median())} in the median data set "
            f"and by {amount(metric, moved.max())} at most ({moved.idxmax()}); "
            f"the time at {high:g} is {ratio:.2f} of that at {low:g} (median)."
        )
    return texts


def goals(study: Study) -> str:
    """How many goals were reached, and which were missed."""
    if study.goals.empty:
        return ""
    missed = study.goals[study.goals["verdict"] != "reached"]
    text = f"{len(study.goals) - len(missed)} of {len(study.goals)} goals reached."
    return text if missed.empty else f"{text} Missed: {'; '.join(missed['goal'].astype(str))}."


def failures(study: Study) -> str:
    """How many cells failed."""
    total = len(study.cells) + len(study.failed)
    return (
        f"{len(study.failed)} of {total} cells failed; their reasons are below." if len(study.failed) else ""
    )


def caveats(study: Study) -> list[str]:
    """What makes the figures less than they seem: a small scale, fewer rows, jobs beside."""
    texts = []
    scale, rows = study.header.get("scale", "full"), study.header.get("rows")
    if scale != "full":
        texts.append(f"A {scale} run, with fewer rows or repeats than the study asks for: only a hint.")
    if rows:
        texts.append(f"At most {rows:,} rows of each data set.")
    jobs = study.versions.get("jobs", "1")
    if jobs != "1":
        texts.append(f"{jobs} jobs ran beside each other: times are rough.")
    return texts


def _name(metric: str) -> str:
    return metric.replace("_", " ").capitalize()


def _spoken_of(table: pd.DataFrame, about: About) -> set[str]:
    """Ours where they were published; else every method that was."""
    methods = set(table["method"])
    return methods & set(about.ours) or methods

"""From cells to means: parameters chosen where the protocol says so, published figures put beside."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._statistics import log_slope
from benchmarks.report._frames import Study
from benchmarks.report._studies import (
    PAPER,
    About,
    direction,
    in_order,
    is_ours,
    primary,
)

GROUP = ["part", "dataset", "n", "protocol", "method", "x"]
RESOURCES = ["seconds", "peak_mib"]


def summarise(study: Study, about: About) -> pd.DataFrame:
    """Mean, standard deviation and number of seeds of each metric.

    Parameters
    ----------
    study : Study
        What is on disk.
    about : About
        What is known of the study.

    Returns
    -------
    DataFrame
        One row a metric: part, dataset, n, protocol, method (with the parameters that set it apart), x (the
        swept parameter, or NaN), metric, mean, sd (ddof = 1), count. Its order does not depend on that of
        the cells.
    """
    cells = chosen(study, about)
    metrics = [*study.metrics, *RESOURCES]
    if cells.empty:
        return pd.DataFrame(columns=[*GROUP, "metric", "mean", "sd", "count"])
    long = cells.melt(id_vars=GROUP, value_vars=metrics, var_name="metric").dropna(subset="value")
    table = (
        long.groupby([*GROUP, "metric"], dropna=False)["value"].agg(["mean", "std", "count"]).reset_index()
    )
    table["order"] = table["method"].map(in_order(table["method"], about).index)
    table["by_user"] = table["protocol"] != PAPER
    keys = ["part", "n", "dataset", "by_user", "protocol", "order", "x", "metric"]
    table = table.sort_values(keys, ignore_index=True)
    return table.rename(columns={"std": "sd"}).drop(columns=["order", "by_user"])


def chosen(study: Study, about: About) -> pd.DataFrame:
    """The cells to speak of, with the swept parameter as ``x``.

    By the paper's protocol the parameters of a method on a data set are those of the best mean; without
    classes nobody can choose, so that parameters that differ set methods apart.
    """
    cells = study.cells.copy()
    given = [_parameters(text) for text in cells["parameters"]]
    swept = [about.of_part(part).sweep for part in cells["part"]]
    cells["x"] = [_number(values.get(name)) for values, name in zip(given, swept, strict=True)]
    rest = [
        {name: value for name, value in values.items() if name != of_part}
        for values, of_part in zip(given, swept, strict=True)
    ]
    cells["rest"] = [json.dumps(values, sort_keys=True) for values in rest]
    kept = [
        _best(group, study.metrics, about) if group["protocol"].iloc[0] == PAPER else _set_apart(group)
        for _, group in cells.groupby(GROUP, dropna=False)
    ]
    return pd.concat(kept, ignore_index=True) if kept else cells


def _parameters(text: str) -> dict[str, Any]:
    values = json.loads(text or "{}")
    return values if isinstance(values, dict) else {"parameters": values}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else np.nan


def _best(group: pd.DataFrame, metrics: list[str], about: About) -> pd.DataFrame:
    if group["rest"].nunique() == 1:
        return group
    measured = [name for name in metrics if group[name].notna().any()]
    metric = primary(measured, about)
    means = group.groupby("rest")[metric].mean().sort_index()
    return group[group["rest"] == (means.idxmax() if direction(metric) > 0 else means.idxmin())]


def _set_apart(group: pd.DataFrame) -> pd.DataFrame:
    given = [json.loads(text) for text in group["rest"]]
    names = sorted({name for values in given for name in values})
    varying = [name for name in names if len({json.dumps(values.get(name)) for values in given}) > 1]
    words = [", ".join(f"{name}={values[name]}" for name in varying if name in values) for values in given]
    methods = [
        f"{method}, {told}" if told else method for method, told in zip(group["method"], words, strict=True)
    ]
    return group.assign(method=methods)


def published_for(about: About) -> pd.DataFrame:
    """The published figures of the study's papers; empty where there are none."""
    from benchmarks.published import published

    frame = published()
    frame = frame[frame["paper"].isin(about.papers)]
    return frame.drop_duplicates(["dataset", "method", "metric"])


def beside_published(summary: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Rows of the paper's protocol that were published too: with ``published`` and ``table``.

    Facts of the data, whose method is "", have no protocol.
    """
    ours = summary[(summary["protocol"] == PAPER) | (summary["method"] == "")]
    found = known.rename(columns={"value": "published"})[
        ["dataset", "method", "metric", "published", "table"]
    ]
    return ours.merge(found, on=["dataset", "method", "metric"])


def beside(summary: pd.DataFrame, other: str, about: About) -> pd.DataFrame:
    """Rows of our methods with the mean of another on the same rows, by the same protocol, as ``other``.

    Where the other method ran by one protocol alone, that one counts for both.
    """
    keys = ["part", "dataset", "n", "metric"]
    theirs = summary[summary["method"] == other]
    ours = summary.loc[[is_ours(method, about) for method in summary["method"]]]
    if theirs.empty or ours.empty:
        return ours.iloc[:0].assign(other=np.nan)
    same = theirs.drop_duplicates([*keys, "protocol"]).rename(columns={"mean": "same"})
    any_one = theirs.drop_duplicates(keys).rename(columns={"mean": "any"})
    table = ours.merge(same[[*keys, "protocol", "same"]], on=[*keys, "protocol"], how="left")
    table = table.merge(any_one[[*keys, "any"]], on=keys, how="left")
    table["other"] = table["same"].fillna(table["any"])
    return table.dropna(subset="other").drop(columns=["same", "any"])


def slopes(summary: pd.DataFrame, fewest: int = 3) -> pd.DataFrame:
    """How a metric grows with the rows: least squares through the logarithms of the means over the seeds.

    Parameters
    ----------
    summary : DataFrame
        Rows of one metric.
    fewest : int, default=3
        Methods with fewer sizes are left out: two points leave nothing for an interval.

    Returns
    -------
    DataFrame
        method, protocol, slope, intercept (natural logarithm), low and high (95 % interval by Student's t),
        least and most (rows).
    """
    found = []
    for (method, protocol), part in summary.groupby(["method", "protocol"], sort=False):
        part = part[(part["mean"] > 0) & part["n"].notna()]
        if part["n"].nunique() < fewest:
            continue
        fit = log_slope(part["n"], part["mean"])
        # The line goes through the centre of the points.
        centre = np.log(part[["n", "mean"]]).mean()
        found.append(
            {
                "method": method,
                "protocol": protocol,
                "slope": fit.value,
                "intercept": centre["mean"] - fit.value * centre["n"],
                "low": fit.low,
                "high": fit.high,
                "least": part["n"].min(),
                "most": part["n"].max(),
            }
        )
    columns = ["method", "protocol", "slope", "intercept", "low", "high", "least", "most"]
    return pd.DataFrame(found, columns=columns)

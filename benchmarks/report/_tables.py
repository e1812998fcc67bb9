"""Tables of the page: cells with a text, a value to sort by and a note."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.report._frames import Study, is_share
from benchmarks.report._reading import NOTHING, amount
from benchmarks.report._studies import COINS, FREE, KMEANS, PAPER, About, direction, in_order, is_ours, said
from benchmarks.report._summary import beside_published


class Cell(NamedTuple):
    """One cell.

    Parameters
    ----------
    text : str
        What is read.
    value : float or None, default=None
        What it is sorted by; None takes the text.
    best : bool, default=False
        Whether it is the best of its row.
    note : str, default=""
        A second, smaller line.
    """

    text: str
    value: float | None = None
    best: bool = False
    note: str = ""


MISSING = Cell(NOTHING)


class Table(NamedTuple):
    """A table.

    Parameters
    ----------
    caption : str
        What it shows.
    columns : list of str
        Names of the columns; the first names the row.
    rows : list of list of Cell
        As many cells as columns.
    folded : bool, default=False
        Whether it is shown only when asked for.
    """

    caption: str
    columns: list[str]
    rows: list[list[Cell]]
    folded: bool = False

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has a number."""
        return [any(row[place].value is not None for row in self.rows) for place in range(len(self.columns))]


def label(metric: str) -> str:
    """Name of a metric for people.

    Examples
    --------
    >>> from benchmarks.report._tables import label
    >>> label("balanced_error"), label("peak_mib"), label("ari")
    ('Balanced error', 'Peak MiB', 'ARI')
    """
    if metric == "ari":
        return "ARI"
    text = metric.replace("_", " ").replace("mib", "MiB")
    return text[:1].upper() + text[1:]


def headline(summary: pd.DataFrame, known: pd.DataFrame, about: About, metric: str) -> list[Table]:
    """Ours by both protocols, as published, k-means and coin flips: one row a data set."""
    kept = summary[summary["metric"] == metric]
    kept = kept.loc[[is_ours(method, about) or method in (KMEANS, COINS) for method in kept["method"]]]
    if not about.ours or kept.empty:
        return []
    printed = known[known["metric"] == metric].set_index(["dataset", "method"])["value"]
    columns: dict[str, dict[str, Cell]] = {}
    for method in in_order(kept["method"], about):
        for protocol in (PAPER, FREE):
            rows = kept[(kept["method"] == method) & (kept["protocol"] == protocol)]
            if len(rows):
                columns[f"{method}, {protocol}"] = dict(
                    zip(rows_of(rows), map(cell, *_fields(rows)), strict=True)
                )
            if protocol == PAPER and method in printed.index.get_level_values("method"):
                columns[f"{method}, published"] = {
                    name: _published(printed, dataset, method, metric)
                    for name, dataset in zip(rows_of(kept), kept["dataset"], strict=True)
                }
    if len(columns) < 2:
        return []
    names = list(dict.fromkeys(rows_of(kept)))
    rows = [[Cell(name), *(column.get(name, MISSING) for column in columns.values())] for name in names]
    caption = f"{label(metric)}: ours, as published, and the yardsticks"
    return [Table(caption, ["data set", *columns], [_with_best(row, metric) for row in rows])]


def pivots(summary: pd.DataFrame, known: pd.DataFrame, about: About, metric: str) -> list[Table]:
    """All methods by data set, a table a protocol, with the published figure as a note."""
    tables = []
    printed = known[known["metric"] == metric].set_index(["dataset", "method"])["value"].to_dict()
    for protocol, part in summary[summary["metric"] == metric].groupby("protocol", sort=False):
        names, methods = rows_of(part), in_order(part["method"], about)
        cells = {}
        for name, row in zip(names, part.itertuples(), strict=True):
            value = printed.get((row.dataset, row.method)) if protocol == PAPER else None
            note = "" if value is None else f"published {amount(metric, value)}"
            cells[name, row.method] = cell(metric, row.mean, row.sd, row.count)._replace(note=note)
        rows = [
            [Cell(name), *(cells.get((name, method), MISSING) for method in methods)]
            for name in dict.fromkeys(names)
        ]
        caption = f"{label(metric)}, {said(protocol)}"
        tables.append(Table(caption, ["data set", *methods], [_with_best(row, metric) for row in rows]))
    return tables


def every_figure(summary: pd.DataFrame, known: pd.DataFrame, about: About, folded: bool = True) -> Table:
    """Mean ± standard deviation (seeds) of every metric: one row a data set, protocol and method."""
    metrics = list(dict.fromkeys(summary["metric"]))
    keys = ["dataset", "n", "protocol", "method", "x"]
    both = beside_published(summary, known)
    printed = both.set_index(["dataset", "protocol", "method", "metric"])["published"].to_dict()
    rows = []
    for (dataset, n, protocol, method, x), part in summary.groupby(keys, sort=False, dropna=False):
        found = {row.metric: cell(row.metric, row.mean, row.sd, row.count) for row in part.itertuples()}
        for metric, value in _noted(printed, dataset, protocol, method, metrics).items():
            found[metric] = found[metric]._replace(note=f"published {amount(metric, value)}")
        size, swept = (MISSING if pd.isna(value) else Cell(f"{value:,g}", float(value)) for value in (n, x))
        rows.append(
            [Cell(str(dataset)), size, Cell(str(protocol)), Cell(str(method) or "the data")]
            + ([swept] if about.sweep else [])
            + [found.get(metric, MISSING) for metric in metrics]
        )
    columns = ["data set", "rows", "protocol", "method", *([about.sweep] if about.sweep else [])]
    caption = "Every figure: mean ± standard deviation (number of seeds)"
    return Table(caption, [*columns, *map(label, metrics)], rows, folded)


def growth_table(fits: pd.DataFrame) -> list[Table]:
    """The exponents of the rows in the time of every method."""
    rows = [
        [
            Cell(row.method),
            Cell(row.protocol),
            *(Cell(f"{value:.2f}", value) for value in (row.slope, row.low, row.high)),
        ]
        for row in fits.itertuples()
    ]
    names = ["method", "protocol", "exponent", "95 % from", "95 % to"]
    return [Table("Time as a power of the rows", names, rows, folded=True)] if rows else []


def goals_table(study: Study) -> list[Table]:
    """The goals of a study and their verdicts."""
    rows = [
        [
            Cell(str(row.goal)),
            Cell(amount("", row.figure), None if pd.isna(row.figure) else float(row.figure)),
            Cell(str(row.bound)),
            Cell("" if pd.isna(row.unit) else str(row.unit)),
            Cell(str(row.verdict)),
        ]
        for row in study.goals.itertuples()
    ]
    return [Table("Goals", ["goal", "figure", "bound", "unit", "verdict"], rows, folded=True)] if rows else []


def failed_table(study: Study) -> list[Table]:
    """Cells that failed, with their reasons."""
    names = ["part", "dataset", "protocol", "method", "parameters", "seed", "reason"]
    rows = [
        [
            Cell(f"{value:g}", value) if name == "seed" else Cell(str(value))
            for name, value in zip(names, row, strict=True)
        ]
        for row in study.failed[names].itertuples(index=False)
    ]
    return [Table("Failed cells", names, rows)] if rows else []


def cell(metric: str, mean: float, sd: float, count: float) -> Cell:
    """Mean ± standard deviation (number of seeds)."""
    if pd.isna(mean):
        return MISSING
    if pd.isna(sd):
        return Cell(f"{amount(metric, mean)} ({count:.0f})", float(mean))
    unit = " %" if is_share(metric) else ""
    first, second = (amount(metric, value).removesuffix(" %") for value in (mean, sd))
    return Cell(f"{first} ± {second}{unit} ({count:.0f})", float(mean))


def rows_of(part: pd.DataFrame) -> list[str]:
    """Names of the rows: data sets, with their sizes where one has several."""
    several = part.groupby("dataset")["n"].nunique() > 1
    return [
        f"{dataset}, {n:,.0f} rows" if several[dataset] and pd.notna(n) else str(dataset)
        for dataset, n in zip(part["dataset"], part["n"], strict=True)
    ]


def _with_best(row: list[Cell], metric: str) -> list[Cell]:
    """Mark the best cells of a row, where the metric has a best."""
    sign = -direction(metric)
    values = [sign * found.value for found in row[1:] if found.value is not None]
    if not sign or len(values) < 2:
        return row
    return [
        found._replace(best=found.value is not None and sign * found.value == min(values)) for found in row
    ]


def _published(printed: pd.Series, dataset: str, method: str, metric: str) -> Cell:
    value = printed.get((dataset, method))
    return MISSING if value is None else Cell(amount(metric, value), float(value))


def _fields(rows: pd.DataFrame) -> Iterable[Any]:
    return (rows[name] for name in ("metric", "mean", "sd", "count"))


def _noted(
    printed: dict[Any, float], dataset: Any, protocol: Any, method: Any, metrics: list[str]
) -> dict[str, float]:
    """The published figure of each metric that has one."""
    keys = {metric: (dataset, protocol, method, metric) for metric in metrics}
    return {metric: printed[key] for metric, key in keys.items() if key in printed}

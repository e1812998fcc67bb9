"""Tables of the page: cells with a text and a value to sort by."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from benchmarks.report.summary import direction, is_share, row_names
from mmcnb import InputError


class Cell(NamedTuple):
    """One cell of a table.

    Parameters
    ----------
    text : str
        What is read.
    value : float or None, default=None
        What it is sorted by; None takes the text.
    best : bool, default=False
        Whether it is the best of its row by its protocol.
    """

    text: str
    value: float | None = None
    best: bool = False


GOALS = ("goal", "figure", "bound", "unit", "verdict")
MISSING = Cell("\u2013")
MEANS = "mean ± standard deviation (number of seeds)"


class Table(NamedTuple):
    """A table.

    Parameters
    ----------
    caption : str
        What it shows.
    columns : list of str
        Names of the columns.
    rows : list of list of Cell
        As many cells as columns; the first names the row.
    folded : bool, default=False
        Whether it is shown on demand.
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
    >>> from benchmarks.report.tables import label
    >>> label("balanced_error"), label("peak_mib"), label("ari")
    ('Balanced error', 'Peak MiB', 'ARI')
    """
    if metric == "ari":
        return "ARI"
    text = metric.replace("_", " ").replace("mib", "MiB")
    return text[:1].upper() + text[1:]


def amount(metric: str, value: float) -> str:
    """A figure for people: errors and accuracies in per cent.

    Examples
    --------
    >>> from benchmarks.report.tables import amount
    >>> amount("balanced_error", 0.0281), amount("seconds", 12345.678)
    ('2.81 %', '12,346')
    """
    if is_share(metric):
        return f"{100 * value:.2f} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def cell(metric: str, mean: float, sd: float, count: float) -> Cell:
    """Mean ± standard deviation (number of seeds); published figures have the mean alone."""
    text = amount(metric, mean)
    if pd.notna(sd):
        text = f"{text.removesuffix(' %')} ± {amount(metric, sd)}"
    return Cell(f"{text} ({count:.0f})" if pd.notna(count) else text, float(mean))


def comparison(rows: pd.DataFrame, metric: str) -> list[Table]:
    """One metric: a row for each data set, a column for each method and protocol."""
    rows = rows[rows["metric"] == metric]
    rows = rows.assign(name=row_names(rows), score=direction(metric) * rows["mean"])
    scores = rows.groupby(["name", "protocol"])["score"]
    rows["best"] = (rows["score"] == scores.transform("max")) & (scores.transform("size") > 1)
    keys = list(
        dict.fromkeys(rows.sort_values(["order", "rank"])[["method", "protocol"]].itertuples(index=False))
    )
    found: dict[str, dict[Any, Cell]] = {}
    for row in rows.itertuples():
        best = bool(row.best and direction(metric))
        one = cell(metric, row.mean, row.sd, row.count)._replace(best=best)
        found.setdefault(row.name, {})[row.method, row.protocol] = one
    table = [[Cell(name), *(cells.get(key, MISSING) for key in keys)] for name, cells in found.items()]
    columns = ["data set", *(", ".join(filter(None, key)) for key in keys)]
    return [Table(f"{label(metric)}: {MEANS}", columns, table)] if table else []


def everything(rows: pd.DataFrame, sweep: str, folded: bool) -> Table:
    """Every metric: one row for each data set, protocol, method and value of the swept parameter."""
    metrics = list(dict.fromkeys(rows["metric"]))
    table = []
    keys = ["dataset", "n", "protocol", "method", "x"]
    for (dataset, n, protocol, method, x), part in rows.groupby(keys, sort=False, dropna=False):
        found = {row.metric: cell(row.metric, row.mean, row.sd, row.count) for row in part.itertuples()}
        size, swept = (MISSING if pd.isna(value) else Cell(f"{value:,g}", float(value)) for value in (n, x))
        head = [Cell(str(dataset)), size, Cell(str(protocol)), Cell(str(method) or "the data")]
        table.append([*head, *([swept] if sweep else []), *(found.get(name, MISSING) for name in metrics)])
    columns = ["data set", "rows", "protocol", "method", *([sweep] if sweep else []), *map(label, metrics)]
    return Table(f"Every metric: {MEANS}", columns, table, folded)


def growth(fits: pd.DataFrame, name: str) -> list[Table]:
    """The exponents of the rows in the time of every method."""
    columns = {"slope": "exponent", "low": "95 % from", "high": "95 % to"}
    rows = [
        [Cell(fit["method"]), Cell(fit["protocol"]), *(Cell(f"{fit[key]:.2f}", fit[key]) for key in columns)]
        for fit in fits.to_dict("records")
    ]
    caption = f"Time as a power of the rows{f', {name}' if name else ''}"
    return [Table(caption, ["method", "protocol", *columns.values()], rows, folded=True)] if rows else []


def failures(failed: pd.DataFrame) -> Table:
    """The runs that failed, with their reasons."""
    columns = [{"part": "section", "dataset": "data set"}.get(name, name) for name in failed]
    rows = [[_cell(each) for each in row] for row in failed.itertuples(index=False)]
    return Table("Runs and the reasons why they failed", columns, rows)


def goals(path: Path) -> Table:
    """The goals that a study wrote, and whether each is reached.

    Raises
    ------
    InputError
        If the file has another format.
    """
    try:
        frame = pd.read_csv(path, keep_default_na=False)[list(GOALS)]
    except (ValueError, KeyError):
        raise InputError(f"{path} is no table of goals ({', '.join(GOALS)}); run the study again.") from None
    rows = [[_cell(each) for each in row] for row in frame.itertuples(index=False)]
    return Table("Goals and whether they are reached", list(GOALS), rows)


def _cell(value: Any) -> Cell:
    """A cell of any value."""
    return Cell(amount("", value), value) if isinstance(value, int | float) else Cell(str(value))

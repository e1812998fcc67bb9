"""Tables of the page, as frames of text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchmarks.report.summary import direction, is_share, slopes
from mmcnb import InputError

GOALS = ["goal", "figure", "bound", "unit", "verdict"]
MISSING = "\u2013"
MEANS = "mean ± standard deviation (number of seeds)"
NUMBER = rf"{MISSING}|-?\d[\d.,]*(e[+-]\d+)?(\s.*)?"


class Table(NamedTuple):
    """A table of the page.

    Parameters
    ----------
    caption : str
        Subject of the table.
    texts : DataFrame
        Columns and cells; the first column names the row.
    folded : bool, default=False
        Whether the table is folded until the reader opens it.
    best : DataFrame or None, default=None
        For each cell except the first of a row, whether it is the best of its row and
        protocol.
    """

    caption: str
    texts: pd.DataFrame
    folded: bool = False
    best: pd.DataFrame | None = None

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has numbers, by which it is sorted."""
        return [
            bool(self.texts[name].str.fullmatch(NUMBER).all()) for name in self.texts
        ]


def label(metric: str) -> str:
    """Return the readable name of a metric.

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
    """Return a figure as text, with errors and accuracies in per cent.

    Examples
    --------
    >>> from benchmarks.report.tables import amount
    >>> amount("balanced_error", 0.0281), amount("seconds", 12345.678)
    ('2.81 %', '12,346')
    """
    if is_share(metric):
        return f"{100 * value:.2f} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def cell(metric: str, mean: float, sd: float, count: float) -> str:
    """Return mean ± standard deviation (number of seeds); published figures have only the mean."""
    text = amount(metric, mean)
    if pd.notna(sd):
        text = f"{text.removesuffix(' %')} ± {amount(metric, sd)}"
    return f"{text} ({count:.0f})" if pd.notna(count) else text


def _cells(rows: pd.DataFrame) -> list[str]:
    return [
        cell(*row)
        for row in rows[["metric", "mean", "sd", "count"]].itertuples(index=False)
    ]


def comparison(rows: pd.DataFrame, metric: str) -> Table:
    """Return one metric, with a row for each data set and a column for each method and protocol."""
    rows = rows[rows["metric"] == metric]
    scores = direction(metric) * rows["mean"]
    groups = scores.groupby([rows["name"], rows["protocol"]])
    best = (
        (scores == groups.transform("max"))
        & (groups.transform("size") > 1)
        & (direction(metric) != 0)
    )
    rows = rows.assign(text=_cells(rows), best=best)
    wide = rows.pivot(
        index="name",
        columns=["order", "rank", "method", "protocol"],
        values=["text", "best"],
    )
    wide = wide.loc[rows["name"].unique()]
    texts = wide["text"].sort_index(axis=1).fillna(MISSING)
    best = wide["best"][texts.columns].eq(True)
    texts.columns = [", ".join(filter(None, key[2:])) for key in texts]
    texts.insert(0, "data set", texts.index)
    return Table(f"{label(metric)}: {MEANS}", texts, best=best)


def everything(rows: pd.DataFrame, sweep: str, folded: bool) -> Table:
    """Return every metric, with a row for each data set, protocol, method and value of the swept parameter."""
    keys = {
        "dataset": "data set",
        "n": "rows",
        "protocol": "protocol",
        "method": "method",
    }
    keys |= {"x": sweep} if sweep else {}
    rows = rows.assign(text=_cells(rows), method=rows["method"].replace("", "the data"))
    for name, form in (("n", "{:,.0f}"), ("x", "{:,.10g}")):
        rows[name] = [
            MISSING if pd.isna(value) else form.format(value) for value in rows[name]
        ]
    wide = rows.pivot(index=list(keys), columns="metric", values="text").fillna(MISSING)
    wide = wide.loc[
        pd.MultiIndex.from_frame(rows[list(keys)]).unique(), rows["metric"].unique()
    ]
    texts = wide.rename(columns=label).reset_index().rename(columns=keys)
    return Table(f"Every metric: {MEANS}", texts, folded)


def growth(rows: pd.DataFrame, name: str, growth_from: Mapping[str, int]) -> Table:
    """Return the exponent of the number of rows in the time of every method, where its time grows."""
    fits = slopes(rows[rows["metric"] == "seconds"], growth_from)
    columns = {"slope": "exponent", "low": "95 % from", "high": "95 % to"}
    texts = fits.assign(
        **{column: fits[column].map("{:.2f}".format) for column in columns}
    )
    caption = f"Time as a power of the rows{f', {name}' if name else ''}"
    if growth_from:
        caption += "; methods that use a sample are listed only for sizes at which other steps take most of the time"
    return Table(
        caption,
        texts[["method", "protocol", *columns]].rename(columns=columns),
        folded=True,
    )


def failures(failed: pd.DataFrame) -> Table:
    """Return the failed runs, with their reasons."""
    names = {"part": "section", "dataset": "data set"}
    return Table(
        "Runs and the reasons why they failed", failed.astype(str).rename(columns=names)
    )


def goals(path: Path) -> Table:
    """Return the goals of a study, and whether each is reached.

    Raises
    ------
    InputError
        If the file has another format.
    """
    try:
        frame = pd.read_csv(path)[[*GOALS]]
    except (ValueError, KeyError):
        raise InputError(
            f"{path} is not a table of goals ({', '.join(GOALS)}); run the study again."
        ) from None
    figures = [
        MISSING if pd.isna(value) else amount("", value) for value in frame["figure"]
    ]
    texts = frame.fillna({"unit": ""}).assign(figure=figures)
    return Table("Goals and whether they are reached", texts.astype(str))

"""The figures that the papers published, in the units and under the names of the studies.

Each paper has a CSV file, with a column for the table or figure from which a number is
taken. Rates are fractions (2.81 % is 0.0281). ``notes.csv`` has the remarks that a
reader of a table needs. ``sources.csv`` names the study that measures each table or
curve, and ``reasons.csv`` says why a figure of a table has no run. `coverage` counts
the figures for which we have a run.
"""

from functools import cache
from pathlib import Path

import pandas as pd

__all__ = [
    "EVO",
    "MKC",
    "RLS",
    "SKMMC",
    "THESIS",
    "figure",
    "published",
    "read_csv",
    "table_figures",
]

SKMMC = "SKMMC"
MKC = "MKC"
THESIS = "MKC thesis"
EVO = "EvoMMC"
RLS = "UMC-RLS"
PAPERS = ("skmmc", "evommc", "umc_rls", "mkc", "mkc_thesis")
COLUMNS = ("paper", "table", "dataset", "method", "metric", "value", "sd", "note")


def published() -> pd.DataFrame:
    """Return every figure of the tables, and the figures of curves that the texts state.

    Returns
    -------
    DataFrame
        One row per number, with columns paper ("SKMMC", "EvoMMC", "UMC-RLS", "MKC",
        "MKC thesis"), table, dataset, method ("" for a fact of the data), metric,
        value, sd (NaN if none is printed), note.

    Examples
    --------
    >>> from benchmarks.published import published
    >>> frame = published()
    >>> rows = frame[(frame["table"] == "Tab. V") & (frame["dataset"] == "mnist-1v7")]
    >>> dict(zip(rows["method"], rows["value"]))
    {'k-means': 0.0423, 'CPMMC': 0.0285, 'LG-MMC': 0.039, 'SKMMC': 0.0281}
    """
    return _frame().copy()


def figure(
    paper: str, dataset: str, method: str, metric: str, table: str | None = None
) -> float:
    """Return a figure; NaN if none was published.

    Parameters
    ----------
    paper, dataset, method, metric : str
        As in `published`.
    table : str or None, default=None
        The table, if several tables have the figure; None for the first table.

    Returns
    -------
    float
        The figure, in the unit of the studies.

    Examples
    --------
    >>> from benchmarks.published import RLS, figure
    >>> figure(RLS, "iris", "UMC-RLS", "ari")
    0.96
    >>> figure(RLS, "optdigits", "UMC-RLS", "ari")
    nan
    """
    return _figures().get((paper, dataset, method, metric, table), float("nan"))


def table_figures() -> pd.DataFrame:
    """Return the figures of methods in tables, without facts of the data and figures of curves.

    Examples
    --------
    >>> from benchmarks.published import table_figures
    >>> len(table_figures())
    711
    """
    frame = _frame()
    return frame[
        (frame["method"] != "") & frame["table"].str.startswith("Tab")
    ].reset_index(drop=True)


@cache
def _frame() -> pd.DataFrame:
    papers = pd.concat(map(read_csv, PAPERS), ignore_index=True)
    notes = read_csv("notes")
    frame = papers.merge(notes, how="left", on=["paper", "table", "metric"])
    return frame.fillna({"method": "", "note": ""})[list(COLUMNS)]


def read_csv(name: str) -> pd.DataFrame:
    """Read a file beside this module, by its name without ".csv"."""
    path = Path(__file__).with_name(f"{name}.csv")
    return pd.read_csv(path, engine="pyarrow", encoding="utf-8")


@cache
def _figures() -> dict[tuple[str, str, str, str, str | None], float]:
    """Return values by paper, dataset, method, metric, and table; without a table, the first table counts."""
    found: dict[tuple[str, str, str, str, str | None], float] = {}
    for row in _frame().itertuples():
        for table in (row.table, None):
            found.setdefault(
                (row.paper, row.dataset, row.method, row.metric, table), row.value
            )
    return found

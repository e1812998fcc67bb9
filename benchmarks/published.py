"""The figures that the papers published, in one tidy frame: the units and names are those of the studies.

The tables stand in `benchmarks._published` as printed. Here rates are shares (2.81 % is 0.0281), as in the
frames of the studies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._published import EVO, MKC, RLS, SKMMC, TABLES, THESIS, Printed

__all__ = ["EVO", "MKC", "RLS", "SKMMC", "THESIS", "figure", "published"]

COLUMNS = ("paper", "table", "dataset", "method", "metric", "value", "sd", "note")
PER_CENT = ("balanced_error", "error", "accuracy", "imbalance", "sparsity")
NUMBER = re.compile(r"(-?[\d.]+)(?:\s*±\s*([\d.]+))?")


def published() -> pd.DataFrame:
    """Every figure of the tables, and what the texts say of the figures.

    Returns
    -------
    DataFrame
        One row a number, with columns paper ("SKMMC", "EvoMMC", "UMC-RLS", "MKC", "MKC thesis"), table,
        dataset, method ("" for a fact of the data), metric, value, sd (NaN where none is printed), note.

    Examples
    --------
    >>> from benchmarks.published import published
    >>> frame = published()
    >>> rows = frame[(frame["table"] == "Tab. V") & (frame["dataset"] == "mnist-1v7")]
    >>> dict(zip(rows["method"], rows["value"]))
    {'k-means': 0.0423, 'CPMMC': 0.0285, 'LG-MMC': 0.039, 'SKMMC': 0.0281}
    """
    return _frame().copy()


def figure(paper: str, dataset: str, method: str, metric: str, table: str | None = None) -> float:
    """One figure; NaN where none was published.

    Parameters
    ----------
    paper, dataset, method, metric : str
        As in `published`.
    table : str or None, default=None
        The table, where several have the figure; None takes the first.

    Returns
    -------
    float
        In the unit of the studies.

    Examples
    --------
    >>> from benchmarks.published import RLS, figure
    >>> figure(RLS, "iris", "UMC-RLS", "ari")
    0.96
    >>> figure(RLS, "optdigits", "UMC-RLS", "ari")
    nan
    """
    return _figures().get((paper, dataset, method, metric, table), float("nan"))


@cache
def _frame() -> pd.DataFrame:
    return pd.DataFrame([row for table in TABLES for row in _rows(table)], columns=list(COLUMNS))


@cache
def _figures() -> dict[tuple[str, str, str, str, str | None], float]:
    """Values by paper, dataset, method, metric, and table or None."""
    found: dict[tuple[str, str, str, str, str | None], float] = {}
    for row in _frame().itertuples():
        for table in (row.table, None):
            found.setdefault((row.paper, row.dataset, row.method, row.metric, table), row.value)
    return found


def _rows(printed: Printed) -> Iterator[dict[str, Any]]:
    """The numbers of a table, row by row."""
    head, *lines = printed.text.strip("\n").splitlines()
    columns = [cell.strip() for cell in head.split("|")[1:]]
    for line in lines:
        dataset, *cells = (cell.strip() for cell in line.split("|"))
        for column, cell in zip(columns, cells, strict=True):
            for metric, value, sd in _numbers(
                cell, printed.metrics.split(" ") if printed.metrics else [column]
            ):
                yield {
                    "paper": printed.paper,
                    "table": printed.table,
                    "dataset": dataset,
                    "method": column if printed.metrics else "",
                    "metric": metric,
                    "value": value,
                    "sd": sd,
                    "note": printed.note,
                }


def _numbers(cell: str, metrics: list[str]) -> Iterator[tuple[str, float, float]]:
    """Metric, value and deviation of each number; a cell may have fewer of them than there are metrics."""
    numbers = [] if cell == "-" else NUMBER.findall(cell)
    for metric, (value, sd) in zip(metrics, numbers, strict=False):
        unit = 100 if metric in PER_CENT else 1
        yield metric, _number(value, unit), _number(sd, unit) if sd else np.nan


def _number(text: str, unit: int) -> float:
    """The number that stands there, without the noise of a division by the unit."""
    return round(float(text) / unit, 6)

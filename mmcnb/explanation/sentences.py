"""One plain sentence about each cluster."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mmcnb.errors import shown


def name_of(value: Any, most: int = 40) -> str:
    """A name on one line: control characters are escaped, and the end of a long one is a mark.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import name_of
    >>> name_of("income"), name_of(3), name_of("a\\nb")
    ('income', 'column 3', 'a\\\\nb')
    """
    text = shown(value)[1:-1] if isinstance(value, str) else f"column {value}"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def percent(share: float) -> str:
    """A share in words.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import percent
    >>> percent(0.842), percent(0.004)
    ('84 %', '0.4 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else f"{100 * share:.1g} %"


def two_numbers(one: float, other: float) -> tuple[str, str]:
    """Two numbers with three digits, or as many as tell them apart.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import two_numbers
    >>> two_numbers(160234.0, 41000.0), two_numbers(1000.1, 1000.2)
    (('160,000', '41,000'), ('1,000.1', '1,000.2'))
    """
    largest, gap = max(abs(one), abs(other)), abs(one - other)
    digits = min(12, max(3, 1 + int(np.ceil(np.log10(largest / gap))))) if gap else 3
    first, second = (f"{float(f'{value:.{digits}g}'):,.12g}" for value in (one, other))
    return first, second


def two_dates(one: float, other: float) -> tuple[str, str]:
    """Two dates out of seconds since 1970, with the time of day if they are less than a day apart.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import two_dates
    >>> two_dates(0.0, 86400.0)
    ('1970-01-01', '1970-01-02')
    """
    unit = "D" if abs(one - other) >= 86400 else "s"
    first, second = (str(np.datetime64(round(value), "s").astype(f"M8[{unit}]")) for value in (one, other))
    return first, second


def phrase(row: Any) -> str:
    """How a column is in a cluster, beside all others; ``row`` is of the table of columns."""
    is_high, name = row.auc > 0.5, name_of(row.column)
    if row.kind in ("flag", "text"):
        word = "mostly" if row.kind == "text" and row.mean > 0.5 else "often"
        word = word if is_high else "rarely"
        value = f" {name_of(row.category or 'missing')}" if row.kind == "text" else ""
        return f"{name} {word}{value} ({percent(row.mean)}, others {percent(row.others_mean)})"
    is_date, measure, values = row.kind == "date", "median", (row.median, row.others_median)
    if row.near > abs(row.auc - 0.5) + 0.65:  # other rows are on both sides
        unit = 86400 if is_date else 1
        own, other = two_numbers(row.spread / unit, row.others_spread / unit)
        middle, *_ = (two_dates if is_date else two_numbers)(*values)
        return f"{name} near {middle} (half within {own}{' days' * is_date}, others within {other})"
    if row.median == row.others_median:  # as where most values are 0
        measure, values = "mean", (row.mean, row.others_mean)
    one, other = (two_dates if is_date else two_numbers)(*values)
    low, high = ("early", "late") if is_date else ("low", "high")
    return f"{name} {high if is_high else low} ({measure} {one}, others {other})"


def phrases(rows: Sequence[Any], most: int = 3, least: float = 0.15) -> str:
    """Phrases for the columns that matter, one for each column of a table.

    They have half of the strength of the first one, as the mark of one cluster makes that column low in
    all the others.
    """
    found: dict[Any, str] = {}
    for row in rows:
        is_told = row.column in found or len(found) == most
        if not is_told and row.strength >= max(least, rows[0].strength / 2):
            found[row.column] = phrase(row)
    return ", ".join(found.values()) or "no single column sets it apart"


def sentences(
    clusters: Any, columns: Sequence[Sequence[Any]], words: Any, most_words: int = 5
) -> Iterator[str]:
    """One sentence for each row of the table of clusters, by the columns of each cluster and the words."""
    found = iter(columns)
    for cluster, share in zip(clusters["cluster"], clusters["share"], strict=True):
        name = f"Cluster {name_of(cluster) if isinstance(cluster, str) else cluster}"
        if cluster == -1:
            name, said = "Noise", "rows of no cluster"
        elif not columns:
            said = "there is no other cluster to set it apart from"
        elif words is None:
            said = phrases(next(found))
        else:
            said = ", ".join(map(name_of, words["word"][words["cluster"] == cluster][:most_words]))
            said = f"much of {said}" if said else "all of its rows are empty"
        yield f"{name} ({percent(share)}): {said}."

"""One plain sentence about each cluster."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mmcnb.errors import shown
from mmcnb.explanation.summary import strength_of


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
    """A share in words, with as many digits as tell it from nothing and from all, up to three.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import percent
    >>> percent(0.842), percent(0.004), percent(0.9996), percent(1.0)
    ('84 %', '0.4 %', '99.96 %', '100 %')
    """
    rest = 100 * min(share, 1 - share)
    digits = next((digits for digits in range(4) if round(rest, digits)), 0)
    return f"{100 * share:.{digits}f} %"


def two_numbers(one: float, other: float) -> tuple[str, str]:
    """Two numbers with three digits, four up to 10,000 as in years, or as many as tell them apart.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import two_numbers
    >>> two_numbers(160234.0, 41000.0), two_numbers(1000.1, 1000.2)
    (('160,000', '41,000'), ('1000.1', '1000.2'))
    """
    largest = max(abs(one), abs(other))
    gap = abs(one - other)
    least = 3 + (1000 <= largest < 10_000)
    apart = np.ceil(np.log10(largest / gap)) if gap else 0
    rounded = (
        float(f"{value:.{min(12, max(least, int(apart) + 1))}g}")
        for value in (one, other)
    )
    first, second = (
        f"{value:,.12g}" if abs(value) >= 10_000 else f"{value:.12g}"
        for value in rounded
    )
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
    dates = (
        np.datetime64(round(value), "s").astype(f"M8[{unit}]") for value in (one, other)
    )
    first, second = (str(date).replace("T", " ") for date in dates)
    return first, second


def phrase(row: Any) -> str:
    """How a column is in a cluster, beside all others; ``row`` is of the table of columns."""
    name = name_of(row.column)
    if row.kind in ("flag", "text"):
        often = "mostly" if row.kind == "text" and row.mean > 0.5 else "often"
        word = often if row.auc > 0.5 else "rarely"
        value = f" {name_of(row.category or 'missing')}" if row.kind == "text" else ""
        return f"{name} {word}{value} ({percent(row.mean)}, others {percent(row.others_mean)})"
    is_date = row.kind == "date"
    measure = "median"
    values = (row.median, row.others_median)
    is_between = row.near > abs(row.auc - 0.5) + 0.65  # other rows are on both sides
    if is_between and row.spread < row.others_spread:
        unit = 86400 if is_date else 1
        own, other = two_numbers(row.spread / unit, row.others_spread / unit)
        middle, _ = (two_dates if is_date else two_numbers)(
            row.median, row.median + row.spread
        )
        return f"{name} near {middle} (half within {own}{' days' * is_date}, others within {other})"
    if row.median == row.others_median:  # as where most values are 0
        measure = "mean"
        values = (row.mean, row.others_mean)
    one, other = (two_dates if is_date else two_numbers)(*values)
    low, high = ("early", "late") if is_date else ("low", "high")
    return f"{name} {high if values[0] > values[1] else low} ({measure} {one}, others {other})"


def phrases(columns: Any, most: int = 3, least: float = 0.15) -> str:
    """Phrases for the columns of a cluster that matter, one for each column of a table.

    They have half of the strength of the first one, as the mark of one cluster makes
    that column low in all the others. Of the categories of a text, one that is often so
    is told before one that is rarely so.
    """
    strength = strength_of(columns)
    told = columns[strength >= max(least, strength.max() / 2)]
    often_first = np.argsort(told["auc"] < 0.5, kind="stable")
    by_column = told.iloc[often_first].drop_duplicates("column").set_index("column")
    rows = by_column.loc[told["column"].unique()[:most]].reset_index().itertuples()
    return ", ".join(map(phrase, rows)) or "no single column sets it apart"


def sentences(
    clusters: Any, columns: Any, words: Any, most_words: int = 5
) -> Iterator[str]:
    """One sentence for each row of the table of clusters, by the columns or the words of each cluster.

    Words are of texts: columns say more if most clusters have one that sets them
    clearly apart.
    """
    first = strength_of(columns).groupby(columns["cluster"]).first()
    is_text = words is not None and not first.median() > 0.35
    for cluster, share in zip(clusters["cluster"], clusters["share"], strict=True):
        name = f"Cluster {name_of(cluster) if isinstance(cluster, str) else cluster}"
        if cluster == -1:
            name = "Noise"
            said = "rows of no cluster"
        elif columns.empty:
            said = "there is no other cluster to set it apart from"
        elif is_text:
            said = ", ".join(
                map(name_of, words["word"][words["cluster"] == cluster][:most_words])
            )
            said = f"marked by {said}" if said else "all of its rows are empty"
        else:
            said = phrases(columns[columns["cluster"] == cluster])
        yield f"{name} ({percent(share)}): {said}."

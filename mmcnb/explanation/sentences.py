"""Describe each cluster in one sentence."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from mmcnb.errors import shown
from mmcnb.explanation.named_columns import (
    added_columns,
    columns_with_gaps,
    strong_columns,
)
from mmcnb.explanation.summary import LEAST_STRENGTH, ColumnFigures, strength_of

Describe = Callable[[ColumnFigures], str]
DAY = 86_400  # seconds
# Maps a coordinate on a 24-hour clock, and whether it is high, to the time of day at
# which the coordinate is highest or lowest, and the name of the coordinate.
SIDES = {
    ("sin", True): ("6:00", "sine"),
    ("sin", False): ("18:00", "sine"),
    ("cos", True): ("0:00", "cosine"),
    ("cos", False): ("12:00", "cosine"),
}


def short_name(value: object, most: int = 40) -> str:
    """Return the name of a column or category as one line, truncated if it is long.

    The line has at most ``most`` characters, and control characters are escaped. If
    ``value`` is a number, it is the index of a column without a name.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import short_name
    >>> short_name("income"), short_name(3), short_name("a\\nb")
    ('income', 'column 3', 'a\\\\nb')
    """
    text = shown(value)[1:-1] if isinstance(value, str) else f"column {value}"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def percent(share: float) -> str:
    """Format a share as a percentage, without rounding it to 0 or 100.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import percent
    >>> percent(0.842), percent(0.004), percent(0.9996), percent(1.0)
    ('84 %', '0.4 %', '99.96 %', '100 %')
    """
    rest = 100 * min(share, 1 - share)
    digits = next((digits for digits in range(4) if round(rest, digits)), 0)
    return f"{100 * share:.{digits}f} %"


def two_numbers(first: float, second: float) -> tuple[str, str]:
    """Format two numbers with three significant digits, or more to tell them apart.

    Numbers from 1,000 to 10,000 have at least four digits, so that years are complete.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import two_numbers
    >>> two_numbers(160234.0, 41000.0), two_numbers(1000.1, 1000.2)
    (('160,000', '41,000'), ('1000.1', '1000.2'))
    """
    largest = max(abs(first), abs(second))
    gap = abs(first - second)
    digits = 4 if 1000 <= largest < 10_000 else 3
    if gap:
        digits = max(digits, int(np.ceil(np.log10(largest / gap))) + 1)
    digits = min(12, digits)
    return grouped_digits(first, digits), grouped_digits(second, digits)


def grouped_digits(value: float, digits: int) -> str:
    """Format a number with ``digits`` significant digits.

    Numbers of 10,000 or more have thousands separators.
    """
    value = float(f"{value:.{digits}g}")
    return f"{value:,.12g}" if abs(value) >= 10_000 else f"{value:.12g}"


def two_dates(first: float, second: float) -> tuple[str, str]:
    """Format two dates, given as seconds since 1970.

    Times are included if the dates are less than a day apart.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import two_dates
    >>> two_dates(0.0, 86400.0)
    ('1970-01-01', '1970-01-02')
    """
    unit = "D" if abs(first - second) >= DAY else "s"
    return _date(first, unit), _date(second, unit)


def _date(seconds: float, unit: str) -> str:
    date = np.datetime64(round(seconds), "s").astype(f"M8[{unit}]")
    return str(date).replace("T", " ")


def phrase(row: ColumnFigures) -> str:
    """Describe how a column of a cluster differs from other rows.

    ``row`` is a row of `column_table`.
    """
    name = short_name(row.column)
    if row.kind in ("flag", "text"):
        return f"{name} {_frequency(row)}"
    if row.kind == "order":
        return f"{name} is {_answers(row)}"
    if row.kind == "time" and row.category:
        return f"{name} {_side_of_clock(row)}"
    # If so, values of the other rows are on both sides of the values of the cluster.
    is_between = row.near > abs(row.auc - 0.5) + 0.65
    if is_between and row.spread < row.others_spread:
        return f"{name} {_range(row)}"
    return f"{name} {_level(row)}"


def _frequency(row: ColumnFigures) -> str:
    """Describe how often a flag is set or a category occurs in a cluster."""
    word = "often" if row.auc > 0.5 else "rarely"
    if row.kind == "text":
        if row.auc > 0.5 and row.mean > 0.5:
            word = "mostly"
        word = f"{word} {short_name(row.category or 'missing')}"
    return f"{word} ({percent(row.mean)}, others {percent(row.others_mean)})"


def _side_of_clock(row: ColumnFigures) -> str:
    """Describe on which side of a 24-hour clock the times of a cluster are."""
    side, function = SIDES[row.category, row.median > row.others_median]
    value, others_value = two_numbers(row.median, row.others_median)
    return f"towards {side} ({function} {value}, others {others_value})"


def _answers(row: ColumnFigures) -> str:
    """Describe the levels of an ordered column that are frequent in a cluster."""
    answers = (
        f"{row.category}: {percent(row.share)}, others {percent(row.others_share)}"
    )
    return f"{row.position} ({answers})"


def _range(row: ColumnFigures) -> str:
    """Describe a column by its median in a cluster and the median distance from it.

    If this distance is 0, the shares of values equal to the median are given instead.
    """
    end = row.median + (row.spread or row.others_spread)
    if row.kind == "date":
        middle, _ = two_dates(row.median, end)
        spread, others = two_numbers(row.spread / DAY, row.others_spread / DAY)
        spread = f"{spread} days"
    else:
        middle, _ = two_numbers(row.median, end)
        spread, others = two_numbers(row.spread, row.others_spread)
    if row.spread == 0:  # at least half of the values are equal to the median
        shares = f"{percent(row.share)}, others {percent(row.others_share)}"
        return f"mostly {middle} ({shares})"
    return f"near {middle} (half within {spread}, others within {others})"


def _level(row: ColumnFigures) -> str:
    """Describe whether a column is higher or lower in a cluster than in other rows."""
    measure = "median"
    value = row.median
    others_value = row.others_median
    if value == others_value:  # for example if most values are 0
        measure = "mean"
        value = row.mean
        others_value = row.others_mean
    is_higher = value > others_value
    if row.kind == "date":
        level = "late" if is_higher else "early"
        text, others_text = two_dates(value, others_value)
    else:
        level = "high" if is_higher else "low"
        text, others_text = two_numbers(value, others_value)
    return f"{level} ({measure} {text}, others {others_text})"


def phrases(
    columns: pd.DataFrame,
    most: int = 3,
    least: float = LEAST_STRENGTH,
    describe: Describe = phrase,
) -> str:
    """Return phrases for the columns of a cluster that `strong_columns` returns.

    The function ``describe`` returns the phrase for a row of ``columns``.
    """
    rows = strong_columns(columns, most, least).itertuples()
    return ", ".join(map(describe, rows))


def gap_phrases(columns: pd.DataFrame) -> str:
    """Return phrases for the columns that `columns_with_gaps` returns.

    Examples
    --------
    >>> import pandas as pd
    >>> from mmcnb.explanation.sentences import gap_phrases
    >>> shares = {"column": ["age", "sex"], "gaps": [0.34, 0.0], "others_gaps": 0.02}
    >>> gap_phrases(pd.DataFrame(shares))
    'age missing in 34 % (others 2 %)'
    """
    rows = columns_with_gaps(columns).itertuples()
    return ", ".join(
        f"{short_name(row.column)} missing in {percent(row.gaps)} "
        f"(others {percent(row.others_gaps)})"
        for row in rows
    )


def cluster_phrases(
    columns: pd.DataFrame,
    describe: Describe = phrase,
    added: Sequence[pd.DataFrame] = (),
) -> str:
    """Return phrases about the values and the missing values of a cluster.

    ``added`` contains rows of ``columns`` that are described in any case.
    """
    parts = [phrases(columns, describe=describe)]
    parts += [", ".join(map(describe, rows.itertuples())) for rows in added]
    parts.append(gap_phrases(columns))
    return ", ".join(filter(None, parts))


def marking_words(words: pd.Series, most: int = 5) -> str:
    """Return a phrase with the most characteristic words of a cluster."""
    if words.empty:
        return "all of its rows are empty"
    return f"marked by {', '.join(map(short_name, words[:most]))}"


def cluster_title(cluster: object) -> str:
    """Return the title of a cluster, which contains its number or name.

    Examples
    --------
    >>> from mmcnb.explanation.sentences import cluster_title
    >>> cluster_title(3), cluster_title("late payers"), cluster_title(-1)
    ('Cluster 3', 'Cluster late payers', 'Noise')
    """
    if cluster == -1:
        return "Noise"
    name = short_name(cluster) if isinstance(cluster, str) else cluster
    return f"Cluster {name}"


def sentences(
    clusters: pd.DataFrame,
    columns: pd.DataFrame,
    words: pd.DataFrame | None,
    describe: Describe = phrase,
) -> Iterator[str]:
    """Yield a sentence about the columns or the words of each cluster.

    Columns are described instead of words if the strongest columns of the clusters have
    a median strength above 0.35.

    Parameters
    ----------
    clusters : DataFrame
        Table with the columns "cluster" and "share".
    columns : DataFrame
        Result of `column_table`.
    words : DataFrame or None
        Result of `word_table`.
    describe : callable, default=phrase
        Function that returns the phrase for a row of ``columns``.
    """
    first = strength_of(columns).groupby(columns["cluster"]).first()
    columns_tell = first.median() > 0.35
    added = added_columns(columns)
    for cluster, share in zip(clusters["cluster"], clusters["share"], strict=True):
        title = cluster_title(cluster)
        if cluster == -1:
            statement = "rows of no cluster"
        elif columns.empty:
            statement = "there is no other cluster to set it apart from"
        elif words is not None and not columns_tell:
            statement = marking_words(words["word"][words["cluster"] == cluster])
        else:
            of_cluster = columns[columns["cluster"] == cluster]
            statement = cluster_phrases(of_cluster, describe, added.get(cluster, ()))
            statement = statement or "no single column sets it apart"
        yield f"{title} ({percent(share)}): {statement}."

"""Decide whether a line is a header or a row like the lines below it."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from mmcnb.tables.csv_kinds import (
    kind_of_cell,
    kinds_of_columns,
    looks_like_unit,
    number_of_cell,
)

FIRST_YEAR = 1500
LAST_YEAR = 2200
MANY_TEXTS = 10
LONG_SERIES = 5  # this many numbers are rarely equally spaced by chance
Cells = Sequence[str]


class Verdict(Enum):
    """Whether a line is a header, is a row, or could be either."""

    HEADER = "header"
    ROW = "row"
    DOUBTFUL = "doubtful"


def is_header(top: Cells, rows: Sequence[Cells], gaps: Collection[str]) -> Verdict:
    """Decide whether a line names the columns of the rows below it.

    A text above numbers or dates is a name. A number above numbers is a value, unless
    it could be a year or part of an equally spaced series. A text that also occurs
    below the line is a value.

    Parameters
    ----------
    top : sequence of str
        Cells of the line.
    rows : sequence of sequence of str
        Cells of the lines below it.
    gaps : collection of str
        Markers of missing values.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> from mmcnb.tables.csv_header import is_header
    >>> rows = [["oak", "2.5"], ["fir", "3"], ["oak", "1"]]
    >>> is_header(["kind", "height"], rows, {""}).value
    'header'
    >>> is_header(["oak", "4.25"], rows, {""}).value
    'row'
    """
    if not rows:
        return _without_rows(top, gaps)
    if not top[0].strip() and _count_from_0(_texts(rows, 0)):
        return Verdict.HEADER  # pandas writes an unnamed index like this
    if not any(map(str.strip, top)):
        return Verdict.ROW
    votes = _votes(top, rows, gaps)
    if not votes.numbers:
        return _without_numbers(votes)
    if votes.n_values:
        return Verdict.DOUBTFUL if votes.n_names else Verdict.ROW
    if votes.n_names or votes.n_texts:
        return _beside_texts(top, rows, votes)
    return _of_numbers(top, rows, votes.numbers)


class _Votes(NamedTuple):
    """Evidence from the cells of a line on whether the line is a header or a row.

    Attributes
    ----------
    numbers : list of int
        Indices of the cells that are numbers above a column of numbers or quantities.
    n_values : int
        Number of dates above dates, flags above flags, and quantities above quantities.
    n_names : int
        Number of texts above numbers, dates or flags, plus dates above numbers.
    n_texts : int
        Number of cells above text columns.
    n_again : int
        Number of cells in text columns that occur again below, either exactly or with
        different digits.
    n_new : int
        Number of cells in text columns that do not occur again, although at least half
        of the texts below are repetitions.
    n_unlike : int
        Number of cells in text columns that do not occur again, although the texts
        below are at least `MANY_TEXTS` and mostly repetitions, or differ only in their
        digits.
    """

    numbers: list[int]
    n_values: int
    n_names: int
    n_texts: int
    n_again: int
    n_new: int
    n_unlike: int


def _votes(top: Cells, rows: Sequence[Cells], gaps: Collection[str]) -> _Votes:
    numbers = []
    counts: Counter[str] = Counter()
    kinds = kinds_of_columns(rows, len(top), gaps)
    for position, (cell, below) in enumerate(zip(top, kinds, strict=True)):
        kind = kind_of_cell(cell, gaps)
        if kind == "gap" or below is None:
            continue
        if below == "text":
            counts.update(_votes_of_text(cell.strip(), _texts(rows, position)))
        elif kind == "number" and below in ("number", "quantity"):
            numbers.append(position)
        elif kind == below:
            counts["values"] += 1
        elif kind == "text" or (kind == "date" and below == "number"):
            counts["names"] += 1
    return _Votes(
        numbers=numbers,
        n_values=counts["values"],
        n_names=counts["names"],
        n_texts=counts["texts"],
        n_again=counts["again"],
        n_new=counts["new"],
        n_unlike=counts["unlike"],
    )


def _votes_of_text(cell: str, texts: list[str]) -> dict[str, int]:
    """Return evidence on whether a cell above a column of texts is a column name."""
    patterns = {re.sub(r"\d+", "0", text) for text in texts} - {""}
    are_numbered = len(texts) > 2 and len(patterns) == 1 and "0" in min(patterns)
    is_again = cell in texts or (are_numbered and re.sub(r"\d+", "0", cell) in patterns)
    is_new = 2 * len(set(texts)) <= len(texts) and not is_again
    is_unlike = (is_new and len(texts) >= MANY_TEXTS) or (are_numbered and not is_again)
    return {"texts": 1, "again": is_again, "new": is_new, "unlike": is_unlike}


def _texts(rows: Sequence[Cells], position: int) -> list[str]:
    return [row[position].strip() for row in rows if position < len(row)]


def _count_from_0(texts: list[str]) -> bool:
    return len(texts) > 1 and texts == list(map(str, range(len(texts))))


def _without_rows(top: Cells, gaps: Collection[str]) -> Verdict:
    """Decide whether the only line of a table is a header or a row."""
    kinds = {kind_of_cell(cell, gaps) for cell in top}
    is_name = "text" in kinds and kinds <= {"text", "gap"}
    return Verdict.HEADER if is_name else Verdict.ROW


def _without_numbers(votes: _Votes) -> Verdict:
    """Decide whether a line is a header if no cell is a number above numbers."""
    is_name = votes.n_names > 0 or (votes.n_new > 0 and not votes.n_values)
    is_value = votes.n_values > 0 or (votes.n_again > 0 and not votes.n_names)
    if is_name and is_value:
        return Verdict.DOUBTFUL
    # A line of texts is a header unless one of them occurs again below.
    return Verdict.ROW if is_value else Verdict.HEADER


def _beside_texts(top: Cells, rows: Sequence[Cells], votes: _Votes) -> Verdict:
    """Decide whether a line is a header if it has both texts and numbers."""
    numbers = votes.numbers
    first = [number_of_cell(top[position]) for position in numbers]
    are_series = _is_series(first) and not _are_series(rows, numbers)
    are_far = _are_far(top, rows, numbers)
    may_be_names = are_series or _are_years_above_others(top, rows, numbers)
    if votes.n_names:
        # A header in which some names are numbers is more likely than a row in which
        # most cells have the wrong kind.
        are_names = votes.n_names > 1 and votes.n_names >= 2 * len(numbers)
        return Verdict.HEADER if may_be_names or are_names else Verdict.DOUBTFUL
    if may_be_names and not votes.n_again:
        is_long = are_series and len(numbers) >= LONG_SERIES
        return Verdict.HEADER if are_far or is_long else Verdict.DOUBTFUL
    is_unlike = votes.n_unlike > 0 and not votes.n_again
    if is_unlike or (are_far and len(numbers) > 1):
        return Verdict.DOUBTFUL
    return Verdict.ROW


def _of_numbers(top: Cells, rows: Sequence[Cells], numbers: list[int]) -> Verdict:
    """Decide whether a line of numbers above columns of numbers is a header or a row.

    The line is a header if its numbers are 0, 1, 2, …, which pandas uses as default
    names.
    """
    names = list(map(str, range(len(top))))
    cells = [cell.strip() for cell in top]
    if len(top) > 2 and cells in (names, ["", *names[:-1]]):
        return Verdict.HEADER
    first = [number_of_cell(top[position]) for position in numbers]
    if len(set(first)) < len(first):
        return Verdict.ROW
    are_years = _are_years_above_others(top, rows, numbers)
    is_series = _is_series(first) and (are_years or len(first) >= LONG_SERIES)
    if is_series and not _are_series(rows, numbers):
        return Verdict.DOUBTFUL
    if (are_years or len(first) > 1) and _are_far(top, rows, numbers):
        return Verdict.DOUBTFUL
    return Verdict.ROW


def _are_years_above_others(
    top: Cells, rows: Sequence[Cells], positions: list[int]
) -> bool:
    """Return whether the numbers of a line are years, but most numbers below are not.

    Any integer from 1500 to 2200 counts as a year.
    """
    if not all(_is_year(number_of_cell(top[position])) for position in positions):
        return False
    below = [_number(row, position) for row in rows for position in positions]
    n_years = sum(map(_is_year, below))
    return 2 * n_years < len(below)


def _is_year(value: float) -> bool:
    return FIRST_YEAR <= value <= LAST_YEAR and value.is_integer()


def _is_series(values: Sequence[float]) -> bool:
    """Return whether values are at least three equally spaced numbers."""
    if len(values) < 3:
        return False
    steps = np.diff(values)
    return bool(steps[0]) and np.allclose(steps, steps[0], rtol=1e-6, atol=0)


def _are_series(rows: Sequence[Cells], positions: list[int]) -> bool:
    """Return whether, in at least half of the rows, the numbers are equally spaced."""
    n_series = 0
    for row in rows:
        values = [_number(row, position) for position in positions]
        n_series += _is_series(values)
    return 2 * n_series >= len(rows)


def _are_far(top: Cells, rows: Sequence[Cells], positions: list[int]) -> bool:
    """Return whether all numbers of a line are far outside the ranges of their columns.

    A number is far if its distance from the range exceeds the width of the range.
    """
    if len(rows) < 3:
        return False
    for position in positions:
        first = number_of_cell(top[position])
        column = [_number(row, position) for row in rows]
        low = np.nanmin([np.inf, *column])
        high = np.nanmax([-np.inf, *column])
        if not max(low - first, first - high) > high - low:
            return False
    return True


def _number(row: Cells, position: int) -> float:
    return number_of_cell(row[position]) if position < len(row) else np.nan


def is_line_of_units(
    line: Cells, rows: Sequence[Cells], width: int, gaps: Collection[str]
) -> bool:
    """Return whether a line below the header contains the units of the columns.

    In columns of numbers or dates, such a line contains only texts and empty cells.
    Either all of these texts are units, or there is a text in at least two of these
    columns and in at least half of them, and no text occurs again below the line.

    Parameters
    ----------
    line : sequence of str
        Cells of the line.
    rows : sequence of sequence of str
        Cells of the lines below it.
    width : int
        Number of columns.
    gaps : collection of str
        Markers of missing values.

    Examples
    --------
    >>> from mmcnb.tables.csv_header import is_line_of_units
    >>> is_line_of_units(["kg", ""], [["1.5", "a"], ["2", "b"]], 2, {""})
    True
    """
    if not rows:
        return False
    kinds = kinds_of_columns(rows, width, gaps)
    texts = []
    n_columns = 0
    for position, (cell, below) in enumerate(zip(line, kinds, strict=False)):
        if below in (None, "text"):
            continue
        n_columns += 1
        kind = kind_of_cell(cell, gaps)
        if kind == "text" or (kind != "number" and looks_like_unit(cell)):
            texts.append((position, cell.strip()))
        elif kind != "gap":
            return False
    if not texts:
        return False
    if all(looks_like_unit(text) for _, text in texts):
        return True
    are_new = all(text not in _texts(rows, position) for position, text in texts)
    return len(texts) > 1 and 2 * len(texts) >= n_columns and are_new

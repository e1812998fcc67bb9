"""Infer the delimiter of CSV text from its first lines."""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from mmcnb.errors import InputError
from mmcnb.tables.csv_kinds import kind_of_cell, kinds_of_columns, looks_like_unit
from mmcnb.tables.csv_lines import Line, split_lines, tidy

MARKS = (",", ";", "\t", "|")
GROUPED = re.compile(r"-?\d{1,3}(,\d{3})*(\.\d+)?")
VALUES = ("number", "quantity", "date", "flag")
_ODD = 0.1  # maximum fraction of lines that may have a different number of cells


class _Division(NamedTuple):
    """A measure of how well a delimiter divides lines into cells; larger is better.

    Attributes
    ----------
    is_even : bool
        Whether at least 90 % of the lines in the second half have the most common
        number of cells. Of four lines or more, all but one suffice.
    values : float
        Fraction of the cells that are numbers, quantities, dates or flags, in those
        lines of the second half that have the most common number of cells.
    even : float
        Fraction of all lines that have the most common number of cells.
    """

    is_even: bool
    values: float
    even: float


def find_delimiter(
    text: str, usual: str, gaps: Collection[str], decimal: str, path: object
) -> str:
    """Return the delimiter that divides the lines best, as measured by `_Division`.

    Spaces are considered only if no other delimiter divides the lines evenly, and are
    selected only if they yield a column of numbers.

    Parameters
    ----------
    text : str
        The first lines.
    usual : str
        Delimiter to return if no delimiter divides the lines into cells.
    gaps : collection of str
        Markers of missing values.
    decimal : str
        Decimal mark, which is not considered as a delimiter unless some cells are
        quoted.
    path : object
        Path of the file, for messages.
    """
    if _has_whole_numbers(text):
        return next(mark for mark in MARKS if mark not in text)
    best = _Division(is_even=False, values=0.0, even=0.0)
    delimiter = usual
    for mark in (usual, *MARKS):
        if mark == decimal and '"' not in text:
            continue
        division = _divide(text, mark, gaps, path)
        if division is not None and division > best:
            best = division
            delimiter = mark
    if not best.is_even:
        spaced = tidy(text.encode(), " ").decode()
        division = _divide(spaced, " ", gaps, path)
        if division is not None and division.is_even and division.values > 0:
            delimiter = " "
    return delimiter


def _has_whole_numbers(text: str) -> bool:
    """Return whether each line below the first is a number with thousands separators.

    If all these lines have the same number of commas, the commas could also be
    delimiters. They are not if there is one comma per line, all numbers have a decimal
    point, and the first line has no comma.
    """
    lines = list(filter(str.strip, text.splitlines()))
    rows = lines[1:]
    if not rows or not all(map(GROUPED.fullmatch, rows)):
        return False
    n_commas = {row.count(",") for row in rows}
    have_decimals = all("." in row for row in rows) and "," not in lines[0]
    return len(n_commas) > 1 or (n_commas == {1} and have_decimals)


def _divide(
    text: str, mark: str, gaps: Collection[str], path: object
) -> _Division | None:
    """Return measures of how well a delimiter splits lines into cells.

    The result is None if the delimiter does not split the lines.
    """
    try:
        lines = list(split_lines(text, 1, mark, path))
    except InputError:  # a cell exceeds the size limit of the parser
        return None
    rows = [line.cells for line in last_half(lines)]
    width = most_common_width(lines)
    if width < 2:
        return None
    even_rows = [cells for cells in rows if len(cells) == width]
    n_odd = len(rows) - len(even_rows)
    kinds = kinds_of_columns(even_rows, width, gaps)
    if mark == " " and _is_one_column(even_rows, kinds):
        return None
    cells = [cell for row in even_rows for cell in row]
    n_values = 0
    for cell in cells:
        n_values += kind_of_cell(cell, gaps) in VALUES
    n_even = sum(len(line.cells) == width for line in lines)
    return _Division(
        is_even=n_odd <= _ODD * len(rows) or (n_odd == 1 and len(rows) > 3),
        values=n_values / len(cells),
        even=n_even / len(lines),
    )


def _is_one_column(rows: list[list[str]], kinds: list[str | None]) -> bool:
    """Return whether rows that were split at spaces have only one column.

    This is the case if spaces only separate words, or numbers from their units.
    """
    if "number" not in kinds:
        return True
    if len(kinds) > 2:
        return False
    texts = {cells[kinds.index("text")] for cells in rows if "text" in kinds}
    is_always_one = len(texts) == 1 and len(rows) > 1
    return is_always_one or (bool(texts) and all(map(looks_like_unit, texts)))


def last_half(lines: list[Line]) -> list[Line]:
    """Return the second half of the lines, which rarely has titles, names or units."""
    return lines[len(lines) // 2 :]


def most_common_width(lines: list[Line]) -> int:
    """Return the most common number of cells per line in the second half of the lines.

    Ties are broken in favour of the number that is more common among all lines, and
    then in favour of more cells.
    """
    among_all = Counter(len(line.cells) for line in lines)
    widths = Counter(len(line.cells) for line in last_half(lines))

    def rank(width: int) -> tuple[int, int, int]:
        return widths[width], among_all[width], width

    return max(widths, key=rank, default=0)


def delimiter_of_first_line(line: str) -> str | None:
    """Return the delimiter named by a first line such as "sep=;", or None.

    Examples
    --------
    >>> from mmcnb.tables.csv_delimiter import delimiter_of_first_line
    >>> delimiter_of_first_line("sep=;"), delimiter_of_first_line("a;b")
    (';', None)
    """
    cell = next(csv.reader(io.StringIO(line)), [""])[0] if '"' in line else line
    name, _, mark = cell.strip("\r\n").partition("=")
    if name.strip().lower() != "sep" or not mark:
        return None
    # Only one character counts, because a spreadsheet may append delimiters to the
    # line.
    if mark.strip() == r"\t":
        return "\t"
    return mark[0]

"""The mark between the cells of CSV text, told from its first lines."""

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
_ODD = 0.1  # the largest share of lines with another number of cells


class _Division(NamedTuple):
    """How well a mark divides lines into cells; a larger one is better.

    Attributes
    ----------
    is_even : bool
        Whether nearly all lines of the last half have equally many cells.
    values : float
        The share of their cells that are numbers, quantities, dates or flags.
    even : float
        The share of all lines with equally many cells.
    """

    is_even: bool
    values: float
    even: float


def find_delimiter(
    text: str, usual: str, gaps: Collection[str], decimal: str, path: object
) -> str:
    """Return the mark that divides the lines best: the usual one if none does.

    Spaces divide lines only if no other mark does, and if a column has numbers.
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
    """Whether lines are numbers as a whole, with commas between thousands.

    If all of them have equally many commas, these may as well divide cells, unless
    the header has none and all numbers have decimals.
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
    """Return how well a mark divides lines; None if most of them have one cell."""
    try:
        lines = list(split_lines(text, 1, mark, path))
    except InputError:  # a cell is longer than the parser takes
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
    """Whether rows that spaces divide are rather texts or quantities of one column."""
    if "number" not in kinds:
        return True
    if len(kinds) > 2:
        return False
    texts = {cells[kinds.index("text")] for cells in rows if "text" in kinds}
    is_always_one = len(texts) == 1 and len(rows) > 1
    return is_always_one or (bool(texts) and all(map(looks_like_unit, texts)))


def last_half(lines: list[Line]) -> list[Line]:
    """Return lines that are rows: titles, names and units stand above them."""
    return lines[len(lines) // 2 :]


def most_common_width(lines: list[Line]) -> int:
    """Return how many cells most rows have.

    If two numbers tie, it is the one that more lines have, or the larger one.
    """
    among_all = Counter(len(line.cells) for line in lines)
    widths = Counter(len(line.cells) for line in last_half(lines))

    def rank(width: int) -> tuple[int, int, int]:
        return widths[width], among_all[width], width

    return max(widths, key=rank, default=0)


def delimiter_of_first_line(line: str) -> str | None:
    """Return the mark that a first line such as "sep=;" names; None for others.

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
    # A spreadsheet may have divided the line itself.
    if mark.strip() == r"\t":
        return "\t"
    return mark[0]

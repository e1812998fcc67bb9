"""Find lines of CSV text that are not rows, and rows that should be reported."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from mmcnb.tables.csv_head import Head
from mmcnb.tables.csv_kinds import kind_of_cell
from mmcnb.tables.csv_lines import Line, decoded, split_lines, tidy

# Pattern for the beginning of a remark below the rows.
REMARK = re.compile(
    r"(?i)(sources?|notes?|quellen?|data|total|generated|exported|created|printed|"
    r"page|end|\(?c\)|©|\*|--)\b|\d+ rows"
)
# Pattern for the beginning of a last row that contains totals of the other rows.
TOTAL = re.compile(r"(?i)(grand |sub)?totals?\b|sum(me)?\b|gesamt|mean\b|average\b")
MOST_REMARKS = 20  # maximum number of lines below the rows
BLANKS = b' ,;|\t\r\n"'


class Body(NamedTuple):
    """The last lines of a file, divided into rows and remarks below them.

    Attributes
    ----------
    text : bytes
        The rows.
    below : bytes
        The text below the rows.
    remarks : list of Line
        The lines below the rows that are not blank.
    total : Line or None
        The last row, if it seems to contain totals of the other rows.
    """

    text: bytes
    below: bytes
    remarks: list[Line]
    total: Line | None


class Remarks:
    """Classifier that finds the lines of a file that are not rows.

    Parameters
    ----------
    path : Path
        Path of the file, for messages.
    head : Head
        Interpretation of the first lines.
    gaps : collection of str
        Markers of missing values.
    is_sure : bool
        Whether the encoding is certain to be UTF-8.
    """

    def __init__(
        self, path: Path, head: Head, gaps: Collection[str], is_sure: bool
    ) -> None:
        self._path = path
        self._head = head
        self._gaps = gaps
        self._is_sure = is_sure

    def is_remark(self, line: Line) -> bool:
        """Return whether a line with too few cells is a comment or a remark."""
        cell = line.cells[0].strip()
        return cell.startswith("#") or self.is_text_alone(line)

    def is_text_alone(self, line: Line) -> bool:
        """Return whether a line has only a text, in the first of several columns.

        If the rows have texts in the first column, the text of the line could be a row
        name, so it must also begin like a remark.
        """
        cell = line.cells[0].strip()
        is_alone = line.width == 1 < len(self._head.names)
        if not is_alone or kind_of_cell(cell, self._gaps) != "text":
            return False
        return self._head.kinds[0] != "text" or bool(REMARK.match(cell))

    def body(self, first: int, text: bytes) -> Body:
        """Separate the last rows of a file from the remarks below them.

        Parameters
        ----------
        first : int
            Number of the first line of the text in the file.
        text : bytes
            The last lines of the file.
        """
        lines = text.splitlines(keepends=True)
        remarks: list[Line] = []
        total = None
        n_rows = len(lines)
        for place in range(len(lines) - 1, max(-1, len(lines) - MOST_REMARKS), -1):
            if lines[place].count(b'"') % 2:  # part of a cell that spans several lines
                break
            cells = tidy(lines[place], self._head.delimiter)
            row = decoded(cells, first + place, self._path, self._is_sure)
            line = next(
                split_lines(row, first + place, self._head.delimiter, self._path), None
            )
            if line is None or not line.width:
                continue
            if not self.is_text_alone(line):
                total = line if TOTAL.match(line.cells[0].strip()) else None
                break
            remarks.insert(0, line)
            n_rows = place
        while remarks and n_rows and not lines[n_rows - 1].strip(BLANKS):
            n_rows -= 1
        above = b"".join(lines[:n_rows])
        return Body(above, text[len(above) :], remarks, total)


class Odd(NamedTuple):
    """Lines of a piece of text that should be reported.

    Attributes
    ----------
    short : list of int
        Line numbers of rows with fewer cells than the table has columns. Their last
        cells are missing values.
    remarks : list of Line
        Comments and remarks such as "Source: ...", which are not rows.
    total : Line or None
        The last row of the file, if it seems to contain totals of the other rows.
    cut : int or None
        Number of the last line of the file, if it has fewer cells than the table has
        columns and no line break.
    """

    short: list[int]
    remarks: list[Line]
    total: Line | None = None
    cut: int | None = None


class OddLines:
    """Counts and first examples of unusual lines, which are reported to the user."""

    def __init__(self) -> None:
        self._n_short = 0
        self._n_remarks = 0
        self._first_short = 0
        self._first_remark: Line | None = None
        self._total: Line | None = None
        self._cut: int | None = None

    def add(self, odd: Odd) -> None:
        """Add the unusual lines of the next block of text."""
        if odd.short and not self._n_short:
            self._first_short = odd.short[0]
        if odd.remarks and not self._n_remarks:
            self._first_remark = odd.remarks[0]
        self._n_short += len(odd.short)
        self._n_remarks += len(odd.remarks)
        self._total = odd.total
        self._cut = odd.cut

    def sentences(self, path: Path) -> list[str]:
        """Return a sentence for each kind of unusual line that was found."""
        sentences = []
        # If other rows are short, too, the program that wrote the file omits cells.
        if self._cut is not None and self._n_short == 1:
            sentences.append(
                f"{path}: the last line, line {self._cut}, is incomplete, so its last "
                "cells are missing values and the file seems to be truncated: get it "
                "again, or remove this line."
            )
        elif self._n_short:
            rows = f"{self._n_short:,} rows have"
            if self._n_short == 1:
                rows = "one row has"
            sentences.append(
                f"{path}: {rows} fewer cells than there are columns, so their last "
                f"cells are missing values (first in line {self._first_short})."
            )
        if self._first_remark is not None:
            text = " ".join(self._first_remark.cells).strip()[:60]
            more = ""
            if self._n_remarks > 1:
                more = f", and {self._n_remarks - 1:,} more such lines"
            sentences.append(
                f"{path}: line {self._first_remark.number} is not a row, so it was "
                "skipped: "
                f"{text!r}{more}."
            )
        if self._total is not None:
            sentences.append(
                f"{path}: line {self._total.number} begins with "
                f"{self._total.cells[0].strip()!r} and was read as a row: remove the "
                "line if it sums up the other rows."
            )
        return sentences

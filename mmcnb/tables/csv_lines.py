"""Divide lines of CSV text into cells."""

import csv
import io
import re
from collections.abc import Iterator
from typing import NamedTuple

from mmcnb.errors import InputError


class NotUTF8Error(Exception):
    """A line is not UTF-8 text, although the file was assumed to be UTF-8."""


class Line(NamedTuple):
    """The cells of a row, and the numbers of its lines in the file.

    ``first`` and ``number`` are the numbers of the first and the last line of the row,
    which differ if a quoted cell spans several lines.
    """

    first: int
    number: int
    cells: list[str]

    @property
    def width(self) -> int:
        """Number of cells up to the last cell with a value."""
        width = len(self.cells)
        while width and not self.cells[width - 1].strip():
            width -= 1
        return width


def tidy(text: bytes, delimiter: str) -> bytes:
    """Collapse runs of spaces and tabs outside quotes if the delimiter is a space.

    Spaces at the beginning and end of lines are removed as well.

    Examples
    --------
    >>> from mmcnb.tables.csv_lines import tidy
    >>> tidy(b' 1   "a  b" \\n', " ")
    b'1 "a  b"\\n'
    """
    if delimiter != " ":
        return text
    parts = text.split(b'"')
    parts[::2] = [re.sub(rb"[ \t]+", b" ", part) for part in parts[::2]]
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", b'"'.join(parts))


def decoded(text: bytes, first: int, path: object, is_sure: bool) -> str:
    """Decode UTF-8 text.

    Parameters
    ----------
    text : bytes
    first : int
        Number of the first line of the text in the file, for messages.
    path : object
        Path of the file, for messages.
    is_sure : bool
        Whether the encoding is certain to be UTF-8.

    Raises
    ------
    InputError
        If a line is not UTF-8 text, although the encoding is certain.
    NotUTF8Error
        If a line is not UTF-8 text, and another encoding is possible.
    """
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        if not is_sure:
            raise NotUTF8Error from error
        line = first + text.count(b"\n", 0, error.start)
        raise InputError(
            f"{path}, line {line}: this is not UTF-8 text: pass another encoding "
            "(--encoding cp1252)."
        ) from error


def split_lines(
    text: str, first: int, delimiter: str, path: object, is_single: bool = False
) -> Iterator[Line]:
    """Yield the cells of each line that is not blank, separated as by pyarrow.

    If the table has a single column, a line of spaces is a missing value; otherwise, it
    is skipped.

    Parameters
    ----------
    text : str
    first : int
        Number of the first line of the text in the file.
    delimiter : str
    path : object
        Path of the file, for messages.
    is_single : bool, default=False
        Whether the table has a single column.

    Examples
    --------
    >>> from mmcnb.tables.csv_lines import split_lines
    >>> for line in split_lines('a,"b\\nc"\\n\\n1,2\\n', 1, ",", "rows.csv"):
    ...     print(line.first, line.number, line.cells)
    1 2 ['a', 'b\\nc']
    4 4 ['1', '2']
    """
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    n_before = 0
    try:
        for cells in rows:
            if cells and (len(cells) > 1 or is_single or cells[0].strip()):
                yield Line(first + n_before, first + rows.line_num - 1, cells)
            n_before = rows.line_num
    except csv.Error as error:
        line = first + rows.line_num - 1
        raise InputError(f"{path}, line {line}: {error}; correct it.") from error

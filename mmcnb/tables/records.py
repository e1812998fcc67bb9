"""Add cells to the rows of CSV text without changing the rest of the text."""

import csv
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from mmcnb.tables.csv_lines import tidy

if TYPE_CHECKING:
    from mmcnb.tables.csv_file import CSVFile


QUOTED = re.compile(rb'"[^"]*"')


class Record(NamedTuple):
    """A row of CSV text, or a line that is not a row.

    Attributes
    ----------
    text : bytes
        The unchanged text with its line end. A quoted cell may span several lines.
    n_cells : int
        Number of cells, or 0 if the line is not a row.
    """

    text: bytes
    n_cells: int


class TextPiece(NamedTuple):
    """Lines of CSV text, separated into header and rows.

    Attributes
    ----------
    above : list of bytes
        Lines above the rows: the header, and any lines before it.
    records : list of Record
        The rows, and the other lines between them; empty if ``plain`` is not None.
    header : int or None
        Index in ``above`` of the last line of the header; None if ``above`` has no
        header.
    plain : PlainLines or None
        The rows, if all lines are rows without quotes; otherwise None.
    below : bytes
        Text below the rows.
    """

    above: list[bytes]
    records: list[Record]
    header: int | None = None
    plain: "PlainLines | None" = None
    below: bytes = b""

    @property
    def n_rows(self) -> int:
        """Number of rows in the piece."""
        if self.plain is not None:
            return len(self.plain.lines)
        return sum(record.n_cells > 0 for record in self.records)


class PlainLines(NamedTuple):
    """Rows without quotes that all have one cell for each column.

    Attributes
    ----------
    lines : list of bytes
        The rows without line ends.
    end : bytes
        The line end of all rows.
    """

    lines: list[bytes]
    end: bytes


def plain_lines(text: bytes, delimiter: str, width: int) -> PlainLines | None:
    """Split text into rows quickly, or return None if it has other lines or quotes.

    Parameters
    ----------
    text : bytes
        Whole lines.
    delimiter : str
    width : int
        Number of cells that each row must have.

    Examples
    --------
    >>> from mmcnb.tables.records import plain_lines
    >>> plain_lines(b"1,2\\n3,4\\n", ",", 2)
    PlainLines(lines=[b'1,2', b'3,4'], end=b'\\n')
    >>> plain_lines(b"1,2\\n3\\n", ",", 2) is None
    True
    """
    is_plain = b'"' not in text and text.endswith(b"\n")
    is_plain &= delimiter != " "
    if not is_plain or width < 2:
        return None
    characters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(characters == ord("\n"))
    marks = np.flatnonzero(characters == ord(delimiter))
    per_line = np.diff(np.searchsorted(marks, ends), prepend=0)
    n_returns = np.count_nonzero(characters == ord("\r"))
    if (per_line != width - 1).any() or n_returns not in (0, len(ends)):
        return None
    end = b"\r\n" if n_returns else b"\n"
    if n_returns != text.count(b"\r\n"):
        return None
    return PlainLines(text[: -len(end)].split(end), end)


def split_records(text: bytes, delimiter: str, is_single: bool) -> list[Record]:
    """Split CSV text into rows and other lines, in the same way as `split_lines`.

    Parameters
    ----------
    text : bytes
        Whole lines in UTF-8.
    delimiter : str
    is_single : bool
        Whether the table has a single column. If so, a line of spaces is a missing
        value.

    Examples
    --------
    >>> from mmcnb.tables.records import split_records
    >>> for record in split_records(b'a,"b\\n,c"\\n\\n1,2\\n', ",", False):
    ...     print(record.n_cells, record.text)
    2 b'a,"b\\n,c"\\n'
    0 b'\\n'
    2 b'1,2\\n'
    """
    parsed = tidy(text, delimiter)
    mark = delimiter.encode()
    records = []
    lines = text.splitlines(keepends=True)
    for line, tidy_line in zip(lines, parsed.splitlines(keepends=True), strict=True):
        cells = tidy_line.rstrip(b"\r\n")
        if b'"' in cells:
            if cells.count(b'"') % 2 == 1:  # a cell continues on the next line
                return _parsed_records(text, parsed, delimiter, is_single)
            cells = QUOTED.sub(b"q", cells)
        n_cells = cells.count(mark) + 1
        if n_cells == 1 and not (cells if is_single else cells.strip()):
            n_cells = 0
        records.append(Record(line, n_cells))
    return records


def _parsed_records(
    text: bytes, parsed: bytes, delimiter: str, is_single: bool
) -> list[Record]:
    """Split text with cells that span several lines, using the csv module."""
    lines = text.splitlines(keepends=True)
    reader = csv.reader(io.StringIO(parsed.decode(), newline=""), delimiter=delimiter)
    records = []
    start = 0
    for cells in reader:
        is_row = bool(cells) and (len(cells) > 1 or is_single or cells[0].strip())
        record = b"".join(lines[start : reader.line_num])
        records.append(Record(record, len(cells) if is_row else 0))
        start = reader.line_num
    return records


class JoinedText:
    """The text of a CSV file with additional cells in each row.

    Parameters
    ----------
    file : CSVFile
    names : sequence of str
        Names of the new columns.
    decimal : str
        Decimal mark of the numbers in the new columns.
    is_first : bool
        Whether to write the lines above the rows; False for further files of a folder.
    """

    def __init__(
        self, file: "CSVFile", names: Sequence[str], decimal: str, is_first: bool
    ) -> None:
        self._file = file
        self._names = names
        self._mark = file.delimiter.encode()
        self._decimal = decimal
        self._is_first = is_first
        self._width = file.width
        self._end = b"\n"
        self._is_ended = True

    def joined(self, piece: TextPiece, columns: list[pa.Array]) -> bytes:
        """Return the next lines, with the values of the new columns appended.

        Parameters
        ----------
        piece : TextPiece
        columns : list of pyarrow.Array
            Values of the new columns for the rows of this piece.
        """
        texts = []
        if self._is_first:
            texts += self._head(piece)
        cells = self._cells(columns)
        if piece.plain is not None:
            lines = zip(piece.plain.lines, cells, strict=True)
            joined = [line + self._mark + more for line, more in lines]
            texts += [piece.plain.end.join(joined), piece.plain.end]
        remaining = iter(cells)
        for record in piece.records:
            text = record.text
            if record.n_cells:
                if record.n_cells != self._width:
                    text = self._filled(record)
                text = _with_cells(text, self._mark + next(remaining))
            texts.append(text)
        texts.append(piece.below)
        text = b"".join(texts)
        if text:
            rest = text.rstrip(b"\r\n")
            self._is_ended = text != rest
            if self._is_ended:
                self._end = b"\r\n" if text.endswith(b"\r\n") else text[-1:]
        return text

    @property
    def missing_end(self) -> bytes:
        """The line end to add if the last line does not have one, otherwise ``b""``."""
        return b"" if self._is_ended else self._end

    def _head(self, piece: TextPiece) -> list[bytes]:
        """Return the lines above the rows, with the new names in the header."""
        lines = list(piece.above)
        header = piece.header
        if header is None:
            return lines
        line = Record(lines[header], self._cells_of_header(lines[header]))
        # A header may lack a name for the column of row names.
        if line.n_cells != len(self._file.names) - 1:
            line = line._replace(text=self._filled(line))
        cells = self._mark.join(name.encode() for name in self._names)
        lines[header] = _with_cells(line.text, self._mark + cells)
        return lines

    def _cells_of_header(self, text: bytes) -> int:
        return split_records(text, self._file.delimiter, is_single=True)[0].n_cells

    def _filled(self, record: Record) -> bytes:
        """Return a row with the usual number of cells, padded or cut at its end."""
        text = _with_cells(record.text, self._mark * (self._width - record.n_cells))
        for _ in range(record.n_cells - self._width):
            cells = text.rstrip(b"\r\n")
            text = cells[: cells.rfind(self._mark)] + text[len(cells) :]
        return text

    def _cells(self, columns: list[pa.Array]) -> list[bytes]:
        """Return the new cells of each row as CSV text, with empty cells for null."""
        buffer = io.BytesIO()
        options = pa.csv.WriteOptions(
            include_header=False, delimiter=self._file.delimiter
        )
        table = pa.table(columns, names=list(self._names))
        pa.csv.write_csv(table, buffer, options)
        text = buffer.getvalue()
        if self._decimal == "," and self._file.delimiter != ",":
            text = text.replace(b".", b",")
        return text.splitlines()


def _with_cells(line: bytes, cells: bytes) -> bytes:
    """Insert text at the end of a line, before its line end."""
    text = line.rstrip(b"\r\n")
    return text + cells + line[len(text) :]

"""CSV and TSV files: header, delimiter, types of columns, and rows in parts."""

import csv
import io
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from mmcnb.errors import InputError
from mmcnb.samples.frames import notes_on_names, unique_names
from mmcnb.samples.text import plain_name, read_pieces
from mmcnb.tables.arrow import TEXT
from mmcnb.tables.base import Part, Types, is_numeral
from mmcnb.tables.decide import type_of_texts
from mmcnb.tables.marks import marks_of_numbers
from mmcnb.tables.numbers import body_pattern, compiled
from mmcnb.tables.options import TableOptions
from mmcnb.tables.records import TextPiece, split_records

BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """The cells of a row, and the number of its last line in the file."""

    number: int
    cells: list[str]


class CSVFile:
    """Rows of a CSV or TSV file, parsed by pyarrow in pieces of whole lines.

    The first line is a header if a cell of it is text, or if its cells count 0, 1, 2, …
    as pandas names columns.
    """

    lengths = None  # it is not read by groups
    cached_bytes = 0
    index_columns: tuple[int, ...] = ()

    def __init__(
        self, path: Path, options: TableOptions, show_progress: bool | None
    ) -> None:
        self._path = path
        self._options = options
        self._show_progress = show_progress
        self._gaps = marks_of_numbers(options, "").to_pylist()
        digits = body_pattern(options.decimal, options.thousands or "")
        self._number = compiled(f"(?i)^[-+]?({digits}|inf(inity)?|nan)$")
        self.keys: list[str] = []
        self.notes: list[str] = []
        head, first_line = self._read_head()
        head_text = b"".join(head)
        self._delimiter = self._find_delimiter(head_text)
        lines = self._lines(first_line, self._tidy(head_text))
        first_lines = list(islice(lines, 100))
        if not first_lines:
            raise InputError(f"{path} has no rows: give it at least one.")
        top = list(map(str.strip, first_lines[0].cells))
        self.has_names = self._is_header(top, first_lines[1:])
        if self.has_names and len(first_lines) == 1:
            raise InputError(f"{path} has a header and no rows: give it at least one.")
        numbers = list(map(str, range(len(top))))
        self.names = numbers
        self._body_line = first_line
        if self.has_names:
            self.names = unique_names(top)
            self.notes = notes_on_names(str(path), top)
            self._body_line = first_lines[0].number + 1
        self.keys = self.names
        body = b"".join(head[self._body_line - first_line :])
        texts = dict.fromkeys(self.keys, TEXT)
        first_rows = self._part(self._body_line, body, texts)
        self.types = []
        for key, name in zip(self.keys, self.names, strict=True):
            column = first_rows.columns[key]
            self.types.append(type_of_texts(column, options, name))

    # The first lines

    def _read_head(self) -> tuple[list[bytes], int]:
        """Return the first lines below ``#`` lines, and the number of the first.

        They have two rows, if there are so many.
        """
        head = b""
        lines: list[bytes] = []
        n_notes = 0
        for _, piece in read_pieces(self._path, False, quoted=True):
            head = (head + piece).removeprefix(BOM)
            lines = head.splitlines(keepends=True)
            n_notes = 0
            while n_notes < len(lines) and lines[n_notes].startswith(b"#"):
                n_notes += 1
            if len(list(filter(bytes.strip, lines[n_notes:]))) > 1:
                break
        return lines[n_notes:], n_notes + 1

    def _find_delimiter(self, head: bytes) -> str:
        """Return the given mark, the usual one, or one that alone divides the lines."""
        decimal = self._options.decimal
        is_tsv = plain_name(self._path).endswith(".tsv")
        usual = "\t" if is_tsv else ","
        is_quoted = b'"' in head
        delimiter = self._options.delimiter
        if delimiter is None:
            lines = _first_two_lines(head)
            delimiter = usual
            for mark in (usual, *",;\t| "):
                widths = {len(row) for row in csv.reader(lines, delimiter=mark)}
                is_even = mark == usual or len(widths) == 1
                may_divide = mark != decimal or is_quoted
                if may_divide and is_even and min(widths, default=0) > 1:
                    delimiter = mark
                    break
        if delimiter == decimal and not is_quoted:
            raise InputError(
                f"{self._path}: {decimal!r} cannot divide both cells and decimals: "
                "give another delimiter (--delimiter ';')."
            )
        return delimiter

    def _is_header(self, top: list[str], rest: list[Line]) -> bool:
        """Whether the first line names the columns."""
        options = self._options
        if options.header is not None:
            return options.header == "yes"
        roles = options.label_column, options.index_column
        references = [*(options.columns or ()), *(options.drop or ()), *roles]
        if any(map(_is_name, references)):
            return True
        numbers = list(map(str, range(len(top))))
        if len(top) > 2 and top in (numbers, ["", *numbers[:-1]]):
            return True
        outside = [int(role) % len(top) for role in roles if role is not None]
        inside = []
        for position, cell in enumerate(top):
            if position not in outside and cell not in self._gaps:
                if not self._number.match(cell):
                    return True
                inside.append(position)
        values = {self._number_of(top[position]) for position in inside}
        rows = [line.cells for line in rest if len(line.cells) == len(top)]
        is_doubtful = len(rows) > 2 and len(values) == len(inside) > 1
        if is_doubtful and all(self._is_far(k, top, rows) for k in inside):
            raise InputError(
                f"{self._path}: the numbers of its first line are far from those "
                "below: give --header yes if they name the columns, or --header no."
            )
        return False

    def _number_of(self, cell: str) -> float:
        """Return the number of a cell; NaN for other cells."""
        if not self._number.match(cell.strip()):
            return np.nan
        digits = cell.replace(self._options.thousands or "", "")
        return float(digits.replace(self._options.decimal, "."))

    def _is_far(self, position: int, top: list[str], rows: list[list[str]]) -> bool:
        """Whether a number of the first line is far outside the range of its column.

        It is farther from the range than the range is wide.
        """
        first = self._number_of(top[position])
        column = [self._number_of(cells[position]) for cells in rows]
        low = np.nanmin([np.inf, *column])
        high = np.nanmax([-np.inf, *column])
        return bool(max(low - first, first - high) > high - low)

    # All lines

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Yield columns, piece by piece.

        Two pieces are parsed ahead while the rows of another are written.
        """
        waiting: deque[Future[Part]] = deque()
        pieces = read_pieces(self._path, self._show_progress, quoted=True)
        with ThreadPoolExecutor(2, "mmcnb-csv") as pool:
            for line, piece in pieces:
                text = piece.removeprefix(BOM) if line == 1 else piece
                n_above = self._body_line - line
                if n_above > 0:
                    text = b"".join(text.splitlines(keepends=True)[n_above:])
                first = max(line, self._body_line)
                waiting.append(pool.submit(self._part, first, text, wanted))
                if len(waiting) > 2:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    @property
    def delimiter(self) -> str:
        """Mark between cells."""
        return self._delimiter

    def pieces(self) -> Iterator[TextPiece]:
        """Yield the text of the file as it is written, divided into rows."""
        for line, piece in read_pieces(self._path, False, quoted=True):
            lines = piece.splitlines(keepends=True)
            n_above = max(0, self._body_line - line)
            body = b"".join(lines[n_above:])
            records = split_records(
                body, self._delimiter, len(self.keys) == 1, self._tidy(body)
            )
            yield TextPiece(lines[:n_above], records)

    def _tidy(self, text: bytes) -> bytes:
        """Join runs of spaces, if spaces divide cells; those in quotes stay."""
        if self._delimiter != " ":
            return text
        parts = text.split(b'"')
        parts[::2] = [re.sub(rb"[ \t]+", b" ", part) for part in parts[::2]]
        return re.sub(rb"(?m)^ | (?=\r?$)", b"", b'"'.join(parts))

    def _part(self, line: int, text: bytes, types: Types) -> Part:
        """Parse whole lines; all columns are texts if a cell is not of its type."""
        text = self._tidy(text)
        if not text:
            return Part({}, 0, str)
        if b"0x" in text or b"0X" in text:
            # pyarrow would read whole numbers in hexadecimal.
            return self._part_of_texts(line, text, types)
        # A thread of pyarrow that starts as the process ends aborts it.
        reading = pa.csv.ReadOptions(
            column_names=self.keys, use_threads=False, block_size=len(text) + 1
        )
        parsing = pa.csv.ParseOptions(
            delimiter=self._delimiter, newlines_in_values=b'"' in text
        )
        converting = pa.csv.ConvertOptions(
            include_columns=list(types),
            column_types=types,
            null_values=[*self._gaps, *(f" {mark}" for mark in self._gaps)],
            decimal_point=self._options.decimal,
        )
        try:
            table = pa.csv.read_csv(pa.BufferReader(text), reading, parsing, converting)
        except pa.ArrowInvalid:
            return self._part_of_texts(line, text, types)

        def place(row: int) -> str:
            return f"line {self._whole_lines(line, text)[row].number}"

        columns = {key: table[key].combine_chunks() for key in table.column_names}
        return Part(columns, table.num_rows, place)

    def _part_of_texts(self, line: int, text: bytes, types: Types) -> Part:
        whole = []
        ragged = []
        width = len(self.keys)
        for row in self._lines(line, text):
            if len(row.cells) == width:
                whole.append(row)
            else:
                ragged.append(
                    f"line {row.number}: {len(row.cells)} cells, but the first line "
                    f"has {width}"
                )
        columns = {}
        for k, key in enumerate(self.keys):
            if key in types:
                columns[key] = pa.array([row.cells[k] for row in whole], TEXT)
        return Part(
            columns, len(whole), lambda row: f"line {whole[row].number}", ragged
        )

    def _whole_lines(self, line: int, text: bytes) -> list[Line]:
        """Return the rows with as many cells as there are columns."""
        lines = self._lines(line, text)
        return [line for line in lines if len(line.cells) == len(self.keys)]

    def _lines(self, first: int, text: bytes) -> Iterator[Line]:
        """Yield the cells of each row, as the parser divides them."""
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = first + text.count(b"\n", 0, error.start)
            hint = ""
            if text[:2] in (b"\xff\xfe", b"\xfe\xff"):
                hint = " (it looks like UTF-16)"
            raise InputError(
                f"{self._path}, line {wrong}: this is not UTF-8 text{hint}: save the "
                "file as UTF-8."
            ) from error
        rows = csv.reader(io.StringIO(decoded, newline=""), delimiter=self._delimiter)
        is_single = len(self.keys) == 1
        try:
            for cells in rows:
                # A line of spaces is a missing value of a single column, and no row of
                # several.
                if cells and (len(cells) > 1 or is_single or cells[0].strip()):
                    yield Line(first + rows.line_num - 1, cells)
        except csv.Error as error:
            wrong = first + rows.line_num - 1
            raise InputError(
                f"{self._path}, line {wrong}: {error}; correct it."
            ) from error


def _first_two_lines(head: bytes) -> list[str]:
    """Return the first two lines that are not blank, with runs of spaces as one."""
    lines = []
    for line in io.StringIO(head.decode("utf-8", "replace"), newline=None):
        if line.strip():
            lines.append(re.sub(" +", " ", line.strip(" \n")))
        if len(lines) == 2:
            break
    return lines


def _is_name(reference: str | int | None) -> bool:
    """Whether a reference to columns has a name, so that there must be a header."""
    if not isinstance(reference, str):
        return False
    return not all(map(is_numeral, reference.split(",")))

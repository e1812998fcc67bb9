"""Read CSV and TSV files in parts, and detect their encoding and column types."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from mmcnb.samples.text import (
    count_byte,
    first_bytes,
    first_line_of_windows,
    read_pieces,
)
from mmcnb.samples.transcode import (
    UTF8,
    WINDOWS,
    encoded,
    mark_and_codec,
    marked_codec,
    unmarked_utf16,
)
from mmcnb.tables.arrow import TEXT
from mmcnb.tables.base import Part, Types
from mmcnb.tables.csv_head import N_LINES, HeadReader
from mmcnb.tables.csv_lines import Line, NotUTF8Error, decoded, split_lines, tidy
from mmcnb.tables.csv_remarks import Odd, OddLines, Remarks
from mmcnb.tables.decide import FirstCells, look_at_first_cells
from mmcnb.tables.decimal_marks import (
    has_certain_point,
    with_marks_exchanged,
)
from mmcnb.tables.marks import marks_of_numbers
from mmcnb.tables.options import TableOptions
from mmcnb.tables.records import Record, TextPiece, plain_lines, split_records

# Plain numbers or empty cells. Leading zeros are excluded, because codes may have them,
# and so are eight digits, which may be a date.
PLAIN_WHOLE = r"^(?:-?(?:0|[1-9]\d{0,6}))?$"
PLAIN = r"^(?:-?(?:0|[1-9]\d{0,6})(?:\.\d+)?)?$"
MOST_HEAD_BYTES = 2**21  # maximum size of the first lines, unless two rows are longer
# Minimum number of lines per piece, because each piece has a fixed cost per column.
LEAST_LINES = 100
WIDE_COLUMNS = 256


class _Piece(NamedTuple):
    """Rows parsed from a block of text, and the lines of the block to report."""

    part: Part
    odd: Odd


class _Rows(NamedTuple):
    """Lines of a piece of text, separated into rows and other lines.

    Attributes
    ----------
    lines : list of Line
        Rows, each with as many cells as the table has columns.
    odd : Odd
        Rows that were padded because they had too few cells, and lines that are
        remarks.
    ragged : list of str
        A sentence about each line that was left out because it has the wrong number of
        cells.
    """

    lines: list[Line]
    odd: Odd
    ragged: list[str]


class CSVFile:
    """Rows of a CSV or TSV file, parsed by pyarrow in pieces of whole lines.

    Parameters
    ----------
    path : Path
    options : TableOptions
    show_progress : bool or None
        Whether to show a progress bar. If None, it is shown only on a terminal.
    is_utf8 : bool, default=True
        Whether the file may be UTF-8 text; False if an earlier reading has shown that
        it is not.

    Attributes
    ----------
    certain_marks : dict of str to str
        Decimal mark of each column of numbers, or ``""`` if its first cells do not
        determine the mark.
    keys_to_exchange : set of str
        Keys of the columns in which points and commas are exchanged when rows are read.

    Raises
    ------
    InputError
        If there are no rows, or if it is unclear whether the first line contains column
        names.
    """

    lengths = None  # text has no groups that can be read separately
    cached_bytes = 0
    index_columns: tuple[int, ...] = ()
    blocks: tuple[str, ...] = ()

    def __init__(
        self,
        path: Path,
        options: TableOptions,
        show_progress: bool | None,
        is_utf8: bool = True,
    ) -> None:
        self._path = path
        self._options = options
        self._show_progress = show_progress
        self._gaps = marks_of_numbers(options, "").to_pylist()
        self._notes: list[str] = []
        self._notes_on_rows: list[str] = []
        self._n_nul = 0
        self.keys_to_exchange: set[str] = set()
        try:
            self._open(is_utf8)
        except NotUTF8Error:
            self._open(is_utf8=False)

    def _open(self, is_utf8: bool) -> None:
        """Determine the encoding, and interpret the first lines."""
        self._find_codec(is_utf8)
        lines = self._read_head()
        reader = HeadReader(self._path, self._options, self._gaps)
        self._head = reader.read(lines, self._is_sure)
        self._notes += self._head.notes
        self.names = self._head.names
        self.keys = self.names
        self.sources = tuple(self.keys)
        self.has_names = self._head.has_names
        self._remarks = Remarks(self._path, self._head, self._gaps, self._is_sure)
        first = self._head.first_row
        text = self._remarks.body(first, b"".join(lines[first - 1 :])).text
        rows = self._piece(first, text, dict.fromkeys(self.keys, TEXT)).part
        self.types = []
        self.certain_marks = {}
        for name in self.names:
            first_cells = self._look_at(name, rows.columns[name])
            self.types.append(first_cells.type)
            if first_cells.decimal is not None:
                self.certain_marks[name] = first_cells.decimal

    def _look_at(self, name: str, texts: pa.Array) -> FirstCells:
        """Infer the type and the decimal mark of a column from its first cells."""
        options = self._options
        is_usual = options.decimal == "." and not (
            options.thousands or options.na_values
        )
        # A full survey would take minutes for tens of thousands of columns.
        if is_usual and pc.all(pc.match_substring_regex(texts, PLAIN)).as_py():
            if pc.all(pc.match_substring_regex(texts, PLAIN_WHOLE)).as_py():
                is_empty = pc.all(pc.equal(texts, "")).as_py()
                return FirstCells(pa.null() if is_empty else pa.int64(), "")
            return FirstCells(pa.float64(), "." if has_certain_point(texts) else "")
        return look_at_first_cells(texts, options, name)

    @property
    def notes(self) -> list[str]:
        """Sentences about the encoding, the first lines, and the rows read so far."""
        notes = [*self._notes, *self._notes_on_rows]
        if self._n_nul:
            notes.append(f"{self._path}: {self._n_nul:,} NUL bytes were removed.")
        return notes

    def _find_codec(self, is_utf8: bool) -> None:
        """Set the encoding to the given one, or detect it from the file's bytes."""
        head = first_bytes(self._path)
        given = self._options.codec
        marked = marked_codec(head)
        if marked is not None and self._options.encoding is not None:
            given = None  # ignore the fit's encoding: this file has a byte order mark
        unmarked = unmarked_utf16(head)
        self._codec = given or marked or unmarked or UTF8
        self._is_sure = bool(given or marked or unmarked) or not is_utf8
        self._notes = []
        if not self._is_sure or given or marked:
            return
        name = unmarked
        reason = "every second byte is 0"
        if unmarked is None:
            self._codec = name = WINDOWS
            reason = f"line {first_line_of_windows(self._path)} is not UTF-8"
        self._notes = [
            f"{self._path} was read as {name} text, because {reason}: pass another "
            "encoding (--encoding) if characters look wrong."
        ]

    def _pieces(self, show_progress: bool | None) -> Iterator[tuple[int, bytes, bool]]:
        """Yield the file in blocks of whole lines, as UTF-8 text without NUL bytes.

        Each item is a tuple of the number of the first line of the block, the text, and
        whether it is the last block.
        """
        self._n_nul = 0
        held = None
        pieces = read_pieces(
            self._path, show_progress, True, self._codec, least_lines=LEAST_LINES
        )
        for line, piece in pieces:
            if held is not None:
                yield *held, False
            n_nul = count_byte(piece, b"\0")
            self._n_nul += n_nul
            held = line, piece.replace(b"\0", b"") if n_nul else piece
        if held is not None:
            yield *held, True

    def _read_head(self) -> list[bytes]:
        """Read the first lines, until 100 of them are neither empty nor comments.

        Lines that an option skips do not count. Reading stops earlier if the lines
        exceed `MOST_HEAD_BYTES`.
        """
        head = b""
        lines: list[bytes] = []
        for _, piece, _ in self._pieces(show_progress=False):
            head += piece
            lines = head.splitlines(keepends=True)
            rows = [line for line in lines if line.strip() and line[:1] != b"#"]
            n_rows = len(rows) - (self._options.skip_lines or 0)
            if n_rows >= N_LINES or (n_rows > 1 and len(head) > MOST_HEAD_BYTES):
                break
        return lines

    # All lines

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Yield columns, piece by piece.

        While the caller processes a piece, the next two pieces are parsed.

        Parameters
        ----------
        wanted : mapping of str to pyarrow.DataType
            For the key of each column to read, the type to read the column as.
        group : None
            Ignored, because text has no groups.

        Raises
        ------
        NotUTF8Error
            If a line is not UTF-8 text. The caller must then open the file again with
            ``is_utf8=False``.
        """
        odd = OddLines()
        waiting: deque[Future[_Piece]] = deque()
        with ThreadPoolExecutor(2, "mmcnb-csv") as pool:
            for line, text, is_last in self._pieces(self._show_progress):
                n_above = self._head.first_row - line
                rows = text
                if n_above > 0:
                    rows = b"".join(text.splitlines(keepends=True)[n_above:])
                first = max(line, self._head.first_row)
                parse = self._last_piece if is_last else self._piece
                waiting.append(pool.submit(parse, first, rows, wanted))
                if len(waiting) > 2:
                    piece = waiting.popleft().result()
                    odd.add(piece.odd)
                    yield piece.part
            for future in waiting:
                piece = future.result()
                odd.add(piece.odd)
                yield piece.part
        self._notes_on_rows = odd.sentences(self._path)

    @property
    def delimiter(self) -> str:
        """Character that separates cells."""
        return self._head.delimiter

    @property
    def width(self) -> int:
        """Number of cells in a row, including blank cells after the last column."""
        return len(self.keys) + self._head.n_blank

    def pieces(self) -> Iterator[TextPiece]:
        """Yield the text of the file unchanged, divided into rows.

        Text in another encoding is converted to UTF-8; `as_written` converts it back.
        """
        delimiter = self._head.delimiter
        for line, piece, is_last in self._pieces(show_progress=False):
            lines = piece.splitlines(keepends=True)
            n_above = max(0, self._head.first_row - line)
            body = b"".join(lines[n_above:])
            below = b""
            if is_last:
                body, below, _, _ = self._remarks.body(line + n_above, body)
            records = []
            plain = plain_lines(body, delimiter, self.width)
            if plain is None:
                for record in split_records(body, delimiter, len(self.keys) == 1):
                    records.append(self._without_remark(record))
            header = self._head.header_line - line
            yield TextPiece(
                above=lines[:n_above],
                records=records,
                header=header if 0 <= header < n_above else None,
                plain=plain,
                below=below,
            )

    def as_written(self, text: bytes, is_start: bool) -> bytes:
        """Return text in the encoding of the file.

        At the start of the file, the byte order mark is added if the file has one.
        """
        mark, codec = mark_and_codec(first_bytes(self._path), self._codec)
        text = encoded(text, codec)
        return mark + text if is_start else text

    def _without_remark(self, record: Record) -> Record:
        """Set the number of cells of a record to 0 if the record is a remark."""
        if record.n_cells >= len(self.keys):
            return record
        text = tidy(record.text, self._head.delimiter).decode()
        for line in split_lines(text, 1, self._head.delimiter, self._path):
            if self._remarks.is_remark(line):
                return record._replace(n_cells=0)
        return record

    def _last_piece(self, line: int, text: bytes, types: Types) -> _Piece:
        body = self._remarks.body(line, text)
        piece = self._piece(line, body.text, types)
        remarks = [*piece.odd.remarks, *body.remarks]
        part, odd = piece
        cut = None
        if odd.short and not body.text.endswith((b"\n", b"\r")):
            is_last = part.place(part.n_rows - 1) == f"line {odd.short[-1]}"
            cut = odd.short[-1] if is_last else None
        return _Piece(
            part=part._replace(is_cut=cut is not None),
            odd=Odd(odd.short, remarks, body.total, cut),
        )

    def _piece(self, line: int, text: bytes, types: Types) -> _Piece:
        """Parse a block of whole lines into columns of the given types.

        If a cell does not match the type of its column, all columns are read as text.
        """
        text = tidy(text, self._head.delimiter)
        if not text:
            return _Piece(Part({}, 0, str), Odd([], []))
        if b"0x" in text or b"0X" in text:
            # pyarrow would read cells such as 0x1F as hexadecimal integers.
            return self._piece_of_texts(line, text, types)
        blank = [f"blank cell {k}" for k in range(self._head.n_blank)]
        # pyarrow must not use threads: if a thread started while the process exits, the
        # process would abort.
        reading = pa.csv.ReadOptions(
            column_names=[*self.keys, *blank],
            use_threads=False,
            block_size=len(text) + 1,
        )
        parsing = pa.csv.ParseOptions(
            delimiter=self._head.delimiter, newlines_in_values=b'"' in text
        )
        converting = pa.csv.ConvertOptions(
            include_columns=[*types, *blank],
            column_types=dict.fromkeys(blank, pa.null()) | self._types_to_parse(types),
            null_values=self._marks_in(text),
            decimal_point=self._options.decimal,
        )
        try:
            table = pa.csv.read_csv(pa.BufferReader(text), reading, parsing, converting)
        except pa.ArrowInvalid:
            return self._piece_of_texts(line, text, types)

        def place(row: int) -> str:
            return f"line {self._rows(line, text).lines[row].number}"

        keys = [key for key in table.column_names if key not in blank]
        columns = {key: table[key].combine_chunks() for key in keys}
        self._exchange_marks(columns)
        return _Piece(Part(columns, table.num_rows, place), Odd([], []))

    def _types_to_parse(self, types: Types) -> dict[str, pa.DataType]:
        """Return the column types to pass to the parser.

        Numbers in which points and commas must be exchanged are parsed as text, because
        the parser would read 1.500 as 1.5 where it means 1500.
        """
        to_parse = dict(types)
        for key in self.keys_to_exchange & types.keys():
            if pa.types.is_floating(types[key]):
                to_parse[key] = TEXT
        return to_parse

    def _exchange_marks(self, columns: dict[str, pa.Array]) -> None:
        for key in self.keys_to_exchange & columns.keys():
            if columns[key].type == TEXT:
                columns[key] = with_marks_exchanged(columns[key])

    def _marks_in(self, text: bytes) -> list[str]:
        """Return the markers of missing values to pass to the parser.

        The parser needs 270 bytes for each marker in each column. If there are many
        columns, it therefore gets only the markers that occur in the text.
        """
        marks = self._gaps
        if self.width >= WIDE_COLUMNS:
            marks = [mark for mark in marks if '"' in mark or mark.encode() in text]
        return [*marks, *(f" {mark}" for mark in marks)]

    def _piece_of_texts(self, line: int, text: bytes, types: Types) -> _Piece:
        rows = self._rows(line, text)
        columns = {}
        for k, key in enumerate(self.keys):
            if key in types:
                columns[key] = pa.array([row.cells[k] for row in rows.lines], TEXT)
        self._exchange_marks(columns)
        numbers = [row.number for row in rows.lines]
        part = Part(
            columns, len(numbers), lambda row: f"line {numbers[row]}", rows.ragged
        )
        return _Piece(part, rows.odd)

    def _rows(self, first: int, text: bytes) -> _Rows:
        """Parse text into rows with one cell per column, and separate other lines."""
        width = len(self.keys)
        decoded_text = decoded(text, first, self._path, self._is_sure)
        rows = _Rows([], Odd([], []), [])
        for line in split_lines(
            decoded_text, first, self._head.delimiter, self._path, width == 1
        ):
            cells = line.cells
            n_cells = len(cells)
            if n_cells > width and line.width <= width:
                cells = cells[:width]
            elif n_cells < width and self._remarks.is_remark(line):
                rows.odd.remarks.append(line)
                continue
            elif n_cells < width and self._head.delimiter != " ":
                cells = [*cells, *[""] * (width - n_cells)]
                rows.odd.short.append(line.number)
            elif n_cells != width:
                rows.ragged.append(
                    f"line {line.number}: {n_cells} cells, but the table has {width} "
                    "columns"
                )
                continue
            rows.lines.append(line._replace(cells=cells))
        return rows

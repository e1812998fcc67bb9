"""CSV tables, plain or compressed, parsed by pyarrow in pieces of whole lines.

A piece that cannot be parsed is at hand, so the line and the column that are wrong can be named.
"""

import csv
import io
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from mmcnb.errors import InputError
from mmcnb.samples._columns import TableOptions, is_number_text
from mmcnb.samples._table import Part, Table, kind_of
from mmcnb.samples._text import plain_name, read_pieces

AHEAD = 2  # pieces that are parsed while the rows of another one are written
HEAD_BYTES = 2**18  # of the file, from which the types of columns are told
DELIMITERS = (",", ";", "\t", "|", " ")
BOM = b"\xef\xbb\xbf"
_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|infinity)"
_NUMBERS = {
    decimal: re.compile(_NUMBER.replace(r"\.", re.escape(decimal)), re.ASCII | re.I) for decimal in ".,"
}
_BOOLEANS = re.compile("true|false|0|1", re.IGNORECASE)
_WHOLE = re.compile(r"[-+]?\d+", re.ASCII)
_MISSING = frozenset(pa.csv.ConvertOptions().null_values)


class CSVTable(Table):
    """Rows of a CSV or TSV file.

    The first line is a header when one of its cells outside the columns of classes and row names is neither a
    number nor empty, or when its cells count 0, 1, 2, … as pandas names columns without names.

    Parameters
    ----------
    path : Path
        Plain, .gz, .bz2, .xz or .zst, in UTF-8.
    options : TableOptions
        A column that is given by name says that there is a header.
    delimiter : str or None, default=None
        None is a tab for a .tsv file, and a comma for others.
    decimal : {".", ","}, default="."
        Decimal point.
    show_progress : bool or None, default=None
        None shows a bar on a terminal.

    Raises
    ------
    InputError
        The file has no rows, is divided otherwise, or its first lines cannot be read.
    """

    def __init__(
        self,
        path: Path,
        options: TableOptions,
        delimiter: str | None = None,
        decimal: str = ".",
        show_progress: bool | None = None,
    ) -> None:
        self.name, self._path, self._show_progress = str(path), path, show_progress
        usual = "\t" if plain_name(path).endswith(".tsv") else ","
        self._delimiter = "\t" if delimiter == r"\t" else delimiter or usual  # a shell leaves \t as it is
        self._decimal = decimal
        self._check_marks()
        head, rows = self._read_head()
        if not rows:
            raise InputError(f"{path} has no rows: give it at least one.")
        self._header_line, top = rows[0]
        self._check_delimiter(head)
        self.width = len(top)
        self.has_names = self._is_header([cell.strip() for cell in top], options)
        if self.has_names and len(rows) == 1:
            raise InputError(f"{path} has a header and no rows: give it at least one.")
        self.names = [cell.strip() for cell in top] if self.has_names else list(map(str, range(self.width)))
        self.types = self._find_types(head)

    def _check_marks(self) -> None:
        if len(self._delimiter) != 1 or self._delimiter in '"\r\n':
            raise InputError(f"delimiter={self._delimiter!r} is no single character that can divide cells.")
        if self._decimal not in _NUMBERS:
            raise InputError(f"decimal={self._decimal!r} is unknown: give '.' or ','.")
        if self._decimal == self._delimiter:
            raise InputError(
                f"{self.name}: {self._decimal!r} cannot divide both cells and decimals: "
                "give another delimiter (--delimiter ';')."
            )

    # --- the first lines ------------------------------------------------------------------------------

    def _read_head(self) -> tuple[bytes, list[tuple[int, list[str]]]]:
        """The first lines, and the cells of two rows, if there are so many."""
        head: bytes = b""
        rows: list[tuple[int, list[str]]] = []
        for _, piece in read_pieces(self._path, False, HEAD_BYTES, quoted=True):
            head = (head + piece).removeprefix(BOM)
            rows = list(islice(self._rows(1, head), 2))
            if len(rows) == 2:
                break
        return head, rows

    def _check_delimiter(self, head: bytes) -> None:
        """Refuse a table of one column that another mark divides."""
        lines = [line for line in io.StringIO(head.decode("utf-8"), newline=None) if line.strip()][:2]

        def widths(mark: str) -> list[int]:
            return [len(row) for row in csv.reader(lines, delimiter=mark)]

        if widths(self._delimiter)[0] > 1:
            return
        others = [mark for mark in DELIMITERS if min(widths(mark)) > 1 and len(set(widths(mark))) == 1]
        if others and others != [self._delimiter]:
            raise InputError(
                f"{self.name}: {others[0]!r} seems to divide the cells and not {self._delimiter!r}: "
                f"give --delimiter {others[0]!r}."
            )

    def _is_header(self, cells: list[str], options: TableOptions) -> bool:
        given = [
            *_listed(options.columns),
            *_listed(options.drop),
            options.label_column,
            options.index_column,
        ]
        if any(isinstance(ref, str) and not all(map(is_number_text, ref.split(","))) for ref in given):
            return True
        numbers = list(map(str, range(len(cells))))
        if len(cells) > 2 and (cells == numbers or cells == ["", *numbers[:-1]]):
            return True
        outside = {
            int(ref) % len(cells) for ref in (options.label_column, options.index_column) if ref is not None
        }
        return any(
            cell not in _MISSING and not self._is_number(cell)
            for position, cell in enumerate(cells)
            if position not in outside
        )

    def _is_number(self, cell: str) -> bool:
        return _NUMBERS[self._decimal].fullmatch(cell.strip()) is not None

    def _find_types(self, head: bytes) -> list[pa.DataType]:
        """Types of the columns by the first lines; a column is what most of its cells are."""
        table = self._parse(1, head, {}, range(self.width))
        kinds = table.schema.types
        self.whole_columns = frozenset(p for p, kind in enumerate(kinds) if pa.types.is_integer(kind))
        types = []
        for column, kind in zip(table.columns, kinds, strict=True):
            if kind_of(kind) == "text":
                kind = _type_of_most(column)
            elif not pa.types.is_boolean(kind) and kind_of(kind) == "number":
                kind = pa.float64()
            types.append(kind)
        return types

    # --- all lines ------------------------------------------------------------------------------------

    def parts(self, wanted: Mapping[int, pa.DataType]) -> Iterator[Part]:
        """Read columns, piece by piece; a few pieces are parsed ahead."""

        def parse(line: int, text: bytes) -> Part:
            table = self._parse(line, text, wanted, wanted)
            return Part(table.columns, table.num_rows, partial(self._row_name, line, text))

        waiting: deque[Future[Part]] = deque()
        with ThreadPoolExecutor(AHEAD, "mmcnb-csv") as pool:
            for line, piece in read_pieces(self._path, self._show_progress, quoted=True):
                text = piece.removeprefix(BOM) if line == 1 else piece
                waiting.append(pool.submit(parse, line, text))
                if len(waiting) > AHEAD:
                    yield from _rows_of(waiting.popleft())
            while waiting:
                yield from _rows_of(waiting.popleft())

    def _parse(
        self, line: int, piece: bytes, types: Mapping[int, pa.DataType], positions: Iterable[int]
    ) -> pa.Table:
        """Some columns of a piece, with given types and with their numbers for names."""
        is_first = line <= self._header_line and self.has_names
        try:
            return pa.csv.read_csv(
                pa.BufferReader(piece),
                pa.csv.ReadOptions(
                    column_names=list(map(str, range(self.width))),
                    skip_rows=self._header_line - line + 1 if is_first else 0,
                    use_threads=False,  # a thread of pyarrow that starts as the process ends aborts it
                ),
                pa.csv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=b'"' in piece,
                    # Its call decodes the row, and pyarrow would print the error of a row that is damaged.
                    invalid_row_handler=_skip_blank if _is_utf8(piece) else None,
                ),
                pa.csv.ConvertOptions(
                    include_columns=list(map(str, positions)),
                    column_types={str(position): kind for position, kind in types.items()},
                    decimal_point=self._decimal,
                ),
            )
        except pa.ArrowInvalid as error:
            self._explain(line, piece, types)
            raise InputError(f"{self.name}, lines from {line}: {error}; correct them.") from error

    def _rows(self, line: int, piece: bytes) -> Iterator[tuple[int, list[str]]]:
        """Cells of each row with the number of its line, from 1, as the parser divides them."""
        try:
            text = piece.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = line + piece.count(b"\n", 0, error.start)
            hint = " (it looks like UTF-16)" if piece[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
            raise InputError(
                f"{self.name}, line {wrong}: this is not UTF-8 text{hint}: save the file as UTF-8."
            ) from error
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter)
        try:
            for cells in rows:
                if cells and (len(cells) > 1 or cells[0].strip()):
                    yield line + rows.line_num - 1, cells
        except csv.Error as error:
            raise InputError(f"{self.name}, line {line + rows.line_num - 1}: {error}; correct it.") from error

    def _body(self, line: int, piece: bytes) -> Iterator[tuple[int, list[str]]]:
        """The rows of a piece without the header."""
        header = self._header_line if self.has_names else 0
        return ((number, cells) for number, cells in self._rows(line, piece) if number > header)

    def _row_name(self, line: int, piece: bytes, row: int) -> str:
        numbers = (number for number, _ in self._body(line, piece))
        return f"line {next(number for count, number in enumerate(numbers) if count == row)}"

    def _explain(self, line: int, piece: bytes, types: Mapping[int, pa.DataType]) -> None:
        """Raise for the first cell or row that pyarrow's parser refused."""
        for number, cells in self._body(line, piece):
            if len(cells) != self.width:
                raise InputError(
                    f"{self.name}, line {number}: {len(cells)} cells where the first line has {self.width}: "
                    "correct or remove the line."
                )
            for position, kind in types.items():
                cell = cells[position].strip()
                if cell not in _MISSING and not self._fits(cell, kind):
                    what, remedy = self._fault(cell, kind, position)
                    raise InputError(
                        f"{self.place(position, f'line {number}')}: {cell!r} is {what}: {remedy}."
                    )

    def _fits(self, cell: str, kind: pa.DataType) -> bool:
        if pa.types.is_boolean(kind):
            return _BOOLEANS.fullmatch(cell) is not None
        if pa.types.is_integer(kind):
            return _WHOLE.fullmatch(cell) is not None
        return not pa.types.is_floating(kind) or self._is_number(cell)

    def _fault(self, cell: str, kind: pa.DataType, position: int) -> tuple[str, str]:
        """What is wrong with a cell, and the remedy."""
        what = "neither true nor false" if pa.types.is_boolean(kind) else "not a number"
        other = "," if self._decimal == "." else "."
        if _NUMBERS[other].fullmatch(cell):
            return what, f"give --decimal '{other}' where that is the decimal point"
        return what, (
            f"correct it, leave the column out with --drop {self.option(position)}, "
            "or name the column of classes with --label-column"
        )


def _type_of_most(column: pa.ChunkedArray) -> pa.DataType:
    """Numbers, flags or text: what at least half of the cells with a value are."""
    texts = pc.utf8_trim_whitespace(column)
    texts = texts.filter(pc.invert(pc.is_in(texts, pa.array(list(_MISSING), texts.type))))
    # With the other decimal point they are numbers still: that point is what is wrong.
    number = f"(?i)^({_NUMBERS['.'].pattern}|{_NUMBERS[','].pattern})$"
    for pattern, kind in ((number, pa.float64()), ("(?i)^(true|false)$", pa.bool_())):
        found = pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0
        if 2 * found >= len(texts):
            return kind
    return column.type


def _skip_blank(row: pa.csv.InvalidRow) -> str:
    return "error" if row.text.strip() else "skip"


def _is_utf8(piece: bytes) -> bool:
    try:
        return piece.isascii() or bool(piece.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _listed(references: object) -> list[object]:
    """Columns that are given as a list, as one, or not at all."""
    if isinstance(references, str | int):
        return [references]
    return list(references) if isinstance(references, list | tuple | np.ndarray) else []


def _rows_of(waiting: "Future[Part]") -> Iterator[Part]:
    """A part, once it is parsed; nothing where it has no rows."""
    part = waiting.result()
    if part.n_rows:
        yield part

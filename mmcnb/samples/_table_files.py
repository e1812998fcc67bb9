"""Files of tables, and folders of them, as columns that come in parts: CSV text, Parquet and Arrow."""

import csv
import io
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from mmcnb.errors import InputError
from mmcnb.samples._npy import step_rows
from mmcnb.samples._text import plain_name, read_pieces, table_files, table_format
from mmcnb.samples.columns import (
    GAPS,
    TEXT,
    NamedColumns,
    TableOptions,
    is_number_text,
    kind_of,
    kind_of_texts,
    largest,
    merged_by_float32,
    trimmed,
)

FLOAT32_WHOLE = 2**24  # above it float32 skips whole numbers
BUFFER_BYTES = 2**18  # read at once of each column of a Parquet file, as whole column chunks take far more
BOM = b"\xef\xbb\xbf"
Types = Mapping[str, pa.DataType]


class TypeChangedError(Exception):
    """Columns are of other types than the first rows said; no types mean that float32 is too narrow."""

    def __init__(self, types: dict[str, pa.DataType]) -> None:
        super().__init__()
        self.types = types


class Part(NamedTuple):
    """Some rows of a table: columns by their keys, and how a row is named in messages.

    ``ragged`` counts lines that were left out as their cells are too many or too few, and names the first.
    """

    columns: dict[str, pa.Array]
    n_rows: int
    place: Callable[[int], str]
    ragged: tuple[int, str] | None = None


@contextmanager
def _arrow_errors(name: Any) -> Iterator[None]:
    """One sentence about a file that pyarrow cannot read."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"{name} cannot be read ({reason}): get or write the file again.") from error


class _CSVFile:
    """Rows of a CSV or TSV file, parsed by pyarrow in pieces of whole lines.

    The first line is a header if a cell of it is text, or if its cells count 0, 1, 2, … as pandas names
    columns.
    """

    lengths = None  # it is not read by groups
    n_rows = None  # its reader shows its own progress
    cached_bytes = 0
    index_columns: tuple[int, ...] = ()

    def __init__(self, path: Path, options: TableOptions, show_progress: bool | None) -> None:
        self._path, self._options, self._show_progress = path, options, show_progress
        self._gaps = options.gaps(GAPS)
        self._number = re.compile(options.number())
        lines, notes = self._read_head()
        self._delimiter = self._find_delimiter(b"".join(lines))
        rows = list(islice(self._rows(len(notes) + 1, self._tidy(b"".join(lines))), 100))
        if not rows:
            raise InputError(f"{path} has no rows: give it at least one.")
        top = [cell.strip() for cell in rows[0][1]]
        self.has_names = self._is_header(top, [cells for _, cells in rows[1:] if len(cells) == len(top)])
        if self.has_names and len(rows) == 1:
            raise InputError(f"{path} has a header and no rows: give it at least one.")
        self._body_line = rows[0][0] + 1 if self.has_names else len(notes) + 1
        above = notes[-1].lstrip("#").split(self._delimiter) if notes and len(top) > 1 else []
        if not self.has_names and options.header is None and len(above) == len(top):
            self.has_names, top = True, [cell.strip() for cell in above]
        numbers = list(map(str, range(len(top))))
        self.names = top if self.has_names else numbers
        self.keys = self.names if len({*self.names}) == len(self.names) else numbers
        self._infer(b"".join(lines[self._body_line - len(notes) - 1 :]))

    # --- the first lines ---

    def _read_head(self) -> tuple[list[bytes], list[str]]:
        """The first lines, with at least two rows if there are so many; and the ``#`` lines above them."""
        head, lines, notes = b"", list[bytes](), 0
        for _, piece in read_pieces(self._path, False, quoted=True):
            head = (head + piece).removeprefix(BOM)
            lines = head.splitlines(keepends=True)
            notes = next((n for n, line in enumerate(lines) if not line.startswith(b"#")), len(lines))
            if sum(bool(line.strip()) for line in lines[notes:]) > 1:
                break
        return lines[notes:], [line.decode("utf-8", "replace") for line in lines[:notes]]

    def _find_delimiter(self, head: bytes) -> str:
        """The mark that is given, or the usual one, or another if that alone divides the first lines."""
        given, decimal = self._options.delimiter, self._options.decimal
        given = "\t" if given == r"\t" else given  # a shell leaves \t as it is
        if given is not None and (len(given) != 1 or given in '"\r\n'):
            raise InputError(f"delimiter={given!r} is no single character that can divide cells.")
        usual = "\t" if plain_name(self._path).endswith(".tsv") else ","
        text = io.StringIO(head.decode("utf-8", "replace"), newline=None)
        lines = list(islice((re.sub(" +", " ", line.strip(" \n")) for line in text if line.strip()), 2))

        def divides(mark: str) -> bool:
            widths = {len(row) for row in csv.reader(lines, delimiter=mark)}
            return min(widths, default=0) > 1 and (mark == usual or len(widths) == 1)

        marks = [mark for mark in (usual, ",", ";", "\t", "|", " ") if mark != decimal or b'"' in head]
        found = given or next(filter(divides, marks), usual)
        if found == decimal and b'"' not in head:
            raise InputError(
                f"{self._path}: {decimal!r} cannot divide both cells and decimals: "
                "give another delimiter (--delimiter ';')."
            )
        return found

    def _tidy(self, text: bytes) -> bytes:
        """Runs of spaces as one, if spaces divide cells; those in quotes stay."""
        if self._delimiter != " ":
            return text
        parts = text.split(b'"')
        parts[::2] = [re.sub(rb"[ \t]+", b" ", part) for part in parts[::2]]
        return re.sub(rb"(?m)^ | (?=\r?$)", b"", b'"'.join(parts))

    def _is_header(self, cells: list[str], rest: list[list[str]]) -> bool:
        options = self._options
        if options.header is not None:
            return options.header == "yes"
        roles = options.label_column, options.index_column
        given = [*(options.columns or ()), *(options.drop or ()), *roles]
        if any(isinstance(ref, str) and not all(map(is_number_text, ref.split(","))) for ref in given):
            return True
        numbers = list(map(str, range(len(cells))))
        if len(cells) > 2 and cells in (numbers, ["", *numbers[:-1]]):
            return True
        outside = {int(ref) % len(cells) for ref in roles if ref is not None}
        inside = {p: cell for p, cell in enumerate(cells) if p not in outside and cell not in self._gaps}
        if not all(map(self._number.match, inside.values())):
            return True
        are_different = len(set(inside.values())) == len(inside) > 1
        if len(rest) > 2 and are_different and all(self._is_far(p, cell, rest) for p, cell in inside.items()):
            raise InputError(
                f"{self._path}: the numbers of its first line are far from those below: "
                "give --header yes if they name the columns, or --header no."
            )
        return False

    def _is_far(self, position: int, cell: str, rest: list[list[str]]) -> bool:
        """Whether a number of the first line is outside the range of its column by more than that range."""
        cells = [cell, *(row[position] for row in rest if self._number.match(row[position].strip()))]
        marks = (self._options.thousands or "", ""), (self._options.decimal, ".")
        top, *column = (float(one.replace(*marks[0]).replace(*marks[1])) for one in cells)
        return bool(column) and max(min(column) - top, top - max(column)) > max(column) - min(column)

    def _infer(self, head: bytes) -> None:
        """Types of the columns by the first lines, and which of them float32 would merge numbers of."""
        self.types: list[pa.DataType] = []
        self.wide: set[str] = set()
        gaps = pa.array(self._gaps, TEXT)
        for key, column in self._part(self._body_line, self._tidy(head), None).columns.items():
            kind = column.type
            if kind_of(kind) == "text":
                kind = kind_of_texts(trimmed(column.cast(TEXT), gaps)) or kind
            elif (pa.types.is_integer(kind) and largest(column) > FLOAT32_WHOLE) or (
                pa.types.is_floating(kind) and 100 * merged_by_float32(column) > len(column.unique())
            ):
                self.wide.add(key)
            self.types.append(kind)

    # --- all lines ---

    def parts(self, wanted: Types, group: None = None) -> Iterator[Part]:
        """Read columns, piece by piece; two pieces are parsed ahead while the rows of another are written."""
        waiting: deque[Future[Part]] = deque()
        with ThreadPoolExecutor(2, "mmcnb-csv") as pool:
            for line, piece in read_pieces(self._path, self._show_progress, quoted=True):
                text = piece.removeprefix(BOM) if line == 1 else piece
                if line < self._body_line:
                    text = b"".join(text.splitlines(keepends=True)[self._body_line - line :])
                waiting.append(pool.submit(self._part, max(line, self._body_line), self._tidy(text), wanted))
                if len(waiting) > 2:
                    yield waiting.popleft().result()
            yield from (one.result() for one in waiting)

    def _part(self, line: int, text: bytes, types: Types | None) -> Part:
        """Columns of a piece; those of numbers are texts if one of their cells is no number."""
        if not text:
            return Part({}, 0, str)
        try:
            if b"0x" in text or b"0X" in text:  # pyarrow would read whole numbers in hexadecimal
                raise pa.ArrowInvalid
            return self._parsed(line, text, types)
        except pa.ArrowInvalid:
            for _ in self._rows(line, text):  # raises if it is not UTF-8
                pass
        types = types or {}
        texts = {key: TEXT if kind_of(kind) in ("number", "flag") else kind for key, kind in types.items()}
        try:
            return self._parsed(line, text, texts)
        except pa.ArrowInvalid as error:
            dates = {key: TEXT for key, kind in types.items() if kind_of(kind) == "date"}
            if dates:
                raise TypeChangedError(dates) from error
            raise InputError(f"{self._path}, lines from {line}: {error}; correct them.") from error

    def _parsed(self, line: int, text: bytes, types: Types | None) -> Part:
        ragged = []

        def skip(row: pa.csv.InvalidRow) -> str:
            if row.text.strip():
                ragged.append(row)
            return "skip"

        convert = pa.csv.ConvertOptions(
            include_columns=None if types is None else [*types],
            column_types=types,
            decimal_point=self._options.decimal,
            null_values=[*self._gaps, *(f" {mark}" for mark in self._gaps)],
            strings_can_be_null=types is None,
        )
        # The handler's call decodes the row, and pyarrow would print the error of a row that is damaged.
        handler = skip if _is_utf8(text) else None
        table = pa.csv.read_csv(
            pa.BufferReader(text),
            # A thread of pyarrow that starts as the process ends aborts it.
            pa.csv.ReadOptions(column_names=self.keys, use_threads=False, block_size=len(text) + 1),
            pa.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=b'"' in text, invalid_row_handler=handler
            ),
            convert,
        )
        columns = dict(zip(table.column_names, (one.combine_chunks() for one in table.columns), strict=True))
        place = partial(self._row_name, line, text)
        return Part(columns, table.num_rows, place, self._ragged(line, text, ragged) if ragged else None)

    def _rows(self, line: int, text: bytes) -> Iterator[tuple[int, list[str]]]:
        """Cells of each row with the number of its last line, as the parser divides them."""
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = line + text.count(b"\n", 0, error.start)
            hint = " (it looks like UTF-16)" if text[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
            raise InputError(
                f"{self._path}, line {wrong}: this is not UTF-8 text{hint}: save the file as UTF-8."
            ) from error
        rows = csv.reader(io.StringIO(decoded, newline=""), delimiter=self._delimiter)
        try:
            for cells in rows:
                if cells and (len(cells) > 1 or cells[0].strip()):
                    yield line + rows.line_num - 1, cells
        except csv.Error as error:
            wrong = line + rows.line_num - 1
            raise InputError(f"{self._path}, line {wrong}: {error}; correct it.") from error

    def _row_name(self, line: int, text: bytes, row: int) -> str:
        numbers = (number for number, cells in self._rows(line, text) if len(cells) == len(self.keys))
        return f"line {next(islice(numbers, row, None), '?')}"

    def _ragged(self, line: int, text: bytes, found: list[Any]) -> tuple[int, str]:
        rows = (row for row in self._rows(line, text) if len(row[1]) != len(self.keys))
        number, cells = next(rows, (line, [""] * found[0].actual_columns))
        return len(found), f"line {number}: {len(cells)} cells, but the first line has {len(self.keys)}"


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode("utf-8"))
    except UnicodeDecodeError:
        return False


class _ColumnarFile:
    """What Parquet and Arrow files share."""

    has_names = True
    wide: frozenset[str] = frozenset()
    n_rows: int | None = None
    lengths: list[int] | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        with _arrow_errors(path):
            schema = self._open()
        self.keys, self.names, self.types = schema.names, schema.names, schema.types
        twice = next((name for name in self.names if self.names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{path}: several columns are named {twice!r}: rename all but one.")
        try:  # as pandas says in the schema
            said: Any = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
            named = [name for name in said if isinstance(name, str)]
        except (ValueError, AttributeError):
            named = []
        self.index_columns = tuple(
            p for p, name in enumerate(self.names) if name in named or name.startswith("__index_level_")
        )

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Read columns, some rows at a time; of one group, or all."""
        first, step = sum((self.lengths or [])[: group or 0]), step_rows(8 * len(wanted))
        with _arrow_errors(self._path):
            for batch in self._batches([*wanted], step, group):
                for start in range(0, batch.num_rows, step):
                    part = batch.slice(start, step)
                    columns = {key: _cast(part.column(key), kind) for key, kind in wanted.items()}
                    yield Part(columns, part.num_rows, _named(first))
                    first += part.num_rows

    def _open(self) -> pa.Schema:
        raise NotImplementedError

    def _batches(self, keys: list[str], step: int, group: int | None) -> Iterator[Any]:
        raise NotImplementedError


def _named(first: int) -> Callable[[int], str]:
    return lambda row: f"row {first + row}"


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if column.type == kind else column.cast(kind)


class _ParquetFile(_ColumnarFile):
    """Rows of a Parquet file, read without more than pages of a row group in memory."""

    def _open(self) -> pa.Schema:
        self._metadata = pa.parquet.read_metadata(self._path)
        groups = [self._metadata.row_group(number) for number in range(self._metadata.num_row_groups)]
        self._numbers = [number for number, group in enumerate(groups) if group.num_rows]
        self.lengths = [groups[number].num_rows for number in self._numbers]
        self.n_rows = self._metadata.num_rows
        chunks = (group.column(k) for group in groups[:1] for k in range(group.num_columns))
        # A page has about 1 MiB.
        self.cached_bytes = sum(min(BUFFER_BYTES + 2**20, one.total_uncompressed_size) for one in chunks)
        return self._metadata.schema.to_arrow_schema()

    def _batches(self, keys: list[str], step: int, group: int | None) -> Iterator[Any]:
        numbers = self._numbers if group is None else [self._numbers[group]]
        # Threads for columns take more memory and save nothing.
        options = {"metadata": self._metadata, "buffer_size": BUFFER_BYTES, "pre_buffer": False}
        with pa.parquet.ParquetFile(self._path, **options) as file:
            yield from file.iter_batches(step, row_groups=numbers, columns=keys, use_threads=False)


class _ArrowFile(_ColumnarFile):
    """Rows of an Arrow IPC file (Feather) or, without groups, of an Arrow stream."""

    def _open(self) -> pa.Schema:
        with self._reader([0]) as reader:
            self.is_file = hasattr(reader, "get_batch")
            if self.is_file and reader.schema.names:
                counts = [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]
                self._numbers = [number for number, count in enumerate(counts) if count]
                self.lengths = [counts[number] for number in self._numbers]
        with self._reader() as reader:
            self.cached_bytes = 16 * len(reader.schema.names) * max(self.lengths or [0])
            return reader.schema

    @contextmanager
    def _reader(self, positions: list[int] | None = None) -> Iterator[Any]:
        options = pa.ipc.IpcReadOptions(included_fields=sorted(positions or []), use_threads=False)
        with pa.OSFile(str(self._path)) as file:
            is_file = file.read(6) == b"ARROW1"  # a stream has no mark
            file.seek(0)
            opener: Any = pa.ipc.open_file if is_file else pa.ipc.open_stream
            with opener(file, options=options) as reader:
                yield reader

    def _batches(self, keys: list[str], step: int, group: int | None) -> Iterator[Any]:
        with self._reader([self.keys.index(key) for key in keys]) as reader:
            if self.lengths is None:
                yield from reader
            else:
                numbers = self._numbers if group is None else [self._numbers[group]]
                yield from map(reader.get_batch, numbers)


class Table(NamedColumns):
    """One file, or the files below a folder, whose columns are joined by name.

    A folder named ``year=2024`` adds a column ``year`` to the files below it.

    Attributes
    ----------
    keys : list of str
        What a column is called in parts.
    types : list of pyarrow.DataType
        Of the columns, as far as is known before all rows are read.
    wide : set of str
        Columns whose numbers float32 would merge.
    is_text : bool
    paths : list of Path
    lengths : list of int or None
        Rows of each group that can be read by itself; None if there are none.
    n_rows : int or None
        None if the reader shows its own progress.
    cached_bytes : int
        What is in memory at once, beyond a few megabytes.
    """

    def __init__(self, path: Path, options: TableOptions, show_progress: bool | None = False) -> None:
        form = table_format(path)
        self.name, self.is_text, self.paths = str(path), form == "csv", table_files(path)
        for name in () if self.is_text else ("header", "thousands", "decimal", "delimiter"):
            if getattr(options, name) != getattr(TableOptions, name):
                raise InputError(f"{name} is of CSV files, but {path} is none: leave it out.")
        columnar = _ParquetFile if form == "parquet" else _ArrowFile
        files: list[Any] = [
            _CSVFile(one, options, show_progress) if self.is_text else columnar(one) for one in self.paths
        ]
        above = [one.relative_to(path).parts[:-1] if path.is_dir() else () for one in self.paths]
        named = [[part.partition("=") for part in parts if "=" in part] for parts in above]
        keys = [{unquote(key): unquote(value) for key, _, value in parts} for parts in named]
        self._files = list(zip(files, keys, strict=True))
        first = files[0]
        self.has_names, self.index_columns = first.has_names, first.index_columns
        self.wide = {key for file in files for key in file.wide}
        self._join(path)
        self.names = first.names if len(files) == 1 and not keys[0] else self.keys
        groups = [(k, n) for k, file in enumerate(files) for n in range(len(file.lengths or ()))]
        self.lengths = (
            None if any(file.lengths is None for file in files) else [files[k].lengths[n] for k, n in groups]
        )
        self._groups = groups
        counts = [file.n_rows for file in files]
        self.n_rows = None if None in counts else sum(counts)
        self.cached_bytes = max(file.cached_bytes for file in files)

    def _join(self, path: Path) -> None:
        """Types of the columns of all files."""
        types: dict[str, pa.DataType] = {}
        for one, (file, _) in zip(self.paths, self._files, strict=True):
            if (file.has_names, file.has_names or file.keys) != (
                self.has_names,
                self.has_names or [*types],
            ) and types:
                raise InputError(f"{one} has another header than {self.paths[0]}: give all files the same.")
            for key, kind in zip(file.keys, file.types, strict=True):
                types[key] = self._common_type(one, key, types.get(key, kind), kind)
        for key in (key for key in self._files[0][1] if all(key in keys for _, keys in self._files)):
            if key in types:
                raise InputError(f"{path}: {key!r} names a column and folders: rename the folders.")
            is_whole = all(is_number_text(keys[key]) for _, keys in self._files)
            types[key] = pa.int64() if is_whole else TEXT
        if not types:
            raise InputError(f"{path} has no columns: give it at least one.")
        self.keys, self.types = [*types], [*types.values()]

    def _common_type(self, path: Path, key: str, known: pa.DataType, kind: pa.DataType) -> pa.DataType:
        try:
            schemas = [pa.schema({key: one}) for one in (known, kind)]
            return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        except pa.ArrowException as error:
            if self.is_text:
                return TEXT
            raise InputError(
                f"{path}: column {key!r} is {kind}, but {known} before: write one type in all files."
            ) from error

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Read columns, given by their keys, with the types that they are to have; of one group, or all."""
        number, inside = (None, None) if group is None else self._groups[group]
        for k, (file, keys) in enumerate(self._files):
            if number in (None, k):
                inner = {key: kind for key, kind in wanted.items() if key in file.keys}
                for part in file.parts(inner, inside):
                    yield self._filled(k, part, keys, wanted)

    def _filled(self, number: int, part: Part, keys: dict[str, str], wanted: Types) -> Part:
        """A part of a file with the columns that other files or its folder have."""
        if len(self.paths) == 1 and not keys:
            return part
        name, place = self.paths[number].relative_to(self.name).as_posix(), part.place
        columns = dict(part.columns)
        for key, kind in wanted.items():
            if key not in columns:
                columns[key] = pa.repeat(pa.scalar(keys.get(key), pa.string()).cast(kind), part.n_rows)
        return part._replace(columns=columns, place=lambda row: f"{name}, {place(row)}")

"""Files of tables, and folders of them, as columns that come in parts: CSV text, Parquet and Arrow."""

import csv
import io
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from mmcnb.errors import InputError, worded
from mmcnb.samples.npy import step_rows
from mmcnb.samples.text import plain_name, read_pieces, table_files, table_format
from mmcnb.tables.columns import (
    TEXT,
    NamedColumns,
    TableOptions,
    is_numeral,
    kind_of,
    kind_of_texts,
    trimmed,
)

BUFFER_BYTES = (
    2**18
)  # read at once of each column of a Parquet file, as whole column chunks take far more
BOM = b"\xef\xbb\xbf"
Types = Mapping[str, pa.DataType]


class Part(NamedTuple):
    """Some rows of a table: columns by their keys, and how a row is named in messages.

    Lines whose cells are too many or too few are left out; ``ragged`` has a sentence
    about each.
    """

    columns: dict[str, pa.Array]
    n_rows: int
    place: Callable[[int], str]
    ragged: Sequence[str] = ()


# --- text -----------------------------------------------------------------------------


class _CSVFile:
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
        self._gaps, self._number = (
            options.gaps(is_text=True),
            re.compile(options.number()),
        )
        self.keys: list[str] = []
        lines, n_notes = self._read_head()
        self._delimiter = self._find_delimiter(b"".join(lines))
        rows = list(islice(self._rows(n_notes + 1, self._tidy(b"".join(lines))), 100))
        if not rows:
            raise InputError(f"{path} has no rows: give it at least one.")
        top = [cell.strip() for cell in rows[0][1]]
        self.has_names = self._is_header(
            top, [cells for _, cells in rows[1:] if len(cells) == len(top)]
        )
        if self.has_names and len(rows) == 1:
            raise InputError(f"{path} has a header and no rows: give it at least one.")
        self._body_line = rows[0][0] + 1 if self.has_names else n_notes + 1
        numbers = list(map(str, range(len(top))))
        self.names = top if self.has_names else numbers
        self.keys = self.names if len({*self.names}) == len(self.names) else numbers
        head = self._part(
            self._body_line, b"".join(lines[self._body_line - n_notes - 1 :]), None
        )
        self.types = [self._type(column) for column in head.columns.values()]

    # The first lines

    def _read_head(self) -> tuple[list[bytes], int]:
        """The first lines, with two rows if there are so many, and the number of ``#`` lines above them."""
        head = b""
        lines = list[bytes]()
        n_notes = 0
        for _, piece in read_pieces(self._path, False, quoted=True):
            head = (head + piece).removeprefix(BOM)
            lines = head.splitlines(keepends=True)
            n_notes = next(
                (n for n, line in enumerate(lines) if not line.startswith(b"#")),
                len(lines),
            )
            if sum(bool(line.strip()) for line in lines[n_notes:]) > 1:
                break
        return lines[n_notes:], n_notes

    def _find_delimiter(self, head: bytes) -> str:
        """The mark that is given, or the usual one, or another if that alone divides the first lines."""
        decimal = self._options.decimal
        usual = "\t" if plain_name(self._path).endswith(".tsv") else ","
        text = io.StringIO(head.decode("utf-8", "replace"), newline=None)
        lines = list(
            islice(
                (re.sub(" +", " ", line.strip(" \n")) for line in text if line.strip()),
                2,
            )
        )

        def divides(mark: str) -> bool:
            widths = {len(row) for row in csv.reader(lines, delimiter=mark)}
            return min(widths, default=0) > 1 and (mark == usual or len(widths) == 1)

        marks = [mark for mark in (usual, *",;\t| ") if mark != decimal or b'"' in head]
        found = self._options.delimiter or next(filter(divides, marks), usual)
        if found == decimal and b'"' not in head:
            fault = f"{self._path}: {decimal!r} cannot divide both cells and decimals"
            raise InputError(f"{fault}: give another delimiter (--delimiter ';').")
        return found

    def _is_header(self, top: list[str], rest: list[list[str]]) -> bool:
        options = self._options
        if options.header is not None:
            return options.header == "yes"
        roles = options.label_column, options.index_column
        given = [*(options.columns or ()), *(options.drop or ()), *roles]
        if any(
            isinstance(ref, str) and not all(map(is_numeral, ref.split(",")))
            for ref in given
        ):
            return True
        numbers = list(map(str, range(len(top))))
        if len(top) > 2 and top in (numbers, ["", *numbers[:-1]]):
            return True
        outside = {int(ref) % len(top) for ref in roles if ref is not None}
        inside = [
            p
            for p, cell in enumerate(top)
            if p not in outside and cell not in self._gaps
        ]
        if not all(self._number.match(top[p]) for p in inside):
            return True
        values = [self._value(top[p]) for p in inside]
        is_doubtful = len(rest) > 2 and len({*values}) == len(values) > 1
        if is_doubtful and all(self._is_far(p, top, rest) for p in inside):
            fault = (
                f"{self._path}: the numbers of its first line are far from those below"
            )
            raise InputError(
                f"{fault}: give --header yes if they name the columns, or --header no."
            )
        return False

    def _value(self, cell: str) -> float:
        """The number of a cell; NaN of other cells."""
        thousands = self._options.thousands or ""
        decimal = self._options.decimal
        is_number = self._number.match(cell.strip())
        return (
            float(cell.replace(thousands, "").replace(decimal, "."))
            if is_number
            else np.nan
        )

    def _is_far(self, position: int, top: list[str], rest: list[list[str]]) -> bool:
        """Whether a number of the first line is outside the range of its column by more than that range."""
        first, *column = [self._value(row[position]) for row in (top, *rest)]
        low = np.nanmin([np.inf, *column])
        high = np.nanmax([-np.inf, *column])
        return bool(max(low - first, first - high) > high - low)

    def _type(self, column: pa.Array) -> pa.DataType:
        """Type of a column by its first cells."""
        if kind_of(column.type) != "text":
            return column.type
        return (
            kind_of_texts(trimmed(column.cast(TEXT), pa.array(self._gaps, TEXT)))
            or column.type
        )

    # All lines

    def parts(self, wanted: Types, group: None = None) -> Iterator[Part]:
        """Read columns, piece by piece; two pieces are parsed ahead while the rows of another are written."""
        waiting: deque[Future[Part]] = deque()
        with ThreadPoolExecutor(2, "mmcnb-csv") as pool:
            for line, piece in read_pieces(
                self._path, self._show_progress, quoted=True
            ):
                text = piece.removeprefix(BOM) if line == 1 else piece
                if line < self._body_line:
                    text = b"".join(
                        text.splitlines(keepends=True)[self._body_line - line :]
                    )
                waiting.append(
                    pool.submit(self._part, max(line, self._body_line), text, wanted)
                )
                if len(waiting) > 2:
                    yield waiting.popleft().result()
            yield from (one.result() for one in waiting)

    def _tidy(self, text: bytes) -> bytes:
        """Runs of spaces as one, if spaces divide cells; those in quotes stay."""
        if self._delimiter != " ":
            return text
        parts = text.split(b'"')
        parts[::2] = [re.sub(rb"[ \t]+", b" ", part) for part in parts[::2]]
        return re.sub(rb"(?m)^ | (?=\r?$)", b"", b'"'.join(parts))

    def _part(self, line: int, text: bytes, types: Types | None) -> Part:
        """Columns of a piece of whole lines; all are texts if one of its cells is not of its type."""
        text = self._tidy(text)
        if not text:
            return Part({}, 0, str)
        try:
            if (
                b"0x" in text or b"0X" in text
            ):  # pyarrow would read whole numbers in hexadecimal
                raise pa.ArrowInvalid
            # A thread of pyarrow that starts as the process ends aborts it.
            reading = pa.csv.ReadOptions(
                column_names=self.keys, use_threads=False, block_size=len(text) + 1
            )
            parsing = pa.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=b'"' in text
            )
            of_types: Any = {
                "include_columns": None if types is None else [*types],
                "column_types": types,
            }
            marks: Any = {
                "null_values": [*self._gaps, *(f" {mark}" for mark in self._gaps)]
            }
            marks |= {
                "decimal_point": self._options.decimal,
                "strings_can_be_null": types is None,
            }
            converting = pa.csv.ConvertOptions(**of_types, **marks)
            table = pa.csv.read_csv(pa.BufferReader(text), reading, parsing, converting)
        except pa.ArrowInvalid:
            return self._part_of_texts(line, text, types)
        columns = {key: table[key].combine_chunks() for key in table.column_names}
        return Part(
            columns,
            table.num_rows,
            lambda row: f"line {self._whole_rows(line, text)[0][row][0]}",
        )

    def _part_of_texts(self, line: int, text: bytes, types: Types | None) -> Part:
        whole, ragged = self._whole_rows(line, text)
        places = {
            key: k for k, key in enumerate(self.keys) if types is None or key in types
        }
        columns = {
            key: pa.array([cells[k] for _, cells in whole], TEXT)
            for key, k in places.items()
        }
        known = f"but the first line has {len(self.keys)}"
        faults = [
            f"line {number}: {len(cells)} cells, {known}" for number, cells in ragged
        ]
        return Part(columns, len(whole), lambda row: f"line {whole[row][0]}", faults)

    def _whole_rows(self, line: int, text: bytes) -> tuple[list[Any], list[Any]]:
        """Rows with as many cells as there are columns, and other rows."""
        rows = list(self._rows(line, text))
        width = len(self.keys)
        return [row for row in rows if len(row[1]) == width], [
            row for row in rows if len(row[1]) != width
        ]

    def _rows(self, line: int, text: bytes) -> Iterator[tuple[int, list[str]]]:
        """Cells of each row with the number of its last line, as the parser divides them."""
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = line + text.count(b"\n", 0, error.start)
            hint = (
                " (it looks like UTF-16)"
                if text[:2] in (b"\xff\xfe", b"\xfe\xff")
                else ""
            )
            fault = f"{self._path}, line {wrong}: this is not UTF-8 text{hint}"
            raise InputError(f"{fault}: save the file as UTF-8.") from error
        rows = csv.reader(io.StringIO(decoded, newline=""), delimiter=self._delimiter)
        try:
            for cells in rows:
                # A line of spaces is a missing value of a single column, and no row of
                # several.
                if cells and (
                    len(cells) > 1 or len(self.keys) == 1 or cells[0].strip()
                ):
                    yield line + rows.line_num - 1, cells
        except csv.Error as error:
            wrong = line + rows.line_num - 1
            raise InputError(
                f"{self._path}, line {wrong}: {error}; correct it."
            ) from error


# --- columns --------------------------------------------------------------------------


class _ColumnarFile:
    """Rows of a Parquet or Arrow file, read some at a time."""

    has_names = True

    def __init__(self, path: Path, open_file: Callable[[Path], "_Opened"]) -> None:
        known = pa.ArrowException, OSError, EOFError
        self._worded = partial(
            worded, f"{path} cannot be read", "get or write the file again", *known
        )
        with self._worded():
            schema, self.lengths, self.cached_bytes, self._batches = open_file(path)
        self.keys = schema.names
        self.names = schema.names
        self.types = schema.types
        twice = next((name for name in self.names if self.names.count(name) > 1), None)
        if twice is not None:
            raise InputError(
                f"{path}: several columns are named {twice!r}: rename all but one."
            )
        said: list[Any] = []
        with suppress(ValueError, LookupError, TypeError):  # it is of no pandas frame
            said = [*schema.pandas_metadata["index_columns"]]
        is_index = [
            name in said or name.startswith("__index_level_") for name in self.names
        ]
        self.index_columns = tuple(np.flatnonzero(is_index).tolist())

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Read columns, some rows at a time; of one group, or all."""
        first = sum((self.lengths or [])[: group or 0])
        with self._worded():
            for batch in self._batches([*wanted], step_rows(8 * len(wanted)), group):
                # Arrow's own reader does not see buffers that are too short
                batch.validate()
                yield from parts_of(batch, wanted, first)
                first += batch.num_rows


# Columns of a file, rows of each group, bytes in memory at once, and the reader of
# batches: it takes names of columns, rows of a batch and the number of a group, or None
# for all.
_Opened = tuple[
    pa.Schema, list[int] | None, int, Callable[..., Iterator[pa.RecordBatch]]
]


def _open_parquet(path: Path) -> _Opened:
    """A Parquet file, of which no more than pages of a row group are in memory."""
    metadata = pa.parquet.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    # Threads for columns take more memory and save nothing.
    options = {"metadata": metadata, "buffer_size": BUFFER_BYTES, "pre_buffer": False}

    def batches(
        keys: list[str], step: int, group: int | None
    ) -> Iterator[pa.RecordBatch]:
        with pa.parquet.ParquetFile(path, **options) as file:
            numbers = None if group is None else [group]
            yield from file.iter_batches(
                step, row_groups=numbers, columns=keys, use_threads=False
            )

    chunks = [group.column(k) for group in groups[:1] for k in range(group.num_columns)]
    # A page has about 1 MiB.
    cached = sum(
        min(BUFFER_BYTES + 2**20, chunk.total_uncompressed_size) for chunk in chunks
    )
    return (
        metadata.schema.to_arrow_schema(),
        [one.num_rows for one in groups],
        cached,
        batches,
    )


def _open_arrow(path: Path) -> _Opened:
    """An Arrow IPC file (Feather) or, without groups, an Arrow stream."""

    @contextmanager
    def reading(fields: list[int]) -> Iterator[Any]:
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        with pa.OSFile(str(path)) as file:
            is_file = file.read(6) == b"ARROW1"  # a stream has no mark
            file.seek(0)
            with (pa.ipc.open_file if is_file else pa.ipc.open_stream)(
                file, options=options
            ) as reader:
                yield reader

    def batches(
        keys: list[str], step: int, group: int | None
    ) -> Iterator[pa.RecordBatch]:
        with reading(sorted(map(schema.names.index, keys))) as reader:
            if lengths is None:
                yield from reader
            else:
                yield from map(
                    reader.get_batch, range(len(lengths)) if group is None else [group]
                )

    with reading([]) as reader:
        schema = reader.schema
    lengths = None
    with reading([0]) as reader:
        if hasattr(reader, "get_batch") and schema.names:
            lengths = [
                reader.get_batch(number).num_rows
                for number in range(reader.num_record_batches)
            ]
    return schema, lengths, 16 * len(schema.names) * max(lengths or [0]), batches


def _row_place(first: int) -> Callable[[int], str]:
    """Return the function that names a row in messages, counted from ``first``."""
    return lambda row: f"row {first + row}"


def parts_of(batch: pa.RecordBatch, wanted: Types, first: int = 0) -> Iterator[Part]:
    """Some columns of a batch, some rows at a time; ``first`` is the number of its first row."""
    step = step_rows(8 * len(wanted))
    for start in range(0, batch.num_rows, step):
        part = batch.slice(start, step)
        columns = {key: part.column(key).cast(kind) for key, kind in wanted.items()}
        yield Part(columns, part.num_rows, _row_place(first + start))


# --- one file, or several -------------------------------------------------------------


class Table(NamedColumns):
    """One file, or the files below a folder, whose columns are joined by name.

    A folder named ``year=2024`` adds a column ``year`` to the files below it.

    Attributes
    ----------
    keys : list of str
        Names of the columns in parts.
    types : list of pyarrow.DataType
        Of the columns, as far as is known before all rows are read.
    is_text : bool
    paths : list of Path
    lengths : list of int or None
        Rows of each group that can be read by itself; None if there are none.
    cached_bytes : int
        In memory at once, beyond a few megabytes.
    """

    def __init__(
        self, path: Path, options: TableOptions, show_progress: bool | None = False
    ) -> None:
        form = table_format(path)
        self.name, self.is_text, self.paths = (
            str(path),
            form == "csv",
            table_files(path),
        )
        for name in (
            () if self.is_text else ("header", "thousands", "decimal", "delimiter")
        ):
            if getattr(options, name) != getattr(TableOptions, name):
                raise InputError(
                    f"{name} is of CSV files, but {path} is none: leave it out."
                )
        opener = _open_parquet if form == "parquet" else _open_arrow
        self._files: list[Any] = [
            _CSVFile(one, options, show_progress)
            if self.is_text
            else _ColumnarFile(one, opener)
            for one in self.paths
        ]
        first = self._files[0]
        groups = [file.lengths for file in self._files]
        self.has_names = first.has_names
        self.index_columns = first.index_columns
        self.lengths = None if None in groups else list(chain.from_iterable(groups))
        self.cached_bytes = max(file.cached_bytes for file in self._files)
        self._folders = [
            _values_of_folders(one.relative_to(path)) for one in self.paths
        ]
        types = self._types_of_files() | self._types_of_folders()
        if not types:
            raise InputError(f"{path} has no columns: give it at least one.")
        self.keys, self.types = [*types], [*types.values()]
        self.names = first.names if len(self.keys) == len(first.names) else self.keys

    def _types_of_files(self) -> dict[str, pa.DataType]:
        first = self._files[0]
        kinds = dict[str, list[pa.DataType]]()
        for path, file in zip(self.paths, self._files, strict=True):
            if file.has_names != first.has_names or not (
                file.has_names or file.keys == first.keys
            ):
                raise InputError(
                    f"{path} has another header than {self.paths[0]}: give all files the same."
                )
            for key, kind in zip(file.keys, file.types, strict=True):
                kinds.setdefault(key, []).append(kind)
        return {key: self._common_type(key, found) for key, found in kinds.items()}

    def _common_type(self, key: str, kinds: list[pa.DataType]) -> pa.DataType:
        try:
            schemas = [pa.schema({key: kind}) for kind in kinds]
            return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        except pa.ArrowException as error:
            if self.is_text:
                return TEXT
            found = " and ".join(dict.fromkeys(map(str, kinds)))
            sentence = f"{self.name}: column {key!r} is {found} in its files: write one type in all files."
            raise InputError(sentence) from error

    def _types_of_folders(self) -> dict[str, pa.DataType]:
        keys = [
            key
            for key in self._folders[0]
            if all(key in values for values in self._folders)
        ]
        for key in keys:
            if any(key in file.keys for file in self._files):
                raise InputError(
                    f"{self.name}: {key!r} names a column and folders: rename the folders."
                )
        is_whole = {
            key: all(is_numeral(values[key]) for values in self._folders)
            for key in keys
        }
        return {key: pa.int64() if is_whole[key] else TEXT for key in keys}

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Read columns, given by their keys, with the types that they are to have; of one group, or all."""
        for path, file, values in zip(
            self.paths, self._files, self._folders, strict=True
        ):
            count = len(file.lengths or ())
            if group is None or 0 <= group < count:
                inside = {key: kind for key, kind in wanted.items() if key in file.keys}
                name = (
                    ""
                    if len(self.paths) == 1
                    else f"{path.relative_to(self.name).as_posix()}, "
                )
                for part in file.parts(inside, group):
                    yield _filled(part, name, values, wanted)
            group = None if group is None else group - count


def _values_of_folders(path: Path) -> dict[str, str]:
    """Values of the columns that folders like ``year=2024`` add."""
    parts = [part.partition("=") for part in path.parts[:-1] if "=" in part]
    return {unquote(key): unquote(value) for key, _, value in parts}


def _filled(part: Part, name: str, values: dict[str, str], wanted: Types) -> Part:
    """A part of a file with the columns that other files or its folder have."""
    columns = dict(part.columns)
    place = part.place
    for key in wanted.keys() - columns.keys():
        columns[key] = pa.repeat(
            pa.scalar(values.get(key), pa.string()).cast(wanted[key]), part.n_rows
        )
    return part._replace(columns=columns, place=lambda row: name + place(row))

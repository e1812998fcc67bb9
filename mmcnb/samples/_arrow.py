"""Tables in columns: Parquet files, folders of them, and Arrow IPC (Feather) files."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from mmcnb.errors import InputError
from mmcnb.samples._npy import step_rows
from mmcnb.samples._table import Part, Table

BUFFER_BYTES = 2**18  # read at once of each column of a Parquet file
PAGE_BYTES = 2**20  # of a column that is decoded at once, as most writers make it
FILE_MARK = b"ARROW1"  # at the beginning of an Arrow file; a stream has none
ROW_NAMES = "__index_level_"  # how pandas names an index that has no name


@contextmanager
def arrow_errors(name: str) -> Iterator[None]:
    """One sentence about a file that pyarrow cannot read."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"{name} cannot be read ({reason}): get or write the file again.") from error


class ArrowTable(Table):
    """What Parquet and Arrow files share: the columns of a schema."""

    has_names = True

    def _describe(self, name: str, schema: pa.Schema, n_rows: int | None) -> None:
        self.name, self.names, self.types, self.n_rows = name, schema.names, schema.types, n_rows
        self.index_columns = index_columns(schema)
        if not self.names:
            raise InputError(f"{name} has no columns: give it at least one.")
        if n_rows == 0:
            raise InputError(f"{name} has no rows: give it at least one.")

    def places(self, schema: pa.Schema, positions: Iterable[int]) -> list[int]:
        """Where columns of the table stand in what was read of it."""
        if schema.names == self.names:
            return list(positions)
        return [schema.get_field_index(self.names[position]) for position in positions]

    def _parts(self, batches: Iterator[pa.RecordBatch], wanted: Mapping[int, pa.DataType]) -> Iterator[Part]:
        """Parts of a few megabytes."""
        first, step = 0, step_rows(8 * len(wanted))
        for batch in batches:
            places = self.places(batch.schema, wanted)
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                columns = [
                    pa.chunked_array([_cast(part.column(place), kind)])
                    for place, kind in zip(places, wanted.values(), strict=True)
                ]
                yield Part(columns, part.num_rows, partial(_row_name, first))
                first += part.num_rows


def _row_name(first: int, row: int) -> str:
    return f"row {first + row}"


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(kind)


def index_columns(schema: pa.Schema) -> tuple[int, ...]:
    """Columns that hold the index of a frame, as pandas says in the schema."""
    try:
        said: Any = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    except (ValueError, AttributeError):
        said = []
    named = [name for name in said if isinstance(name, str)]
    return tuple(p for p, name in enumerate(schema.names) if name in named or name.startswith(ROW_NAMES))


class ParquetTable(ArrowTable):
    """Rows of a Parquet file, or of all those in a folder, in the order of their names.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.files = parquet_files(path)
        self.schema, self.metadata = read_schemas(self.files)
        self._describe(str(path), self.schema, sum(one.num_rows for one in self.metadata))
        self.cached_bytes = max(map(_column_bytes, self.metadata))

    def parts(self, wanted: Mapping[int, pa.DataType]) -> Iterator[Part]:
        """Read columns, some rows at a time, without holding a row group."""
        names = [self.names[position] for position in wanted]

        def batches() -> Iterator[pa.RecordBatch]:
            for path, metadata in zip(self.files, self.metadata, strict=True):
                with arrow_errors(str(path)):
                    # Buffers of whole column chunks, and threads for columns, hold far more and save nothing.
                    buffers = {"buffer_size": BUFFER_BYTES, "pre_buffer": False}
                    with pa.parquet.ParquetFile(path, metadata=metadata, **buffers) as file:
                        step = step_rows(8 * len(wanted))
                        yield from file.iter_batches(step, columns=names, use_threads=False)

        yield from self._parts(batches(), wanted)


def _column_bytes(metadata: Any) -> int:
    """Bytes of the parts of columns that are in memory at once, by the first row group of a file."""
    if not metadata.num_row_groups:
        return 0
    group = metadata.row_group(0)
    sizes = (group.column(number).total_uncompressed_size for number in range(group.num_columns))
    return sum(min(BUFFER_BYTES + PAGE_BYTES, size) for size in sizes)


def parquet_files(path: Path) -> list[Path]:
    """A file, or the Parquet files below a folder; names that begin with . or _ hold no rows."""
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
    )


def read_schemas(files: list[Path]) -> tuple[pa.Schema, list[Any]]:
    """The schema that Parquet files share, and the metadata of each."""
    schemas, metadata = [], []
    for path in files:
        with arrow_errors(str(path)):
            one = pa.parquet.read_metadata(path)
            schemas.append(one.schema.to_arrow_schema())
            metadata.append(one)
        if schemas[-1].names != schemas[0].names or schemas[-1].types != schemas[0].types:
            raise InputError(
                f"{path} has other columns than {files[0]}: keep files of the same columns in a folder."
            )
    names = schemas[0].names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{files[0]}: several columns are named {twice!r}: rename all but one.")
    return schemas[0], metadata


class IPCTable(ArrowTable):
    """Rows of an Arrow IPC file (Feather), or of an Arrow stream.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with arrow_errors(str(path)), self._opened() as reader:
            self._describe(str(path), reader.schema, None)
        self.cached_bytes = 2 * 8 * len(self.names) * self._batch_rows()

    def _batch_rows(self) -> int:
        """Rows of the first batch, of which one column is read; 0 where batches cannot be picked."""
        with arrow_errors(self.name), pa.memory_map(str(self._path)) as file:
            if file.read(6) != FILE_MARK:
                return 0
            reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=[0]))
            return reader.get_batch(0).num_rows if reader.num_record_batches else 0

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with pa.OSFile(str(self._path)) as file:
            mark = file.read(6)
            file.seek(0)
            opener = pa.ipc.open_file if mark == FILE_MARK else pa.ipc.open_stream
            with opener(file) as reader:
                yield reader

    def parts(self, wanted: Mapping[int, pa.DataType]) -> Iterator[Part]:
        """Read columns, batch by batch."""

        def batches() -> Iterator[pa.RecordBatch]:
            with arrow_errors(self.name), self._opened() as reader:
                if hasattr(reader, "num_record_batches"):
                    yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
                else:
                    yield from reader

        yield from self._parts(batches(), wanted)

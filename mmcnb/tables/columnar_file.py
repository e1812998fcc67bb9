"""Read Parquet files, and Arrow files and streams, in batches of rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from pyarrow import types

from mmcnb.errors import worded
from mmcnb.samples.frames import notes_on_names, unique_names
from mmcnb.samples.npy import step_rows
from mmcnb.tables.arrow import TEXT, kind_of
from mmcnb.tables.base import Part, Types, parts_of
from mmcnb.tables.nested import Place, is_nested, leaf_arrays, leaves_of
from mmcnb.tables.plain_types import has_order, plain_type, texts_of_order

# Bytes read at once from each column of a Parquet file. Reading whole column chunks
# would need far more memory.
BUFFER_BYTES = 2**18
CATEGORIES = pa.dictionary(pa.int32(), TEXT)
PAGE_BYTES = 2**20  # approximate size of a page of a Parquet file
TEXT_BYTES = 32  # smallest assumed size of a text in memory


class OpenedFile(NamedTuple):
    """Properties of a file that are known before its rows are read.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and Arrow types of the columns.
    lengths : list of int or None
        Number of rows in each group that can be read separately; None if there are no
        groups.
    cached_bytes : int
        Memory, in bytes, that a reader of the file needs in addition to a batch of
        rows.
    batches : callable
        Yields record batches. Its arguments are the column indices in ascending order,
        the maximum number of rows in a batch, and the index of a group, or None to read
        all groups.
    has_names : bool
        Whether columns have names.
    notes : tuple of str
        Sentences about decisions made when the file was opened.
    blocks : tuple of str
        For each column, the name of the list that it is an element of, or ``""``.
    sources : tuple of str
        For each column, the name of the column of the file that contains it; empty if
        no column is split.
    """

    schema: pa.Schema
    lengths: list[int] | None
    cached_bytes: int
    batches: Callable[[list[int], int, int | None], Iterator[pa.RecordBatch]]
    has_names: bool = True
    notes: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def opened_in_memory(table: pa.Table) -> OpenedFile:
    """Return an `OpenedFile` whose rows are those of a table in memory."""

    def batches(
        positions: list[int], step: int, group: int | None
    ) -> Iterator[pa.RecordBatch]:
        rows = table.select(positions).combine_chunks()
        yield from rows.to_batches(max_chunksize=step)

    return OpenedFile(
        schema=table.schema, lengths=None, cached_bytes=table.nbytes, batches=batches
    )


def _flat(opened: OpenedFile, name: str) -> OpenedFile:
    """Return the file with its lists and objects split into plain columns."""

    def columns(source: int) -> Iterator[pa.Array]:
        for batch in opened.batches([source], 1024, None):
            yield batch.column(0)

    leaves = leaves_of(opened.schema, columns)
    if not is_nested(leaves):
        return opened

    def batches(
        positions: list[int], step: int, group: int | None
    ) -> Iterator[pa.RecordBatch]:
        wanted = [leaves[position] for position in positions]
        sources = sorted({leaf.source for leaf in wanted})
        first = sum((opened.lengths or [])[: group or 0])
        for batch in opened.batches(sources, step, group):
            arrays = leaf_arrays(batch, sources, wanted, Place(name, first))
            yield pa.record_batch(arrays, [leaf.name for leaf in wanted])
            first += batch.num_rows

    fields = [pa.field(leaf.name, leaf.type) for leaf in leaves]
    names = unique_names(opened.schema.names)
    return opened._replace(
        schema=pa.schema(fields, opened.schema.metadata),
        batches=batches,
        blocks=tuple(leaf.block for leaf in leaves),
        sources=tuple(names[leaf.source] for leaf in leaves),
    )


class ColumnarFile:
    """Rows of a file in a typed format such as Parquet or Arrow.

    Parameters
    ----------
    path : Path
        Path of the file.
    open_file : callable
        Function that takes the path and returns an `OpenedFile`.
    is_flat : bool, default=True
        Whether lists and objects are split into plain columns.
    """

    def __init__(
        self,
        path: Path,
        open_file: Callable[[Path], OpenedFile],
        is_flat: bool = True,
    ) -> None:
        self._worded = partial(
            worded,
            f"{path} cannot be read",
            "get or write the file again",
            pa.ArrowException,
            OSError,
            EOFError,
        )
        with self._worded():
            opened = open_file(path)
            if is_flat:
                opened = _flat(opened, str(path))
        schema = opened.schema
        self.lengths = opened.lengths
        self.cached_bytes = opened.cached_bytes
        self._batches = opened.batches
        self.has_names = opened.has_names
        self.blocks = opened.blocks
        self.keys = unique_names(schema.names)
        self.names = self.keys
        self.sources = opened.sources or tuple(self.keys)
        self.schema = schema
        self.notes = [*opened.notes, *notes_on_names(str(path), schema.names)]
        index_names: list[str] = []
        categories: set[str] = set()
        ordered_numbers: set[str] = set()
        # In files that pandas did not write, its metadata is missing or incomplete.
        with suppress(ValueError, LookupError, TypeError):
            index_names = [*schema.pandas_metadata["index_columns"]]
            for column in schema.pandas_metadata["columns"]:
                if column["pandas_type"] == "categorical":
                    categories.add(column["name"])
                    if (column["metadata"] or {}).get("ordered"):
                        ordered_numbers.add(column["name"])
        # Parquet stores numbers that are categories in pandas as plain numbers.
        self.types = [
            CATEGORIES if name in categories else plain_type(data_type)
            for name, data_type in zip(schema.names, schema.types, strict=True)
        ]
        index_columns = []
        for position, name in enumerate(self.names):
            if name in index_names or name.startswith("__index_level_"):
                index_columns.append(position)
        self.index_columns = tuple(index_columns)
        self._ordered = {
            name
            for name, data_type in zip(schema.names, schema.types, strict=True)
            if name in ordered_numbers or has_order(data_type)
        }

    def orders(self) -> dict[str, list[str]]:
        """Return the categories of each ordered column, as texts in their order.

        The keys of the result are column keys. Parquet does not store the order of
        numeric categories, so they are sorted.
        """
        return {
            key: self._texts_of_order(position)
            for position, key in enumerate(self.keys)
            if self.schema.names[position] in self._ordered
        }

    def _texts_of_order(self, position: int) -> list[str]:
        numbers: set[Any] = set()
        with self._worded():
            for batch in self._batches([position], step_rows(8), None):
                column = batch.column(0)
                if types.is_dictionary(column.type):
                    return texts_of_order(column)
                numbers |= set(pc.unique(column.drop_null()).to_pylist())
        return pa.array(sorted(numbers)).cast(TEXT).to_pylist()

    def parts(self, wanted: Types, group: int | None = None) -> Iterator[Part]:
        """Yield columns of all rows or of one row group; see `BaseTable.parts`."""
        first = sum((self.lengths or [])[: group or 0])
        positions = sorted(map(self.keys.index, wanted))
        keys = [self.keys[position] for position in positions]
        with self._worded():
            for batch in self._batches(positions, step_rows(8 * len(wanted)), group):
                # Arrow's reader does not detect truncated buffers of a damaged file.
                batch.validate()
                yield from parts_of(batch.rename_columns(keys), wanted, first)
                first += batch.num_rows


def open_parquet(path: Path) -> OpenedFile:
    """Open a Parquet file for reading page by page instead of whole row groups."""
    metadata = pa.parquet.read_metadata(path)
    # Reading columns in parallel threads needs more memory and is not faster.
    options = {"metadata": metadata, "buffer_size": BUFFER_BYTES, "pre_buffer": False}

    schema = metadata.schema.to_arrow_schema()
    positions_of: dict[str, list[int]] = {}
    for position, name in enumerate(schema.names):
        positions_of.setdefault(name, []).append(position)

    def batches(
        positions: list[int], step: int, group: int | None
    ) -> Iterator[pa.RecordBatch]:
        groups = None if group is None else [group]
        row_bytes = sum(row_bytes_of[schema.names[position]] for position in positions)
        step = min(step, step_rows(row_bytes))
        # pyarrow selects columns by name, so it reads all columns that share a name.
        names = list(dict.fromkeys(schema.names[position] for position in positions))
        read = chain.from_iterable(map(positions_of.__getitem__, names))
        place = {position: k for k, position in enumerate(read)}
        with pa.parquet.ParquetFile(path, **options) as file:
            for batch in file.iter_batches(
                step, row_groups=groups, columns=names, use_threads=False
            ):
                yield batch.select([place[position] for position in positions])

    groups = list(map(metadata.row_group, range(metadata.num_row_groups)))
    row_bytes_of = _row_bytes(metadata, schema)
    cached = 0
    for group in groups[:1]:
        for chunk in map(group.column, range(group.num_columns)):
            # A column needs memory for a page, its dictionary, and the buffer of bytes
            # that are not decoded yet.
            most = BUFFER_BYTES + 2 * PAGE_BYTES
            cached += min(most, 2 * chunk.total_uncompressed_size)
    return OpenedFile(
        schema=schema,
        lengths=[group.num_rows for group in groups],
        cached_bytes=cached,
        batches=batches,
    )


def _row_bytes(metadata: Any, schema: pa.Schema) -> dict[str, float]:
    """Estimate the decoded bytes per row of each column from Parquet metadata."""
    sizes = dict.fromkeys(schema.names, 0.0)
    n_rows = max(1, metadata.num_rows)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for chunk in map(group.column, range(group.num_columns)):
            name = chunk.path_in_schema.partition(".")[0]
            if name in sizes:  # False if the column's name contains a dot
                sizes[name] += chunk.total_uncompressed_size / n_rows
    for field in schema:
        # Decoded values need more memory than their dictionary codes in the file.
        is_number = kind_of(field.type) in ("number", "flag", "date", "time")
        sizes[field.name] = max(sizes[field.name], 8 if is_number else TEXT_BYTES)
    return sizes


def open_arrow(path: Path) -> OpenedFile:
    """Open an Arrow IPC file (Feather), or an Arrow stream, which has no groups."""

    @contextmanager
    def reading(fields: list[int]) -> Iterator[pa.ipc.RecordBatchFileReader]:
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        with pa.OSFile(str(path)) as file:
            is_stream = file.read(6) != b"ARROW1"
            file.seek(0)
            open_reader = pa.ipc.open_stream if is_stream else pa.ipc.open_file
            with open_reader(file, options=options) as reader:
                yield reader

    def batches(
        positions: list[int], step: int, group: int | None
    ) -> Iterator[pa.RecordBatch]:
        with reading(positions) as reader:
            if lengths is None:
                yield from reader
            elif group is None:
                yield from map(reader.get_batch, range(len(lengths)))
            else:
                yield reader.get_batch(group)

    with reading([]) as reader:
        schema = reader.schema
    lengths = None
    with reading([0] if schema.names else []) as reader:
        if hasattr(reader, "get_batch") and schema.names:
            groups = map(reader.get_batch, range(reader.num_record_batches))
            lengths = [group.num_rows for group in groups]
    return OpenedFile(
        schema=schema,
        lengths=lengths,
        cached_bytes=16 * len(schema.names) * max(lengths or [0]),
        batches=batches,
    )

"""Read JSON Lines files in pieces, and JSON documents as a whole."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json

from mmcnb.errors import InputError
from mmcnb.samples.text import open_text, read_pieces
from mmcnb.tables.arrow import TEXT
from mmcnb.tables.columnar_file import OpenedFile, opened_in_memory

BOM = b"\xef\xbb\xbf"


def open_json_lines(path: Path) -> OpenedFile:
    """Open text with a JSON object on each line.

    All lines are read once to find the types of the columns.
    """
    schema = pa.schema([])
    for first, piece in _pieces(path):
        schema = _common_schema(schema, _parsed(path, first, piece, None).schema)

    def batches(
        positions: list[int], step: int, group: int | None
    ) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([schema.field(position) for position in positions])
        for first, piece in _pieces(path):
            table = _parsed(path, first, piece, wanted).select(wanted.names)
            yield from table.to_batches(max_chunksize=step)

    return OpenedFile(schema=schema, lengths=None, cached_bytes=2**24, batches=batches)


def _pieces(path: Path) -> Iterator[tuple[int, bytes]]:
    for first, piece in read_pieces(path, False):
        text = piece.removeprefix(BOM) if first == 1 else piece
        if text.strip():
            yield first, text


def _parsed(path: Path, first: int, text: bytes, schema: pa.Schema | None) -> pa.Table:
    """Parse whole lines as a table; columns that are not in ``schema`` are ignored."""
    reading = pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    behavior = "infer" if schema is None else "ignore"
    parsing = pa.json.ParseOptions(
        explicit_schema=schema, unexpected_field_behavior=behavior
    )
    try:
        return pa.json.read_json(pa.BufferReader(text), reading, parsing)
    except pa.ArrowException:
        return _table_of_rows(_rows(path, first, text), schema)


def _rows(path: Path, first: int, text: bytes) -> list[dict[str, Any]]:
    """Parse lines in Python, which allows values of several types in a column."""
    rows = []
    lines = text.split(b"\n")
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            fault = f"this is not JSON ({error}): correct it"
            # Only the last line of the file can lack a line break.
            is_last = number == first + len(lines) - 1
            if is_last and not line.rstrip().endswith(b"}"):
                fault = (
                    "the last line is not complete JSON, so the file seems to be "
                    "truncated: get it again, or remove this line"
                )
            raise InputError(f"{path}, line {number}: {fault}.") from error
        if not isinstance(row, dict):
            raise InputError(
                f"{path}, line {number}: this is not a JSON object: write each row as "
                'an object, such as {"width": 1, "height": 2}.'
            )
        rows.append(row)
    return rows


def _table_of_rows(
    rows: list[dict[str, Any]], schema: pa.Schema | None = None
) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names if schema is None else schema.names:
        values = [row.get(name) for row in rows]
        data_type = None if schema is None else schema.field(name).type
        columns[name] = _array(values, data_type)
    return pa.table(columns)


def _array(values: list[Any], data_type: pa.DataType | None) -> pa.Array:
    """Return values as an Arrow array, converted to texts if their types are mixed."""
    if data_type != TEXT:
        try:
            return pa.array(values, data_type, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
    texts = []
    for value in values:
        is_plain = value is None or isinstance(value, str)
        texts.append(value if is_plain else json.dumps(value))
    return pa.array(texts, TEXT)


def _common_schema(first: pa.Schema, second: pa.Schema) -> pa.Schema:
    """Join the columns of two schemas; columns with conflicting types become texts."""
    try:
        return pa.unify_schemas([first, second], promote_options="permissive")
    except pa.ArrowException:
        fields = []
        for name in dict.fromkeys([*first.names, *second.names]):
            parts = []
            for schema in (first, second):
                if name in schema.names:
                    parts.append(pa.schema([schema.field(name)]))
            try:
                joined = pa.unify_schemas(parts, promote_options="permissive")
                fields.append(joined.field(0))
            except pa.ArrowException:
                fields.append(pa.field(name, TEXT))
        return pa.schema(fields)


def open_json(path: Path) -> OpenedFile:
    """Open a JSON document: a list of objects, or any layout that pandas writes."""
    with open_text(path) as (_, file):
        text = file.read().removeprefix(BOM)
    try:
        document = json.loads(text)
    except ValueError as error:
        if "Extra data" in str(error):  # an object on each line
            return open_json_lines(path)
        fault = f"this is not JSON ({error}): correct it"
        if not text.rstrip().endswith((b"]", b"}")):
            fault = (
                "the file ends before its JSON is complete, so it seems to be "
                "truncated: get it again"
            )
        raise InputError(f"{path}: {fault}.") from error
    table = _table_of_document(document)
    if table is None:
        raise InputError(
            f"{path} is JSON, but not a table: write a list of objects, one for each "
            'row, such as [{"width": 1, "height": 2}].'
        )
    return opened_in_memory(table)


def _table_of_document(document: Any) -> pa.Table | None:
    """Return the table in a JSON document, or None if the document is not a table."""
    if isinstance(document, list) and document:
        if all(isinstance(row, dict) for row in document):
            return _table_of_rows(document)
        is_even = all(isinstance(row, list) for row in document)
        if is_even and len(set(map(len, document))) == 1:
            names = list(map(str, range(len(document[0]))))
            return _table_of_lists(names, document)
    if not isinstance(document, dict):
        return None
    rows = document.get("data")
    if isinstance(rows, list) and "columns" in document:  # orient="split"
        return _table_of_lists(list(map(str, document["columns"])), rows)
    if isinstance(rows, list) and rows and "schema" in document:  # orient="table"
        return _table_of_rows(rows)
    return _table_of_columns(document)


def _table_of_columns(document: dict[str, Any]) -> pa.Table | None:
    values = list(document.values())
    if values and all(isinstance(column, dict) for column in values):
        labels = list(dict.fromkeys(label for column in values for label in column))
        columns = {}
        for name, column in document.items():
            columns[name] = _array([column.get(label) for label in labels], None)
        return pa.table(columns)
    lists = [value for value in values if isinstance(value, list)]
    is_even = len(set(map(len, lists))) == 1
    if lists and is_even and len(lists) == len(values):
        return pa.table({name: _array(document[name], None) for name in document})
    if len(lists) == 1:  # rows next to metadata about them
        return _table_of_document(lists[0])
    return None


def _table_of_lists(names: list[str], rows: list[list[Any]]) -> pa.Table:
    columns = {}
    for k, name in enumerate(names):
        columns[name] = _array([row[k] for row in rows], None)
    return pa.table(columns)

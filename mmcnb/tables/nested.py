"""Columns of lists and of objects as plain columns: one for each element and field."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from mmcnb.errors import InputError
from mmcnb.tables.arrow import kind_of

Step = str | int


class Leaf(NamedTuple):
    """A plain column inside a column: fields by name, and elements by number.

    Attributes
    ----------
    name : str
        Such as ``address.city``, or ``vector_0`` for an element of a list.
    source : int
        Number of the column.
    steps : tuple of (str or int)
    type : pyarrow.DataType
    length : int
        Elements of its list; 0 if it is in none.
    block : str
        Name of its list; empty if it is in none.
    """

    name: str
    source: int
    steps: tuple[Step, ...]
    type: pa.DataType
    length: int = 0
    block: str = ""


class Place(NamedTuple):
    """Name of a table, and number of the first of some rows."""

    table: str
    first: int


def leaves_of(
    schema: pa.Schema, columns: Callable[[int], Iterator[pa.Array]]
) -> list[Leaf]:
    """Return the plain columns of a schema.

    Parameters
    ----------
    schema : pyarrow.Schema
    columns : callable
        Reads a column, given its number, some rows at a time.
    """
    leaves: list[Leaf] = []
    for source, field in enumerate(schema):
        leaves += _leaves(Leaf(field.name, source, (), field.type), columns)
    return leaves


def _leaves(leaf: Leaf, columns: Callable[[int], Iterator[pa.Array]]) -> Iterator[Leaf]:
    data_type = leaf.type
    if types.is_struct(data_type) and data_type.num_fields:
        for field in data_type:
            inner = leaf._replace(
                name=f"{leaf.name}.{field.name}",
                steps=(*leaf.steps, field.name),
                type=field.type,
            )
            yield from _leaves(inner, columns)
        return
    length = _length(leaf, columns)
    if not length:
        yield leaf
        return
    for number in range(length):
        yield leaf._replace(
            name=f"{leaf.name}_{number}",
            steps=(*leaf.steps, number),
            type=data_type.value_type,
            length=length,
            block=leaf.name,
        )


def _length(leaf: Leaf, columns: Callable[[int], Iterator[pa.Array]]) -> int:
    """Return the elements of a list of numbers; 0 if it is none, or has no rows."""
    if not is_list(leaf.type) or kind_of(leaf.type.value_type) not in (
        "number",
        "flag",
    ):
        return 0
    if types.is_fixed_size_list(leaf.type):
        return leaf.type.list_size
    for column in columns(leaf.source):
        lengths = pc.list_value_length(_inside(column, leaf.steps)).drop_null()
        if len(lengths):
            return lengths[0].as_py()
    return 0


def is_list(data_type: pa.DataType) -> bool:
    """Whether values of a type are lists, of one length or not."""
    return (
        types.is_list(data_type)
        or types.is_large_list(data_type)
        or types.is_fixed_size_list(data_type)
    )


def _inside(column: pa.Array, steps: tuple[Step, ...]) -> pa.Array:
    for step in steps:
        if isinstance(step, str):
            column = pc.struct_field(column, step)
        else:
            column = pc.list_element(column, step)
    return column


def leaf_arrays(
    batch: pa.RecordBatch, sources: list[int], leaves: list[Leaf], place: Place
) -> list[pa.Array]:
    """Return the values of plain columns.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The columns that they are in.
    sources : list of int
        Numbers of these columns.
    leaves : list of Leaf
    place : Place
        Name of the table, and number of the first row, for messages.

    Raises
    ------
    InputError
        A list has another length than the first one.
    """
    arrays = []
    blocks = set()
    for leaf in leaves:
        column = batch.column(sources.index(leaf.source))
        if leaf.block and leaf.block not in blocks:
            blocks.add(leaf.block)
            _check_lengths(_inside(column, leaf.steps[:-1]), leaf, place)
        arrays.append(_inside(column, leaf.steps))
    return arrays


def _check_lengths(lists: pa.Array, leaf: Leaf, place: Place) -> None:
    lengths = pc.list_value_length(lists)
    row = pc.index(pc.not_equal(lengths, leaf.length), True).as_py()
    if row >= 0:
        raise InputError(
            f"{place.table}, row {place.first + row}, column {leaf.block!r}: the list "
            f"has {lengths[row].as_py()} elements, but the first one {leaf.length}: "
            "make all lists equally long, or leave the column out "
            f"(--drop {leaf.block})."
        )


def is_nested(leaves: list[Leaf]) -> bool:
    """Whether columns have others inside."""
    return any(leaf.steps for leaf in leaves)


def flat_batch(batch: pa.RecordBatch, name: str) -> tuple[pa.RecordBatch, list[Leaf]]:
    """Return rows in memory with plain columns, and what these are."""

    def columns(source: int) -> Iterator[pa.Array]:
        yield batch.column(source)

    leaves = leaves_of(batch.schema, columns)
    if not is_nested(leaves):
        return batch, leaves
    sources = list(range(batch.num_columns))
    arrays = leaf_arrays(batch, sources, leaves, Place(name, 0))
    return pa.record_batch(arrays, [leaf.name for leaf in leaves]), leaves

"""Split columns of lists and objects into plain columns."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from mmcnb.errors import InputError
from mmcnb.tables.arrow import kind_of

Step = str | int


class Leaf(NamedTuple):
    """A plain column inside a column of lists or objects.

    Attributes
    ----------
    name : str
        Name of the plain column, such as ``address.city`` for a field of an object, or
        ``vector_0`` for an element of a list.
    source : int
        Zero-based index of the column that contains the plain column.
    steps : tuple of (str or int)
        Path from that column to the plain column: names of fields, and indices of
        elements.
    type : pyarrow.DataType
        Type of the values in the plain column.
    length : int
        Number of elements of the list that contains the plain column; 0 if the plain
        column is not an element of a list.
    block : str
        Name of this list; empty if the plain column is not an element of a list.
    """

    name: str
    source: int
    steps: tuple[Step, ...]
    type: pa.DataType
    length: int = 0
    block: str = ""


class Place(NamedTuple):
    """The origin of a batch: name of the table, and row index of the first row."""

    table: str
    first: int


def leaves_of(
    schema: pa.Schema, columns: Callable[[int], Iterator[pa.Array]]
) -> list[Leaf]:
    """Return the plain columns that the columns of a schema are split into.

    Parameters
    ----------
    schema : pyarrow.Schema
    columns : callable
        Function that yields the chunks of a column, given the index of the column. It
        is called to determine the length of lists.
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
    """Return the length of the lists in a column of lists of numbers.

    The length is 0 if the values are not lists of numbers or flags, or if it is unknown
    because all lists are null.
    """
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
    """Return whether a type is a list type of fixed or variable length."""
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
        The columns that contain the plain columns.
    sources : list of int
        For each column of the batch, its index in the table.
    leaves : list of Leaf
        The plain columns.
    place : Place
        Origin of the batch, for messages.

    Raises
    ------
    InputError
        If a list differs in length from the first list.
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
            f"has {lengths[row].as_py()} elements, but the first list has "
            f"{leaf.length}: make all lists equally long, or leave the column out "
            f"(--drop {leaf.block})."
        )


def is_nested(leaves: list[Leaf]) -> bool:
    """Return whether any of the plain columns is inside a list or object."""
    return any(leaf.steps for leaf in leaves)


def flat_batch(batch: pa.RecordBatch, name: str) -> tuple[pa.RecordBatch, list[Leaf]]:
    """Split the lists and objects of rows in memory into plain columns.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    name : str
        Name of the table, for messages.

    Returns
    -------
    batch : pyarrow.RecordBatch
        The plain columns.
    leaves : list of Leaf
        Origin and type of each plain column.
    """

    def columns(source: int) -> Iterator[pa.Array]:
        yield batch.column(source)

    leaves = leaves_of(batch.schema, columns)
    if not is_nested(leaves):
        return batch, leaves
    sources = list(range(batch.num_columns))
    arrays = leaf_arrays(batch, sources, leaves, Place(name, 0))
    return pa.record_batch(arrays, [leaf.name for leaf in leaves]), leaves

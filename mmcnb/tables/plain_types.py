"""Convert Arrow arrays to plain types, without run-end encoding and extension types."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from mmcnb.tables.arrow import BOOL, TEXT, is_text, kind_of

# Extension types that become texts; pandas registers the last two types.
AS_TEXTS = ("arrow.uuid", "arrow.json", "pandas.period", "pandas.interval")


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """Return the plain type that represents the values of a type.

    Dictionary types (categories) are plain types, unless their values are of kind
    "other".

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.plain_types import plain_type
    >>> plain_type(pa.run_end_encoded(pa.int32(), pa.float32()))
    DataType(float)
    >>> plain_type(pa.bool8())
    DataType(bool)
    """
    if types.is_run_end_encoded(data_type):
        return plain_type(data_type.value_type)
    if types.is_dictionary(data_type):
        is_known = kind_of(data_type) == "text"
        return data_type if is_known else plain_type(data_type.value_type)
    if isinstance(data_type, pa.BaseExtensionType):
        if data_type.extension_name in AS_TEXTS:
            return TEXT
        if data_type.extension_name == "arrow.bool8":
            return BOOL
        return plain_type(data_type.storage_type)
    return data_type


def plain_array(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Convert values to their plain type, and the values of categories to texts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.plain_types import plain_array
    >>> plain_array(pa.array([1, 0], pa.int8()).cast(pa.bool8())).to_pylist()
    [True, False]
    """
    if isinstance(array, pa.ChunkedArray):
        # pyarrow cannot concatenate empty slices imported through its C interface.
        chunks = [chunk for chunk in array.chunks if len(chunk)]
        if len(chunks) == 1:
            return plain_array(chunks[0])
        if not chunks:
            return pa.nulls(0, plain_type(array.type))
        array = pa.concat_arrays(chunks)
    if types.is_run_end_encoded(array.type):
        return plain_array(_decoded(array))
    if types.is_dictionary(array.type):
        if kind_of(array.type) != "text":
            return plain_array(_of_values(array, array.type.value_type))
        texts = plain_array(array.dictionary).cast(TEXT)
        return pa.DictionaryArray.from_arrays(
            array.indices, texts, ordered=array.type.ordered
        )
    if not isinstance(array.type, pa.BaseExtensionType):
        return array
    if array.type.extension_name == "arrow.uuid":
        return pa.array(_texts(array.to_pylist()), TEXT)
    if array.type.extension_name in AS_TEXTS and not is_text(array.storage.type):
        return pa.array(_texts(array.to_pandas().tolist()), TEXT)
    return plain_array(array.storage).cast(plain_type(array.type))


def _decoded(array: pa.RunEndEncodedArray) -> pa.Array:
    try:
        return pc.run_end_decode(array)
    except pa.ArrowNotImplementedError:
        return _of_values(array, array.type.value_type)


def _of_values(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Convert an array to a type by way of Python objects, which is slow."""
    return pa.array(array.to_pylist(), data_type)


def _texts(values: list[Any]) -> list[str | None]:
    return [None if value is None else str(value) for value in values]


def as_type(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Convert values to a type, without a cast if they already have this type."""
    array = plain_array(array)
    return array if array.type == data_type else array.cast(data_type)


def has_order(data_type: pa.DataType) -> bool:
    """Return whether a type represents ordered categories."""
    return types.is_dictionary(data_type) and data_type.ordered


def texts_of_order(array: pa.DictionaryArray) -> list[str]:
    """Return ordered categories as texts, in their order.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.plain_types import texts_of_order
    >>> texts_of_order(pa.array(["S", "M", "S"]).dictionary_encode())
    ['S', 'M']
    """
    texts = plain_array(array.dictionary).cast(TEXT)
    return texts.drop_null().to_pylist()

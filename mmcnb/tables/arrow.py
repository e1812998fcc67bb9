"""Classify the Arrow types of table columns."""

import pyarrow as pa
from pyarrow import types

TEXT = pa.large_string()
FLOAT64 = pa.float64()
BOOL = pa.bool_()


def kind_of(data_type: pa.DataType) -> str:
    """Return the kind of an Arrow type.

    The kind is "number", "flag" (boolean), "text" (also for categories), "date", "time"
    (time of day or duration) or "other".

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.arrow import kind_of
    >>> kind_of(pa.int8()), kind_of(pa.date32()), kind_of(pa.binary())
    ('number', 'date', 'other')
    """
    if types.is_dictionary(data_type):
        is_other = kind_of(data_type.value_type) == "other"
        return "other" if is_other else "text"
    if types.is_integer(data_type) or types.is_floating(data_type):
        return "number"
    if types.is_decimal(data_type) or types.is_null(data_type):
        return "number"
    if types.is_boolean(data_type):
        return "flag"
    if is_text(data_type):
        return "text"
    if types.is_time(data_type) or types.is_duration(data_type):
        return "time"
    if types.is_date(data_type) or types.is_timestamp(data_type):
        return "date"
    return "other"


def is_text(data_type: pa.DataType) -> bool:
    """Return whether a type is one of Arrow's string types.

    The result is False for dictionary types, whose values are categories.
    """
    return data_type in (pa.string(), TEXT, pa.string_view())


def contents_of(data_type: pa.DataType) -> str:
    """Describe the values of a type of kind "other", for messages.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.arrow import contents_of
    >>> contents_of(pa.list_(pa.string())), contents_of(pa.struct({"a": pa.int8()}))
    ('lists of texts', 'objects')
    """
    if types.is_dictionary(data_type):
        return contents_of(data_type.value_type)
    if types.is_map(data_type) or types.is_struct(data_type):
        return "objects"
    if types.is_nested(data_type) and hasattr(data_type, "value_type"):
        elements = data_type.value_type
        kind = kind_of(elements)
        if kind == "other":
            return f"lists of {contents_of(elements)}"
        return f"lists of {kind}s"
    if data_type in (pa.binary(), pa.large_binary(), pa.binary_view()):
        return "bytes"
    return f"values of type {type_name(data_type)}"


def type_name(data_type: pa.DataType) -> str:
    """Return the name of a type as one line, even if field names contain newlines."""
    return " ".join(str(data_type).split())

"""Types of Arrow arrays that the columns of tables are read as."""

import pyarrow as pa
from pyarrow import types

TEXT = pa.large_string()
FLOAT64 = pa.float64()
BOOL = pa.bool_()


def kind_of(data_type: pa.DataType) -> str:
    """Return the kind of a type: number, flag, text, date, time or other.

    "time" is the kind of times of day and of durations.

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
    """Whether values of a type are texts, whatever their layout.

    A dictionary of texts is not: its values are categories.
    """
    return data_type in (pa.string(), TEXT, pa.string_view())


def type_name(data_type: pa.DataType) -> str:
    """Return a type for messages, in one line also if its fields have odd names."""
    return " ".join(str(data_type).split())

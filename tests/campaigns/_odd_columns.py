"""Columns of all types of pandas, polars and Arrow, with odd values among them."""

import datetime
import enum
import functools
import uuid
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from tests.campaigns._judge import one_of

UTC = datetime.UTC
ZONE = "Europe/Berlin"
DAY = datetime.datetime(2024, 2, 29, 12, 30, 1)


class Colour(enum.Enum):
    """An object of no type that tables know."""

    RED = 1


class Text(str):
    """A text of another class."""

    __slots__ = ()


SCALARS: dict[str, tuple[Any, ...]] = {
    "numbers": (0, 1, -3, 2.5, 1e300, -1e-300, np.int8(4), np.float16(2), True),
    "huge": (2**70, -(2**70), 10**400, 2**63, 2**64 - 1, Decimal("1e400"), 1e308),
    "not finite": (np.inf, -np.inf, np.nan, Decimal("NaN"), Decimal("Infinity")),
    "fractions": (Fraction(1, 3), Decimal("0.10"), Decimal("-3"), np.longdouble(1)),
    "missing": (None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), float("nan")),
    "texts": (
        "a",
        "b",
        "",
        " ",
        "none",
        "nan",
        "1",
        "1,5",
        "2 kg",
        "\0",
        "é",
        "\udcff",
    ),
    "text of other classes": (Text("x"), np.str_("y"), "z" * 300, "a\nb"),
    "days": (DAY.date(), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
    "moments": (
        DAY,
        DAY.replace(tzinfo=UTC),
        pd.Timestamp(DAY),
        pd.Timestamp(DAY, tz=ZONE),
        np.datetime64("2024-01-01T01"),
        datetime.datetime(1, 1, 1),
    ),
    "times": (datetime.time(1, 2), datetime.time(1, 2, tzinfo=UTC)),
    "durations": (
        datetime.timedelta(1, 2),
        pd.Timedelta(3, "s"),
        np.timedelta64(4, "D"),
        datetime.timedelta.max,
    ),
    "spans": (pd.Interval(0, 1), pd.Period("2024-01"), pd.Interval(1.5, 2)),
    "bytes": (b"", b"a", b"\xff", bytearray(b"b"), memoryview(b"c")),
    "complex": (1j, np.complex64(2)),
    "nested": (
        [1, 2],
        [],
        (1, 2),
        {"a": 1},
        {1: None},
        {1, 2},
        [None, [1]],
        np.arange(3.0),
        np.array(["a"]),
        pd.Series([1]),
    ),
    "objects": (object(), int, len, Colour.RED, uuid.UUID(int=7), Ellipsis, range(3)),
    "arrays of no rows": (np.array(1.0), np.array([]), np.ma.masked),
}
"""Python objects of all types, by what they are."""


def objects(rng: np.random.Generator, n: int) -> list[Any]:
    """Return objects of a few types, mostly of one."""
    kinds = rng.choice(list(SCALARS), int(rng.integers(1, 4)))
    pools = [SCALARS[kind] for kind in (kinds[0], *kinds)]
    return [one_of(rng, one_of(rng, pools)) for _ in range(n)]


def is_gap(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return which cells are missing: none, some, all, or all but the first."""
    share = one_of(rng, (0.0, 0.0, 0.2, 0.9, 1.0))
    mask = rng.random(n) < share
    if n and rng.random() < 0.2:
        mask[0] = False
    return mask


# --- Arrow ----------------------------------------------------------------------------


def plain_types() -> list[pa.DataType]:
    """Return the types of Arrow that are not nested."""
    units = ("s", "ms", "us", "ns")
    types = [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.null()),
        *(pa.string(), pa.large_string(), pa.string_view()),
        *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)),
        *(pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(38, 4)),
        *(pa.decimal256(70, 2), pa.decimal128(3, -2)),
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms")),
        *(pa.time64("us"), pa.time64("ns"), pa.month_day_nano_interval()),
        *(pa.timestamp(unit) for unit in units),
        *(pa.timestamp(unit, ZONE) for unit in units),
        *(pa.duration(unit) for unit in units),
    ]
    return types


def plain_array(rng: np.random.Generator, n: int, data_type: pa.DataType) -> pa.Array:
    """Return random bits as an array of a type that is not nested."""
    mask = is_gap(rng, n)
    if pa.types.is_null(data_type):
        return pa.nulls(n)
    if pa.types.is_boolean(data_type):
        return pa.array(rng.random(n) < 0.5, mask=mask)
    if pa.types.is_floating(data_type):
        pool = np.array([0, 1, -2.5, 3e4, np.nan, np.inf, -np.inf, -0.0])
        size = 4 if rng.random() < 0.7 else len(pool)
        numbers = pool[rng.integers(0, size, n)]
        return pa.array(numbers.astype(data_type.to_pandas_dtype()), mask=mask)
    if pa.types.is_interval(data_type):
        values = [pa.MonthDayNano([int(k), 2, 3]) for k in rng.integers(0, 9, n)]
    elif pa.types.is_decimal(data_type):
        values = [Decimal(int(k)) * 100 for k in rng.integers(-5, 6, n)]
    elif data_type in (pa.string(), pa.large_string(), pa.string_view()):
        pool = ("a", "b", "", " ", "none", "1", "2.5", "3 kg", "2024-01-01", "x" * 200)
        values = [one_of(rng, pool) for _ in range(n)]
    elif data_type == pa.binary(3):
        values = [one_of(rng, (b"abc", b"\xff\0a")) for _ in range(n)]
    elif "binary" in str(data_type):
        values = [one_of(rng, (b"", b"a", b"\xff", b"12")) for _ in range(n)]
    else:
        return _whole_numbers(rng, n, data_type, mask)
    hidden = [None if gap else value for gap, value in zip(mask, values, strict=True)]
    return pa.array(hidden, data_type)


def _whole_numbers(
    rng: np.random.Generator, n: int, data_type: pa.DataType, mask: np.ndarray
) -> pa.Array:
    """Return integers, or dates and times that have them."""
    width = data_type.bit_width
    is_signed = not pa.types.is_unsigned_integer(data_type)
    bits = np.dtype(f"{'i' if is_signed else 'u'}{width // 8}")
    high = np.iinfo(bits).max
    if pa.types.is_time(data_type):
        high = 86_399
    elif not pa.types.is_integer(data_type) and rng.random() < 0.8:
        high = 10**4
    elif rng.random() < 0.7:
        high = 100
    numbers = rng.integers(0, high, n, dtype=bits, endpoint=True)
    if data_type == pa.date64():
        numbers = numbers % 10**5 * 86_400_000
    array = pa.array(numbers, mask=mask)
    return array if pa.types.is_integer(data_type) else array.view(data_type)


def _lists(rng: np.random.Generator, n: int) -> pa.Array:
    inner = one_of(rng, (pa.float64(), pa.string(), pa.int8(), pa.list_(pa.int8())))
    value = {pa.string(): "a", pa.list_(pa.int8()): [1, None]}.get(inner, 1)
    width = int(rng.integers(0, 3))
    lists = [[value, None, value][: int(rng.integers(0, 4))] for _ in range(n)]
    if rng.random() < 0.5:
        lists = [[value] * width for _ in range(n)]
    hidden = [None if gap else k for gap, k in zip(is_gap(rng, n), lists, strict=True)]
    kinds = (pa.list_(inner), pa.large_list(inner), pa.list_view(inner))
    if all(k is None or len(k) == width for k in hidden):
        kinds = (*kinds, pa.list_(inner, width))
    return pa.array(hidden, one_of(rng, kinds))


def _structs(rng: np.random.Generator, n: int) -> pa.Array:
    fields = [pa.field("a", pa.int64()), pa.field("b", pa.list_(pa.string()))]
    values = [{"a": 1, "b": ["x", None]}, {"a": None, "b": None}, None]
    return pa.array([one_of(rng, values) for _ in range(n)], pa.struct(fields))


def _maps(rng: np.random.Generator, n: int) -> pa.Array:
    values = [[("a", 1)], [], [("a", None), ("b", 2)], None]
    cells = [one_of(rng, values) for _ in range(n)]
    return pa.array(cells, pa.map_(pa.string(), pa.int8()))


def _dictionaries(rng: np.random.Generator, n: int) -> pa.Array:
    values = plain_array(rng, int(rng.integers(1, 5)), one_of(rng, plain_types()))
    codes = rng.integers(0, len(values), n).astype(one_of(rng, ("i1", "i4", "u2")))
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=is_gap(rng, n)), values)


def _run_ends(rng: np.random.Generator, n: int) -> pa.Array:
    values = plain_array(rng, n, one_of(rng, (pa.int64(), pa.string(), pa.float32())))
    return pa.RunEndEncodedArray.from_arrays(
        pa.array(np.arange(1, n + 1), pa.int32()), values
    )


def _unions(rng: np.random.Generator, n: int) -> pa.Array:
    types = pa.array(rng.integers(0, 2, n), pa.int8())
    children = [pa.array(np.arange(n)), pa.array(["a"] * n)]
    return pa.UnionArray.from_sparse(types, children)


def _extensions(rng: np.random.Generator, n: int) -> pa.Array:
    kind = int(rng.integers(5))
    if kind == 0:
        return pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([b"0" * 16] * n, pa.binary(16))
        )
    if kind == 1:
        return pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}'] * n))
    if kind == 2:
        return pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1] * n, pa.int8()))
    if kind == 3:
        tensors = pa.fixed_shape_tensor(pa.float32(), (2,))
        storage = pa.array([[1, 2]] * n, pa.list_(pa.float32(), 2))
        return pa.ExtensionArray.from_storage(tensors, storage)
    return pa.ExtensionArray.from_storage(
        pa.opaque(pa.int64(), "a type", "a vendor"), pa.array(range(n), pa.int64())
    )


NESTED: tuple[Callable[[np.random.Generator, int], pa.Array], ...] = (
    _lists,
    _structs,
    _maps,
    _dictionaries,
    _run_ends,
    _unions,
    _extensions,
)


def arrow_column(rng: np.random.Generator, n: int) -> pa.Array | pa.ChunkedArray:
    """Return an array of any type of Arrow, perhaps in chunks or sliced."""
    if rng.random() < 0.65:
        column = plain_array(rng, n + 3, one_of(rng, plain_types()))
    else:
        column = one_of(rng, NESTED)(rng, n + 3)
    column = column[1 : n + 1] if rng.random() < 0.3 else column[:n]
    if n > 1 and rng.random() < 0.2:
        return pa.chunked_array([column[:1], column[1:1], column[1:]])
    return column


# --- pandas ---------------------------------------------------------------------------


def _categorical(rng: np.random.Generator, n: int) -> Any:
    pool: tuple[list[Any], ...] = (
        ["a", "b"],
        [1, 2],
        [1.5, np.inf],
        [True, False],
        ["a", 1],
        [(1, 2), (3, 4)],
        [pd.Timestamp(DAY), pd.Timestamp(0)],
        [pd.Interval(0, 1), pd.Interval(1, 2)],
        [pd.Period("2024"), pd.Period("2025")],
        [b"a", b"b"],
        [],
    )
    categories = one_of(rng, pool)
    codes = rng.integers(-1, len(categories), n)
    values = pd.Categorical.from_codes(codes, categories, ordered=rng.random() < 0.3)
    return pd.Series(values)


def _from_numpy(rng: np.random.Generator, n: int) -> Any:
    names = ["?", "i1", "u2", ">i4", "i8", "f2", "f4", ">f8", "g", "c8", "c16"]
    names += ["M8[s]", "M8[ns]", "m8[us]", "S3", "U3"]
    values = rng.integers(0, 2, n).astype(one_of(rng, names))
    return pd.Series(values)


def _nullable(rng: np.random.Generator, n: int) -> Any:
    name = one_of(
        rng, ("Int8", "UInt64", "Float32", "boolean", "string", "string[pyarrow]")
    )
    values = ["1" if "string" in name else 1 for _ in range(n)]
    gaps = is_gap(rng, n)
    hidden = [pd.NA if gap else k for gap, k in zip(gaps, values, strict=True)]
    return pd.Series(hidden, dtype=name)


def _sparse(rng: np.random.Generator, n: int) -> Any:
    name = one_of(rng, ("float64", "int64", "bool", "float32"))
    values = pd.arrays.SparseArray(rng.integers(0, 2, n).astype(name))
    if name == "float64" and rng.random() < 0.5:
        values = pd.arrays.SparseArray(np.where(is_gap(rng, n), np.nan, 1.0))
    return pd.Series(values)


def _spans(rng: np.random.Generator, n: int) -> Any:
    starts = rng.integers(0, 5, n)
    kind = int(rng.integers(4))
    if kind == 0:
        return pd.Series(pd.arrays.IntervalArray.from_arrays(starts, starts + 1))
    if kind == 1:
        return pd.Series(pd.PeriodIndex.from_ordinals(starts, freq="M"))
    if kind == 2:
        ends = np.where(is_gap(rng, n), np.nan, starts)
        return pd.Series(pd.cut(ends, [-1, 1, 3, 6]))
    return pd.Series(pd.to_datetime(starts, utc=True).tz_convert(ZONE))


def _of_arrow(rng: np.random.Generator, n: int) -> Any:
    array = plain_array(rng, n, one_of(rng, plain_types()))
    return pd.Series(pd.arrays.ArrowExtensionArray(array))


def _of_objects(rng: np.random.Generator, n: int) -> Any:
    values = np.empty(n, object)
    values[:] = [None] * n
    for row, value in enumerate(objects(rng, n)):
        values[row] = value
    return pd.Series(values, dtype=object)


PANDAS: tuple[Callable[[np.random.Generator, int], Any], ...] = (
    _categorical,
    _from_numpy,
    _nullable,
    _sparse,
    _spans,
    _of_arrow,
    _of_objects,
    _of_objects,
)


def pandas_column(rng: np.random.Generator, n: int) -> Any:
    """Return a series of any type of pandas."""
    return one_of(rng, PANDAS)(rng, n)


# --- polars ---------------------------------------------------------------------------


@functools.cache
def polars_values() -> list[tuple[Any, tuple[Any, ...]]]:
    """Return types of polars with values of each."""
    times = (datetime.time(1, 2), datetime.time(23, 59, 59, 5))
    spans = (datetime.timedelta(1), datetime.timedelta(0, 5))
    return [
        (pl.Int128(), (1, 2**100)),
        (pl.UInt64(), (1, 2**64 - 1)),
        (pl.Float32(), (1.5, np.inf, np.nan)),
        (pl.Decimal(30, 3), (Decimal("1.5"), Decimal("-2"))),
        (pl.Boolean(), (True, False)),
        (pl.String(), ("a", "1", "")),
        (pl.Categorical(), ("a", "b")),
        (pl.Enum(["a", "b"]), ("a", "b")),
        (pl.Binary(), (b"a", b"\xff")),
        (pl.Date(), (DAY.date(), datetime.date(1, 1, 1))),
        (pl.Datetime("us"), (DAY, datetime.datetime(9999, 1, 1))),
        (pl.Datetime("ms", ZONE), (DAY, DAY)),
        (pl.Duration("ns"), spans),
        (pl.Time(), times),
        (pl.Null(), (None,)),
        (pl.List(pl.Float64), ([1.0], [], [None, 2.0])),
        (pl.Array(pl.Int8, 2), ([1, 2], [3, None])),
        (pl.Struct({"a": pl.Int8}), ({"a": 1}, {"a": None})),
        (pl.Object(), (object(), 1, "a")),
    ]


def polars_column(rng: np.random.Generator, n: int) -> Any:
    """Return a series of any type of polars."""
    data_type, values = one_of(rng, polars_values())
    gaps = is_gap(rng, n)
    cells = [None if gap else one_of(rng, values) for gap in gaps]
    return pl.Series(cells, dtype=data_type, strict=False)

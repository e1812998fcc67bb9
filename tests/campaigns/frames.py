"""Frames and files of all types of pandas, polars and Arrow, with odd values and names.

**Promised.** A frame or a file is opened, fitted and predicted, or is refused by one
sentence that names the column or says what of the frame is wrong. Only
`mmcnb.InputError` and its subclasses leave the library, and no warning but its own.

**Judged** by that alone, and by ``labels_ == predict(X)``: what the numbers are, other
tests say. Each model also meets another batch: all values missing, of other types, with
fewer columns, with new texts, or with its columns in another order.

**Not promised.** An object whose own methods fail fails as it does.
"""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

import mmcnb
from tests.campaigns._judge import judged, one_of, refusal
from tests.campaigns._odd_columns import (
    DAY,
    arrow_column,
    pandas_column,
    polars_column,
)

TRIES = 5000
CI_TRIES = 100
SECONDS = 60

NAMES = (
    "a",
    "b",
    "id",
    "",
    " ",
    "a",
    "Größe",
    "x,y",
    'q"',
    "Unnamed: 0",
    "label",
    "\n",
)
# Said of the whole frame.
OF_FRAME = (
    r"column|line \d|names|no rows|sample\(s\)|feature\(s\)|is sparse|at least|"
    r"all rows"
)


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """One frame, as an object or a file, of the library that the seed gives."""
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    n = one_of(rng, (0, 1, 2, 12, 24, 24, 24, 24, 24, 24))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = KINDS[kind](rng, n, folder)
        try:
            other = other_batch(rng, source, kind, folder)
        except (pa.ArrowException, ValueError, TypeError):  # pandas cannot cut it
            other = source
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", mmcnb.ClusterWarning)
        warnings.filterwarnings("ignore", ".*", module="sklearn")
        refused = refusal(lambda: ask(rng, source, other))
        if refused is not None and isinstance(source, pd.DataFrame):
            rest = taken_columns(source)
            refused = refusal(lambda: ask(rng, rest, other))
    if refused is not None:
        assert re.search(OF_FRAME, refused), f"names no column: {refused}"
    return {"kind": kind, **judged(refused, None, f"{kind}, {n} rows")}


MODELS: tuple[Callable[[], Any], ...] = (
    lambda: mmcnb.CPMMC(C=1.5, n_init=1, n_jobs=1, random_state=0),
    lambda: mmcnb.KernelKMeans(n_clusters=2, n_init=1, n_jobs=1, random_state=0),
    lambda: mmcnb.MaximumMarginClustering(n_clusters=2, n_jobs=1, random_state=0),
)


def ask(rng: np.random.Generator, source: Any, other: Any) -> None:
    """Open a source, fit to it, and predict its rows and those of another."""
    samples = mmcnb.open_samples(source)
    samples.block(0, samples.n_samples)
    model = one_of(rng, MODELS)()
    model.fit(source)
    labels = model.predict(source)
    assert np.array_equal(model.labels_, labels), "labels_ differ from predict"
    model.predict(other)


def taken_columns(frame: Any) -> Any:
    """Return the columns of a frame that are taken beside numbers."""
    known = np.arange(len(frame)) % 5 / 4
    is_taken = []
    for position in range(frame.shape[1]):
        pair = frame.iloc[:, position].to_frame().assign(known=known)
        is_taken.append(refusal(lambda pair=pair: mmcnb.open_samples(pair)) is None)
    positions = np.flatnonzero(is_taken)
    columns = [frame.iloc[:, position] for position in positions]
    if not columns:
        return frame.iloc[:, :0]
    return pd.concat(columns, axis=1)


# --- frames ---------------------------------------------------------------------------


def names_of(rng: np.random.Generator, width: int) -> list[Any]:
    """Return names: mostly plain ones, or odd, equal, or no texts."""
    way = int(rng.integers(6))
    if way < 3:
        return [f"c{k}" for k in range(width)]
    if way == 3:
        return [one_of(rng, NAMES) for _ in range(width)]
    if way == 4:
        return list(range(width))
    pool = ("a", 1, None, 2.5, ("a", 1), pd.Timestamp(DAY), np.nan, b"a", True)
    return [one_of(rng, pool) for _ in range(width)]


def text_names(rng: np.random.Generator, width: int) -> list[str]:
    """Return names that are texts, as other libraries than pandas have them."""
    return [str(name) for name in names_of(rng, width)]


def width_of(rng: np.random.Generator) -> int:
    """Return a number of columns, seldom none."""
    return int(one_of(rng, (0, 1, 1, 2, 3, 4)))


def pandas_frame(rng: np.random.Generator, n: int, folder: Path) -> Any:
    """Return a frame of pandas with any columns, names and index."""
    width = width_of(rng)
    columns = [pandas_column(rng, n) for _ in range(width)]
    if rng.random() < 0.5:
        columns.append(pd.Series(rng.normal(size=n)))
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(n))
    names: Any = names_of(rng, len(columns))
    if columns and rng.random() < 0.05:
        names = pd.MultiIndex.from_product([["a"], range(len(columns))])
    frame.columns = names
    if n and rng.random() < 0.2:
        frame.index = one_of(rng, indexes(n))
    return frame


def indexes(n: int) -> list[Any]:
    """Return indexes of rows: texts, equal ones, dates, two levels, missing."""
    return [
        pd.Index([f"r{k}" for k in range(n)], name="name"),
        pd.Index([0] * n),
        pd.date_range(DAY, periods=n),
        pd.MultiIndex.from_product([["a"], range(n)]),
        pd.Index([None] * n),
        pd.interval_range(0, n),
        pd.Index([(k, "a") for k in range(n)], tupleize_cols=False),
    ]


def arrow_table(rng: np.random.Generator, n: int, folder: Path) -> Any:
    """Return a table of Arrow with any columns."""
    width = width_of(rng)
    columns = [arrow_column(rng, n) for _ in range(width)]
    if rng.random() < 0.5:
        columns.append(pa.array(rng.normal(size=n)))
    return pa.table(columns, names=text_names(rng, len(columns)))


def polars_frame(rng: np.random.Generator, n: int, folder: Path) -> Any:
    """Return a frame of polars with any columns."""
    columns = [polars_column(rng, n) for _ in range(width_of(rng))]
    if rng.random() < 0.5:
        columns.append(pl.Series(rng.normal(size=n)))
    return pl.DataFrame([one.alias(f"c{k}") for k, one in enumerate(columns)])


def arrow_on_pandas(rng: np.random.Generator, n: int, folder: Path) -> Any:
    """Return a table of Arrow as a frame of pandas, which keeps its types or not."""
    table = arrow_table(rng, n, folder)
    mapper = pd.ArrowDtype if rng.random() < 0.5 else None
    try:
        return table.to_pandas(types_mapper=mapper, ignore_metadata=True)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError, KeyError):
        return table  # pandas has no such columns


def parquet_file(rng: np.random.Generator, n: int, folder: Path) -> Any:
    """Return the path of a Parquet file, or a table that Parquet cannot have."""
    table = arrow_table(rng, n, folder)
    path = folder / f"{rng.integers(10**9)}.parquet"
    try:
        pa.parquet.write_table(table, path, row_group_size=10)
        pa.parquet.read_table(path)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError, OSError):
        return table
    return path


def arrow_file(rng: np.random.Generator, n: int, folder: Path) -> Any:
    """Return the path of an Arrow file, or a table that has no such file."""
    table = arrow_table(rng, n, folder)
    path = folder / f"{rng.integers(10**9)}.arrow"
    try:
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table, max_chunksize=10)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
        return table
    return path


def csv_file(rng: np.random.Generator, n: int, folder: Path) -> Any:
    """Return the path of a CSV file as pandas writes it."""
    frame = pandas_frame(rng, n, folder)
    path = folder / f"{rng.integers(10**9)}.csv"
    try:
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            frame.to_csv(file, index=rng.random() < 0.3)
    except (pa.ArrowException, TypeError, ValueError):
        return frame  # pandas cannot write it
    return path


KINDS: dict[str, Callable[[np.random.Generator, int, Path], Any]] = {
    "pandas": pandas_frame,
    "Arrow": arrow_table,
    "polars": polars_frame,
    "pandas again": pandas_frame,
    "Arrow on pandas": arrow_on_pandas,
    "Parquet": parquet_file,
    "Arrow file": arrow_file,
    "CSV": csv_file,
}


def other_batch(rng: np.random.Generator, source: Any, kind: str, folder: Path) -> Any:
    """Return other rows for a model: missing, of other types, or with other columns."""
    way = int(rng.integers(5))
    if way == 0:
        return KINDS[kind](rng, 5, folder)
    names = names_in(source)
    if way == 1:
        return pd.DataFrame([[None] * len(names)] * 3, columns=names, dtype=object)
    if way == 2:
        columns = [pandas_column(rng, 6) for _ in names] or [pd.Series([1.0])]
        frame = pd.concat(columns, axis=1)
        frame.columns = names or ["a"]
        return frame
    if way == 3:
        return pd.DataFrame([["new text"] * len(names)] * 3, columns=names)
    if isinstance(source, pd.DataFrame):
        return source.iloc[::-1, ::-1] if rng.random() < 0.5 else source.iloc[:, 1:]
    return source


def names_in(source: Any) -> list[Any]:
    """Return names of columns, as far as a frame has them."""
    if isinstance(source, pa.Table):
        return list(source.column_names)
    if isinstance(source, Path):
        return ["c0", "c1"]
    return list(source.columns)

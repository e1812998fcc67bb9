"""Read ORC, Stata, SAS and ARFF files."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa

from mmcnb.errors import InputError, worded
from mmcnb.samples.text import open_text
from mmcnb.tables.arrow import TEXT
from mmcnb.tables.columnar_file import OpenedFile, opened_in_memory
from mmcnb.tables.objects import array_of_objects

REMEDY = "get the file again, or save it as CSV or Parquet"


def open_orc(path: Path) -> OpenedFile:
    """Open an ORC file for reading stripe by stripe."""
    with worded(f"{path} needs pyarrow with ORC", "write it as Parquet", ImportError):
        from pyarrow import orc
    file = orc.ORCFile(path)
    schema = file.schema

    def batches(
        positions: list[int], step: int, group: int | None
    ) -> Iterator[pa.RecordBatch]:
        names = [schema.names[position] for position in positions]
        for number in range(file.nstripes):
            stripe = file.read_stripe(number, names)
            yield from pa.Table.from_batches([stripe]).to_batches(max_chunksize=step)

    cached = 0
    if file.nstripes:
        cached = 2 * path.stat().st_size // file.nstripes
    return OpenedFile(schema=schema, lengths=None, cached_bytes=cached, batches=batches)


def open_stata(path: Path) -> OpenedFile:
    """Open a Stata file, and convert values with labels to texts."""
    return _opened(path, lambda: pd.read_stata(path, preserve_dtypes=True))


def open_sas(path: Path) -> OpenedFile:
    """Open a SAS file."""
    return _opened(path, lambda: pd.read_sas(path, encoding="infer"))


def _opened(path: Path, read: Callable[[], pd.DataFrame]) -> OpenedFile:
    with worded(f"{path} cannot be read", REMEDY):
        frame = read()
    if not len(frame.columns):
        raise InputError(f"{path} has no columns: add at least one.")
    columns = []
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(object).where(column.notna(), None)
        columns.append(array_of_objects(name, column, str(path)))
    return opened_in_memory(pa.table(columns, list(map(str, frame.columns))))


def open_arff(path: Path) -> OpenedFile:
    """Open an ARFF file, in which "?" marks missing values."""
    from scipy.io import arff

    with (
        worded(f"{path} cannot be read as ARFF", "save the table as CSV"),
        open_text(path) as (_, file),
    ):
        text = file.read().decode("utf-8", "replace")
        rows, facts = arff.loadarff(io.StringIO(text))
    columns = []
    for name in facts.names():
        kind, _ = facts[name]
        values = rows[name]
        if kind == "nominal":
            texts = [value.decode() for value in values.tolist()]
            array = pa.array([None if text == "?" else text for text in texts], TEXT)
        else:
            array = pa.array(values, from_pandas=True)
        columns.append(array)
    return opened_in_memory(pa.table(columns, facts.names()))

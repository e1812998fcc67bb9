"""Add the clusters of rows to tables, in files or in data frames of any library."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmcnb._fit_warnings import Importance, Note, warn_of_notes
from mmcnb.engine.run import Engine
from mmcnb.errors import InputError, worded
from mmcnb.estimators.outputs import columns_of
from mmcnb.features.labelling import (
    CLASS,
    CLUSTER,
    OUTLIER_SCORE,
    PROBABILITY,
    ClassColumnPass,
    ColumnPasses,
)
from mmcnb.samples import Samples
from mmcnb.samples.frames import as_frame, column_labels
from mmcnb.samples.row_index import index_of_frame
from mmcnb.stores.joined_table import (
    JoinedTableWriter,
    NewColumns,
    RowsThatTookPart,
    free_names,
    schema_of_text,
    table_kind,
)
from mmcnb.stores.row_index import row_index_of
from mmcnb.tables.source import TablePart, TableSource, WholeTable

if TYPE_CHECKING:
    import pyarrow as pa

    from mmcnb.estimators.base import Estimator

ROWS_OF_FRAME = 2**16  # number of rows of a data frame that are written per batch


def new_columns(engine: Engine, passes: ColumnPasses, names: list[str]) -> NewColumns:
    """Return the columns that the passes compute, a few blocks of rows at a time."""
    import pyarrow as pa

    types = {
        CLUSTER: pa.int32(),
        PROBABILITY: pa.float64(),
        OUTLIER_SCORE: pa.float32(),
    }

    for sweep, _ in passes:
        if isinstance(sweep, ClassColumnPass):
            types[CLASS] = pa.array(sweep.classes).type

    def groups() -> Iterator[dict[str, np.ndarray]]:
        streams = []
        for number, (sweep, features) in enumerate(passes):
            name = "" if number else "table"  # only the first pass shows a progress bar
            streams.append(engine.stream(sweep, features, name))
        for parts in zip(*streams, strict=True):
            columns: dict[str, np.ndarray] = {}
            for part in parts:
                columns |= columns_of(part)
            yield columns

    return NewColumns({name: types[name] for name in names}, groups())


def check_label_table(samples: Samples, out: str | os.PathLike[str]) -> None:
    """Check that a table can be written to ``out``, before any row is read.

    Raises
    ------
    InputError
        If the samples do not come from a file, if the end of the path does not select a
        supported format, or if a column has a type that the format cannot store.
    """
    kind = table_kind(out)
    files = _source_of(samples).table()
    if kind == "text" and not files.is_text:
        import pyarrow as pa

        schema_of_text(pa.schema(files.types_as_written()), Path(out).name)


def write_label_table(
    estimator: "Estimator",
    X: object,
    samples: Samples,
    out: str | os.PathLike[str],
) -> None:
    """Write a table with the clusters of its rows in new columns."""
    table_kind(out)  # raises InputError for other formats
    passes, names = estimator._column_passes(samples)
    with (
        estimator._engine_of(passes[-1][1]) as engine,
        JoinedTableWriter(out) as writer,
    ):
        _write(writer, X, samples, new_columns(engine, passes, names))
    warn_of_notes(_notes(writer, samples, names))


def _notes(
    writer: JoinedTableWriter, samples: Samples, names: list[str]
) -> Iterator[str]:
    """Yield sentences for warnings about renamed columns and rows that are left out."""
    for name, wanted in zip(writer.names, names, strict=True):
        if name != wanted:
            sentence = (
                f"{samples.name} already has a column {wanted!r}; the new column is "
                f"named {name!r}."
            )
            yield Note(sentence, Importance.ADVICE)
    n_left = writer.n_rows - samples.n_samples
    if writer.kind == "folder" and n_left:
        yield (
            f"{n_left:,} rows of {samples.name} were left out and have no cluster, so "
            "they are missing from the folders; pass a path that ends with .parquet to "
            "write them too."
        )


def _write(
    writer: JoinedTableWriter, X: object, samples: Samples, new: NewColumns
) -> None:
    """Write the rows of a data frame or a table file, together with new columns."""
    index = row_index_of(None, samples)
    frame = _frame_of(X)
    if frame is not None:
        table = _arrow_table(frame, is_text=writer.kind == "text")
        parts = _parts_of_frame(table)
        writer.write_parts(samples.name, table.schema, parts, index, new)
        return
    source = _source_of(samples)
    files = source.table()
    texts = files.text_files()
    if writer.kind == "text" and texts is not None:
        writer.write_text(texts, index, new, _decimal_of(samples, source))
        return
    whole = WholeTable(files, _decimal_of(samples, source))
    writer.write_parts(samples.name, whole.schema, whole.parts(), index, new)


def _decimal_of(samples: Samples, source: TableSource) -> str:
    """Return the decimal separator of the numbers in a text file."""
    columns = () if samples.root.encoding is None else samples.root.encoding.features
    points = {column.form.decimal for column in columns if column.form is not None}
    return "," if "," in points else source.options.decimal


def label_frame(estimator: "Estimator", X: Any, samples: Samples) -> Any:
    """Return a table as a data frame, with the clusters of its rows in new columns."""
    import pyarrow as pa

    passes, names = estimator._column_passes(samples)
    frame = _frame_of(X)
    whole = None
    if frame is None:
        source = _source_of(samples)
        whole = WholeTable(source.table(), _decimal_of(samples, source))
    with estimator._engine_of(passes[-1][1]) as engine:
        new = new_columns(engine, passes, names)
        if whole is not None:
            return _frame_of_file(samples, whole, new)
        values = new.take(samples.n_samples)
    labels = [str(name) for name in column_labels(frame)]
    columns = dict(zip(free_names(names, labels), values.values(), strict=True))
    if hasattr(frame, "iloc"):  # a pandas frame
        joined = frame.copy(deep=False)
        for name, column in columns.items():
            joined[name] = column
        return joined
    if type(X).__module__.startswith("polars"):
        import polars

        return X.with_columns(polars.Series(*pair) for pair in columns.items())
    for name, column in columns.items():
        frame = frame.append_column(name, pa.array(column))
    return frame


def _frame_of_file(samples: Samples, whole: WholeTable, new: NewColumns) -> Any:
    """Return the rows of a file as a pandas frame, with new columns."""
    import pyarrow as pa

    found = RowsThatTookPart(row_index_of(None, samples))
    names = free_names([*new.types], whole.schema.names)
    parts = []
    for part in whole.parts():
        n_rows = part.rows.num_rows
        positions = found.positions(part.file, part.first, n_rows)
        rows = part.rows
        for name, column in zip(names, new.beside(positions, n_rows), strict=True):
            rows = rows.append_column(name, column)
        parts.append(rows)
    found.check(samples.name)
    return pa.Table.from_batches(parts).to_pandas()


def _frame_of(X: object) -> Any:
    """Return a pandas frame unchanged, and any other data frame as an Arrow table.

    Return None if X is not a data frame.
    """
    if isinstance(X, Samples | str | os.PathLike | np.ndarray | list | tuple):
        return None
    return as_frame(X)


def _arrow_table(frame: Any, is_text: bool) -> "pa.Table":
    """Convert a data frame to an Arrow table, with its index as columns.

    In text output, index columns come first and always have names. A default index of
    row numbers is left out.
    """
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    index = index_of_frame(frame.index)
    if is_text and index is not None:
        labels = [str(name) for name in column_labels(frame)]
        frame = frame.reset_index(names=free_names(index.keys, labels))
    frame = _with_texts(frame, is_text)
    with worded(
        "the data frame cannot be written",
        "convert each column to one type, for example by X.astype(str)",
        pa.ArrowException,
        TypeError,
        ValueError,
    ):
        return pa.Table.from_pandas(frame)


def _with_texts(frame: Any, is_text: bool) -> Any:
    """Convert pandas columns that Arrow cannot write to dense columns or to text."""
    written = frame.copy(deep=False)
    for position in range(frame.shape[1]):
        values = frame.iloc[:, position]
        if hasattr(values, "sparse"):
            written.isetitem(position, values.sparse.to_dense())
        elif not _is_writable(values, is_text):
            texts = values.astype(object).map(str, na_action="ignore")
            written.isetitem(position, texts)
    return written


def _is_writable(values: Any, is_text: bool) -> bool:
    """Return whether the values of a column can be written to Parquet or CSV."""
    import pyarrow as pa

    try:
        data_type = pa.array(values, from_pandas=True).type
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    is_category = pa.types.is_dictionary(data_type)
    if is_category:
        data_type = data_type.value_type
    if isinstance(data_type, pa.BaseExtensionType):  # intervals and periods of pandas
        return not (is_category or is_text)
    return not (is_text and pa.types.is_duration(data_type))


def _parts_of_frame(table: "pa.Table") -> Iterator[TablePart]:
    first = 0
    for rows in table.to_batches(max_chunksize=ROWS_OF_FRAME):
        yield TablePart(rows, first)
        first += rows.num_rows


def _source_of(samples: Samples) -> TableSource:
    """Return the table source from which samples were read.

    Raise InputError if the samples are not a table.
    """
    source = samples.root.table_source
    if source is None:
        raise InputError(
            f"{samples.name} is not a table, so the clusters cannot be added to its "
            "columns; write them with the row numbers or names by "
            "predict(X, 'labels.csv') or --labels labels.csv."
        )
    return source

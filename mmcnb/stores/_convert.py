"""Convert files and other stores to Zarr stores with checksums, block by block."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from mmcnb._config import LIBRARIES, format_bytes
from mmcnb._machine import resident_memory
from mmcnb._progress import progress as progress_bar
from mmcnb.errors import InputError, MemoryLimitError, shown
from mmcnb.samples.base import Samples
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.formats import file_format, is_unknown, refusal, table_format
from mmcnb.samples.matrix import as_matrix, block_dtype, n_rows_of, to_dense
from mmcnb.samples.npy import Blocks, Rows, read_npz, step_rows
from mmcnb.samples.open import open_samples
from mmcnb.samples.paths import PathLike, checked_path, expanded, is_store_folder
from mmcnb.samples.row_index import KeptNames, RowIndex
from mmcnb.samples.text import LabelsError, read_libsvm
from mmcnb.stores._write import CSRStoreWriter, DenseStoreWriter
from mmcnb.stores.atomic import AtomicOutput
from mmcnb.stores.labels import (
    array_beside,
    class_names,
    open_class_labels,
)
from mmcnb.stores.row_index import attribute, row_index_of, values_to_store

if TYPE_CHECKING:
    from mmcnb.tables.reader import TableReader


STORES = ("npy", "hdf5", "zarr", "matrix")
"""Formats of `mmcnb.samples.formats` that `open_samples` opens."""


class _Stream(NamedTuple):
    """Rows to convert, with their properties."""

    blocks: Blocks
    is_sparse: bool
    dtype: np.dtype
    n_features: int | None
    n_samples: int | None = None
    cached_bytes: int = 0
    feature_names: list[str] | None = None
    sources: list[str] | None = None
    orders: Mapping[str, Sequence[str]] = MappingProxyType({})
    # For a table with missing values: number of categories of each column, or None for
    # a numeric column. None without missing values.
    gaps: list[int | None] | None = None
    encoding: Encoding | None = None  # encoding of a table with missing values
    # Returns the class names. It is called after all rows have been read, because the
    # last row may have a new class.
    class_names: Callable[[], list[str] | None] = lambda: None
    # Returns the attribute of the array ``index``. It is also called after all rows
    # have been read.
    row_index: Callable[[], dict[str, Any] | None] = lambda: None


def convert(  # noqa: PLR0913
    source: Any,
    out: PathLike,
    *,
    layout: str = "auto",
    element: str | None = None,
    memory_limit: int | None = None,
    overwrite: bool = False,
    zero_based: bool = False,
    n_features: int | None = None,
    dtype: npt.DTypeLike | None = None,
    progress: bool | None = None,
    show_columns: Callable[[list[dict[str, Any]]], object] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Write rows, class labels and row names to a Zarr store with checksums.

    Parameters
    ----------
    source : path, array, sparse matrix, zarr.Array or zarr.Group
        CSV, LIBSVM or Matrix Market text (plain, .gz, .bz2, .xz or .zst), a folder from
        10x Genomics, Parquet (a file or a folder of files), Arrow IPC or Feather, .npy,
        .npz, a Zarr or AnnData store, or rows in memory. A file with an unknown
        extension is read as LIBSVM text if its first line looks like LIBSVM text.
    out : str or path-like
        Path of the new store. The store appears at this path only when it is complete.
    layout : {"auto", "dense", "csr"}, default="auto"
        Layout of the rows in the store. With ``"auto"``, dense rows are written as a
        dense array. Sparse rows are written as CSR unless more than half of their
        values are stored.
    element : str, default=None
        Name of the element of the source that contains the rows. None means ``"X"``.
    memory_limit : int, default=None
        Limit on the resident memory of the process, in bytes. None means no limit.
    overwrite : bool, default=False
        Whether to replace an existing store.
    zero_based : bool, default=False
        Whether the columns of LIBSVM text are numbered from 0 instead of 1.
    n_features : int, default=None
        Number of columns of LIBSVM text. It is needed if the last columns have no
        stored values. None means that the last column with a stored value is the last.
    dtype : {"float32", "float64"}, default=None
        Data type of the stored rows. None means float32 for text (float64 for a table
        in which distinct numbers would be equal in float32), and the type of the source
        otherwise.
    progress : bool or None, default=None
        Whether to show a progress bar. None shows it on a terminal or in a notebook.
    show_columns : callable, default=None
        Function that is called with a list of descriptions of a table's columns, once
        100,000 rows have been read.
    **options
        Options for reading tables, as in `mmcnb.read_table`. Classes and row names of a
        table are written to the arrays ``y`` and ``index`` of the store.

    Returns
    -------
    dict
        For a table: ``header``, ``rows_dropped``, ``cells_filled``, ``notes`` (a list
        of sentences about the file) and ``columns`` (for each column, its name, type,
        number of missing values, number of distinct values, and treatment). For LIBSVM
        text whose labels were ignored: ``notes``. For other sources, the dict is empty.

    Raises
    ------
    InputError
        If the source cannot be used. The message names the file, line, row or column,
        and no store is written.
    MemoryLimitError
        If the memory limit is too small. The message names the smallest limit that
        works.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mmcnb.samples import open_samples
    >>> from mmcnb.stores import convert
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pathlib.Path(folder, "tiny.csv")
    ...     _ = table.write_text("width,height,kind\\n1,2.5,a\\n3,4,b\\n")
    ...     taken = convert(table, f"{folder}/tiny.zarr", label_column="kind")
    ...     open_samples(f"{folder}/tiny.zarr").n_features
    2
    >>> taken["columns"][2]["becomes"]
    'classes'
    """
    if layout not in ("auto", "dense", "csr"):
        raise InputError(
            f"layout={shown(layout)} is unknown: give 'auto', 'dense' or 'csr'."
        )
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise InputError(
            f"dtype={shown(dtype)} is not supported: give 'float32' or 'float64'."
        )
    if n_features is not None and n_features < 1:
        raise InputError(f"n_features={n_features} is too small: give at least 1.")
    if isinstance(source, str | os.PathLike):
        checked_path(source, "the source")
        source = expanded(source)
    # AtomicOutput raises InputError if the store exists and overwrite is False.
    _check_apart(source, AtomicOutput(out, overwrite).target)
    form = _format(source)

    def write(stream: _Stream) -> None:
        _check_memory(memory_limit, stream)
        _write(stream, layout, progress, AtomicOutput(out, overwrite))

    if form == "table":
        return _convert_table(
            Path(source), options | {"dtype": dtype}, progress, show_columns, write
        )
    gaps: dict[str, Any] = {}
    if form == "store":
        gaps = {name: options.pop(name, None) for name in ("na_values", "missing")}
    _check_no_options(source, options)
    if form == "libsvm":
        read = partial(
            read_libsvm,
            Path(source),
            np.dtype(dtype or np.float32),
            zero_based,
            n_features,
            progress,
        )
        return _convert_libsvm(read, np.dtype(dtype or np.float32), n_features, write)
    if form == "numpy":
        samples, y = read_npz(Path(source))
        write(_stream_of(source, samples, dtype, y))
    else:
        samples = _opened(source, element, gaps, memory_limit)
        write(_stream_of(source, samples, dtype))
    return {}


def _opened(
    source: Any,
    element: str | None,
    gaps: Mapping[str, Any],
    memory_limit: int | None,
) -> Samples:
    """Open a source that is not a table, with any options for missing values."""
    if all(value is None for value in gaps.values()):
        return open_samples(source, element, memory_limit=memory_limit)
    from mmcnb.tables.array_table import open_array
    from mmcnb.tables.options import named_options

    return open_array(source, element, named_options(gaps))


def _convert_libsvm(
    read: Callable[..., Blocks],
    dtype: np.dtype,
    n_features: int | None,
    write: Callable[[_Stream], None],
) -> dict[str, Any]:
    """Write LIBSVM text to a store, and return notes about ignored labels.

    If a label turns out not to be a class, the text is read again and all labels are
    ignored, because preceding rows have been written with their labels.
    """

    def stream(with_labels: bool) -> _Stream:
        return _Stream(
            blocks=read(with_labels=with_labels),
            is_sparse=True,
            dtype=dtype,
            n_features=n_features,
            cached_bytes=3 * 2**24,  # measured memory of buffered text
        )

    try:
        write(stream(with_labels=True))
    except LabelsError as error:
        write(stream(with_labels=False))
        return {"notes": [f"{error}: all labels were ignored."]}
    return {}


def _check_no_options(source: object, options: Mapping[str, object]) -> None:
    """Raise InputError if table options are passed for a source that is not a table."""
    what = source
    if not isinstance(source, str | os.PathLike):
        what = f"a {type(source).__name__}"
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"{name} applies to CSV, Parquet and Arrow files only, but {what} is "
                "not one: leave it out."
            )


def _check_apart(source: object, target: Path) -> None:
    """Raise InputError if the source contains the target, or the target the source."""
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return
    source_path = Path(os.path.realpath(checked_path(source, "the source")))
    target_path = Path(os.path.realpath(target))
    if (
        source_path == target_path
        or source_path in target_path.parents
        or target_path in source_path.parents
    ):
        raise InputError(
            f"{target} overlaps its source {source}: choose another path to write to."
        )


def _check_memory(memory_limit: int | str | None, stream: _Stream) -> None:
    if memory_limit is None:
        return
    if isinstance(memory_limit, str):
        raise InputError(
            f"memory_limit={memory_limit!r} is not a number of bytes: "
            "give one such as 2**29."
        )
    row_bytes = (stream.n_features or 1) * stream.dtype.itemsize
    # By measurement, buffers, chunks and libraries need 160 MiB in addition to the
    # current memory of the process.
    before = resident_memory() or LIBRARIES
    least = before + 160 * 2**20 + stream.cached_bytes + 4 * row_bytes
    if memory_limit < least:
        # A new process with the recommended limit may start with slightly more memory.
        enough = format_bytes(least + 2**24, up=True)
        raise MemoryLimitError(
            f"memory_limit={format_bytes(memory_limit)} is too small to convert the "
            f"data; the least that works is {enough}."
        )


def _convert_table(
    path: Path,
    options: dict[str, Any],
    progress: bool | None,
    show_columns: Callable[[list[dict[str, Any]]], object] | None,
    write: Callable[[_Stream], None],
) -> dict[str, Any]:
    from mmcnb.tables.files import FileTable
    from mmcnb.tables.options import named_options
    from mmcnb.tables.reader import TableReader

    table_options = named_options(options)
    table = FileTable(path, table_options, progress)
    keeps_gaps = table_options.missing in ("auto", "neighbors")
    if keeps_gaps:
        table_options = replace(table_options, missing="neighbors", keeps_gaps=True)
    rows = TableReader(table, table_options, show_columns)

    def write_all() -> None:
        lengths = [0] * max(1, len(table.files))
        # Row numbers are stored only if they may differ from those in the store: for
        # several files, and if rows may be dropped.
        has_numbers = bool(table.files) or table_options.missing == "drop"
        dtype = _written_dtype(rows, table_options.dtype)
        gaps = None
        if rows.has_stored_gaps:
            dtype = block_dtype(dtype)
            gaps = rows.n_categories
        stream = _Stream(
            blocks=_numbered(rows.blocks(), lengths, has_numbers),
            is_sparse=False,
            dtype=dtype,
            n_features=len(rows.encoding.feature_names),
            n_samples=None if table.lengths is None else sum(table.lengths),
            cached_bytes=table.cached_bytes,
            feature_names=rows.feature_names,
            sources=rows.encoding.sources,
            orders=rows.encoding.orders,
            class_names=lambda: rows.classes.names,
            row_index=lambda: row_index(lengths),
            gaps=gaps,
            encoding=None if gaps is None else rows.encoding,
        )
        write(stream)

    def row_index(lengths: list[int]) -> dict[str, Any]:
        has_names = rows.index_column is not None
        return attribute(
            RowIndex(
                sum(lengths),
                files=table.files,
                lengths=tuple(lengths) if table.files else (),
                names=KeptNames(np.empty(0)) if has_names else None,
                name=rows.index_name,
                n_left_out=rows.n_dropped,
            )
        )

    rows.with_final_types(write_all)
    return rows.report()


def _numbered(blocks: Blocks, lengths: list[int], has_numbers: bool) -> Blocks:
    """Yield blocks of rows, and add their numbers of rows to ``lengths``, per file.

    If ``has_numbers``, row numbers are used as the names of rows without names.
    """
    for rows in blocks:
        lengths[rows.file] += n_rows_of(rows.block)
        if rows.names is None and has_numbers:
            rows = rows._replace(names=rows.numbers)
        yield rows


def _format(source: object) -> str:
    """Return the format of a source: "store", "libsvm", "table" or "numpy"."""
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return "store"
    path = checked_path(source, "the source")
    if table_format(path) is not None:
        return "table"
    form = file_format(path)
    if not path.is_file() or form in STORES:
        return "store"
    if form == "npz":
        return "numpy"
    if is_store_folder(path.parent):
        raise InputError(
            f"{path} is part of a Zarr store: "
            f"give the path of the store, {path.parent}."
        )
    if is_unknown(path):
        raise refusal(path)
    return "libsvm"


def _written_dtype(
    rows: "Samples | TableReader", dtype: npt.DTypeLike | None
) -> np.dtype:
    """Return the dtype in which to store rows.

    If ``dtype`` is None, dense integers of 8 or 16 bits are stored unchanged, and other
    values are stored in the dtype of blocks.
    """
    if dtype is not None:
        return np.dtype(dtype)
    native = rows.stored_dtype.newbyteorder("=")
    is_narrow = native.kind in "iu" and native.itemsize < 4
    if is_narrow and not rows.is_sparse:
        return native
    return block_dtype(native)


def _stream_of(
    source: Any,
    samples: Samples,
    dtype: npt.DTypeLike | None,
    y: np.ndarray | None = None,
) -> _Stream:
    """Return a stream of rows, with the class labels and row names of their source.

    ``y`` contains the labels of a .npz file, and is None for other sources.
    """
    samples = getattr(samples, "unfilled", None) or samples
    gaps = getattr(samples, "gaps", None)  # only rows of a store have this attribute
    n = samples.n_samples
    labels = y
    names_of_classes = None
    stored_labels = array_beside(samples, "y")
    if stored_labels is not None:
        n_labels = stored_labels.shape[0]
        if n_labels != n:
            raise InputError(
                f"{samples.name}: y has {n_labels} labels, but X has {n} rows."
            )
        names_of_classes = class_names(stored_labels)
        labels = open_class_labels(samples)
    index = row_index_of(source, samples)
    has_index = not index.is_plain and values_to_store(index, 0, 1) is not None

    def blocks() -> Blocks:
        chunks = max(1, step_rows(samples.row_bytes) // samples.chunk_rows)
        step = samples.chunk_rows * chunks
        for start in range(0, n, step):
            stop = min(start + step, n)
            yield Rows(
                samples.block(start, stop)
                if gaps is None
                else samples.stored(start, stop),
                None if labels is None else labels[start:stop],
                values_to_store(index, start, stop) if has_index else None,
            )

    beside = 0 if labels is None else labels.nbytes
    return _Stream(
        blocks=blocks(),
        is_sparse=samples.is_sparse,
        dtype=_written_dtype(samples, dtype),
        n_features=samples.n_features,
        n_samples=n,
        cached_bytes=int(2 * samples.chunk_rows * samples.row_bytes) + beside,
        feature_names=samples.feature_names,
        sources=samples.sources,
        orders=samples.orders,
        class_names=lambda: names_of_classes,
        row_index=lambda: attribute(index),
        gaps=gaps,
        encoding=getattr(samples, "table_encoding", None),
    )


def _write(
    stream: _Stream, layout: str, show_progress: bool | None, output: AtomicOutput
) -> None:
    """Write the rows of a stream to a store.

    If sparse rows are to be stored densely, they are first written as CSR, because the
    number of columns may be unknown until all rows have been read. Then they are read
    back and written as dense rows.
    """
    with output:
        path = output.path
        is_csr = stream.is_sparse or layout == "csr"
        writer = _write_rows(stream, path, is_csr, show_progress)
        if not isinstance(writer, CSRStoreWriter) or not stream.is_sparse:
            return
        if layout == "dense" or (layout == "auto" and writer.density > 0.5):
            aside = path.rename(path.with_name(f".sparse-{path.name}"))
            sparse = _stream_of(aside, open_samples(aside), stream.dtype)
            _write_rows(sparse, path, False, show_progress)


def _write_rows(
    stream: _Stream, path: Path, is_csr: bool, show_progress: bool | None
) -> CSRStoreWriter | DenseStoreWriter:
    """Write all rows of a stream, and return the writer."""
    writer: CSRStoreWriter | DenseStoreWriter
    if is_csr:
        dtype = block_dtype(stream.dtype)
        writer = CSRStoreWriter(path, stream.n_features, dtype)
    else:
        writer = DenseStoreWriter(path, stream.n_features or 0, stream.dtype)
    writer.gaps = stream.gaps
    if stream.encoding is not None:
        writer.encoding_of_table = stream.encoding.to_dict()
    n_samples = stream.n_samples
    if n_samples is None:  # text, whose reader shows its own progress bar
        show_progress = False
    with writer, progress_bar(n_samples, "writing", enabled=show_progress) as bar:
        for rows in stream.blocks:
            matrix = as_matrix(rows.block)
            if isinstance(writer, CSRStoreWriter):
                writer.append(scipy.sparse.csr_array(matrix), y=rows.y)
            else:
                _append_dense(writer, matrix, rows.y)
            if rows.names is not None:
                writer.append_index(rows.names)
            bar.update(n_rows_of(rows.block))
        writer.row_index = stream.row_index()
        writer.class_names = stream.class_names()
        writer.feature_names = stream.feature_names
        writer.sources = stream.sources
        writer.orders = stream.orders
    return writer


def _append_dense(
    writer: DenseStoreWriter,
    rows: np.ndarray | scipy.sparse.csr_array,
    y: np.ndarray | None,
) -> None:
    """Convert rows to dense rows and append them, in small steps to save memory."""
    step = step_rows(writer.n_features * rows.dtype.itemsize)
    for start in range(0, rows.shape[0], step):
        part = slice(start, start + step)
        writer.append(to_dense(rows[part]), None if y is None else y[part])

"""Turn files and other stores into checksummed Zarr stores, by streams."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from mmcnb._config import LIBRARIES, format_bytes
from mmcnb._machine import resident_memory
from mmcnb._progress import progress as progress_bar
from mmcnb.errors import InputError, MemoryLimitError, shown
from mmcnb.samples.base import Samples
from mmcnb.samples.matrix import as_matrix, block_dtype, n_rows_of, to_dense
from mmcnb.samples.npy import Blocks, Rows, read_npz, step_rows
from mmcnb.samples.open import open_samples
from mmcnb.samples.paths import PathLike, checked_path, is_store_folder
from mmcnb.samples.text import looks_like_libsvm, plain_name, read_libsvm, table_format
from mmcnb.stores._write import CSRStoreWriter, DenseStoreWriter
from mmcnb.stores.atomic import AtomicOutput
from mmcnb.stores.labels import (
    array_beside,
    class_names,
    open_class_labels,
    open_index,
)


class _Stream(NamedTuple):
    """Rows being converted, as far as they are known in advance."""

    blocks: Blocks
    is_sparse: bool
    dtype: np.dtype
    n_features: int | None
    n_samples: int | None = None  # None if the reader shows its own progress
    cached_bytes: int = 0
    feature_names: list[str] | None = None
    sources: list[str] | None = None
    class_names: Callable[[], list[str] | None] = lambda: (
        None
    )  # of a table: as many as its rows have shown


def convert(
    source: Any,
    out: PathLike,
    *,
    layout: str = "auto",
    element: str | None = None,
    memory_limit: int | None = None,
    overwrite: bool = False,
    zero_based: bool = False,
    n_features: int | None = None,
    dtype: Any = None,
    progress: bool | None = None,
    show_columns: Callable[[list[dict[str, Any]]], object] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Write rows as a Zarr store with checksums, and their class labels and names beside them.

    Parameters
    ----------
    source : path, array, sparse matrix, zarr.Array or zarr.Group
        CSV or LIBSVM text (plain, .gz, .bz2, .xz or .zst), Parquet (a file, or a folder
        of files), Arrow IPC or Feather, .npy, .npz, a Zarr or AnnData store, or rows in
        memory. A file with another ending is taken for LIBSVM text if its first line
        looks so.
    out : str or path-like
        The store; it appears when it is complete.
    layout : {"auto", "dense", "csr"}, default="auto"
        ``"auto"`` keeps dense rows dense, and sparse rows sparse unless more than half
        of their values are stored.
    element : str, default=None
        Element of a Zarr store; None is ``"X"``.
    memory_limit : int, default=None
        Bytes of resident memory the process may use; a limit that is too small is
        refused.
    overwrite : bool, default=False
        Replace a store that is there.
    zero_based : bool, default=False
        LIBSVM columns are numbered from 0 instead of 1.
    n_features : int, default=None
        Number of columns of LIBSVM text, if the last ones may have no value.
    dtype : {"float32", "float64"}, default=None
        None is float32 for text, or float64 if float32 would merge numbers of a table,
        and for others the type they have.
    progress : bool or None, default=None
        None shows a bar on a terminal.
    show_columns : callable, default=None
        Called with the listing of the columns of a table when 100,000 rows are read.
    **options
        Of tables, as `mmcnb.read_table` has them. Classes and row names become arrays
        ``y`` and ``index`` of the store.

    Returns
    -------
    dict
        Of a table: ``header``, ``rows_dropped``, ``cells_filled``, and ``columns``, a
        listing with name, type, missing and different values of each column, and its
        treatment. Empty for other sources.

    Raises
    ------
    InputError
        The source cannot be used; the message names file, line, row or column. Nothing
        is written then.
    MemoryLimitError
        The limit is too small; the message names the least that works.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mmcnb.samples import open_samples
    >>> from mmcnb.stores import convert
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pathlib.Path(folder, "tiny.csv")
    ...     _ = table.write_text("width,height,kind\\n1,2.5,a\\n3,4,b\\n")
    ...     taken = convert(table, f"{folder}/tiny.zarr", label_column="kind")
    ...     open_samples(f"{folder}/tiny.zarr").n_features, taken["columns"][2]["becomes"]
    (2, 'classes')
    """
    if layout not in ("auto", "dense", "csr"):
        raise InputError(
            f"layout={shown(layout)} is unknown: give 'auto', 'dense' or 'csr'."
        )
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise InputError(
            f"dtype={shown(dtype)} cannot be converted to: give 'float32' or 'float64'."
        )
    if n_features is not None and n_features < 1:
        raise InputError(f"n_features={n_features} is too small: give at least 1.")
    _check_apart(
        source, AtomicOutput(out, overwrite).target
    )  # which refuses one that is there
    form = _format(source)

    def write(stream: _Stream) -> None:
        _check_memory(memory_limit, stream)
        _write(stream, layout, progress, AtomicOutput(out, overwrite))

    if form == "table":
        return _convert_table(
            Path(source), options | {"dtype": dtype}, progress, show_columns, write
        )
    given = next((name for name, value in options.items() if value is not None), None)
    if given is not None:
        what = (
            source
            if isinstance(source, str | os.PathLike)
            else f"a {type(source).__name__}"
        )
        raise InputError(
            f"{given} is of CSV, Parquet and Arrow files, but {what} is none: leave it out."
        )
    if form == "libsvm":
        path = Path(source)
        text_dtype = np.dtype(dtype or np.float32)
        rows = read_libsvm(path, text_dtype, zero_based, n_features, progress)
        write(
            _Stream(rows, True, text_dtype, n_features, cached_bytes=3 * 2**24)
        )  # of lines, measured
    elif form == "numpy":
        samples, y = read_npz(Path(source))
        write(_stream_of(samples, dtype, y))
    else:
        write(_stream_of(open_samples(source, element), dtype))
    return {}


def _check_apart(source: Any, target: Path) -> None:
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return
    inner, outer = (
        Path(os.path.realpath(one))
        for one in (checked_path(source, "the source"), target)
    )
    if inner == outer or inner in outer.parents or outer in inner.parents:
        raise InputError(
            f"{target} overlaps its source {source}: choose another path to write to."
        )


def _check_memory(memory_limit: Any, stream: _Stream) -> None:
    if memory_limit is None:
        return
    if isinstance(memory_limit, str):
        raise InputError(
            f"memory_limit={memory_limit!r} is no number of bytes: give one such as 2**29."
        )
    row_bytes = (stream.n_features or 1) * stream.dtype.itemsize
    # Pieces, chunks and libraries take 160 MiB beyond the memory of the process before,
    # measured.
    least = (
        (resident_memory() or LIBRARIES)
        + 160 * 2**20
        + stream.cached_bytes
        + 4 * row_bytes
    )
    if memory_limit < least:
        fault = (
            f"memory_limit={format_bytes(memory_limit)} is too small to convert with"
        )
        named = format_bytes(
            least + 2**24, up=True
        )  # the next process may begin with a little more
        raise MemoryLimitError(f"{fault}; the least that works is {named}.")


def _convert_table(
    path: Path, options: Any, progress: Any, show: Any, write: Any
) -> dict[str, Any]:
    from mmcnb.tables.columns import TableOptions
    from mmcnb.tables.files import Table
    from mmcnb.tables.rows import TableRows

    given = TableOptions(
        **{name: value for name, value in options.items() if value is not None}
    )
    table = Table(path, given, progress)
    rows = TableRows(table, given, show)
    n_rows = None if table.lengths is None else sum(table.lengths)

    def write_all() -> None:
        written = _written_dtype(rows, given.dtype)
        shape = len(rows.encoding.feature_names), n_rows, table.cached_bytes
        names = rows.feature_names, rows.encoding.sources, lambda: rows.classes.names
        write(_Stream(rows.blocks(), False, written, *shape, *names))

    rows.settled(write_all)
    return rows.report()


def _format(source: Any) -> str:
    """One of store, libsvm, table, numpy."""
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return "store"
    path = Path(source)
    name = plain_name(path)
    if table_format(path) is not None:
        return "table"
    if not path.is_file() or name.endswith((".zip", ".h5", ".hdf5", ".h5ad", ".npy")):
        return "store"
    if path.suffix.lower() == ".npz":
        return "numpy"
    if name.endswith((".libsvm", ".svm", ".svmlight")):
        return "libsvm"
    if is_store_folder(path.parent):
        raise InputError(
            f"{path} is a part of a Zarr store: give the path of the store, {path.parent}."
        )
    if looks_like_libsvm(path):
        return "libsvm"
    fault = f"{path} is of no known format: name it .csv, .tsv or .libsvm (plain, .gz, .bz2, .xz, .zst)"
    raise InputError(
        f"{fault}, .parquet, .arrow, .feather, .npy or .npz, or give a Zarr store."
    )


def _written_dtype(rows: Any, dtype: Any) -> np.dtype:
    """Type to write rows with: the one asked for, or the one they have if it is no wider than needed."""
    if dtype is not None:
        return np.dtype(dtype)
    native = rows.stored_dtype.newbyteorder("=")
    narrow = not rows.is_sparse and native.kind in "iu" and native.itemsize < 4
    return native if narrow else block_dtype(native)


def _stream_of(samples: Samples, dtype: Any, y: np.ndarray | None = None) -> _Stream:
    """Rows with the class labels and names of rows that their store has, or with labels of their own."""
    n = samples.n_samples
    stored = array_beside(samples, "y")
    names_of_classes = None
    if stored is not None:
        if stored.shape[0] != n:
            raise InputError(
                f"{samples.name}: y has {stored.shape[0]} labels, but X has {n} rows."
            )
        names_of_classes = class_names(stored)
        y = open_class_labels(samples)
    index = open_index(samples)

    def blocks() -> Blocks:
        step = samples.chunk_rows * max(
            1, step_rows(samples.row_bytes) // samples.chunk_rows
        )
        for start in range(0, n, step):
            stop = min(start + step, n)
            labels, names = (
                None if part is None else part[start:stop] for part in (y, index)
            )
            yield Rows(samples.block(start, stop), labels, names)

    written = _written_dtype(samples, dtype)
    beside = sum(part.nbytes for part in (y, index) if part is not None)
    cached = int(2 * samples.chunk_rows * samples.row_bytes) + beside
    shape = samples.n_features, n, cached
    names = samples.feature_names, samples.sources, lambda: names_of_classes
    return _Stream(blocks(), samples.is_sparse, written, *shape, *names)


def _write(
    stream: _Stream, layout: str, show_progress: bool | None, output: AtomicOutput
) -> None:
    """Write a store; one of sparse rows that shall be dense is moved aside, and written in its place."""
    with output:
        path = output.path
        writer = _write_rows(
            stream, path, stream.is_sparse or layout == "csr", show_progress
        )
        if stream.is_sparse and (
            layout == "dense" or (layout == "auto" and writer.density > 0.5)
        ):
            sparse = path.rename(path.with_name(f".sparse-{path.name}"))
            _write_rows(
                _stream_of(open_samples(sparse), stream.dtype),
                path,
                False,
                show_progress,
            )


def _write_rows(
    stream: _Stream, path: Path, is_csr: bool, show_progress: bool | None
) -> Any:
    """Write all rows of a stream; the writer."""
    kind, dtype = (
        (CSRStoreWriter, block_dtype(stream.dtype))
        if is_csr
        else (DenseStoreWriter, stream.dtype)
    )
    writer: Any = kind(path, stream.n_features, dtype)
    shown = show_progress if stream.n_samples is not None else False
    with writer, progress_bar(stream.n_samples, "writing", enabled=shown) as bar:
        for block, y, names in stream.blocks:
            if is_csr:
                writer.append(scipy.sparse.csr_array(as_matrix(block)), y=y)
            else:
                _append_dense(writer, as_matrix(block), y)
            if names is not None:
                writer.append_index(names)
            bar.update(n_rows_of(block))
        writer.class_names = (
            stream.class_names()
        )  # of a table: as many as its rows have shown
        writer.feature_names = stream.feature_names
        writer.sources = stream.sources
    return writer


def _append_dense(writer: DenseStoreWriter, rows: Any, y: np.ndarray | None) -> None:
    step = step_rows(
        writer.n_features * rows.dtype.itemsize
    )  # a sparse row may be far shorter
    for start in range(0, rows.shape[0], step):
        part = slice(start, start + step)
        writer.append(to_dense(rows[part]), None if y is None else y[part])

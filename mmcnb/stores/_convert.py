"""Turn files and other stores into checksummed Zarr stores, by streams."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from mmcnb._config import LIBRARIES, format_bytes
from mmcnb._machine import resident_memory
from mmcnb._progress import progress as progress_bar
from mmcnb.errors import InputError, MemoryLimitError, shown
from mmcnb.samples._base import Samples
from mmcnb.samples._columns import TableOptions
from mmcnb.samples._inventory import PathLike, checked_path, is_store_folder
from mmcnb.samples._npy import Blocks, NumpyFile, Rows, step_rows
from mmcnb.samples._open import open_samples
from mmcnb.samples._table_files import open_table, table_format
from mmcnb.samples._text import first_line, looks_like_libsvm, plain_name, read_libsvm
from mmcnb.samples.matrix import CSRBlock, as_block, as_matrix, block_dtype, n_rows_of
from mmcnb.stores._labels import class_labels_array, class_names, open_class_labels, open_index
from mmcnb.stores._write import CSRStoreWriter, DenseStoreWriter, StoreWriter
from mmcnb.stores.atomic import AtomicOutput

WORK_BYTES = 160 * 2**20  # pieces, chunks and libraries on top of what the process holds, measured
DENSE_FROM = 0.5  # share of values from which layout="auto" writes sparse sources dense
LIBSVM_NAMES = (".libsvm", ".svm", ".svmlight")


@dataclass
class _Stream:
    """Rows being converted, and what is known of them in advance or when all were read."""

    blocks: Blocks
    is_sparse: bool
    dtype: np.dtype
    n_features: int | None
    n_samples: int | None = None  # None where the reader shows its own progress
    cached_bytes: int = 0
    feature_names: list[str] | None = None
    class_names: Callable[[], list[str] | None] = lambda: None
    report: Callable[[], dict[str, Any]] = dict


def convert(
    source: Any,
    out: PathLike,
    *,
    layout: str = "auto",
    columns: Any = None,
    drop: Any = None,
    label_column: str | int | None = None,
    index_column: str | int | None = None,
    missing: str = "refuse",
    categories: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    element: str | None = None,
    memory_limit: int | None = None,
    overwrite: bool = False,
    zero_based: bool = False,
    n_features: int | None = None,
    dtype: Any = None,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Write rows as a Zarr store with checksums, and their class labels and names beside them.

    Parameters
    ----------
    source : path, array, sparse matrix, zarr.Array or zarr.Group
        CSV or LIBSVM text (plain, .gz, .bz2, .xz or .zst), Parquet (a file, or a folder of files), Arrow
        IPC or Feather, .npy, .npz, a Zarr or AnnData store, or rows in memory. A file with another
        ending is taken for LIBSVM text if its first line looks so.
    out : str or path-like
        The store; it appears when it is complete.
    layout : {"auto", "dense", "csr"}, default="auto"
        ``"auto"`` keeps dense rows dense, and sparse rows sparse unless more than half of their values
        are stored.
    columns : list of str or int, default=None
        Columns of a table to take as features, in this order, by name or by number from 0; None is all.
        One text may hold several names between commas.
    drop : list of str or int, default=None
        Columns of a table to leave out.
    label_column : str or int, default=None
        Column of a table that holds the classes: whole numbers, or names, which are numbered as they
        first appear.
    index_column : str or int, default=None
        Column of a table that holds the names of rows: they are kept as array ``index`` of the store.
        None is the index that pandas has recorded in a Parquet or Arrow file.
    missing : {"refuse", "drop", "mean"}, default="refuse"
        What becomes of empty, NaN and infinite cells of a table: an error, rows left out, or the mean of
        the finite numbers of the column, for which all rows are read twice.
    categories : {None, "one-hot"}, default=None
        ``"one-hot"`` writes a column of text as one column of 0 and 1 for each text, in sorted order; None
        refuses text.
    delimiter : str, default=None
        What divides the cells of a CSV file. None is a tab for .tsv, and a comma for others.
    decimal : {".", ","}, default="."
        Decimal point of a CSV file.
    element : str, default=None
        Element of a Zarr store; None is ``"X"``.
    memory_limit : int, default=None
        Bytes of resident memory the process may use; a limit that is too small is refused.
    overwrite : bool, default=False
        Replace a store that is there.
    zero_based : bool, default=False
        LIBSVM columns are numbered from 0 instead of 1.
    n_features : int, default=None
        Number of columns of LIBSVM text, where the last ones may hold no value.
    dtype : {"float32", "float64"}, default=None
        None is float32 for text, and for others the type they have.
    progress : bool or None, default=None
        None shows a bar on a terminal.

    Returns
    -------
    dict
        Of a table: ``header``, ``numbers``, ``one_hot``, ``classes``, ``index`` and ``left_out``, which say
        what each column was taken for, ``rows_dropped`` and ``cells_filled``. Empty for other sources.

    Raises
    ------
    InputError
        The source cannot be used; the message names file, line, row or column. Nothing is written then.
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
    ...     open_samples(f"{folder}/tiny.zarr").n_features, taken["classes"]
    (2, 'kind')
    """
    if layout not in ("auto", "dense", "csr"):
        raise InputError(f"layout={shown(layout)} is unknown: give 'auto', 'dense' or 'csr'.")
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise InputError(f"dtype={shown(dtype)} cannot be converted to: give 'float32' or 'float64'.")
    if n_features is not None and n_features < 1:
        raise InputError(f"n_features={n_features} is too small: give at least 1.")
    of_tables = TableOptions(
        columns, drop, label_column, index_column, missing, categories, delimiter, decimal
    )
    output = AtomicOutput(out, overwrite)
    _check_apart(source, output.target)
    text = {"zero_based": zero_based, "n_features": n_features, "show_progress": progress}
    stream = _open_stream(source, element, dtype, of_tables, **text)
    _check_memory(memory_limit, stream)
    (_write_sparse if stream.is_sparse else _write_dense)(stream, output, layout, progress)
    return stream.report()


def _check_apart(source: Any, target: Path) -> None:
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return
    inner, outer = checked_path(source, "the source").resolve(), target.resolve()
    if inner == outer or inner in outer.parents or outer in inner.parents:
        raise InputError(f"{target} overlaps its source {source}: choose another path to write to.")


def _check_memory(memory_limit: Any, stream: _Stream) -> None:
    if memory_limit is None:
        return
    if isinstance(memory_limit, str):
        raise InputError(
            f"memory_limit={memory_limit!r} is no number of bytes: give an integer such as 2**29."
        )
    row_bytes = (stream.n_features or 1) * stream.dtype.itemsize
    least = (resident_memory() or LIBRARIES) + WORK_BYTES + stream.cached_bytes + 4 * row_bytes
    if memory_limit < least:
        raise MemoryLimitError(
            f"memory_limit={format_bytes(memory_limit)} is too small to convert with: "
            f"give at least {format_bytes(least, up=True)}."
        )


def _open_stream(source: Any, element: str | None, dtype: Any, options: TableOptions, **text: Any) -> _Stream:
    """The rows of a source; ``text`` is what the reader of LIBSVM text takes beside path and type."""
    form = _format(source)
    if form in ("csv", "parquet", "arrow"):
        return _table_stream(Path(source), form, options, dtype, text["show_progress"])
    if options.given is not None:
        raise InputError(
            f"{options.given} is of CSV, Parquet and Arrow files, but {source} is none: leave it out."
        )
    if form == "store":
        return _store_stream(open_samples(source, element), dtype)
    path, text_dtype = Path(source), np.dtype(dtype or np.float32)
    if form == "libsvm":
        return _Stream(read_libsvm(path, text_dtype, **text), True, text_dtype, text["n_features"])
    file = NumpyFile(path)
    written = _written_dtype(file, file.dtype, dtype)
    return _Stream(file.blocks(), file.is_sparse, written, file.n_features, file.n_samples, file.cached_bytes)


def _table_stream(path: Path, form: str, options: TableOptions, dtype: Any, progress: bool | None) -> _Stream:
    rows = open_table(path, form, options, dtype, progress)
    written = _written_dtype(rows, rows.stored_dtype, dtype or (np.float32 if form == "csv" else None))
    shape = rows.n_features, rows.table.n_rows, rows.table.cached_bytes
    names = rows.feature_names, lambda: rows.class_names
    return _Stream(rows.blocks(), False, written, *shape, *names, report=rows.report)


def _format(source: Any) -> str:
    """One of store, libsvm, csv, parquet, arrow, numpy."""
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return "store"
    path = Path(source)
    name = plain_name(path)
    table = table_format(path)
    if table is not None:
        return table
    if not path.is_file() or name.endswith((".zip", ".h5", ".hdf5", ".h5ad")):
        return "store"
    if name.endswith(LIBSVM_NAMES):
        return "libsvm"
    if path.suffix.lower() in (".npy", ".npz"):
        return "numpy"
    if is_store_folder(path.parent):
        raise InputError(f"{path} is a part of a Zarr store: give the path of the store, {path.parent}.")
    if looks_like_libsvm(first_line(path)):
        return "libsvm"
    raise InputError(
        f"{path} is of no known format: name it .csv, .tsv or .libsvm (plain, .gz, .bz2, .xz, .zst), "
        ".parquet, .arrow, .feather, .npy or .npz, or give a Zarr store."
    )


def _written_dtype(rows: Any, stored: np.dtype, dtype: Any) -> np.dtype:
    """Type to write rows with: the one asked for, or the one they have where it is no wider than needed."""
    if dtype is not None:
        return np.dtype(dtype)
    native = stored.newbyteorder("=")
    narrow = not rows.is_sparse and native.kind in "iu" and native.itemsize < 4
    return native if narrow else block_dtype(native)


def _store_stream(samples: Samples, dtype: Any) -> _Stream:
    labels = class_labels_array(samples)
    if labels is not None and labels.shape[0] != samples.n_samples:
        raise InputError(
            f"{samples.name}: y has {labels.shape[0]} labels where X has {samples.n_samples} rows."
        )
    names_of_classes = None if labels is None else class_names(labels)
    y = open_class_labels(samples)

    index = open_index(samples)

    def blocks() -> Blocks:
        step = max(
            samples.chunk_rows, step_rows(samples.row_bytes) // samples.chunk_rows * samples.chunk_rows
        )
        for start in range(0, samples.n_samples, step):
            stop = min(start + step, samples.n_samples)
            labels, names = (None if part is None else part[start:stop] for part in (y, index))
            yield Rows(samples.block(start, stop), labels, names)

    written = _written_dtype(samples, samples.stored_dtype, dtype)
    beside = sum(part.nbytes for part in (y, index) if part is not None)
    cached = int(2 * samples.chunk_rows * samples.row_bytes) + beside
    given = samples.n_features, samples.n_samples, cached, samples.feature_names, lambda: names_of_classes
    return _Stream(blocks(), samples.is_sparse, written, *given)


def _write(stream: _Stream, writer: StoreWriter, show_progress: bool | None) -> None:
    """Write all rows of a stream, dense or sparse as the writer wants them."""
    shown = show_progress if stream.n_samples is not None else False
    with writer, progress_bar(stream.n_samples, "writing", enabled=shown) as bar:
        for block, y, names in stream.blocks:
            if isinstance(writer, CSRStoreWriter):
                csr = block if isinstance(block, CSRBlock) else scipy.sparse.csr_array(as_block(block))
                writer.append(csr.data, csr.indices, csr.indptr, y)
            elif isinstance(writer, DenseStoreWriter):
                _append_dense(writer, as_matrix(block), y)
            if names is not None:
                writer.append_index(names)
            bar.update(n_rows_of(block))
        writer.class_names = stream.class_names()  # of a table: as many as its rows have shown
        writer.feature_names = stream.feature_names


def _append_dense(writer: DenseStoreWriter, rows: Any, y: np.ndarray | None) -> None:
    if not scipy.sparse.issparse(rows):
        writer.append(rows, y)
        return
    step = step_rows(writer.n_features * rows.dtype.itemsize)  # a dense row may be far longer
    for start in range(0, rows.shape[0], step):
        part = slice(start, start + step)
        writer.append(rows[part].toarray(), None if y is None else y[part])


def _write_dense(stream: _Stream, output: AtomicOutput, layout: str, show_progress: bool | None) -> None:
    """Write rows that come dense, or shall be so."""
    assert stream.n_features is not None
    if layout == "csr":
        writer: StoreWriter = CSRStoreWriter(stream.n_features, output, block_dtype(stream.dtype))
    else:
        writer = DenseStoreWriter(stream.n_features, None, None, output, stream.dtype)
    _write(stream, writer, show_progress)


def _write_sparse(stream: _Stream, output: AtomicOutput, layout: str, show_progress: bool | None) -> None:
    """Write a CSR store aside; then move it to its place, or write it there as a dense one."""
    with output:
        sparse = output.path.with_name(f".sparse-{output.path.name}")
        writer = CSRStoreWriter(stream.n_features, AtomicOutput(sparse, name=output.name), stream.dtype)
        _write(stream, writer, show_progress)
        rows = open_samples(sparse)
        density = writer.n_values / (rows.n_samples * rows.n_features)
        if layout == "dense" or (layout == "auto" and density > DENSE_FROM):
            aside = AtomicOutput(output.path, name=output.name)
            _write_dense(_store_stream(rows, stream.dtype), aside, "dense", show_progress)
        else:
            sparse.rename(output.path)

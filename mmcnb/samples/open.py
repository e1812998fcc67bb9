"""Open rows of any source, with a reader for each kind of object or file."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse
import zarr

from mmcnb.errors import InputError
from mmcnb.samples._dask import open_dask
from mmcnb.samples._hdf5 import open_hdf5, open_hdf5_node
from mmcnb.samples.base import Samples, in_memory
from mmcnb.samples.formats import (
    FOREIGN,
    OF_TABLES,
    file_format,
    folder_format,
    refusal,
    table_format,
)
from mmcnb.samples.matrix_market import open_matrix_market
from mmcnb.samples.npy import open_memmap, open_npy
from mmcnb.samples.paths import PathLike, checked_path, expanded, is_store_folder
from mmcnb.samples.tenx import check_is_alone, open_tenx_folder
from mmcnb.samples.zarr import open_zarr


class Reader(NamedTuple):
    """A kind of source, and the function that opens its rows.

    Attributes
    ----------
    recognises : callable
        Function that returns a true value for an object or a path that this reader
        opens.
    open : callable
        Function that opens the rows of the source.
    takes : {"element", "options", "limit"} or None
        Additional arguments of ``open``: an element ("element"), options and a memory
        limit ("options"), an element and a memory limit ("limit"), or none (None).
    """

    recognises: Callable[[Any], object]
    open: Callable[..., Samples]
    takes: Literal["element", "options", "limit"] | None = None


def _is_of(package: str, source: object) -> bool:
    """Return whether an object's class, or one of its bases, is from a package."""
    modules = (base.__module__ for base in type(source).__mro__)
    return any(module.split(".")[0] == package for module in modules)


def _is_array_like(source: object) -> bool:
    return hasattr(source, "__array__") and not isinstance(source, type)


def _is_anndata(source: object) -> bool:
    """Return whether an object is an AnnData, or one of its backed sparse datasets."""
    is_dataset = type(source).__name__.endswith("Dataset")
    return _is_of("anndata", source) and (hasattr(source, "obsm") or is_dataset)


def _open_anndata(source: Any, element: str | None) -> Samples:
    from mmcnb.samples._anndata import open_anndata

    return open_anndata(source, element)


def _open_xarray(source: Any) -> Samples:
    if not hasattr(source, "data") or not hasattr(source, "dims"):
        raise InputError(
            f"X is an xarray {type(source).__name__}: "
            "pass one DataArray, for example X['name']."
        )
    return open_named(source.data, "the DataArray")


# Frames and tables belong to the layer above, `mmcnb.tables`, which imports pyarrow and
# pandas. These functions import that layer when the first frame or table is opened.


def _is_frame(source: object) -> bool:
    if type(source).__module__ == "builtins":
        return False
    from mmcnb.samples.frames import as_frame

    return as_frame(source) is not None


def _is_stream(source: object) -> bool:
    if type(source).__module__ == "builtins":
        return False
    from mmcnb.samples.frames import is_stream

    return is_stream(source)


def _open_stream(source: Any, options: Any, memory_limit: Any) -> Samples:
    from mmcnb.samples.frames import table_of_stream

    return _open_frame(table_of_stream(source), options, memory_limit)


def _open_frame(source: Any, options: Any, memory_limit: Any) -> Samples:
    from mmcnb.tables.frames import open_frame

    return open_frame(source, options, memory_limit)


def _open_table(path: PathLike, options: Any, memory_limit: Any) -> Samples:
    from mmcnb.tables.open import open_table

    return open_table(path, options, memory_limit)


def _open_as_fitted(source: Any, element: str | None, options: Any) -> Samples | None:
    from mmcnb.tables.array_table import open_as_fitted

    return open_as_fitted(source, element, options)


def _with_filled_gaps(samples: Samples, options: Any) -> Samples:
    """Return the rows of a store.

    If the attributes of the store declare that NaN represents missing values, these
    are filled.
    """
    if getattr(samples, "gaps", None) is None:
        return samples
    from mmcnb.tables.array_table import open_stored_gaps

    return open_stored_gaps(samples, options)


FRAME = Reader(_is_frame, _open_frame, "options")

OBJECTS = (
    Reader(lambda source: isinstance(source, np.memmap), open_memmap),
    Reader(lambda source: isinstance(source, np.ndarray | list | tuple), in_memory),
    Reader(scipy.sparse.issparse, in_memory),
    Reader(
        lambda source: isinstance(source, zarr.Array | zarr.Group), open_zarr, "element"
    ),
    Reader(partial(_is_of, "h5py"), open_hdf5_node, "element"),
    Reader(_is_anndata, _open_anndata, "element"),
    Reader(partial(_is_of, "dask"), open_dask),
    Reader(partial(_is_of, "xarray"), _open_xarray),
    Reader(_is_stream, _open_stream, "options"),
    FRAME,
    Reader(_is_array_like, in_memory),
)
"""Readers of objects; the first reader that recognises an object opens it."""


def _refuse(path: PathLike) -> Samples:
    raise refusal(Path(path))


def _open_matrix(
    path: PathLike, element: str | None, memory_limit: str | int | None
) -> Samples:
    """Open a Matrix Market file, or a 10x Genomics folder that contains one."""
    place = Path(path)
    if place.is_dir():
        return open_tenx_folder(place, element, memory_limit)
    _refuse_element(path, element)
    check_is_alone(place)
    return open_matrix_market(place, memory_limit)


TABLE = Reader(table_format, _open_table, "options")
REFUSED = Reader(lambda path: False, _refuse)
FILES = {
    "npy": Reader(lambda path: True, open_npy),
    "hdf5": Reader(lambda path: True, open_hdf5, "element"),
    "matrix": Reader(lambda path: True, _open_matrix, "limit"),
    **dict.fromkeys(OF_TABLES, TABLE),
    **dict.fromkeys([*FOREIGN, "packed"], REFUSED),
}
"""Readers of paths by the format of the file, as `file_format` returns it."""

ZARR = Reader(lambda path: True, open_zarr, "element")
"""Reader of Zarr stores and addresses, and of paths without another reader."""


def _reader(source: object) -> Reader | None:
    """Return the reader for an object, a path or an address.

    The result is None if no reader recognises the object.
    """
    if not isinstance(source, str | os.PathLike):
        return next((reader for reader in OBJECTS if reader.recognises(source)), None)
    path = checked_path(source, "X")
    if "://" in str(source) or is_store_folder(path):
        return ZARR
    form = folder_format(path) if path.is_dir() else file_format(path)
    return FILES.get(form or "", ZARR)


def open_samples(
    source: Any,
    element: str | None = None,
    *,
    options: Any = None,
    memory_limit: str | int | None = None,
) -> Samples:
    """Open a source of rows, to read them block by block.

    Parameters
    ----------
    source : array, sparse matrix, data frame, AnnData, file, Zarr store or Samples
        The source of the rows:

        - an array of shape (n_samples, n_features), or a list of rows;
        - a SciPy sparse matrix or array;
        - a data frame of pandas, polars, pyarrow or another library that exports Arrow;
        - a pyarrow dataset, or a reader of Arrow record batches, which is read only
          once;
        - an AnnData object, in memory or backed;
        - a Dask array or data frame, or an xarray DataArray;
        - an open h5py dataset or group, or an open Zarr array or group;
        - the path of a table: a Parquet file, a folder of Parquet files, or an Arrow
          IPC, Feather or CSV file;
        - the path of a ``.npy``, ``.h5``, ``.hdf5``, ``.h5ad`` or Matrix Market
          (``.mtx``) file, or of a 10x Genomics folder with a matrix, barcodes and
          features;
        - the path of a Zarr store, or its address, such as
          ``"https://host/rows.zarr"``, which requires ``mmcnb[remote]``.

        An array must be 2-D. A group must be a CSR matrix or a data frame in AnnData's
        encoding, or contain such an element, as AnnData's files do.
    element : str, default=None
        Element that contains the rows in a group, file or AnnData object, such as
        ``"layers/counts"``, ``"obsm/X_pca"`` or ``"raw/X"``. None means ``"X"``.
    options : TableOptions or None, default=None
        How the columns of a data frame or table are converted to numbers; see
        `mmcnb.read_table`. None means the default options.
    memory_limit : str, int or None, default=None
        Limit on the resident memory of the process while a table is read. None means
        the setting of `mmcnb.config` or, if it is not set, half of the free memory.

    Returns
    -------
    Samples
        The rows. Arrays and stores on disk are read when rows are needed; text and
        streams are read once, when they are opened.

    Raises
    ------
    InputError
        If the rows cannot be read, or are not finite real numbers.
    DamagedStoreError
        If a store is damaged.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples import open_samples
    >>> samples = open_samples(np.eye(3))
    >>> samples.n_samples, samples.block(0, 2).shape
    (3, (2, 3))
    """
    if isinstance(source, Samples):
        return source
    reader = _reader(source)
    if isinstance(source, str | os.PathLike):
        source = expanded(source)
    if _is_column_of_numbers(source):
        raise InputError(
            "X is one column of a frame: pass a frame, for example X.to_frame()."
        )
    if reader is None:
        raise InputError(
            f"X is a {type(source).__name__}, which cannot be read: "
            "pass an array, a SciPy CSR matrix, a data frame, AnnData, "
            "a Zarr array or group, or a path."
        )
    if reader.takes == "options":
        _refuse_element(source, element)
        return reader.open(source, options, memory_limit)
    if reader.takes == "limit":
        return reader.open(source, element, memory_limit)
    if getattr(options, "encoding", None) is not None:
        filled = _open_as_fitted(source, element, options)
        if filled is not None:
            return filled
    if reader.takes == "element":
        return _with_filled_gaps(reader.open(source, element), options)
    _refuse_element(source, element)
    return reader.open(source)


def _is_column_of_numbers(source: Any) -> bool:
    """Return whether an object is a numeric pandas or polars series."""
    if not hasattr(source, "to_frame") or isinstance(source, Samples):
        return False
    is_series = _is_of("pandas", source) or _is_of("polars", source)
    if not is_series or type(source).__name__ == "Index":
        return False
    return np.asarray(source).dtype.kind in "biufc"


def _refuse_element(source: Any, element: str | None) -> None:
    """Raise InputError if ``element`` is given for a source that has no elements."""
    if element is None:
        return
    name = f"X is of type {type(source).__name__} and"
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
    raise InputError(f"{name} has no element {element!r}: leave element out.")


def is_file_of_rows(source: object) -> bool:
    """Return whether a source is a path that is not opened as a Zarr store."""
    return isinstance(source, str | os.PathLike) and _reader(source) is not ZARR


def names_in_frame(source: Any) -> list[str] | None:
    """Return the column names of a data frame, or None for any other source."""
    if isinstance(source, Samples | str | os.PathLike) or _reader(source) is not FRAME:
        return None
    from mmcnb.samples.frames import as_frame, column_names

    return column_names(as_frame(source))


def open_named(source: Any, name: str, names: list[str] | None = None) -> Samples:
    """Open rows that belong to another object, such as an AnnData object.

    ``name`` is used for the rows in messages; ``names`` are the names of the columns.
    """
    if isinstance(source, np.ndarray) or scipy.sparse.issparse(source):
        return in_memory(source, name, names)
    samples = open_samples(source)
    samples.name = name
    if names is not None:
        samples.feature_names = names
    return samples

"""Open whatever contains rows: the one list of readers, of objects and of files."""

import importlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import zarr

from mmcnb.errors import InputError
from mmcnb.samples.base import Samples, in_memory
from mmcnb.samples.paths import checked_path, is_store_folder
from mmcnb.samples.text import table_format


class Reader(NamedTuple):
    """What is read, and the module and the function that opens it.

    The module is imported when it is needed. The function takes a source, and an
    element if it has some.
    """

    recognises: Callable[[Any], bool]
    module: str
    function: str
    has_elements: bool = False


def _of(package: str) -> Callable[[Any], bool]:
    """Whether a package defines the type of an object or one of its bases."""
    return lambda source: any(
        base.__module__.split(".")[0] == package for base in type(source).__mro__
    )


def _ends(*endings: str) -> Callable[[Any], bool]:
    """Whether a path ends so and is no folder, as a Zarr store may be."""
    return lambda path: path.suffix.lower() in endings and not path.is_dir()


def _is_frame(source: Any) -> bool:
    if type(source).__module__ == "builtins":
        return False
    from mmcnb.samples.frames import as_frame

    return as_frame(source) is not None


def _is_anndata(source: Any) -> bool:
    """Whether an object is AnnData's own, or its sparse rows of a file or a store."""
    return _of("anndata")(source) and (
        hasattr(source, "obsm") or type(source).__name__.endswith("Dataset")
    )


OBJECTS = (
    Reader(lambda source: isinstance(source, np.memmap), "samples.npy", "open_memmap"),
    Reader(
        lambda source: isinstance(source, np.ndarray | list | tuple),
        "samples.base",
        "in_memory",
    ),
    Reader(scipy.sparse.issparse, "samples.base", "in_memory"),
    Reader(
        lambda source: isinstance(source, zarr.Array | zarr.Group),
        "samples.zarr",
        "open_zarr",
        True,
    ),
    Reader(_of("h5py"), "samples._hdf5", "open_node", True),
    Reader(_is_anndata, "samples._anndata", "open_anndata", True),
    Reader(_of("dask"), "samples._dask", "open_dask"),
    Reader(_of("xarray"), "samples.open", "open_xarray"),
    Reader(_is_frame, "tables.frames", "open_frame"),
    Reader(
        lambda one: hasattr(one, "__array__") and not isinstance(one, type),
        "samples.base",
        "in_memory",
    ),
)
"""Readers of objects; the first that recognises one opens it."""

FILES = (
    Reader(_ends(".npy"), "samples.npy", "open_npy"),
    Reader(_ends(".h5", ".hdf5", ".h5ad"), "samples._hdf5", "open_hdf5", True),
    Reader(lambda path: table_format(path) is not None, "tables.rows", "open_table"),
)
"""Readers of paths, likewise."""

ZARR = Reader(lambda path: True, "samples.zarr", "open_zarr", True)
"""Reader of stores, of addresses, and of paths that no other recognises."""


def _reader(source: Any) -> Reader | None:
    if not isinstance(source, str | os.PathLike):
        return next((reader for reader in OBJECTS if reader.recognises(source)), None)
    path = checked_path(source, "X")
    if "://" in str(source) or is_store_folder(path):
        return ZARR
    return next((reader for reader in FILES if reader.recognises(path)), ZARR)


def open_samples(
    source: Any, element: str | None = None, *, options: Any = None
) -> Samples:
    """Open rows for reading, block by block.

    Parameters
    ----------
    source : array, sparse matrix, data frame, AnnData, file, Zarr store or Samples
        An array of shape (n_samples, n_features) or a list of rows; a SciPy sparse
        matrix or array; a data frame of pandas, polars, pyarrow or another library that
        exports Arrow; an AnnData object, in memory or backed; a Dask array or frame; an
        xarray DataArray; a dataset or group of h5py; the path of a ``.npy``, ``.h5``,
        ``.hdf5`` or ``.h5ad`` file, or of a table: Parquet (a file, or a folder of
        files), Arrow IPC or Feather, or CSV of at most 256 MiB; a Zarr array or group,
        opened, as a path or as an address such as ``"https://host/rows.zarr"`` (which
        needs ``mmcnb[remote]``): a 2-D array, a CSR group or a data frame in AnnData's
        encoding, or a group with such an element, as of AnnData.
    element : str, default=None
        Element of a group, file or AnnData object, such as ``"X"``,
        ``"layers/counts"``, ``"obsm/X_pca"`` or ``"raw/X"``; None is ``"X"``.
    options : TableOptions or None, default=None
        How columns of a frame or a table become numbers; see `mmcnb.read_table`.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        The rows cannot be read or reached, or are not real finite numbers.
    DamagedStoreError
        The store is not what was written.

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
    if reader is None:
        known = "an array, a SciPy CSR matrix, a data frame, AnnData, a Zarr array or group, or a path"
        raise InputError(
            f"X is a {type(source).__name__}, which cannot be read: give {known}."
        )
    if element is not None and not reader.has_elements:
        is_path = isinstance(source, str | os.PathLike)
        name = (
            os.fspath(source)
            if is_path
            else f"X is of type {type(source).__name__} and"
        )
        raise InputError(f"{name} has no element {element!r}: leave element out.")
    function = getattr(
        importlib.import_module(f"mmcnb.{reader.module}"), reader.function
    )
    if reader.function in ("open_frame", "open_table"):
        return function(source, options)
    return function(source, element) if reader.has_elements else function(source)


def is_file_of_rows(source: Any) -> bool:
    """Whether a source is the path of a file of rows, not of a Zarr store."""
    return isinstance(source, str | os.PathLike) and _reader(source) is not ZARR


def names_in_frame(source: Any) -> list[str] | None:
    """Names of the columns of a data frame, whose numbers are not read; None for anything else."""
    reader = (
        None if isinstance(source, Samples | str | os.PathLike) else _reader(source)
    )
    if reader is None or reader.function != "open_frame":
        return None
    from mmcnb.samples.frames import as_frame, column_names

    return column_names(as_frame(source))


def open_xarray(source: Any) -> Samples:
    """Open the rows of a DataArray."""
    if not hasattr(source, "data") or not hasattr(source, "dims"):
        raise InputError(
            f"X is an xarray {type(source).__name__}: give one DataArray, such as by X['name']."
        )
    return open_named(source.data, "the DataArray")


def open_named(source: Any, name: str, names: list[str] | None = None) -> Samples:
    """Open rows that are part of another object, with a name for messages and names of their columns."""
    if isinstance(source, np.ndarray) or scipy.sparse.issparse(source):
        return in_memory(source, name, names)
    samples = open_samples(source)
    samples.name = name
    if names is not None:
        samples.feature_names = names
    return samples

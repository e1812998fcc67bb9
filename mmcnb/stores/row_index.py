"""Read and write row names and row numbers, which identify rows in their source."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import zarr

from mmcnb.errors import RESTORE, DamagedStoreError
from mmcnb.samples.base import Samples
from mmcnb.samples.elements import Texts, observation_names
from mmcnb.samples.inventory import attributes_of
from mmcnb.samples.row_index import FILE, INDEX, ROW, RowIndex
from mmcnb.samples.zarr import describe, stored_array
from mmcnb.stores.labels import array_beside

# Attribute of the array ``index`` that contains the name of the row names, the name and
# number of rows of each file, and the number of rows that were left out.
ATTRIBUTE = "row_index"


def row_index_of(X: object, samples: Samples) -> RowIndex:
    """Return the row names or row numbers that identify rows in their source.

    Parameters
    ----------
    X : object
        The rows as the user passed them.
    samples : Samples
        The rows as samples.

    Returns
    -------
    RowIndex
        The index of a pandas data frame, the ``obs_names`` of an AnnData object, or the
        row names or row numbers of a table or store. Rows of other sources are
        identified by their position.
    """
    rows = samples.root
    names: Any = getattr(X, "obs_names", None)
    if names is not None:
        return RowIndex(rows.n_samples, own=names)
    if rows.row_index is not None:
        return rows.row_index
    array = array_beside(rows, "index")
    if array is not None:
        return _stored_index(array, rows.n_samples)
    observations = observation_names(rows)
    if observations is not None and observations.length == rows.n_samples:
        return RowIndex(rows.n_samples, names=Texts(observations))
    return RowIndex(rows.n_samples)


def attribute(index: RowIndex) -> dict[str, Any]:
    """Return the value of the attribute `ATTRIBUTE` that describes a row index."""
    files = [list(pair) for pair in zip(index.files, index.lengths, strict=True)]
    name = ROW if index.is_numbered else index.keys[-1]
    return {"name": name, "files": files, "n_left_out": index.n_left_out}


def values_to_store(index: RowIndex, start: int, stop: int) -> np.ndarray | None:
    """Return the names or numbers of the rows ``start <= row < stop``, to be stored.

    The result is None if a row has more than one name, as in a pandas MultiIndex.
    """
    columns = index.columns(start, stop)
    columns.pop(FILE, None)
    if len(columns) > 1:
        return None
    (values,) = columns.values()
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "M":
        array = np.datetime_as_string(array, unit="auto")
    return np.array(list(map(str, array)), np.dtypes.StringDType())


def _stored_index(array: zarr.Array, n_samples: int) -> RowIndex:
    """Return the row index that is stored in the array ``index`` of a store."""
    values = stored_array(array)
    place = describe(array)
    record: Any = attributes_of(array, place).get(ATTRIBUTE)
    if record is None:  # the array was written by an earlier version or another program
        return RowIndex(n_samples, names=values)
    if not isinstance(record, dict):
        record = {}
    name = record.get("name")
    files = record.get("files")
    if not _are_files(files, n_samples) or type(name) is not str:
        raise DamagedStoreError(
            f"{place} has an attribute {ATTRIBUTE} that mmcnb did not write: {RESTORE}."
        )
    is_numbers = name == ROW  # row names never have this name
    n_left_out = record.get("n_left_out")  # versions before 0.4 do not store it
    return RowIndex(
        n_samples,
        files=tuple(file for file, _ in files),
        lengths=tuple(length for _, length in files),
        numbers=values if is_numbers else None,
        names=None if is_numbers else values,
        name=None if name in (ROW, INDEX) else name,
        n_left_out=n_left_out if type(n_left_out) is int else None,
    )


def _are_files(files: Any, n_samples: int) -> bool:
    """Return whether a value is a list of file names with their numbers of rows.

    The list must be empty or have ``n_samples`` rows in total.
    """
    if not isinstance(files, list):
        return False
    total = 0
    for pair in files:
        if not isinstance(pair, Sequence) or len(pair) != 2:
            return False
        file, length = pair
        if type(file) is not str or type(length) is not int or length < 0:
            return False
        total += length
    return not files or total == n_samples

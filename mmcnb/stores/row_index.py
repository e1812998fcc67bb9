"""Read and write the names or numbers that identify rows in their source."""

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

# Attribute of the array ``index`` with the name of its values, and the files and their
# numbers of rows.
ATTRIBUTE = "row_index"


def row_index_of(X: object, samples: Samples) -> RowIndex:
    """Return the names or numbers that identify rows in their source.

    Parameters
    ----------
    X : object
        The rows as the user passed them.
    samples : Samples
        The same rows, opened.

    Returns
    -------
    RowIndex
        The index of a pandas frame, ``obs_names`` of AnnData, the row names or numbers
        of a table, or the names or numbers in a store. Other rows are identified only
        by their position.
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
    """Return the attribute that describes an array of row names or numbers."""
    files = [list(pair) for pair in zip(index.files, index.lengths, strict=True)]
    name = ROW if index.is_numbered else index.keys[-1]
    return {"name": name, "files": files}


def values_to_store(index: RowIndex, start: int, stop: int) -> np.ndarray | None:
    """Return row names or numbers as an array; None if a row has several names."""
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
    """Return the row index that is stored in an array of names or numbers."""
    values = stored_array(array)
    place = describe(array)
    record: Any = attributes_of(array, place).get(ATTRIBUTE)
    if record is None:  # an earlier version or another program wrote the array
        return RowIndex(n_samples, names=values)
    if not isinstance(record, dict):
        record = {}
    name = record.get("name")
    files = record.get("files")
    if not _are_files(files, n_samples) or type(name) is not str:
        raise DamagedStoreError(
            f"{place} has an attribute {ATTRIBUTE} that mmcnb did not write: {RESTORE}."
        )
    is_numbers = name == ROW  # a column of names is never called this
    return RowIndex(
        n_samples,
        files=tuple(file for file, _ in files),
        lengths=tuple(length for _, length in files),
        numbers=values if is_numbers else None,
        names=None if is_numbers else values,
        name=None if name in (ROW, INDEX) else name,
    )


def _are_files(files: Any, n_samples: int) -> bool:
    """Return whether a value lists files with their numbers of rows."""
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

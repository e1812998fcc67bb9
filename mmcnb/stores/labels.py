"""Read class labels and row names of stores, and write cluster labels in chunks."""

import os
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
import zarr
from zarr.storage import LocalStore

from mmcnb.errors import InputError, worded
from mmcnb.samples.base import GROUP_ROWS, ContentDigest, Samples
from mmcnb.samples.inventory import FORMAT, Inventory, attributes_of, find_inventory
from mmcnb.samples.open import is_file_of_rows
from mmcnb.samples.paths import PathLike
from mmcnb.samples.stored import StoredArray
from mmcnb.samples.zarr import (
    ZarrStorage,
    describe,
    is_zarr,
    open_node,
    reopen,
    stored_array,
)
from mmcnb.stores._write import PARTIAL, create_array, set_record, write_chunk
from mmcnb.stores.atomic import AtomicOutput, writing

# A store of rows, an array in it, the path of a store or array, or opened rows.
Source: TypeAlias = str | os.PathLike[str] | zarr.Group | zarr.Array | Samples


@dataclass(frozen=True)
class LabelsSink:
    """Writer of chunks of an array of labels, which can be pickled.

    Several processes can write chunks of the same array.

    Parameters
    ----------
    path : str
        Temporary path of the array. It must be accessible to all writing processes.
    n_samples : int
        Number of labels of the array.
    name : str
        Name of the labels for messages.

    Examples
    --------
    >>> import tempfile, zarr
    >>> from mmcnb.stores import LabelsWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LabelsWriter(f"{folder}/labels.zarr", n_samples=3) as writer:
    ...         writer.finish_chunks([writer.sink().write(0, [0, 1, 1])])
    ...     zarr.open_array(f"{folder}/labels.zarr", mode="r")[:].tolist()
    [0, 1, 1]
    """

    path: str
    n_samples: int
    name: str

    def write(self, start: int, labels: npt.ArrayLike) -> str:
        """Write a whole chunk, or replace it if it has been written already.

        Parameters
        ----------
        start : int
            Number of the first row of the chunk, which must be a multiple of
            ``LabelsWriter.chunk_rows``.
        labels : array of int of shape (n_rows,)
            Labels of the chunk. All chunks have ``LabelsWriter.chunk_rows`` labels,
            except the last chunk, which may have fewer.

        Returns
        -------
        str
            Checksum of the chunk, for `LabelsWriter.finish_chunks`.

        Raises
        ------
        InputError
            If the labels are not integers of at least -1, do not form a whole chunk, or
            cannot be written.
        """
        chunk = np.asarray(labels)
        is_integer = chunk.ndim == 1 and chunk.dtype.kind in "iu"
        if not is_integer or (len(chunk) and chunk.min() < -1):
            raise InputError(
                f"{self.name}: labels must be one integer per row, from 0 or -1 for "
                "noise."
            )
        expected = min(GROUP_ROWS, self.n_samples - start)
        is_start = start % GROUP_ROWS == 0 and 0 <= start < self.n_samples
        if not is_start or len(chunk) != expected:
            raise InputError(
                f"{self.name}: {len(chunk)} labels from row {start} are not a chunk: "
                f"give {GROUP_ROWS} labels from a multiple of that number, or all that "
                "are left."
            )
        not_there = worded(
            f"{self.name}: the folder being written does not exist on this worker",
            "choose a path on a disk that all workers share under the same path",
            FileNotFoundError,
        )
        with writing(self.name), not_there:
            array = _array_to_write(self.path)
            return write_chunk(array, start // GROUP_ROWS, chunk.astype(np.int32))


@lru_cache(maxsize=4)
def _array_to_write(path: str) -> zarr.Array:
    """Open an array for writing.

    The result is cached, because opening an array takes as long as writing a chunk.
    """
    return zarr.open_array(path, mode="r+")


class LabelsWriter(AtomicOutput):
    """Writer of cluster labels to a Zarr array of int32 with checksums.

    Chunks of labels are written by the result of `sink`, in any order and by any
    process. Then `finish_chunks` verifies the chunks and records their checksums. The
    array appears at its path when the ``with`` block ends. After an error, all written
    files are removed.

    Parameters
    ----------
    path : str or path-like
        Path of the array.
    n_samples : int
        Number of labels of the array.
    overwrite : bool or None, default=False
        Whether to replace an existing store. None is like False, but messages do not
        suggest ``overwrite=True``.

    Attributes
    ----------
    chunk_rows : int
        Number of labels per chunk.

    Raises
    ------
    InputError
        If the path exists, chunks of labels are missing, or the disk is full.

    Examples
    --------
    >>> import tempfile, zarr
    >>> from mmcnb.stores import LabelsWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LabelsWriter(f"{folder}/labels.zarr", n_samples=3) as writer:
    ...         writer.finish_chunks([writer.sink().write(0, [0, 1, 1])])
    ...     zarr.open_array(f"{folder}/labels.zarr", mode="r")[:].tolist()
    [0, 1, 1]
    """

    chunk_rows = GROUP_ROWS

    def __init__(
        self, path: PathLike, n_samples: int, overwrite: bool | None = False
    ) -> None:
        super().__init__(path, overwrite)
        self._expected = n_samples
        self._is_finished = False

    @cached_property
    def _array(self) -> zarr.Array:
        return create_array(
            LocalStore(self.path), "", np.dtype(np.int32), self._expected, (GROUP_ROWS,)
        )

    def sink(self) -> LabelsSink:
        """Create the array, and return an object that writes its chunks.

        The object can be pickled.
        """
        root = cast(LocalStore, self._array.store).root
        return LabelsSink(str(root), self._expected, self.name)

    def finish_chunks(self, digests: list[str]) -> None:
        """Verify all chunks by reading them, and record their checksums.

        Parameters
        ----------
        digests : list of str
            Checksums of all chunks, as returned by `LabelsSink.write`, in row order.

        Raises
        ------
        InputError
            If chunks are missing.
        DamagedStoreError
            If a chunk differs from what was written.
        """
        array = self._array
        name = self.name
        if len(digests) != array.nchunks:
            raise InputError(
                f"{name}: {len(digests)} chunks of labels were written, but "
                f"{array.nchunks} are needed."
            )
        record: dict[str, object] = {
            "format": FORMAT,
            "n_samples": self._expected,
            "n_features": 0,
            "inventory": {"": digests},
        }
        stored = StoredArray(array, Inventory(array.store, "", record, name), name)
        content = ContentDigest(False, array.dtype)
        for start in range(0, self._expected, GROUP_ROWS):
            content.update(stored.read(start, start + GROUP_ROWS))
        # A worker that was killed may have left the file of an unfinished chunk.
        for unfinished in self.path.rglob(f"*{PARTIAL}"):
            unfinished.unlink()
        set_record(array, {**record, "digest": content.hexdigest(0)})
        self._is_finished = True

    def finish(self) -> None:
        """Raise InputError if `finish_chunks` has not been called."""
        if not self._is_finished:
            raise InputError(f"{self.name}: labels were not finished.")


def open_class_labels(source: Source) -> np.ndarray | None:
    """Read the class labels of the rows of a store.

    Parameters
    ----------
    source : path, zarr.Group, zarr.Array or Samples
        The store, or the rows of the store.

    Returns
    -------
    ndarray of int of shape (n_samples,), or None
        Values of the array ``y`` in the group that contains the rows. Values that are
        not integers are replaced by their index in sorted order. None if the array does
        not exist or the rows are not from a store.

    Raises
    ------
    DamagedStoreError
        If the labels differ from what was written.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples import open_samples
    >>> from mmcnb.stores import open_class_labels
    >>> open_class_labels(open_samples(np.eye(2))) is None
    True
    """
    array = array_beside(source, "y")
    if array is None:
        return None
    labels = read_array(array)
    if labels.dtype.kind in "iu":
        return labels
    return np.unique(labels, return_inverse=True)[1]


def stored_classes(source: Source) -> np.ndarray | None:
    """Read the classes of the rows of a store.

    Returns
    -------
    ndarray of str or int of shape (n_samples,), or None
        Class names or, if the classes have no names, class labels. None if the store
        has no class labels.
    """
    labels = open_class_labels(source)
    array = array_beside(source, "y")
    if array is None:
        return None
    names = class_names(array, labels)
    if names is None:
        return labels
    return np.asarray(names)[labels]


def class_names(
    array: zarr.Array, labels: np.ndarray | None = None
) -> list[str] | None:
    """Return the class names of an array of labels, or None if it has no names.

    Parameters
    ----------
    array : zarr.Array
        Array of labels, whose attribute ``class_names`` contains the names.
    labels : ndarray of int or None, default=None
        Labels, each of which must have a name. None skips this check.

    Raises
    ------
    InputError
        If the attribute is not a list of strings, or a label has no name.
    """
    place = describe(array)
    names: object = attributes_of(array, place).get("class_names")
    if names is None:
        return None
    remedy = "write the store again, or delete that attribute"
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{place} has an attribute class_names that is not a list of strings: "
            f"{remedy}."
        )
    if labels is None or not len(labels):
        return names
    if not 0 <= labels.min() <= labels.max() < len(names):
        raise InputError(
            f"{place} has labels other than 0 to {len(names) - 1}, "
            f"the numbers of its class_names: {remedy}."
        )
    return names


def read_column(source: Source, name: str) -> np.ndarray:
    """Read one number per row from a Zarr array, given the array or its path.

    ``name`` is the name of the parameter for messages.
    """
    node = open_node(source)
    if (
        not isinstance(node, zarr.Array)
        or node.ndim != 1
        or node.dtype.kind not in "iufb"
    ):
        raise InputError(
            f"{name}: {describe(node)} is not a 1-D array of numbers; "
            "give one number a row."
        )
    return read_array(node)


def read_array(array: zarr.Array) -> np.ndarray:
    """Read all values of an array, and verify their checksums if they are stored."""
    stored = stored_array(array)
    return stored.read(0, stored.length)


def open_index(source: Source) -> np.ndarray | None:
    """Read the row names or row numbers of a store.

    Parameters
    ----------
    source : path, zarr.Group, zarr.Array or Samples
        The store, or the rows of the store.

    Returns
    -------
    ndarray of int64 or str of shape (n_samples,), or None
        Values of the array ``index`` in the group that contains the rows. None if the
        array does not exist or the rows are not from a store.

    Raises
    ------
    DamagedStoreError
        If the values differ from what was written.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples import open_samples
    >>> from mmcnb.stores import open_index
    >>> open_index(open_samples(np.eye(2))) is None
    True
    """
    array = array_beside(source, "index")
    return None if array is None else read_array(array)


def array_beside(source: Source, name: str) -> zarr.Array | None:
    """Open a 1-D array in the group that contains the rows.

    The result is None if the array does not exist or the rows are not from a store.
    """
    place: object = source
    if isinstance(source, Samples):
        place = source.root.path if is_zarr(source.root) else None
    if not isinstance(
        place, str | os.PathLike | zarr.Array | zarr.Group
    ) or is_file_of_rows(place):
        return None
    group = open_node(place)
    if group.path:
        group = reopen(group.store, group.path.rpartition("/")[0])
    # Raises an error if the inventory lists an array that is missing.
    find_inventory(group, describe(group))
    if not isinstance(group, zarr.Group):
        return None
    array = ZarrStorage(None).member(group, name)
    return array if isinstance(array, zarr.Array) and array.ndim == 1 else None

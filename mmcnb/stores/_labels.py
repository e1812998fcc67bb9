"""Class labels beside the rows of a store, and cluster labels written by a stream."""

import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
import zarr
from zarr.storage import LocalStore

from mmcnb.errors import InputError
from mmcnb.samples._base import GROUP_ROWS, ContentDigest, Samples
from mmcnb.samples._inventory import FORMAT, Inventory, PathLike, attributes_of, find_inventory, member
from mmcnb.samples._open import is_file_of_rows
from mmcnb.samples._stored import StoredArray
from mmcnb.samples._zarr import describe, is_zarr, open_node, reopen, stored_array
from mmcnb.stores._write import PARTIAL, create_array, set_record, write_chunk
from mmcnb.stores.atomic import AtomicOutput, write_error


@dataclass(frozen=True)
class LabelsSink:
    """Where the chunks of a labels array go: small, picklable, for any process that sees the folder.

    Parameters
    ----------
    path : str
        The array, beside the place it will have.
    n_samples : int
        Its length.
    name : str
        For messages.

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

    def write(self, start: int, labels: Any) -> str:
        """Write one whole chunk; writing it again replaces it.

        Parameters
        ----------
        start : int
            Its first row, a multiple of ``LabelsWriter.chunk_rows``.
        labels : array of int of shape (n_rows,)
            As many as a chunk holds; fewer in the last one.

        Returns
        -------
        str
            Checksum of the chunk, for `LabelsWriter.finish_chunks`.

        Raises
        ------
        InputError
            The labels are not whole numbers from 0 or do not make one chunk, or cannot be written here.
        """
        block = _as_labels(labels, self.name)
        expected = min(GROUP_ROWS, self.n_samples - start)
        if start % GROUP_ROWS or not 0 <= start < self.n_samples or len(block) != expected:
            raise InputError(
                f"{self.name}: {len(block)} labels from row {start} are no chunk: give the {GROUP_ROWS} "
                "from a multiple of that, or those that are left."
            )
        try:
            return write_chunk(_opened(self.path), start // GROUP_ROWS, block)
        except FileNotFoundError as error:
            raise InputError(
                f"{self.name}: the folder being written is not there: workers need to see it under the "
                "same path, so choose one on a disk that they share."
            ) from error
        except OSError as error:
            raise write_error(self.name, error) from error


@lru_cache(maxsize=4)
def _opened(path: str) -> zarr.Array:
    """An array being written; opening it takes as long as writing a chunk."""
    return zarr.open_array(path, mode="r+")


class LabelsWriter:
    """Write cluster labels to one checksummed Zarr array of int32.

    Labels come chunk by chunk, in any order and from any process, by `sink`; `finish_chunks` records them.
    The array appears under its path when the ``with`` block ends; after an error nothing is left.

    Parameters
    ----------
    path : str or path-like
    n_samples : int
        Number of labels to come.
    overwrite : bool, default=False
        Replace a store that is there.

    Attributes
    ----------
    chunk_rows : int
        Rows of a chunk.

    Raises
    ------
    InputError
        The path exists, chunks of labels are left out, or the disk is full.

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

    def __init__(self, path: PathLike, n_samples: int, overwrite: bool = False) -> None:
        self._output = AtomicOutput(path, overwrite)
        self._expected = n_samples
        self._finished = False

    def __enter__(self) -> Self:
        """Begin the array aside of its place."""
        self._store = LocalStore(self._output.path)
        with ExitStack() as stack:
            stack.enter_context(self._output)
            create_array(self._store, "", np.dtype(np.int32), (self._expected,), (GROUP_ROWS,))
            stack.pop_all()
        return self

    def sink(self) -> LabelsSink:
        """Where workers write chunks to."""
        return LabelsSink(str(self._output.path), self._expected, self._output.name)

    def finish_chunks(self, digests: list[str]) -> None:
        """Read all chunks back, compare them with what their writers returned, and record them.

        Parameters
        ----------
        digests : list of str
            What `LabelsSink.write` returned, in order of the rows.

        Raises
        ------
        InputError
            Chunks are left out.
        DamagedStoreError
            A chunk is not what its writer wrote.
        """
        name, n_chunks = self._output.name, -(-self._expected // GROUP_ROWS)
        if len(digests) != n_chunks:
            raise InputError(f"{name}: {len(digests)} chunks of labels came where {n_chunks} were said.")
        array = zarr.open_array(store=self._store, mode="r+")
        written = {"format": FORMAT, "inventory": {"": digests}}
        stored = StoredArray(array, Inventory(self._store, "", written, name), name)
        content = ContentDigest(False, np.dtype(np.int32))
        for chunk in range(n_chunks):
            content.update(stored.read(chunk * GROUP_ROWS, (chunk + 1) * GROUP_ROWS))
        for rest in self._output.path.rglob(f"*{PARTIAL}"):  # of a worker killed in the middle of a chunk
            rest.unlink()
        record = {
            "n_samples": self._expected,
            "n_features": 0,
            "inventory": {"": digests},
            "digest": content.hexdigest(0),
        }
        set_record(array, self._store, record)
        self._finished = True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Finish the array and move it to its place, or remove it after an error."""
        with ExitStack() as stack:
            stack.push(self._output)
            if error is not None:
                raise error
            if not self._finished:
                raise InputError(f"{self._output.name}: labels were begun and not finished.")


def _as_labels(labels: Any, name: str) -> np.ndarray:
    block = np.asarray(labels)
    if block.ndim != 1 or block.dtype.kind not in "iu" or (len(block) and block.min() < 0):
        raise InputError(f"{name}: labels must be one whole number from 0 a row.")
    return block.astype(np.int32)


def open_class_labels(source: Any) -> np.ndarray | None:
    """Class labels stored beside the rows of a store.

    Parameters
    ----------
    source : path, zarr.Group, zarr.Array or Samples
        The store, or its rows.

    Returns
    -------
    ndarray of int of shape (n_samples,), or None
        The array ``y`` of the group the rows are in; text is numbered in sorted order. None where there
        is none, and for data in memory.

    Raises
    ------
    DamagedStoreError
        The labels are not what was written.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples import open_samples
    >>> from mmcnb.stores import open_class_labels
    >>> open_class_labels(open_samples(np.eye(2))) is None
    True
    """
    array = class_labels_array(source)
    if array is None:
        return None
    stored = stored_array(array)
    labels = stored.read(0, stored.length)
    return labels if labels.dtype.kind in "iu" else np.unique(labels, return_inverse=True)[1]


def stored_classes(source: Any) -> np.ndarray | None:
    """The classes that `open_class_labels` finds, by their names where the store has them."""
    labels, array = open_class_labels(source), class_labels_array(source)
    names = None if array is None else class_names(array)
    if labels is None or names is None:
        return labels
    check_named(labels, names, array)
    return np.asarray(names)[labels]


def class_names(array: zarr.Array) -> list[str] | None:
    """Names of the classes that an array of class labels counts, from its attributes.

    Raises
    ------
    InputError
        The attribute is no list of text.
    """
    names = attributes_of(array, describe(array)).get("class_names")
    if names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        return names
    raise InputError(
        f"{describe(array)}: its attribute class_names is no list of text: "
        "write the store again, or delete that attribute."
    )


def check_named(labels: np.ndarray, names: list[str], array: Any) -> None:
    """Refuse labels that have no name where the others have."""
    if labels.dtype.kind not in "iu" or (len(labels) and not 0 <= labels.min() <= labels.max() < len(names)):
        raise InputError(
            f"{describe(array)} has labels other than 0 to {len(names) - 1}, the numbers of its class_names: "
            "write the store again, or delete that attribute."
        )


def read_column(source: Any, name: str) -> np.ndarray:
    """One number a row, out of a Zarr array or its path; ``name`` is the parameter's, for messages."""
    node = open_node(source)
    if not isinstance(node, zarr.Array) or node.ndim != 1 or node.dtype.kind not in "iufb":
        raise InputError(f"{name}: {describe(node)} is no 1-D array of numbers; give one number a row.")
    stored = stored_array(node)
    return stored.read(0, stored.length)


def class_labels_array(source: Any) -> zarr.Array | None:
    """The array ``y`` beside rows, not yet read."""
    return _array_beside(source, "y")


def open_index(source: Any) -> np.ndarray | None:
    """Names of rows stored beside the rows of a store.

    Parameters
    ----------
    source : path, zarr.Group, zarr.Array or Samples
        The store, or its rows.

    Returns
    -------
    ndarray of int64 or text of shape (n_samples,), or None
        The array ``index`` of the group the rows are in. None where there is none, and for data in memory.

    Raises
    ------
    DamagedStoreError
        The names are not what was written.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples import open_samples
    >>> from mmcnb.stores import open_index
    >>> open_index(open_samples(np.eye(2))) is None
    True
    """
    array = index_array(source)
    if array is None:
        return None
    stored = stored_array(array)
    if array.dtype.kind in "iu":
        return stored.read(0, stored.length)
    step = stored.chunk_length
    parts = [stored.read(start, start + step) for start in range(0, stored.length, step)]
    return np.concatenate(parts) if parts else None


def index_array(source: Any) -> zarr.Array | None:
    """The array ``index`` beside rows, not yet read."""
    return _array_beside(source, "index")


def _array_beside(source: Any, name: str) -> zarr.Array | None:
    """A 1-D array of the group the rows are in."""
    if isinstance(source, Samples):
        source = source.root
        source = source.path if is_zarr(source) else None
    if not isinstance(source, str | os.PathLike | zarr.Array | zarr.Group) or is_file_of_rows(source):
        return None
    node = open_node(source)
    found: Any = None
    if node.path:
        node = reopen(node.store, node.path.rpartition("/")[0])
    inventory = find_inventory(node, describe(node))
    if inventory is not None:  # lists the array, so that one that is gone is told
        inventory.check_metadata()
    if isinstance(node, zarr.Group):
        found = member(node, name, describe(node))
    return found if isinstance(found, zarr.Array) and found.ndim == 1 else None

"""Class labels beside the rows of a store, and cluster labels written by a stream."""

import os
from types import TracebackType
from typing import Any, Self

import numpy as np
import zarr
from zarr.storage import LocalStore

from mmcnb._errors import InputError
from mmcnb.samples._array_writer import ArrayWriter, set_record
from mmcnb.samples._aside import Aside
from mmcnb.samples._base import ContentDigest, Samples
from mmcnb.samples._inventory import find_inventory
from mmcnb.samples._open import describe, open_node, reopen
from mmcnb.samples._stored import StoredArray

LABEL_CHUNK_ROWS = 2**18


class LabelsWriter:
    """Write cluster labels in row order to one checksummed Zarr array of int32.

    The array appears under its path when the ``with`` block ends; after an error nothing is left.

    Parameters
    ----------
    path : str or path-like
    n_samples : int
        Number of labels to come, checked at the end.
    overwrite : bool, default=False
        Replace a store that is there.

    Raises
    ------
    InputError
        The path exists, labels are not whole numbers from 0, their number differs, or the disk is full.

    Examples
    --------
    >>> import tempfile, zarr
    >>> from mmcnb.samples import LabelsWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LabelsWriter(f"{folder}/labels.zarr", n_samples=3) as writer:
    ...         writer.append([0, 1])
    ...         writer.append([1])
    ...     zarr.open_array(f"{folder}/labels.zarr", mode="r")[:].tolist()
    [0, 1, 1]
    """

    def __init__(self, path: str | os.PathLike[str], n_samples: int, overwrite: bool = False) -> None:
        self._aside = Aside(path, overwrite)
        self._expected = n_samples
        self._n_samples = 0
        self._digest = ContentDigest(False, np.dtype(np.int32))

    def __enter__(self) -> Self:
        """Begin the array aside of its place."""
        self._store = LocalStore(self._aside.path)
        self._writer = ArrayWriter(self._store, "", np.int32, LABEL_CHUNK_ROWS)
        return self

    def append(self, labels: Any) -> None:
        """Add the labels of the next rows."""
        block = np.asarray(labels)
        if block.ndim != 1 or block.dtype.kind not in "iu" or (len(block) and block.min() < 0):
            raise InputError(f"{self._aside.target}: labels must be one whole number from 0 a row.")
        block = block.astype(np.int32)
        self._writer.append(block)
        self._digest.update(block)
        self._n_samples += len(block)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the array and move it to its place, or remove it after an error."""
        if error is None:
            try:
                self._finish()
            except BaseException as failure:
                self._aside.finish(failure)
                raise
        self._aside.finish(error)

    def _finish(self) -> None:
        if self._n_samples != self._expected:
            raise InputError(
                f"{self._aside.target}: {self._n_samples} labels came where {self._expected} were said."
            )
        record = {
            "n_samples": self._n_samples,
            "n_features": 0,
            "inventory": {"": self._writer.close()},
            "digest": self._digest.hexdigest(0),
        }
        set_record(zarr.open_array(store=self._store, mode="r+"), self._store, record)


def open_class_labels(source: Any) -> np.ndarray | None:
    """Class labels kept beside the rows of a store.

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
    >>> from mmcnb.samples import open_class_labels, open_samples
    >>> open_class_labels(open_samples(np.eye(2))) is None
    True
    """
    array = class_labels_array(source)
    if array is None:
        return None
    name = describe(array)
    stored = StoredArray(array, find_inventory(array, name), name)
    labels = stored.read(0, stored.length)
    return labels if labels.dtype.kind in "iu" else np.unique(labels, return_inverse=True)[1]


def class_labels_array(source: Any) -> zarr.Array | None:
    """The array ``y`` beside rows, not yet read."""
    if isinstance(source, Samples):
        source = source.path
    if not isinstance(source, str | os.PathLike | zarr.Array | zarr.Group):
        return None
    node = open_node(source)
    y: Any = None
    if node.path:
        node = reopen(node.store, node.path.rpartition("/")[0])
    if isinstance(node, zarr.Group):
        y = node.get("y")
    return y if isinstance(y, zarr.Array) and y.ndim == 1 else None

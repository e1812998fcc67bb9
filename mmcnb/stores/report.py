"""Verify and describe stores, for `mmcnb verify` and `mmcnb info`."""

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import zarr

from mmcnb._progress import progress as progress_bar
from mmcnb.errors import RESTORE, DamagedStoreError, damaged_chunks
from mmcnb.samples import matrix, open_samples
from mmcnb.samples import zarr as _zarr
from mmcnb.samples.base import ContentDigest, Samples, copy_command
from mmcnb.samples.files import files_below
from mmcnb.samples.inventory import Inventory, find_inventory
from mmcnb.samples.paths import PathLike, checked_path, join
from mmcnb.samples.stored import StoredArray
from mmcnb.stores.labels import array_beside, class_names

LABELS = ""  # path of an array of labels, which is the root of its own store
# Index of the part of the digest to which each array contributes.
DIGEST_PARTS = {LABELS: 0, "X": 0, "X/data": 0, "X/indices": 1, "X/indptr": 2}
ARRAYS_OF_ROWS = (LABELS, "X", "X/indptr")  # arrays from which rows are counted
MOST_CLASSES = 1000  # class counts are reported for at most this many classes


def verify_store(
    path: PathLike, element: str | None = None, progress: bool | None = None
) -> dict[str, Any]:
    """Read a whole store, and compare its chunks with the stored checksums.

    Parameters
    ----------
    path : str or path-like
        Path of a store of rows or of an array of labels.
    element : str, default=None
        Name of the element to read if the store has no checksums. None means ``"X"``.
    progress : bool or None, default=None
        Whether to show a progress bar. None shows it on a terminal or in a notebook.

    Returns
    -------
    dict
        ``store`` (its path), ``checksummed`` (bool), ``chunks`` and ``bytes`` (the
        number of chunks and decoded bytes that were read; None for a store without
        checksums), ``digest``, and ``verdict`` (a sentence).

    Raises
    ------
    DamagedStoreError
        If chunks are missing or differ from what was written. The message names up to
        three of them.
    InputError
        If the store cannot be read or contains a value that is not finite.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from mmcnb.stores import create_dense_store, verify_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_dense_store(f"{folder}/small.zarr", n_features=2) as writer:
    ...         writer.append(np.eye(2))
    ...     verify_store(f"{folder}/small.zarr")["chunks"]
    1
    """
    node = _zarr.open_node(path)
    name = _zarr.describe(node)
    inventory = find_inventory(node, name)
    read: Mapping[str, int | None]
    if inventory is None:
        samples = open_samples(path, element)
        name = samples.name
        digest = samples.digest
        read = {"chunks": None, "bytes": None}
        verdict = f"all rows can be read, but {unchecked(samples)}"
    else:
        read = _read_recorded(inventory, progress)
        digest = inventory.record["digest"]
        verdict = "every chunk is what was written"
    return {
        "store": name,
        "checksummed": inventory is not None,
        **read,
        "digest": digest,
        "verdict": verdict,
    }


def _read_recorded(inventory: Inventory, show_progress: bool | None) -> dict[str, int]:
    """Read all chunks in the inventory, and return their number and decoded bytes.

    Raises
    ------
    DamagedStoreError
        If chunks are missing, or chunks or the digest of the rows differ from what was
        written.
    """
    n_bytes = 0
    damaged: list[str] = []
    n_chunks = sum(map(len, inventory.arrays.values()))
    arrays: dict[str, Any] = {}  # Zarr arrays, by path
    for path in inventory.arrays:
        arrays[path] = _zarr.reopen(inventory.store, join(inventory.root, path))
    content = _content_digest(arrays)
    with progress_bar(n_chunks, "verifying", "chunks", show_progress) as bar:
        for path, array in arrays.items():
            stored = StoredArray(array, inventory, inventory.name)
            end = np.empty(0, np.int64)
            for start in range(0, stored.length, stored.chunk_length):
                bar.update(1)
                try:
                    values = stored.read(start, start + stored.chunk_length)
                except DamagedStoreError:
                    number = start // stored.chunk_length
                    damaged.append(stored.chunk_key(number, *[0] * (array.ndim - 1)))
                    continue
                n_bytes += values.nbytes
                if path in DIGEST_PARTS:
                    _add_chunk(content, path, values, end)
                    end = values[-1:]
    if damaged:
        raise damaged_chunks(inventory.name, damaged, "missing or damaged")
    if content.hexdigest(inventory.record["n_features"]) != inventory.record["digest"]:
        raise DamagedStoreError(
            f"{inventory.name}: the rows differ from what was written: {RESTORE}."
        )
    return {"chunks": n_chunks, "bytes": n_bytes}


def _content_digest(arrays: Mapping[str, zarr.Array]) -> ContentDigest:
    """Return a digest, without values so far, for the rows or labels in ``arrays``."""
    if LABELS in arrays:
        return ContentDigest(False, arrays[LABELS].dtype)
    is_sparse = "X/data" in arrays
    values = arrays["X/data" if is_sparse else "X"]
    return ContentDigest(is_sparse, matrix.block_dtype(values.dtype))


def _add_chunk(
    content: ContentDigest, path: str, values: np.ndarray, previous: np.ndarray
) -> None:
    """Add a chunk to the digest of the rows.

    ``previous`` contains the last value of the preceding chunk of the same array, and
    is empty for the first chunk.
    """
    digested = values
    if path == "X/indptr":
        digested = np.diff(values, prepend=previous)
    elif path in ("X", "X/data"):
        digested = matrix.as_block(values)
    n_rows = len(digested) if path in ARRAYS_OF_ROWS else 0
    content.update_part(DIGEST_PARTS[path], digested, n_rows)


def unchecked(samples: Samples) -> str:
    """Return a clause that names the risk of a store without checksums and a remedy."""
    return (
        "the store has no checksums, so damage can change numbers unnoticed: "
        f"write a checked copy with `{copy_command(samples)}`"
    )


def describe_store(path: PathLike, element: str | None = None) -> dict[str, Any]:
    """Describe a store, or a file of rows that is not a table.

    For stores, .npy files and HDF5 files, the rows themselves are not read.

    Parameters
    ----------
    path : str or path-like
        Path of the store or file.
    element : str, default=None
        Name of the element that contains the rows. None means ``"X"``.

    Returns
    -------
    dict
        ``store``, ``element``, ``n_samples``, ``n_features``, ``layout``, ``density``
        (fraction of nonzero values, or None if the store does not record it),
        ``dtype``, ``chunk_shape``, ``codec``, ``zarr_format``, ``bytes_on_disk``,
        ``class_counts``, ``checksummed``, ``digest`` (None without checksums) and
        ``advice`` (a sentence or None). Entries that do not apply are None.

    Raises
    ------
    InputError
        If the store cannot be read.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from mmcnb.stores import create_dense_store, describe_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with create_dense_store(f"{folder}/small.zarr", n_features=2) as writer:
    ...         writer.append(np.eye(2), y=[3, 4])
    ...     describe_store(f"{folder}/small.zarr")["class_counts"]
    {3: 1, 4: 1}
    """
    samples: Any = open_samples(path, element)
    if not _zarr.is_zarr(samples):
        return _describe_file(path, samples)
    array = samples.arrays[0]
    advice = _zarr.chunk_advice(samples)
    if not advice and not samples.checksummed:
        advice = unchecked(samples)
    return {
        "store": samples.path,
        "element": samples.element,
        "n_samples": samples.n_samples,
        "n_features": samples.n_features,
        "layout": "csr" if samples.is_sparse else "dense",
        "density": _density(samples),
        "dtype": str(samples.stored_dtype),
        "chunk_shape": list(array.chunks),
        "codec": ", ".join(map(str, array.compressors)) or "none",
        "zarr_format": array.metadata.zarr_format,
        "bytes_on_disk": _bytes_on_disk(samples.path),
        "class_counts": _class_counts(samples),
        "checksummed": samples.checksummed,
        "digest": samples.digest if samples.checksummed else None,
        "advice": advice or None,
    }


def _describe_file(path: PathLike, samples: Samples) -> dict[str, Any]:
    """Describe the rows of a file or folder that is not a Zarr store."""
    density = None
    if samples.is_sparse:
        value_bytes = samples.dtype.itemsize + 4
        density = (samples.row_bytes - 8) / value_bytes / samples.n_features
    return {
        "store": str(checked_path(path).absolute()),
        "element": samples.element,
        "n_samples": samples.n_samples,
        "n_features": samples.n_features,
        "layout": "csr" if samples.is_sparse else "dense",
        "density": density,
        "dtype": str(samples.stored_dtype),
        "chunk_shape": None,
        "codec": None,
        "zarr_format": None,
        "bytes_on_disk": _bytes_on_disk(os.fspath(path)),
        "class_counts": None,
        "checksummed": False,
        "digest": None,
        "advice": None,
    }


def _density(samples: Any) -> float | None:
    """Return a store's fraction of nonzero values, or None if it is not recorded."""
    size = samples.n_samples * samples.n_features
    if samples.is_sparse:
        return int(samples.arrays[0].shape[0]) / size
    if not samples.checksummed:
        return None
    return samples.storage.inventory.record["n_nonzero"] / size


def _class_counts(samples: Samples) -> dict[object, int] | None:
    """Return the number of rows of each class.

    The result is None if the store has no labels or more than `MOST_CLASSES` classes.
    """
    array = array_beside(samples, "y")
    if array is None:
        return None
    stored = _zarr.stored_array(array)
    counts: Counter[Any] = Counter()
    for start in range(0, stored.length, stored.chunk_length):
        chunk = stored.read(start, start + stored.chunk_length)
        labels, rows_of_labels = np.unique(chunk, return_counts=True)
        for label, n_rows in zip(labels.tolist(), rows_of_labels.tolist(), strict=True):
            counts[label] += n_rows
        if len(counts) > MOST_CLASSES:
            return None
    names = class_names(array, np.array(list(counts)))
    ordered = {label: counts[label] for label in sorted(counts)}
    if names is None:
        return ordered
    return {names[label]: n_rows for label, n_rows in ordered.items()}


def _bytes_on_disk(path: str | None) -> int | None:
    """Return the total size of a store's files, or None if they are not local."""
    if path is None or "://" in path:
        return None
    return sum(size for _, size, _ in files_below(checked_path(path)))

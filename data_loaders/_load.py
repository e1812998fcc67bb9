"""Load a data set into memory, write it to a Zarr store, and list the data sets."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike, fspath
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from scipy.sparse import vstack as stack_sparse

from mmcnb import InputError
from mmcnb.samples import open_samples
from mmcnb.stores import create_csr_store, create_dense_store, open_class_labels

from . import synthetic
from ._dataset import Block, DataSet, Rows
from ._files import Source
from ._registry import DATASETS, PAPER_PAIRS, SYNTHETIC, find_dataset

SYNTHETIC_ROWS = 100_000
SYNTHETIC_FEATURES = 2


def names() -> list[str]:
    """List the data sets, without the pairs of digits and letters that the papers do not use.

    Returns
    -------
    list of str
        Names for `load` and `write`.

    Examples
    --------
    >>> from mmcnb import datasets
    >>> "adult" in datasets.names()
    True
    """
    return [*DATASETS, *PAPER_PAIRS, *SYNTHETIC]


def load(
    name: str,
    *,
    rows: int | None = None,
    features: int | None = None,
    random_state: int = 0,
    layout: str | None = None,
    source: Source | None = None,
) -> tuple[Rows, np.ndarray]:
    """Load a data set into memory.

    Parameters
    ----------
    name : str
        One of `names`, or two digits or capitals such as ``"optdigits-3v8"`` and
        ``"letter-AvB"``.
    rows : int or None, default=None
        Number of rows. Rows of a real data set are drawn at random, without
        replacement, and stay in their order; with the same seed, a smaller sample is a
        part of a larger one. None is all rows, or 100,000 rows of a synthetic data set.
    features : int or None, default=None
        Number of features of a synthetic data set; None is 2.
    random_state : int, default=0
        Seed of the sample or of the synthetic data set.
    layout : {"dense", "csr"} or None, default=None
        Layout of the rows. None is "csr" for the adult data and the words of texts, and
        "dense" for the other data sets.
    source : Source or None, default=None
        Where the files are. If None, they are in the folder that MMCNB_DATA_DIR names,
        or else downloaded from the publisher.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_samples, n_features)
        The rows, not scaled. The dtype is float32 for most images, adult and synthetic
        data, and float64 for most other data sets.
    y : ndarray of shape (n_samples,), dtype int64
        The classes, numbered as the docstring of the data set's module describes.

    Raises
    ------
    InputError
        If the name is unknown, the files cannot be found or are not the published
        files, or an option does not apply to the data set.

    Examples
    --------
    >>> from mmcnb import datasets
    >>> X, y = datasets.load("rings", rows=1000, features=3)
    >>> X.shape, X.dtype
    ((1000, 3), dtype('float32'))
    """
    if name in SYNTHETIC:
        return synthetic.make_block(
            name, 0, *_synthetic_shape(name, rows, features, layout), random_state
        )
    _, layout, blocks = _real_blocks(name, rows, features, random_state, layout, source)
    X_blocks, y_blocks = zip(*blocks, strict=True)
    stack = stack_sparse if layout == "csr" else np.concatenate
    return stack(X_blocks), np.concatenate(y_blocks)


def write(  # noqa: PLR0913
    name: str,
    path: str | PathLike[str],
    *,
    rows: int | None = None,
    features: int | None = None,
    random_state: int = 0,
    layout: str | None = None,
    source: Source | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write the rows and classes of a data set to a Zarr store, block by block.

    Parameters
    ----------
    name : str
        One of `names`, or two digits or capitals such as ``"optdigits-3v8"`` and
        ``"letter-AvB"``.
    path : str or path-like
        Path of the store, which appears when it is complete.
    rows : int or None, default=None
        As in `load`.
    features : int or None, default=None
        As in `load`.
    random_state : int, default=0
        As in `load`.
    layout : {"dense", "csr"} or None, default=None
        As in `load`.
    source : Source or None, default=None
        As in `load`.
    overwrite : bool, default=False
        Whether a store that exists is replaced.

    Returns
    -------
    dict
        ``name``, ``path``, ``n_samples``, ``n_features``, ``class_counts``, ``layout``,
        ``dtype`` and ``digest`` of the store.

    Raises
    ------
    InputError
        As in `load`, and if the path exists and `overwrite` is False.

    Examples
    --------
    >>> import tempfile
    >>> from mmcnb import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     datasets.write("moons", f"{folder}/moons.zarr", rows=1000)["n_samples"]
    1000
    """
    if name in SYNTHETIC:
        shape = _synthetic_shape(name, rows, features, layout)
        synthetic.write_synthetic(name, path, *shape, random_state, overwrite)
        return _facts(name, path)
    dataset, layout, blocks = _real_blocks(
        name, rows, features, random_state, layout, source
    )
    create = create_csr_store if layout == "csr" else create_dense_store
    with create(
        fspath(path), dataset.n_features, dtype=dataset.dtype, overwrite=overwrite
    ) as writer:
        for X, y in blocks:
            writer.append(X, y=y)
    return _facts(name, path)


def registry(source: Source | None = None) -> list[dict[str, Any]]:
    """List the real data sets with their facts.

    Parameters
    ----------
    source : Source or None, default=None
        Where the files are. None is the folder that MMCNB_DATA_DIR names, and earlier
        downloads.

    Returns
    -------
    list of dict
        ``name``, ``n_samples``, ``n_features``, ``class_counts``, ``layout``, ``found``
        (whether all files are found without a download), ``files`` and ``page`` (the
        publisher's page) of each data set.

    Examples
    --------
    >>> from mmcnb import datasets
    >>> [one["n_samples"] for one in datasets.registry() if one["name"] == "adult"]
    [32561]
    """
    source = source or Source()
    datasets = [*DATASETS.values(), *map(find_dataset, PAPER_PAIRS)]
    return [
        {
            "name": dataset.name,
            "n_samples": dataset.n_samples,
            "n_features": dataset.n_features,
            "class_counts": dict(dataset.class_counts),
            "layout": dataset.layout,
            "found": all(map(source.has, dataset.files)),
            "files": [file.path for file in dataset.files],
            "page": dataset.page,
        }
        for dataset in datasets
    ]


def _synthetic_shape(
    name: str, rows: int | None, features: int | None, layout: str | None
) -> tuple[int, int]:
    if layout not in (None, "dense"):
        raise InputError(f"layout is {layout!r}; {name} can only be dense.")
    rows = SYNTHETIC_ROWS if rows is None else rows
    if rows < 1:
        raise InputError(f"rows is {rows}; give 1 or more.")
    return rows, SYNTHETIC_FEATURES if features is None else features


def _real_blocks(
    name: str,
    rows: int | None,
    features: int | None,
    random_state: int,
    layout: str | None,
    source: Source | None,
) -> tuple[DataSet, str, Iterator[Block]]:
    """Return the facts of a data set, its layout, and the blocks of the sampled rows in this layout."""
    dataset = find_dataset(name)
    layout = dataset.layout if layout is None else layout
    if features is not None:
        raise InputError(
            f"features is {features}, but {name} has {dataset.n_features} features; leave out this option."
        )
    if layout not in ("dense", "csr"):
        raise InputError(f"layout is {layout!r}; give 'dense' or 'csr'.")
    if rows is not None and not 1 <= rows <= dataset.n_samples:
        raise InputError(
            f"rows is {rows}; {name} has 1 to {dataset.n_samples} rows to draw."
        )
    source = source or Source()
    blocks = dataset.blocks(
        [source.content(file, dataset.page) for file in dataset.files]
    )
    if rows is not None:
        blocks = _draw(blocks, dataset.n_samples, rows, random_state)
    convert = csr_matrix if layout == "csr" else _dense
    return dataset, layout, ((convert(X), y) for X, y in blocks)


def _draw(
    blocks: Iterator[Block], n_samples: int, rows: int, random_state: int
) -> Iterator[Block]:
    # The stream of the legacy generator never changes, so every version of NumPy draws
    # the same rows.
    permutation = np.random.RandomState(random_state).permutation(n_samples)
    drawn = np.sort(permutation[:rows])
    start = 0
    for X, y in blocks:
        first, last = np.searchsorted(drawn, [start, start + len(y)])
        here = drawn[first:last] - start
        start += len(y)
        yield X[here], y[here]


def _dense(X: Rows) -> np.ndarray:
    return X.toarray() if issparse(X) else X


def _facts(name: str, path: str | PathLike[str]) -> dict[str, Any]:
    samples = open_samples(path)
    classes, counts = np.unique(np.asarray(open_class_labels(path)), return_counts=True)
    return {
        "name": name,
        "path": fspath(path),
        "n_samples": samples.n_samples,
        "n_features": samples.n_features,
        "class_counts": dict(zip(classes.tolist(), counts.tolist(), strict=True)),
        "layout": "csr" if samples.is_sparse else "dense",
        "dtype": samples.dtype.name,
        "digest": samples.digest,
    }

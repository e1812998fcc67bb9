"""Synthetic data of any size, generated block by block: two rings, two moons, Gaussian blobs and arcs.

Every block of rows is drawn from its own random stream, which is keyed by the seed and
the number of the block. Any range of rows can therefore be generated on its own, and
does not depend on the number of rows of the data set. `make_shape` generates small
shapes.
"""

from os import PathLike
from sys import stderr

import numpy as np
from tqdm.auto import tqdm

from mmcnb import InputError
from mmcnb.samples import BLOCK_ROWS
from mmcnb.stores import create_dense_store

from ._checks import check_name, check_whole

__all__ = ["make_block", "write_synthetic"]


def make_block(
    kind: str,
    start: int,
    stop: int,
    n_features: int,
    random_state: int = 0,
    *,
    n_clusters: int = 2,
) -> tuple[np.ndarray, np.ndarray]:
    """Generate rows ``start`` to ``stop`` of a synthetic data set.

    Parameters
    ----------
    kind : {"rings", "moons", "blobs", "arcs"}
        Kind of the data. Rings have radii 1 and 0.4, and moons are two interleaved half
        circles. Both are in the first two features, with noise of standard deviation
        0.05; the other features are noise of standard deviation 0.03. Blobs are unit
        Gaussians around centres that are uniform in [-5, 5] in every feature. Arcs are
        half circles of radius 1, each in its own random plane, around normal centres at
        a distance of about 0.5 from zero, with noise of standard deviation 0.05 in
        every feature.
    start, stop : int
        Range of row numbers, ``0 <= start <= stop``.
    n_features : int
        Number of columns, at least 2.
    random_state : int, default=0
        Seed. A row depends only on the seed and its row number, not on the range.
    n_clusters : int, default=2
        Number of blobs or arcs; rings and moons are two.

    Returns
    -------
    X : ndarray of shape (stop - start, n_features), dtype float32
        The rows. The class of each row is drawn at random, so the classes are mixed.
    y : ndarray of shape (stop - start,), dtype int64
        The class of each row, 0-based.

    Raises
    ------
    InputError
        If the kind is unknown, or a number is out of its range.

    Examples
    --------
    >>> from mmcnb.datasets import make_block
    >>> X, y = make_block("rings", 1000, 1005, n_features=3)
    >>> X.shape, y.dtype
    ((5, 3), dtype('int64'))
    """
    _check(kind, n_features, n_clusters, random_state)
    for name, number in (("start", start), ("stop", stop)):
        check_whole(name, number, 0, 2**53)
    if start > stop:
        raise InputError(
            f"rows {start} to {stop} are not a valid range; give 0 <= start <= stop."
        )
    X = np.empty((stop - start, n_features), dtype=np.float32)
    y = np.empty(stop - start, dtype=np.int64)
    # one block at a time, so that only one copy of the rows is in memory
    for number in range(start // BLOCK_ROWS, -(-stop // BLOCK_ROWS)):
        whole_X, whole_y = _whole_block(
            kind, number, n_features, random_state, n_clusters
        )
        first = number * BLOCK_ROWS
        lower = max(start, first)
        upper = min(stop, first + BLOCK_ROWS)
        X[lower - start : upper - start] = whole_X[lower - first : upper - first]
        y[lower - start : upper - start] = whole_y[lower - first : upper - first]
    return X, y


def write_synthetic(
    kind: str,
    path: str | PathLike[str],
    n_samples: int,
    n_features: int,
    random_state: int = 0,
    overwrite: bool = False,
    n_clusters: int = 2,
) -> None:
    """Write the rows and classes of a synthetic data set to a Zarr store.

    Parameters
    ----------
    kind : {"rings", "moons", "blobs", "arcs"}
        Kind of the data; see `make_block`.
    path : str or path-like
        Path of the store, which appears when it is complete.
    n_samples : int
        Number of rows, at least 1.
    n_features : int
        Number of columns, at least 2.
    random_state : int, default=0
        Seed.
    overwrite : bool, default=False
        Whether a store that exists is replaced.
    n_clusters : int, default=2
        Number of blobs or arcs; rings and moons are two.

    Raises
    ------
    InputError
        If a number is out of its range, or the path exists and `overwrite` is False.

    Examples
    --------
    >>> import tempfile, mmcnb
    >>> from mmcnb.datasets import write_synthetic
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_synthetic("moons", f"{folder}/moons.zarr", 1000, 2)
    ...     mmcnb.open_samples(f"{folder}/moons.zarr").n_samples
    1000
    """
    _check(kind, n_features, n_clusters, random_state)
    check_whole("n_samples", n_samples, 1, 2**53)
    # write about 16 MiB at a time
    step = BLOCK_ROWS * max(1, 2**22 // (BLOCK_ROWS * n_features))
    writer = create_dense_store(path, n_features, dtype="float32", overwrite=overwrite)
    with (
        writer,
        tqdm(
            total=n_samples, desc=f"writing {kind}", disable=not stderr.isatty()
        ) as bar,
    ):
        for start in range(0, n_samples, step):
            stop = min(start + step, n_samples)
            X, y = make_block(
                kind, start, stop, n_features, random_state, n_clusters=n_clusters
            )
            writer.append(X, y)
            bar.update(stop - start)


def _check(kind: str, n_features: int, n_clusters: int, random_state: int) -> None:
    check_name("kind", kind, ("rings", "moons", "blobs", "arcs"))
    check_whole("n_features", n_features, 2)
    check_whole(
        "n_clusters", n_clusters, 2, 2 if kind in ("rings", "moons") else 2**31 - 1
    )
    check_whole("random_state", random_state, 0)


def _whole_block(
    kind: str, block: int, n_features: int, random_state: int, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    # The stream with key 0 draws what all blocks share (centres and planes); each block
    # has the key block + 1.
    rng = np.random.default_rng(
        np.random.SeedSequence(random_state, spawn_key=(block + 1,))
    )
    y = rng.integers(n_clusters, size=BLOCK_ROWS)
    X = rng.standard_normal((BLOCK_ROWS, n_features), dtype=np.float32)
    shared = np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(0,)))
    if kind == "arcs":
        X *= 0.05
        X += _arc_points(rng, shared, y, n_features, n_clusters)
        return X, y
    if kind == "blobs":
        centres = shared.uniform(-5.0, 5.0, size=(n_clusters, n_features))
        X += centres.astype(np.float32)[y]
        return X, y
    X[:, :2] *= 0.05
    X[:, 2:] *= 0.03
    X[:, :2] += _ring_points(rng, y) if kind == "rings" else _moon_points(rng, y)
    return X, y


def _ring_points(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    angle = rng.uniform(0.0, 2.0 * np.pi, size=len(y))
    radius = np.take((1.0, 0.4), y)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).astype(
        np.float32
    )


def _moon_points(rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    angle = rng.uniform(0.0, np.pi, size=len(y))
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    lower = np.column_stack([1.0 - np.cos(angle), 0.5 - np.sin(angle)])
    return np.where(y[:, None] == 0, upper, lower).astype(np.float32)


def _arc_points(
    rng: np.random.Generator,
    shared: np.random.Generator,
    y: np.ndarray,
    n_features: int,
    n_clusters: int,
) -> np.ndarray:
    centres = shared.normal(
        0.0, 0.5 / np.sqrt(n_features), size=(n_clusters, n_features)
    )
    planes = np.linalg.qr(shared.standard_normal((n_clusters, n_features, 2)))[0]
    angle = rng.uniform(0.0, np.pi, size=len(y))
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return (np.einsum("ij,ikj->ik", circle, planes[y]) + centres[y]).astype(np.float32)

"""The sets of the study of rare classes: rows to train on and rows to test on, the rare class 1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks._common import Data, Options, load, rows_of
from mmcnb.samples import create_csr_store, create_dense_store, open_samples

RARE, DIGITS, RINGS, ADULT = "a9a, 1:50", "MNIST, a digit and the rest", "rings, 1:100", "a9a, 1:3"
THINNED = 50  # common rows for each rare one
DIGIT = 8
DIGIT_ROWS = 10_000
RADII, NOISE = (1.0, 0.4), 0.2  # of the common and the rare ring; they overlap
RARITY = 100
BLOCK = 2**16
SIZES = {"rows": 10**6, "quick_rows": 20_000, "test_rows": 100_000}
QUICK_ROWS = 4000


class Task(NamedTuple):
    """Rows to train on and rows to test on.

    Parameters
    ----------
    name : str
        Its name.
    train, test : Data
        The rows, with 1 for the rare class and 0 for the others.
    """

    name: str
    train: Data
    test: Data


def load_task(name: str, options: Options) -> Task:
    """Load one of the sets that fit in memory."""
    most = QUICK_ROWS if options.quick else None
    if name == RINGS:
        return Task(name, *(_in_memory(part, n) for part, n in enumerate(ring_sizes(options))))
    if name == DIGITS:
        train = load("mnist-train", options, most or DIGIT_ROWS)
        parts = [train, load("mnist-test", options, most)]
        return Task(name, *(Data(one.name, one.X / np.float32(255), (one.y == DIGIT) + 0) for one in parts))
    adult = [load(part, options, most) for part in ("a9a", "a9a.t")]
    train, test = (Data(one.name, one.X, (one.y > 0) + 0) for one in adult)
    return Task(name, thinned(train, THINNED) if name == RARE else train, test)


def thinned(data: Data, ratio: int, random_state: int = 0) -> Data:
    """The data with so many rows of class 1 that there are ``ratio`` others for each, drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks._common import Data
    >>> from benchmarks._scm_data import thinned
    >>> thinned(Data("few", np.eye(12), np.arange(12) % 2), ratio=3).y.sum()
    np.int64(2)
    """
    common, rare = np.flatnonzero(data.y == 0), np.flatnonzero(data.y == 1)
    left = np.random.RandomState(random_state).permutation(rare)[: max(2, common.size // ratio)]
    rows = np.sort(np.concatenate([common, left]))
    return Data(data.name, data.X[rows], data.y[rows])


def ring_sizes(options: Options) -> tuple[int, int]:
    """Rows of the two rings to train on and to test on."""
    n = rows_of(RINGS, options, SIZES["quick_rows" if options.quick else "rows"])
    assert n is not None
    return n, min(n, SIZES["test_rows"])


def ring_blocks(n: int, random_state: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Two wide rings that overlap, block by block; about one row of a hundred is of the inner one.

    Parameters
    ----------
    n : int
        Rows.
    random_state : int
        Seed.

    Yields
    ------
    X : ndarray of shape (n_block, 2), float32
        Rows.
    y : ndarray of shape (n_block,), int64
        1 for the inner ring.
    """
    for start in range(0, n, BLOCK):
        rng = np.random.default_rng([random_state, start])
        rows = min(BLOCK, n - start)
        y = (rng.random(BLOCK) < 1 / (RARITY + 1)).astype(np.int64)
        angle, noise = rng.uniform(0, 2 * np.pi, BLOCK), rng.normal(0, NOISE, BLOCK)
        radius = np.take(RADII, y) + noise
        X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32)
        yield X[:rows], y[:rows]


def _in_memory(random_state: int, n: int) -> Data:
    X, y = zip(*ring_blocks(n, random_state), strict=True)
    return Data(RINGS, np.concatenate(X), np.concatenate(y))


def write_task(name: str, options: Options, folder: Path) -> tuple[Path, Path]:
    """Write a set as two stores; rings go there block by block."""
    paths = folder / "train.zarr", folder / "test.zarr"
    if name == RINGS:
        for part, (path, n) in enumerate(zip(paths, ring_sizes(options), strict=True)):
            with create_dense_store(path, 2, np.float32, n_samples=n) as writer:
                for X, y in ring_blocks(n, part):
                    writer.append(X, y=y)
        return paths
    task = load_task(name, options)
    for path, data in zip(paths, (task.train, task.test), strict=True):
        _write(path, data.X, data.y)
    return paths


def _write(path: Path, X: Any, y: np.ndarray) -> None:
    create = create_dense_store if isinstance(X, np.ndarray) else create_csr_store
    with create(path, X.shape[1], X.dtype) as writer:
        writer.append(X, y=y)


def size_to_train(stores: tuple[str, ...]) -> int:
    """Rows of the first of two stores."""
    return open_samples(stores[0]).n_samples

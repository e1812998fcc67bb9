"""Files that another program changes while a fit reads them: one version is answered for, or one sentence.

**Promised.** A fit of a ``.npy`` file, a Parquet table, an HDF5 file, or a Zarr store
of any kind, of which a file is replaced at any moment, ends in one sentence of
`mmcnb.InputError`, or its labels are those of a fit of the rows that were there before.
The change alters the size or the time of a file, as writing does.

**Not promised.** A change that keeps size and time of each file, or of files behind an
address.

A try replaces one file before the n-th read of rows, where n is at random among the
reads of the whole fit.
"""

import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mmcnb

# Internal: rows that change between two reads need a reader that changes them.
from mmcnb.samples.base import ChunkedSamples
from mmcnb.stores import create_dense_store

TRIES = 500
CI_TRIES = 24
SECONDS = 60
ROWS = 9000


def rows(version: int) -> np.ndarray:
    """Two blobs; another version has other rows in another order."""
    random = np.random.default_rng(version)
    X = random.normal(size=(ROWS, 3)) + 7 * (np.arange(ROWS) % 2)[:, None]
    return X if version == 0 else X[::-1] * [-1, 1, 1]


def npy(path: Path, X: np.ndarray) -> None:
    """A file of raw numbers."""
    np.save(path, X)


def parquet(path: Path, X: np.ndarray) -> None:
    """A table of several row groups."""
    pd.DataFrame(X, columns=list("abc")).to_parquet(path, row_group_size=1000)


def hdf5(path: Path, X: np.ndarray) -> None:
    """A data set in chunks."""
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(1000, 3))


def plain(**options: Any) -> Callable[[Path, np.ndarray], None]:
    """Arrays as users of Zarr write them."""

    def write(path: Path, X: np.ndarray) -> None:
        import zarr

        zarr.create_array(path, shape=X.shape, chunks=(1000, 3), dtype="f8", **options)[
            :
        ] = X

    return write


def blosc(path: Path, X: np.ndarray) -> None:
    """Chunks that Zarr itself decodes."""
    import zarr

    plain(compressors=[zarr.codecs.BloscCodec()])(path, X)


def ours(path: Path, X: np.ndarray) -> None:
    """A store with checksums."""
    with create_dense_store(path, 3, dtype="float64", chunk_rows=1000) as writer:
        writer.append(X)


WRITERS: dict[str, Callable[[Path, np.ndarray], None]] = {
    "rows.npy": npy,
    "rows.parquet": parquet,
    "rows.h5": hdf5,
    "zstd.zarr": plain(),
    "shards.zarr": plain(shards=(3000, 3)),
    "v2.zarr": plain(zarr_format=2),
    "blosc.zarr": blosc,
    "ours.zarr": ours,
}


def exchange(path: Path, other: Path, random: np.random.Generator) -> None:
    """One file of a path becomes that of the other version: in one step, or written in place."""
    files = [one.relative_to(path) for one in sorted(path.rglob("*")) if one.is_file()]
    parts = [
        one for one in files if one.suffix != ".json" and not one.name.startswith(".z")
    ]
    part = parts[random.integers(len(parts))] if path.is_dir() else Path()
    if random.random() < 0.5:
        (path / part).write_bytes((other / part).read_bytes())
    else:
        shutil.copy(other / part, path.parent / "new")
        (path.parent / "new").replace(path / part)


@contextmanager
def counted(at: int | None, change: Callable[[], None]) -> Iterator[list[int]]:
    """Count reads of rows, and make the change before one of them."""
    lock = threading.Lock()
    count = [0]
    originals = (ChunkedSamples.block, ChunkedSamples.gather)

    def counting(original: Any) -> Any:
        def read(self: Any, *places: Any) -> Any:
            with lock:
                count[0] += 1
                if count[0] == at:
                    change()
            return original(self, *places)

        return read

    ChunkedSamples.block, ChunkedSamples.gather = map(counting, originals)  # type: ignore[method-assign]
    try:
        yield count
    finally:
        ChunkedSamples.block, ChunkedSamples.gather = originals  # type: ignore[method-assign]


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """One change in one fit."""
    random = np.random.default_rng(seed)
    name = [*WRITERS][random.integers(len(WRITERS))]
    path = folder / name
    other = folder / f"other-{name}"
    for place, version in ((path, 0), (other, 1)):
        WRITERS[name](place, rows(version))
    given: dict[str, Any] = {"random_state": 0, "n_jobs": int(random.integers(1, 3))}
    model: Any = mmcnb.CPMMC(sample_size=200, n_init=1, **given)
    if random.random() < 0.3:
        model = mmcnb.MaximumMarginClustering(2, n_nodes=300, **given)
    element = "X" if name == "rows.h5" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with counted(None, lambda: None) as reads:
            expected = model.fit(path, element=element).labels_
        at = int(random.integers(1, reads[0] + 1))
        facts = {
            "storage": name,
            "estimator": type(model).__name__,
            "at": at,
            "reads": reads[0],
        }
        try:
            with counted(at, lambda: exchange(path, other, random)):
                found = model.fit(path, element=element).labels_
        except mmcnb.InputError as error:
            if "\n" in str(error) or not str(error).endswith("."):
                raise AssertionError(f"not one sentence: {error}") from error
            return facts | {"answer": "refused"}
    if not np.array_equal(found, expected):
        raise AssertionError(
            f"{name}: labels of two versions, changed at read {at} of {reads[0]}"
        )
    return facts | {"answer": "same"}

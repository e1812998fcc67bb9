"""Part ``foreign`` of ``routines``: a scan of Zarr stores that other programs wrote.

A bare decode reads each file of the rows and decodes it with its codec into one array,
without any other work and without reordering the numbers. Scan and bare decode take
turns, in one thread; the figures are medians of the processor seconds.
"""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies.tables import timed
from benchmarks.tables import Result, goals_of
from mmcnb.samples import open_samples

COLUMNS = 50
CHUNK_ROWS = 2**14
# Largest ratio to a bare decode.
MOST = {
    "Zarr 3, zstd": 1.25,
    "Zarr 3, blosc": 1.6,
    "Zarr 2, blosc": 1.6,
    "Zarr 2, zstd": 1.3,
}
MOST |= {"AnnData, CSR of Zarr 2": 1.5, "AnnData, CSR of Zarr 3": 1.5}


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each way to store the rows."""
    settings = {
        "rows": options.sized(1_000_000, 200_000),
        "turns": options.pick(7, 5, 1),
    }
    yield from (Run("normal", name, 0, settings=settings) for name in stores())


def stores() -> dict[str, Callable[[Path, np.ndarray], None]]:
    """Return functions that write rows, by the name of the way to store them."""
    import numcodecs
    from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

    second = partial(_array, zarr_format=2)
    third = partial(_array, zarr_format=3)
    blosc = numcodecs.Blosc()
    return {
        "Zarr 3, zstd": partial(third, compressors=ZstdCodec(level=1)),
        "Zarr 3, blosc": partial(
            third, compressors=BloscCodec(cname="lz4", shuffle="shuffle")
        ),
        "Zarr 3, gzip": partial(third, compressors=GzipCodec(level=1)),
        "Zarr 2, blosc": partial(second, compressors=blosc),
        "Zarr 2, zstd": partial(second, compressors=numcodecs.Zstd(1)),
        "Zarr 2, lz4": partial(second, compressors=numcodecs.LZ4()),
        "Zarr 2, blosc, ten columns a chunk": partial(
            second, compressors=blosc, columns=10
        ),
        "AnnData, CSR of Zarr 2": partial(_annotated, version=2),
        "AnnData, CSR of Zarr 3": partial(_annotated, version=3),
    }


def _array(path: Path, X: np.ndarray, columns: int = COLUMNS, **options: Any) -> None:
    import zarr

    zarr.create_array(path, data=X, chunks=(CHUNK_ROWS, columns), **options)


def _annotated(path: Path, X: np.ndarray, version: int) -> None:
    import anndata

    with anndata.settings.override(zarr_write_format=version):
        anndata.AnnData(csr_matrix(np.where(X > 0.8, X, 0))).write_zarr(path)


def compute(run: Run) -> dict[str, Any]:
    """Measure the seconds to scan a store and to decode its files."""
    path = Path(run.folder, "rows.zarr")
    shutil.rmtree(path, ignore_errors=True)
    X = (
        np.random.default_rng(0)
        .normal(size=(run.settings["rows"], COLUMNS))
        .round(2)
        .astype(np.float32)
    )
    stores()[run.method](path, X)
    ways: dict[str, Callable[[], object]] = {
        "scan": partial(scan, path),
        "decode": bare_decode(path),
    }
    found = timed(ways, run.settings["turns"])
    scanned, decoded = (found[name][1] for name in ways)
    return {
        "rows": len(X),
        "scan": scanned,
        "decode": decoded,
        "decodes": scanned / decoded,
    }


def scan(path: Path) -> None:
    """Read all rows in pieces, and discard them."""
    samples = open_samples(path)
    for start in range(0, samples.n_samples, CHUNK_ROWS):
        samples.block(start, min(start + CHUNK_ROWS, samples.n_samples))


def bare_decode(path: Path) -> Callable[[], None]:
    """Return a function that decodes each chunk of the rows, and discards it."""
    import numcodecs
    import zarr

    node: Any = zarr.open(path, mode="r")
    arrays = (
        [node]
        if hasattr(node, "shape")
        else [node["X/data"], node["X/indices"], node["X/indptr"]]
    )
    work = []
    for array in arrays:
        (codec,) = array.compressors
        name = getattr(
            codec, "codec_id", type(codec).__name__.lower().removesuffix("codec")
        )
        decode = numcodecs.get_codec({"id": name}).decode
        files = [
            one
            for one in (path / array.path).rglob("*")
            if one.is_file() and one.name[-1].isdigit()
        ]
        work.append((decode, files, np.empty(array.chunks, array.dtype)))

    def decode_all() -> None:
        for decode, files, out in work:
            for file in files:
                decode(file.read_bytes(), out)

    return decode_all


def tables(frame: pd.DataFrame) -> Result:
    """Return the seconds of both, and the ratio of a scan to a bare decode."""
    found = frame.set_index("method")[["rows", "scan", "decode", "decodes"]]
    goals = goals_of(found["decodes"], MOST, "foreign stores, {}: scan", "bare decodes")
    return Result({"routines-foreign": found.reset_index()}, goals)

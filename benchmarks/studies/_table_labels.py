"""Part ``labels`` of ``routines``: from a table on disk to labels, beside a bare read.

Rows lie around ten centres that are far apart, in 50 columns of float32, as CSV and as
Parquet of 1 GB. The default fits each file and labels its rows; CSV text of this size
is first converted to a store. The fit and a bare read by pyarrow take turns; the
figures are processor seconds.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies.tables import read, timed
from benchmarks.tables import Result, goals_of
from mmcnb import MaximumMarginClustering
from mmcnb.stores import convert

ROWS = {"CSV": 2_000_000, "Parquet": 5_000_000}
NAMES = {"CSV": "labels.csv", "Parquet": "labels.parquet"}
QUICK_ROWS = 50_000
SMOKE_ROWS = 1000
COLUMNS = 50
CENTRES = 10
BLOCK = 250_000
MOST = {"CSV": 3.0, "Parquet": 10.0}


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each format."""
    for form, rows in ROWS.items():
        most = options.pick(rows, QUICK_ROWS, SMOKE_ROWS)
        settings = {"rows": options.sized(most, most), "turns": options.pick(3, 3, 1)}
        yield Run("blobs", form, 0, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Measure the seconds to read a file, and to cluster it."""
    path = Path(run.folder, NAMES[run.method])
    write(path, run.settings["rows"])
    found = list[int]()

    def fit() -> None:
        rows = path
        if path.suffix == ".csv":  # CSV is read as a whole, which is too much for 1 GB
            rows = path.with_suffix(".zarr")
            convert(path, rows, overwrite=True)
        found.append(MaximumMarginClustering(random_state=0).fit(rows).n_clusters_)

    ways: dict[str, Callable[[], object]] = {"read": partial(read, path), "fit": fit}
    seconds = timed(ways, run.settings["turns"])
    fitted, bare = (seconds[name][1] for name in ("fit", "read"))
    size = path.stat().st_size / 1e6
    path.unlink()
    measures = {"fit": fitted, "read": bare, "reads": fitted / bare}
    return {
        "rows": run.settings["rows"],
        "megabytes": size,
        "clusters": found[-1],
    } | measures


def write(path: Path, rows: int) -> None:
    """Write blobs as a table, in blocks of rows; CSV has four decimals."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    random = np.random.default_rng(0)
    centres = 10 * random.normal(size=(CENTRES, COLUMNS))
    schema = pyarrow.schema(
        [(f"x{number}", pyarrow.float32()) for number in range(COLUMNS)]
    )
    make = (
        pyarrow.parquet.ParquetWriter
        if path.suffix == ".parquet"
        else pyarrow.csv.CSVWriter
    )
    with make(path, schema) as writer:
        for start in range(0, rows, BLOCK):
            size = min(BLOCK, rows - start)
            X = centres[random.integers(CENTRES, size=size)] + random.normal(
                size=(size, COLUMNS)
            )
            X = X if path.suffix == ".parquet" else X.round(4)
            columns = np.ascontiguousarray(X.T, np.float32)
            writer.write_table(
                pyarrow.table(
                    dict(zip(schema.names, columns, strict=True)), schema=schema
                )
            )


def tables(frame: pd.DataFrame) -> Result:
    """Return a row for each format, with goals for the ratio to a bare read."""
    columns = ["rows", "megabytes", "clusters", "fit", "read", "reads"]
    found = (
        frame[frame["status"] == "ok"].groupby("method", sort=False)[columns].median()
    )
    goals = goals_of(found["reads"], MOST, "tables to labels, {}: fit", "bare reads")
    return Result({"routines-labels": found.reset_index()}, goals)

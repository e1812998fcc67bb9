"""`mmcnb convert` of CSV, Parquet and Arrow files, beside a bare read by pyarrow.

``python -m benchmarks tables [--quick] [--rows N] [--seeds N]``, which is also the part
``tables`` of ``routines``, writes 900,000 rows of 20 normal numbers in each format; the
CSV file has 200 MB. It reads each file into memory with pyarrow and converts it, in
turns. A conversion reads, checks, compresses and hashes all numbers. Figures are
medians of wall and processor seconds over the turns; the goals are for processor
seconds.
"""

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.tables import Result, goals_of
from mmcnb.stores import convert

FORMS = {
    "CSV": "rows.csv",
    "CSV in gzip": "rows.csv.gz",
    "Parquet": "rows.parquet",
    "Arrow": "rows.arrow",
}
COLUMNS = 20
MOST = {"CSV": 2.0, "Parquet": 3.0}  # relative to the processor seconds of a bare read


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each format in turn."""
    settings = {"rows": options.sized(900_000, 20_000), "turns": options.pick(5, 3, 1)}
    for seed in options.repeats(3):
        yield from (Run("normal", form, seed, settings=settings) for form in FORMS)


def compute(run: Run) -> dict[str, Any]:
    """Measure the seconds to read a file and to convert it."""
    path = Path(run.folder, f"{run.seed}-{FORMS[run.method]}")
    write(path, run.settings["rows"], run.seed)
    out = path.with_name(f"{path.name}.zarr")
    ways: dict[str, Callable[[], object]] = {
        "read": partial(read, path),
        "convert": partial(convert, path, out, overwrite=True, progress=False),
    }
    found = timed(ways, run.settings["turns"])
    measures = {
        "rows": run.settings["rows"],
        "megabytes": path.stat().st_size / 1e6,
        "seconds": found["convert"][0],
        "processor_seconds": found["convert"][1],
        "read_seconds": found["read"][0],
        "read_processor_seconds": found["read"][1],
        "rows_per_second": run.settings["rows"] / found["convert"][0],
    }
    path.unlink()
    shutil.rmtree(out)
    return measures


def write(path: Path, rows: int, seed: int) -> None:
    """Write normal numbers as a table, in the format of the file's name."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    numbers = (
        np.random.default_rng(seed).normal(size=(COLUMNS, rows)).astype(np.float32)
    )
    table = pyarrow.table(
        {f"x{number}": column for number, column in enumerate(numbers)}
    )
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif path.suffix == ".arrow":
        pyarrow.feather.write_feather(table, path)
    elif path.suffix == ".gz":
        with pyarrow.CompressedOutputStream(str(path), "gzip") as file:
            pyarrow.csv.write_csv(table, file)
    else:
        pyarrow.csv.write_csv(table, path)


def read(path: Path) -> None:
    """Read a whole file with pyarrow only."""
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    readers: dict[str, Callable[[Path], object]] = {
        ".parquet": pyarrow.parquet.read_table,
        ".arrow": partial(pyarrow.feather.read_table, memory_map=False),
    }
    readers.get(path.suffix, pyarrow.csv.read_csv)(path)


def timed(
    ways: dict[str, Callable[[], object]], turns: int
) -> dict[str, tuple[float, float]]:
    """Return median wall and processor seconds of each way.

    The ways take turns, after a first turn that is not counted.
    """
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            wall = time.perf_counter()
            processor = time.process_time()
            way()
            if turn:
                seconds[name].append(
                    (time.perf_counter() - wall, time.process_time() - processor)
                )
    return {
        name: tuple(np.median(times, axis=0).tolist())
        for name, times in seconds.items()
    }


def tables(frame: pd.DataFrame) -> Result:
    """Return medians over the repetitions, and the ratio of a conversion to a bare read."""
    of_size = [
        "rows",
        "megabytes",
        "read_seconds",
        "read_processor_seconds",
        "seconds",
        "processor_seconds",
    ]
    found = frame.groupby("method", sort=False)[[*of_size, "rows_per_second"]].median()
    found["times a bare read"] = found["seconds"] / found["read_seconds"]
    found["times its processor"] = (
        found["processor_seconds"] / found["read_processor_seconds"]
    )
    goals = goals_of(
        found["times its processor"],
        MOST,
        "{}: converting, in processor seconds of bare reads",
    )
    return Result({"tables": found.reset_index()}, goals)
